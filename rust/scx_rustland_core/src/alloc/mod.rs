// SPDX-License-Identifier: GPL-2.0-only
//! The memory allocator of the policy thread.
//!
//! That thread must not wait for a task that it has yet to schedule. The C library's allocator
//! takes locks that other threads may hold, and makes system calls, which take locks of the kernel.
//! So the thread that claims a [`LockedHeap`], its owner, allocates from a private arena, without
//! locks or system calls. The arena allocates in constant time (TLSF, of the crate rlsf). All other
//! threads use the system's allocator. So does the owner when the arena is full. Such allocations
//! of the owner are counted, and mean that the arena is too small.
//!
//! Any thread may free memory. Arena blocks that other threads free are passed to the owner, which
//! reclaims them at its next allocation. A block of the system's allocator (allocated by another
//! thread, before the claim, or while the arena was full) goes back to that allocator, which takes
//! its locks, even if the owner frees the block. If the owner reallocates such a block, the block
//! moves to the arena, unless the arena is full.
//!
//! Pages of the arena that were never touched take no memory. The first access to a page is a page
//! fault. A program that must avoid page faults locks its memory (`mlockall()`).

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

use owned::{Arena, Owned};
use remote::RemoteFrees;
use stats::Counters;
pub use stats::HeapStats;

/// The default size of an arena, in bytes. It is small, because all of the arena is locked memory.
/// When the arena is full, the owner uses the system's allocator.
const DEFAULT_SIZE: usize = 16 << 20;

/// The limits of an arena's size, in bytes: the size of a page, and the largest block size that
/// [`RemoteFrees`] can store.
const SIZE_MIN: usize = 4096;
const SIZE_MAX: usize = u32::MAX as usize;

/// The value of `LockedHeap::owner` while there is no owner.
const NO_OWNER: usize = 0;

thread_local! {
    /// The address of this variable identifies the thread. The variable needs neither an allocation
    /// nor a destructor.
    static MARK: Cell<u8> = const { Cell::new(0) };
}

/// An allocator for programs in which one thread must never block (see the [module](self)).
///
/// `SIZE` is the size of the arena in bytes. Each block takes 16 bytes more than its size, rounded
/// up to a multiple of 32, and more if its alignment is 32 or above. If no free block is large
/// enough for an allocation of the owner, the system's allocator is used, and the allocation is
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
/// assert_eq!(HEAP.stats().used_bytes, 100);
/// drop(numbers);
/// assert_eq!(HEAP.stats().used_bytes, 0);
/// # drop(claim);
/// # Ok::<(), scx_rustland_core::alloc::AlreadyClaimed>(())
/// ```
#[repr(C, align(4096))]
pub struct LockedHeap<const SIZE: usize = DEFAULT_SIZE> {
    /// The first member, so that it has the alignment of the struct.
    memory: UnsafeCell<[u8; SIZE]>,
    /// The free blocks of the memory.
    arena: UnsafeCell<Arena>,
    /// The mark of the owner, or `NO_OWNER`.
    owner: CacheLine<AtomicUsize>,
    /// Whether the memory has been added to the arena. Only the owner uses this.
    begun: AtomicBool,
    remote_frees: CacheLine<RemoteFrees>,
    counters: CacheLine<Counters>,
}

// SAFETY: only the owner, of which there is one (`Owned`), accesses the arena and the headers of
// its blocks. Only the users of the blocks access the rest of the memory. All other fields are
// atomic.
unsafe impl<const SIZE: usize> Sync for LockedHeap<SIZE> {}

