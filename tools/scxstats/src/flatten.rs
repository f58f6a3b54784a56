// SPDX-License-Identifier: GPL-2.0-only
//! Converts nested statistics to a list of numbers. Attributes of structs and fields determine the
//! names and labels of the numbers: `_om_prefix` of a struct is prepended to the full names of its
//! numbers, `_om_label` is the label for the keys of a map, and `_om_skip` omits a field.

use scx_stats::{FieldMeta, Kind, Shape, StructMeta};
use serde_json::Value;

/// A label and its value.
pub(crate) type Label = (String, String);

/// A metric with its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) help: String,
    /// Whether the metric is monotonic.
    pub(crate) is_counter: bool,
    pub(crate) samples: Vec<(Vec<Label>, f64)>,
}

/// The numbers of `stats` that the metadata describes, in its order. Strings, lists and fields with
/// `_om_skip` are left out. `None` if the metadata has no top struct.
pub(crate) fn flatten(meta: &[StructMeta], stats: &Value) -> Option<Vec<Metric>> {
    let top = meta.iter().find(|of| of.top)?;
    let mut walk = Walk {
        meta,
        metrics: Vec::new(),
    };
    walk.of_struct(top, stats, &Place::default());
    Some(walk.metrics)
}

/// The place of a struct in the statistics.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Names of the enclosing fields that are structs, each followed by `_`.
    path: String,
    labels: Vec<Label>,
}

struct Walk<'a> {
    meta: &'a [StructMeta],
    metrics: Vec<Metric>,
}

impl<'a> Walk<'a> {
    fn of_struct(&mut self, of: &StructMeta, value: &Value, place: &Place) {
        for field in &of.fields {
            let Some(value) = value.get(&field.name) else {
                continue;
            };
            if field.user.contains_key("_om_skip") {
                continue;
            }
            match &field.shape {
                Shape::Datum(Kind::Struct(name)) => {
                    let mut place = place.clone();
                    place.path += &format!("{}_", field.name);
                    self.of_named(name, value, &place);
                }
                Shape::Datum(_) => self.number(of, field, value, place),
                Shape::Dict { datum, .. } => {
                    let label = self.label(field, datum, place);
                    for (key, value) in value.as_object().into_iter().flatten() {
                        let mut place = place.clone();
                        place.labels.push((label.clone(), key.clone()));
                        match datum {
                            Kind::Struct(name) => self.of_named(name, value, &place),
                            _ => self.number(of, field, value, &place),
                        }
                    }
                }
                Shape::Array(_) => {}
            }
        }
    }

    fn find(&self, name: &str) -> Option<&'a StructMeta> {
        self.meta.iter().find(|of| of.name == name)
    }

    fn of_named(&mut self, name: &str, value: &Value, place: &Place) {
        if let Some(of) = self.find(name) {
            self.of_struct(of, value, place);
        }
    }

    /// The name of the label for a map's keys: `_om_label` of the struct in the map, or else
    /// `_om_label` of the field, or else the name of the field. `_` is appended until the label is
    /// unique.
    fn label(&self, field: &FieldMeta, datum: &Kind, place: &Place) -> String {
        let of_struct = match datum {
            Kind::Struct(name) => self.find(name),
            _ => None,
        };
        let of_struct = of_struct.and_then(|of| of.user.get("_om_label"));
        let label = of_struct.or_else(|| field.user.get("_om_label"));
        let mut label = legal(label.unwrap_or(&field.name), "_");
        while place.labels.iter().any(|(name, _)| *name == label) {
            label.push('_');
        }
        label
    }

    fn number(&mut self, of: &StructMeta, field: &FieldMeta, value: &Value, place: &Place) {
        let Some(number) = value.as_f64() else { return };
        let prefix = of.user.get("_om_prefix").map_or("", String::as_str);
        let name = legal(&format!("{prefix}{}{}", place.path, field.name), "_:");
        let sample = (place.labels.clone(), number);
        let Some(metric) = self.metrics.iter_mut().find(|metric| metric.name == name) else {
            self.metrics.push(Metric {
                name,
                help: field.desc.clone().unwrap_or_default(),
                is_counter: field.is_counter(),
                samples: vec![sample],
            });
            return;
        };
        // Prometheus rejects the whole answer if two samples have the same name and labels.
        if metric.samples.iter().all(|(of, _)| *of != place.labels) {
            metric.samples.push(sample);
        }
    }
}

