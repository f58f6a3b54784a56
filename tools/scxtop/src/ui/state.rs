// SPDX-License-Identifier: GPL-2.0-only
//! What is shown and how, and how input changes it.

use std::time::Duration;

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::{Position, Rect, Size};

use super::keys::{self, Command};
use super::screen;
use super::table::{self, Sort};
use super::theme::{self, Theme};
use super::views::{self, View};
use crate::model::Snapshot;

/// The intervals that keys choose from.
const INTERVALS_MS: [u64; 7] = [100, 200, 500, 1000, 2000, 5000, 10_000];
/// Rows per step of the mouse wheel.
const WHEEL: usize = 3;
/// Maximum length of a filter, characters.
const FILTER_MAX: usize = 64;

/// What identifies a row while its position changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Id {
    Number(u64),
    Name(String),
}

/// A row of the current view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Position in the snapshot's list; in the view of the topology, in its list of nodes and LLCs.
    pub index: usize,
    pub id: Id,
}

/// How the list of a view is shown: selection, scroll position, filter and sort order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct List {
    /// The selected row. If `None`, the row that is first at the time is selected.
    pub selected: Option<Id>,
    /// Position of the selected row when it was selected. It is used when the row has disappeared.
    position: usize,
    /// Position of the first row of the page when the selection was last moved or reset. The
    /// present position depends on the rows and the length of the page: see `top_in()`.
    top: usize,
    pub filter: String,
    pub sort: Option<Sort>,
}

impl List {
    /// Position of the selected row.
    pub(crate) fn selected_in(&self, rows: &[Row]) -> Option<usize> {
        let last = rows.len().checked_sub(1)?;
        let Some(id) = &self.selected else {
            return Some(0);
        };
        let found = rows.iter().position(|row| row.id == *id);
        Some(found.unwrap_or(self.position.min(last)))
    }

    /// Position of the first row of a page with `page` rows.
    pub(crate) fn top_in(&self, rows: &[Row], page: usize) -> usize {
        table::first_row(self.top, self.selected_in(rows), rows.len(), page)
    }
}

/// What the caller of [`State::handle`] has to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    None,
    Quit,
    SetInterval(Duration),
    ToggleTrace,
    /// Draw everything, because another program may have written to the terminal.
    Redraw,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub view: View,
    lists: [List; View::ALL.len()],
    /// Whether the filter is being typed.
    pub is_filtering: bool,
    /// Whether details of the selected task are shown.
    pub has_detail: bool,
    pub is_paused: bool,
    /// The first line of help that is shown; `None` if help is not shown.
    pub help: Option<u16>,
    pub theme: Theme,
    /// Shown until the next key, except [`Command::Redraw`], or the next message.
    pub message: Option<String>,
    /// Text for the status line while a trace is recorded.
    pub recording: Option<String>,
    pub interval: Duration,
    /// Size of the terminal.
    pub size: Size,
}

impl State {
    pub(crate) fn new(interval: Duration, theme: Theme, size: Size) -> Self {
        Self {
            view: View::Overview,
            lists: View::ALL.map(|view| List {
                sort: views::default_sort(view),
                ..List::default()
            }),
            is_filtering: false,
            has_detail: false,
            is_paused: false,
            help: None,
            theme,
            message: None,
            recording: None,
            interval,
            size,
        }
    }

    /// The list of the current view.
    pub(crate) fn list(&self) -> &List {
        &self.lists[self.view.index()]
    }

    fn list_mut(&mut self) -> &mut List {
        &mut self.lists[self.view.index()]
    }

    pub(crate) fn handle(&mut self, input: Event, snapshot: &Snapshot) -> Action {
        match input {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(&key, snapshot),
            Event::Mouse(mouse) => {
                self.mouse(mouse, snapshot);
                Action::None
            }
            Event::Resize(width, height) => {
                self.size = Size { width, height };
                Action::None
            }
            _ => Action::None,
        }
    }

