//! Threads that serve requests of one client thread, as the workers of a server do, to measure
//! latency and throughput of requests.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::clock::use_cpu;
use crate::control::{Control, Crew};
use crate::locks::{Locks, Sharing};
use crate::mover::usable_cpus;
use crate::stats::Latencies;

/// Parts of a request. If there are locks, the worker takes its lock once for each part.
const PARTS: u32 = 5;

/// The workers, and what they do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staff {
    /// Number of workers.
    pub count: u32,
    /// CPU time per request.
    pub work: Duration,
    /// Which workers share a lock. A worker holds its lock while it computes.
    pub sharing: Sharing,
}

/// The result of the client.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// Time from sending a request until reading its answer.
    pub latencies: Latencies,
    /// Time for which the client sent requests.
    pub elapsed: Duration,
}

/// The client and the workers.
pub(crate) struct Servers {
    workers: Crew<()>,
    clients: Crew<Service>,
}

impl Servers {
    /// Waits for all threads; `None` without workers.
    ///
    /// # Errors
    /// A thread failed.
    pub(crate) fn join(self) -> Result<Option<Service>> {
        let (services, workers) = (self.clients.join(), self.workers.join());
        workers.and(services).map(|mut services| services.pop())
    }
}

/// An answer is the number of the worker that sends it.
type Answer = usize;

/// Adds the workers and a client. The client sends each worker one request at a time, and the next
/// request after it has read the answer.
///
/// # Errors
/// The CPUs cannot be determined, or a thread cannot be created.
pub(crate) fn hire(staff: Staff, control: &Arc<Control>) -> Result<Servers> {
    let mut workers = Crew::new("worker", control);
    let mut clients = Crew::new("client", control);
    let (answer, answers) = channel();
    let mut desks = Vec::new();
    let count = staff.count as usize;
    let nr_cpu_ids = usable_cpus()?.last().map_or(0, |last| last + 1);
    let locks = Arc::new(Locks::new(staff.sharing, count, nr_cpu_ids));
    for number in 0..count {
        let (request, requests) = channel();
        let (answer, locks) = (answer.clone(), Arc::clone(&locks));
        workers.hire(move |_| {
            let work = || compute(number, staff.work, &locks);
            serve(number, work, &requests, &answer)
        })?;
        desks.push(request);
    }
    if count > 0 {
        clients.hire(move |control| Ok(ask(&desks, &answers, control)))?;
    }
    Ok(Servers { workers, clients })
}

/// The work of a request.
fn compute(number: usize, work: Duration, locks: &Locks) -> Result<()> {
    for _ in 0..PARTS {
        let _held = locks.hold(number);
        use_cpu(work / PARTS)?;
    }
    Ok(())
}

/// Serves requests until the client closes the channel.
fn serve(
    number: usize,
    work: impl Fn() -> Result<()>,
    requests: &Receiver<()>,
    answer: &Sender<Answer>,
) -> Result<()> {
    while requests.recv().is_ok() {
        work()?;
        if answer.send(number).is_err() {
            break;
        }
    }
    Ok(())
}

/// Sends requests, so that every worker is busy until the stop.
fn ask(desks: &[Sender<()>], answers: &Receiver<Answer>, control: &Control) -> Service {
    let start = Instant::now();
    let mut asked_at = vec![start; desks.len()];
    let mut latencies = Latencies::new();
    // Sending fails only if the worker has failed, which stops all threads.
    let request = |worker: usize, asked_at: &mut [Instant]| {
        asked_at[worker] = Instant::now();
        desks[worker].send(()).is_ok()
    };
    let mut goes_on = (0..desks.len()).all(|worker| request(worker, &mut asked_at));
    while goes_on && !control.is_stopped() {
        let Ok(worker) = answers.recv() else { break };
        latencies.record(asked_at[worker].elapsed());
        goes_on = request(worker, &mut asked_at);
    }
    Service {
        latencies,
        elapsed: start.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(count: u32, work: Duration, sharing: Sharing) -> Option<Service> {
        let control = Arc::new(Control::stopping_after(10));
        let staff = Staff {
            count,
            work,
            sharing,
        };
        hire(staff, &control).unwrap().join().unwrap()
    }

    #[test]
    fn requests_are_counted_and_take_their_time() {
        let work = Duration::from_micros(200);
        for sharing in [Sharing::None, Sharing::Cpu, Sharing::Group] {
            let service = served(3, work, sharing).unwrap();
            assert_eq!(service.latencies.count(), 10, "{service:?}");
            assert!(service.latencies.max() >= Some(work));
            assert!(service.elapsed >= work);
        }
    }

    #[test]
    fn each_worker_gets_a_request_and_one_after_each_answer() {
        let (desks, requests): (Vec<_>, Vec<_>) = (0..3).map(|_| channel()).unzip();
        let (answer, answers) = channel();
        for worker in [2, 0, 2] {
            answer.send(worker).unwrap();
        }
        drop(answer);
        let service = ask(&desks, &answers, &Control::default());
        assert_eq!(service.latencies.count(), 3);
        let nr_requests = requests.iter().map(|requests| requests.try_iter().count());
        assert_eq!(nr_requests.collect::<Vec<_>>(), [2, 1, 3]);
    }

    #[test]
    fn without_workers_nothing_is_served() {
        assert!(served(0, Duration::ZERO, Sharing::Cpu).is_none());
    }
}
