//! Sets of CPU ids.

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not, Sub};

mod parse;

/// The maximum width of a mask, in CPU ids: twice the largest `NR_CPUS` of any
/// architecture (8192 on x86 with `MAXSMP`, and on powerpc). So whatever the input, a mask takes
/// at most 2 KiB, and an array with one mask per CPU takes at most 32 MiB.
pub const MAX_NR_CPU_IDS: usize = 16_384;

/// Bits of a word of a mask.
const WORD_BITS: usize = 64;

/// Bits of a group of hex digits in the kernel's hex form.
const GROUP_BITS: usize = 32;

/// An invalid CPU, or an invalid text of a mask. Long texts are truncated.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CpumaskError {
    /// A CPU beyond the width.
    #[error("CPU {cpu} is out of range: there are {nr_cpu_ids} CPU ids")]
    OutOfRange {
        /// The CPU.
        cpu: usize,
        /// The width.
        nr_cpu_ids: usize,
    },
    /// A text that names a CPU beyond the width.
    #[error("'{text}' names a CPU out of range: there are {nr_cpu_ids} CPU ids")]
    TextOutOfRange {
        /// The text, or its invalid part.
        text: String,
        /// The width.
        nr_cpu_ids: usize,
    },
    /// A text that does not have the form of [`Cpumask::from_hex`].
    #[error("'{text}' is not a hex CPU mask: use a form such as ff,00000000")]
    BadHex {
        /// The text.
        text: String,
    },
    /// Neither a number, nor a range, nor a range with a stride.
    #[error("'{text}' is not a list of CPUs: use a form such as 0-3,8")]
    BadList {
        /// The invalid part of the list.
        text: String,
    },
    /// A range whose end is before its start.
    #[error("'{text}' is a range that ends before it starts")]
    ReversedRange {
        /// The range.
        text: String,
    },
    /// A stride `:used/group` with a `group` of 0, or with `used` above `group`.
    #[error("'{text}' has an invalid stride: use a form such as 0-31:2/4")]
    BadStride {
        /// The range with its stride.
        text: String,
    },
}

/// A set of CPU ids below a width, such as the number of CPU ids of a machine.
///
/// The width is a property of the mask, and is never read from the machine. Operations on two masks
/// yield a mask of the larger width. Two masks are equal if they have the same CPUs and the same
/// width.
///
/// ```
/// use scx_utils::cpumask::Cpumask;
///
/// let big = Cpumask::from_list("0-3,8", 12)?;
/// let mut rest = !&big;
/// rest.clear(11)?;
/// assert_eq!(rest.to_list(), "4-7,9-10");
/// assert_eq!(big.to_string(), "10f");
/// assert!(rest.set(12).is_err());
/// # Ok::<(), scx_utils::cpumask::CpumaskError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Cpumask {
    /// CPU `n` is bit `n % 64` of word `n / 64`; bits beyond the width are 0.
    words: Vec<u64>,
    nr_cpu_ids: usize,
}

impl Cpumask {
    /// An empty set of the CPU ids below `nr_cpu_ids`, which is limited to
    /// [`MAX_NR_CPU_IDS`].
    #[must_use]
    pub fn new(nr_cpu_ids: usize) -> Self {
        let nr_cpu_ids = nr_cpu_ids.min(MAX_NR_CPU_IDS);
        let words = vec![0; nr_cpu_ids.div_ceil(WORD_BITS)];
        Self { words, nr_cpu_ids }
    }

    /// The set of all CPU ids below `nr_cpu_ids`, which is limited to [`MAX_NR_CPU_IDS`].
    #[must_use]
    pub fn full(nr_cpu_ids: usize) -> Self {
        let mut mask = Self::new(nr_cpu_ids);
        mask.set_all();
        mask
    }

    /// The set of `cpus`, which may contain a CPU several times.
    ///
    /// # Errors
    ///
    /// If a CPU is `nr_cpu_ids` or more.
    pub fn from_cpus(
        cpus: impl IntoIterator<Item = usize>,
        nr_cpu_ids: usize,
    ) -> Result<Self, CpumaskError> {
        let mut mask = Self::new(nr_cpu_ids);
        for cpu in cpus {
            mask.set(cpu)?;
        }
        Ok(mask)
    }

    /// The set whose CPU `n` is bit `n % 64` of word `n / 64`. Missing words are 0.
    ///
    /// # Errors
    ///
    /// If a bit beyond the width is set.
    pub fn from_words(words: &[u64], nr_cpu_ids: usize) -> Result<Self, CpumaskError> {
        let mut mask = Self::new(nr_cpu_ids);
        let kept = words.len().min(mask.words.len());
        mask.words[..kept].copy_from_slice(&words[..kept]);
        let beyond = mask.trim().or_else(|| first_bit(words, kept));
        match beyond {
            Some(cpu) => Err(mask.out_of_range(cpu)),
            None => Ok(mask),
        }
    }

