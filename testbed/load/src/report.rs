//! The figures of a run, as text and as JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::client::Market;
use crate::group::Mail;
use crate::periodic::Outcome;
use crate::pipe::Rally;
use crate::request::Service;
use crate::stats::{to_f64, Latencies, Spread};

/// All figures. Kinds of load that did not run are `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// How long the load ran.
    pub elapsed_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hogs: Option<Hogs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleepers: Option<Sleepers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipes: Option<Pipes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forks: Option<Forks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storms: Option<Storms>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periodic: Option<Periodic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub movers: Option<Movers>,
}

/// CPU time of hogs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Hogs {
    pub count: usize,
    pub cpu_min_s: f64,
    pub cpu_mean_s: f64,
    pub cpu_max_s: f64,
    /// Each hog's CPU time.
    pub cpu_s: Vec<f64>,
}

impl Hogs {
    /// Computes the figures from the hogs' CPU times.
    pub(crate) fn new(times: &[Duration]) -> Option<Self> {
        let cpu_s: Vec<_> = times.iter().map(Duration::as_secs_f64).collect();
        let spread = Spread::of(&cpu_s)?;
        Some(Self {
            count: times.len(),
            cpu_min_s: spread.min,
            cpu_mean_s: spread.mean,
            cpu_max_s: spread.max,
            cpu_s,
        })
    }
}

impl fmt::Display for Hogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, .. } = self;
        let (min, mean, max) = (self.cpu_min_s, self.cpu_mean_s, self.cpu_max_s);
        write!(
            f,
            "{count} threads, CPU time of each: \
             mean {mean:.3} s, min {min:.3} s, max {max:.3} s"
        )
    }
}

/// Wakeup latency of sleepers. The latencies are `None` without a wakeup.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sleepers {
    pub count: usize,
    pub sleep_us: u32,
    pub work_us: u32,
    pub wakeups: u64,
    pub lateness_p50_us: Option<f64>,
    pub lateness_p99_us: Option<f64>,
    pub lateness_max_us: Option<f64>,
}

impl Sleepers {
    /// Computes the figures from the latencies of all sleepers.
    pub(crate) fn new(lateness: &[Latencies], sleep_us: u32, work_us: u32) -> Option<Self> {
        let all = Latencies::merged(lateness);
        (!lateness.is_empty()).then(|| Self {
            count: lateness.len(),
            sleep_us,
            work_us,
            wakeups: all.count(),
            lateness_p50_us: all.percentile(50).map(micros),
            lateness_p99_us: all.percentile(99).map(micros),
            lateness_max_us: all.max().map(micros),
        })
    }
}

impl fmt::Display for Sleepers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} threads, {} wakeups, late by p50 {}, p99 {}, max {}",
            self.count,
            self.wakeups,
            Figure(self.lateness_p50_us, 1, "us"),
            Figure(self.lateness_p99_us, 1, "us"),
            Figure(self.lateness_max_us, 1, "us"),
        )
    }
}

/// Throughput of pipes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Pipes {
    pub pairs: usize,
    /// Total number of round trips.
    pub round_trips: u64,
    /// Total rate of the pairs.
    pub round_trips_per_s: f64,
    /// Rate of the slowest pair.
    pub pair_min_per_s: f64,
    /// Rate of the fastest pair.
    pub pair_max_per_s: f64,
}

impl Pipes {
    /// Computes the figures from the results of the pairs.
    pub(crate) fn new(rallies: &[Rally]) -> Option<Self> {
        let rates: Vec<_> = rallies
            .iter()
            .map(|rally| per_s(rally.round_trips, rally.elapsed))
            .collect();
        let spread = Spread::of(&rates)?;
        Some(Self {
            pairs: rallies.len(),
            round_trips: rallies.iter().map(|rally| rally.round_trips).sum(),
            round_trips_per_s: rates.iter().sum(),
            pair_min_per_s: spread.min,
            pair_max_per_s: spread.max,
        })
    }
}

impl fmt::Display for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pairs, {:.0} round trips/s, slowest pair {:.0}/s, fastest {:.0}/s",
            self.pairs, self.round_trips_per_s, self.pair_min_per_s, self.pair_max_per_s
        )
    }
}

/// Latency of processes, from start to exit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Forks {
    /// The requested rate.
    pub target_per_s: u32,
    pub done: u64,
    pub spawn_p50_ms: Option<f64>,
    pub spawn_p99_ms: Option<f64>,
    pub spawn_max_ms: Option<f64>,
}

