// SPDX-License-Identifier: GPL-2.0-only
//! The version that programs print for `--version`, with the commit from which they were built.

/// The commit of the build: `git describe`'s short commit, with `-dirty` if there were changes. Set
/// by build-aux/cargo.py, to an empty string without git; absent if cargo is called directly.
const COMMIT: Option<&str> = option_env!("SCX_BUILD_ID");

/// A program's version for `--version`: `0.1.0-g1234567890 x86_64`, or `0.1.0 x86_64` if the commit
/// is unknown, followed by `/debug` for a build with debug assertions.
#[must_use]
pub fn full_version(version: &str) -> String {
    describe(version, COMMIT, cfg!(debug_assertions))
}

fn describe(version: &str, commit: Option<&str>, debug: bool) -> String {
    let commit = commit
        .filter(|id| !id.is_empty())
        .map_or(String::new(), |id| format!("-g{id}"));
    let debug = if debug { "/debug" } else { "" };
    format!("{version}{commit} {}{debug}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_commit_if_it_is_known() {
        let arch = std::env::consts::ARCH;
        assert_eq!(
            describe("1.2.3", Some("abc-dirty"), false),
            format!("1.2.3-gabc-dirty {arch}")
        );
        assert_eq!(
            describe("1.2.3", Some(""), true),
            format!("1.2.3 {arch}/debug")
        );
        assert_eq!(describe("1.2.3", None, false), format!("1.2.3 {arch}"));
    }
}
