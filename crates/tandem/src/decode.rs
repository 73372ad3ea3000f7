//! The decoder: groups in, events out.
//!
//! A group reports the instruction and the pc after it, so no code is needed,
//! and only the class of the instruction is inferred. The pc *before* the first
//! group is known only from an initial state; after a problem, from the next
//! full pc.

mod access;
mod hart;
mod values;

use hartrace_flow::{Consumer, HartId};
use hartrace_isa::Isa;

use self::hart::Hart;
use crate::read::{Next, Reader};
use crate::{Config, ConfigError, Fault};

/// Reconstructs what a hart did from its groups.
///
/// Contiguous instructions become runs, with their loads and
/// stores after the run; an exception's instruction is in no run. Changes of
/// the pc as initial state are a debugger's: the hart was halted for them.
///
/// ```
/// use hartrace_flow::{Consumer, Event, HartId};
/// use hartrace_tandem::{Config, Decoder};
/// use std::ops::ControlFlow;
///
/// struct Count(u32);
/// impl Consumer for Count {
///     fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
///         if let Event::Run(run) = event {
///             self.0 += run.insns;
///         }
///         ControlFlow::Continue(())
///     }
/// }
///
/// let mut trace = vec![1, 11, 7, 10, 0, 16, 0, 0, 0, 0, 0, 0, 2]; // pc is 0x1000
/// trace.extend([1, 3, 16, 1, 0, 2]); // c.nop
/// trace.extend([1, 3, 16, 1, 0, 2]); // c.nop
///
/// let mut count = Count(0);
/// let mut decoder = Decoder::new(Config::default(), HartId(0)).unwrap();
/// decoder.feed(&trace, &mut count);
/// decoder.finish(&mut count);
/// assert_eq!(count.0, 2);
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    reader: Reader,
    hart: Hart,
}

impl Decoder {
    /// A decoder at the start of a stream, or in the middle where a group
    /// starts.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn new(config: Config, hart: HartId) -> Result<Decoder, ConfigError> {
        config.validate()?;
        Ok(Decoder {
            hart: Hart::new(hart, &config),
            reader: Reader::new(config),
        })
    }

    /// Classifies jumps by this instruction set. Without it the 16-bit
    /// encodings that several extensions share are those of Zcmp and Zcmt
    /// where FLEN leaves no room for the others.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> Decoder {
        self.hart.set_isa(isa);
        self
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.reader.config()
    }

    /// Offset in the stream of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.reader.offset()
    }

    /// Groups begun so far.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.reader.groups()
    }

    /// Decodes the next bytes of the stream. Gives the number of bytes used:
    /// all of them, or fewer when the consumer asked for a pause; then go on
    /// with the rest.
    pub fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        let mut rest = bytes;
        loop {
            match self.reader.next(&mut rest) {
                Next::Group => self.group(out),
                Next::Problem(problem) => self.hart.lose(&problem, out),
                Next::Resumed(_) => {}
                Next::More => break,
            }
            if self.hart.take_pause() {
                break;
            }
        }
        bytes.len() - rest.len()
    }

    /// Bytes are missing here, for this reason and value: a frame of a
    /// container was damaged. What comes next starts with a group.
    pub fn missing<C: Consumer>(&mut self, fault: Fault, value: u64, out: &mut C) {
        let problem = self.reader.missing(fault, value);
        self.hart.lose(&problem, out);
    }

    /// The stream ends here.
    pub fn finish<C: Consumer>(&mut self, out: &mut C) {
        loop {
            match self.reader.finish() {
                Next::Group => self.group(out),
                Next::Problem(problem) => self.hart.lose(&problem, out),
                Next::Resumed(_) => {}
                Next::More => break,
            }
        }
        self.hart.finish(self.reader.offset(), out);
    }

    #[inline(always)]
    fn group<C: Consumer>(&mut self, out: &mut C) {
        let behind = self.reader.offset();
        self.hart.group(self.reader.group(), behind, out);
    }
}
