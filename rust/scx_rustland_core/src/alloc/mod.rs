// SPDX-License-Identifier: GPL-2.0-only
//! The memory of the thread that schedules.
//!
//! That thread must not wait for a task that it has yet to schedule. The C library's allocator
//! takes locks that other threads hold, and makes system calls that take the kernel's. So the one
//! thread that has claimed a [`LockedHeap`] gets its memory from an arena that nobody else
//! allocates from, without a lock or a system call, in time that is logarithmic in the arena's
//! size. All other threads get theirs from the system, and so does the owner when the arena has no
//! room: that is counted, and means that the arena is too small.
//!
//! Memory may be freed by any thread. What other threads free of the arena, they hand over to the
//! owner, which takes it back with its next allocation. What the owner frees of the system's goes
//! back there, locks included: what others have allocated, and what it has itself before the
//! claim. That moves to the arena when the owner reallocates it.
//!
//! Pages of the arena that nobody has touched take no memory. Their first touch is a page fault;
//! a program that can have none locks its memory (`mlockall()`).

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

/// The size of the smallest block: a cache line, so that two allocations share none.
const LEAF_BYTES: usize = 64;

/// The alignment of the arena: a page, of the size that all architectures but few have.
const ALIGN_MAX_BYTES: usize = 4096;

/// The arena of a heap whose size is not chosen. All of it is locked, so it is not generous: what
/// does not fit comes from the system's allocator.
const DEFAULT_SIZE: usize = 16 << 20;

/// Leaves are counted in 32 bits, and a list for each order comes after them.
const SIZE_MAX: usize = LEAF_BYTES << 30;

/// What [`LockedHeap`] has for an owner when there is none.
const NOBODY: usize = 0;

thread_local! {
    /// Its address tells threads apart. It needs neither an allocation nor a destructor.
    static MARK: Cell<u8> = const { Cell::new(0) };
}

/// An allocator for programs in which one thread must never wait: see the [module](self).
///
/// `SIZE` is that of the arena in bytes, a power of two. A seventh of it is taken by the tables of
/// blocks, and no block is larger than half of it. Blocks have sizes of powers of two, 64 bytes at
/// least. What does not fit, and what is aligned to more than 4096 bytes, is given by the system's
/// allocator, and counted.
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
    /// First of all, so that it is aligned as the whole.
    arena: UnsafeCell<[u8; SIZE]>,
    /// The mark of the owner, or `NOBODY`.
    owner: CacheLine<AtomicUsize>,
    /// Whether the tables of the arena are in use. For the owner.
    begun: AtomicBool,
    remote_frees: CacheLine<RemoteFrees>,
    counters: CacheLine<Counters>,
}

// SAFETY: the arena's tables are for the owner alone, of which there is one (`Owned`), and the rest
// of the arena for those that its blocks were given to. All else is atomic.
unsafe impl<const SIZE: usize> Sync for LockedHeap<SIZE> {}

