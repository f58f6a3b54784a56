// SPDX-License-Identifier: GPL-2.0-only
//! Tables that drop their less important columns when the terminal is narrow.

use std::cmp::Ordering;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::theme::{Part, Theme};

/// How a column sorts its rows. The function compares in ascending order.
pub(crate) enum Order<T> {
    /// Rows cannot be sorted by this column.
    Fixed,
    /// Smallest first, unless reversed.
    Rising(fn(&T, &T) -> Ordering),
    /// Largest first, unless reversed.
    Falling(fn(&T, &T) -> Ordering),
}

pub(crate) struct Column<T> {
    pub title: &'static str,
    pub width: u16,
    /// Columns with higher numbers are dropped first; 0 is never dropped.
    pub rank: u8,
    /// Text is aligned to the left, numbers to the right.
    pub is_text: bool,
    /// Maximum growth of the column, if some of the width is left over.
    pub growth: u16,
    pub text: fn(&T) -> String,
    pub order: Order<T>,
}

/// A column of numbers.
pub(crate) const fn number<T>(
    title: &'static str,
    width: u16,
    rank: u8,
    text: fn(&T) -> String,
    order: Order<T>,
) -> Column<T> {
    Column {
        title,
        width,
        rank,
        is_text: false,
        growth: 0,
        text,
        order,
    }
}

/// A column of text.
pub(crate) const fn text<T>(
    title: &'static str,
    width: u16,
    rank: u8,
    text: fn(&T) -> String,
    order: Order<T>,
) -> Column<T> {
    Column {
        title,
        width,
        rank,
        is_text: true,
        growth: 0,
        text,
        order,
    }
}

/// The column that rows are sorted by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sort {
    pub column: usize,
    pub is_reversed: bool,
}

/// What a table shows besides its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub theme: Theme,
    pub sort: Option<Sort>,
    /// Position of the selected row.
    pub selected: Option<usize>,
    /// Position of the first row that is shown.
    pub top: usize,
}

/// Sorts `rows`, which are positions in `items`. Equal items keep their order.
pub(crate) fn sort<T>(rows: &mut [usize], items: &[T], columns: &[Column<T>], sort: Option<Sort>) {
    let Some(sort) = sort else { return };
    let (compare, is_falling) = match columns.get(sort.column).map(|column| &column.order) {
        Some(Order::Rising(compare)) => (compare, false),
        Some(Order::Falling(compare)) => (compare, true),
        Some(Order::Fixed) | None => return,
    };
    rows.sort_by(|&a, &b| {
        let order = compare(&items[a], &items[b]);
        if is_falling != sort.is_reversed {
            order.reverse()
        } else {
            order
        }
    });
}

/// The first row to show, so that the selected row is visible and the page is full.
pub(crate) fn first_row(top: usize, selected: Option<usize>, count: usize, page: usize) -> usize {
    let top = top.min(count.saturating_sub(page));
    match selected {
        Some(selected) if selected < top => selected,
        Some(selected) if page > 0 && selected >= top + page => selected + 1 - page,
        _ => top,
    }
}

/// The columns that fit, from left to right, with their widths. The columns of rank 0 and the
/// column that rows are sorted by are always included.
fn visible<T>(columns: &[Column<T>], width: u16, sort: Option<Sort>) -> Vec<(usize, u16)> {
    let rank = |at: usize| match sort {
        Some(sort) if sort.column == at => 0,
        _ => columns[at].rank,
    };
    let mut by_rank: Vec<usize> = (0..columns.len()).collect();
    by_rank.sort_by_key(|&at| rank(at));
    let mut left = width.saturating_add(1);
    let mut shown: Vec<(usize, u16)> = Vec::new();
    for at in by_rank {
        let needed = columns[at].width + 1;
        if needed > left && rank(at) > 0 {
            break;
        }
        left = left.saturating_sub(needed);
        shown.push((at, columns[at].width));
    }
    shown.sort_unstable();
    for (at, width) in &mut shown {
        let growth = columns[*at].growth.min(left);
        *width += growth;
        left -= growth;
    }
    shown
}

