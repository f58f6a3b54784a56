// SPDX-License-Identifier: GPL-2.0-only
//! A filter for thread names.

use super::bpf_intf::SWITCHES_COMM_LEN;

/// Size of a name with its terminating 0.
const LEN: usize = SWITCHES_COMM_LEN as usize;

/// A thread name, a prefix of names, or by default all names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct CommFilter {
    /// The values of the bytes that are compared.
    bytes: [u8; LEN],
    /// 255 for each byte that is compared, else 0.
    mask: [u8; LEN],
}

impl CommFilter {
    /// A filter for a name, or for a prefix if `text` ends with `*`.
    ///
    /// # Errors
    ///
    /// If the name or prefix is longer than the kernel stores, or if the name is empty. The prefix
    /// may be empty.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, is_prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        if name.len() >= LEN {
            let longest = LEN - 1;
            return Err(format!("the kernel keeps {longest} bytes of a name"));
        }
        if name.is_empty() && !is_prefix {
            return Err("no name".into());
        }
        let mut filter = Self::default();
        filter.bytes[..name.len()].copy_from_slice(name.as_bytes());
        // Without `*`, also compare the terminating 0, which excludes longer names.
        let counted = name.len() + usize::from(!is_prefix);
        filter.mask[..counted].fill(u8::MAX);
        Ok(filter)
    }

    /// The bytes as words, as the BPF side compares them.
    pub(super) fn words<const N: usize>(&self) -> [u64; N] {
        words(&self.bytes)
    }

    /// The mask as words, as the BPF side uses it.
    pub(super) fn mask_words<const N: usize>(&self) -> [u64; N] {
        words(&self.mask)
    }
}

fn words<const N: usize>(bytes: &[u8; LEN]) -> [u64; N] {
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(chunk.try_into().expect("chunks of eight bytes"));
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The comparison of the BPF side.
    fn matches(filter: &CommFilter, name: &str) -> bool {
        let mut comm = [0; LEN];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        let comm: [u64; 2] = words(&comm);
        let (bytes, mask) = (filter.words::<2>(), filter.mask_words::<2>());
        (0..2).all(|n| (comm[n] ^ bytes[n]) & mask[n] == 0)
    }

    #[test]
    fn name_matches_itself_only() {
        let hog = CommFilter::parse("hog").unwrap();
        assert!(matches(&hog, "hog"));
        for other in ["ho", "hogs", "Hog", "", " hog"] {
            assert!(!matches(&hog, other), "{other}");
        }
    }

    #[test]
    fn all_lengths_of_names_match() {
        let longest = "abcdefghijklmno";
        for end in 1..=longest.len() {
            let filter = CommFilter::parse(&longest[..end]).unwrap();
            for other in 0..=longest.len() {
                assert_eq!(matches(&filter, &longest[..other]), other == end);
            }
        }
    }

    #[test]
    fn impossible_names_are_errors() {
        for text in ["", "abcdefghijklmnop", "abcdefghijklmnop*"] {
            assert!(CommFilter::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn star_matches_any_suffix(name in "[a-c]{0,15}", prefix in "[a-c]{0,3}") {
            let filter = CommFilter::parse(&format!("{prefix}*")).unwrap();
            prop_assert_eq!(matches(&filter, &name), name.starts_with(&prefix));
        }

        #[test]
        fn default_matches_all_names(name in "[ -~]{0,15}") {
            prop_assert!(matches(&CommFilter::default(), &name));
        }
    }
}
