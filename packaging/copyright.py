#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print the copyright file TEMPLATE in Debian's format (DEP-5), and add the crates in VENDOR.

    copyright.py TEMPLATE VENDOR

Each crate has a paragraph, with the licence of its Cargo.toml and the copyright lines of its
licence files, or else its authors. The text of each licence is that of a crate, or refers to
Debian's common licences.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

#: Matches the names of a crate's licence files.
LICENCE_FILE = re.compile(r"(?i)(un)?licen[cs]e|copying|copyright")
#: Licences of which every Debian system has the text.
COMMON = {
    "Apache-2.0": "Apache-2.0",
    "GPL-2+": "GPL-2",
    "LGPL-2.1-only": "LGPL-2.1",
    "LGPL-2.1-or-later": "LGPL-2.1",
    "LGPL-3+": "LGPL-3",
}
#: The beginning of each licence's text in a crate's file, and a phrase that this text must contain.
TEXTS = {
    "0BSD": ("Permission to use, copy, modify, and/or distribute", "FITNESS"),
    "Apache-2.0-with-LLVM-exception": ("LLVM Exceptions to the Apache", "As an exception"),
    "BSD-2-Clause": ("Redistribution and use in source", "with the distribution. THIS SOFTWARE"),
    "BSD-3-Clause": ("Redistribution and use in source", "Neither the name"),
    "BSL-1.0": ("Permission is hereby granted, free of charge", "machine-executable object code"),
    "ISC": ("Permission to use, copy, modify, and/or distribute", "above copyright notice"),
    "MIT": ("Permission is hereby granted, free of charge", "substantial portions"),
    "Unicode-3.0": ("UNICODE LICENSE V3", "Data Files"),
    "Unlicense": ("This is free and unencumbered software", "unlicense.org"),
    "Zlib": ("This software is provided", "not be misrepresented"),
}
#: Parts of crates with a licence of their own: crate, directory, copyright, licence.
PARTS = (
    ("libbpf-sys", "libbpf", "the libbpf authors", "LGPL-2.1-only or BSD-2-Clause"),
    ("libbpf-sys", "elfutils", "the elfutils authors", "LGPL-3+ or GPL-2+"),
    ("libbpf-sys", "zlib", "Jean-loup Gailly and Mark Adler", "Zlib"),
)


def main(template: str, vendor: str) -> None:
    """Print the copyright file."""
    crates = sorted(path.parent for path in Path(vendor).glob("*/Cargo.toml"))
    if not crates:
        sys.exit(f"copyright.py: there are no crates in {vendor}")
    stanzas = [stanza for crate in crates for stanza in _stanzas(crate)]
    names = {name for _, _, licence in stanzas for name in re.split(r",? and | or ", licence)}
    print(Path(template).read_text().rstrip("\n"))
    for files, owners, licence in stanzas:
        print(f"\nFiles: {files}\nCopyright: {owners}\nLicense: {licence}")
    for name in sorted(names):
        print(f"\nLicense: {name}\n{_indented(_text(name, crates))}")


def _stanzas(crate: Path) -> Iterator[tuple[str, str, str]]:
    """Files, copyright and licence of a crate and its parts."""
    manifest = (crate / "Cargo.toml").read_text()
    licence = re.search(r'^license = "(.+)"$', manifest, re.MULTILINE)
    if not licence:
        sys.exit(f"copyright.py: {crate}/Cargo.toml names no licence")
    yield f"{crate}/*", _owners(crate, manifest), _dep5(licence[1])
    for name, folder, owners, own in PARTS:
        if (crate / folder).is_dir() and crate.name.startswith(f"{name}-"):
            yield f"{crate}/{folder}/*", owners, own


def _dep5(expression: str) -> str:
    """An SPDX expression, in DEP-5's syntax."""
    plain = re.sub(r"[()]", "", expression).replace("/", " OR ")
    plain = plain.replace(" WITH LLVM-exception", "-with-LLVM-exception")
    both = re.sub(r"^(.+ OR .+) AND ", r"\1, AND ", plain)
    return both.replace(" OR ", " or ").replace(", AND ", ", and ").replace(" AND ", " and ")


def _owners(crate: Path, manifest: str) -> str:
    """The copyright lines of the licence files, or else the authors in the manifest."""
    lines = [
        match[1].strip()
        for text in _licence_files(crate)
        for match in re.finditer(r"(?im)^\W*(copyright (?:\(c\)|©|\d).*)$", text)
        if not re.search(r"\[yyyy\]|\{yyyy\}|<year>", match[1])
    ]
    if not lines:
        authors = re.search(r"^authors = \[(.*?)\]", manifest, re.MULTILINE | re.DOTALL)
        lines = re.findall(r'"(.+?)"', authors[1]) if authors else []
    return "\n ".join(dict.fromkeys(lines)) or f"the authors of {crate.name}"


def _licence_files(crate: Path) -> list[str]:
    files = [path for path in sorted(crate.iterdir()) if LICENCE_FILE.match(path.name)]
    return [path.read_text(errors="replace") for path in files if path.is_file()]


def _text(name: str, crates: list[Path]) -> str:
    """The text of a licence."""
    if name in COMMON:
        return f"On Debian systems, the text is in /usr/share/common-licenses/{COMMON[name]}."
    if name not in TEXTS:
        sys.exit(f"copyright.py: the licence {name} is not known")
    begin, phrase = TEXTS[name]
    for crate in crates:
        for text in _licence_files(crate):
            at = text.find(begin)
            if at >= 0 and phrase in " ".join(text[at:].split()):
                return text[at:]
    sys.exit(f"copyright.py: no crate has the text of the licence {name}")


def _indented(text: str) -> str:
    """`text` as the value of a field in DEP-5's syntax: each line indented, empty lines as dots."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return "\n".join(f" {line or '.'}" for line in lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
