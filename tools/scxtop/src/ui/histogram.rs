// SPDX-License-Identifier: GPL-2.0-only
//! Histograms of latencies as columns.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::format;
use super::theme::{Part, Theme};
use crate::histogram::{Latency, BUCKETS};

/// Width of the scale on the left.
const SCALE: u16 = 7;
/// Buckets of one power of two.
const PER_POWER: usize = 4;
/// Maximum width of a column for a bucket, and for a power of two.
const BUCKET_WIDTH: u16 = 2;
const POWER_WIDTH: u16 = 8;

/// The percentiles, as one line.
pub(crate) fn percentiles(name: &str, latency: &Latency, theme: Theme) -> Line<'static> {
    let mut spans = vec![Span::styled(name.to_owned(), theme.style(Part::Title))];
    if latency.count == 0 {
        spans.push(Span::raw("  none"));
        return Line::from(spans);
    }
    let figures = [
        ("p50", latency.p50_ns),
        ("p90", latency.p90_ns),
        ("p99", latency.p99_ns),
        ("max", latency.max_ns),
    ];
    for (name, ns) in figures {
        spans.push(Span::styled(format!("  {name} "), theme.style(Part::Faint)));
        spans.push(Span::raw(format::duration(ns)));
    }
    let count = format!("  of {}", format::grouped(latency.count.into()));
    spans.push(Span::styled(count, theme.style(Part::Faint)));
    Line::from(spans)
}

/// Columns side by side.
struct Columns {
    counts: Vec<u64>,
    /// Number of columns for each power of two.
    per_power: usize,
    /// The power of two of the first column, relative to the first bucket.
    first: usize,
    width: u16,
}

impl Columns {
    /// Columns from the first to the last non-empty power of two: one for each bucket if they fit,
    /// otherwise one for each power of two.
    fn new(latency: &Latency, width: u16) -> Option<Self> {
        let mut counts = vec![0_u64; BUCKETS];
        for &(index, count) in &latency.buckets {
            if let Some(bucket) = counts.get_mut(usize::from(index)) {
                *bucket = count;
            }
        }
        let first = counts.iter().position(|&count| count > 0)? / PER_POWER;
        let last = counts.iter().rposition(|&count| count > 0)? / PER_POWER;
        let counts = &counts[first * PER_POWER..(last + 1) * PER_POWER];
        let fitting = |columns: usize| width / u16::try_from(columns).unwrap_or(u16::MAX);
        let bucket_width = fitting(counts.len()).min(BUCKET_WIDTH);
        Some(if bucket_width > 0 {
            Self {
                counts: counts.to_vec(),
                per_power: PER_POWER,
                first,
                width: bucket_width,
            }
        } else {
            let power =
                |counts: &[u64]| counts.iter().fold(0, |sum: u64, &n| sum.saturating_add(n));
            let counts: Vec<u64> = counts.chunks(PER_POWER).map(power).collect();
            let width = fitting(counts.len()).clamp(1, POWER_WIDTH);
            Self {
                counts,
                per_power: 1,
                first,
                width,
            }
        })
    }
}

/// Draws columns over an axis with the lower limits of powers of two.
pub(crate) fn draw(buf: &mut Buffer, area: Rect, latency: &Latency, theme: Theme) {
    if area.height < 2 || area.width <= SCALE {
        return;
    }
    let Some(columns) = Columns::new(latency, area.width - SCALE) else {
        return;
    };
    let highest = columns.counts.iter().copied().max().unwrap_or(0).max(1);
    let bars = Rect {
        x: area.x + SCALE,
        width: area.width - SCALE,
        height: area.height - 1,
        ..area
    };
    let scale = format!("{:>6}", format::scaled_count(highest));
    buf.set_stringn(
        area.x,
        area.y,
        scale,
        SCALE.into(),
        theme.style(Part::Faint),
    );
    let mut x = bars.x;
    for &count in &columns.counts {
        let room = columns.width.min(bars.right().saturating_sub(x));
        column(
            buf,
            Rect {
                x,
                width: room,
                ..bars
            },
            eighths(count, highest, bars.height),
            theme,
        );
        x = x.saturating_add(columns.width).min(bars.right());
    }
    axis(
        buf,
        Rect {
            y: bars.bottom(),
            height: 1,
            ..bars
        },
        &columns,
        theme,
    );
}

