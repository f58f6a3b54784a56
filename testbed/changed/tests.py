# SPDX-License-Identifier: GPL-2.0-only
"""Which tests depend on which programs, modules and documents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

#: Matches imports of one module. `import a, b` is not used in this tree.
_IMPORT = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
#: Matches the path of a document that a source file reads, as in `ROOT / "docs/x.md"`.
_DOCUMENT = re.compile(r"""/ "([\w./-]+\.md)\"""")
#: Every test file uses this module without importing it.
_CONFTEST = "conftest"


def modules(root: Path) -> dict[str, list[Path]]:
    """Module or package → its files, for all of testbed/, and for the modules in tests/ and
    tests/vm/."""
    found = {path.stem: [path] for path in (root / "testbed").glob("*.py")}
    for package in (root / "testbed").glob("*/__init__.py"):
        found[package.parent.name] = list(package.parent.rglob("*"))
    for folder in ("tests", "tests/vm"):
        for path in (root / folder).glob("*.py"):
            found.setdefault(path.stem, []).append(path)
    return found


def affected_modules(root: Path, changed: set[Path]) -> set[str]:
    """Modules that changed or read a changed document, and the modules that import one of these,
    directly or not."""
    known = modules(root)
    imports = {name: _imported(files) for name, files in known.items()}
    found = {name for name, files in known.items() if changed & {*files, *_documents(root, files)}}
    while more := {name for name, used in imports.items() if used & found} - found:
        found |= more
    return found


def affected(root: Path, changed: set[Path], programs: Iterable[str]) -> list[Path]:
    """Files of guest tests that changed, read a changed document, import an affected module, or are
    concerned by the affected `programs`. All of them, if conftest is affected."""
    through = affected_modules(root, changed)
    files = sorted((root / "tests/vm").glob("test_*.py"))
    if _CONFTEST in through:
        return files
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, programs)) or '(?!)'})\b")
    return [
        file for file in files if file.stem in through or _concerned(file, word, bool(programs))
    ]


def readers(root: Path, changed: set[Path]) -> list[Path]:
    """Tests without guests that read a changed document."""
    folders = (root / "tests" / name for name in ("unit", "dist"))
    files = [file for folder in folders for file in sorted(folder.glob("test_*.py"))]
    return [file for file in files if changed & _documents(root, [file])]


def _concerned(file: Path, word: re.Pattern[str], any_program: bool) -> bool:
    """Whether a test file names an affected program; or, if any program is affected, uses the list
    of all schedulers."""
    text = file.read_text()
    return bool(word.search(text)) or (any_program and "schedulers" in _imported([file]))


def _imported(files: Iterable[Path]) -> set[str]:
    return _found(_IMPORT, files)


def _documents(root: Path, files: Iterable[Path]) -> set[Path]:
    return {root / name for name in _found(_DOCUMENT, files)}


def _found(pattern: re.Pattern[str], files: Iterable[Path]) -> set[str]:
    """All matches in the Python sources among the files."""
    sources = [file.read_text() for file in files if file.suffix == ".py"]
    return {match for text in sources for match in pattern.findall(text)}
