// SPDX-License-Identifier: GPL-2.0-only
//! Common code for the command lines of all programs: checked values, one-line errors, and manual
//! pages and completions generated from the definitions of the options.

use std::io::{self, Write};
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::error::ContextKind;
use clap::{value_parser, Arg, Command, ValueEnum};
use clap_mangen::Man;
use roff::{bold, roman, Roff};

/// What the hidden option `--generate` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generate {
    /// A manual page.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for zsh.
    Zsh,
    /// Completions for fish.
    Fish,
}

/// A parser for the values of options that set a time slice in microseconds, such as `--slice-us`:
/// 100 us to 1 s.
#[must_use]
pub fn slice_us() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(100..=1_000_000)
}

/// An additional section of the manual page: its heading, and paragraphs. A paragraph of the form
/// `WORD: text` is a list item.
pub type Section<'a> = (&'a str, &'a [&'a str]);

/// Writes a manual page or completions. `section` is the section of the manual, such as "8".
/// `sections` follow the options in the manual page.
///
/// # Errors
///
/// Errors of `out`.
pub fn generate(
    what: Generate,
    command: &mut Command,
    section: &str,
    sections: &[Section<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let shell = match what {
        Generate::Man => return man(command, section, sections, out),
        Generate::Bash => clap_complete::Shell::Bash,
        Generate::Zsh => clap_complete::Shell::Zsh,
        Generate::Fish => clap_complete::Shell::Fish,
    };
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(command), name, &mut text);
    out.write_all(&text)
}

/// The command without hidden options, which clap's completions would include.
fn without_hidden(command: &Command) -> Command {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let about = command.get_about().cloned().unwrap_or_default();
    let plain = Command::new(command.get_name().to_owned())
        .about(about)
        .args(shown)
        .subcommands(command.get_subcommands().map(without_hidden));
    match command.get_version() {
        Some(version) => plain.version(version.to_owned()),
        None => plain,
    }
}

/// Writes the section with the subcommands, each with its own options.
fn man_commands(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    if !command.has_subcommands() {
        return Ok(());
    }
    // build() determines how many values each option takes.
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for one in command.get_subcommands() {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        roff.control("TP", []);
        roff.text([bold(one.get_name())]);
        roff.text([roman(about + ".")]);
        roff.control("RS", []);
        let is_own = |arg: &&Arg| !arg.is_global_set() && arg.get_id() != "help";
        for arg in one.get_arguments().filter(is_own) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            roff.control("TP", []);
            roff.text([bold(arg.to_string())]);
            roff.text([roman(help + ".")]);
        }
        roff.control("RE", []);
    }
    roff.to_writer(out)
}

fn man(
    command: &Command,
    section: &str,
    sections: &[Section<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let version = command.get_version().unwrap_or_default().to_owned();
    let man = Man::new(command.clone())
        .section(section)
        .source(format!("scx {version}"))
        .manual("CPU schedulers");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    man_commands(command, out)?;
    for (heading, paragraphs) in sections {
        let mut roff = Roff::new();
        roff.control("SH", [*heading]);
        for paragraph in *paragraphs {
            match paragraph.split_once(": ") {
                Some((item, text)) if !item.contains(' ') => {
                    roff.control("TP", []);
                    roff.text([bold(item)]);
                    roff.text([roman(text)]);
                }
                _ => {
                    roff.control("PP", []);
                    roff.text([roman(*paragraph)]);
                }
            }
        }
        roff.to_writer(out)?;
    }
    Ok(())
}

/// Writes `text` to standard output, and flushes it.
///
/// # Errors
///
/// Errors of standard output.
pub fn print(text: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    stdout.flush()
}

/// Whether the error means that the reader of the output has closed the pipe.
#[must_use]
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A command line error as one line, with clap's hint if there is one.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut line = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        if let Some(hint) = error.get(kind) {
            line += &format!(" (did you mean {hint}?)");
        }
    }
    line
}

