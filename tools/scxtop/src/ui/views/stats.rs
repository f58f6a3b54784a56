// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own statistics.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value;

use super::super::format;
use super::super::state::{Id, List, Row, State};
use super::super::table::{self, number, text, Column, Order};
use crate::model::Snapshot;

type Stat = (String, Value);

static COLUMNS: [Column<Stat>; 2] = [
    Column {
        growth: 26,
        ..text("NAME", 24, 0, |stat| stat.0.clone(), Order::Fixed)
    },
    Column {
        growth: 20,
        ..number("VALUE", 15, 0, |stat| format::value(&stat.1), Order::Fixed)
    },
];

pub(super) fn rows(snapshot: &Snapshot, list: &List) -> Vec<Row> {
    let stats = snapshot.stats.iter().enumerate();
    stats
        .filter(|(_, (name, _))| super::matches(name, &list.filter))
        .map(|(index, (name, _))| Row {
            index,
            id: Id::Name(name.clone()),
        })
        .collect()
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, state: &State) {
    let rows = rows(snapshot, state.list());
    let look = super::look(state, &rows, area);
    let stats: Vec<&Stat> = rows.iter().map(|row| &snapshot.stats[row.index]).collect();
    table::draw(buf, area, &COLUMNS, &stats, &look);
}
