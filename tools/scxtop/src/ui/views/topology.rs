// SPDX-License-Identifier: GPL-2.0-only
//! Nodes and last-level caches, and the CPUs of the selected group.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::bars::{self, Section};
use super::super::format;
use super::super::lines;
use super::super::state::{Id, Row, State};
use super::super::table::{self, number, text, Column, Look, Order};
use super::super::theme::Part;
use crate::model::{Cpu, Group, Snapshot};

/// Added to the id of an LLC, so that rows of LLCs and nodes differ.
const OF_LLC: u64 = 1 << 32;

/// A node, or an LLC.
struct Item<'a> {
    group: &'a Group,
    is_llc: bool,
}

impl Item<'_> {
    fn name(&self) -> String {
        if self.is_llc {
            format!("  LLC {}", self.group.id)
        } else {
            format!("node {}", self.group.id)
        }
    }
}

const fn columns<'a>() -> [Column<Item<'a>>; 10] {
    [
        text("GROUP", 11, 0, |i| i.name(), Order::Fixed),
        number(
            "CPUS",
            5,
            4,
            |i| i.group.cpus.len().to_string(),
            Order::Fixed,
        ),
        number(
            "BUSY%",
            6,
            1,
            |i| format::percent(i.group.busy_pct),
            Order::Fixed,
        ),
        number(
            "MIN%",
            6,
            5,
            |i| format::percent(i.group.busy_min_pct),
            Order::Fixed,
        ),
        number(
            "MAX%",
            6,
            6,
            |i| format::percent(i.group.busy_max_pct),
            Order::Fixed,
        ),
        number(
            "MIG-IN/s",
            8,
            2,
            |i| format::scaled(i.group.migrations_in),
            Order::Fixed,
        ),
        number(
            "MIG/s",
            6,
            7,
            |i| format::scaled(i.group.migrations_within),
            Order::Fixed,
        ),
        number(
            "SW/s",
            6,
            8,
            |i| format::scaled(i.group.switches),
            Order::Fixed,
        ),
        number(
            "P50",
            8,
            9,
            |i| format::latency(i.group.wakeup.p50_ns, i.group.wakeup.count),
            Order::Fixed,
        ),
        number(
            "P99",
            8,
            3,
            |i| format::latency(i.group.wakeup.p99_ns, i.group.wakeup.count),
            Order::Fixed,
        ),
    ]
}

static CPU_COLUMNS: [Column<Cpu>; 14] = [
    number("CPU", 5, 0, |c| c.id.to_string(), Order::Fixed),
    number("CORE", 5, 9, |c| c.core.to_string(), Order::Fixed),
    number("CAP", 5, 13, |c| c.capacity.to_string(), Order::Fixed),
    number(
        "FREQ",
        8,
        7,
        |c| c.freq_khz.map_or("-".into(), format::frequency),
        Order::Fixed,
    ),
    number("BUSY%", 6, 1, |c| format::percent(c.busy_pct), Order::Fixed),
    number("RT%", 6, 10, |c| format::percent(c.rt_pct), Order::Fixed),
    number("EXT%", 6, 8, |c| format::percent(c.ext_pct), Order::Fixed),
    number("SW/s", 6, 4, |c| format::scaled(c.switches), Order::Fixed),
    number(
        "PRE/s",
        6,
        11,
        |c| format::scaled(c.preemptions),
        Order::Fixed,
    ),
    number(
        "MIG/s",
        6,
        5,
        |c| format::scaled(c.migrations),
        Order::Fixed,
    ),
    number("QUEUED", 6, 6, |c| c.queued.to_string(), Order::Fixed),
    number(
        "P50",
        8,
        12,
        |c| format::latency(c.wakeup.p50_ns, c.wakeup.count),
        Order::Fixed,
    ),
    number(
        "P99",
        8,
        3,
        |c| format::latency(c.wakeup.p99_ns, c.wakeup.count),
        Order::Fixed,
    ),
    text("CURRENT", 15, 2, current, Order::Fixed),
];

fn current(cpu: &Cpu) -> String {
    match &cpu.current {
        Some((pid, comm)) => format!("{comm} {pid}"),
        None => "idle".into(),
    }
}

/// Each node, followed by its LLCs.
fn items(snapshot: &Snapshot) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for node in &snapshot.nodes {
        items.push(Item {
            group: node,
            is_llc: false,
        });
        let llcs = snapshot.llcs.iter().filter(|llc| llc.node == node.id);
        items.extend(llcs.map(|group| Item {
            group,
            is_llc: true,
        }));
    }
    items
}

pub(super) fn rows(snapshot: &Snapshot) -> Vec<Row> {
    let id = |item: &Item<'_>| match item.is_llc {
        true => u64::from(item.group.id) + OF_LLC,
        false => item.group.id.into(),
    };
    let items = items(snapshot);
    let rows = items.iter().enumerate();
    rows.map(|(index, item)| Row {
        index,
        id: Id::Number(id(item)),
    })
    .collect()
}

pub(super) fn draw(buf: &mut Buffer, area: Rect, below: Rect, snapshot: &Snapshot, state: &State) {
    let rows = rows(snapshot);
    let look = super::look(state, &rows, area);
    let items = items(snapshot);
    let shown: Vec<&Item<'_>> = items.iter().collect();
    table::draw(buf, area, &columns(), &shown, &look);
    if let Some(item) = look.selected.and_then(|at| items.get(at)) {
        cpus(buf, below, item, snapshot, state);
    }
}

/// The CPUs of a group: a table if it fits, otherwise bars.
fn cpus(buf: &mut Buffer, mut area: Rect, item: &Item<'_>, snapshot: &Snapshot, state: &State) {
    let name = item.name();
    let name = name.trim_start();
    let is_member = |cpu: &&Cpu| item.group.cpus.contains(&cpu.id);
    let cpus: Vec<&Cpu> = snapshot.cpus.iter().filter(is_member).collect();
    let title = format!(
        "CPUs of {name}: {}",
        format::ranges(cpus.iter().map(|cpu| cpu.id))
    );
    let title = Line::styled(title, state.theme.style(Part::Title));
    lines::draw(buf, lines::take(&mut area, 1), [title]);
    if cpus.len() < area.height.into() {
        let look = Look {
            theme: state.theme,
            sort: None,
            selected: None,
            top: 0,
        };
        return table::draw(buf, area, &CPU_COLUMNS, &cpus, &look);
    }
    let section = Section {
        name: name.to_owned(),
        cpus,
    };
    let has_queue = snapshot.sched.name.is_some();
    let size = (area.width, area.height);
    lines::draw(
        buf,
        area,
        bars::lines(&[section], size, has_queue, state.theme),
    );
}