// There is no `Default`: a heap on the stack is of no use, and may be larger than that.
#[allow(clippy::new_without_default)]
impl<const SIZE: usize> LockedHeap<SIZE> {
    /// A heap without an owner. All of it is zero: as a static, it takes no room in the program,
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
            owner: CacheLine(AtomicUsize::new(NOBODY)),
            begun: AtomicBool::new(false),
            remote_frees: CacheLine(RemoteFrees::new()),
            counters: CacheLine(Counters::new()),
        }
    }

    /// Makes the calling thread the owner, until the guard is dropped. It may own several heaps.
    /// What it has allocated by then stays valid.
    ///
    /// # Errors
    ///
    /// The heap has an owner, be it the calling thread.
    pub fn claim(&'static self) -> Result<Claim, AlreadyClaimed> {
        let owner: &'static AtomicUsize = &self.owner;
        owner
            .compare_exchange(NOBODY, mark(), Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| AlreadyClaimed)?;
        if let Some(mut owned) = Owned::of(self) {
            owned.begin();
        }
        Ok(Claim {
            owner,
            not_send: PhantomData,
        })
    }

    /// How much of the arena is in use. For any thread; the numbers may be of different moments.
    #[must_use]
    pub fn stats(&self) -> HeapStats {
        self.counters.read()
    }

    /// How often the arena had no room for the owner: [`HeapStats::overflows`].
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.stats().overflows
    }

    /// Exact, though relaxed: it is only the calling thread that makes itself the owner, or ceases
    /// to be it.
    fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == mark()
    }

    fn base(&self) -> *mut u8 {
        self.arena.get().cast()
    }

    /// The leaf of an address. `None` if it is not the arena's.
    fn leaf_of(&self, block: *mut u8) -> Option<u32> {
        let offset = block.addr().wrapping_sub(self.base().addr());
        u32::try_from(offset / LEAF_BYTES)
            .ok()
            .filter(|_| offset < SIZE)
    }

    /// Memory of the arena. `None` if that is not for the calling thread, or has none.
    fn alloc_owned(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = Owned::of(self)?.alloc(layout);
        if block.is_none() {
            self.counters.add_overflow();
        }
        block
    }

    /// Whether the block at `leaf`, which was allocated for `before`, will do for `after`.
    fn fit(&self, leaf: u32, before: Layout, after: Layout) -> bool {
        match Owned::of(self) {
            Some(mut owned) => owned.fit(leaf, after),
            // The tables are not for us. It may be larger than this, but never smaller.
            None => block_order(after) <= block_order(before),
        }
    }

    /// Reallocates by copying. As `GlobalAlloc::realloc`, null included.
    ///
    /// # Safety
    ///
    /// `block` was allocated by this heap for `before`.
    unsafe fn relocate(&self, block: *mut u8, before: Layout, after: Layout) -> *mut u8 {
        // SAFETY: the caller's sizes are not 0. Both blocks are as large as the smaller one, they
        // are different, and the old one is as the caller says.
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

// SAFETY: blocks of the arena are in use once at a time (`Buddy`), large enough and aligned
// (`block_order`), and stay where they are: who claims the heap cannot move it. It never unwinds,
// but where debug assertions find memory that was freed twice.
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
        // SAFETY: the block is ours, and large enough.
        unsafe { block.write_bytes(0, layout.size()) };
        block.as_ptr()
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match (self.leaf_of(block), Owned::of(self)) {
            // SAFETY: it is not of the arena, so the system gave it.
            (None, _) => unsafe { System.dealloc(block, layout) },
            (Some(leaf), Some(mut owned)) => owned.free(leaf),
            // SAFETY: a leaf at least, and the caller is done with it.
            (Some(_), None) => unsafe { self.remote_frees.push(block) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller has checked that such a layout exists.
        let after = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match self.leaf_of(block) {
            Some(leaf) if self.fit(leaf, layout, after) => block,
            // SAFETY: it is not of the arena, so the system gave it.
            None if !self.is_owner() => unsafe { System.realloc(block, layout, new_size) },
            // SAFETY: the caller's block, and this is what it is to become.
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

/// Holds a heap for the thread that has claimed it, until it is dropped.
#[derive(Debug)]
#[must_use = "the heap is given back when the claim is dropped"]
pub struct Claim {
    owner: &'static AtomicUsize,
    /// Another thread cannot give back what is not its own.
    not_send: PhantomData<*const ()>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.owner.store(NOBODY, Ordering::Release);
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

/// On a cache line of its own: what one thread writes does not slow down what others read.
#[repr(align(64))]
struct CacheLine<T>(T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The calling thread's: not that of another thread that lives, and not `NOBODY`. A heap whose
/// owner has ended and forgotten its claim has the next thread of the same mark for an owner.
fn mark() -> usize {
    MARK.with(|mark| ptr::from_ref(mark).addr())
}

/// The order of the block for `layout`. Blocks are aligned to their own size, up to the arena's
/// alignment.
fn block_order(layout: Layout) -> u8 {
    let bytes = layout.size().max(layout.align());
    buddy::order_of(bytes.div_ceil(LEAF_BYTES))
}
