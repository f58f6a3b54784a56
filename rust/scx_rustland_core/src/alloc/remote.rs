// SPDX-License-Identifier: GPL-2.0-only
//! Blocks freed by other threads, on their way back to the owner.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Stored at the start of a block between its free and its removal from the stack.
struct Freed {
    next: *mut Freed,
}

/// A lock-free stack that any thread pushes to, and that its single reader empties at once. Since
/// there is no pop of single blocks, there is no ABA problem.
pub(super) struct RemoteFrees {
    head: AtomicPtr<Freed>,
}

impl RemoteFrees {
    pub(super) const fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Passes a block to the owner.
    ///
    /// # Safety
    ///
    /// `block` points to at least 16 bytes, aligned to 16, and is unused until it is taken.
    pub(super) unsafe fn push(&self, block: *mut u8) {
        let block = block.cast::<Freed>();
        let mut next = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: large enough, aligned and unused, by contract; and not in the stack yet.
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

    /// Takes all blocks pushed so far. Dropping the iterator early leaks the rest.
    pub(super) fn take(&self) -> Taken {
        // The plain load does not take the cache line from pushers.
        let next = match self.head.load(Ordering::Relaxed).is_null() {
            true => ptr::null_mut(),
            false => self.head.swap(ptr::null_mut(), Ordering::Acquire),
        };
        Taken { next }
    }
}

/// Blocks taken from the stack.
pub(super) struct Taken {
    next: *mut Freed,
}

impl Iterator for Taken {
    type Item = *mut u8;

    fn next(&mut self) -> Option<*mut u8> {
        let block = self.next;
        // SAFETY: null or pushed: initialized before that, and not modified since.
        self.next = unsafe { block.as_ref() }?.next;
        Some(block.cast())
    }
}