/// Parses an interval in seconds, from 0.1 s to a day. With shorter intervals, printing would
/// dominate the load. Longer intervals are of no use.
///
/// # Errors
///
/// The accepted range, if the text is not a number within it.
pub fn interval(text: &str) -> Result<Duration, String> {
    const MIN_S: f64 = 0.1;
    const MAX_S: f64 = 86400.0;
    match text.parse::<f64>() {
        // Excludes NaN too.
        Ok(seconds) if (MIN_S..=MAX_S).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("not {MIN_S} to {MAX_S} seconds")),
    }
}

/// Parses a duration in seconds, from 0.1 s to a week.
///
/// # Errors
///
/// The accepted range, if the text is not a number within it.
pub fn duration(text: &str) -> Result<Duration, String> {
    const SECONDS: std::ops::RangeInclusive<f64> = 0.1..=604_800.0;
    match text.parse() {
        // Excludes NaN too.
        Ok(seconds) if SECONDS.contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!(
            "not a number from {} to {}",
            SECONDS.start(),
            SECONDS.end()
        )),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn intervals_are_bounded() {
        assert_eq!(interval("0.1"), Ok(Duration::from_millis(100)));
        assert_eq!(interval("86400"), Ok(Duration::from_secs(86400)));
        for bad in [
            "", "0", "-1", "0.09", "86401", "1e99", "inf", "NaN", "1s", "1,5",
        ] {
            let message = interval(bad).unwrap_err();
            assert_eq!(message, "not 0.1 to 86400 seconds", "{bad}");
        }
    }

    fn command() -> Command {
        let interval = clap::Arg::new("stats").long("stats").value_parser(interval);
        let secret = clap::Arg::new("secret").long("secret").hide(true);
        Command::new("scx_x")
            .version("1.0")
            .about("About x")
            .arg(interval.help("Every so often"))
            .arg(secret)
    }

    #[test]
    fn a_reader_that_went_away_is_told_from_a_full_disk() {
        let of = |kind: io::ErrorKind| {
            let result: io::Result<()> = Err(kind.into());
            is_closed_pipe(&result.context("standard output").unwrap_err())
        };
        assert!(of(io::ErrorKind::BrokenPipe));
        assert!(!of(io::ErrorKind::StorageFull));
        assert!(!is_closed_pipe(&anyhow::anyhow!("broken pipe")));
    }

    #[test]
    fn errors_take_one_line() {
        let wrong: [&[&str]; 4] = [&["--stats=NaN"], &["--stat"], &["--stats"], &["more"]];
        for arguments in wrong {
            let arguments = std::iter::once(&"scx_x").chain(arguments);
            let error = command().try_get_matches_from(arguments).unwrap_err();
            let line = one_line(&error);
            assert!(
                !line.is_empty() && !line.contains('\n') && !line.contains("error:"),
                "{line}"
            );
        }
    }

    #[test]
    fn errors_carry_the_hint() {
        let error = command()
            .try_get_matches_from(["scx_x", "--stat=1"])
            .unwrap_err();
        let line = one_line(&error);
        assert_eq!(
            line,
            "unexpected argument '--stat' found (did you mean --stats?)"
        );
    }

    fn generated(what: Generate) -> String {
        let mut text = Vec::new();
        let sections: &[Section<'_>] = &[("EXIT STATUS", &["0: Fine.", "Nothing: else."])];
        generate(what, &mut command(), "8", sections, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn manual_page_has_the_options_and_the_sections() {
        let page = generated(Generate::Man);
        assert!(page.contains(".TH scx_x 8"), "{page}");
        assert!(page.contains("\\-\\-stats"), "{page}");
        assert!(
            page.contains(".SH \"EXIT STATUS\"") && page.contains("\\fB0\\fR\nFine."),
            "{page}"
        );
    }

    #[test]
    fn each_shell_gets_the_options() {
        for shell in [Generate::Bash, Generate::Zsh, Generate::Fish] {
            let text = generated(shell);
            assert!(text.contains("stats"), "{shell:?}");
            assert!(text.contains("version"), "{shell:?}");
            assert!(!text.contains("secret"), "{shell:?}");
        }
    }
}
