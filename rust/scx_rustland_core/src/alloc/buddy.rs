// SPDX-License-Identifier: GPL-2.0-only
//! The buddy allocator on leaf numbers, independent of addresses and of the size of a leaf.
//!
//! A block of order `n` is `1 << n` leaves, aligned to that. Its buddy is the other half of the
//! enclosing block of the next order. Blocks are split until one is as small as possible for the
//! request; when two buddies are free, they are merged.

/// State of the first leaf of a block, with the block's order in the low bits.
const FREE: u8 = 0x40;
const USED: u8 = 0x80;

/// The order of the smallest block of at least `leaves` leaves.
pub(super) const fn order_of(leaves: usize) -> u8 {
    let order = leaves.next_power_of_two().trailing_zeros();
    // Orders are below 64.
    (order & 0x3f) as u8
}

/// Neighbours in a list of free blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    next: u32,
    prev: u32,
}

/// The buddy allocator over tables owned by the caller, which are zeroes before
/// [`begin`](Self::begin) is called.
///
/// The free blocks of each order are in a circular list. A block is identified by its first leaf, a
/// list head by the number of leaves plus the order.
#[derive(Debug)]
pub(super) struct Buddy<'a> {
    links: &'a mut [Links],
    /// 0 where no block starts.
    states: &'a mut [u8],
}

impl<'a> Buddy<'a> {
    /// The number of links needed for `leaves`, a power of two.
    pub(super) const fn links_for(leaves: usize) -> usize {
        leaves + order_of(leaves) as usize + 1
    }

    /// `states` has one element per leaf.
    pub(super) fn new(links: &'a mut [Links], states: &'a mut [u8]) -> Self {
        debug_assert!(states.len().is_power_of_two());
        debug_assert_eq!(links.len(), Self::links_for(states.len()));
        debug_assert!(u32::try_from(links.len()).is_ok());
        Self { links, states }
    }

    /// Frees all leaves except the first `reserved`, which are never allocated.
    pub(super) fn begin(&mut self, reserved: usize) {
        for order in 0..=self.top() {
            let head = self.head(order);
            let (next, prev) = (head, head);
            self.set_links(head, Links { next, prev });
        }
        let mut leaf = u32::try_from(reserved).unwrap_or(u32::MAX);
        while leaf < self.leaves() {
            // The largest aligned block. Any leaf may start one of order 0.
            let starts = |order: &u8| leaf % (1 << order) == 0;
            let order = (0..=self.top()).rev().find(starts).unwrap_or(0);
            self.push(leaf, order);
            leaf += 1 << order;
        }
    }

    /// Allocates a block of `order` and returns its first leaf, or `None` if none is free.
    pub(super) fn alloc(&mut self, order: u8) -> Option<u32> {
        let first = |from| Some((self.first(from)?, from));
        let (leaf, from) = (order..=self.top()).find_map(first)?;
        self.unlink(leaf);
        self.use_part(leaf, from, order);
        Some(leaf)
    }

    /// Frees the block at `leaf` and returns its order, or `None` if no used block starts there.
    pub(super) fn free(&mut self, leaf: u32) -> Option<u8> {
        let before = self.order_at(leaf)?;
        self.set_state(leaf, 0);
        let (mut leaf, mut order) = (leaf, before);
        while order < self.top() {
            let buddy = leaf ^ (1 << order);
            if self.state(buddy) != (FREE | order) {
                break;
            }
            self.unlink(buddy);
            leaf = leaf.min(buddy);
            order += 1;
        }
        self.push(leaf, order);
        Some(before)
    }

    /// Shrinks the block at `leaf` to `order`, and frees the rest. Returns its previous order, or
    /// `None`, with nothing changed, if it is smaller than `order`.
    pub(super) fn shrink(&mut self, leaf: u32, order: u8) -> Option<u8> {
        let before = self.order_at(leaf).filter(|&before| before >= order)?;
        self.use_part(leaf, before, order);
        Some(before)
    }

    /// Splits a block of order `from`: keeps its first part and frees the rest.
    fn use_part(&mut self, leaf: u32, from: u8, order: u8) {
        for half in order..from {
            self.push(leaf + (1 << half), half);
        }
        self.set_state(leaf, USED | order);
    }

    /// The order of the used block at `leaf`.
    fn order_at(&self, leaf: u32) -> Option<u8> {
        let state = self.state(leaf);
        (state & USED != 0).then_some(state & !USED)
    }

    /// The order of the whole arena.
    fn top(&self) -> u8 {
        order_of(self.states.len())
    }

    fn leaves(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(0)
    }

    fn head(&self, order: u8) -> u32 {
        self.leaves() + u32::from(order)
    }

    /// The first free block of an order.
    fn first(&self, order: u8) -> Option<u32> {
        let first = self.links(self.head(order)).next;
        (first < self.leaves()).then_some(first)
    }

    fn push(&mut self, leaf: u32, order: u8) {
        let prev = self.head(order);
        let next = self.links(prev).next;
        self.set_links(leaf, Links { next, prev });
        self.join(prev, leaf);
        self.join(leaf, next);
        self.set_state(leaf, FREE | order);
    }

    fn unlink(&mut self, leaf: u32) {
        let Links { next, prev } = self.links(leaf);
        self.join(prev, next);
        self.set_state(leaf, 0);
    }

    fn join(&mut self, prev: u32, next: u32) {
        if let Some(links) = self.links.get_mut(prev as usize) {
            links.next = next;
        }
        if let Some(links) = self.links.get_mut(next as usize) {
            links.prev = prev;
        }
    }

    // No indexing below: an allocator must not panic, whatever it is asked to free.

    fn links(&self, node: u32) -> Links {
        self.links.get(node as usize).copied().unwrap_or_default()
    }

    fn set_links(&mut self, node: u32, links: Links) {
        if let Some(place) = self.links.get_mut(node as usize) {
            *place = links;
        }
    }

    fn state(&self, leaf: u32) -> u8 {
        self.states.get(leaf as usize).copied().unwrap_or(0)
    }

    fn set_state(&mut self, leaf: u32, state: u8) {
        if let Some(place) = self.states.get_mut(leaf as usize) {
            *place = state;
        }
    }
}
