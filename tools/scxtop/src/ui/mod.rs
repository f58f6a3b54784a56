// SPDX-License-Identifier: GPL-2.0-only
//! The live views.
//!
//! `screen` draws a snapshot as `state` says, without side effects; `state` is changed by input,
//! according to the table of `keys`. `views` has a module for each view. Views consist of `table`,
//! `bars`, `histogram` and `lines`, and `format` and `theme` define the appearance. `trace_key`
//! records traces, `terminal` sets up the terminal, and the loop is here.

mod bars;
mod format;
mod histogram;
mod keys;
mod lines;
mod screen;
mod state;
mod table;
mod terminal;
mod theme;
mod trace_key;
mod views;

#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;
use scx_utils::bpf::Slot;
use scx_utils::runner::Shutdown;

use crate::collect::Collector;
use crate::model::Snapshot;
use crate::opts::LiveOpts;
use state::{Action, State};
use terminal::Terminal;
use theme::Theme;
use trace_key::TraceKey;

/// Length of the first interval: short, so that the screen fills soon.
const FIRST: Duration = Duration::from_millis(200);
/// Longest wait, so that a signal to end the program is noticed soon.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// Interval at which the records of a trace are read.
const POLL: Duration = Duration::from_millis(20);
/// Size of the rings for the records of a trace, bytes.
const RING_BYTES: u32 = 16 << 20;
/// Maximum number of inputs that are handled before the screen is drawn, because a terminal may
/// send them faster than they are handled.
const INPUTS_MAX: usize = 100;

/// Shows the views until the user or a signal ends the program, or the terminal is gone.
pub(crate) fn run(opts: &LiveOpts) -> Result<()> {
    terminal::check()?;
    let (shutdown, _trigger) = Shutdown::on_signals()?;
    let mut slot = Slot::uninit();
    let mut collector = Collector::start(&opts.stats_socket, RING_BYTES, &mut slot)?;
    // The first snapshot has no rates.
    collector.snapshot(FIRST)?;
    if collector.wait(FIRST, |time| shutdown.wait(time))? {
        return Ok(());
    }
    let snapshot = collector.snapshot(opts.interval)?;
    let terminal = Terminal::enter()?;
    let mut live = Live {
        state: State::new(opts.interval, Theme::from_env(), terminal.size()?),
        collector,
        snapshot,
        taken: Instant::now(),
        trace: TraceKey::new(opts),
        terminal,
    };
    let result = live.run(|| shutdown.requested());
    // A trace that is being recorded or written is completed.
    if live.trace.is_recording() {
        let programs = live.collector.programs();
        live.trace.toggle(programs, &mut live.state);
    }
    let Live {
        terminal, trace, ..
    } = live;
    drop(terminal);
    if let Some(message) = trace.finish() {
        // If standard error is closed, the message is lost.
        let _ = writeln!(io::stderr(), "scxtop: {message}");
    }
    result
}

struct Live<'obj> {
    terminal: Terminal,
    collector: Collector<'obj>,
    /// What is shown.
    snapshot: Snapshot,
    /// When the last snapshot was taken, even if it is not shown because of a pause.
    taken: Instant,
    state: State,
    trace: TraceKey,
}

impl Live<'_> {
    fn run(&mut self, is_over: impl Fn() -> bool) -> Result<()> {
        let mut is_changed = true;
        let mut has_more = false;
        while !is_over() {
            if is_changed {
                self.draw()?;
            }
            let rest = self.state.interval.saturating_sub(self.taken.elapsed());
            let at_most = if has_more {
                Duration::ZERO
            } else if self.trace.is_recording() {
                rest.min(POLL)
            } else {
                rest.min(LONGEST_WAIT)
            };
            if !terminal::wait(at_most.min(self.collector.step_in())) {
                return Ok(());
            }
            self.collector.step()?;
            let programs = self.collector.programs();
            is_changed = self.trace.update(programs, &mut self.state);
            let mut inputs = 0;
            while inputs < INPUTS_MAX {
                let Some(input) = terminal::input()? else {
                    break;
                };
                let action = self.state.handle(input, &self.snapshot);
                if action == Action::Quit {
                    return Ok(());
                }
                self.act(action)?;
                inputs += 1;
            }
            has_more = inputs == INPUTS_MAX;
            is_changed |= inputs > 0;
            is_changed |= self.refresh()?;
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<()> {
        // The state needs the size of the frame that is drawn now. The input of a resize may not
        // have been read yet.
        self.state.size = self.terminal.size()?;
        let (snapshot, state) = (&self.snapshot, &self.state);
        self.terminal
            .draw(|frame| screen::draw(frame, snapshot, state))
    }

    fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::ToggleTrace => {
                let programs = self.collector.programs();
                self.trace.toggle(programs, &mut self.state);
            }
            Action::Redraw => self.terminal.clear()?,
            // The interval is read from the state.
            Action::SetInterval(_) | Action::None | Action::Quit => {}
        }
        Ok(())
    }

    /// Takes a snapshot if it is due. Returns whether it is shown. Snapshots are taken during a
    /// pause too, so that rates are right afterwards.
    fn refresh(&mut self) -> Result<bool> {
        if self.taken.elapsed() < self.state.interval {
            return Ok(false);
        }
        let snapshot = self.collector.snapshot(self.state.interval)?;
        self.taken = Instant::now();
        if self.state.is_paused {
            return Ok(false);
        }
        self.snapshot = snapshot;
        Ok(true)
    }
}
