// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's events of sched_ext.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::format;
use super::super::state::{Id, List, Row, State};
use super::super::table::{self, number, text, Column, Order};
use crate::model::{Event, Snapshot};

pub(super) static COLUMNS: [Column<Event>; 3] = [
    // The default column to sort by. `Order::Fixed` leaves the events in the kernel's order.
    Column {
        growth: 17,
        ..text("EVENT", 27, 0, |e| e.name.clone(), Order::Fixed)
    },
    number(
        "TOTAL",
        18,
        2,
        |e| format::grouped(e.total.into()),
        Order::Falling(|a, b| a.total.cmp(&b.total)),
    ),
    number(
        "CHANGE",
        12,
        1,
        |e| format::grouped(e.delta.into()),
        Order::Falling(|a, b| a.delta.cmp(&b.delta)),
    ),
];

pub(super) fn rows(snapshot: &Snapshot, list: &List) -> Vec<Row> {
    let events = &snapshot.events;
    let is_shown = |at: &usize| super::matches(&events[*at].name, &list.filter);
    let mut rows: Vec<usize> = (0..events.len()).filter(is_shown).collect();
    table::sort(&mut rows, events, &COLUMNS, list.sort);
    let row = |index: usize| Row {
        index,
        id: Id::Name(events[index].name.clone()),
    };
    rows.into_iter().map(row).collect()
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &State) {
    let rows = rows(snapshot, state.list());
    let look = super::look(state, &rows, area);
    let events: Vec<&Event> = rows.iter().map(|row| &snapshot.events[row.index]).collect();
    table::draw(buf, area, &COLUMNS, &events, &look);
}
