// SPDX-License-Identifier: GPL-2.0-only
//! Colours and characters.

use std::env;

use ratatui::style::{Color, Modifier, Style};

/// What is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Text,
    /// Names of sections and fields.
    Title,
    /// The line above a table.
    Header,
    Selected,
    /// Axes, brackets, hints.
    Faint,
    /// Numbers that require attention, and notices.
    Warning,
    /// CPU time of real-time and deadline tasks.
    Rt,
    /// CPU time of tasks of sched_ext.
    Ext,
    /// CPU time of all other tasks.
    Other,
    /// Bars of histograms.
    Bar,
}

/// How parts look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Theme {
    pub is_coloured: bool,
    /// Whether characters other than ASCII may be drawn.
    pub is_unicode: bool,
}

impl Theme {
    /// The theme that suits the environment.
    pub(crate) fn from_env() -> Self {
        Self {
            is_coloured: !no_color(),
            is_unicode: is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(|name| env::var(name).ok())),
        }
    }

    /// Uses only the 16 colours of the terminal, and none of them for plain text, so that the
    /// screen can be read on light and on dark backgrounds.
    pub(crate) fn style(self, part: Part) -> Style {
        if !self.is_coloured {
            return Self::plain(part);
        }
        let style = Style::new();
        match part {
            Part::Text => style,
            Part::Title => style.add_modifier(Modifier::BOLD),
            Part::Header => style.fg(Color::Cyan).add_modifier(Modifier::REVERSED),
            Part::Selected => style.add_modifier(Modifier::REVERSED | Modifier::BOLD),
            Part::Faint => style.add_modifier(Modifier::DIM),
            Part::Warning => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            Part::Rt => style.fg(Color::Red),
            Part::Ext => style.fg(Color::Green),
            Part::Other => style.fg(Color::Cyan),
            Part::Bar => style.fg(Color::Green),
        }
    }

    fn plain(part: Part) -> Style {
        let style = Style::new();
        match part {
            Part::Text | Part::Faint | Part::Rt | Part::Ext | Part::Other | Part::Bar => style,
            Part::Title | Part::Warning => style.add_modifier(Modifier::BOLD),
            Part::Header => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Part::Selected => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// The character of a part of a load bar. Each part has its own: colours may be missing.
    pub(crate) fn fill(self, part: Part) -> &'static str {
        match (part, self.is_unicode) {
            (Part::Rt, true) => "▒",
            (Part::Ext, true) => "▓",
            (_, true) => "█",
            (Part::Rt, false) => "!",
            (Part::Ext, false) => "#",
            (_, false) => "=",
        }
    }

    /// The character of a cell that is filled from below, in eighths.
    pub(crate) fn level(self, eighths: u8) -> char {
        const UNICODE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '.', '.', '-', '-', '+', '+', '#', '#'];
        let levels = if self.is_unicode { UNICODE } else { ASCII };
        levels[usize::from(eighths.min(8))]
    }

    /// The mark of a sorted column; in ASCII, the sign that ps(1) uses.
    pub(crate) fn arrow(self, is_falling: bool) -> char {
        match (self.is_unicode, is_falling) {
            (true, true) => '▼',
            (true, false) => '▲',
            (false, true) => '-',
            (false, false) => '+',
        }
    }
}

/// Whether the user wants no colours (no-color.org). crossterm then drops colours too.
pub(crate) fn no_color() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Whether the first of the locale's variables that is set names UTF-8.
fn is_utf8(variables: [Option<String>; 3]) -> bool {
    let first = variables
        .into_iter()
        .flatten()
        .find(|name| !name.is_empty());
    let name = first.unwrap_or_default().to_ascii_lowercase();
    name.contains("utf-8") || name.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_decides_about_characters() {
        let of = |all: Option<&str>, lang: Option<&str>| {
            is_utf8([all.map(Into::into), None, lang.map(Into::into)])
        };
        assert!(of(None, Some("en_US.UTF-8")));
        assert!(of(Some("C.utf8"), Some("C")));
        assert!(!of(Some("C"), Some("en_US.UTF-8")));
        assert!(of(Some(""), Some("en_US.UTF-8")));
        assert!(!of(None, None));
    }

    #[test]
    fn parts_of_a_bar_differ_without_colours() {
        for is_unicode in [true, false] {
            let theme = Theme {
                is_coloured: false,
                is_unicode,
            };
            let fills = [Part::Rt, Part::Ext, Part::Other].map(|part| theme.fill(part));
            assert!(fills[0] != fills[1] && fills[1] != fills[2] && fills[0] != fills[2]);
            assert!(is_unicode || fills.concat().is_ascii() && theme.level(8).is_ascii());
        }
    }
}
