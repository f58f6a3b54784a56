// SPDX-License-Identifier: GPL-2.0-only

use super::super::keys::BINDINGS;
use super::super::tests::{no_sched, press, snapshot, state};
use super::*;

const SIZE: (u16, u16) = (80, 24);

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> Event {
    Event::Mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    })
}

fn click(state: &mut State, snapshot: &Snapshot, column: u16, row: u16) {
    let event = mouse(MouseEventKind::Down(MouseButton::Left), column, row);
    assert_eq!(state.handle(event, snapshot), Action::None);
}

fn text(state: &mut State, snapshot: &Snapshot, text: &str) {
    let keys: Vec<_> = text.chars().map(KeyCode::Char).collect();
    press(state, snapshot, &keys);
}

/// The pid of the selected task.
fn selected(state: &State, snapshot: &Snapshot) -> u32 {
    let rows = views::rows(snapshot, state);
    let at = state.list().selected_in(&rows).unwrap();
    snapshot.tasks[rows[at].index].pid
}

#[test]
fn every_key_has_an_effect() {
    let snapshot = snapshot();
    let mut before = state(View::Tasks, (80, 10));
    press(&mut before, &snapshot, &[KeyCode::PageDown; 1]);
    for (key, command) in BINDINGS.iter().flat_map(|binding| binding.keys) {
        let mut after = before.clone();
        if *command == Command::View(View::Tasks.index()) {
            after.view = View::Stats;
        }
        let started = after.clone();
        let modifiers = if key.is_ctrl {
            KeyModifiers::CONTROL
        } else {
            KeyModifiers::NONE
        };
        let event = Event::Key(KeyEvent::new(key.code, modifiers));
        let action = after.handle(event, &snapshot);
        let expected = match command {
            Command::Quit => Action::Quit,
            Command::Redraw => Action::Redraw,
            Command::Trace => Action::ToggleTrace,
            Command::Longer => Action::SetInterval(Duration::from_secs(2)),
            Command::Shorter => Action::SetInterval(Duration::from_millis(500)),
            _ => Action::None,
        };
        assert_eq!(action, expected, "{command:?}");
        let is_changed = after != started;
        assert!(is_changed || action != Action::None, "{command:?}");
    }
}

#[test]
fn keys_that_are_not_in_the_table_do_nothing() {
    let snapshot = snapshot();
    let before = state(View::Tasks, SIZE);
    for code in [
        KeyCode::Char('k'),
        KeyCode::F(9),
        KeyCode::Insert,
        KeyCode::Null,
    ] {
        let mut after = before.clone();
        let event = Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(after.handle(event, &snapshot), Action::None);
        assert_eq!(after, before);
    }
    let mut after = before.clone();
    let release = KeyEvent::new_with_kind(
        KeyCode::Char('q'),
        KeyModifiers::NONE,
        KeyEventKind::Release,
    );
    assert_eq!(after.handle(Event::Key(release), &snapshot), Action::None);
    assert_eq!(after.handle(Event::FocusLost, &snapshot), Action::None);
    assert_eq!(after, before);
}

#[test]
fn views_follow_each_other() {
    let snapshot = snapshot();
    let mut state = state(View::Overview, SIZE);
    for view in [
        View::Tasks,
        View::Dsqs,
        View::Topology,
        View::Events,
        View::Stats,
        View::Overview,
    ] {
        press(&mut state, &snapshot, &[KeyCode::Tab]);
        assert_eq!(state.view, view);
    }
    press(&mut state, &snapshot, &[KeyCode::BackTab]);
    assert_eq!(state.view, View::Stats);
    text(&mut state, &snapshot, "3");
    assert_eq!(state.view, View::Dsqs);
}

#[test]
fn selection_stays_on_its_task() {
    let mut snapshot = snapshot();
    let mut state = state(View::Tasks, SIZE);
    assert_eq!(selected(&state, &snapshot), 4711);
    press(&mut state, &snapshot, &[KeyCode::Down, KeyCode::Down]);
    assert_eq!(selected(&state, &snapshot), 4713);
    snapshot.tasks.reverse();
    for task in &mut snapshot.tasks {
        task.run_pct = 100.0 - task.run_pct;
    }
    assert_eq!(selected(&state, &snapshot), 4713);
    press(&mut state, &snapshot, &[KeyCode::Up, KeyCode::Down]);
    assert_eq!(selected(&state, &snapshot), 4713);
    // While the task is absent, the row at its position is selected.
    let rows = views::rows(&snapshot, &state);
    let at = state.list().selected_in(&rows).unwrap();
    let absent = snapshot.tasks.remove(rows[at].index);
    let rows = views::rows(&snapshot, &state);
    assert_eq!(
        state.list().selected_in(&rows),
        Some(at.min(rows.len() - 1))
    );
    snapshot.tasks.push(absent);
    assert_eq!(selected(&state, &snapshot), 4713);
    press(&mut state, &snapshot, &[KeyCode::Esc]);
    assert_eq!(state.list().selected, None);
}

