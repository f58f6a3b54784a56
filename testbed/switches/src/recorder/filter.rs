// SPDX-License-Identifier: GPL-2.0-only
//! Which names of threads are recorded.

use super::bpf_intf::SWITCHES_COMM_LEN;

/// Bytes of a name with the 0 at its end.
const LEN: usize = SWITCHES_COMM_LEN as usize;

/// Names of threads: one, all that begin alike, or by default all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct CommFilter {
    /// What the bytes below the mask have to be.
    bytes: [u8; LEN],
    /// 255 for each byte that counts.
    mask: [u8; LEN],
}

impl CommFilter {
    /// A name, or the beginning of names with `*` behind it.
    ///
    /// # Errors
    ///
    /// If no thread can be called so.
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
        // The 0 behind the name is what nothing else may follow.
        let counted = name.len() + usize::from(!is_prefix);
        filter.mask[..counted].fill(u8::MAX);
        Ok(filter)
    }

    /// The bytes, as the BPF half compares them.
    pub(super) fn words<const N: usize>(&self) -> [u64; N] {
        words(&self.bytes)
    }

    /// The mask, likewise.
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

    /// As the BPF half does it.
    fn matches(filter: &CommFilter, name: &str) -> bool {
        let mut comm = [0; LEN];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        let comm: [u64; 2] = words(&comm);
        let (bytes, mask) = (filter.words::<2>(), filter.mask_words::<2>());
        (0..2).all(|n| (comm[n] ^ bytes[n]) & mask[n] == 0)
    }

    #[test]
    fn a_name_is_that_name() {
        let hog = CommFilter::parse("hog").unwrap();
        assert!(matches(&hog, "hog"));
        for other in ["ho", "hogs", "Hog", "", " hog"] {
            assert!(!matches(&hog, other), "{other}");
        }
    }

    #[test]
    fn names_of_any_length_that_the_kernel_has() {
        let longest = "abcdefghijklmno";
        for end in 1..=longest.len() {
            let filter = CommFilter::parse(&longest[..end]).unwrap();
            for other in 0..=longest.len() {
                assert_eq!(matches(&filter, &longest[..other]), other == end);
            }
        }
    }

    #[test]
    fn names_that_no_thread_has() {
        for text in ["", "abcdefghijklmnop", "abcdefghijklmnop*"] {
            assert!(CommFilter::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_star_stands_for_any_end(name in "[a-c]{0,15}", prefix in "[a-c]{0,3}") {
            let filter = CommFilter::parse(&format!("{prefix}*")).unwrap();
            prop_assert_eq!(matches(&filter, &name), name.starts_with(&prefix));
        }

        #[test]
        fn by_default_all_names(name in "[ -~]{0,15}") {
            prop_assert!(matches(&CommFilter::default(), &name));
        }
    }
}
