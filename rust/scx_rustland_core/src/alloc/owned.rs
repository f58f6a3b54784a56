// SPDX-License-Identifier: GPL-2.0-only
//! Operations that only the owner of a heap may call.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use rlsf::Tlsf;

use super::{remote, LockedHeap};

/// The free blocks of a heap, in size classes: 28 powers of two, each divided into 16 classes. So
/// blocks are smaller than 32 << 28 bytes, which is more than any arena has.
pub(super) type Arena = Tlsf<'static, u32, u16, 28, 16>;

/// Access to a heap by its owner. Only one `Owned` exists at a time, because each exists only
/// during one call of the allocator or of `claim`, and its methods call neither of them.
pub(super) struct Owned<'a, const SIZE: usize> {
    heap: &'a LockedHeap<SIZE>,
    /// Only the owner's thread may use this value.
    not_send: PhantomData<*const ()>,
}

impl<'a, const SIZE: usize> Owned<'a, SIZE> {
    /// `None` if the calling thread does not own the heap.
    pub(super) fn of(heap: &'a LockedHeap<SIZE>) -> Option<Self> {
        heap.is_owner().then_some(Self {
            heap,
            not_send: PhantomData,
        })
    }

    /// Adds the memory to the arena if this is the first owner, and frees the blocks that other
    /// threads have passed back. Each new owner calls this before it allocates. The heap must be a
    /// static.
    pub(super) fn begin(&mut self) {
        if !self.heap.begun.swap(true, Ordering::Relaxed) {
            if let Some(base) = NonNull::new(self.heap.base()) {
                let memory = NonNull::slice_from_raw_parts(base, SIZE);
                // SAFETY: the memory belongs to a static, and is used through the arena only.
                unsafe { self.arena().insert_free_block_ptr(memory) };
            }
        }
        self.merge();
    }

    /// Allocates a block. `None` if no free block of the arena is large enough.
    pub(super) fn alloc(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        self.merge();
        let block = self.arena().allocate(block_layout(layout))?;
        self.heap.counters.add_used(layout.size());
        Some(block)
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `block` is in use, and was allocated for `layout`.
    pub(super) unsafe fn free(&mut self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: by contract.
            unsafe { self.arena().deallocate(block, block_layout(layout).align()) };
            self.heap.counters.sub_used(layout.size());
        }
    }

    /// Resizes a block, and moves it if necessary. If no block of the arena is large enough,
    /// returns `None` and leaves the block unchanged.
    ///
    /// # Safety
    ///
    /// `block` is in use, and was allocated for `before`, which has the alignment of `after`.
    pub(super) unsafe fn resize(
        &mut self,
        block: *mut u8,
        before: Layout,
        after: Layout,
    ) -> Option<NonNull<u8>> {
        // SAFETY: by contract.
        let block = unsafe {
            self.arena()
                .reallocate(NonNull::new(block)?, block_layout(after))
        };
        self.heap
            .counters
            .sub_used(block.map_or(0, |_| before.size()));
        self.heap
            .counters
            .add_used(block.map_or(0, |_| after.size()));
        block
    }

    /// Frees the blocks that other threads have passed back.
    fn merge(&mut self) {
        for (block, layout) in self.heap.remote_frees.take() {
            // SAFETY: only blocks of the arena are passed back, with their layouts.
            unsafe { self.free(block, layout) };
        }
    }

    fn arena(&mut self) -> &mut Arena {
        // SAFETY: only the owner calls this. The arena is borrowed only once at a time, because
        // `self` is the only handle and is borrowed for as long as the arena.
        unsafe { &mut *self.heap.arena.get() }
    }
}

/// The layout of a block in the arena: at least [`remote::MIN`], so that another thread can pass
/// the block back.
fn block_layout(layout: Layout) -> Layout {
    let size = layout.size().max(remote::MIN.size());
    let align = layout.align().max(remote::MIN.align());
    Layout::from_size_align(size, align).unwrap_or(layout)
}
