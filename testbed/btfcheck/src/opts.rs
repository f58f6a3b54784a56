//! The command line.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgGroup, Parser};

/// Checks the kfunc externs of BPF objects against the BTF of kernels.
///
/// libbpf leaves a weak kfunc extern unresolved when its prototype does not match
/// the kernel's, without a word: a typo looks like an older kernel. This command
/// applies libbpf's rules to every extern and every kernel given, and tells.
///
/// A finding is an extern that is incompatible with a kernel (unless it is one of
/// several prototypes of one function, and each kernel gets one that fits), an
/// extern that is not weak and absent from a kernel, and, with --span, a weak
/// extern that no kernel has.
///
/// Exit status: 0 nothing found, 1 something found, 2 wrong usage or unreadable
/// input.
#[derive(Debug, Parser)]
#[command(version, group = ArgGroup::new("format"))]
pub(crate) struct Opts {
    /// A kernel: a name for it and a file with its types, raw BTF or an ELF file
    /// with a .BTF section. May be repeated
    #[arg(long, value_name = "NAME=FILE", required = true, value_parser = named_file)]
    pub btf: Vec<(String, PathBuf)>,

    /// The kernels given cover every generation of kfunc names: a weak extern that
    /// none of them has is a finding
    #[arg(long)]
    pub span: bool,

    /// Write JSON
    #[arg(long, group = "format")]
    pub json: bool,

    /// Write the Test Anything Protocol, one test point per extern
    #[arg(long, group = "format")]
    pub tap: bool,

    /// BPF objects to check
    #[arg(value_name = "OBJECT.bpf.o", required = true)]
    pub objects: Vec<PathBuf>,
}

impl Opts {
    /// Parses the command line.
    ///
    /// # Errors
    /// What is wrong with it, as clap tells it; also a request for the help text or
    /// the version.
    pub(crate) fn from_command_line() -> Result<Self, clap::Error> {
        let opts = Self::try_parse()?;
        let mut names: Vec<_> = opts.btf.iter().map(|(name, _)| name).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let text = format!("two kernels are called {}\n", pair[0]);
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(opts)
    }
}

fn named_file(text: &str) -> Result<(String, PathBuf), &'static str> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_string(), PathBuf::from(file)))
        }
        _ => Err("expected NAME=FILE"),
    }
}

#[cfg(test)]
mod tests {
    use scx_utils::cli::one_line;

    use super::*;

    fn error(args: &[&str]) -> String {
        one_line(&Opts::try_parse_from([&["scx_btfcheck"], args].concat()).unwrap_err())
    }

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Opts::command().debug_assert();
    }

    #[test]
    fn kernels_are_named_files() {
        let args = [
            "scx_btfcheck",
            "--btf",
            "6.12=a=b",
            "--btf",
            "7.2=c",
            "x.bpf.o",
        ];
        let opts = Opts::try_parse_from(args).unwrap();
        let want = [("6.12", "a=b"), ("7.2", "c")];
        assert_eq!(opts.btf, want.map(|(n, f)| (n.into(), f.into())));
        for bad in ["a", "=a", "a=", "="] {
            assert!(named_file(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_fit_a_line() {
        assert_eq!(
            error(&["--btf", "nonsense", "x.bpf.o"]),
            "invalid value 'nonsense' for '--btf <NAME=FILE>': expected NAME=FILE"
        );
        assert!(error(&[]).contains("--btf <NAME=FILE> <OBJECT.bpf.o>"));
        assert!(error(&["--tap", "--json", "--btf", "a=b", "x"]).contains("--json"));
    }
}
