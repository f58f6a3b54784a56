// SPDX-License-Identifier: GPL-2.0-only
//! The installed schedulers, from the manifests written at build time, and the arguments that
//! may be passed to them.

use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context as _, Result};
use scx_utils::manifest::{Manifest, OptionInfo, Values};

/// Maximum number of arguments. No scheduler has that many options.
const ARGS_MAX: usize = 64;
/// Maximum size of an argument in bytes. A hexadecimal mask of 4096 CPUs takes a quarter of that.
const ARG_BYTES_MAX: usize = 4096;
/// How many characters of an untrusted text are quoted in an error.
const SHOWN_CHARS: usize = 60;

/// The manifests of the installed schedulers, sorted by name.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    manifests: Vec<Manifest>,
}

impl Registry {
    /// Reads the manifests in a directory, the files `*.json`.
    ///
    /// # Errors
    ///
    /// If the directory or one of the manifests cannot be read, if a manifest is invalid, or if
    /// there are no manifests, as in a partial installation.
    pub fn read(folder: &Path) -> Result<Self> {
        let shown = folder.display();
        let files =
            fs::read_dir(folder).with_context(|| format!("{shown}: no schedulers found"))?;
        let mut manifests = Vec::new();
        for file in files {
            let path = file.with_context(|| shown.to_string())?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let text = fs::read_to_string(&path);
                let text = text.with_context(|| path.display().to_string())?;
                let manifest: Manifest = serde_json::from_str(&text)
                    .with_context(|| format!("{} is not a scheduler's manifest", path.display()))?;
                manifests.push(manifest);
            }
        }
        ensure!(!manifests.is_empty(), "{shown}: no schedulers found");
        Ok(Self::of(manifests))
    }

    /// A registry of these manifests.
    pub fn of(manifests: impl IntoIterator<Item = Manifest>) -> Self {
        let mut manifests: Vec<_> = manifests.into_iter().collect();
        manifests.sort_by(|a, b| a.name.cmp(&b.name));
        Self { manifests }
    }

    /// All schedulers, sorted by name.
    #[must_use]
    pub fn all(&self) -> &[Manifest] {
        &self.manifests
    }

    /// Finds a scheduler by its name, with or without `scx_`.
    ///
    /// # Errors
    ///
    /// If there is no such scheduler. The error lists all schedulers.
    pub fn find(&self, name: &str) -> Result<&Manifest> {
        let of_name = |one: &&Manifest| one.name == name || one.ops() == name;
        if let Some(manifest) = self.manifests.iter().find(of_name) {
            return Ok(manifest);
        }
        let names: Vec<_> = self.manifests.iter().map(|one| one.name.as_str()).collect();
        let (shown, names) = (shown(name), names.join(", "));
        bail!("there is no scheduler {shown}: there are {names}")
    }

    /// Finds a scheduler by the name of its `sched_ext_ops` in the kernel.
    #[must_use]
    pub fn of_ops(&self, ops: &str) -> Option<&Manifest> {
        self.manifests.iter().find(|one| one.ops() == ops)
    }
}

/// Checks that custom arguments may be passed to a scheduler. Only the options in its manifest may
/// be passed. The scheduler itself checks their values.
///
/// # Errors
///
/// If there are too many arguments, or if an argument is too long, contains control characters, is
/// neither an option of the manifest nor a value of one, or is an option with too few or too many
/// values. The error quotes the beginning of the argument.
pub fn check_args(manifest: &Manifest, args: &[String]) -> Result<()> {
    let nr_args = args.len();
    ensure!(
        nr_args <= ARGS_MAX,
        "{nr_args} arguments are more than {ARGS_MAX}"
    );
    for arg in args {
        let (bytes, shown) = (arg.len(), shown(arg));
        ensure!(
            bytes <= ARG_BYTES_MAX,
            "the argument {shown} has {bytes} bytes, which are more than {ARG_BYTES_MAX}"
        );
        ensure!(
            !arg.chars().any(char::is_control),
            "the argument {shown} contains control characters"
        );
    }
    let mut rest = args.iter().map(String::as_str).peekable();
    while let Some(arg) = rest.next() {
        let (values, has_value) = option(manifest, arg)?;
        let is_value = |rest: &mut std::iter::Peekable<_>| {
            rest.next_if(|next: &&str| !next.starts_with('-') || is_negative(next))
                .is_some()
        };
        let nr_values = match values {
            Values::None => continue,
            Values::One => usize::from(has_value || is_value(&mut rest)),
            Values::Many => {
                usize::from(has_value)
                    + std::iter::from_fn(|| is_value(&mut rest).then_some(())).count()
            }
        };
        ensure!(nr_values > 0, "{} lacks its value", shown(arg));
    }
    Ok(())
}

/// Whether an argument is a negative number, and thus a value. No scheduler has digits as options.
fn is_negative(arg: &str) -> bool {
    arg.strip_prefix('-')
        .is_some_and(|digits| digits.parse::<u64>().is_ok())
}

/// How many values the last option in `arg` takes, and whether `arg` contains a value for it.
fn option(manifest: &Manifest, arg: &str) -> Result<(Values, bool)> {
    let name = &manifest.name;
    let refused = || format!("{name} may not be passed {}", shown(arg));
    let find = |is_it: &dyn Fn(&OptionInfo) -> bool| {
        let found = manifest.options.iter().find(|option| is_it(option));
        found.map(|option| option.values).with_context(refused)
    };
    if let Some(long) = arg.strip_prefix("--") {
        let (long, value) = long
            .split_once('=')
            .map_or((long, None), |(l, v)| (l, Some(v)));
        let values = find(&|option| !long.is_empty() && option.long == long)?;
        if values == Values::None && value.is_some() {
            bail!("{} takes no value", shown(arg));
        }
        return Ok((values, value.is_some()));
    }
    let letters = arg.strip_prefix('-').filter(|letters| !letters.is_empty());
    let letters = letters.with_context(refused)?;
    // Short flags, possibly followed by a short option with its value.
    for (index, letter) in letters.char_indices() {
        let values = find(&|option| option.short == Some(letter))?;
        if values != Values::None {
            return Ok((values, index + letter.len_utf8() < letters.len()));
        }
    }
    Ok((Values::None, false))
}

