// SPDX-License-Identifier: GPL-2.0-only
//! Messages on standard error: `program: message`, including libbpf's.

use std::fmt;
use std::io;

use libbpf_rs::PrintLevel;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The line format of all programs of this project.
struct Lines {
    program: &'static str,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "{}: ", self.program)?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Sends log messages, including those of libbpf, to standard error: errors, warnings and
/// information for users, and with `verbose` above 0 also each step. Only the first call in a
/// process has an effect.
pub fn init(program: &'static str, verbose: u8) {
    let level = if verbose > 0 {
        Level::DEBUG
    } else {
        Level::INFO
    };
    let subscriber = tracing_subscriber::fmt()
        // Ignore errors, because the reader of standard error may be gone.
        .log_internal_errors(false)
        .with_max_level(level)
        .with_writer(io::stderr)
        .event_format(Lines { program })
        .finish();
    if tracing::subscriber::set_global_default(subscriber).is_ok() {
        libbpf_rs::set_print(Some((PrintLevel::Debug, bridge)));
    }
}

fn bridge(level: PrintLevel, text: String) {
    for line in text.lines() {
        match level {
            PrintLevel::Warn => tracing::warn!("{line}"),
            PrintLevel::Info | PrintLevel::Debug => tracing::debug!("{line}"),
        }
    }
}
