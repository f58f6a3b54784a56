// SPDX-License-Identifier: GPL-2.0-only
//! Encodes metrics in the OpenMetrics text format.

use std::fmt;

use anyhow::{Context as _, Result};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{text, DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::flatten::{Label, Metric};

/// The content type of the text format.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The suffix of counters, which the encoder appends to names.
const TOTAL: &str = "_total";

impl Metric {
    /// The name for the encoder, without the suffix that the encoder appends.
    fn family(&self) -> &str {
        let base = self.name.strip_suffix(TOTAL).filter(|_| self.is_counter);
        base.unwrap_or(&self.name)
    }
}

/// Escapes a label value or a description, because the encoder does not.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[derive(Debug)]
struct Snapshot(Vec<Metric>);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for metric in &self.0 {
            let kind = if metric.is_counter {
                MetricType::Counter
            } else {
                MetricType::Gauge
            };
            let mut of =
                encoder.encode_descriptor(metric.family(), &escaped(&metric.help), None, kind)?;
            for (labels, number) in &metric.samples {
                let labels: Vec<Label> = labels
                    .iter()
                    .map(|(name, value)| (name.clone(), escaped(value)))
                    .collect();
                let one = of.encode_family(&labels)?;
                if metric.is_counter {
                    ConstCounter::new(*number).encode(one)?;
                } else {
                    ConstGauge::new(*number).encode(one)?;
                }
            }
        }
        Ok(())
    }
}

/// Encodes all metrics.
pub(crate) fn encode(metrics: Vec<Metric>) -> Result<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(metrics)));
    let mut text = String::new();
    text::encode(&mut text, &registry).context("cannot write the metrics")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, is_counter: bool, samples: Vec<(Vec<Label>, f64)>) -> Metric {
        Metric {
            name: name.to_owned(),
            help: "Says \"a\\b\"\nand more".to_owned(),
            is_counter,
            samples,
        }
    }

    #[test]
    fn texts_are_escaped() {
        let label = ("of".to_owned(), "\"} 1\n\\".to_owned());
        let text = encode(vec![metric("a", false, vec![(vec![label], 1.5)])]).unwrap();
        assert_eq!(
            text,
            "# HELP a Says \\\"a\\\\b\\\"\\nand more\n# TYPE a gauge\n\
             a{of=\"\\\"} 1\\n\\\\\"} 1.5\n# EOF\n"
        );
    }

    #[test]
    fn counters_have_one_total_suffix() {
        let samples = || vec![(Vec::new(), 7.0)];
        let text = encode(vec![
            metric("runs", true, samples()),
            metric("all_total", true, samples()),
            metric("level_total", false, samples()),
        ])
        .unwrap();
        let of = |line: &&str| !line.starts_with('#');
        let lines: Vec<_> = text.lines().filter(of).collect();
        assert_eq!(
            lines,
            ["runs_total{} 7.0", "all_total{} 7.0", "level_total{} 7.0"]
        );
    }

    #[test]
    fn empty_output_is_valid() {
        assert_eq!(encode(Vec::new()).unwrap(), "# EOF\n");
    }
}
