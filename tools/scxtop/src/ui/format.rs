// SPDX-License-Identifier: GPL-2.0-only
//! Formats numbers and foreign text for the views.

use serde_json::Value;

/// Suffixes of scaled numbers. Each stands for 1000 times the value of the previous suffix.
const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// A number with two decimals if it is below 10, with one if it is below 100, otherwise without.
fn three_digits(number: f64) -> String {
    if number < 9.995 {
        format!("{number:.2}")
    } else if number < 99.95 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    }
}

/// A duration, such as `12.3 ms`; at most 9 columns.
pub(crate) fn duration(ns: u64) -> String {
    let exact = to_f64(ns);
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} us", three_digits(exact / 1e3)),
        999_500..999_500_000 => format!("{} ms", three_digits(exact / 1e6)),
        999_500_000..9_999_500_000_000 => format!("{} s", three_digits(exact / 1e9)),
        _ => format!("{} d", three_digits(exact / 86_400e9)),
    }
}

/// A latency as a duration, or `-` if there are no values.
pub(crate) fn latency(ns: u64, count: u64) -> String {
    if count == 0 {
        "-".into()
    } else {
        duration(ns)
    }
}

/// A percentage with one decimal, scaled if it is large, without the percent sign.
pub(crate) fn percent(percent: f64) -> String {
    let percent = sane(percent);
    if percent < 999.95 {
        format!("{percent:.1}")
    } else {
        scaled(percent)
    }
}

/// A percentage as a whole number, at most 999, without the percent sign.
pub(crate) fn whole_percent(percent: f64) -> String {
    format!("{:.0}", sane(percent).min(999.0))
}

/// Replaces a negative number or NaN by 0, so that the number can be drawn and compared.
pub(crate) fn sane(number: f64) -> f64 {
    // max() ignores NaN.
    number.max(0.0)
}

/// A number per second, or a large count, such as `0.5`, `1234`, `12.3k`; at most 6 columns.
pub(crate) fn scaled(number: f64) -> String {
    let mut rest = sane(number);
    if rest < 9.95 && rest.fract() != 0.0 {
        return format!("{rest:.1}");
    }
    if rest < 9_999.5 {
        return format!("{rest:.0}");
    }
    for prefix in PREFIXES {
        if rest < 99.95 {
            return format!("{rest:.1}{prefix}");
        }
        if rest < 999.5 {
            return format!("{rest:.0}{prefix}");
        }
        rest /= 1e3;
    }
    ">999E".into()
}

/// Like `scaled`, for an integer.
pub(crate) fn scaled_count(count: u64) -> String {
    scaled(to_f64(count))
}

/// A frequency, such as `3.20 GHz`.
pub(crate) fn frequency(khz: u64) -> String {
    match khz {
        0..999_500 => format!("{} MHz", three_digits(to_f64(khz) / 1e3)),
        999_500..9_999_500_000 => format!("{} GHz", three_digits(to_f64(khz) / 1e6)),
        _ => "?".into(),
    }
}

/// An integer in groups of three digits.
pub(crate) fn grouped(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 2);
    if number < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A statistic of the scheduler.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => grouped(whole),
            (None, Some(number)) => decimal(number),
            (None, None) => number.to_string(),
        },
        Value::String(text) => clean(text),
        other => clean(&other.to_string()),
    }
}

/// A number with up to three decimals and grouped digits; in exponent form from 1e15 on.
fn decimal(number: f64) -> String {
    if number.abs() >= 1e15 {
        return format!("{number:e}");
    }
    let text = format!("{number:.3}");
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let negative = whole.starts_with('-');
    let whole = whole
        .parse::<i128>()
        .map_or_else(|_| whole.to_owned(), grouped);
    let sign = if negative && !whole.starts_with('-') {
        "-"
    } else {
        ""
    };
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() {
        whole
    } else {
        format!("{sign}{whole}.{decimals}")
    }
}

/// Numbers in ascending order as ranges, such as `0-3, 7`.
pub(crate) fn ranges(ids: impl IntoIterator<Item = u32>) -> String {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match found.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => found.push((id, id)),
        }
    }
    let texts: Vec<_> = found
        .iter()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    texts.join(", ")
}

/// Replaces characters that are invisible, or that control the terminal or the direction of
/// writing, because tasks can choose any name.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if is_harmful(c) { '?' } else { c })
        .collect()
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The nearest floating-point number.
#[expect(
    clippy::cast_precision_loss,
    reason = "a view shows at most four digits"
)]
pub(crate) fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let texts = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_280, "1.28 us"),
            (12_345, "12.3 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (12_300_000, "12.3 ms"),
            (64_000_000_000, "64.0 s"),
            (9_999_000_000_000, "9999 s"),
            (u64::MAX, "213504 d"),
        ];
        for (ns, text) in texts {
            assert_eq!(duration(ns), text);
            assert!(text.len() <= 9);
        }
        assert_eq!(latency(0, 0), "-");
        assert_eq!(latency(1000, 1), "1.00 us");
    }

    #[test]
    fn scaled_numbers_are_short() {
        let texts = [
            (0.0, "0"),
            (0.04, "0.0"),
            (0.5, "0.5"),
            (12.3, "12"),
            (9_999.0, "9999"),
            (9_999.9, "10.0k"),
            (123_456.0, "123k"),
            (999_999.0, "1.0M"),
            (1.8e19, "18.0E"),
            (f64::MAX, ">999E"),
            (f64::INFINITY, ">999E"),
            (f64::NAN, "0"),
            (-5.0, "0"),
        ];
        for (number, text) in texts {
            assert_eq!(scaled(number), text);
            assert!(text.len() <= 6);
        }
    }

    #[test]
    fn percentages_are_never_nan() {
        assert_eq!(percent(12.34), "12.3");
        assert_eq!(percent(f64::NAN), "0.0");
        assert_eq!(percent(-0.1), "0.0");
        assert_eq!(percent(f64::MAX), ">999E");
        assert_eq!(whole_percent(f64::INFINITY), "999");
        assert_eq!(whole_percent(f64::NAN), "0");
    }

    #[test]
    fn frequencies_have_units() {
        assert_eq!(frequency(800_000), "800 MHz");
        assert_eq!(frequency(3_200_000), "3.20 GHz");
        assert_eq!(frequency(u64::MAX), "?");
    }

    #[test]
    fn values_are_grouped() {
        let text = |text: &str| value(&serde_json::from_str(text).unwrap());
        assert_eq!(text("0"), "0");
        assert_eq!(text("1234567"), "1,234,567");
        assert_eq!(text("-123"), "-123");
        assert_eq!(text("18446744073709551615"), "18,446,744,073,709,551,615");
        assert_eq!(text("1234.5"), "1,234.5");
        assert_eq!(text("-0.25"), "-0.25");
        assert_eq!(text("2.0"), "2");
        assert_eq!(text("1e300"), "1e300");
        assert_eq!(text("\"a\\nb\""), "a?b");
        assert_eq!(text("true"), "true");
        assert_eq!(text("[1,2]"), "[1,2]");
    }

    #[test]
    fn ids_are_ranges() {
        assert_eq!(ranges([]), "");
        assert_eq!(ranges([3]), "3");
        assert_eq!(ranges([0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(ranges([u32::MAX]), "4294967295");
    }

    #[test]
    fn foreign_text_cannot_control_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\r\n\u{9b}1m"), "a?[2Jb???1m");
        assert_eq!(clean("x\u{202e}y\u{200b}"), "x?y?");
        assert_eq!(clean("große 木"), "große 木");
    }
}