    fn key(&mut self, key: &KeyEvent, snapshot: &Snapshot) -> Action {
        let command = keys::command(key);
        // Redrawing changes nothing else, not even the help or a message.
        if command == Some(Command::Redraw) {
            return Action::Redraw;
        }
        self.message = None;
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        if command == Some(Command::Quit) && is_ctrl {
            return Action::Quit;
        }
        if self.help.is_some() {
            self.key_in_help(command);
            return Action::None;
        }
        if self.is_filtering && self.key_in_filter(key) {
            return Action::None;
        }
        command.map_or(Action::None, |command| self.run(command, snapshot))
    }

    /// Keys scroll help or end it.
    fn key_in_help(&mut self, command: Option<Command>) {
        let at = self.help.unwrap_or(0);
        let last = screen::help_last(self.area());
        self.help = match command {
            Some(Command::Up) => Some(at.saturating_sub(1)),
            Some(Command::Down) => Some((at + 1).min(last)),
            Some(Command::PageUp | Command::First) => Some(0),
            Some(Command::PageDown | Command::Last) => Some(last),
            _ => None,
        };
    }

    /// Edits the filter. Returns whether the key belongs to the filter.
    fn key_in_filter(&mut self, key: &KeyEvent) -> bool {
        let has_modifier = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let filter = &mut self.list_mut().filter;
        match key.code {
            KeyCode::Char('u') if has_modifier => filter.clear(),
            KeyCode::Char(c) if !has_modifier && filter.chars().count() < FILTER_MAX => {
                filter.push(c);
            }
            KeyCode::Backspace => {
                filter.pop();
            }
            KeyCode::Enter => self.is_filtering = false,
            KeyCode::Esc => {
                filter.clear();
                self.is_filtering = false;
            }
            // These keys move the selection while the filter is typed.
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => return false,
            KeyCode::Home | KeyCode::End => return false,
            _ => {}
        }
        true
    }

    fn run(&mut self, command: Command, snapshot: &Snapshot) -> Action {
        match command {
            Command::Quit => return Action::Quit,
            Command::Redraw => return Action::Redraw,
            Command::Trace => return Action::ToggleTrace,
            Command::Longer | Command::Shorter => return self.step(command == Command::Longer),
            Command::Help => self.help = Some(0),
            Command::View(at) => self.show(at),
            Command::NextView => self.show(self.view.index() + 1),
            Command::PreviousView => self.show(self.view.index() + View::ALL.len() - 1),
            Command::Up => self.select(snapshot, |at, _| at.saturating_sub(1)),
            Command::Down => self.select(snapshot, |at, _| at + 1),
            Command::PageUp => self.select(snapshot, usize::saturating_sub),
            Command::PageDown => self.select(snapshot, |at, page| at + page),
            Command::First => self.select(snapshot, |_, _| 0),
            Command::Last => self.select(snapshot, |_, _| usize::MAX),
            Command::Detail => self.detail(snapshot),
            Command::Filter => self.filter(),
            Command::Back => self.back(),
            Command::NextSort => self.sort(true),
            Command::PreviousSort => self.sort(false),
            Command::Reverse => self.reverse(),
            Command::Pause => self.is_paused = !self.is_paused,
            Command::Theme => self.next_theme(),
        }
        Action::None
    }

    fn show(&mut self, at: usize) {
        self.is_filtering = false;
        self.view = View::ALL[at % View::ALL.len()];
    }

    /// Selects the row at the position that `to` returns for the present position and the length of
    /// a page.
    fn select(&mut self, snapshot: &Snapshot, to: impl Fn(usize, usize) -> usize) {
        let rows = views::rows(snapshot, self);
        let page = self.page(snapshot);
        let Some(at) = self.list().selected_in(&rows) else {
            return;
        };
        let at = to(at, page.max(1)).min(rows.len() - 1);
        let top = self.list().top_in(&rows, page);
        let list = self.list_mut();
        list.selected = Some(rows[at].id.clone());
        list.position = at;
        list.top = table::first_row(top, Some(at), rows.len(), page);
    }

    /// Shows or hides details of the selected task. When they are shown, the selection is fixed to
    /// this task.
    fn detail(&mut self, snapshot: &Snapshot) {
        if self.view != View::Tasks {
            self.message = Some("details are in the view Tasks".into());
            return;
        }
        self.has_detail = !self.has_detail;
        if self.has_detail {
            self.select(snapshot, |at, _| at);
        }
    }

