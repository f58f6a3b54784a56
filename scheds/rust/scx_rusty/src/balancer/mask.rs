// SPDX-License-Identifier: GPL-2.0-only
//! Sets of domains.

use super::DOMAINS_MAX;

const WORD_BITS: usize = 64;

/// A set of domains, by dense index, each below [`DOMAINS_MAX`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct DomainMask([u64; DOMAINS_MAX / WORD_BITS]);

impl DomainMask {
    /// The first `n` domains.
    #[cfg(test)]
    pub(crate) fn all(n: usize) -> Self {
        (0..n.min(DOMAINS_MAX)).collect()
    }

    /// Domain 0 is the lowest bit of the first word.
    pub(crate) const fn from_words(words: [u64; DOMAINS_MAX / WORD_BITS]) -> Self {
        Self(words)
    }

    /// The inverse of [`from_words`](Self::from_words).
    pub(crate) const fn words(&self) -> [u64; DOMAINS_MAX / WORD_BITS] {
        self.0
    }

    /// Adds a domain. Indexes of [`DOMAINS_MAX`] and above are ignored.
    pub(crate) fn insert(&mut self, domain: usize) {
        if let Some(word) = self.0.get_mut(domain / WORD_BITS) {
            *word |= 1 << (domain % WORD_BITS);
        }
    }

    pub(crate) fn contains(&self, domain: usize) -> bool {
        let word = self.0.get(domain / WORD_BITS).copied().unwrap_or(0);
        word >> (domain % WORD_BITS) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The intersection.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|idx| self.0[idx] & other.0[idx]))
    }

    /// The union.
    pub(crate) fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|idx| self.0[idx] | other.0[idx]))
    }
}

impl FromIterator<usize> for DomainMask {
    fn from_iter<I: IntoIterator<Item = usize>>(domains: I) -> Self {
        let mut mask = Self::default();
        for domain in domains {
            mask.insert(domain);
        }
        mask
    }
}
