//! Text that is flushed in large pieces.

/// Bytes gathered before they are flushed.
const BUFFER: usize = 1 << 17;

/// Text that is gathered. `flush` gets it when there is much of it, and may empty
/// it; call [`Gathered::finish`] at the end.
pub struct Gathered<F> {
    text: Vec<u8>,
    flush: F,
}

impl<F: FnMut(&mut Vec<u8>)> Gathered<F> {
    /// No text so far.
    pub fn new(flush: F) -> Gathered<F> {
        Gathered {
            text: Vec::new(),
            flush,
        }
    }

    /// What has not been flushed; text is added to its end.
    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Bytes that have not been flushed.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Flushes if there is much text.
    #[inline]
    pub fn added(&mut self) {
        if self.text.len() >= BUFFER {
            self.finish();
        }
    }

    /// Flushes what is left.
    pub fn finish(&mut self) {
        (self.flush)(&mut self.text);
    }
}
