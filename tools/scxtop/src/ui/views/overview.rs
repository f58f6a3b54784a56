// SPDX-License-Identifier: GPL-2.0-only
//! Everything at a glance.

use std::cmp::Reverse;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::bars;
use super::super::format;
use super::super::histogram;
use super::super::lines;
use super::super::state::State;
use super::super::table::{self, Look};
use super::super::theme::{Part, Theme};
use super::{dsqs, tasks};
use crate::model::{Dsq, Snapshot, Task};

/// Minimum and maximum number of rows of the histogram, with its title and axis.
const HISTOGRAM_MIN: u16 = 6;
const HISTOGRAM_MAX: u16 = 14;
/// Minimum number of rows of the table of tasks, with its header.
const TASKS_MIN: u16 = 4;
/// An interval of which at least this percentage was observed is shown as fully observed.
const ALL_PCT: f64 = 99.0;
/// Up to this height, the view has a short header, no histogram and no footer.
const LOW: u16 = 15;

pub(super) fn draw(buf: &mut Buffer, mut area: Rect, snapshot: &Snapshot, state: &State) {
    let theme = state.theme;
    let is_low = area.height <= LOW;
    let mut header = header(snapshot, theme);
    if is_low {
        header.truncate(1);
    }
    let rows = u16::try_from(header.len()).unwrap_or(u16::MAX);
    lines::draw(buf, lines::take(&mut area, rows), header);

    let footer = footer(snapshot, theme, if is_low { 0 } else { area.height / 6 });
    let rows = u16::try_from(footer.len())
        .unwrap_or(u16::MAX)
        .min(area.height);
    area.height -= rows;
    let below = Rect {
        y: area.bottom(),
        height: rows,
        ..area
    };
    lines::draw(buf, below, footer);

    let histogram_min = if is_low { 0 } else { HISTOGRAM_MIN };
    let budget = area.height.saturating_sub(histogram_min + TASKS_MIN);
    let cpus = cpus(snapshot, area.width, budget, theme);
    let rows = u16::try_from(cpus.len()).unwrap_or(u16::MAX);
    lines::draw(buf, lines::take(&mut area, rows), cpus);

    let rows = if is_low {
        0
    } else {
        (area.height / 3).clamp(HISTOGRAM_MIN, HISTOGRAM_MAX)
    };
    latencies(buf, lines::take(&mut area, rows), snapshot, theme);
    busiest(buf, area, snapshot, theme);
}

fn latencies(buf: &mut Buffer, mut area: Rect, snapshot: &Snapshot, theme: Theme) {
    let mut name = "Wakeup latency".to_owned();
    if snapshot.observed_pct < ALL_PCT {
        name += &format!(", {}% of time", format::percent(snapshot.observed_pct));
    }
    let title = histogram::percentiles(&name, &snapshot.wakeup, theme);
    lines::draw(buf, lines::take(&mut area, 1), [title]);
    histogram::draw(buf, area, &snapshot.wakeup, theme);
}

fn busiest(buf: &mut Buffer, area: Rect, snapshot: &Snapshot, theme: Theme) {
    let tasks: Vec<&Task> = snapshot.tasks.iter().take(area.height.into()).collect();
    let look = Look {
        theme,
        sort: super::default_sort(super::View::Tasks),
        selected: None,
        top: 0,
    };
    table::draw(buf, area, &tasks::COLUMNS, &tasks, &look);
}

/// The scheduler, how the last scheduler ended, totals, and the depths of DSQs.
fn header(snapshot: &Snapshot, theme: Theme) -> Vec<Line<'static>> {
    let sched = &snapshot.sched;
    let title = theme.style(Part::Title);
    let mut first = vec![
        Span::styled("Kernel ", title),
        Span::raw(format::clean(&snapshot.kernel)),
        Span::styled("  Scheduler ", title),
    ];
    first.push(Span::raw(match &sched.name {
        Some(name) => {
            let mode = if sched.is_switch_all {
                "all tasks"
            } else {
                "partial"
            };
            format!(
                "{} ({}, {mode})",
                format::clean(name),
                format::clean(&sched.state)
            )
        }
        None if sched.state.is_empty() => "the kernel's own (it lacks sched_ext)".into(),
        None => format!(
            "the kernel's own (sched_ext: {})",
            format::clean(&sched.state)
        ),
    }));
    let mut lines = vec![Line::from(first)];
    if let Some(exit) = &sched.last_exit {
        let exit = Span::raw(format::clean(exit));
        lines.push(Line::from(vec![Span::styled("Last end ", title), exit]));
    }
    lines.push(totals(snapshot, theme));
    if !snapshot.dsqs.is_empty() {
        lines.push(depths(snapshot, theme));
    }
    lines
}

