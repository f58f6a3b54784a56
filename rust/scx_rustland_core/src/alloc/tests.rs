// SPDX-License-Identifier: GPL-2.0-only
//! The buddy allocator against a naive model, and heaps used by one thread and by several.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use super::buddy::{order_of, Buddy, Links};
use super::*;

/// The allocator of the tests themselves. Only the test that claims it uses its arena.
#[global_allocator]
static GLOBAL: LockedHeap = LockedHeap::new();

/// The arena of most tests.
const SIZE: usize = 64 << 10;
/// Without the tables: 9 bytes per leaf, and 8 per order.
const CAPACITY_BYTES: usize = SIZE - (9 * 1024 + 8 * 11_usize).next_multiple_of(LEAF_BYTES);

/// The arena of the model, in leaves.
const TOP: u8 = 6;
const LEAVES: usize = 1 << TOP;

/// An operation on an arena. Sizes are orders for the model, and bytes for a heap. Blocks are
/// chosen by a number, modulo the number of blocks.
#[derive(Clone, Debug)]
enum Op {
    Alloc(usize),
    Free(usize),
    Resize(usize, usize),
}

/// Sizes up to `max`, those up to `small` more often.
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

/// The tables of a buddy allocator.
struct Tables {
    links: Vec<Links>,
    states: Vec<u8>,
}

impl Tables {
    fn new(leaves: usize) -> Self {
        Self {
            links: vec![Links::default(); Buddy::links_for(leaves)],
            states: vec![0; leaves],
        }
    }

    fn buddy(&mut self) -> Buddy<'_> {
        Buddy::new(&mut self.links, &mut self.states)
    }

    fn begin(&mut self, reserved: usize) -> Buddy<'_> {
        let mut buddy = self.buddy();
        buddy.begin(reserved);
        buddy
    }
}

/// Which leaves are in use, and the blocks in use, by first leaf and order.
struct Model {
    used: [bool; LEAVES],
    blocks: Vec<(u32, u8)>,
}

impl Model {
    fn new(reserved: usize) -> Self {
        Self {
            used: std::array::from_fn(|leaf| leaf < reserved),
            blocks: Vec::new(),
        }
    }

    fn has_room(&self, order: u8) -> bool {
        let mut places = self.used.chunks(1 << order);
        order <= TOP && places.any(|leaves| !leaves.contains(&true))
    }

    /// `leaf` is the buddy allocator's result, `None` if it found no free block.
    fn alloc(&mut self, leaf: Option<u32>, order: u8) {
        assert_eq!(leaf.is_some(), self.has_room(order));
        let Some(leaf) = leaf else { return };
        assert_eq!(leaf % (1 << order), 0);
        self.mark(leaf..leaf + (1 << order), true);
        self.blocks.push((leaf, order));
    }

    fn mark(&mut self, leaves: Range<u32>, used: bool) {
        for leaf in &mut self.used[leaves.start as usize..leaves.end as usize] {
            assert_ne!(*leaf, used);
            *leaf = used;
        }
    }

    /// A leaf where no block in use starts.
    fn no_start(&self) -> Option<u32> {
        let is_start = |leaf| self.blocks.iter().any(|block| block.0 == leaf);
        (0..u32::try_from(LEAVES).unwrap()).find(|&leaf| !is_start(leaf))
    }
}

fn step(buddy: &mut Buddy<'_>, model: &mut Model, op: &Op) {
    match *op {
        Op::Alloc(order) => {
            let order = u8::try_from(order).unwrap();
            model.alloc(buddy.alloc(order), order);
        }
        Op::Free(choice) => {
            let Some((leaf, order)) = pick(&mut model.blocks, choice) else {
                return;
            };
            assert_eq!(buddy.free(leaf), Some(order));
            assert_eq!(buddy.free(leaf), None);
            model.mark(leaf..leaf + (1 << order), false);
        }
        Op::Resize(choice, wanted) => {
            let Some((leaf, order)) = pick(&mut model.blocks, choice) else {
                return;
            };
            let wanted = u8::try_from(wanted).unwrap();
            let before = (wanted <= order).then_some(order);
            assert_eq!(buddy.shrink(leaf, wanted), before);
            let after = wanted.min(order);
            model.mark(leaf + (1 << after)..leaf + (1 << order), false);
            model.blocks.push((leaf, after));
        }
    }
}

