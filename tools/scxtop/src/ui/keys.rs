// SPDX-License-Identifier: GPL-2.0-only
//! The keys: one table for handling and for help.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    Quit,
    Help,
    /// Shows the view at this position.
    View(usize),
    NextView,
    PreviousView,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Detail,
    Filter,
    Back,
    NextSort,
    PreviousSort,
    Reverse,
    Pause,
    Longer,
    Shorter,
    Trace,
    Theme,
    Redraw,
}

/// A key, together with Ctrl if `is_ctrl`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub code: KeyCode,
    pub is_ctrl: bool,
}

/// Keys that belong together.
pub(crate) struct Binding {
    pub help: &'static str,
    pub keys: &'static [(Key, Command)],
}

const fn key(code: KeyCode) -> Key {
    Key {
        code,
        is_ctrl: false,
    }
}

const fn char(c: char) -> Key {
    key(KeyCode::Char(c))
}

const fn ctrl(c: char) -> Key {
    Key {
        code: KeyCode::Char(c),
        is_ctrl: true,
    }
}

pub(crate) const BINDINGS: [Binding; 16] = [
    Binding {
        help: "quit",
        keys: &[(char('q'), Command::Quit), (ctrl('c'), Command::Quit)],
    },
    Binding {
        help: "this help",
        keys: &[
            (char('?'), Command::Help),
            (char('h'), Command::Help),
            (key(KeyCode::F(1)), Command::Help),
        ],
    },
    Binding {
        help: "show a view",
        keys: &[
            (char('1'), Command::View(0)),
            (char('2'), Command::View(1)),
            (char('3'), Command::View(2)),
            (char('4'), Command::View(3)),
            (char('5'), Command::View(4)),
            (char('6'), Command::View(5)),
        ],
    },
    Binding {
        help: "next, previous view",
        keys: &[
            (key(KeyCode::Tab), Command::NextView),
            (key(KeyCode::BackTab), Command::PreviousView),
        ],
    },
    Binding {
        help: "select a row",
        keys: &[
            (key(KeyCode::Up), Command::Up),
            (key(KeyCode::Down), Command::Down),
        ],
    },
    Binding {
        help: "a page up, down",
        keys: &[
            (key(KeyCode::PageUp), Command::PageUp),
            (key(KeyCode::PageDown), Command::PageDown),
        ],
    },
    Binding {
        help: "first, last row",
        keys: &[
            (key(KeyCode::Home), Command::First),
            (key(KeyCode::End), Command::Last),
        ],
    },
    Binding {
        help: "details of the selected task, in Tasks",
        keys: &[(key(KeyCode::Enter), Command::Detail)],
    },
    Binding {
        help: "filter by name or pid",
        keys: &[(char('/'), Command::Filter)],
    },
    Binding {
        help: "end details, then filter, then selection",
        keys: &[(key(KeyCode::Esc), Command::Back)],
    },
    Binding {
        help: "sort by the next, previous column; reverse",
        keys: &[
            (char('>'), Command::NextSort),
            (char('s'), Command::NextSort),
            (char('<'), Command::PreviousSort),
            (char('S'), Command::PreviousSort),
            (char('r'), Command::Reverse),
        ],
    },
    Binding {
        help: "pause, go on",
        keys: &[(char(' '), Command::Pause)],
    },
    Binding {
        help: "longer, shorter interval",
        keys: &[(char('+'), Command::Longer), (char('-'), Command::Shorter)],
    },
    Binding {
        help: "start, stop a trace",
        keys: &[(char('a'), Command::Trace)],
    },
    Binding {
        help: "colours or none",
        keys: &[(char('t'), Command::Theme)],
    },
    Binding {
        help: "draw the screen anew",
        keys: &[(ctrl('l'), Command::Redraw)],
    },
];

/// Explanations of the mouse and of names in the views, for help.
pub(crate) const NOTES: [(&str, &str); 5] = [
    ("click, wheel", "select a view or a row, scroll"),
    ("Shift-drag", "select text, in most terminals"),
    ("N L", "node, last-level cache"),
    ("SW MIG PRE", "context switches, migrations, preemptions"),
    ("P50 P99", "percentiles of the latency of wakeups"),
];

/// The command of a key.
pub(crate) fn command(event: &KeyEvent) -> Option<Command> {
    // Ignore Shift: the code includes it, as another character, or as BackTab.
    let modifiers = event.modifiers - KeyModifiers::SHIFT;
    let is_ctrl = modifiers == KeyModifiers::CONTROL;
    if !is_ctrl && !modifiers.is_empty() {
        return None;
    }
    BINDINGS
        .iter()
        .flat_map(|binding| binding.keys)
        .find(|(key, _)| key.code == event.code && key.is_ctrl == is_ctrl)
        .map(|&(_, command)| command)
}

impl Binding {
    /// The names of the keys.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|(key, _)| key.name()).collect();
        names.join(" ")
    }
}

impl Key {
    fn name(&self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) if self.is_ctrl => c.to_ascii_uppercase().to_string(),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::F(number) => format!("F{number}"),
            KeyCode::BackTab => "Shift-Tab".to_owned(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            code => format!("{code:?}"),
        };
        if self.is_ctrl {
            format!("Ctrl-{name}")
        } else {
            name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique() {
        let keys = || BINDINGS.iter().flat_map(|binding| binding.keys);
        for (key, wanted) in keys() {
            let modifiers = if key.is_ctrl {
                KeyModifiers::CONTROL
            } else {
                KeyModifiers::NONE
            };
            let event = KeyEvent::new(key.code, modifiers);
            assert_eq!(command(&event), Some(*wanted), "{}", key.name());
        }
    }

    #[test]
    fn shift_does_not_matter_and_other_modifiers_do() {
        let of = |code, modifiers| command(&KeyEvent::new(code, modifiers));
        let shift = KeyModifiers::SHIFT;
        assert_eq!(of(KeyCode::Char('S'), shift), Some(Command::PreviousSort));
        assert_eq!(of(KeyCode::BackTab, shift), Some(Command::PreviousView));
        assert_eq!(of(KeyCode::Char('q'), KeyModifiers::ALT), None);
        assert_eq!(of(KeyCode::Char('q'), KeyModifiers::CONTROL), None);
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::NONE), None);
    }

    #[test]
    fn names_are_those_on_the_keys() {
        let names: Vec<_> = BINDINGS.iter().map(Binding::names).collect();
        assert_eq!(names[0], "q Ctrl-C");
        assert_eq!(names[3], "Tab Shift-Tab");
        assert!(names.contains(&"PgUp PgDn".to_owned()));
        assert!(names.contains(&"Space".to_owned()));
    }
}
