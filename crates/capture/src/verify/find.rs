//! Finds the number of the first instruction at an address.

use super::{Choice, WrongHart};
use crate::trace::{StreamPiece, Streams};
use hartrace_isa::csr;
use hartrace_tandem::{Config, Follower, Group, Next, Reader, Register, Shadow};

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
        let mut pass = Pass::new(self.config, self.start, wanted);
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
                        pass.shadow.forget();
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
struct Pass<'a> {
    config: &'a Config,
    start: u64,
    /// The pc and the causes of traps, by which instructions are numbered as
    /// the verifier does it.
    shadow: Shadow,
    /// Instructions so far, those that trapped among them.
    before: u64,
    wanted: [Option<u64>; 2],
    found: [Option<u64>; 2],
}

impl<'a> Pass<'a> {
    fn new(config: &'a Config, start: u64, wanted: [Option<u64>; 2]) -> Pass<'a> {
        let mut pass = Pass {
            config,
            start,
            shadow: Shadow::new(config),
            before: 0,
            wanted,
            found: [None; 2],
        };
        pass.reset();
        pass
    }

    fn reset(&mut self) {
        self.shadow.forget();
        self.shadow.pc = Some(self.start);
        for cause in [csr::MCAUSE, csr::SCAUSE] {
            self.shadow.set(Register::csr(cause), 0, &mut |_| {});
        }
    }

    fn is_done(&self) -> bool {
        let mut both = self.found.iter().zip(self.wanted);
        both.all(|(found, wanted)| found.is_some() || wanted.is_none())
    }

    fn bytes(&mut self, reader: &mut Reader, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            match reader.next(&mut rest) {
                Next::More => return,
                // What happened in between is unknown.
                Next::Problem(_) => self.shadow.forget(),
                Next::Resumed(_) => {}
                Next::Group => self.group(reader.group()),
            }
        }
    }

    fn group(&mut self, group: &Group) {
        if group.reset {
            self.reset();
        }
        if self.shadow.attempts(group, &self.config.absent) {
            let here = Follower::at(self.config.xlen, self.shadow.pc);
            let here = here.moves(group).from;
            for (found, wanted) in self.found.iter_mut().zip(self.wanted) {
                if found.is_none() && wanted.is_some() && here == wanted {
                    *found = Some(self.before);
                }
            }
            self.before += 1;
        }
        // What cannot be applied is not known.
        let _ = self.shadow.apply(group, &mut |_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_tandem::{Item, PcForm};

    const NOP: Item = Item::Insn16(1);

    /// How many instructions come before 0x2000, and in all.
    fn before(config: &Config, groups: &[&[Item]]) -> (Option<u64>, u64) {
        let mut bytes = Vec::new();
        for group in groups {
            let items = [&[Item::BeginGroup], *group, &[Item::EndGroup]].concat();
            items.iter().for_each(|item| item.write(config, &mut bytes));
        }
        let mut pass = Pass::new(config, 0x1000, [Some(0x2000), None]);
        pass.bytes(&mut Reader::new(config.clone()), &bytes);
        (pass.found[0], pass.before)
    }

    fn cause(value: u64) -> Item {
        Item::Full(Register::csr(0x342), value)
    }

    /// A fetch that fails has a number, an interrupt has none.
    #[test]
    fn attempts_are_counted_as_the_verifier_counts_them() {
        let groups: [&[Item]; 5] = [
            &[Item::IncrementPc, NOP],
            &[Item::Pc(0x3000), cause(1 << 63 | 7)],
            &[Item::Pc(0x4000), cause(12)],
            &[Item::StateInit, Item::Pc(0x2000), cause(12)],
            &[Item::IncrementPc, NOP],
        ];
        assert_eq!(before(&Config::default(), &groups), (Some(2), 3));
    }

    /// Where a trace leaves instructions out, every new pc is one.
    #[test]
    fn instructions_that_are_absent_are_counted() {
        let config = Config {
            absent: "insn".parse().unwrap(),
            ..Config::default()
        };
        let groups: [&[Item]; 3] = [
            &[Item::Pc(0x1002)],
            &[Item::Pc(0x2000), cause(1 << 63 | 7)],
            &[Item::Pc(0x2002)],
        ];
        assert_eq!(before(&config, &groups), (Some(2), 3));
    }

    /// The two-pc form says where an instruction is.
    #[test]
    fn an_old_pc_is_where_the_instruction_is() {
        let config = Config {
            pc: PcForm::Both,
            ..Config::default()
        };
        let groups: [&[Item]; 2] = [
            &[Item::TwoPcs(0x1000, 0x1002), NOP],
            &[Item::TwoPcs(0x2000, 0x2002), NOP],
        ];
        assert_eq!(before(&config, &groups), (Some(1), 2));
    }
}
