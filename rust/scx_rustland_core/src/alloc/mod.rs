// SPDX-License-Identifier: GPL-2.0-only
//! The memory allocator of the policy thread.
//!
//! That thread must not wait for a task that it has yet to schedule. The C library's allocator
//! takes locks that other threads hold, and makes system calls that take the kernel's. So the one
//! thread that claims a [`LockedHeap`] allocates from an arena of its own, without locks or system
//! calls, in time logarithmic in the arena's size. All other threads use the system's allocator,
//! and so does the owner when the arena is full: that is counted, and means that the arena is too
//! small.
//!
//! Memory may be freed by any thread. Arena blocks that other threads free are passed to the owner,
//! which reclaims them at its next allocation. System memory that the owner frees goes back to the
//! system, locks included: memory allocated by other threads, and by itself before the claim. The
//! latter moves to the arena when the owner reallocates it.
//!
//! Untouched pages of the arena take no memory. Their first touch is a page fault; a program that
//! must avoid faults locks its memory (`mlockall()`).

mod buddy;
mod owned;
mod remote;
mod stats;
#[cfg(test)]
mod tests;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use owned::Owned;
use remote::RemoteFrees;
use stats::Counters;
pub use stats::HeapStats;

/// The size of the smallest block: a cache line, so that two allocations never share one.
const LEAF_BYTES: usize = 64;

/// The alignment of the arena: the page size of most architectures.
const ALIGN_MAX_BYTES: usize = 4096;

/// The default arena. All of it is locked, so it is not generous: the rest comes from the system's
/// allocator.
const DEFAULT_SIZE: usize = 16 << 20;

/// Leaves are counted in 32 bits, followed by a list head for each order.
const SIZE_MAX: usize = LEAF_BYTES << 30;

/// The owner of a [`LockedHeap`] that has none.
const NO_OWNER: usize = 0;

thread_local! {
    /// Its address identifies the thread. It needs neither an allocation nor a destructor.
    static MARK: Cell<u8> = const { Cell::new(0) };
}

/// An allocator for programs in which one thread must never block: see the [module](self).
///
/// `SIZE` is that of the arena in bytes, a power of two. The block tables take a seventh of it, and
/// no block is larger than half of it. Block sizes are powers of two, at least 64 bytes. Larger
/// allocations, and those aligned to more than 4096 bytes, use the system's allocator and are
/// counted.
///
/// ```
/// use scx_rustland_core::alloc::LockedHeap;
///
/// #[global_allocator]
/// static HEAP: LockedHeap = LockedHeap::new();
///
/// let claim = HEAP.claim()?;
/// let numbers = vec![0_u8; 100];
/// assert_eq!(HEAP.stats().used_bytes, 128);
/// drop(numbers);
/// assert_eq!(HEAP.stats().used_bytes, 0);
/// # drop(claim);
/// # Ok::<(), scx_rustland_core::alloc::AlreadyClaimed>(())
/// ```
#[repr(C, align(4096))]
pub struct LockedHeap<const SIZE: usize = DEFAULT_SIZE> {
    /// First, so that it has the alignment of the struct.
    arena: UnsafeCell<[u8; SIZE]>,
    /// The mark of the owner, or `NO_OWNER`.
    owner: CacheLine<AtomicUsize>,
    /// Whether the tables of the arena are initialized. Used by the owner only.
    begun: AtomicBool,
    remote_frees: CacheLine<RemoteFrees>,
    counters: CacheLine<Counters>,
}

// SAFETY: the arena's tables are accessed by the owner only, of which there is one (`Owned`), and
// the rest of the arena by the users of its blocks. All else is atomic.
unsafe impl<const SIZE: usize> Sync for LockedHeap<SIZE> {}

