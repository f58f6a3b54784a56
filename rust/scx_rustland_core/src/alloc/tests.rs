// SPDX-License-Identifier: GPL-2.0-only
//! Heaps used by one thread and by several.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The global allocator of the test program. Only the test that claims it uses its arena.
#[global_allocator]
static GLOBAL: LockedHeap = LockedHeap::new();

/// Size of the arena of most tests, in bytes.
const SIZE: usize = 64 << 10;
/// About the largest block that an empty arena provides. Each power of two has 16 size classes of
/// free blocks, and only classes whose smallest block is large enough are searched.
const LARGEST: usize = SIZE / 16 * 15 - 32;

/// An operation on a heap. Blocks are chosen by a number, modulo the number of blocks.
#[derive(Clone, Debug)]
enum Op {
    Alloc(usize),
    Free(usize),
    Resize(usize, usize),
}

/// Operations with random sizes: three quarters of them from 0 to `small`, the others from 0 to
/// `max`.
fn ops(small: usize, max: usize) -> impl Strategy<Value = Vec<Op>> {
    let size = || prop_oneof![3 => 0..=small, 1 => 0..=max];
    let op = prop_oneof![
        5 => size().prop_map(Op::Alloc),
        3 => any::<usize>().prop_map(Op::Free),
        2 => (any::<usize>(), size()).prop_map(|(block, size)| Op::Resize(block, size)),
    ];
    vec(op, 1..200)
}

/// Removes and returns one of `blocks`.
fn pick<T>(blocks: &mut Vec<T>, choice: usize) -> Option<T> {
    let index = choice.checked_rem(blocks.len())?;
    Some(blocks.swap_remove(index))
}

/// A block of a heap, filled with one value.
struct Block<'a> {
    heap: &'a LockedHeap<SIZE>,
    start: *mut u8,
    layout: Layout,
    fill: u8,
}

// SAFETY: any thread may use and free a block.
unsafe impl Send for Block<'_> {}

impl<'a> Block<'a> {
    fn new(heap: &'a LockedHeap<SIZE>, size: usize, align: usize, fill: u8) -> Self {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the allocator accepts sizes of 0.
        let start = unsafe { heap.alloc(layout) };
        assert!(!start.is_null());
        assert_eq!(start.addr() % align, 0);
        // SAFETY: the block was just allocated and has this size.
        unsafe { start.write_bytes(fill, size) };
        Self {
            heap,
            start,
            layout,
            fill,
        }
    }

    fn in_arena(&self) -> bool {
        self.heap.contains(self.start)
    }

    fn assert_filled(&self, size: usize) {
        // SAFETY: `new` and `resize` have initialized the block.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, size) };
        assert!(bytes.iter().all(|&byte| byte == self.fill));
    }

    fn resize(&mut self, size: usize) {
        let kept = size.min(self.layout.size());
        // SAFETY: this heap has allocated the block for this layout.
        self.start = unsafe { self.heap.realloc(self.start, self.layout, size) };
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        assert_eq!(self.start.addr() % self.layout.align(), 0);
        self.assert_filled(kept);
        // SAFETY: the block has at least this size now.
        unsafe { self.start.write_bytes(self.fill, size) };
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.assert_filled(self.layout.size());
        }
        // SAFETY: this heap has allocated the block for this layout.
        unsafe { self.heap.dealloc(self.start, self.layout) };
    }
}

/// A heap that is not shared with another test.
fn new_heap() -> &'static LockedHeap<SIZE> {
    Box::leak(Box::new(LockedHeap::new()))
}

/// Asserts that the arena is as if new: its free blocks have merged into one.
fn assert_all_free(heap: &'static LockedHeap<SIZE>) {
    assert_eq!(heap.stats().used_bytes, 0);
    assert!(Block::new(heap, LARGEST, 1, 0).in_arena());
}

