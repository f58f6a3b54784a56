// SPDX-License-Identifier: GPL-2.0-only
//! The tasks, and details of the selected task.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::format;
use super::super::histogram;
use super::super::lines;
use super::super::state::{Id, List, Row, State};
use super::super::table::{self, number, text, Column, Order};
use super::super::theme::{Part, Theme};
use crate::model::{Snapshot, Task};

/// The kernel's `prio` of a task with nice 0, and with nice -20. Lower values are those of
/// real-time and deadline tasks, for which no nice value is shown.
const PRIO_NICE_0: i32 = 120;
const PRIO_FAIR_MIN: i32 = 100;

pub(super) static COLUMNS: [Column<Task>; 20] = [
    number(
        "PID",
        7,
        0,
        |t| t.pid.to_string(),
        Order::Rising(|a, b| a.pid.cmp(&b.pid)),
    ),
    number(
        "TGID",
        7,
        18,
        |t| t.tgid.to_string(),
        Order::Rising(|a, b| a.tgid.cmp(&b.tgid)),
    ),
    text(
        "COMM",
        15,
        0,
        |t| t.comm.clone(),
        Order::Rising(|a, b| a.comm.cmp(&b.comm)),
    ),
    number(
        "CPU",
        4,
        2,
        |t| t.cpu.to_string(),
        Order::Rising(|a, b| a.cpu.cmp(&b.cpu)),
    ),
    text(
        "STATE",
        8,
        3,
        |t| t.state.clone(),
        Order::Rising(|a, b| a.state.cmp(&b.state)),
    ),
    text(
        "CLASS",
        5,
        5,
        |t| t.class.clone(),
        Order::Rising(|a, b| a.class.cmp(&b.class)),
    ),
    number(
        "PRI",
        4,
        17,
        |t| t.prio.to_string(),
        Order::Rising(|a, b| a.prio.cmp(&b.prio)),
    ),
    text("NI", 4, 9, nice, Order::Rising(|a, b| a.prio.cmp(&b.prio))),
    number(
        "RUN%",
        6,
        1,
        |t| format::percent(t.run_pct),
        Order::Falling(|a, b| a.run_pct.total_cmp(&b.run_pct)),
    ),
    number(
        "WAIT%",
        6,
        4,
        |t| format::percent(t.wait_pct),
        Order::Falling(|a, b| a.wait_pct.total_cmp(&b.wait_pct)),
    ),
    number(
        "SW/s",
        6,
        7,
        |t| format::scaled(t.switches),
        Order::Falling(|a, b| a.switches.total_cmp(&b.switches)),
    ),
    number(
        "WAKE/s",
        7,
        11,
        |t| format::scaled(t.wakeups),
        Order::Falling(|a, b| a.wakeups.total_cmp(&b.wakeups)),
    ),
    number(
        "MIG/s",
        6,
        8,
        |t| format::scaled(t.migrations),
        Order::Falling(|a, b| a.migrations.total_cmp(&b.migrations)),
    ),
    number(
        "P50",
        8,
        10,
        |t| format::latency(t.wakeup.p50_ns, t.wakeup.count),
        Order::Falling(|a, b| a.wakeup.p50_ns.cmp(&b.wakeup.p50_ns)),
    ),
    number(
        "P99",
        8,
        6,
        |t| format::latency(t.wakeup.p99_ns, t.wakeup.count),
        Order::Falling(|a, b| a.wakeup.p99_ns.cmp(&b.wakeup.p99_ns)),
    ),
    number(
        "WEIGHT",
        7,
        15,
        |t| of_ext(t, t.weight.to_string()),
        Order::Falling(|a, b| a.weight.cmp(&b.weight)),
    ),
    number(
        "SLICE",
        8,
        12,
        |t| of_ext(t, format::duration(t.slice_ns)),
        Order::Falling(|a, b| a.slice_ns.cmp(&b.slice_ns)),
    ),
    number(
        "VTIME",
        6,
        14,
        |t| of_ext(t, format::scaled_count(t.dsq_vtime)),
        Order::Rising(|a, b| a.dsq_vtime.cmp(&b.dsq_vtime)),
    ),
    text(
        "DSQ",
        8,
        13,
        |t| t.dsq.clone().unwrap_or_default(),
        Order::Rising(|a, b| a.dsq.cmp(&b.dsq)),
    ),
    number(
        "PRE/s",
        6,
        16,
        |t| format::scaled(t.preemptions),
        Order::Falling(|a, b| a.preemptions.total_cmp(&b.preemptions)),
    ),
];