proptest! {
    /// Blocks do not overlap and are aligned, their sizes are found again, an allocation fails only
    /// if no block is free, and all blocks merge in the end.
    #[test]
    fn buddy_agrees_with_model(
        ops in ops(2, usize::from(TOP) + 1),
        reserved in prop_oneof![Just(0), 0..=LEAVES],
    ) {
        let mut tables = Tables::new(LEAVES);
        let mut buddy = tables.begin(reserved);
        let mut model = Model::new(reserved);
        for op in &ops {
            step(&mut buddy, &mut model, op);
            prop_assert_eq!(model.no_start().and_then(|leaf| buddy.free(leaf)), None);
        }
        while !model.blocks.is_empty() {
            step(&mut buddy, &mut model, &Op::Free(0));
        }
        // As few blocks as possible, and no other leaf is marked as the start of one.
        let blocks = (LEAVES - reserved).count_ones() as usize;
        prop_assert_eq!(tables.states.iter().filter(|&&state| state != 0).count(), blocks);
        let mut buddy = tables.buddy();
        for order in (0..=TOP).rev() {
            step(&mut buddy, &mut model, &Op::Alloc(order.into()));
        }
        prop_assert_eq!(model.blocks.len(), blocks);
    }
}

#[test]
fn buddy_keeps_large_blocks_whole() {
    let mut tables = Tables::new(LEAVES);
    let mut buddy = tables.begin(0);
    let (half, quarter) = (buddy.alloc(TOP - 1), buddy.alloc(TOP - 2));
    assert_eq!(buddy.free(half.unwrap()), Some(TOP - 1));
    let leaf = buddy.alloc(0).unwrap();
    assert_eq!(leaf ^ quarter.unwrap(), 1 << (TOP - 2));
    assert_eq!(buddy.alloc(TOP - 1), half);
}

#[test]
fn buddy_of_one_leaf() {
    let mut tables = Tables::new(1);
    let mut buddy = tables.begin(0);
    assert_eq!(buddy.alloc(1), None);
    assert_eq!(buddy.alloc(0), Some(0));
    assert_eq!(buddy.alloc(0), None);
    assert_eq!(buddy.free(0), Some(0));
    for leaf in [0, 1, 2, u32::MAX] {
        assert_eq!(buddy.free(leaf), None);
        assert_eq!(buddy.shrink(leaf, 0), None);
    }
}

#[test]
fn orders() {
    let orders = [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 2),
        (5, 3),
        (1 << 40, 40),
    ];
    for (leaves, order) in orders {
        assert_eq!(order_of(leaves), order);
    }
}

/// Memory of a heap, filled with a byte of its own.
struct Block<'a> {
    heap: &'a LockedHeap<SIZE>,
    start: *mut u8,
    layout: Layout,
    fill: u8,
}

// SAFETY: memory may be freed by any thread.
unsafe impl Send for Block<'_> {}

impl<'a> Block<'a> {
    fn new(heap: &'a LockedHeap<SIZE>, size: usize, align: usize, fill: u8) -> Self {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the allocator accepts sizes of 0.
        let start = unsafe { heap.alloc(layout) };
        assert!(!start.is_null());
        assert_eq!(start.addr() % align, 0);
        // SAFETY: just allocated.
        unsafe { start.write_bytes(fill, size) };
        Self {
            heap,
            start,
            layout,
            fill,
        }
    }

    fn in_arena(&self) -> bool {
        self.heap.leaf_of(self.start).is_some()
    }

    fn assert_filled(&self, size: usize) {
        // SAFETY: initialized from the start on.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, size) };
        assert!(bytes.iter().all(|&byte| byte == self.fill));
    }

