// SPDX-License-Identifier: GPL-2.0-only
//! Screens of recorded snapshots, of snapshots that are written by hand, and of snapshots that
//! cannot occur.

mod odd;

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use proptest::prelude::*;
use ratatui::backend::TestBackend;
use ratatui::layout::Size;
use ratatui::Terminal;

use super::screen;
use super::state::State;
use super::theme::Theme;
use super::views::View;
use crate::histogram::{Latency, BUCKETS};
use crate::model::{Cpu, Snapshot};

/// A machine with a scheduler: 8 CPUs, one of them offline, on 2 nodes.
pub(super) fn snapshot() -> Snapshot {
    serde_json::from_str(include_str!("testdata/snapshot.json")).unwrap()
}

/// The same machine without a scheduler, and without known frequencies.
pub(super) fn no_sched() -> Snapshot {
    serde_json::from_str(include_str!("testdata/no_sched.json")).unwrap()
}

/// What `scxtop top --json --tasks 24` printed in a guest with 2 nodes of 4 CPUs, where one CPU was
/// offline. For `sched`, scx_rusty scheduled hogs, sleepers, pipes and short commands. For `none`,
/// there was a similar but smaller load, and no sched_ext scheduler.
fn recorded() -> [(&'static str, Snapshot); 2] {
    [
        ("sched", include_str!("testdata/sched_recorded.json")),
        ("none", include_str!("testdata/none_recorded.json")),
    ]
    .map(|(name, text)| (name, serde_json::from_str(text).unwrap()))
}

pub(super) fn state(view: View, (width, height): (u16, u16)) -> State {
    let theme = Theme {
        is_coloured: true,
        is_unicode: true,
    };
    let mut state = State::new(Duration::from_secs(1), theme, Size { width, height });
    state.view = view;
    state
}

pub(super) fn press(state: &mut State, snapshot: &Snapshot, keys: &[KeyCode]) {
    for &key in keys {
        let event = KeyEvent::new(key, KeyModifiers::NONE);
        state.handle(Event::Key(event), snapshot);
    }
}

/// The screen's characters.
fn screen(snapshot: &Snapshot, state: &State) -> String {
    let backend = TestBackend::new(state.size.width, state.size.height);
    let mut terminal = Terminal::new(backend).unwrap();
    let draw = |frame: &mut ratatui::Frame<'_>| screen::draw(frame, snapshot, state);
    terminal.draw(draw).unwrap();
    terminal.backend().to_string()
}

/// 128 CPUs in 8 LLCs on 2 nodes.
fn large() -> Snapshot {
    let mut large = snapshot();
    let cpus = &large.cpus[..7];
    large.cpus = (0..128)
        .zip(cpus.iter().cycle())
        .map(|(id, cpu)| Cpu {
            id,
            core: id / 2,
            llc: id / 16,
            node: id / 64,
            ..cpu.clone()
        })
        .collect();
    large
}

#[test]
fn recorded_percentiles_are_those_of_the_buckets() {
    let recorded = recorded().map(|(_, snapshot)| snapshot);
    for snapshot in recorded.iter().chain(&[snapshot(), no_sched()]) {
        let tasks = snapshot.tasks.iter().map(|task| &task.wakeup);
        for latency in tasks.chain([&snapshot.wakeup]) {
            let mut counts = vec![0; BUCKETS];
            for &(index, count) in &latency.buckets {
                counts[usize::from(index)] = count;
            }
            assert_eq!(*latency, Latency::of(&counts));
        }
    }
}

#[test]
fn every_view_at_usual_sizes() {
    let made = [("made_sched", snapshot()), ("made_none", no_sched())];
    for (name, snapshot) in recorded().into_iter().chain(made) {
        for view in View::ALL {
            for size in [(80, 24), (120, 40)] {
                let name = format!("{name}_{view:?}_{}x{}", size.0, size.1).to_lowercase();
                assert_snapshot!(name, screen(&snapshot, &state(view, size)));
            }
        }
    }
}

#[test]
fn every_view_at_the_smallest_size() {
    let snapshot = snapshot();
    let all = View::ALL.map(|view| screen(&snapshot, &state(view, (40, 10))));
    assert_snapshot!(all.join("\n"));
}

#[test]
fn large_machine() {
    let large = large();
    assert_snapshot!(screen(&large, &state(View::Overview, (200, 50))));
    assert_snapshot!(screen(&large, &state(View::Overview, (80, 24))));
}

#[test]
fn small_terminal_is_refused() {
    assert_snapshot!(screen(&snapshot(), &state(View::Tasks, (39, 3))));
    assert_snapshot!(screen(&snapshot(), &state(View::Tasks, (60, 2))));
    assert_snapshot!(screen(&snapshot(), &state(View::Tasks, (10, 2))));
}

#[test]
fn help_lists_all_keys() {
    let snapshot = snapshot();
    for size in [(80, 24), (40, 10)] {
        let mut state = state(View::Tasks, size);
        press(&mut state, &snapshot, &[KeyCode::Char('?')]);
        assert_snapshot!(screen(&snapshot, &state));
    }
}

#[test]
fn filter_is_shown() {
    let snapshot = snapshot();
    let mut state = state(View::Tasks, (80, 24));
    press(
        &mut state,
        &snapshot,
        &["/", "R", "u"].map(|c| KeyCode::Char(c.chars().next().unwrap())),
    );
    assert_snapshot!("filter_typed", screen(&snapshot, &state));
    press(&mut state, &snapshot, &[KeyCode::Enter]);
    assert_snapshot!("filter_kept", screen(&snapshot, &state));
    press(
        &mut state,
        &snapshot,
        &[KeyCode::Char('/'), KeyCode::Char('x')],
    );
    assert_snapshot!("filter_without_match", screen(&snapshot, &state));
}

#[test]
fn details_of_a_task() {
    let snapshot = snapshot();
    for (size, steps) in [((80, 24), 5), ((120, 40), 2), ((40, 10), 2)] {
        let mut state = state(View::Tasks, size);
        press(&mut state, &snapshot, &vec![KeyCode::Down; steps]);
        press(&mut state, &snapshot, &[KeyCode::Enter]);
        assert_snapshot!(screen(&snapshot, &state));
    }
}

#[test]
fn ascii_and_other_states() {
    let snapshot = snapshot();
    let mut state = state(View::Overview, (80, 24));
    state.theme.is_unicode = false;
    state.is_paused = true;
    state.recording = Some("3 s, 12 MiB".into());
    let ascii = screen(&snapshot, &state);
    assert!(ascii.is_ascii());
    assert_snapshot!(ascii);
    state.message = Some("saved as trace.pftrace".into());
    state.view = View::Tasks;
    press(
        &mut state,
        &snapshot,
        &[KeyCode::Char('<'), KeyCode::Char('r')],
    );
    assert_snapshot!(screen(&snapshot, &state));
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("\x1b[31m\r\n\u{9b}2J\u{7f}".to_owned()),
        Just("木の下で眠る猫はとても幸せです".to_owned()),
        Just("a\u{301}\u{202e}\u{200d}👩‍👩‍👧‍👦🏳️‍🌈".to_owned()),
        any::<String>(),
    ]
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::MAX),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        0.0..100.0,
    ]
}