/// The depths of the DSQs, the deepest ones first.
fn depths(snapshot: &Snapshot, theme: Theme) -> Line<'static> {
    let mut dsqs: Vec<&Dsq> = snapshot.dsqs.iter().collect();
    dsqs.sort_by_key(|dsq| (Reverse(dsq.depth), dsq.id));
    let mut spans = vec![Span::styled("DSQs   ", theme.style(Part::Title))];
    for dsq in dsqs {
        let name = format!("{} ", format::clean(&dsq.name));
        spans.push(Span::styled(name, theme.style(Part::Faint)));
        spans.push(Span::raw(dsqs::depth(dsq) + "  "));
    }
    Line::from(spans)
}

fn totals(snapshot: &Snapshot, theme: Theme) -> Line<'static> {
    let online = || snapshot.cpus.iter().filter(|cpu| cpu.is_online);
    let sum =
        |of: fn(&crate::model::Cpu) -> f64| online().map(|cpu| format::sane(of(cpu))).sum::<f64>();
    let offline = snapshot.cpus.iter().filter(|cpu| !cpu.is_online);
    let offline = format::ranges(offline.map(|cpu| cpu.id));
    let mut fields = vec![
        (
            "busy ",
            format!(
                "{} of {} CPUs",
                format::percent(sum(|cpu| cpu.busy_pct)) + "%",
                online().count()
            ),
        ),
        ("SW/s ", format::scaled(sum(|cpu| cpu.switches))),
        ("PRE/s ", format::scaled(sum(|cpu| cpu.preemptions))),
        ("MIG/s ", format::scaled(sum(|cpu| cpu.migrations))),
    ];
    if !offline.is_empty() {
        fields.push(("offline ", offline));
    }
    let mut spans = vec![Span::styled("Total  ", theme.style(Part::Title))];
    for (name, value) in fields {
        spans.push(Span::styled(name, theme.style(Part::Faint)));
        spans.push(Span::raw(value + "  "));
    }
    Line::from(spans)
}

/// The load of all CPUs in at most `height` lines, with a legend.
fn cpus(snapshot: &Snapshot, width: u16, height: u16, theme: Theme) -> Vec<Line<'static>> {
    if height < 2 {
        return Vec::new();
    }
    let has_ext = snapshot.sched.name.is_some();
    let mut spans = vec![Span::styled("CPUs  ", theme.style(Part::Title))];
    spans.extend(bars::legend(theme, has_ext));
    if has_ext {
        spans.push(Span::styled(
            "q: tasks in the local DSQ",
            theme.style(Part::Faint),
        ));
    }
    let mut lines = vec![Line::from(spans)];
    let sections = bars::sections(snapshot);
    lines.extend(bars::lines(&sections, (width, height - 1), has_ext, theme));
    lines
}

/// Up to `limit` lines with notices, and what scxtop itself costs.
fn footer(snapshot: &Snapshot, theme: Theme, limit: u16) -> Vec<Line<'static>> {
    if limit == 0 {
        return Vec::new();
    }
    let own = &snapshot.own;
    let mut spans = vec![
        Span::styled("scxtop itself ", theme.style(Part::Title)),
        Span::raw(format!("{}% of a CPU", format::percent(own.process_pct))),
    ];
    if own.lost > 0 {
        let text = format!(", {} events lost", format::grouped(own.lost.into()));
        spans.push(Span::styled(text, theme.style(Part::Warning)));
    }
    let room = usize::from(limit) - 1;
    let notices = &snapshot.notices;
    let mut lines: Vec<Line<'static>> = notices
        .iter()
        .take(room)
        .map(|notice| {
            Line::styled(
                format!("! {}", format::clean(notice)),
                theme.style(Part::Warning),
            )
        })
        .collect();
    if notices.len() > room {
        spans.push(Span::raw(format!(
            ", {} more notices",
            notices.len() - room
        )));
    }
    lines.push(Line::from(spans));
    lines
}