impl Forks {
    /// Computes the figures from the latencies of all processes.
    pub(crate) fn new(latencies: &[Latencies], target_per_s: u32) -> Option<Self> {
        let all = Latencies::merged(latencies);
        (!latencies.is_empty()).then(|| Self {
            target_per_s,
            done: all.count(),
            spawn_p50_ms: all.percentile(50).map(millis),
            spawn_p99_ms: all.percentile(99).map(millis),
            spawn_max_ms: all.max().map(millis),
        })
    }
}

impl fmt::Display for Forks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} done, start to end p50 {}, p99 {}, max {}",
            self.done,
            Figure(self.spawn_p50_ms, 2, "ms"),
            Figure(self.spawn_p99_ms, 2, "ms"),
            Figure(self.spawn_max_ms, 2, "ms"),
        )
    }
}

/// Processes started by storms: threads that start processes as fast as possible.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Storms {
    pub count: usize,
    pub done: u64,
    pub done_per_s: f64,
}

impl Storms {
    /// Computes the figures from the number of processes that each thread has started in `elapsed`.
    pub(crate) fn new(started: &[u64], elapsed: Duration) -> Option<Self> {
        let done = started.iter().sum();
        (!started.is_empty()).then(|| Self {
            count: started.len(),
            done,
            done_per_s: to_f64(done) / elapsed.as_secs_f64(),
        })
    }
}

impl fmt::Display for Storms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, .. } = self;
        write!(f, "{count} threads, {:.0} processes/s", self.done_per_s)
    }
}

/// Completion of periodic work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Periodic {
    pub count: usize,
    /// Periods with completed work, in time or not.
    pub done: u64,
    /// Periods in which no work was completed.
    pub missed: u64,
    /// Missed periods, % of all periods.
    pub missed_percent: f64,
    /// Time from the start of a period to the completion of its work.
    pub done_after_p50_ms: Option<f64>,
    pub done_after_p99_ms: Option<f64>,
    /// The longest time between two successive completions of work.
    pub gap_max_ms: f64,
}

impl Periodic {
    /// Computes the figures from the results of the threads.
    pub(crate) fn new(outcomes: &[Outcome]) -> Option<Self> {
        let all = Latencies::merged(outcomes.iter().map(|outcome| &outcome.done_after));
        let late: u64 = outcomes.iter().map(|outcome| outcome.missed).sum();
        let gap_max = outcomes.iter().map(|outcome| outcome.gap_max).max()?;
        Some(Self {
            count: outcomes.len(),
            done: all.count(),
            missed: late,
            missed_percent: 100.0 * to_f64(late) / to_f64((all.count() + late).max(1)),
            done_after_p50_ms: all.percentile(50).map(millis),
            done_after_p99_ms: all.percentile(99).map(millis),
            gap_max_ms: millis(gap_max),
        })
    }
}

impl fmt::Display for Periodic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} threads, {} periods done, {} missed ({:.1} %), done after p50 {}, p99 {}, \
             longest gap {:.2} ms",
            self.count,
            self.done,
            self.missed,
            self.missed_percent,
            Figure(self.done_after_p50_ms, 2, "ms"),
            Figure(self.done_after_p99_ms, 2, "ms"),
            self.gap_max_ms,
        )
    }
}

/// Latency and throughput of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Requests {
    pub done: u64,
    pub done_per_s: f64,
    /// Time from sending a request until reading its answer.
    pub latency_p50_ms: Option<f64>,
    pub latency_p99_ms: Option<f64>,
    pub latency_max_ms: Option<f64>,
}

impl Requests {
    /// Computes the figures from the results of a service.
    pub(crate) fn new(service: &Service) -> Self {
        let latencies = &service.latencies;
        Self {
            done: latencies.count(),
            done_per_s: per_s(latencies.count(), service.elapsed),
            latency_p50_ms: latencies.percentile(50).map(millis),
            latency_p99_ms: latencies.percentile(99).map(millis),
            latency_max_ms: latencies.max().map(millis),
        }
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} requests/s, answered after p50 {}, p99 {}, max {}",
            self.done_per_s,
            Figure(self.latency_p50_ms, 2, "ms"),
            Figure(self.latency_p99_ms, 2, "ms"),
            Figure(self.latency_max_ms, 2, "ms"),
        )
    }
}

/// CPU time of clients and of their server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Clients {
    pub count: usize,
    /// Requests of all clients.
    pub requests: u64,
    /// Each client's CPU time.
    pub cpu_s: Vec<f64>,
    pub server_cpu_s: f64,
    /// The longest gap of a client (`Served::gap_max`).
    pub gap_max_ms: f64,
    /// Requests whose reply came after the end of their period.
    pub missed: u64,
    /// Time from the moment when a request was due until its reply, if clients wait for replies.
    pub latency_p50_ms: Option<f64>,
    pub latency_p99_ms: Option<f64>,
    pub latency_max_ms: Option<f64>,
}

