//! Text that is flushed in large pieces.

/// Bytes gathered before they are flushed.
const BUFFER: usize = 1 << 17;

/// What gets gathered text, and may empty it.
type Flush<'a> = Box<dyn FnMut(&mut Vec<u8>) + Send + 'a>;

/// Text that is gathered. `flush` gets it when there is much of it, and may empty
/// it; call [`Gathered::finish`] at the end.
pub struct Gathered<'a> {
    text: Vec<u8>,
    flush: Flush<'a>,
    holds: bool,
}

impl<'a> Gathered<'a> {
    /// No text so far.
    pub fn new(flush: impl FnMut(&mut Vec<u8>) + Send + 'a) -> Gathered<'a> {
        Gathered {
            text: Vec::new(),
            flush: Box::new(flush),
            holds: false,
        }
    }

    /// From now on text is flushed only by [`Gathered::finish`].
    pub fn hold(&mut self) {
        self.holds = true;
    }

    /// What has not been flushed; text is added to its end.
    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Bytes that have not been flushed.
    #[must_use]
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Flushes if there is much text.
    #[inline]
    pub fn added(&mut self) {
        if self.text.len() >= BUFFER && !self.holds {
            self.finish();
        }
    }

    /// Flushes what is left.
    pub fn finish(&mut self) {
        (self.flush)(&mut self.text);
    }
}