    fn resize(&mut self, size: usize) {
        let kept = size.min(self.layout.size());
        // SAFETY: allocated by this heap for this layout.
        self.start = unsafe { self.heap.realloc(self.start, self.layout, size) };
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        assert_eq!(self.start.addr() % self.layout.align(), 0);
        self.assert_filled(kept);
        // SAFETY: it has at least this size now.
        unsafe { self.start.write_bytes(self.fill, size) };
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.assert_filled(self.layout.size());
        }
        // SAFETY: allocated by this heap for this layout.
        unsafe { self.heap.dealloc(self.start, self.layout) };
    }
}

/// A heap that is not shared with another test.
fn new_heap() -> &'static LockedHeap<SIZE> {
    Box::leak(Box::new(LockedHeap::new()))
}

/// Asserts that the arena is as if new: it can be filled with blocks of maximal size.
fn assert_all_free(heap: &'static LockedHeap<SIZE>) {
    let sizes = (0..16).rev().map(|bit| CAPACITY_BYTES & 1 << bit);
    let blocks = sizes
        .filter(|&size| size != 0)
        .map(|size| Block::new(heap, size, 1, 0))
        .collect::<Vec<_>>();
    assert!(blocks.iter().all(Block::in_arena));
    assert_eq!(blocks[0].layout.size(), SIZE / 2);
    assert_eq!(heap.stats().used_bytes, CAPACITY_BYTES);
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
    assert_eq!(heap.stats().peak_bytes, 64);
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
    assert_eq!(heap.stats().used_bytes, 2048);
    let _claim = heap.claim().unwrap();
    assert_eq!(heap.stats().used_bytes, 1024);
    drop(kept);
    assert_all_free(heap);
}

#[test]
fn exhaustion_falls_back_and_is_counted() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    let leaves = CAPACITY_BYTES / LEAF_BYTES;
    let mut blocks = Vec::new();
    for _ in 0..leaves {
        blocks.push(Block::new(heap, LEAF_BYTES, 1, 3));
    }
    assert!(blocks.iter().all(Block::in_arena));
    assert_eq!(heap.overflows(), 0);
    let beyond = Block::new(heap, 1, 1, 4);
    assert!(!beyond.in_arena());
    let full = HeapStats {
        used_bytes: CAPACITY_BYTES,
        peak_bytes: CAPACITY_BYTES,
        overflows: 1,
    };
    assert_eq!(heap.stats(), full);
    blocks.pop();
    blocks.push(Block::new(heap, 1, 1, 5));
    assert!(blocks.pop().is_some_and(|block| block.in_arena()));
    drop(beyond);
    drop(blocks);
    assert!(!Block::new(heap, SIZE, 1, 6).in_arena());
    assert_eq!(heap.overflows(), 2);
    drop(Block::new(heap, 1, 1, 7));
    assert_eq!(heap.stats().peak_bytes, CAPACITY_BYTES);
    assert_all_free(heap);
}

#[test]
fn alignment() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    assert_eq!(heap.base().addr() % ALIGN_MAX_BYTES, 0);
    let odd = Block::new(heap, 1, 1, 1);
    for align in (0..=12).map(|shift| 1 << shift) {
        for size in [1, align, align + 1] {
            assert!(Block::new(heap, size, align, 2).in_arena());
        }
    }
    let page = Block::new(heap, 100, 4096, 2);
    assert_eq!(heap.stats().used_bytes, 4096 + 64);
    assert_eq!(heap.overflows(), 0);
    assert!(!Block::new(heap, 1, 8192, 3).in_arena());
    assert_eq!(heap.overflows(), 1);
    drop((odd, page));
    assert_all_free(heap);
}

#[test]
fn tiny_sizes_take_a_leaf() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    for size in [0, 1, 7, 63, 64] {
        let block = Block::new(heap, size, 1, 1);
        assert!(block.in_arena());
        assert_eq!(heap.stats().used_bytes, LEAF_BYTES);
    }
    assert_all_free(heap);
}

