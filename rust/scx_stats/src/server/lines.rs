//! Splits a stream of bytes into lines.

/// Maximum capacity in bytes that an empty buffer keeps.
const KEPT_BYTES: usize = 4096;

/// A line has more bytes than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Received bytes that have not been taken as lines yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// There is no newline between `start` and this index, so no byte is searched twice.
    searched: usize,
}

impl Lines {
    /// Adds bytes that were received.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next line without its newline; `None` if the line is incomplete.
    ///
    /// # Errors
    /// If the line has more than `max_bytes`, even if it is incomplete.
    pub(super) fn next(&mut self, max_bytes: usize) -> Option<Result<&[u8], TooLong>> {
        let rest = &self.bytes[self.searched..];
        let Some(offset) = rest.iter().position(|&byte| byte == b'\n') else {
            self.searched = self.bytes.len();
            self.shrink();
            return (self.len() > max_bytes).then_some(Err(TooLong));
        };
        let (start, end) = (self.start, self.searched + offset);
        (self.start, self.searched) = (end + 1, end + 1);
        if end - start > max_bytes {
            return Some(Err(TooLong));
        }
        Some(Ok(&self.bytes[start..end]))
    }

    /// Whether all bytes have been taken.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Frees memory after a long line.
    fn shrink(&mut self) {
        if self.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_BYTES: usize = 4;

    #[track_caller]
    fn expect(lines: &mut Lines, line: &str) {
        assert_eq!(lines.next(MAX_BYTES), Some(Ok(line.as_bytes())));
    }

    #[test]
    fn lines_in_pieces() {
        let mut lines = Lines::default();
        assert_eq!(lines.next(MAX_BYTES), None);
        lines.push(b"ab");
        assert_eq!(lines.next(MAX_BYTES), None);
        lines.push(b"c\n\nde\nf");
        expect(&mut lines, "abc");
        expect(&mut lines, "");
        lines.push(b"g");
        expect(&mut lines, "de");
        assert_eq!(lines.next(MAX_BYTES), None);
        assert!(!lines.is_empty());
        lines.push(b"\n");
        expect(&mut lines, "fg");
        assert!(lines.is_empty());
    }

    #[test]
    fn long_lines() {
        let mut lines = Lines::default();
        lines.push(b"abcd\nabcde\nab");
        expect(&mut lines, "abcd");
        assert_eq!(lines.next(MAX_BYTES), Some(Err(TooLong)));
        assert_eq!(lines.next(MAX_BYTES), None);
        lines.push(b"cde");
        assert_eq!(lines.next(MAX_BYTES), Some(Err(TooLong)));
    }

    #[test]
    fn memory_is_given_back() {
        let mut lines = Lines::default();
        lines.push(&[b'a'; 4 * KEPT_BYTES]);
        lines.push(b"\n");
        assert!(matches!(lines.next(usize::MAX), Some(Ok(_))));
        assert_eq!(lines.next(usize::MAX), None);
        assert!(lines.bytes.capacity() <= KEPT_BYTES);
    }
}
