//! Pairs of threads that pass one byte back and forth through pipes, to measure the cost of a
//! context switch.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::thread::{sched_setaffinity, CpuSet};

use crate::control::{Control, Crew};
use crate::mover::usable_cpus;

/// The result of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rally {
    /// Round trips of the byte.
    pub round_trips: u64,
    /// Time from the start of the pair to its stop.
    pub elapsed: Duration,
}

/// The threads of all pairs.
pub(crate) struct Pairs {
    pingers: Crew<Rally>,
    pongers: Crew<()>,
}

impl Pairs {
    /// Waits for both threads of every pair.
    ///
    /// # Errors
    /// A thread failed.
    pub(crate) fn join(self) -> Result<Vec<Rally>> {
        let (rallies, echoes) = (self.pingers.join(), self.pongers.join());
        echoes.and(rallies)
    }
}

/// Adds `count` pairs. With `is_pinned`, each pair runs on one CPU, and pairs take CPUs in turn.
///
/// # Errors
/// The CPUs cannot be determined, or a pipe or a thread cannot be created.
pub(crate) fn hire(count: u32, is_pinned: bool, control: &Arc<Control>) -> Result<Pairs> {
    let cpus = if is_pinned {
        usable_cpus()?
    } else {
        Vec::new()
    };
    let mut cpus = cpus.iter().cycle();
    let mut pingers = Crew::new("pinger", control);
    let mut pongers = Crew::new("ponger", control);
    for _ in 0..count {
        let (their_reader, our_writer) = io::pipe().context("creating a pipe")?;
        let (our_reader, their_writer) = io::pipe().context("creating a pipe")?;
        let cpu = cpus.next().copied();
        pingers.hire(move |control| {
            pin(cpu)?;
            ping(our_writer, our_reader, control)
        })?;
        pongers.hire(move |_| {
            pin(cpu)?;
            pong(their_reader, their_writer)
        })?;
    }
    Ok(Pairs { pingers, pongers })
}

/// Pins the calling thread to a CPU, unless `cpu` is `None`.
fn pin(cpu: Option<usize>) -> Result<()> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).context("pinning a thread")
}

/// Sends the byte and waits for its return, repeatedly until the stop. The other thread ends when
/// this thread closes its pipes.
fn ping(mut to: PipeWriter, mut from: PipeReader, control: &Control) -> Result<Rally> {
    let start = Instant::now();
    let mut byte = [1];
    let mut round_trips = 0;
    while !control.is_stopped() {
        to.write_all(&byte).context("writing to a pipe")?;
        from.read_exact(&mut byte).context("reading from a pipe")?;
        round_trips += 1;
    }
    Ok(Rally {
        round_trips,
        elapsed: start.elapsed(),
    })
}

/// Echoes bytes until the end of file.
fn pong(mut from: PipeReader, mut to: PipeWriter) -> Result<()> {
    let mut byte = [0];
    while read(&mut from, &mut byte).context("reading from a pipe")? > 0 {
        to.write_all(&byte).context("writing to a pipe")?;
    }
    Ok(())
}

/// Reads the available bytes, regardless of signals. Returns 0 at the end of the file.
fn read(from: &mut PipeReader, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted() {
        let (mut from, to) = io::pipe().unwrap();
        let (back_from, mut back_to) = io::pipe().unwrap();
        let control = Control::default();
        let rally = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut byte = [0];
                for trip in 1..=3 {
                    from.read_exact(&mut byte).unwrap();
                    if trip == 3 {
                        control.stop();
                    }
                    back_to.write_all(&byte).unwrap();
                }
            });
            ping(to, back_from, &control).unwrap()
        });
        assert_eq!(rally.round_trips, 3);
        assert!(!rally.elapsed.is_zero());
    }

    #[test]
    fn pairs_end_at_the_stop() {
        let control = Arc::new(Control::stopping_after(10));
        for is_pinned in [false, true] {
            let rallies = hire(2, is_pinned, &control).unwrap().join().unwrap();
            let round_trips = rallies.iter().map(|rally| rally.round_trips);
            assert_eq!(round_trips.collect::<Vec<_>>(), [10, 10]);
        }
    }

    #[test]
    fn echo_ends_with_its_pipe() {
        let (from, mut to) = io::pipe().unwrap();
        let (mut back_from, back_to) = io::pipe().unwrap();
        to.write_all(b"abc").unwrap();
        drop(to);
        pong(from, back_to).unwrap();
        let mut echo = String::new();
        back_from.read_to_string(&mut echo).unwrap();
        assert_eq!(echo, "abc");
    }

    #[test]
    fn lost_peer_is_an_error() {
        let (from, to) = io::pipe().unwrap();
        let (other_from, other_to) = io::pipe().unwrap();
        drop((other_to, from));
        let control = Control::default();
        let error = ping(to, other_from, &control).unwrap_err();
        assert!(error.to_string().contains("pipe"), "{error}");
    }
}
