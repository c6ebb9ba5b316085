//! How a client's bytes stand in a message that goes back to it.

use core::fmt;

/// Quoted, readable, and of bounded length.
pub(crate) struct Shown<'a>(pub &'a [u8]);

const LONGEST: usize = 80;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.0[..self.0.len().min(4 * LONGEST)]);
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => write!(f, "\"{}…\"", &text[..end]),
            None => write!(f, "\"{text}\""),
        }
    }
}
