// SPDX-License-Identifier: GPL-2.0-only
//! The dispatch queues, and the latencies of the selected queue.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::format;
use super::super::histogram;
use super::super::lines;
use super::super::state::{Id, List, Row, State};
use super::super::table::{self, number, text, Column, Order};
use crate::model::{Dsq, Snapshot};

/// Maximum height of the histogram.
const HISTOGRAM_MAX: u16 = 14;

pub(super) static COLUMNS: [Column<Dsq>; 7] = [
    Column {
        growth: 8,
        ..text(
            "NAME",
            18,
            0,
            |d| d.name.clone(),
            Order::Rising(|a, b| a.id.cmp(&b.id)),
        )
    },
    number(
        "DEPTH",
        7,
        1,
        depth,
        Order::Falling(|a, b| a.depth.cmp(&b.depth)),
    ),
    number(
        "INSERTS/s",
        10,
        2,
        |d| format::scaled(d.inserts),
        Order::Falling(|a, b| a.inserts.total_cmp(&b.inserts)),
    ),
    number(
        "P50",
        9,
        4,
        |d| format::latency(d.latency.p50_ns, d.latency.count),
        Order::Falling(|a, b| a.latency.p50_ns.cmp(&b.latency.p50_ns)),
    ),
    number(
        "P99",
        9,
        3,
        |d| format::latency(d.latency.p99_ns, d.latency.count),
        Order::Falling(|a, b| a.latency.p99_ns.cmp(&b.latency.p99_ns)),
    ),
    number(
        "MAX",
        9,
        5,
        |d| format::latency(d.latency.max_ns, d.latency.count),
        Order::Falling(|a, b| a.latency.max_ns.cmp(&b.latency.max_ns)),
    ),
    number(
        "VTIME-SPREAD",
        12,
        6,
        spread,
        Order::Falling(|a, b| a.vtime_spread.cmp(&b.vtime_spread)),
    ),
];

/// The number of tasks in the queue; `-` if it is unknown.
pub(super) fn depth(dsq: &Dsq) -> String {
    dsq.depth
        .map_or("-".into(), |depth| format::scaled(depth.into()))
}

fn spread(dsq: &Dsq) -> String {
    dsq.vtime_spread.map_or("-".into(), format::scaled_count)
}

pub(super) fn rows(snapshot: &Snapshot, list: &List) -> Vec<Row> {
    let dsqs = &snapshot.dsqs;
    let is_shown = |at: &usize| super::matches(&dsqs[*at].name, &list.filter);
    let mut rows: Vec<usize> = (0..dsqs.len()).filter(is_shown).collect();
    table::sort(&mut rows, dsqs, &COLUMNS, list.sort);
    let row = |index: usize| Row {
        index,
        id: Id::Number(dsqs[index].id),
    };
    rows.into_iter().map(row).collect()
}

pub(super) fn draw(
    buf: &mut Buffer,
    area: Rect,
    mut below: Rect,
    snapshot: &Snapshot,
    state: &State,
) {
    let rows = rows(snapshot, state.list());
    let look = super::look(state, &rows, area);
    let dsqs: Vec<&Dsq> = rows.iter().map(|row| &snapshot.dsqs[row.index]).collect();
    table::draw(buf, area, &COLUMNS, &dsqs, &look);
    let Some(dsq) = look.selected.and_then(|at| dsqs.get(at)) else {
        return;
    };
    let name = format!("latency of {}", format::clean(&dsq.name));
    let line = histogram::percentiles(&name, &dsq.latency, state.theme);
    lines::draw(buf, lines::take(&mut below, 1), [line]);
    let area = lines::take(&mut below, HISTOGRAM_MAX);
    histogram::draw(buf, area, &dsq.latency, state.theme);
}