/// Quotes untrusted text for a message: shortened, and with control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    format!("'{shown}'")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use scx_utils::manifest::Mode;

    use super::*;

    pub(crate) fn manifest(name: &str) -> Manifest {
        let option = |long: &str, short, values| OptionInfo {
            long: long.into(),
            short,
            values,
        };
        Manifest {
            name: name.into(),
            options: vec![
                option("slice-us", Some('s'), Values::One),
                option("masks", Some('C'), Values::Many),
                option("fifo", Some('f'), Values::None),
                option("keep", Some('k'), Values::None),
            ],
            modes: BTreeMap::from([(Mode::LowLatency, vec!["--fast".into()])]),
            power_profile_args: None,
            kfuncs: Vec::new(),
        }
    }

    fn check(args: &[&str]) -> Result<(), String> {
        let args: Vec<_> = args.iter().map(ToString::to_string).collect();
        check_args(&manifest("scx_x"), &args).map_err(|error| error.to_string())
    }

    #[test]
    fn listed_options_may_be_passed() {
        for args in [
            &[][..],
            &["--slice-us", "100"],
            &["--slice-us=100", "-f"],
            &["--slice-us", "-1", "-f"],
            &["-s", "100", "--fifo"],
            &["-s100", "-fk"],
            &["-fs", "100"],
            &["-fks=100"],
            &["-C", "1", "2", "4", "-f"],
            &["--masks", "1"],
            &["--masks=1", "2"],
        ] {
            assert_eq!(check(args), Ok(()), "{args:?}");
        }
    }

    #[test]
    fn other_arguments_are_rejected() {
        for (args, word) in [
            (&["--stats-socket", "/x"][..], "'--stats-socket'"),
            (&["--stats-socket=/x"], "'--stats-socket=/x'"),
            // Abbreviations of long options, which C programs accept, are rejected.
            (&["--slice", "100"], "'--slice'"),
            (&["--"], "'--'"),
            (&["-"], "'-'"),
            (&[""], "''"),
            (&["stray"], "'stray'"),
            (&["-f", "stray"], "'stray'"),
            (&["--fifo=1"], "'--fifo=1'"),
            (&["-fx"], "'-fx'"),
            (&["-x"], "'-x'"),
            (&["-1"], "'-1'"),
            (&["-f", "-1"], "'-1'"),
            (&["--slice-us", "-1x"], "lacks its value"),
            (&["--slice-us", "-"], "lacks its value"),
            (&["--slice-us"], "lacks its value"),
            (&["--slice-us", "--stats-socket"], "lacks its value"),
            (&["--slice-us", "1", "2"], "'2'"),
            (&["-C", "--fifo"], "lacks its value"),
            (&["--fifo\n"], "control characters"),
            (&["--slice-us", "1\u{1b}[2J"], "control characters"),
            (&["--slice-us", "1\0"], "control characters"),
        ] {
            let error = check(args).unwrap_err();
            assert!(error.contains(word), "{args:?}: {error}");
            assert!(!error.chars().any(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn sizes_are_limited() {
        let long = "x".repeat(1 << 20);
        let error = check(&["--slice-us", &long]).unwrap_err();
        assert!(
            error.contains("1048576 bytes") && error.len() < 200,
            "{error}"
        );
        let many = vec!["-f"; 65];
        assert!(check(&many).unwrap_err().contains("65 arguments"));
        assert_eq!(check(&many[1..]), Ok(()));
    }

    #[test]
    fn directories_without_manifests_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Registry::read(folder.path()).is_err());
        assert!(Registry::read(&folder.path().join("none")).is_err());
        fs::write(folder.path().join("README"), "not one").unwrap();
        let text = serde_json::to_string(&manifest("scx_x")).unwrap();
        fs::write(folder.path().join("scx_x.json"), text).unwrap();
        let registry = Registry::read(folder.path()).unwrap();
        assert_eq!(registry.all().len(), 1);
        assert_eq!(registry.find("x").unwrap().name, "scx_x");
        assert_eq!(registry.of_ops("x").unwrap().name, "scx_x");
        assert!(registry.find("scx_y").is_err());
        fs::write(folder.path().join("scx_y.json"), "{}").unwrap();
        assert!(Registry::read(folder.path()).is_err());
    }

    proptest! {
        /// Accepted arguments begin with an option, and all of their long options are in the
        /// manifest.
        #[test]
        fn accepted_options_are_on_the_list(
            args in prop::collection::vec(
                "-{0,2}(slice-us|masks|fifo|stats|[a-zC]{1,3})?=?[0-9a-z]{0,3}",
                0..6,
            )
        ) {
            if check_args(&manifest("scx_x"), &args).is_ok() {
                for arg in args.iter().filter(|arg| arg.starts_with("--")) {
                    let name = arg[2..].split('=').next().unwrap();
                    prop_assert!(["slice-us", "masks", "fifo", "keep"].contains(&name));
                }
                if let Some(first) = args.first() {
                    prop_assert!(first.starts_with('-') && first.len() > 1);
                }
            }
        }

        /// No input causes a panic.
        #[test]
        fn any_arguments_are_handled(args in prop::collection::vec(".*", 0..4)) {
            let _ = check_args(&manifest("scx_x"), &args);
        }
    }
}
