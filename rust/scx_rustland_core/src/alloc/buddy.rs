// SPDX-License-Identifier: GPL-2.0-only
//! The buddy system, as numbers: it knows neither addresses nor what a leaf is made of.
//!
//! A block of order `n` is `1 << n` leaves that start at a multiple of that. Its buddy is the
//! other half of the block of the next order. Blocks are split in two until one is as small as
//! it can be for what was asked for; when two buddies are free, they become one again.

/// What a leaf that is the first of a block says, with the block's order in the bits below.
const FREE: u8 = 0x40;
const USED: u8 = 0x80;

/// The order of the smallest block of at least `leaves` leaves.
pub(super) const fn order_of(leaves: usize) -> u8 {
    let order = leaves.next_power_of_two().trailing_zeros();
    // Orders are below 64.
    (order & 0x3f) as u8
}

/// The neighbours in a list of free blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    next: u32,
    prev: u32,
}

/// The buddy system over tables that somebody else keeps. They are zeroes before their first use,
/// which is [`begin`](Self::begin).
///
/// For each order, there is a list of its free blocks, which is a ring. A block is known by its
/// first leaf, the ring's head by the first number that is no leaf, plus the order.
#[derive(Debug)]
pub(super) struct Buddy<'a> {
    links: &'a mut [Links],
    /// 0 where no block starts.
    states: &'a mut [u8],
}

impl<'a> Buddy<'a> {
    /// How many links there are to be, for a number of leaves that is a power of two.
    pub(super) const fn links_for(leaves: usize) -> usize {
        leaves + order_of(leaves) as usize + 1
    }

    /// With one state for each leaf.
    pub(super) fn new(links: &'a mut [Links], states: &'a mut [u8]) -> Self {
        debug_assert!(states.len().is_power_of_two());
        debug_assert_eq!(links.len(), Self::links_for(states.len()));
        debug_assert!(u32::try_from(links.len()).is_ok());
        Self { links, states }
    }

    /// Makes all leaves free but the first `reserved`, which never are.
    pub(super) fn begin(&mut self, reserved: usize) {
        for order in 0..=self.top() {
            let head = self.head(order);
            let (next, prev) = (head, head);
            self.set_links(head, Links { next, prev });
        }
        let mut leaf = u32::try_from(reserved).unwrap_or(u32::MAX);
        while leaf < self.leaves() {
            // The largest block that may start here. Any leaf may start one of order 0.
            let starts = |order: &u8| leaf % (1 << order) == 0;
            let order = (0..=self.top()).rev().find(starts).unwrap_or(0);
            self.push(leaf, order);
            leaf += 1 << order;
        }
    }

    /// Allocates a block of `order`: its first leaf, or `None` if there is no room.
    pub(super) fn alloc(&mut self, order: u8) -> Option<u32> {
        let first = |from| Some((self.first(from)?, from));
        let (leaf, from) = (order..=self.top()).find_map(first)?;
        self.unlink(leaf);
        self.use_part(leaf, from, order);
        Some(leaf)
    }

    /// Frees the block that starts at `leaf`. Its order, or `None` if no block in use starts there.
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

    /// Cuts the block that starts at `leaf` down to `order`, and frees the rest. The order that it
    /// had, or `None`, with nothing changed, if it is smaller than that.
    pub(super) fn shrink(&mut self, leaf: u32, order: u8) -> Option<u8> {
        let before = self.order_at(leaf).filter(|&before| before >= order)?;
        self.use_part(leaf, before, order);
        Some(before)
    }

    /// Uses the first part of a block of order `from`, and frees the rest.
    fn use_part(&mut self, leaf: u32, from: u8, order: u8) {
        for half in order..from {
            self.push(leaf + (1 << half), half);
        }
        self.set_state(leaf, USED | order);
    }

    /// The order of the block in use that starts at `leaf`.
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

    // None of these is by index: an allocator must not panic, whatever it is given to free.

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