    /// The words of the mask: CPU `n` is bit `n % 64` of word `n / 64`.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The width: how many CPU ids the mask can hold, not how many are in the set.
    #[must_use]
    pub fn nr_cpu_ids(&self) -> usize {
        self.nr_cpu_ids
    }

    /// The same CPUs with another width. CPUs beyond it are dropped.
    #[must_use]
    pub fn resized(&self, nr_cpu_ids: usize) -> Self {
        let mut mask = Self::new(nr_cpu_ids);
        let kept = self.words.len().min(mask.words.len());
        mask.words[..kept].copy_from_slice(&self.words[..kept]);
        mask.trim();
        mask
    }

    /// Adds `cpu`.
    ///
    /// # Errors
    ///
    /// If the CPU is beyond the width.
    pub fn set(&mut self, cpu: usize) -> Result<(), CpumaskError> {
        self.check(cpu)?;
        self.words[cpu / WORD_BITS] |= bit(cpu);
        Ok(())
    }

    /// Removes `cpu`.
    ///
    /// # Errors
    ///
    /// If the CPU is beyond the width.
    pub fn clear(&mut self, cpu: usize) -> Result<(), CpumaskError> {
        self.check(cpu)?;
        self.words[cpu / WORD_BITS] &= !bit(cpu);
        Ok(())
    }

    /// Adds every CPU below the width.
    pub fn set_all(&mut self) {
        self.words.fill(u64::MAX);
        self.trim();
    }

    /// Removes every CPU.
    pub fn clear_all(&mut self) {
        self.words.fill(0);
    }

    /// Whether `cpu` is in the set; false beyond the width.
    #[must_use]
    pub fn test(&self, cpu: usize) -> bool {
        let word = self.words.get(cpu / WORD_BITS);
        word.is_some_and(|word| word & bit(cpu) != 0)
    }

    /// The number of CPUs in the set.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.words.iter().map(|word| count_ones(*word)).sum()
    }

    /// Whether no CPU is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether every CPU below the width is in the set; true for a width of 0.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.weight() == self.nr_cpu_ids
    }

    /// The lowest CPU of the set; None if the set is empty.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        first_bit(&self.words, 0)
    }

    /// The highest CPU of the set; None if the set is empty.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        let word = self.words.iter().rposition(|&word| word != 0)?;
        Some(word * WORD_BITS + WORD_BITS - 1 - leading_zeros(self.words[word]))
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.combined(other, |a, b| a & b)
    }

    /// The CPUs that are in either set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.combined(other, |a, b| a | b)
    }

    /// The CPUs that are in exactly one of the sets.
    #[must_use]
    pub fn xor(&self, other: &Self) -> Self {
        self.combined(other, |a, b| a ^ b)
    }

    /// The CPUs of this set that are not in `other`.
    #[must_use]
    pub fn and_not(&self, other: &Self) -> Self {
        self.combined(other, |a, b| a & !b)
    }

    /// The CPUs below the width that are not in the set.
    #[must_use]
    pub fn not(&self) -> Self {
        let mut mask = self.clone();
        for word in &mut mask.words {
            *word = !*word;
        }
        mask.trim();
        mask
    }

    /// Whether the intersection is not empty.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let mut pairs = self.words.iter().zip(&other.words);
        pairs.any(|(a, b)| a & b != 0)
    }

    /// Whether every CPU of this set is in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        let theirs = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter().zip(theirs).all(|(a, b)| a & !b == 0)
    }

    /// The CPUs in ascending order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            rest: &self.words,
            bits: 0,
            next_base: 0,
        }
    }

    /// The kernel's list form, such as `0-3,8`. Empty for an empty set.
    #[must_use]
    pub fn to_list(&self) -> String {
        ranges(self)
    }

    /// Adds the CPUs from `first` to `last`, including both. Both must be below the width.
    pub(crate) fn set_range(&mut self, first: usize, last: usize) {
        for index in first / WORD_BITS..=last / WORD_BITS {
            let mut word = u64::MAX;
            if index == first / WORD_BITS {
                word &= u64::MAX << (first % WORD_BITS);
            }
            if index == last / WORD_BITS {
                word &= u64::MAX >> (WORD_BITS - 1 - last % WORD_BITS);
            }
            self.words[index] |= word;
        }
    }

    fn combined(&self, other: &Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        let mut mask = Self::new(self.nr_cpu_ids.max(other.nr_cpu_ids));
        let word_of = |words: &[u64], index: usize| words.get(index).copied().unwrap_or(0);
        for (index, word) in mask.words.iter_mut().enumerate() {
            *word = operation(word_of(&self.words, index), word_of(&other.words, index));
        }
        mask
    }

    fn check(&self, cpu: usize) -> Result<(), CpumaskError> {
        if cpu < self.nr_cpu_ids {
            return Ok(());
        }
        Err(self.out_of_range(cpu))
    }

    fn out_of_range(&self, cpu: usize) -> CpumaskError {
        let nr_cpu_ids = self.nr_cpu_ids;
        CpumaskError::OutOfRange { cpu, nr_cpu_ids }
    }

    /// Clears bits beyond the width, and returns the lowest of these bits that was set.
    fn trim(&mut self) -> Option<usize> {
        let used = self.nr_cpu_ids % WORD_BITS;
        let last = self.words.last_mut().filter(|_| used != 0)?;
        let beyond = *last & (u64::MAX << used);
        *last ^= beyond;
        let base = self.nr_cpu_ids - used;
        (beyond != 0).then(|| base + trailing_zeros(beyond))
    }
}

