//! Groups of threads that send messages through pipes, to measure the cost of many wakeups. Each
//! sender sends messages to each receiver of its group.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::control::{Control, Crew};

/// Number of senders, and of receivers, in a group.
const HALF: usize = 4;

/// The length of a message, bytes. Pipes write messages of this length atomically.
const MESSAGE_BYTES: usize = 100;

/// The result of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mail {
    /// Number of messages.
    pub messages: u64,
    /// Time from the start of the receiver until all senders had closed the pipe.
    pub elapsed: Duration,
}

/// The threads of all groups.
pub(crate) struct Groups {
    senders: Crew<()>,
    receivers: Crew<Mail>,
}

impl Groups {
    /// Waits for all threads.
    ///
    /// # Errors
    /// A thread failed.
    pub(crate) fn join(self) -> Result<Vec<Mail>> {
        let (sent, mail) = (self.senders.join(), self.receivers.join());
        sent.and(mail)
    }
}

/// Adds `count` groups of 8 threads.
///
/// # Errors
/// A pipe or a thread cannot be created.
pub(crate) fn hire(count: u32, control: &Arc<Control>) -> Result<Groups> {
    let mut senders = Crew::new("sender", control);
    let mut receivers = Crew::new("receiver", control);
    for _ in 0..count {
        let mut boxes = Vec::new();
        for _ in 0..HALF {
            let (from, to) = io::pipe().context("creating a pipe")?;
            boxes.push(to);
            receivers.hire(move |_| receive(from))?;
        }
        for _ in 0..HALF {
            let copies = boxes.iter().map(PipeWriter::try_clone);
            let boxes = copies.collect::<io::Result<Vec<_>>>();
            let boxes = boxes.context("copying a pipe")?;
            senders.hire(move |control| send(boxes, control))?;
        }
    }
    Ok(Groups { senders, receivers })
}

fn send(mut boxes: Vec<PipeWriter>, control: &Control) -> Result<()> {
    let message = [0; MESSAGE_BYTES];
    while !control.is_stopped() {
        for to in &mut boxes {
            to.write_all(&message).context("writing to a pipe")?;
        }
    }
    Ok(())
}

/// Reads messages until all senders have closed the pipe.
fn receive(mut from: PipeReader) -> Result<Mail> {
    let start = Instant::now();
    let mut message = [0; MESSAGE_BYTES];
    let mut messages = 0;
    loop {
        match from.read_exact(&mut message) {
            Ok(()) => messages += 1,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error).context("reading from a pipe"),
        }
    }
    Ok(Mail {
        messages,
        elapsed: start.elapsed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_receiver_gets_messages_and_all_end() {
        let control = Arc::new(Control::stopping_after(2));
        let mail = hire(2, &control).unwrap().join().unwrap();
        assert_eq!(mail.len(), 2 * HALF);
        let messages = mail.iter().map(|mail| mail.messages);
        assert!(messages.eq([2 * HALF as u64; 2 * HALF]), "{mail:?}");
    }

    #[test]
    fn messages_are_counted_until_the_last_sender_is_gone() {
        let (from, mut to) = io::pipe().unwrap();
        let copy = to.try_clone().unwrap();
        to.write_all(&[0; 3 * MESSAGE_BYTES]).unwrap();
        drop(to);
        let control = Control::default();
        control.stop();
        // The control is stopped, so this sends no message, but closes the pipe.
        send(vec![copy], &control).unwrap();
        assert_eq!(receive(from).unwrap().messages, 3);
    }
}