#[test]
fn ends_and_pages_are_limits() {
    let snapshot = snapshot();
    let mut state = state(View::Tasks, (80, 10));
    let at = |state: &State| {
        let rows = views::rows(&snapshot, state);
        let at = state.list().selected_in(&rows).unwrap();
        let top = state.list().top_in(&rows, 7);
        (at, top)
    };
    press(&mut state, &snapshot, &[KeyCode::Up]);
    assert_eq!(at(&state), (0, 0));
    press(&mut state, &snapshot, &[KeyCode::PageDown]);
    assert_eq!(at(&state), (7, 1));
    press(&mut state, &snapshot, &[KeyCode::End, KeyCode::Down]);
    assert_eq!(at(&state), (14, 8));
    press(&mut state, &snapshot, &[KeyCode::PageUp]);
    assert_eq!(at(&state), (7, 7));
    press(&mut state, &snapshot, &[KeyCode::Home]);
    assert_eq!(at(&state), (0, 0));
}

#[test]
fn empty_lists_have_no_selection() {
    let empty = Snapshot::default();
    for snapshot in [&empty, &no_sched()] {
        for view in [View::Overview, View::Dsqs, View::Events, View::Stats] {
            let mut state = state(view, SIZE);
            let keys = [
                KeyCode::Down,
                KeyCode::End,
                KeyCode::PageDown,
                KeyCode::Enter,
            ];
            press(&mut state, snapshot, &keys);
            click(&mut state, snapshot, 5, 5);
            assert_eq!(state.list().selected, None);
        }
    }
}

#[test]
fn filter_is_typed_kept_and_cleared() {
    let snapshot = snapshot();
    let mut state = state(View::Tasks, SIZE);
    text(&mut state, &snapshot, "/RUSTq");
    press(&mut state, &snapshot, &[KeyCode::Backspace, KeyCode::Enter]);
    assert!(!state.is_filtering);
    assert_eq!(state.list().filter, "RUST");
    assert_eq!(selected(&state, &snapshot), 4711);
    assert_eq!(views::rows(&snapshot, &state).len(), 1);
    // Each view has its own filter.
    text(&mut state, &snapshot, "6");
    assert_eq!(state.list().filter, "");
    text(&mut state, &snapshot, "2");
    press(&mut state, &snapshot, &[KeyCode::Esc]);
    assert_eq!(state.list().filter, "");
    // Filter by pid, then by a name that nothing matches. Esc while typing clears the filter.
    text(&mut state, &snapshot, "/221");
    assert_eq!(views::rows(&snapshot, &state).len(), 2);
    text(&mut state, &snapshot, "nobody");
    assert!(views::rows(&snapshot, &state).is_empty());
    press(&mut state, &snapshot, &[KeyCode::Down, KeyCode::End]);
    press(&mut state, &snapshot, &[KeyCode::Esc]);
    assert!(!state.is_filtering && state.list().filter.is_empty());
}

#[test]
fn filter_is_limited_and_leaves_ctrl_c() {
    let snapshot = snapshot();
    let mut state = state(View::Stats, SIZE);
    text(&mut state, &snapshot, "/");
    text(&mut state, &snapshot, &"x".repeat(1000));
    assert_eq!(state.list().filter.len(), FILTER_MAX);
    let ctrl = |c| Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    assert_eq!(state.handle(ctrl('u'), &snapshot), Action::None);
    assert_eq!(state.list().filter, "");
    assert_eq!(state.handle(ctrl('c'), &snapshot), Action::Quit);
}

#[test]
fn views_without_names_have_no_filter() {
    let snapshot = snapshot();
    for view in [View::Overview, View::Topology] {
        let mut state = state(view, SIZE);
        text(&mut state, &snapshot, "/");
        assert!(!state.is_filtering && state.message.is_some());
        text(&mut state, &snapshot, "t");
        assert_eq!(state.message, None);
    }
}

