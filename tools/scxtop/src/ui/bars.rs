// SPDX-License-Identifier: GPL-2.0-only
//! The load of CPUs as bars, in as much detail as there is room for.

use std::collections::BTreeMap;

use ratatui::text::{Line, Span};

use super::format;
use super::theme::{Part, Theme};
use crate::model::{Cpu, Snapshot};

/// Minimum width of a CPU with all details.
const FULL_WIDTH: u16 = 34;
/// Width of a short bar.
const SHORT_BAR: u16 = 6;
/// Width of a CPU with a short bar, besides its id: spaces, bar, percentage.
const SHORT_WIDTH: u16 = SHORT_BAR + 7;

/// Online CPUs that are shown under a common name.
pub(crate) struct Section<'a> {
    pub name: String,
    pub cpus: Vec<&'a Cpu>,
}

/// All online CPUs by node and LLC.
pub(crate) fn sections(snapshot: &Snapshot) -> Vec<Section<'_>> {
    let mut groups: BTreeMap<(u32, u32), Vec<&Cpu>> = BTreeMap::new();
    for cpu in snapshot.cpus.iter().filter(|cpu| cpu.is_online) {
        groups.entry((cpu.node, cpu.llc)).or_default().push(cpu);
    }
    groups
        .into_iter()
        .map(|((node, llc), cpus)| Section {
            name: format!("N{node} L{llc}"),
            cpus,
        })
        .collect()
}

/// Draws a CPU in the given number of columns.
type Form = fn(&Style, &Cpu, u16) -> Vec<Span<'static>>;

/// The properties of the drawing that are the same for all CPUs.
struct Style {
    theme: Theme,
    width: u16,
    name_width: usize,
    id_width: usize,
    has_freq: bool,
    has_queue: bool,
}

/// Lines for all CPUs, `width` columns wide, in the most detailed of three forms that has at most
/// `height` lines. If each form has more lines, the least detailed form is cut.
pub(crate) fn lines(
    sections: &[Section<'_>],
    (width, height): (u16, u16),
    has_queue: bool,
    theme: Theme,
) -> Vec<Line<'static>> {
    let cpus = || sections.iter().flat_map(|section| &section.cpus);
    let style = Style {
        theme,
        width,
        name_width: sections.iter().map(|s| s.name.len()).max().unwrap_or(0),
        id_width: cpus()
            .map(|cpu| cpu.id)
            .max()
            .unwrap_or(0)
            .to_string()
            .len(),
        has_freq: cpus().any(|cpu| cpu.freq_khz.is_some()),
        has_queue,
    };
    let id_width = u16::try_from(style.id_width).unwrap_or_default();
    let forms: [(u16, Form); 2] = [
        (FULL_WIDTH, Style::full),
        (SHORT_WIDTH + id_width, Style::short),
    ];
    for (least, form) in forms {
        let lines = style.grid(sections, least, form);
        if lines.len() <= height.into() {
            return lines;
        }
    }
    let mut lines = style.compressed(sections);
    if lines.len() > height.into() {
        let cut = lines.len() - usize::from(height);
        lines.truncate(height.into());
        if let Some(last) = lines.last_mut() {
            *last = Line::raw(format!("{} lines of CPUs do not fit", cut + 1));
        }
    }
    lines
}

impl Style {
    /// Width that the names of the sections leave for CPUs.
    fn room(&self) -> u16 {
        let name = u16::try_from(self.name_width + 1).unwrap_or(u16::MAX);
        self.width.saturating_sub(name)
    }

