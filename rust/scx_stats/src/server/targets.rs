//! Answers requests, independent of sockets.

use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use crate::protocol::{
    answer_line, to_json, Args, Failure, Request, DEFAULT_TARGET, STATS, STATS_META, TARGET_ARG,
    TOTAL_ARG,
};
use crate::{MetaError, Registry, Source, Stats};

/// For each target, the snapshot of the connection's last answer or, before the first answer, the
/// initial snapshot. The next answer has the changes since then. For a target without a snapshot,
/// it has the totals of the counters.
pub(super) type Baselines = BTreeMap<Arc<str>, Snapshot>;

/// Type-erased statistics.
type Snapshot = Arc<dyn Any + Send + Sync>;

/// A type-erased source.
trait Target: Send {
    /// The initial snapshot for new clients. `None` if there are neither counters nor percentages,
    /// or if the source fails.
    fn baseline(&mut self) -> Option<Snapshot>;

    /// The changes since the snapshot `prev`, as JSON, and the new snapshot. Without `prev`, the
    /// totals.
    fn since(
        &mut self,
        args: &Args,
        prev: Option<&(dyn Any + Send + Sync)>,
    ) -> Result<(Vec<u8>, Snapshot), Failure>;

    /// Totals, as JSON.
    fn total(&mut self, args: &Args) -> Result<Vec<u8>, Failure>;
}

struct Erased<S> {
    source: S,
    has_counters: bool,
}

impl<S: Source> Erased<S> {
    fn read(&mut self, args: &Args) -> Result<S::Stats, Failure> {
        self.source.read(args).map_err(|error| failure(&*error))
    }
}

impl<S: Source> Target for Erased<S> {
    fn baseline(&mut self) -> Option<Snapshot> {
        if !self.has_counters {
            return None;
        }
        let snapshot = self.source.read(&Args::new()).ok()?;
        Some(Arc::new(snapshot))
    }

    fn since(
        &mut self,
        args: &Args,
        prev: Option<&(dyn Any + Send + Sync)>,
    ) -> Result<(Vec<u8>, Snapshot), Failure> {
        let cur = self.read(args)?;
        let prev = prev.and_then(|prev| prev.downcast_ref::<S::Stats>());
        let json = match prev {
            Some(prev) => json(&cur.since(prev))?,
            None => json(&cur)?,
        };
        Ok((json, Arc::new(cur)))
    }

    fn total(&mut self, args: &Args) -> Result<Vec<u8>, Failure> {
        json(&self.read(args)?)
    }
}

fn json<T: Serialize>(stats: &T) -> Result<Vec<u8>, Failure> {
    to_json(stats).map_err(|error| Failure::invalid(error.to_string()))
}

/// Converts an error and its causes. The errno is the first errno among these, or else EINVAL.
fn failure(error: &(dyn Error + 'static)) -> Failure {
    let mut failure = Failure::invalid(error.to_string());
    let mut errno = None;
    let mut cause = Some(error);
    while let Some(error) = cause {
        let found = error.downcast_ref().and_then(io::Error::raw_os_error);
        // Some libraries return negative errnos, like the kernel.
        errno = errno.or(found.map(i32::saturating_abs).filter(|&errno| errno != 0));
        cause = error.source();
        if let Some(cause) = cause {
            // Writing to a String does not fail.
            let _ = write!(failure.message, ": {cause}");
        }
    }
    failure.errno = errno.unwrap_or(failure.errno);
    failure
}

/// All targets.
#[derive(Default)]
pub(super) struct Targets {
    targets: BTreeMap<Arc<str>, Box<dyn Target>>,
    registry: Registry,
}

impl Targets {
    /// Adds a target. Returns whether its name was free.
    ///
    /// # Errors
    /// See [`MetaError`].
    pub(super) fn add<S: Source>(&mut self, name: &str, source: S) -> Result<bool, MetaError> {
        self.registry.add::<S::Stats>()?;
        let has_counters = has_counters::<S::Stats>();
        let target = Erased {
            source,
            has_counters,
        };
        let old = self.targets.insert(Arc::from(name), Box::new(target));
        Ok(old.is_none())
    }

    /// The initial snapshots of a connection. A source that fails is left out: the counters of its
    /// first answer then count from zero.
    pub(super) fn baselines(&mut self) -> Baselines {
        let targets = self.targets.iter_mut();
        targets
            .filter_map(|(name, target)| Some((Arc::clone(name), target.baseline()?)))
            .collect()
    }

    /// Answers a request line.
    pub(super) fn answer(&mut self, line: &[u8], baselines: &mut Baselines) -> Vec<u8> {
        answer_line(self.payload(line, baselines))
    }

    fn payload(&mut self, line: &[u8], baselines: &mut Baselines) -> Result<Vec<u8>, Failure> {
        let request: Request = serde_json::from_slice(line)
            .map_err(|error| Failure::invalid(format!("not a request: {error}")))?;
        match request.req.as_str() {
            STATS => self.stats(&request.args, baselines),
            STATS_META => json(&self.registry),
            other => Err(Failure::invalid(format!("unknown request {other:?}"))),
        }
    }

    fn stats(&mut self, args: &Args, baselines: &mut Baselines) -> Result<Vec<u8>, Failure> {
        let name = args.get(TARGET_ARG).map_or(DEFAULT_TARGET, String::as_str);
        let Some(target) = self.targets.get_mut(name) else {
            return Err(Failure::invalid(format!("unknown target {name:?}")));
        };
        if is_total(args)? {
            return target.total(args);
        }
        let prev = baselines.get(name).map(Arc::as_ref);
        let (json, cur) = target.since(args, prev)?;
        baselines.insert(Arc::from(name), cur);
        Ok(json)
    }
}

fn is_total(args: &Args) -> Result<bool, Failure> {
    match args.get(TOTAL_ARG).map(String::as_str) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Failure::invalid(format!(
            "{TOTAL_ARG} is {other:?}, neither true nor false"
        ))),
    }
}

/// Whether `T` or a struct that it contains has counters or percentages.
fn has_counters<T: Stats>() -> bool {
    let mut registry = Registry::default();
    let _ = registry.add::<T>();
    registry.has_counters()
}