    fn filter(&mut self) {
        if self.view.has_filter() {
            self.is_filtering = true;
        } else {
            self.message = Some("this view has no filter".into());
        }
    }

    fn back(&mut self) {
        if self.has_detail && self.view == View::Tasks {
            self.has_detail = false;
        } else if !self.list().filter.is_empty() {
            self.list_mut().filter.clear();
        } else {
            let list = self.list_mut();
            list.selected = None;
            list.top = 0;
        }
    }

    fn sort(&mut self, is_next: bool) {
        let columns = views::sortable(self.view);
        let Some(sort) = self.list().sort.filter(|_| !columns.is_empty()) else {
            self.message = Some("the order of this view is fixed".into());
            return;
        };
        let count = columns.len();
        let next = match columns.iter().position(|&column| column == sort.column) {
            Some(at) if is_next => (at + 1) % count,
            Some(at) => (at + count - 1) % count,
            None if is_next => 0,
            None => count - 1,
        };
        self.list_mut().sort = Some(Sort {
            column: columns[next],
            is_reversed: false,
        });
    }

    fn reverse(&mut self) {
        match &mut self.list_mut().sort {
            Some(sort) => sort.is_reversed = !sort.is_reversed,
            None => self.message = Some("the order of this view is fixed".into()),
        }
    }

    /// Changes to the next longer or shorter interval.
    fn step(&mut self, is_longer: bool) -> Action {
        let mut all = INTERVALS_MS.map(Duration::from_millis).into_iter();
        let next = if is_longer {
            all.find(|&next| next > self.interval)
        } else {
            all.rfind(|&next| next < self.interval)
        };
        let Some(next) = next else {
            let which = if is_longer { "longest" } else { "shortest" };
            self.message = Some(format!("this is the {which} interval"));
            return Action::None;
        };
        self.interval = next;
        Action::SetInterval(next)
    }

    fn next_theme(&mut self) {
        if theme::no_color() {
            self.message = Some("no colours, because NO_COLOR is set".into());
        } else {
            self.theme.is_coloured = !self.theme.is_coloured;
        }
    }

    fn mouse(&mut self, mouse: MouseEvent, snapshot: &Snapshot) {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.scroll(snapshot, false),
            MouseEventKind::ScrollDown => self.scroll(snapshot, true),
            MouseEventKind::Down(MouseButton::Left) if self.help.is_some() => self.help = None,
            MouseEventKind::Down(MouseButton::Left) => {
                self.click(Position::new(mouse.column, mouse.row), snapshot);
            }
            _ => {}
        }
    }

    fn scroll(&mut self, snapshot: &Snapshot, is_down: bool) {
        if self.help.is_some() {
            let command = if is_down { Command::Down } else { Command::Up };
            self.key_in_help(Some(command));
        } else if is_down {
            self.select(snapshot, |at, _| at + WHEEL);
        } else {
            self.select(snapshot, |at, _| at.saturating_sub(WHEEL));
        }
    }

    fn click(&mut self, at: Position, snapshot: &Snapshot) {
        let parts = screen::parts(self.area());
        if let Some(view) = screen::tab_at(parts.tabs, self.view, at) {
            self.show(view.index());
            return;
        }
        let table = self.table(snapshot);
        if !table.contains(at) || at.y == table.y {
            return;
        }
        let rows = views::rows(snapshot, self);
        let top = self.list().top_in(&rows, self.page(snapshot));
        let row = top + usize::from(at.y - table.y - 1);
        if row < rows.len() {
            self.select(snapshot, |_, _| row);
        }
    }

    fn area(&self) -> Rect {
        Rect::from(self.size)
    }

    /// The table of the current view.
    fn table(&self, snapshot: &Snapshot) -> Rect {
        let body = screen::parts(self.area()).body;
        views::split(snapshot, self, body).0
    }

    /// Number of rows of the table, without its header.
    fn page(&self, snapshot: &Snapshot) -> usize {
        self.table(snapshot).height.saturating_sub(1).into()
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