/// Draws the header and the rows from `look.top` on.
pub(crate) fn draw<T>(
    buf: &mut Buffer,
    area: Rect,
    columns: &[Column<T>],
    items: &[&T],
    look: &Look,
) {
    if area.is_empty() {
        return;
    }
    let shown = visible(columns, area.width, look.sort);
    let header = Rect { height: 1, ..area };
    let titles = shown.iter().map(|&(at, width)| {
        let column = &columns[at];
        (title(column, at, look), width, column.is_text)
    });
    cells(buf, header, titles);
    buf.set_style(header, look.theme.style(Part::Header));

    let page = usize::from(area.height - 1);
    for (y, (at, item)) in
        (area.y + 1..area.bottom()).zip(items.iter().enumerate().skip(look.top).take(page))
    {
        let line = Rect { y, ..header };
        let texts = shown.iter().map(|&(column, width)| {
            let column = &columns[column];
            (
                super::format::clean(&(column.text)(item)),
                width,
                column.is_text,
            )
        });
        cells(buf, line, texts);
        if look.selected == Some(at) {
            buf.set_style(line, look.theme.style(Part::Selected));
        }
    }
}

/// The title with the mark of the sort order.
fn title<T>(column: &Column<T>, at: usize, look: &Look) -> String {
    let is_fixed = matches!(column.order, Order::Fixed);
    let Some(sort) = look.sort.filter(|sort| sort.column == at && !is_fixed) else {
        return column.title.into();
    };
    let is_falling = matches!(column.order, Order::Falling(_)) != sort.is_reversed;
    let arrow = look.theme.arrow(is_falling);
    if column.is_text {
        format!("{}{arrow}", column.title)
    } else {
        format!("{arrow}{}", column.title)
    }
}

/// Draws texts side by side.
fn cells(buf: &mut Buffer, line: Rect, texts: impl Iterator<Item = (String, u16, bool)>) {
    let mut x = line.x;
    for (text, width, is_text) in texts {
        let width = width.min(line.right().saturating_sub(x));
        if width == 0 {
            return;
        }
        let used = u16::try_from(Span::raw(text.as_str()).width()).unwrap_or(u16::MAX);
        let indent = if is_text {
            0
        } else {
            width.saturating_sub(used)
        };
        let style = Style::new();
        buf.set_stringn(x + indent, line.y, text, (width - indent).into(), style);
        if !is_text && used > width {
            // Mark that digits are missing.
            buf.set_stringn(x + width - 1, line.y, "+", 1, style);
        }
        x = x.saturating_add(width + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> [Column<u32>; 3] {
        let all = |n: &u32| n.to_string();
        [
            number("A", 3, 0, all, Order::Rising(u32::cmp)),
            number("B", 4, 2, all, Order::Falling(u32::cmp)),
            Column {
                growth: 10,
                ..text("C", 5, 1, all, Order::Fixed)
            },
        ]
    }

    #[test]
    fn less_important_columns_are_dropped_first() {
        let shown = |width, sort| visible(&columns(), width, sort);
        assert_eq!(shown(14, None), [(0, 3), (1, 4), (2, 5)]);
        assert_eq!(shown(17, None), [(0, 3), (1, 4), (2, 8)]);
        assert_eq!(shown(100, None), [(0, 3), (1, 4), (2, 15)]);
        assert_eq!(shown(13, None), [(0, 3), (2, 9)]);
        assert_eq!(shown(8, None), [(0, 3)]);
        assert_eq!(shown(0, None), [(0, 3)]);
        let sort = Some(Sort {
            column: 1,
            is_reversed: false,
        });
        assert_eq!(shown(8, sort), [(0, 3), (1, 4)]);
    }

    #[test]
    fn sorting_is_stable_and_reversible() {
        let items = [2, 3, 1, 3];
        let sorted = |column, is_reversed| {
            let mut rows = vec![0, 1, 2, 3];
            sort(
                &mut rows,
                &items,
                &columns(),
                Some(Sort {
                    column,
                    is_reversed,
                }),
            );
            rows
        };
        assert_eq!(sorted(0, false), [2, 0, 1, 3]);
        assert_eq!(sorted(0, true), [1, 3, 0, 2]);
        assert_eq!(sorted(1, false), [1, 3, 0, 2]);
        assert_eq!(sorted(2, false), [0, 1, 2, 3]);
        assert_eq!(sorted(9, false), [0, 1, 2, 3]);
    }

    #[test]
    fn selected_row_is_visible() {
        assert_eq!(first_row(0, None, 0, 10), 0);
        assert_eq!(first_row(5, None, 8, 10), 0);
        assert_eq!(first_row(5, Some(3), 100, 10), 3);
        assert_eq!(first_row(5, Some(14), 100, 10), 5);
        assert_eq!(first_row(5, Some(15), 100, 10), 6);
        assert_eq!(first_row(95, Some(99), 100, 10), 90);
        assert_eq!(first_row(0, Some(3), 10, 0), 0);
    }
}