#[test]
fn sort_goes_round() {
    let snapshot = snapshot();
    let mut state = state(View::Tasks, SIZE);
    let first = state.list().sort;
    let count = views::sortable(View::Tasks).len();
    for _ in 0..count {
        text(&mut state, &snapshot, ">");
    }
    assert_eq!(state.list().sort, first);
    text(&mut state, &snapshot, "sS<s");
    assert_eq!(state.list().sort, first);
    text(&mut state, &snapshot, "r");
    assert_eq!(selected(&state, &snapshot), 1);
    let mut fixed = state.clone();
    text(&mut fixed, &snapshot, "4>");
    assert!(fixed.message.is_some());
}

#[test]
fn intervals_have_steps_and_limits() {
    let snapshot = snapshot();
    let mut state = state(View::Overview, SIZE);
    state.interval = Duration::from_millis(1500);
    text(&mut state, &snapshot, "-");
    assert_eq!(state.interval, Duration::from_secs(1));
    text(&mut state, &snapshot, "------");
    assert_eq!(state.interval, Duration::from_millis(100));
    assert!(state.message.is_some());
    state.interval = Duration::from_secs(3600);
    text(&mut state, &snapshot, "+");
    assert_eq!(state.interval, Duration::from_secs(3600));
    text(&mut state, &snapshot, "-");
    assert_eq!(state.interval, Duration::from_secs(10));
}

#[test]
fn help_scrolls_and_ends() {
    let snapshot = snapshot();
    let mut state = state(View::Tasks, (40, 10));
    text(&mut state, &snapshot, "?");
    press(&mut state, &snapshot, &[KeyCode::Up, KeyCode::Down]);
    assert_eq!(state.help, Some(1));
    press(&mut state, &snapshot, &[KeyCode::End, KeyCode::Down]);
    let last = screen::help_last(state.area());
    assert!(last > 1);
    assert_eq!(state.help, Some(last));
    let wheel = mouse(MouseEventKind::ScrollUp, 1, 1);
    state.handle(wheel, &snapshot);
    assert_eq!(state.help, Some(last - 1));
    text(&mut state, &snapshot, "q");
    assert_eq!(state.help, None);
    text(&mut state, &snapshot, "h");
    click(&mut state, &snapshot, 0, 5);
    assert_eq!(state.help, None);
}

#[test]
fn clicks_select_tabs_and_rows() {
    let snapshot = snapshot();
    let mut state = state(View::Overview, SIZE);
    click(&mut state, &snapshot, 14, 0);
    assert_eq!(state.view, View::Tasks);
    click(&mut state, &snapshot, 3, 4);
    assert_eq!(selected(&state, &snapshot), 4713);
    // Clicks on the header, below the last row, and beside the tabs have no effect.
    let before = state.clone();
    click(&mut state, &snapshot, 3, 1);
    click(&mut state, &snapshot, 3, 20);
    click(&mut state, &snapshot, 79, 0);
    assert_eq!(state, before);
    state.handle(mouse(MouseEventKind::ScrollDown, 3, 4), &snapshot);
    assert_eq!(selected(&state, &snapshot), 1873);
    state.handle(mouse(MouseEventKind::ScrollUp, 3, 4), &snapshot);
    assert_eq!(selected(&state, &snapshot), 4713);
    state.handle(mouse(MouseEventKind::Moved, 3, 4), &snapshot);
    assert_eq!(selected(&state, &snapshot), 4713);
}

#[test]
fn resize_keeps_the_selection_on_the_page() {
    let snapshot = snapshot();
    let mut state = state(View::Tasks, (80, 40));
    press(&mut state, &snapshot, &[KeyCode::End]);
    state.handle(Event::Resize(50, 10), &snapshot);
    assert_eq!(state.size, Size::new(50, 10));
    let rows = views::rows(&snapshot, &state);
    assert_eq!(state.list().top_in(&rows, state.page(&snapshot)), 8);
    click(&mut state, &snapshot, 3, 2);
    let at = state.list().selected_in(&rows);
    assert_eq!(at, Some(8));
}

#[test]
fn details_follow_the_selected_task() {
    let snapshot = snapshot();
    let mut state = state(View::Tasks, SIZE);
    press(&mut state, &snapshot, &[KeyCode::Enter]);
    assert!(state.has_detail);
    assert_eq!(state.list().selected, Some(Id::Number(4711)));
    press(&mut state, &snapshot, &[KeyCode::Esc]);
    assert!(!state.has_detail && state.list().selected.is_some());
    text(&mut state, &snapshot, "3");
    press(&mut state, &snapshot, &[KeyCode::Enter]);
    assert!(!state.has_detail && state.message.is_some());
}
