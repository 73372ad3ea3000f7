//! The body of a waveform, at the edges of a clock.

use crate::header::Body;
use crate::watch::{Take, Watch, Watched};
use crate::{Header, WaveError, fst, ghw, vcd};

/// Reads a waveform from its first byte on, in chunks of any size.
pub struct Reader(Form);

/// One reader at a time, so that their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Form {
    Vcd(vcd::Reader),
    Fst(fst::Reader),
    Ghw(ghw::Reader),
}

impl Reader {
    /// A reader of a file with this header.
    ///
    /// # Errors
    ///
    /// A clock that is not one whole signal of one bit, or a signal that the file has not.
    pub fn new(header: &Header, watch: Watch) -> Result<Reader, WaveError> {
        let clock = watch.watched.get(watch.clock);
        let is_bit = |clock: &&Watched| clock.width == 1 && clock.parts.len() == 1;
        clock
            .filter(is_bit)
            .ok_or(WaveError::Unsupported("a clock of several bits"))?;
        Ok(Reader(match &*header.body {
            Body::Vcd { start } => Form::Vcd(vcd::Reader::new(*start, watch)),
            Body::Fst { .. } => Form::Fst(fst::Reader::new(&header.body, watch)?),
            Body::Ghw { start, .. } => Form::Ghw(ghw::Reader::new(&header.body, *start, watch)),
        }))
    }

    /// Reads on.
    ///
    /// # Errors
    ///
    /// A damaged file, and what `take` returns. Nothing can be read after it.
    pub fn feed(&mut self, chunk: &[u8], take: &mut Take<'_>) -> Result<(), WaveError> {
        match &mut self.0 {
            Form::Vcd(reader) => reader.feed(chunk, take),
            Form::Fst(reader) => reader.feed(chunk, take),
            Form::Ghw(reader) => reader.feed(chunk, take),
        }
    }

    /// The file has ended.
    ///
    /// # Errors
    ///
    /// A file that is cut off, and what `take` returns.
    pub fn finish(&mut self, take: &mut Take<'_>) -> Result<(), WaveError> {
        match &mut self.0 {
            Form::Vcd(reader) => reader.finish(take),
            Form::Fst(reader) => reader.finish(),
            Form::Ghw(reader) => reader.finish(),
        }
    }
}