#[test]
fn only_the_owner_gets_memory_of_the_arena() {
    let heap = new_heap();
    assert!(!Block::new(heap, 8, 8, 1).in_arena());
    let claim = heap.claim().unwrap();
    assert!(Block::new(heap, 8, 8, 1).in_arena());
    thread::scope(|scope| {
        scope.spawn(|| assert!(!Block::new(heap, 8, 8, 1).in_arena()));
    });
    drop(claim);
    assert!(!Block::new(heap, 8, 8, 1).in_arena());
    assert_eq!(heap.overflows(), 0);
    assert_eq!(heap.stats().peak_bytes, 8);
}

#[test]
fn one_owner_at_a_time() {
    let heap = new_heap();
    let claim = heap.claim().unwrap();
    assert_eq!(heap.claim().unwrap_err(), AlreadyClaimed);
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(heap.claim().unwrap_err(), AlreadyClaimed));
    });
    assert!(Block::new(heap, 8, 8, 1).in_arena());
    drop(claim);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _claim = heap.claim().unwrap();
            assert!(Block::new(heap, 8, 8, 1).in_arena());
        });
    });
    let _claim = heap.claim().unwrap();
    assert_all_free(heap);
}

#[test]
fn a_thread_may_own_two_heaps() {
    let (one, two) = (new_heap(), new_heap());
    let _one = one.claim().unwrap();
    let claim = two.claim().unwrap();
    let (a, b) = (Block::new(one, 8, 8, 1), Block::new(two, 8, 8, 2));
    assert!(a.in_arena() && b.in_arena());
    drop(claim);
    assert!(Block::new(one, 8, 8, 1).in_arena());
    assert!(!Block::new(two, 8, 8, 1).in_arena());
}

#[test]
fn what_outlives_a_claim_is_freed_by_the_next() {
    let heap = new_heap();
    let claim = heap.claim().unwrap();
    let (kept, freed) = (Block::new(heap, 1000, 8, 1), Block::new(heap, 1000, 8, 2));
    drop(claim);
    drop(freed);
    assert_eq!(heap.stats().used_bytes, 2000);
    let _claim = heap.claim().unwrap();
    assert_eq!(heap.stats().used_bytes, 1000);
    drop(kept);
    assert_all_free(heap);
}

#[test]
fn exhaustion_falls_back_and_is_counted() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    let mut blocks = Vec::new();
    while heap.overflows() == 0 {
        blocks.push(Block::new(heap, 64, 1, 3));
    }
    let (beyond, inside) = blocks.split_last().unwrap();
    assert!(!beyond.in_arena() && inside.iter().all(Block::in_arena));
    // Each block takes 96 bytes: 64 plus a header of 16, rounded up to a multiple of 32.
    assert!(inside.len() * (64 + 32) > SIZE - 200, "{}", inside.len());
    let full = HeapStats {
        used_bytes: inside.len() * 64,
        peak_bytes: inside.len() * 64,
        overflows: 1,
    };
    assert_eq!(heap.stats(), full);
    blocks.swap_remove(0);
    assert!(Block::new(heap, 64, 1, 5).in_arena());
    drop(blocks);
    assert!(!Block::new(heap, SIZE, 1, 6).in_arena());
    assert_eq!(heap.overflows(), 2);
    drop(Block::new(heap, 1, 1, 7));
    assert_eq!(heap.stats().peak_bytes, full.peak_bytes);
    assert_all_free(heap);
}

#[test]
fn alignment() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    let odd = Block::new(heap, 1, 1, 1);
    for align in (0..=14).map(|shift| 1 << shift) {
        for size in [1, align, align + 1] {
            assert!(Block::new(heap, size, align, 2).in_arena());
        }
    }
    let page = Block::new(heap, 100, 4096, 2);
    assert_eq!(heap.stats().used_bytes, 101);
    assert_eq!(heap.overflows(), 0);
    drop((odd, page));
    assert_all_free(heap);
}

#[test]
fn tiny_sizes() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    for size in [0, 1, 7, 63, 64] {
        let block = Block::new(heap, size, 1, 1);
        assert!(block.in_arena());
        assert_eq!(heap.stats().used_bytes, size);
    }
    assert_all_free(heap);
}