/// A field that only tasks of sched_ext have.
fn of_ext(task: &Task, text: String) -> String {
    if task.class == "ext" {
        text
    } else {
        "-".into()
    }
}

/// The nice value, or the real-time priority as chrt shows it.
fn nice(task: &Task) -> String {
    if task.prio >= PRIO_FAIR_MIN {
        (i64::from(task.prio) - i64::from(PRIO_NICE_0)).to_string()
    } else if task.class == "rt" {
        format!("rt{}", i64::from(PRIO_FAIR_MIN) - 1 - i64::from(task.prio))
    } else {
        "-".into()
    }
}

pub(super) fn rows(snapshot: &Snapshot, list: &List) -> Vec<Row> {
    let tasks = &snapshot.tasks;
    let is_shown = |task: &Task| {
        super::matches(&task.comm, &list.filter) || task.pid.to_string().contains(&list.filter)
    };
    let mut rows: Vec<usize> = (0..tasks.len())
        .filter(|&at| is_shown(&tasks[at]))
        .collect();
    table::sort(&mut rows, tasks, &COLUMNS, list.sort);
    let row = |index: usize| Row {
        index,
        id: Id::Number(tasks[index].pid.into()),
    };
    rows.into_iter().map(row).collect()
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, below: Rect, snapshot: &Snapshot, state: &State) {
    let rows = rows(snapshot, state.list());
    let look = super::look(state, &rows, area);
    let tasks: Vec<&Task> = rows.iter().map(|row| &snapshot.tasks[row.index]).collect();
    table::draw(buf, area, &COLUMNS, &tasks, &look);
    if below.is_empty() {
        return;
    }
    match &state.list().selected {
        Some(Id::Number(pid)) => match tasks.iter().find(|task| u64::from(task.pid) == *pid) {
            Some(task) => detail(buf, below, task, state.theme),
            None => gone(buf, below, *pid, state.theme),
        },
        _ => {
            if let Some(task) = tasks.first() {
                detail(buf, below, task, state.theme);
            }
        }
    }
}

fn gone(buf: &mut Buffer, area: Rect, pid: u64, theme: Theme) {
    let text = format!("task {pid}: not shown, or did not run or wait");
    lines::draw(buf, area, [Line::styled(text, theme.style(Part::Title))]);
}

/// Details of a task.
fn detail(buf: &mut Buffer, mut area: Rect, task: &Task, theme: Theme) {
    let title = format!(
        " task {} {} of process {}: {}, {}, last on CPU {}",
        task.pid,
        format::clean(&task.comm),
        task.tgid,
        format::clean(&task.state),
        format::clean(&task.class),
        task.cpu,
    );
    let top = lines::take(&mut area, 1);
    lines::draw(buf, top, [Line::raw(title)]);
    buf.set_style(top, theme.style(Part::Header));
    let mut texts = vec![
        fields(
            theme,
            &[
                ("run", format::percent(task.run_pct) + " %"),
                ("wait", format::percent(task.wait_pct) + " %"),
                ("total run", format::duration(task.run_ns)),
                ("total wait", format::duration(task.wait_ns)),
            ],
        ),
        fields(
            theme,
            &[
                ("switches/s", format::scaled(task.switches)),
                ("preemptions/s", format::scaled(task.preemptions)),
                ("wakeups/s", format::scaled(task.wakeups)),
                ("migrations/s", format::scaled(task.migrations)),
            ],
        ),
    ];
    if task.class == "ext" {
        texts.push(fields(
            theme,
            &[
                ("weight", task.weight.to_string()),
                ("slice", format::duration(task.slice_ns)),
                ("vtime", format::grouped(task.dsq_vtime.into())),
                ("DSQ", format::clean(task.dsq.as_deref().unwrap_or("-"))),
                ("nice", nice(task)),
            ],
        ));
    } else {
        texts.push(fields(
            theme,
            &[("priority", task.prio.to_string()), ("nice", nice(task))],
        ));
    }
    texts.push(histogram::percentiles(
        "wakeup latency",
        &task.wakeup,
        theme,
    ));
    let used = u16::try_from(texts.len()).unwrap_or(u16::MAX);
    lines::draw(buf, lines::take(&mut area, used), texts);
    histogram::draw(buf, area, &task.wakeup, theme);
}

/// Names and values side by side.
fn fields(theme: Theme, fields: &[(&str, String)]) -> Line<'static> {
    let mut spans = Vec::new();
    for (name, value) in fields {
        spans.push(Span::styled(format!("{name} "), theme.style(Part::Faint)));
        spans.push(Span::raw(format!("{value}   ")));
    }
    Line::from(spans)
}
