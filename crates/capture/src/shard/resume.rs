//! What decoding in pieces asks of a decoder.

use hartrace_flow::Consumer;

/// A decoder that can go on where another of its kind stopped.
pub trait Resume {
    /// Its state between two messages.
    type Seam: Clone + PartialEq + Send + Sync;

    /// Decodes the next bytes; gives how many were used, fewer if the consumer
    /// asked for a pause.
    fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize;

    /// The stream ends.
    fn finish<C: Consumer>(&mut self, out: &mut C);

    /// The state.
    fn seam(&self) -> Self::Seam;

    /// Goes on from a state.
    fn resume(&mut self, seam: &Self::Seam);

    /// Begins at this offset without any state.
    fn restart(&mut self, offset: u64);

    /// Whether the state depends on nothing before the restart.
    fn is_synchronised(&self) -> bool;

    /// Whatever may be guessed at a restart from an earlier state.
    fn hint(&mut self, seam: &Self::Seam);

    /// Offset of the next byte.
    fn position(&self) -> u64;

    /// Offset of a seam.
    fn at(seam: &Self::Seam) -> u64;

    /// The first place at or behind `from` where a message may start.
    fn boundary(&self, bytes: &[u8], from: usize) -> Option<usize>;
}

impl Resume for hartrace_ntrace::Decoder<'_> {
    type Seam = hartrace_ntrace::Seam;

    fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        self.feed(bytes, out)
    }

    fn finish<C: Consumer>(&mut self, out: &mut C) {
        self.finish(out);
    }

    fn seam(&self) -> Self::Seam {
        self.seam()
    }

    fn resume(&mut self, seam: &Self::Seam) {
        self.resume(seam);
    }

    fn restart(&mut self, offset: u64) {
        self.restart(offset);
    }

    fn is_synchronised(&self) -> bool {
        self.is_synchronised()
    }

    fn hint(&mut self, seam: &Self::Seam) {
        self.set_time_hint(seam);
    }

    fn position(&self) -> u64 {
        self.position()
    }

    fn at(seam: &Self::Seam) -> u64 {
        seam.at()
    }

    fn boundary(&self, bytes: &[u8], from: usize) -> Option<usize> {
        // Behind any byte with MSEO = 11, whatever it belongs to.
        let before = from.checked_sub(1)?;
        let end = bytes.get(before..)?.iter().position(|b| b & 3 == 3)?;
        Some(before + end + 1)
    }
}

impl Resume for hartrace_etrace::Decoder<'_> {
    type Seam = hartrace_etrace::Seam;

    fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        self.feed(bytes, out)
    }

    fn finish<C: Consumer>(&mut self, out: &mut C) {
        self.finish(out);
    }

    fn seam(&self) -> Self::Seam {
        self.seam()
    }

    fn resume(&mut self, seam: &Self::Seam) {
        self.resume(seam);
    }

    fn restart(&mut self, offset: u64) {
        self.restart(offset);
    }

    fn is_synchronised(&self) -> bool {
        self.is_synchronised()
    }

    fn hint(&mut self, seam: &Self::Seam) {
        self.set_hint(seam);
    }

    fn position(&self) -> u64 {
        self.position()
    }

    fn at(seam: &Self::Seam) -> u64 {
        seam.at()
    }

    fn boundary(&self, bytes: &[u8], from: usize) -> Option<usize> {
        hartrace_etrace::boundary(bytes, from)
    }
}
