//! Starts and stops all threads at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{anyhow, Context, Result};

/// Start and stop of a run.
#[derive(Debug, Default)]
pub(crate) struct Control {
    start: OnceLock<()>,
    stop: AtomicBool,
    /// Held while `stop` changes, so that no waiter on `stopped` misses the change.
    lock: Mutex<()>,
    stopped: Condvar,
    /// In tests, the number of checks after which a thread sees the stop.
    #[cfg(test)]
    checks_max: Option<u32>,
}

impl Control {
    /// Lets the threads begin.
    pub(crate) fn start(&self) {
        self.start.get_or_init(|| ());
    }

    /// Stops all threads. Threads that have not started end at once.
    pub(crate) fn stop(&self) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.store(true, Ordering::Relaxed);
        self.stopped.notify_all();
        drop(guard);
        self.start();
    }

    /// Whether threads should stop. This is a relaxed load, which is cheap enough for any loop.
    pub(crate) fn is_stopped(&self) -> bool {
        #[cfg(test)]
        if self.has_no_check_left() {
            return true;
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until the stop, but no longer than `timeout`. Returns whether threads should stop.
    pub(crate) fn wait_for_stop(&self, timeout: Duration) -> bool {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self
            .stopped
            .wait_timeout_while(guard, timeout, |()| !self.is_stopped());
        drop(result);
        self.is_stopped()
    }

    /// Sleeps until `moment`, or until the stop. Returns whether threads should stop.
    pub(crate) fn sleep_until(&self, moment: Instant) -> bool {
        self.wait_for_stop(moment.saturating_duration_since(Instant::now()))
    }
}

/// The threads of a kind of load. Each thread returns a `T`.
pub(crate) struct Crew<T> {
    kind: &'static str,
    control: Arc<Control>,
    threads: Vec<JoinHandle<Result<T>>>,
}

impl<T: Send + 'static> Crew<T> {
    /// A crew without threads, called `kind` in messages.
    pub(crate) fn new(kind: &'static str, control: &Arc<Control>) -> Self {
        Self {
            kind,
            control: Arc::clone(control),
            threads: Vec::new(),
        }
    }

    /// Adds a thread that waits for the start, then runs `work`. If `work` fails, all threads of
    /// all crews are stopped.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn hire<W>(&mut self, work: W) -> Result<()>
    where
        W: FnOnce(&Control) -> Result<T> + Send + 'static,
    {
        let control = Arc::clone(&self.control);
        let thread = Builder::new().name(self.kind.to_string()).spawn(move || {
            control.start.wait();
            let result = work(&control);
            if result.is_err() {
                control.stop();
            }
            result
        });
        let number = self.threads.len() + 1;
        let thread = thread.with_context(|| format!("starting {} {number}", self.kind))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits for all threads. Returns their results, in the order in which the threads were
    /// created.
    ///
    /// # Errors
    /// The error of the first thread that failed, in the order in which the threads were created.
    pub(crate) fn join(self) -> Result<Vec<T>> {
        let kind = self.kind;
        let results = self.threads.into_iter().map(|thread| {
            let result = thread.join().unwrap_or_else(|_| Err(anyhow!("panicked")));
            result.with_context(|| kind.to_string())
        });
        // Join all threads before checking results.
        results.collect::<Vec<_>>().into_iter().collect()
    }
}

/// Stops threads after a number of checks. If a test stopped threads after some time, the result
/// would depend on when the threads begin.
#[cfg(test)]
mod by_count {
    use std::cell::Cell;

    use super::Control;

    thread_local! {
        static NR_CHECKS: Cell<u32> = const { Cell::new(0) };
    }

    impl Control {
        /// A started control that stops each thread after the thread has checked `checks` times.
        pub(crate) fn stopping_after(checks: u32) -> Self {
            let control = Self {
                checks_max: Some(checks),
                ..Self::default()
            };
            control.start();
            control
        }

        pub(super) fn has_no_check_left(&self) -> bool {
            let Some(max) = self.checks_max else {
                return false;
            };
            NR_CHECKS.replace(NR_CHECKS.get() + 1) >= max
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn results_are_in_order() {
        let control = Arc::new(Control::default());
        let mut crew = Crew::new("counter", &control);
        for number in 0..4 {
            crew.hire(move |_| Ok(number)).unwrap();
        }
        control.start();
        assert_eq!(crew.join().unwrap(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_failure_stops_the_others() {
        let control = Arc::new(Control::default());
        let mut crew = Crew::new("worker", &control);
        crew.hire(|control| {
            control.wait_for_stop(LONG);
            Ok(())
        })
        .unwrap();
        crew.hire(|_| Err(anyhow!("no luck"))).unwrap();
        control.start();
        assert!(control.wait_for_stop(LONG));
        assert_eq!(format!("{:#}", crew.join().unwrap_err()), "worker: no luck");
    }

    #[test]
    fn stop_releases_threads_that_did_not_start() {
        let control = Arc::new(Control::default());
        let mut crew = Crew::new("worker", &control);
        crew.hire(|control| Ok(control.is_stopped())).unwrap();
        control.stop();
        assert_eq!(crew.join().unwrap(), [true]);
    }

    #[test]
    fn sleeps_end_in_time() {
        let control = Control::default();
        let start = Instant::now();
        let nap = Duration::from_millis(20);
        assert!(!control.wait_for_stop(nap));
        assert!(!control.sleep_until(start));
        assert!(start.elapsed() >= nap);
    }
}
