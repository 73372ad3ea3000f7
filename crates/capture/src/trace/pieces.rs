//! A stream cut into its messages or packets.

use crate::input::{Input, InputError};
use hartrace_flow::decode::Framing;

/// Bytes of an unfinished piece that are kept, far more than a message has.
pub(super) const KEPT: usize = 1 << 16;

/// Divides a stream into its pieces; each comes with its offset and its bytes.
/// Of one that is no message and longer than 64 KiB they may be the first ones
/// only: memory does not grow with the stream.
pub(crate) struct Pieces<F> {
    framer: F,
    /// The first bytes of the piece whose end has not come.
    pub(super) kept: Vec<u8>,
}

impl<F: Framing> Pieces<F> {
    pub(super) const fn new(framer: F) -> Pieces<F> {
        Pieces {
            framer,
            kept: Vec::new(),
        }
    }

    /// The next bytes of the stream.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub(super) fn feed<E>(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(u64, &[u8], &F::Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.framer.position();
        let mut rest = chunk;
        // How much of the chunk belongs to pieces that are given out.
        let mut given = 0;
        while let Some((at, piece)) = self.framer.next_piece(&mut rest) {
            let end = (at + F::length(&piece) as u64 - start) as usize;
            let bytes = chunk.get(given..end).unwrap_or_default();
            given = end;
            if at >= start {
                take(at, bytes, &piece)?;
            } else {
                keep(&mut self.kept, bytes);
                take(at, &self.kept, &piece)?;
            }
            self.kept.clear();
        }
        keep(&mut self.kept, chunk.get(given..).unwrap_or_default());
        Ok(())
    }

    /// The stream ends: what is left of a message, if there is any.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub(super) fn finish<E>(
        &mut self,
        mut take: impl FnMut(u64, &[u8], &F::Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.framer.finish() {
            Some((at, piece)) => take(at, &self.kept, &piece),
            None => Ok(()),
        }
    }
}

/// Keeps more bytes of a piece, if there is room.
fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT.saturating_sub(kept.len()).min(bytes.len());
    kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
}

/// The pieces of a whole input.
///
/// # Errors
///
/// A failing read, and whatever `take` returns.
pub(crate) fn pieces<F: Framing, E: From<InputError>>(
    input: Input,
    framer: F,
    mut take: impl FnMut(u64, &[u8], &F::Piece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut pieces = Pieces::new(framer);
    input.chunks(|chunk| pieces.feed(chunk, &mut take))?;
    pieces.finish(take)
}