    /// CPUs in columns of equal width, at least `least`; the name of the section is on the left.
    fn grid(&self, sections: &[Section<'_>], least: u16, form: Form) -> Vec<Line<'static>> {
        let most = sections.iter().map(|s| s.cpus.len()).max().unwrap_or(1);
        let columns = usize::from(self.room() / least).clamp(1, most.max(1));
        // Use the least number of columns that gives this number of rows.
        let columns = most.div_ceil(most.div_ceil(columns).max(1)).max(1);
        let width = self.room() / u16::try_from(columns).unwrap_or(u16::MAX);
        let mut lines = Vec::new();
        for section in sections {
            for (at, row) in section.cpus.chunks(columns).enumerate() {
                let name = if at == 0 { section.name.as_str() } else { "" };
                let name = format!("{name:<w$} ", w = self.name_width);
                let mut spans = vec![Span::styled(name, self.theme.style(Part::Title))];
                for cpu in row {
                    spans.extend(form(self, cpu, width));
                }
                lines.push(Line::from(spans));
            }
        }
        lines
    }

    /// Id, bar, percentage, frequency, queued tasks.
    fn full(&self, cpu: &Cpu, width: u16) -> Vec<Span<'static>> {
        let id = format!("{:>w$} ", cpu.id, w = self.id_width);
        let mut end = format!(" {:>3}%", format::whole_percent(cpu.busy_pct));
        if self.has_freq {
            let freq = cpu.freq_khz.map(format::frequency).unwrap_or_default();
            end += &format!(" {freq:>8}");
        }
        if self.has_queue {
            let queued = if cpu.queued > 0 {
                format!("q{}", cpu.queued.min(999))
            } else {
                String::new()
            };
            end += &format!(" {queued:<4}");
        }
        let others = u16::try_from(id.len() + end.len() + 3).unwrap_or(u16::MAX);
        let bar = width.saturating_sub(others);
        let faint = self.theme.style(Part::Faint);
        let mut spans = vec![Span::raw(id), Span::styled("[", faint)];
        spans.extend(self.bar(cpu, bar));
        spans.extend([Span::styled("]", faint), Span::raw(end + " ")]);
        spans
    }

    /// Id, a short bar, percentage.
    fn short(&self, cpu: &Cpu, width: u16) -> Vec<Span<'static>> {
        let id = format!("{:>w$} ", cpu.id, w = self.id_width);
        let others = SHORT_WIDTH - SHORT_BAR + u16::try_from(self.id_width).unwrap_or_default();
        let mut spans = vec![Span::raw(id)];
        spans.extend(self.bar(cpu, width.saturating_sub(others)));
        let percent = format::whole_percent(cpu.busy_pct);
        spans.push(Span::raw(format!(" {percent:>3}% ")));
        spans
    }

    /// One character per CPU, sections one after the other.
    fn compressed(&self, sections: &[Section<'_>]) -> Vec<Line<'static>> {
        let width = usize::from(self.width).max(1);
        let mut lines = Vec::new();
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut used = 0;
        for section in sections {
            let name = format!("{} ", section.name);
            let cells = section.cpus.iter().map(|cpu| self.cell(cpu));
            if used > 0 && used + name.len() + section.cpus.len() > width {
                lines.push(Line::from(std::mem::take(&mut spans)));
                used = 0;
            }
            used += name.len();
            spans.push(Span::styled(name, self.theme.style(Part::Title)));
            for cell in cells {
                if used >= width {
                    lines.push(Line::from(std::mem::take(&mut spans)));
                    used = 0;
                }
                spans.push(cell);
                used += 1;
            }
            spans.push(Span::raw("  "));
            used += 2;
        }
        if used > 0 {
            lines.push(Line::from(spans));
        }
        lines
    }

    /// The load as the level of one character, in the colour of the largest part.
    fn cell(&self, cpu: &Cpu) -> Span<'static> {
        let [rt, ext, other] = shares(cpu);
        let part = if rt > ext && rt > other {
            Part::Rt
        } else if ext >= other {
            Part::Ext
        } else {
            Part::Other
        };
        let level = u8::try_from(cells(cpu.busy_pct, 8)).unwrap_or(8).max(1);
        let level = self.theme.level(level);
        Span::styled(level.to_string(), self.theme.style(part))
    }

    /// The load as a bar: real-time tasks, tasks of sched_ext, other tasks.
    fn bar(&self, cpu: &Cpu, width: u16) -> Vec<Span<'static>> {
        let [rt, ext, _] = shares(cpu);
        let ends = [
            cells(rt, width),
            cells(rt + ext, width),
            cells(cpu.busy_pct, width),
        ];
        let mut spans = Vec::new();
        let mut start = 0;
        for (part, end) in [Part::Rt, Part::Ext, Part::Other].into_iter().zip(ends) {
            let end = end.max(start);
            let text = self.theme.fill(part).repeat((end - start).into());
            spans.push(Span::styled(text, self.theme.style(part)));
            start = end;
        }
        spans.push(Span::raw(" ".repeat((width - start).into())));
        spans
    }
}

