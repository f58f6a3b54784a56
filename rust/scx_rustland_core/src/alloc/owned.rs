// SPDX-License-Identifier: GPL-2.0-only
//! What only the owner of a heap does.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering;

use super::buddy::{Buddy, Links};
use super::{block_order, LockedHeap, ALIGN_MAX_BYTES, LEAF_BYTES};

/// A heap in the hands of the thread that owns it. There is one at a time: it lives for no longer
/// than one call of the allocator, and allocates nothing by itself.
pub(super) struct Owned<'a, const SIZE: usize> {
    heap: &'a LockedHeap<SIZE>,
    /// What is true of this thread is not true of another.
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

    /// What a new owner does first.
    pub(super) fn begin(&mut self) {
        if !self.heap.begun.swap(true, Ordering::Relaxed) {
            self.buddy().begin(Self::TABLES_LEAVES);
        }
        self.merge();
    }

    /// `None` if the arena has no such block.
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

    /// Makes the block that starts at `leaf` as small as it can be for `layout`; whether it is
    /// large enough.
    pub(super) fn fit(&mut self, leaf: u32, layout: Layout) -> bool {
        let order = block_order(layout);
        let before = self.buddy().shrink(leaf, order);
        let rest = before.map_or(0, |before| block_bytes(before) - block_bytes(order));
        self.heap.counters.sub_used(rest);
        before.is_some()
    }

    /// Frees what other threads have freed.
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
        // SAFETY: both are aligned, zero or as they were left, and in leaves that are never given
        // away. Only the owner gets here, and it borrows them once at a time: `self` is the one
        // handle, and it is borrowed as long.
        unsafe {
            let states = base.add(Self::LINKS_BYTES);
            Buddy::new(
                slice::from_raw_parts_mut(base.cast(), Self::NR_LINKS),
                slice::from_raw_parts_mut(states, Self::LEAVES),
            )
        }
    }
}

/// The size of a block of an order that the arena has.
fn block_bytes(order: u8) -> usize {
    LEAF_BYTES << order
}