#[test]
fn zeroed_is_zero() {
    let heap = new_heap();
    let layout = Layout::from_size_align(500, 8).unwrap();
    let check = |in_arena| {
        drop(Block::new(heap, 500, 8, 0xff));
        // SAFETY: the accesses are within the block, which is freed with its own layout.
        unsafe {
            let block = heap.alloc_zeroed(layout);
            assert_eq!(heap.contains(block), in_arena);
            let bytes = std::slice::from_raw_parts(block, 500);
            assert!(bytes.iter().all(|&byte| byte == 0));
            heap.dealloc(block, layout);
        }
    };
    check(false);
    let _claim = heap.claim().unwrap();
    check(true);
}

#[test]
fn realloc_of_the_owner() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    let mut block = Block::new(heap, 1000, 8, 7);
    let start = block.start;
    for size in [1001, 8000, 60] {
        block.resize(size);
        assert_eq!(block.start, start, "there is room");
        assert_eq!(heap.stats().used_bytes, size);
    }
    let next = Block::new(heap, 1, 1, 8);
    block.resize(8000);
    assert!(block.in_arena() && block.start != start);
    assert_eq!(heap.stats().used_bytes, 8001);
    block.resize(SIZE);
    assert!(!block.in_arena());
    assert_eq!((heap.stats().used_bytes, heap.overflows()), (1, 1));
    block.resize(SIZE / 2);
    assert!(block.in_arena());
    drop((block, next));
    assert_all_free(heap);
}

#[test]
fn realloc_moves_what_was_allocated_before_the_claim() {
    let heap = new_heap();
    let mut block = Block::new(heap, 100, 8, 1);
    block.resize(200);
    assert!(!block.in_arena());
    let _claim = heap.claim().unwrap();
    block.resize(300);
    assert!(block.in_arena());
    assert_eq!(heap.stats().used_bytes, 300);
}

#[test]
fn realloc_of_another_thread_leaves_the_arena() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    let (mut shrunk, mut grown) = (Block::new(heap, 1000, 8, 1), Block::new(heap, 1000, 8, 2));
    thread::scope(|scope| {
        scope.spawn(|| {
            shrunk.resize(10);
            grown.resize(1025);
        });
    });
    assert!(!shrunk.in_arena() && !grown.in_arena());
    assert_eq!(heap.stats().used_bytes, 2000);
    drop(Block::new(heap, 1, 1, 3));
    assert_all_free(heap);
}

#[test]
fn remote_frees_are_merged_by_the_next_allocation() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    let block = Block::new(heap, SIZE / 2, 1, 1);
    thread::spawn(move || drop(block)).join().unwrap();
    assert_eq!(heap.stats().used_bytes, SIZE / 2);
    assert!(Block::new(heap, SIZE / 2, 1, 1).in_arena());
    assert_eq!(heap.stats().used_bytes, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Blocks keep their contents whatever happens to other blocks, `used_bytes` is exact, and all
    /// free blocks merge.
    #[test]
    fn heap_keeps_what_is_written(ops in ops(SIZE / 64, SIZE / 4)) {
        let heap = new_heap();
        let claim = heap.claim().unwrap();
        let mut blocks = Vec::new();
        for (fill, op) in (0_u8..=250).cycle().zip(&ops) {
            match *op {
                Op::Alloc(size) => blocks.push(Block::new(heap, size, 1 << (fill % 13), fill)),
                Op::Free(choice) => drop(pick(&mut blocks, choice)),
                Op::Resize(choice, size) => if let Some(mut block) = pick(&mut blocks, choice) {
                    block.resize(size.max(1));
                    blocks.push(block);
                },
            }
            let inside = blocks.iter().filter(|block| block.in_arena());
            let used_bytes = inside.map(|block| block.layout.size()).sum();
            prop_assert_eq!(heap.stats().used_bytes, used_bytes);
            prop_assert!(heap.stats().peak_bytes >= used_bytes);
        }
        // Half of the blocks are freed by the owner, the others while there is no owner.
        blocks.truncate(blocks.len() / 2);
        drop(claim);
        drop(blocks);
        let _claim = heap.claim().unwrap();
        prop_assert_eq!(heap.stats().used_bytes, 0);
        assert_all_free(heap);
    }
}