fn keys() -> impl Strategy<Value = Vec<KeyCode>> {
    let key = prop_oneof![
        Just(KeyCode::Enter),
        Just(KeyCode::End),
        Just(KeyCode::PageDown),
        Just(KeyCode::Char('?')),
        Just(KeyCode::Char('/')),
        Just(KeyCode::Char('>')),
        Just(KeyCode::Char('木')),
    ];
    prop::collection::vec(key, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn drawing_never_fails(
        size in (1..200_u16, 1..60_u16),
        name in names(),
        number in numbers(),
        cpus in prop_oneof![0..3_u32, 0..300_u32],
        keys in keys(),
        is_unicode: bool,
    ) {
        let odd = odd::snapshot(&name, number, cpus);
        for snapshot in [odd, Snapshot::default()] {
            for view in View::ALL {
                let mut state = state(view, size);
                state.theme.is_unicode = is_unicode;
                press(&mut state, &snapshot, &keys);
                let text = screen(&snapshot, &state);
                prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
                prop_assert!(!text.contains("NaN"));
            }
        }
    }
}

#[test]
fn recorded_machine_at_every_size() {
    let snapshot = snapshot();
    for width in (1..200).step_by(19) {
        for height in (1..60).step_by(3) {
            for view in View::ALL {
                let mut state = state(view, (width, height));
                state.has_detail = height % 2 == 0;
                screen(&snapshot, &state);
            }
        }
    }
}