impl Clients {
    /// Computes the figures from the results of all clients.
    pub(crate) fn new(market: &Market) -> Self {
        let clients = &market.clients;
        let latencies: Vec<_> = clients.iter().map(|one| one.latencies.clone()).collect();
        let latencies = Latencies::merged(&latencies);
        Self {
            count: clients.len(),
            requests: clients.iter().map(|one| one.requests).sum(),
            cpu_s: clients.iter().map(|one| one.cpu.as_secs_f64()).collect(),
            server_cpu_s: market.server_cpu.as_secs_f64(),
            gap_max_ms: clients
                .iter()
                .map(|one| millis(one.gap_max))
                .fold(0.0, f64::max),
            missed: clients.iter().map(|one| one.missed).sum(),
            latency_p50_ms: latencies.percentile(50).map(millis),
            latency_p99_ms: latencies.percentile(99).map(millis),
            latency_max_ms: latencies.max().map(millis),
        }
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} threads, {} requests, CPU time: clients {:.3} s, server {:.3} s; longest gap {:.2} \
             ms, {} missed, answered after p50 {}, p99 {}, max {}",
            self.count,
            self.requests,
            self.cpu_s.iter().sum::<f64>(),
            self.server_cpu_s,
            self.gap_max_ms,
            self.missed,
            Figure(self.latency_p50_ms, 2, "ms"),
            Figure(self.latency_p99_ms, 2, "ms"),
            Figure(self.latency_max_ms, 2, "ms"),
        )
    }
}

/// Throughput of messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Groups {
    /// Number of receiving threads.
    pub receivers: usize,
    pub messages: u64,
    pub messages_per_s: f64,
}

impl Groups {
    /// Computes the figures from the results of all receivers.
    pub(crate) fn new(mail: &[Mail]) -> Option<Self> {
        let elapsed = mail.iter().map(|mail| mail.elapsed).max()?;
        let messages = mail.iter().map(|mail| mail.messages).sum();
        Some(Self {
            receivers: mail.len(),
            messages,
            messages_per_s: per_s(messages, elapsed),
        })
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { receivers, .. } = self;
        write!(
            f,
            "{receivers} receivers, {:.0} messages/s",
            self.messages_per_s
        )
    }
}

/// Affinity changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Movers {
    pub count: usize,
    pub changes: u64,
    pub changes_per_s: f64,
}

impl Movers {
    /// Computes the figures from the number of changes that each mover has made in `elapsed`.
    pub(crate) fn new(changes: &[u64], elapsed: Duration) -> Option<Self> {
        let all = changes.iter().sum();
        (!changes.is_empty()).then(|| Self {
            count: changes.len(),
            changes: all,
            changes_per_s: to_f64(all) / elapsed.as_secs_f64(),
        })
    }
}

impl fmt::Display for Movers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, .. } = self;
        write!(f, "{count} threads, {:.0} changes/s", self.changes_per_s)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: [(&str, Option<&dyn fmt::Display>); 10] = [
            ("hogs", self.hogs.as_ref().map(|kind| kind as _)),
            ("sleepers", self.sleepers.as_ref().map(|kind| kind as _)),
            ("pipes", self.pipes.as_ref().map(|kind| kind as _)),
            ("forks", self.forks.as_ref().map(|kind| kind as _)),
            ("storms", self.storms.as_ref().map(|kind| kind as _)),
            ("periodic", self.periodic.as_ref().map(|kind| kind as _)),
            ("requests", self.requests.as_ref().map(|kind| kind as _)),
            ("clients", self.clients.as_ref().map(|kind| kind as _)),
            ("groups", self.groups.as_ref().map(|kind| kind as _)),
            ("movers", self.movers.as_ref().map(|kind| kind as _)),
        ];
        for (name, kind) in kinds {
            if let Some(kind) = kind {
                writeln!(f, "{name:<9} {kind}")?;
            }
        }
        Ok(())
    }
}

/// A figure that may be absent, with its decimals and unit.
struct Figure(Option<f64>, usize, &'static str);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(Some(value), decimals, unit) => write!(f, "{value:.decimals$} {unit}"),
            Self(None, ..) => write!(f, "-"),
        }
    }
}

fn micros(latency: Duration) -> f64 {
    nanos(latency) / 1e3
}

fn millis(latency: Duration) -> f64 {
    nanos(latency) / 1e6
}