// There is no `Default`: `default()` is not const, so it cannot initialize a static. A heap that is
// not a static cannot be claimed, and on the stack it may be larger than the stack.
#[allow(clippy::new_without_default)]
impl<const SIZE: usize> LockedHeap<SIZE> {
    /// A heap without an owner. All of its bytes are 0, so as a static it takes no space in the
    /// executable, and its pages take no memory until they are touched or locked.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(
                SIZE >= SIZE_MIN && SIZE <= SIZE_MAX,
                "the size of a heap is between 4 KiB and 4 GiB"
            );
        }
        Self {
            memory: UnsafeCell::new([0; SIZE]),
            arena: UnsafeCell::new(Arena::new()),
            owner: CacheLine(AtomicUsize::new(NO_OWNER)),
            begun: AtomicBool::new(false),
            remote_frees: CacheLine(RemoteFrees::new()),
            counters: CacheLine(Counters::new()),
        }
    }

    /// Makes the calling thread the owner until the claim is dropped. Allocations that the thread
    /// has made before stay valid. A thread may own several heaps.
    ///
    /// # Errors
    ///
    /// If the heap has an owner, even if the owner is the calling thread.
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

    /// Usage of the arena. Any thread may call this. The values may be of slightly different times.
    #[must_use]
    pub fn stats(&self) -> HeapStats {
        self.counters.read()
    }

    /// How often the arena was full when the owner allocated ([`HeapStats::overflows`]).
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.stats().overflows
    }

    /// Whether the calling thread is the owner. A relaxed load is enough, because only the calling
    /// thread itself can claim or give up its ownership.
    fn is_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == mark()
    }

    fn base(&self) -> *mut u8 {
        self.memory.get().cast()
    }

    /// Whether a block is in the arena.
    fn contains(&self, block: *mut u8) -> bool {
        block.addr().wrapping_sub(self.base().addr()) < SIZE
    }

    /// Allocates from the arena. `None` if the arena is full, or if the calling thread is not the
    /// owner.
    fn alloc_owned(&self, layout: Layout) -> Option<NonNull<u8>> {
        let block = Owned::of(self)?.alloc(layout);
        if block.is_none() {
            self.counters.add_overflow();
        }
        block
    }

    /// Reallocates by copying. Returns null on failure, like `GlobalAlloc::realloc`.
    ///
    /// # Safety
    ///
    /// `block` was allocated by this heap for `before`.
    unsafe fn relocate(&self, block: *mut u8, before: Layout, after: Layout) -> *mut u8 {
        // SAFETY: by contract, the sizes are not 0 and the old block is valid. The blocks are
        // distinct, and both are at least as large as the smaller one of the two sizes.
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

// SAFETY: blocks of the arena are disjoint, large enough and aligned (`Tlsf`), and do not move: a
// claimed heap is a static. No method unwinds.
unsafe impl<const SIZE: usize> GlobalAlloc for LockedHeap<SIZE> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.alloc_owned(layout) {
            Some(block) => block.as_ptr(),
            // SAFETY: the contract of `System.alloc()` is the same.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(block) = self.alloc_owned(layout) else {
            // SAFETY: the contract of `System.alloc_zeroed()` is the same.
            return unsafe { System.alloc_zeroed(layout) };
        };
        // SAFETY: the block was just allocated and is large enough.
        unsafe { block.write_bytes(0, layout.size()) };
        block.as_ptr()
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match (self.contains(block), Owned::of(self)) {
            // SAFETY: the block is outside of the arena, so the system's allocator provided it.
            (false, _) => unsafe { System.dealloc(block, layout) },
            // SAFETY: the block was allocated in the arena, for this layout.
            (true, Some(mut owned)) => unsafe { owned.free(block, layout) },
            // SAFETY: the caller no longer uses the block, and it is large enough
            // (`block_layout`).
            (true, None) => unsafe { self.remote_frees.push(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the layout is valid by contract.
        let after = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let resized = match (self.contains(block), Owned::of(self)) {
            // SAFETY: the block was allocated in the arena, for this layout.
            (true, Some(mut owned)) => unsafe { owned.resize(block, layout, after) },
            // SAFETY: the block is outside of the arena, so the system's allocator provided it.
            (false, None) => return unsafe { System.realloc(block, layout, new_size) },
            _ => None,
        };
        match resized {
            Some(block) => block.as_ptr(),
            // SAFETY: the block is valid for `layout` by contract.
            None => unsafe { self.relocate(block, layout, after) },
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

/// Ownership of a heap. It ends when the claim is dropped.
#[derive(Debug)]
#[must_use = "the heap is given back when the claim is dropped"]
pub struct Claim {
    owner: &'static AtomicUsize,
    /// Another thread must not drop the claim.
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

/// A value on its own cache line, to avoid false sharing.
#[repr(align(64))]
struct CacheLine<T>(T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The mark of the calling thread, which differs from the marks of all other live threads and from
/// `NO_OWNER`. If an owner exits without dropping its claim, the next thread with the same mark
/// becomes the owner.
fn mark() -> usize {
    MARK.with(|mark| ptr::from_ref(mark).addr())
}