/// Keeps some of the blocks for a while, grows some of them, and frees all of them on this thread.
fn free_remotely(blocks: &Receiver<Block<'static>>) {
    let mut kept = VecDeque::new();
    for (count, mut block) in blocks.iter().enumerate() {
        if count % 5 == 0 {
            block.resize(block.layout.size() + count % 90);
        }
        kept.push_back(block);
        if kept.len() > 8 {
            kept.pop_front();
        }
    }
}

/// Allocates blocks for the other threads, and frees some blocks on this thread.
fn churn(heap: &'static LockedHeap<SIZE>, others: &[SyncSender<Block<'static>>]) -> usize {
    let mut own = VecDeque::new();
    let mut in_arena = 0;
    for count in 0..60_000_usize {
        let size = 1 + count * 2_654_435_761 % 700;
        let fill = u8::try_from(count % 251).unwrap();
        let mut block = Block::new(heap, size, 1 << (count % 8), fill);
        in_arena += usize::from(block.in_arena());
        if count % 7 == 0 {
            block.resize(1 + size / 2);
        }
        match others.get(count % (others.len() + 1)) {
            Some(other) => other.send(block).unwrap(),
            None => own.push_back(block),
        }
        if own.len() > 8 {
            own.pop_front();
        }
    }
    in_arena
}

#[test]
fn several_threads_free_what_the_owner_allocates() {
    let heap = new_heap();
    thread::scope(|scope| {
        // The polling thread ends when `_going_on` is dropped, even if the test panics.
        let (_going_on, ended) = mpsc::channel::<()>();
        let threads = (0..3).map(|_| {
            let (sender, receiver) = mpsc::sync_channel(16);
            scope.spawn(move || free_remotely(&receiver));
            sender
        });
        let senders = threads.collect::<Vec<_>>();
        scope.spawn(move || {
            while ended.try_recv() == Err(TryRecvError::Empty) {
                assert!(heap.stats().used_bytes <= SIZE);
                thread::yield_now();
            }
        });
        // Claims end while other threads are still freeing blocks.
        for _ in 0..3 {
            let _claim = heap.claim().unwrap();
            assert!(churn(heap, &senders) > 0);
        }
    });
    let _claim = heap.claim().unwrap();
    assert_eq!(heap.stats().used_bytes, 0);
    assert_all_free(heap);
}

#[test]
fn threads_that_never_own_share_a_heap() {
    let heap = new_heap();
    thread::scope(|scope| {
        for fill in 0..4 {
            scope.spawn(move || {
                for size in 1..2000 {
                    Block::new(heap, size, 8, fill).resize(size / 2 + 1);
                }
            });
        }
    });
    assert_eq!(heap.stats(), HeapStats::default());
}

/// The operations of a policy: tasks are inserted into a sorted map and the first ones removed, and
/// names are sorted.
fn policy() -> BTreeMap<u64, String> {
    let mut tasks = BTreeMap::new();
    for count in 0..10_000_u64 {
        let key = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        tasks.insert(key, format!("task {count}"));
        if count % 3 == 0 {
            tasks.pop_first();
        }
    }
    let mut names = tasks.values().cloned().collect::<Vec<_>>();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), tasks.len());
    tasks
}

#[test]
fn collections() {
    let expected = policy();
    assert_eq!(GLOBAL.stats().peak_bytes, 0);
    let claim = GLOBAL.claim().unwrap();
    let tasks = policy();
    assert_eq!(tasks, expected);
    assert!(GLOBAL.stats().used_bytes > tasks.len() * 8);
    let name = tasks.values().next().unwrap();
    assert!(GLOBAL.contains(name.as_ptr().cast_mut()));
    // The map moves to another thread, which frees it.
    thread::spawn(move || assert!(tasks.into_values().all(|name| name.starts_with("task"))))
        .join()
        .unwrap();
    let numbers = (0..100_000).collect::<Vec<u32>>();
    assert!(GLOBAL.contains(numbers.as_ptr().cast_mut().cast()));
    drop(numbers);
    let used_bytes = GLOBAL.stats().used_bytes;
    assert!(used_bytes < 1 << 16, "{used_bytes} bytes are left");
    assert_eq!(GLOBAL.overflows(), 0);
    drop(claim);
}
