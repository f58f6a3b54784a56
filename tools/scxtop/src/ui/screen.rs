// SPDX-License-Identifier: GPL-2.0-only
//! The screen: tabs, the current view or help, status.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::Frame;

use super::format;
use super::keys;
use super::lines;
use super::state::State;
use super::theme::{Part, Theme};
use super::views::{self, View};
use crate::model::Snapshot;

/// The smallest terminal with room for a view.
const WIDTH_MIN: u16 = 40;
const HEIGHT_MIN: u16 = 10;
/// Width of the keys' names in help, with two spaces.
const NAMES_WIDTH: usize = 15;

pub(crate) struct Parts {
    pub tabs: Rect,
    pub body: Rect,
    pub status: Rect,
}

pub(crate) fn parts(area: Rect) -> Parts {
    let mut body = area;
    let tabs = lines::take(&mut body, 1);
    body.height = body.height.saturating_sub(1);
    let status = Rect {
        y: body.bottom(),
        height: area.height.saturating_sub(1).min(1),
        ..area
    };
    Parts { tabs, body, status }
}

/// Draws the snapshot.
pub(crate) fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, state: &State) {
    let area = frame.area();
    let buf = frame.buffer_mut();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = format!("terminal too small: {WIDTH_MIN} x {HEIGHT_MIN} needed");
        return lines::draw(buf, area, [Line::raw(text)]);
    }
    let parts = parts(area);
    draw_tabs(buf, parts.tabs, snapshot, state);
    match state.help {
        Some(first) => draw_help(buf, parts.body, first, state.theme),
        None => views::draw(buf, parts.body, snapshot, state),
    }
    draw_status(buf, parts.status, snapshot, state);
}

/// Tabs from left to right. If not all names fit, only the current tab has a name.
fn tabs(width: u16, current: View) -> impl Iterator<Item = (View, String)> {
    let name = |view: View| format!(" {} {} ", view.index() + 1, view.title());
    let total: usize = View::ALL.iter().map(|&view| name(view).len()).sum();
    let is_full = total <= width.into();
    View::ALL.into_iter().map(move |view| {
        if is_full || view == current {
            (view, name(view))
        } else {
            (view, format!(" {} ", view.index() + 1))
        }
    })
}

/// The tab at a position.
pub(crate) fn tab_at(area: Rect, current: View, at: Position) -> Option<View> {
    if !area.contains(at) {
        return None;
    }
    let mut end = usize::from(area.x);
    for (view, name) in tabs(area.width, current) {
        end += name.len();
        if usize::from(at.x) < end {
            return Some(view);
        }
    }
    None
}

fn draw_tabs(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &State) {
    let spans = tabs(area.width, state.view).map(|(view, name)| {
        let part = if view == state.view {
            Part::Selected
        } else {
            Part::Text
        };
        Span::styled(name, state.theme.style(part))
    });
    let line: Line<'_> = spans.collect();
    let name = snapshot
        .sched
        .name
        .as_deref()
        .map_or("scxtop".into(), format::clean);
    sides(buf, area, &line, &Line::raw(name));
}

/// Two lines side by side. The right line is left out if there is no room.
fn sides(buf: &mut Buffer, area: Rect, left: &Line<'_>, right: &Line<'_>) {
    let (end, _) = buf.set_line(area.x, area.y, left, area.width);
    let width = u16::try_from(right.width()).unwrap_or(u16::MAX);
    if width < area.right().saturating_sub(end) {
        buf.set_line(area.right() - width, area.y, right, width);
    }
}

fn draw_status(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &State) {
    let mut spans = Vec::new();
    if let Some(recording) = &state.recording {
        let text = format!("recording {}  ", format::clean(recording));
        spans.push(Span::styled(text, state.theme.style(Part::Warning)));
    }
    let filter = format::clean(&state.list().filter);
    if let Some(message) = &state.message {
        let message = format::clean(message);
        spans.push(Span::styled(message, state.theme.style(Part::Title)));
    } else if state.is_filtering {
        spans.push(Span::styled("filter: ", state.theme.style(Part::Title)));
        spans.push(Span::raw(format!("{filter}_")));
    } else {
        if state.is_paused {
            spans.push(Span::styled("paused  ", state.theme.style(Part::Warning)));
        }
        spans.push(Span::raw(format!(
            "every {} s",
            state.interval.as_secs_f64()
        )));
        let total = views::total(snapshot, state.view);
        if !filter.is_empty() {
            let shown = views::rows(snapshot, state).len();
            spans.push(Span::raw(format!(
                "  filter \"{filter}\": {shown} of {total}"
            )));
        } else if total > 0 {
            spans.push(Span::raw(format!("  {total} rows")));
        }
    }
    let hint = if state.is_filtering {
        "Enter keep  Esc clear"
    } else {
        "? help  q quit"
    };
    let hint = Line::styled(hint, state.theme.style(Part::Faint));
    sides(buf, area, &Line::from(spans), &hint);
}

/// The lines of help: all keys, and notes.
fn help(width: u16, theme: Theme) -> Vec<Line<'static>> {
    let keys = keys::BINDINGS.iter().map(|b| (b.names(), b.help));
    let notes = keys::NOTES
        .iter()
        .map(|&(name, help)| (name.to_owned(), help));
    let room = usize::from(width).saturating_sub(NAMES_WIDTH);
    let mut lines = Vec::new();
    for (name, help) in keys.chain(notes) {
        let mut name = name;
        for part in wrapped(help, room) {
            let name = format!("{:<NAMES_WIDTH$}", std::mem::take(&mut name));
            let name = Span::styled(name, theme.style(Part::Title));
            lines.push(Line::from(vec![name, Span::raw(part)]));
        }
    }
    lines
}

/// Lines of at most `width` columns, if no word is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The first line on the last page of help.
pub(crate) fn help_last(area: Rect) -> u16 {
    let count = help(
        area.width,
        Theme {
            is_coloured: false,
            is_unicode: false,
        },
    )
    .len();
    let page = parts(area).body.height.saturating_sub(1);
    u16::try_from(count)
        .unwrap_or(u16::MAX)
        .saturating_sub(page)
}

fn draw_help(buf: &mut Buffer, mut area: Rect, first: u16, theme: Theme) {
    let title = lines::take(&mut area, 1);
    lines::draw(
        buf,
        title,
        [Line::raw("Keys (any other key: back to the view)")],
    );
    buf.set_style(title, theme.style(Part::Header));
    let lines = help(area.width, theme);
    // The terminal may have grown since `first` was set by a key.
    let last = lines.len().saturating_sub(area.height.into());
    lines::draw(buf, area, lines.into_iter().skip(last.min(first.into())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_are_where_they_are_drawn() {
        let area = Rect::new(0, 0, 80, 1);
        let at = |x, y| tab_at(area, View::Overview, Position::new(x, y));
        assert_eq!(at(0, 0), Some(View::Overview));
        assert_eq!(at(11, 0), Some(View::Overview));
        assert_eq!(at(12, 0), Some(View::Tasks));
        assert_eq!(at(64, 0), Some(View::Stats));
        assert_eq!(at(65, 0), None);
        assert_eq!(at(0, 1), None);
        let narrow = Rect::new(0, 0, 40, 1);
        let at = |x| tab_at(narrow, View::Tasks, Position::new(x, 0));
        assert_eq!(
            [at(2), at(3), at(11), at(12)],
            [View::Overview, View::Tasks, View::Tasks, View::Dsqs].map(Some)
        );
    }

    #[test]
    fn words_are_wrapped() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two", 2), ["one", "two"]);
    }
}
