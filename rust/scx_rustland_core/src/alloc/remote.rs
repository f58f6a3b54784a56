// SPDX-License-Identifier: GPL-2.0-only
//! Blocks that other threads have freed, until the owner reclaims them.

use std::alloc::Layout;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An entry of the stack [`RemoteFrees`], stored at the start of the freed block.
struct Freed {
    next: *mut Freed,
    size: u32,
    align_log2: u32,
}

/// Every block of an arena has room for this layout, so that any thread can pass the block back.
pub(super) const MIN: Layout = Layout::new::<Freed>();

/// A lock-free stack that any thread pushes to. Its single reader takes all blocks in one
/// operation. There is no ABA problem, because blocks are never popped one by one.
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
    /// `block` has room for [`MIN`], and no thread accesses it until the owner takes it.
    pub(super) unsafe fn push(&self, block: *mut u8, layout: Layout) {
        // The size fits, because no block is larger than an arena.
        let size = u32::try_from(layout.size()).unwrap_or(u32::MAX);
        let align_log2 = layout.align().trailing_zeros();
        let block = block.cast::<Freed>();
        let mut next = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: by contract, the block is large enough, aligned and unused. It is not in the
            // stack yet.
            unsafe {
                block.write(Freed {
                    next,
                    size,
                    align_log2,
                });
            }
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
        // Swap only if the stack is not empty, because a swap takes the cache line from the threads
        // that push.
        let next = match self.head.load(Ordering::Relaxed).is_null() {
            true => ptr::null_mut(),
            false => self.head.swap(ptr::null_mut(), Ordering::Acquire),
        };
        Taken { next }
    }
}

/// Blocks taken from the stack, with the layouts they were allocated for.
pub(super) struct Taken {
    next: *mut Freed,
}

impl Iterator for Taken {
    type Item = (*mut u8, Layout);

    fn next(&mut self) -> Option<(*mut u8, Layout)> {
        let block = self.next;
        // SAFETY: the pointer is null, or `push` has initialized the entry, which has not been
        // modified since.
        let freed = unsafe { block.as_ref() }?;
        self.next = freed.next;
        let layout = Layout::from_size_align(freed.size as usize, 1 << freed.align_log2).ok()?;
        Some((block.cast(), layout))
    }
}
