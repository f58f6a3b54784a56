// SPDX-License-Identifier: GPL-2.0-only
//! The views.

mod dsqs;
mod events;
mod overview;
mod stats;
mod tasks;
mod topology;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::format;
use super::lines;
use super::state::{Row, State};
use super::table::{Column, Look, Order, Sort};
use super::theme::Part;
use crate::model::Snapshot;

/// Minimum height of a view's area that is split between a table and a second part below it. In a
/// lower area, the only second part is the details of a task.
const SPLIT_MIN: u16 = 14;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum View {
    Overview,
    Tasks,
    Dsqs,
    Topology,
    Events,
    Stats,
}

impl View {
    /// In the order of the tabs.
    pub(crate) const ALL: [Self; 6] = [
        Self::Overview,
        Self::Tasks,
        Self::Dsqs,
        Self::Topology,
        Self::Events,
        Self::Stats,
    ];

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Tasks => "Tasks",
            Self::Dsqs => "DSQs",
            Self::Topology => "Topology",
            Self::Events => "Events",
            Self::Stats => "Statistics",
        }
    }

    pub(crate) fn has_filter(self) -> bool {
        !matches!(self, Self::Overview | Self::Topology)
    }
}

/// The rows of the current view, filtered and sorted.
pub(crate) fn rows(snapshot: &Snapshot, state: &State) -> Vec<Row> {
    match state.view {
        View::Overview => Vec::new(),
        View::Tasks => tasks::rows(snapshot, state.list()),
        View::Dsqs => dsqs::rows(snapshot, state.list()),
        View::Topology => topology::rows(snapshot),
        View::Events => events::rows(snapshot, state.list()),
        View::Stats => stats::rows(snapshot, state.list()),
    }
}

/// Number of rows without the filter.
pub(crate) fn total(snapshot: &Snapshot, view: View) -> usize {
    match view {
        View::Overview => 0,
        View::Tasks => snapshot.tasks.len(),
        View::Dsqs => snapshot.dsqs.len(),
        View::Topology => snapshot.nodes.len() + snapshot.llcs.len(),
        View::Events => snapshot.events.len(),
        View::Stats => snapshot.stats.len(),
    }
}

/// The columns that the view can be sorted by.
pub(crate) fn sortable(view: View) -> Vec<usize> {
    match view {
        View::Tasks => positions(&tasks::COLUMNS),
        View::Dsqs => positions(&dsqs::COLUMNS),
        View::Events => positions(&events::COLUMNS),
        View::Overview | View::Topology | View::Stats => Vec::new(),
    }
}

fn positions<T>(columns: &[Column<T>]) -> Vec<usize> {
    let is_sortable = |column: &Column<T>| !matches!(column.order, Order::Fixed);
    (0..columns.len())
        .filter(|&at| is_sortable(&columns[at]))
        .collect()
}

pub(crate) fn default_sort(view: View) -> Option<Sort> {
    let column = match view {
        View::Tasks => tasks::COLUMNS
            .iter()
            .position(|column| column.title == "RUN%")?,
        View::Dsqs | View::Events => 0,
        View::Overview | View::Topology | View::Stats => return None,
    };
    Some(Sort {
        column,
        is_reversed: false,
    })
}

/// The table and the part below it; the table is empty if the view has no rows.
pub(crate) fn split(snapshot: &Snapshot, state: &State, body: Rect) -> (Rect, Rect) {
    let below = match state.view {
        View::Overview => body.height,
        View::Tasks if state.has_detail && body.height < SPLIT_MIN => body.height.saturating_sub(3),
        View::Tasks if state.has_detail => (body.height / 2).min(16),
        View::Dsqs if body.height >= SPLIT_MIN => (body.height / 2).min(14),
        View::Topology if body.height >= SPLIT_MIN => body.height / 2,
        _ => 0,
    };
    let mut rest = body;
    if empty(snapshot, state).is_some() {
        return (Rect { height: 0, ..body }, body);
    }
    let mut height = body.height - below;
    if matches!(state.view, View::Dsqs | View::Topology) {
        // Make the table no higher than its rows. In these views, the number of rows hardly
        // changes, so the part below the table does not jump.
        let rows = u16::try_from(total(snapshot, state.view)).unwrap_or(u16::MAX);
        height = height.min(rows.saturating_add(2));
    }
    let table = lines::take(&mut rest, height);
    (table, rest)
}

pub(crate) fn draw(buf: &mut Buffer, body: Rect, snapshot: &Snapshot, state: &State) {
    if state.view != View::Overview {
        if let Some(why) = empty(snapshot, state) {
            let line = Line::styled(why, state.theme.style(Part::Text));
            return lines::draw(buf, body, [line]);
        }
    }
    let (table, below) = split(snapshot, state, body);
    match state.view {
        View::Overview => overview::draw(buf, body, snapshot, state),
        View::Tasks => tasks::draw(buf, table, below, snapshot, state),
        View::Dsqs => dsqs::draw(buf, table, below, snapshot, state),
        View::Topology => topology::draw(buf, table, below, snapshot, state),
        View::Events => events::draw(buf, table, snapshot, state),
        View::Stats => stats::draw(buf, table, snapshot, state),
    }
}

/// Why the view has no rows, if it has none.
fn empty(snapshot: &Snapshot, state: &State) -> Option<String> {
    let needs_sched = matches!(state.view, View::Dsqs | View::Events | View::Stats);
    if needs_sched && snapshot.sched.name.is_none() {
        return Some("no sched_ext scheduler is running: the kernel's own schedules".into());
    }
    if total(snapshot, state.view) == 0 {
        let why = match state.view {
            View::Overview => return None,
            View::Tasks => "no task ran or waited",
            View::Dsqs => "no task was inserted into a DSQ",
            View::Topology => "the topology is not known",
            View::Events => "the kernel does not count events of sched_ext",
            View::Stats => "the scheduler has no statistics",
        };
        return Some(why.into());
    }
    let filter = &state.list().filter;
    if !filter.is_empty() && rows(snapshot, state).is_empty() {
        let filter = format::clean(filter);
        return Some(format!("nothing matches \"{filter}\""));
    }
    None
}

/// What a table shows besides its rows.
fn look(state: &State, rows: &[Row], table: Rect) -> Look {
    let page = table.height.saturating_sub(1).into();
    Look {
        theme: state.theme,
        sort: state.list().sort,
        selected: state.list().selected_in(rows),
        top: state.list().top_in(rows, page),
    }
}

/// Whether a name contains the filter, ignoring case.
fn matches(name: &str, filter: &str) -> bool {
    filter.is_empty() || name.to_lowercase().contains(&filter.to_lowercase())
}
