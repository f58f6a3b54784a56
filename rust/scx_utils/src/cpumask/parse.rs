//! Parses the kernel's two text forms of CPU sets.

use super::{Cpumask, CpumaskError, GROUP_BITS};

/// Maximum number of characters of an invalid text in an error.
const SHOWN: usize = 60;

/// Maximum number of digits per group of the hex form.
const GROUP_DIGITS: usize = GROUP_BITS / 4;

impl Cpumask {
    /// Parses the hex form: groups of 32 bits separated by commas, such as `ff,00000000`,
    /// or any number of digits without commas. A prefix `0x` is allowed; underscores and
    /// surrounding white space are ignored. The words `none` and `all` are accepted too.
    ///
    /// # Errors
    ///
    /// If the text is malformed, or a CPU in it is `nr_cpu_ids` or more.
    pub fn from_hex(text: &str, nr_cpu_ids: usize) -> Result<Self, CpumaskError> {
        if let Some(mask) = from_word(text, nr_cpu_ids) {
            return Ok(mask);
        }
        let bad = || CpumaskError::BadHex { text: clip(text) };
        let trimmed = text.trim();
        let prefixed = trimmed.strip_prefix("0x");
        let digits = prefixed.or_else(|| trimmed.strip_prefix("0X"));
        let digits = digits.unwrap_or(trimmed);
        let grouped = digits.contains(',');
        let mut mask = Self::new(nr_cpu_ids);
        for (group, group_text) in digits.rsplit(',').enumerate() {
            let ascending = group_text.chars().rev().filter(|&digit| digit != '_');
            let count = ascending.clone().count();
            if count == 0 || (grouped && count > GROUP_DIGITS) {
                return Err(bad());
            }
            for (place, digit) in ascending.enumerate() {
                let value = digit.to_digit(16).ok_or_else(bad)?;
                let base = group * GROUP_BITS + place * 4;
                for bit in (0..4).filter(|bit| value >> bit & 1 == 1) {
                    let set = mask.set(base + bit);
                    set.map_err(|_| out_of_range(text, &mask))?;
                }
            }
        }
        Ok(mask)
    }

    /// Parses the list form: numbers and ranges separated by commas or white space, such as
    /// `0-3,8`. As in the kernel, `0-31:2/4` are the first two of every four CPUs, `N` is the last
    /// CPU id, `all` is `0-N`, and an empty text is the empty set. The word `none` is the empty set
    /// too.
    ///
    /// # Errors
    ///
    /// If the text is malformed, a range is reversed, a stride is invalid, or a CPU in it is
    /// `nr_cpu_ids` or more.
    pub fn from_list(text: &str, nr_cpu_ids: usize) -> Result<Self, CpumaskError> {
        if let Some(mask) = from_word(text, nr_cpu_ids) {
            return Ok(mask);
        }
        let mut mask = Self::new(nr_cpu_ids);
        let regions = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        for region in regions.filter(|region| !region.is_empty()) {
            Region::parse(region, &mask)?.set_in(&mut mask);
        }
        Ok(mask)
    }
}

/// The CPUs from `first` to `last`: of every `group` CPUs, the first `used`.
struct Region {
    first: usize,
    last: usize,
    used: usize,
    group: usize,
}

impl Region {
    /// Parses one part of a list for `mask`. The region is within the mask's width;
    /// `group` is at least 1 and `used` at most `group`.
    fn parse(text: &str, mask: &Cpumask) -> Result<Self, CpumaskError> {
        let (range, stride) = match text.split_once(':') {
            Some((range, stride)) => (range, Some(stride)),
            None => (text, None),
        };
        let last_id = mask.nr_cpu_ids().checked_sub(1);
        let last_id = last_id.ok_or_else(|| out_of_range(text, mask))?;
        let number = |id: &str| match id {
            "N" => Ok(last_id),
            _ => number(id, text, mask),
        };
        let (first, last) = match range.split_once('-') {
            _ if range.eq_ignore_ascii_case("all") => (0, last_id),
            Some((first, last)) => (number(first)?, number(last)?),
            None if stride.is_some() => return Err(bad_list(text)),
            None => (number(range)?, number(range)?),
        };
        if first > last {
            return Err(CpumaskError::ReversedRange { text: clip(text) });
        }
        if last > last_id {
            return Err(out_of_range(text, mask));
        }
        let (used, group) = match stride.map(|stride| stride.split_once('/')) {
            None => (1, 1),
            Some(Some((used, group))) => (number(used)?, number(group)?),
            Some(None) => return Err(bad_list(text)),
        };
        if group == 0 || used > group {
            return Err(CpumaskError::BadStride { text: clip(text) });
        }
        Ok(Self {
            first,
            last,
            used,
            group,
        })
    }

    /// Adds the region's CPUs to `mask`.
    fn set_in(&self, mask: &mut Cpumask) {
        let &Self { first, last, .. } = self;
        if self.used == self.group {
            return mask.set_range(first, last);
        }
        let Some(beyond_first) = self.used.checked_sub(1) else {
            return;
        };
        for start in (first..=last).step_by(self.group) {
            mask.set_range(start, last.min(start.saturating_add(beyond_first)));
        }
    }
}

/// The sets `none` and `all`. Both text forms allow these words.
fn from_word(text: &str, nr_cpu_ids: usize) -> Option<Cpumask> {
    let word = text.trim();
    if word.eq_ignore_ascii_case("none") {
        return Some(Cpumask::new(nr_cpu_ids));
    }
    let all = word.eq_ignore_ascii_case("all");
    all.then(|| Cpumask::full(nr_cpu_ids))
}

/// Parses a decimal number. A number that overflows is out of range. Errors show `text`, the part
/// of the list that contains the number.
fn number(digits: &str, text: &str, mask: &Cpumask) -> Result<usize, CpumaskError> {
    let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !decimal {
        return Err(bad_list(text));
    }
    digits.parse().map_err(|_| out_of_range(text, mask))
}

fn bad_list(text: &str) -> CpumaskError {
    CpumaskError::BadList { text: clip(text) }
}

fn out_of_range(text: &str, mask: &Cpumask) -> CpumaskError {
    CpumaskError::TextOutOfRange {
        text: clip(text),
        nr_cpu_ids: mask.nr_cpu_ids(),
    }
}

/// The start of `text`, for a one-line message.
fn clip(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