// No `Default`: a heap on the stack is useless, and may be larger than the stack.
#[allow(clippy::new_without_default)]
impl<const SIZE: usize> LockedHeap<SIZE> {
    /// A heap without an owner. It is all zeroes: as a static it takes no space in the executable,
    /// and no memory until it is claimed.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(
                SIZE.is_power_of_two() && SIZE >= ALIGN_MAX_BYTES && SIZE <= SIZE_MAX,
                "the size of a heap is a power of two between 4 KiB and 64 GiB"
            );
        }
        Self {
            arena: UnsafeCell::new([0; SIZE]),
            owner: CacheLine(AtomicUsize::new(NO_OWNER)),
            begun: AtomicBool::new(false),
            remote_frees: CacheLine(RemoteFrees::new()),
            counters: CacheLine(Counters::new()),
        }
    }

    /// Makes the calling thread the owner until the guard is dropped. A thread may own several
    /// heaps. Its earlier allocations stay valid.
    ///
    /// # Errors
    ///
    /// If the heap has an owner, even if that is the calling thread.
    pub fn claim(&'static self) -> Result<Claim, AlreadyClaimed> {
        let owner: &'static AtomicUsize = &self.owner;
        owner
            .compare_exchange(NO_OWNER, mark(), Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| AlreadyClaimed)?;
        if let Some(mut owned) = Owned::of(self) {
            owned.begin();
        }
        Ok(Claim {
            owner,
            not_send: PhantomData,
        })
    }

    /// Usage of the arena. For any thread; the values may be of slightly different times.
    #[must_use]
    pub fn stats(&self) -> HeapStats {
        self.counters.read()
    }

    /// How often the arena was full when the owner allocated: [`HeapStats::overflows`].
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.stats().overflows
    }

    /// Exact although relaxed: only the calling thread itself can become the owner or cease to be.
    fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == mark()
    }

    fn base(&self) -> *mut u8 {
        self.arena.get().cast()
    }

    /// The leaf of an address, `None` if it is outside of the arena.
    fn leaf_of(&self, block: *mut u8) -> Option<u32> {
        let offset = block.addr().wrapping_sub(self.base().addr());
        u32::try_from(offset / LEAF_BYTES)
            .ok()
            .filter(|_| offset < SIZE)
    }

    /// Allocates from the arena. `None` if the calling thread is not the owner, or it is full.
    fn alloc_owned(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = Owned::of(self)?.alloc(layout);
        if block.is_none() {
            self.counters.add_overflow();
        }
        block
    }

    /// Whether the block at `leaf`, allocated for `before`, is large enough for `after`.
    fn fit(&self, leaf: u32, before: Layout, after: Layout) -> bool {
        match Owned::of(self) {
            Some(mut owned) => owned.fit(leaf, after),
            // Not the owner of the tables: the block may be larger than `before`, never smaller.
            None => block_order(after) <= block_order(before),
        }
    }

    /// Reallocates by copying. Returns null on failure, like `GlobalAlloc::realloc`.
    ///
    /// # Safety
    ///
    /// `block` was allocated by this heap for `before`.
    unsafe fn relocate(&self, block: *mut u8, before: Layout, after: Layout) -> *mut u8 {
        // SAFETY: the sizes are not 0, by contract. Both blocks are at least as large as the
        // smaller size, they are distinct, and the old one is valid by contract.
        unsafe {
            let new = self.alloc(after);
            if !new.is_null() {
                new.copy_from_nonoverlapping(block, before.size().min(after.size()));
                self.dealloc(block, before);
            }
            new
        }
    }
}

// SAFETY: blocks of the arena are disjoint (`Buddy`), large enough and aligned (`block_order`), and
// do not move: a claimed heap is a static. It unwinds only where debug assertions detect a double
// free.
unsafe impl<const SIZE: usize> GlobalAlloc for LockedHeap<SIZE> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.alloc_owned(layout) {
            Some(block) => block.as_ptr(),
            // SAFETY: the contract is the same.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(block) = self.alloc_owned(layout) else {
            // SAFETY: the contract is the same.
            return unsafe { System.alloc_zeroed(layout) };
        };
        // SAFETY: the block was just allocated and is large enough.
        unsafe { block.write_bytes(0, layout.size()) };
        block.as_ptr()
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match (self.leaf_of(block), Owned::of(self)) {
            // SAFETY: it is outside of the arena, so it was allocated by the system.
            (None, _) => unsafe { System.dealloc(block, layout) },
            (Some(leaf), Some(mut owned)) => owned.free(leaf),
            // SAFETY: it is at least a leaf, and the caller no longer uses it.
            (Some(_), None) => unsafe { self.remote_frees.push(block) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the layout is valid by contract.
        let after = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match self.leaf_of(block) {
            Some(leaf) if self.fit(leaf, layout, after) => block,
            // SAFETY: it is outside of the arena, so it was allocated by the system.
            None if !self.is_owner() => unsafe { System.realloc(block, layout, new_size) },
            // SAFETY: the block is valid for `layout` by contract.
            _ => unsafe { self.relocate(block, layout, after) },
        }
    }
}

impl<const SIZE: usize> fmt::Debug for LockedHeap<SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedHeap")
            .field("size", &SIZE)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// Ownership of a heap, until it is dropped.
#[derive(Debug)]
#[must_use = "the heap is given back when the claim is dropped"]
pub struct Claim {
    owner: &'static AtomicUsize,
    /// Ownership cannot be given up by another thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.owner.store(NO_OWNER, Ordering::Release);
    }
}

/// The heap has an owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AlreadyClaimed;

impl fmt::Display for AlreadyClaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the heap has an owner already")
    }
}

impl Error for AlreadyClaimed {}

/// On a cache line of its own, to avoid false sharing.
#[repr(align(64))]
struct CacheLine<T>(T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Identifies the calling thread among all live threads, and is not `NO_OWNER`. If an owner exits
/// without dropping its claim, the next thread with the same mark becomes the owner.
fn mark() -> usize {
    MARK.with(|mark| ptr::from_ref(mark).addr())
}

/// The order of the block for `layout`. Blocks are aligned to their size, up to the arena's
/// alignment.
fn block_order(layout: Layout) -> u8 {
    let bytes = layout.size().max(layout.align());
    buddy::order_of(bytes.div_ceil(LEAF_BYTES))
}