/// The kernel's hex form: groups of 32 bits separated by commas, with as many digits as
/// the width needs. A width of 0 is `0`.
impl fmt::Display for Cpumask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.nr_cpu_ids.div_ceil(GROUP_BITS).max(1);
        let top_bits = self.nr_cpu_ids - (groups - 1) * GROUP_BITS;
        for group in (0..groups).rev() {
            let word = self.words.get(group / 2).copied().unwrap_or(0);
            let bits = (word >> (GROUP_BITS * (group % 2))) & u64::from(u32::MAX);
            if group == groups - 1 {
                let digits = top_bits.div_ceil(4);
                write!(f, "{bits:0digits$x}")?;
            } else {
                write!(f, ",{bits:08x}")?;
            }
        }
        Ok(())
    }
}

/// Serialized as a string in list form.
impl serde::Serialize for Cpumask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_list())
    }
}

/// The CPUs of a mask in ascending order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    /// The words after the current one.
    rest: &'a [u64],
    /// The remaining bits of the current word.
    bits: u64,
    /// The CPU of the lowest bit of the first word of `rest`.
    next_base: usize,
}

impl Iterator for Iter<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            let (&bits, rest) = self.rest.split_first()?;
            self.bits = bits;
            self.rest = rest;
            self.next_base += WORD_BITS;
        }
        let cpu = self.next_base - WORD_BITS + trailing_zeros(self.bits);
        self.bits &= self.bits - 1;
        Some(cpu)
    }
}

impl std::iter::FusedIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Cpumask {
    type Item = usize;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Operators on references, which call the method of the same meaning.
macro_rules! operators {
    ($($operator:ident $function:ident $method:ident),*) => {$(
        impl $operator<&Cpumask> for &Cpumask {
            type Output = Cpumask;

            fn $function(self, other: &Cpumask) -> Cpumask {
                self.$method(other)
            }
        }
    )*};
}

operators!(BitAnd bitand and, BitOr bitor or, BitXor bitxor xor, Sub sub and_not);

macro_rules! assigning_operators {
    ($($operator:ident $function:ident $method:ident),*) => {$(
        impl $operator<&Cpumask> for Cpumask {
            fn $function(&mut self, other: &Cpumask) {
                *self = self.$method(other);
            }
        }
    )*};
}

assigning_operators!(
    BitAndAssign bitand_assign and,
    BitOrAssign bitor_assign or,
    BitXorAssign bitxor_assign xor
);

impl Not for &Cpumask {
    type Output = Cpumask;

    fn not(self) -> Cpumask {
        Cpumask::not(self)
    }
}

/// Ascending numbers in list form, with runs as `first-last`.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs = runs.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// The number of the lowest bit that is set in the words from index `start` on.
fn first_bit(words: &[u64], start: usize) -> Option<usize> {
    let found = words.iter().enumerate().skip(start);
    let (index, &word) = found.into_iter().find(|(_, &word)| word != 0)?;
    Some(index * WORD_BITS + trailing_zeros(word))
}

fn bit(cpu: usize) -> u64 {
    1 << (cpu % WORD_BITS)
}

fn trailing_zeros(word: u64) -> usize {
    word.trailing_zeros() as usize
}

fn leading_zeros(word: u64) -> usize {
    word.leading_zeros() as usize
}

fn count_ones(word: u64) -> usize {
    word.count_ones() as usize
}