/// The height of a column, in eighths of a cell. A column that is not empty is visible.
fn eighths(count: u64, highest: u64, height: u16) -> u32 {
    let full = u32::from(height) * 8;
    let scaled = u128::from(count) * u128::from(full) / u128::from(highest);
    u32::try_from(scaled)
        .unwrap_or(full)
        .max(u32::from(count > 0))
}

fn column(buf: &mut Buffer, area: Rect, eighths: u32, theme: Theme) {
    for (below, y) in (0..).zip((area.y..area.bottom()).rev()) {
        let level = eighths.saturating_sub(below * 8).min(8);
        let level = theme.level(u8::try_from(level).unwrap_or(8));
        let text = level.to_string().repeat(area.width.into());
        buf.set_stringn(area.x, y, text, area.width.into(), theme.style(Part::Bar));
    }
}

fn axis(buf: &mut Buffer, area: Rect, columns: &Columns, theme: Theme) {
    let powers = columns.counts.len() / columns.per_power;
    let step = columns
        .width
        .saturating_mul(u16::try_from(columns.per_power).unwrap_or(1));
    let mut free = area.x;
    let mut x = area.x;
    for power in columns.first..columns.first + powers {
        let label = lower_limit(power);
        let width = u16::try_from(label.len()).unwrap_or(u16::MAX);
        if x >= free && x.saturating_add(width) <= area.right() {
            buf.set_stringn(x, area.y, label, width.into(), theme.style(Part::Faint));
            free = x + width + 1;
        }
        x = x.saturating_add(step);
    }
}

/// The lower limit of a power of two, rounded: 1024 ns are shown as 1 us.
fn lower_limit(power: usize) -> String {
    const UNITS: [&str; 4] = ["us", "ms", "s", "ks"];
    let unit = UNITS[(power / 10).min(UNITS.len() - 1)];
    format!("{}{unit}", 1 << (power % 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(buckets: &[(u8, u64)]) -> Latency {
        Latency {
            buckets: buckets.to_vec(),
            ..Latency::default()
        }
    }

    #[test]
    fn buckets_are_merged_if_narrow() {
        let values = latency(&[(5, 1), (6, 2), (40, 7), (200, 1)]);
        let wide = Columns::new(&values, 80).unwrap();
        assert_eq!((wide.per_power, wide.first, wide.width), (4, 1, 2));
        assert_eq!(wide.counts.len(), 40);
        assert_eq!(wide.counts[1..3], [1, 2]);
        let narrow = Columns::new(&values, 39).unwrap();
        assert_eq!((narrow.per_power, narrow.width), (1, 3));
        assert_eq!(narrow.counts, [3, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(Columns::new(&values, 1).unwrap().width, 1);
        assert!(Columns::new(&latency(&[]), 80).is_none());
        assert!(Columns::new(&latency(&[(3, 0), (255, 1)]), 80).is_none());
    }

    #[test]
    fn single_values_are_visible() {
        assert_eq!(eighths(0, 10, 5), 0);
        assert_eq!(eighths(1, u64::MAX, 5), 1);
        assert_eq!(eighths(u64::MAX, u64::MAX, 5), 40);
    }

    #[test]
    fn limits_are_powers_of_two() {
        let limits = [0, 3, 10, 19, 20, 25].map(lower_limit);
        assert_eq!(limits, ["1us", "8us", "1ms", "512ms", "1s", "32s"]);
    }
}
