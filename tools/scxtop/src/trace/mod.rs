// SPDX-License-Identifier: GPL-2.0-only
//! Records traces for Perfetto.
//!
//! `session` is the command. `gathering` fills a `recording` with what `collect` delivers, and
//! `output` is the file. Records wait in `window` until `contents` writes them as events of ftrace
//! (`sched`), as arrows from wakers to wakees (`flows`, `wakeups`), as stays in DSQs (`dsqs`), and
//! as the load of CPUs (`busy`). The values of `samples` become counter tracks (`counters`).
//! `machine` and `names` describe the machine and the tasks. `tracks` builds tracks and their
//! events from `proto`, the messages of the format.

mod busy;
mod contents;
mod counters;
mod dsqs;
mod event;
mod flows;
mod gathering;
mod machine;
mod names;
mod output;
mod proto;
mod recording;
mod samples;
mod sched;
mod session;
mod tracks;
mod wakeups;
mod window;

#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;

pub(crate) use gathering::Gathering;
pub(crate) use output::Output;
pub(crate) use recording::Limits;
pub(crate) use session::run;