/// Percent of the time with real-time tasks, tasks of sched_ext and other tasks. The sum does not
/// exceed the CPU's busy time.
fn shares(cpu: &Cpu) -> [f64; 3] {
    let busy = format::sane(cpu.busy_pct).min(100.0);
    let rt = format::sane(cpu.rt_pct).min(busy);
    let ext = format::sane(cpu.ext_pct).min(busy - rt);
    [rt, ext, busy - rt - ext]
}

/// `percent` of `width` cells, rounded to the nearest cell.
fn cells(percent: f64, width: u16) -> u16 {
    let exact = format::sane(percent).min(100.0) * f64::from(width) / 100.0;
    // Search, because a cast of the float would truncate silently. Widths are small.
    (0..=width)
        .rev()
        .find(|&cells| f64::from(cells) <= exact + 0.5)
        .unwrap_or(0)
}

/// What the parts of a bar mean.
pub(crate) fn legend(theme: Theme, has_ext: bool) -> Vec<Span<'static>> {
    let mut parts = vec![(Part::Rt, "real-time")];
    if has_ext {
        parts.push((Part::Ext, "sched_ext"));
    }
    parts.push((Part::Other, if has_ext { "other" } else { "fair" }));
    let mut spans = Vec::new();
    for (part, name) in parts {
        spans.push(Span::styled(theme.fill(part), theme.style(part)));
        spans.push(Span::styled(format!(" {name}  "), theme.style(Part::Faint)));
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEME: Theme = Theme {
        is_coloured: false,
        is_unicode: false,
    };

    fn cpu(id: u32, busy_pct: f64, rt_pct: f64, ext_pct: f64) -> Cpu {
        Cpu {
            id,
            is_online: true,
            busy_pct,
            rt_pct,
            ext_pct,
            ..Cpu::default()
        }
    }

    fn text(cpus: &[Cpu], size: (u16, u16)) -> Vec<String> {
        let section = Section {
            name: "N0 L0".into(),
            cpus: cpus.iter().collect(),
        };
        let lines = lines(&[section], size, false, THEME);
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn parts_of_a_bar_are_in_proportion() {
        let cpus = [cpu(0, 50.0, 10.0, 20.0)];
        assert_eq!(
            text(&cpus, (36, 9)),
            ["N0 L0 0 [!!####====          ]  50% "]
        );
    }

    #[test]
    fn impossible_percentages_fill_the_bar() {
        for odd in [f64::NAN, f64::INFINITY, f64::MAX, -1.0] {
            for cpu in [
                cpu(0, odd, 0.0, 0.0),
                cpu(0, 50.0, odd, odd),
                cpu(0, odd, odd, odd),
            ] {
                for line in text(&[cpu], (36, 9)) {
                    assert_eq!(line.len(), 36, "{line}");
                }
            }
        }
    }

    #[test]
    fn many_cpus_are_compressed() {
        let cpus: Vec<Cpu> = (0..32)
            .map(|id| cpu(id, f64::from(id) * 3.0, 0.0, 0.0))
            .collect();
        let full = text(&cpus, (80, 16));
        assert_eq!(full.len(), 16);
        assert!(full[1].starts_with("       2 [=="), "{}", full[1]);
        let short = text(&cpus, (80, 15));
        assert_eq!(short.len(), 8);
        assert!(short[7].starts_with("      28 ="), "{}", short[7]);
        let compressed = "N0 L0 ...........--------+++++++++####  ";
        assert_eq!(text(&cpus, (80, 7)), [compressed]);
        let cut = text(&cpus, (18, 2));
        assert_eq!(cut[1], "2 lines of CPUs do not fit");
        assert!(text(&[], (80, 5)).is_empty());
    }

    #[test]
    fn cells_are_rounded() {
        assert_eq!(cells(0.0, 10), 0);
        assert_eq!(cells(4.9, 10), 0);
        assert_eq!(cells(5.0, 10), 1);
        assert_eq!(cells(100.0, 10), 10);
        assert_eq!(cells(f64::NAN, 10), 0);
        assert_eq!(cells(50.0, 0), 0);
    }
}
