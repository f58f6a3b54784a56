// SPDX-License-Identifier: GPL-2.0-only
//! Display names of schedulers and modes.

use scx_loader::bus::NONE;
use scx_utils::manifest::{ops, Mode};

/// The display name of a scheduler, such as `Rusty` for `scx_rusty`.
pub(crate) fn title(scheduler: &str) -> String {
    let mut letters = ops(scheduler).chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The name of a scheduler; `None` if it is [`NONE`].
pub(crate) fn known(name: String) -> Option<String> {
    (name != NONE).then_some(name)
}

/// How a scheduler runs: `in LowLatency mode`, or `with arguments "-f -s 5000"`.
pub(crate) fn how(mode: u32, args: &[String]) -> String {
    if !args.is_empty() {
        return format!("with arguments \"{}\"", args.join(" "));
    }
    match Mode::from_number(mode) {
        Some(mode) => format!("in {mode:?} mode"),
        None => format!("in mode {mode}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_existing_clients() {
        assert_eq!(title("scx_rusty"), "Rusty");
        assert_eq!(title("somebodys"), "Somebodys");
        assert_eq!(title(""), "");
        assert_eq!(how(3, &[]), "in LowLatency mode");
        assert_eq!(
            how(0, &["-s".into(), "5".into()]),
            "with arguments \"-s 5\""
        );
        assert_eq!(how(9, &[]), "in mode 9");
    }
}
