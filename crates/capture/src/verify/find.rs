//! The first instruction at an address, by its number.

use super::{Choice, WrongHart};
use crate::trace::{StreamPiece, Streams};
use hartrace_isa::Xlen;
use hartrace_tandem::{Config, Group, How, NewPc, Next, Reader};

/// Looks for addresses in a trace.
pub struct Search<'a> {
    /// The settings of the trace.
    pub config: &'a Config,
    /// Where the hart starts.
    pub start: u64,
    /// Whose stream it is.
    pub choice: Choice,
}

impl Search<'_> {
    /// How many instructions come before the first one at each address, in a
    /// file with these bytes; `None` where there is none.
    ///
    /// # Errors
    ///
    /// A container with several harts of which none is chosen.
    pub fn first(
        mut self,
        bytes: &[u8],
        wanted: [Option<u64>; 2],
    ) -> Result<[Option<u64>; 2], WrongHart> {
        let mut reader = Reader::new(self.config.clone());
        let mut pass = Pass {
            xlen: self.config.xlen,
            start: self.start,
            pc: Some(self.start),
            before: 0,
            causes: [0; 2],
            wanted,
            found: [None; 2],
        };
        let mut streams = Streams::default();
        for chunk in bytes.chunks(CHUNK) {
            streams.feed(chunk, |piece| -> Result<(), WrongHart> {
                match piece {
                    StreamPiece::Bytes(hart, bytes) => {
                        if self.choice.takes(hart)? {
                            pass.bytes(&mut reader, bytes);
                        }
                    }
                    StreamPiece::Lost(problem) => {
                        reader.missing(problem.fault, problem.value);
                        pass.pc = None;
                    }
                }
                Ok(())
            })?;
            if pass.is_done() {
                break;
            }
        }
        Ok(pass.found)
    }
}

/// Bytes between two looks whether all is found.
const CHUNK: usize = 1 << 20;

/// A trace passing by.
struct Pass {
    xlen: Xlen,
    start: u64,
    pc: Option<u64>,
    /// Instructions so far, those that trapped among them.
    before: u64,
    /// mcause and scause.
    causes: [u64; 2],
    wanted: [Option<u64>; 2],
    found: [Option<u64>; 2],
}

impl Pass {
    fn is_done(&self) -> bool {
        let mut both = self.found.iter().zip(self.wanted);
        both.all(|(found, wanted)| found.is_some() || wanted.is_none())
    }

    fn bytes(&mut self, reader: &mut Reader, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            match reader.next(&mut rest) {
                Next::More => return,
                // What happened in between, nobody knows.
                Next::Problem(_) => self.pc = None,
                Next::Resumed(_) => {}
                Next::Group => {
                    let here = self.pc.filter(|_| reader.group().insn.is_some());
                    for (found, wanted) in self.found.iter_mut().zip(self.wanted) {
                        if found.is_none() && wanted.is_some() && here == wanted {
                            *found = Some(self.before);
                        }
                    }
                    self.group(reader.group());
                }
            }
        }
    }

    fn group(&mut self, group: &Group) {
        let mut trap = None;
        for change in &group.changes {
            let slot = match change.register.as_csr() {
                Some(0x342) => 0,
                Some(0x142) => 1,
                _ => continue,
            };
            if let Some(cause) = self.causes.get_mut(slot) {
                *cause = match change.how {
                    How::Full(value) => value,
                    How::Offset(by) => self.xlen.wrap(cause.wrapping_add_signed(by.into())),
                    How::Mask(bits) => *cause | u64::from(bits),
                };
                trap = Some(*cause);
            }
        }
        let exception = trap.is_some_and(|cause| cause >> (self.xlen.bits() - 1) & 1 == 0);
        let attempts = group.insn.is_some() || exception && !group.init && group.pc.is_some();
        self.before += u64::from(attempts && !group.outside && !group.reset);
        let length = group.insn.map_or(0, |insn| insn.len.into());
        self.pc = match group.pc {
            Some(NewPc::To(to) | NewPc::FromTo(_, to)) => Some(to),
            Some(NewPc::Increment) => self.pc.map(|pc| self.xlen.wrap(pc.wrapping_add(length))),
            None if group.reset => Some(self.start),
            None => self.pc,
        };
    }
}
