// SPDX-License-Identifier: GPL-2.0-only
//! Operations reserved to the owner of a heap.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering;

use super::buddy::{Buddy, Links};
use super::{block_order, LockedHeap, ALIGN_MAX_BYTES, LEAF_BYTES};

/// Access to a heap by its owner. There is one at a time: it lives during one call of the
/// allocator, and does not allocate itself.
pub(super) struct Owned<'a, const SIZE: usize> {
    heap: &'a LockedHeap<SIZE>,
    /// Ownership is a property of the thread.
    not_send: PhantomData<*const ()>,
}

impl<'a, const SIZE: usize> Owned<'a, SIZE> {
    const LEAVES: usize = SIZE / LEAF_BYTES;
    /// The tables are at the start of the arena: links, then states, which need no alignment.
    const NR_LINKS: usize = Buddy::links_for(Self::LEAVES);
    const LINKS_BYTES: usize = Self::NR_LINKS * size_of::<Links>();
    const TABLES_LEAVES: usize = (Self::LINKS_BYTES + Self::LEAVES).div_ceil(LEAF_BYTES);

    /// `None` if the calling thread does not own the heap.
    pub(super) fn of(heap: &'a LockedHeap<SIZE>) -> Option<Self> {
        heap.is_owner().then_some(Self {
            heap,
            not_send: PhantomData,
        })
    }

    /// Called by each new owner.
    pub(super) fn begin(&mut self) {
        if !self.heap.begun.swap(true, Ordering::Relaxed) {
            self.buddy().begin(Self::TABLES_LEAVES);
        }
        self.merge();
    }

    /// `None` if no free block of the arena is large enough.
    pub(super) fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        self.merge();
        if layout.align() > ALIGN_MAX_BYTES {
            return None;
        }
        let order = block_order(layout);
        let leaf = self.buddy().alloc(order)?;
        self.heap.counters.add_used(block_bytes(order));
        // SAFETY: the leaf is one of the arena's.
        NonNull::new(unsafe { self.heap.base().add(leaf as usize * LEAF_BYTES) })
    }

    /// Frees the block that starts at `leaf`.
    pub(super) fn free(&mut self, leaf: u32) {
        let order = self.buddy().free(leaf);
        debug_assert!(order.is_some(), "freed twice, or never allocated");
        self.heap.counters.sub_used(order.map_or(0, block_bytes));
    }

    /// Shrinks the block at `leaf` as far as `layout` allows; returns whether it is large enough.
    pub(super) fn fit(&mut self, leaf: u32, layout: Layout) -> bool {
        let order = block_order(layout);
        let before = self.buddy().shrink(leaf, order);
        let rest = before.map_or(0, |before| block_bytes(before) - block_bytes(order));
        self.heap.counters.sub_used(rest);
        before.is_some()
    }

    /// Frees the blocks that other threads have passed back.
    fn merge(&mut self) {
        for block in self.heap.remote_frees.take() {
            match self.heap.leaf_of(block) {
                Some(leaf) => self.free(leaf),
                None => debug_assert!(false, "only blocks of the arena are handed over"),
            }
        }
    }

    fn buddy(&mut self) -> Buddy<'_> {
        let base = self.heap.base();
        // SAFETY: both slices are aligned, initialized (to zero at first), and in reserved leaves.
        // Only the owner gets here, and the tables are borrowed once at a time, because `self` is
        // the only handle and is borrowed as long.
        unsafe {
            let states = base.add(Self::LINKS_BYTES);
            Buddy::new(
                slice::from_raw_parts_mut(base.cast(), Self::NR_LINKS),
                slice::from_raw_parts_mut(states, Self::LEAVES),
            )
        }
    }
}

/// The size of a block of the given order.
fn block_bytes(order: u8) -> usize {
    LEAF_BYTES << order
}
