//! Percentages, computed from two counters: a part and the whole.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Datum, Kind, MetaError, Registry};

/// The percentage of events that are of some kind; 0 if there are no events. The difference of two
/// snapshots is the percentage of the events between the snapshots. Clients see a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Percent {
    /// What a [`Source`](crate::Source) returns: counters.
    Of {
        /// Events of the kind, usually at most `whole`.
        part: u64,
        /// All events.
        whole: u64,
    },
    /// What a client reads: the percentage.
    Read(f64),
}

impl Percent {
    /// The percentage that `part` is of `whole`; both are counters.
    #[must_use]
    pub fn of(part: u64, whole: u64) -> Self {
        Self::Of { part, whole }
    }

    /// The percentage; 0 if `whole` is 0, and more than 100 if `part` exceeds `whole`.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Relative errors of at most 2^-53.
    pub fn get(&self) -> f64 {
        match *self {
            Self::Of { whole: 0, .. } => 0.0,
            Self::Of { part, whole } => 100.0 * part as f64 / whole as f64,
            Self::Read(percent) => percent,
        }
    }
}

impl Default for Percent {
    fn default() -> Self {
        Self::of(0, 0)
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::Read)
    }
}

impl Datum for Percent {
    fn kind() -> Kind {
        Kind::Float
    }

    fn register(registry: &mut Registry) -> Result<(), MetaError> {
        registry.add_percent();
        Ok(())
    }

    fn since(&self, prev: &Self) -> Self {
        match (*self, *prev) {
            (
                Self::Of { part, whole },
                Self::Of {
                    part: part_before,
                    whole: whole_before,
                },
            ) => Self::of(
                part.saturating_sub(part_before),
                whole.saturating_sub(whole_before),
            ),
            _ => *self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentage_is_of_what_happened_in_between() {
        let since = Percent::of(60, 100).since(&Percent::of(50, 80));
        assert!((since.get() - 50.0).abs() < 1e-9);
        assert_eq!(serde_json::to_string(&since).unwrap(), "50.0");
        let read: Percent = serde_json::from_str("50.0").unwrap();
        assert!((read.get() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn of_nothing_none_are() {
        let since = Percent::of(60, 100).since(&Percent::of(60, 100));
        assert_eq!(serde_json::to_string(&since).unwrap(), "0.0");
        assert!(Percent::default().get().abs() < 1e-9);
        // The counters of a restarted scheduler start at zero.
        assert!(Percent::of(1, 2).since(&Percent::of(50, 80)).get().abs() < 1e-9);
    }
}
