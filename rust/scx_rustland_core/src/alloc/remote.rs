// SPDX-License-Identifier: GPL-2.0-only
//! Blocks that were freed by a thread that does not own them, on their way back to the owner.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a block's first bytes are from when it is freed until it is taken.
struct Freed {
    next: *mut Freed,
}

/// A stack that any thread pushes to, and that its one reader empties at once. Nobody waits for
/// anybody. That a block is pushed again while somebody else is about to push does no harm: only
/// single pops suffer from that.
pub(super) struct RemoteFrees {
    head: AtomicPtr<Freed>,
}

impl RemoteFrees {
    pub(super) const fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Hands over a block.
    ///
    /// # Safety
    ///
    /// A pointer to at least 16 bytes at a multiple of 16, which nobody uses until they are taken.
    pub(super) unsafe fn push(&self, block: *mut u8) {
        let block = block.cast::<Freed>();
        let mut next = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: large enough, aligned and ours, says the caller; and not yet in the stack.
            unsafe { block.write(Freed { next }) };
            let pushed =
                self.head
                    .compare_exchange_weak(next, block, Ordering::Release, Ordering::Relaxed);
            match pushed {
                Ok(_) => return,
                Err(now) => next = now,
            }
        }
    }

    /// All blocks that were handed over so far. Those that are not asked for are lost.
    pub(super) fn take(&self) -> Taken {
        // A load alone leaves the cache line to those that push.
        let next = match self.head.load(Ordering::Relaxed).is_null() {
            true => ptr::null_mut(),
            false => self.head.swap(ptr::null_mut(), Ordering::Acquire),
        };
        Taken { next }
    }
}

/// Blocks that were taken from the stack.
pub(super) struct Taken {
    next: *mut Freed,
}

impl Iterator for Taken {
    type Item = *mut u8;

    fn next(&mut self) -> Option<*mut u8> {
        let block = self.next;
        // SAFETY: null, or pushed: written before that, and untouched since.
        self.next = unsafe { block.as_ref() }?.next;
        Some(block.cast())
    }
}