fn nanos(latency: Duration) -> f64 {
    to_f64(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX))
}

/// Rate per second; 0 if no time has elapsed.
fn per_s(count: u64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() {
        return 0.0;
    }
    to_f64(count) / elapsed.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use crate::client::Served;

    use super::*;

    fn report() -> Report {
        let mut lateness = Latencies::new();
        lateness.record(Duration::from_micros(50));
        let rally = |round_trips| Rally {
            round_trips,
            elapsed: Duration::from_secs(2),
        };
        let mut took = Latencies::new();
        took.record(Duration::from_millis(7));
        let outcome = Outcome {
            done_after: took.clone(),
            missed: 3,
            gap_max: Duration::from_millis(20),
        };
        let service = Service {
            latencies: took,
            elapsed: Duration::from_millis(500),
        };
        let served = |cpu_s, gap_max_ms| Served {
            cpu: Duration::from_secs(cpu_s),
            requests: 10,
            missed: 1,
            gap_max: Duration::from_millis(gap_max_ms),
            latencies: Latencies::new(),
        };
        let market = Market {
            clients: vec![served(1, 30), served(2, 20)],
            server_cpu: Duration::from_secs(1),
        };
        let mail = |messages, seconds| Mail {
            messages,
            elapsed: Duration::from_secs(seconds),
        };
        let hogs = [Duration::from_secs(1), Duration::from_secs(2)];
        Report {
            elapsed_s: 2.0,
            hogs: Hogs::new(&hogs),
            sleepers: Sleepers::new(&[lateness, Latencies::new()], 5000, 200),
            pipes: Pipes::new(&[rally(2000), rally(1000)]),
            forks: Forks::new(&[Latencies::new()], 10),
            storms: Storms::new(&[5, 6], Duration::from_secs(2)),
            periodic: Periodic::new(&[outcome]),
            requests: Some(Requests::new(&service)),
            clients: Some(Clients::new(&market)),
            groups: Groups::new(&[mail(10, 1), mail(20, 2)]),
            movers: Movers::new(&[3, 4], Duration::from_secs(2)),
        }
    }

    #[test]
    fn one_line_per_kind() {
        let want = "\
hogs      2 threads, CPU time of each: mean 1.500 s, min 1.000 s, max 2.000 s
sleepers  2 threads, 1 wakeups, late by p50 50.0 us, p99 50.0 us, max 50.0 us
pipes     2 pairs, 1500 round trips/s, slowest pair 500/s, fastest 1000/s
forks     0 done, start to end p50 -, p99 -, max -
storms    2 threads, 6 processes/s
periodic  1 threads, 1 periods done, 3 missed (75.0 %), done after p50 7.00 ms, \
        p99 7.00 ms, longest gap 20.00 ms
requests  2 requests/s, answered after p50 7.00 ms, p99 7.00 ms, max 7.00 ms
clients   2 threads, 20 requests, CPU time: clients 3.000 s, server 1.000 s; longest gap \
        30.00 ms, 2 missed, answered after p50 -, p99 -, max -
groups    2 receivers, 15 messages/s
movers    2 threads, 4 changes/s
";
        assert_eq!(report().to_string(), want);
    }

    #[test]
    fn kinds_that_did_not_run_are_left_out() {
        let none = Report {
            elapsed_s: 1.0,
            hogs: Hogs::new(&[]),
            sleepers: Sleepers::new(&[], 1, 1),
            pipes: Pipes::new(&[]),
            forks: Forks::new(&[], 0),
            storms: Storms::new(&[], Duration::from_secs(1)),
            periodic: Periodic::new(&[]),
            requests: None,
            clients: None,
            groups: Groups::new(&[]),
            movers: Movers::new(&[], Duration::from_secs(1)),
        };
        assert_eq!(none.to_string(), "");
        let json = serde_json::to_string(&none).unwrap();
        assert_eq!(json, r#"{"elapsed_s":1.0}"#);
    }

    #[test]
    fn json_has_the_same_figures() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["hogs"]["cpu_s"], serde_json::json!([1.0, 2.0]));
        assert_eq!(json["sleepers"]["lateness_max_us"], 50.0);
        assert_eq!(json["pipes"]["round_trips"], 3000);
        assert_eq!(json["forks"]["spawn_p50_ms"], serde_json::Value::Null);
        assert_eq!(json["movers"]["changes_per_s"], 3.5);
    }

    #[test]
    fn rate_without_elapsed_time_is_zero() {
        assert!(per_s(3, Duration::ZERO).abs() < f64::EPSILON);
    }
}