/// Makes a name valid for Prometheus. Only ASCII letters, digits and `others` are kept, and `_`
/// takes the place of each other character. `_` is prepended to an empty name or a leading digit.
fn legal(name: &str, others: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let name: String = name
        .chars()
        .map(|c| if legal(c) { c } else { '_' })
        .collect();
    if name.starts_with(|c: char| !c.is_ascii_digit()) {
        name
    } else {
        format!("_{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn meta(of: Value) -> Vec<StructMeta> {
        let of: BTreeMap<String, StructMeta> = serde_json::from_value(of).unwrap();
        of.into_values().collect()
    }

    /// `NAME{LABEL=VALUE,…} NUMBER` for each number.
    fn flat(meta: &[StructMeta], stats: &Value) -> Vec<String> {
        let line = |metric: &Metric, (labels, number): &(Vec<Label>, f64)| {
            let labels: Vec<_> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{}{{{}}} {number}", metric.name, labels.join(","))
        };
        let metrics = flatten(meta, stats).unwrap();
        metrics
            .iter()
            .flat_map(|metric| metric.samples.iter().map(|one| line(metric, one)))
            .collect()
    }

    #[test]
    fn repeated_structs_get_distinct_names() {
        let meta = meta(json!({
            "Top": {"name": "Top", "top": "true", "fields": {
                "near": {"datum": {"struct": "Moves"}},
                "far": {"datum": {"struct": "Moves"}},
            }},
            "Moves": {"name": "Moves", "user": {"_om_prefix": "m_"}, "fields": {
                "nr": {"datum": "u64"},
            }},
        }));
        let stats = json!({"near": {"nr": 1}, "far": {"nr": 2}});
        assert_eq!(flat(&meta, &stats), ["m_far_nr{} 2", "m_near_nr{} 1"]);
    }

    #[test]
    fn names_and_labels_are_valid() {
        let meta = meta(json!({
            "Top": {"name": "Top", "top": "true", "user": {"_om_prefix": "9-a:"}, "fields": {
                "per": {
                    "dict": {"key": "u64", "datum": "u64"},
                    "user": {"_om_label": "1 of:many"},
                },
            }},
        }));
        let stats = json!({"per": {"x y": 1}});
        assert_eq!(flat(&meta, &stats), ["_9_a:per{_1_of_many=x y} 1"]);
        assert_eq!(legal("", "_"), "_");
    }

    #[test]
    fn no_metric_is_repeated() {
        let inner = json!({"dict": {"key": "u64", "datum": {"struct": "Node"}}});
        let meta = meta(json!({
            "Top": {"name": "Top", "top": "true", "fields": {"a": inner, "b": inner}},
            "Node": {"name": "Node", "user": {"_om_label": "node"}, "fields": {
                "load": {"datum": "u64"},
                "nodes": inner,
            }},
        }));
        let node = json!({"0": {"load": 1, "nodes": {"1": {"load": 2, "nodes": {}}}}});
        let stats = json!({"a": node, "b": node});
        assert_eq!(
            flat(&meta, &stats),
            ["load{node=0} 1", "load{node=0,node_=1} 2"]
        );
    }

    #[test]
    fn fields_that_contradict_the_metadata_are_omitted() {
        let meta = meta(json!({
            "Top": {"name": "Top", "top": "true", "fields": {
                "a": {"datum": "u64"},
                "b": {"datum": {"struct": "Gone"}},
                "c": {"dict": {"key": "u64", "datum": "u64"}},
                "d": {"datum": "i64"},
            }},
        }));
        let stats = json!({"a": null, "b": {"x": 1}, "c": [1], "d": -1, "e": 2});
        assert_eq!(flat(&meta, &stats), ["d{} -1"]);
        assert_eq!(flatten(&meta[..0], &stats), None);
    }
}
