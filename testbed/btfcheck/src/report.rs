//! The result as a table for people, as JSON and as Test Anything Protocol.

use std::io::{self, Write};

use serde_json::{json, Map, Value};

use crate::check::{Checked, Outcome, Totals};

/// The whole result.
pub(crate) struct Report<'a> {
    /// The kernels' names.
    pub kernels: Vec<&'a str>,
    /// The objects' paths.
    pub objects: Vec<&'a str>,
    /// Every extern of every object, grouped by object.
    pub checked: &'a [Checked],
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Absent => "absent",
            Self::Incompatible(_) => "incompatible",
        }
    }
}

impl Report<'_> {
    /// Writes an aligned table for each object, with the findings below each
    /// extern, and a line of totals.
    ///
    /// # Errors
    /// `out` fails.
    pub(crate) fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        for object in &self.objects {
            writeln!(out, "{object}")?;
            self.write_object(out, object)?;
            writeln!(out)?;
        }
        let Totals { externs, faulty } = Totals::of(self.checked);
        let kernels = self.kernels.len();
        writeln!(
            out,
            "{externs} externs, {kernels} kernels, {faulty} externs with findings"
        )
    }

    fn write_object(&self, out: &mut dyn Write, object: &str) -> io::Result<()> {
        let externs: Vec<_> = self.checked.iter().filter(|c| c.object == object).collect();
        if externs.is_empty() {
            return writeln!(out, "  no kfunc externs");
        }
        let mut header = vec!["EXTERN", "BINDING"];
        header.extend(&self.kernels);
        let mut rows = vec![header];
        for one in &externs {
            let mut row = vec![one.name.as_str(), binding(one)];
            row.extend(one.outcomes.iter().map(|outcome| outcome.word()));
            rows.push(row);
        }
        let lines = align(&rows);
        writeln!(out, "  {}", lines[0])?;
        for (line, one) in lines[1..].iter().zip(externs) {
            writeln!(out, "  {line}")?;
            for finding in &one.findings {
                writeln!(out, "    ! {finding}")?;
            }
        }
        Ok(())
    }

    /// Writes one JSON document.
    ///
    /// # Errors
    /// `out` fails.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let document = json!({
            "kernels": self.kernels,
            "totals": Totals::of(self.checked),
            "externs": self.checked.iter().map(|c| self.extern_json(c)).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }

    fn extern_json(&self, one: &Checked) -> Value {
        let outcome = |outcome: &Outcome| match outcome {
            Outcome::Incompatible(why) => {
                json!({ "status": outcome.word(), "why": why.to_string() })
            }
            _ => json!({ "status": outcome.word() }),
        };
        let kernels = self.kernels.iter().zip(&one.outcomes);
        let kernels: Map<String, Value> = kernels
            .map(|(name, o)| ((*name).to_string(), outcome(o)))
            .collect();
        json!({
            "object": one.object,
            "name": one.name,
            "lookup": one.lookup,
            "binding": binding(one),
            "kernels": kernels,
            "findings": one.findings,
        })
    }

    /// Writes one test point per extern.
    ///
    /// # Errors
    /// `out` fails.
    pub(crate) fn write_tap(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "TAP version 13")?;
        match self.checked.len() {
            0 => writeln!(out, "1..0 # SKIP no kfunc externs")?,
            points => writeln!(out, "1..{points}")?,
        }
        for (index, one) in self.checked.iter().enumerate() {
            let verdict = if one.findings.is_empty() {
                "ok"
            } else {
                "not ok"
            };
            let object = one.object.rsplit('/').next().unwrap_or(&one.object);
            // A `#` would start a directive.
            let object = object.replace('#', "_");
            writeln!(out, "{verdict} {} - {object}: {}", index + 1, one.name)?;
            for finding in &one.findings {
                writeln!(out, "# {}: {finding}", one.name)?;
            }
        }
        Ok(())
    }
}

fn binding(one: &Checked) -> &'static str {
    if one.is_weak {
        "weak"
    } else {
        "strong"
    }
}

/// Pads the cells of each column to the same width; the last column is left ragged.
fn align(rows: &[Vec<&str>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max();
    let widths: Vec<_> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths);
            let line: Vec<_> = cells.map(|(cell, &w)| format!("{cell:<w$}")).collect();
            line.join("  ").trim_end().to_string()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::Mismatch;

    fn externs() -> Vec<Checked> {
        let void_for_bool = Mismatch::Return {
            local: "bool".to_string(),
            kernel: "void".to_string(),
        };
        let one = |name: &str, outcomes: &[Outcome], findings: &[&str]| Checked {
            object: "out/x.bpf.o".to_string(),
            name: name.to_string(),
            lookup: "f".to_string(),
            is_weak: true,
            outcomes: outcomes.to_vec(),
            findings: findings.iter().map(ToString::to_string).collect(),
        };
        vec![
            one("f", &[Outcome::Absent, Outcome::Ok], &[]),
            one(
                "f___longer",
                &[Outcome::Incompatible(void_for_bool), Outcome::Ok],
                &["incompatible with 6.12: returns bool, kernel returns void"],
            ),
        ]
    }

    fn render(write: impl Fn(&Report<'_>, &mut dyn Write) -> io::Result<()>) -> String {
        let checked = externs();
        let report = Report {
            kernels: vec!["6.12", "7.2"],
            objects: vec!["out/x.bpf.o", "empty.bpf.o"],
            checked: &checked,
        };
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_is_aligned() {
        let want = "\
out/x.bpf.o
  EXTERN      BINDING  6.12          7.2
  f           weak     absent        ok
  f___longer  weak     incompatible  ok
    ! incompatible with 6.12: returns bool, kernel returns void

empty.bpf.o
  no kfunc externs

2 externs, 2 kernels, 1 externs with findings
";
        assert_eq!(render(|report, out| report.write_table(out)), want);
    }

    #[test]
    fn tap_has_one_point_per_extern() {
        let want = "\
TAP version 13
1..2
ok 1 - x.bpf.o: f
not ok 2 - x.bpf.o: f___longer
# f___longer: incompatible with 6.12: returns bool, kernel returns void
";
        assert_eq!(render(|report, out| report.write_tap(out)), want);
    }

    #[test]
    fn json_tells_everything() {
        let json: Value =
            serde_json::from_str(&render(|report, out| report.write_json(out))).unwrap();
        assert_eq!(json["totals"], json!({ "externs": 2, "faulty": 1 }));
        assert_eq!(json["externs"][0]["kernels"]["6.12"]["status"], "absent");
        let wrong = &json["externs"][1]["kernels"]["6.12"];
        assert_eq!(wrong["status"], "incompatible");
        assert_eq!(wrong["why"], "returns bool, kernel returns void");
        assert_eq!(json["externs"][1]["binding"], "weak");
    }
}