#[test]
fn zeroed_is_zero() {
    let heap = new_heap();
    let layout = Layout::from_size_align(500, 8).unwrap();
    let check = |in_arena| {
        drop(Block::new(heap, 500, 8, 0xff));
        // SAFETY: within the allocation, which is freed with its own layout.
        unsafe {
            let block = heap.alloc_zeroed(layout);
            assert_eq!(heap.leaf_of(block).is_some(), in_arena);
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
    let mut block = Block::new(heap, 65, 8, 7);
    let start = block.start;
    block.resize(128);
    assert_eq!(block.start, start);
    block.resize(129);
    assert_ne!(block.start, start);
    assert_eq!(heap.stats().used_bytes, 256);
    let start = block.start;
    block.resize(8000);
    block.resize(60);
    assert_eq!(heap.stats().used_bytes, LEAF_BYTES);
    block.resize(SIZE);
    assert!(!block.in_arena());
    assert_eq!((heap.stats().used_bytes, heap.overflows()), (0, 1));
    block.resize(SIZE / 2);
    assert!(block.in_arena() && block.start != start);
    drop(block);
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
    assert_eq!(heap.stats().used_bytes, 512);
}

#[test]
fn realloc_of_another_thread() {
    let heap = new_heap();
    let _claim = heap.claim().unwrap();
    let (mut shrunk, mut grown) = (Block::new(heap, 1000, 8, 1), Block::new(heap, 1000, 8, 2));
    thread::scope(|scope| {
        scope.spawn(|| {
            shrunk.resize(10);
            grown.resize(1024);
            assert!(grown.in_arena());
            grown.resize(1025);
            assert!(!grown.in_arena());
        });
    });
    assert!(shrunk.in_arena());
    assert_eq!(heap.stats().used_bytes, 2048);
    // The layout is of a leaf, but the block is larger.
    shrunk.resize(1024);
    assert!(shrunk.in_arena());
    assert_eq!(heap.stats().used_bytes, 2048);
    drop(Block::new(heap, 1, 1, 3));
    assert_eq!(heap.stats().used_bytes, 1024);
    drop(shrunk);
    drop(grown);
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

    /// Blocks keep their contents whatever happens to others, the counter is exact, and all blocks
    /// merge.
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
            let used_bytes = inside.map(|block| LEAF_BYTES << block_order(block.layout)).sum();
            prop_assert_eq!(heap.stats().used_bytes, used_bytes);
            prop_assert!(heap.stats().peak_bytes >= used_bytes);
        }
        // Half of them are freed by another thread.
        blocks.truncate(blocks.len() / 2);
        drop(claim);
        drop(blocks);
        let _claim = heap.claim().unwrap();
        prop_assert_eq!(heap.stats().used_bytes, 0);
        assert_all_free(heap);
    }
}

/// Keeps some of the blocks for a while, grows some, and frees all of them here.
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

/// Allocates for the other threads, and frees some blocks itself.
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
        // The threads end when this is dropped, even if the test panics.
        let (_going_on, ended) = mpsc::channel::<()>();
        let threads = (0..3).map(|_| {
            let (sender, receiver) = mpsc::sync_channel(16);
            scope.spawn(move || free_remotely(&receiver));
            sender
        });
        let senders = threads.collect::<Vec<_>>();
        scope.spawn(move || {
            while ended.try_recv() == Err(TryRecvError::Empty) {
                assert!(heap.stats().used_bytes <= CAPACITY_BYTES);
                thread::yield_now();
            }
        });
        // Claims end while other threads still free.
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

/// The operations of a policy: a map and a queue of tasks, names, and sorting. Keys are numbers.
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
    assert!(GLOBAL.stats().used_bytes > tasks.len() * LEAF_BYTES);
    let name = tasks.values().next().unwrap();
    assert!(GLOBAL.leaf_of(name.as_ptr().cast_mut()).is_some());
    // Another thread takes ownership and frees it.
    thread::spawn(move || assert!(tasks.into_values().all(|name| name.starts_with("task"))))
        .join()
        .unwrap();
    let numbers = (0..100_000).collect::<Vec<u32>>();
    assert!(GLOBAL.leaf_of(numbers.as_ptr().cast_mut().cast()).is_some());
    drop(numbers);
    let used_bytes = GLOBAL.stats().used_bytes;
    assert!(used_bytes < 1 << 16, "{used_bytes} bytes are left");
    assert_eq!(GLOBAL.overflows(), 0);
    drop(claim);
}
