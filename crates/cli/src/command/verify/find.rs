//! The first instruction at an address, by its number.

use crate::diagnostic::{Code, Diagnostic, Failure};
use hartrace_analyze::Symbols;
use hartrace_capture::input::Input;
use hartrace_isa::Xlen;
use hartrace_tandem::{Config, Group, How, NewPc, Next, Reader};
use std::path::Path;

/// Where a symbol is.
pub(super) fn address(name: &str, symbols: Option<&Symbols>) -> Result<u64, Failure> {
    let found = symbols.and_then(|symbols| symbols.iter().find(|(_, n)| *n == name));
    found.map(|(address, _)| address).ok_or_else(|| {
        let message = format!("`{name}` is neither a number nor a symbol of the program");
        Diagnostic::new(Code::BadEntry, message)
            .help("write the number of an instruction, or the name of a function; `hartrace disasm` shows them")
            .into()
    })
}

/// How many instructions come before the first one at each address, by a
/// first look at the trace; `None` where there is none.
pub(super) fn first(
    path: &Path,
    config: &Config,
    start: u64,
    wanted: [Option<u64>; 2],
) -> Result<[Option<u64>; 2], Failure> {
    let bytes = Input::open(path)?.contents(u64::MAX)?;
    let mut rest = &bytes[..];
    let mut reader = Reader::new(config.clone());
    let mut pass = Pass {
        xlen: config.xlen,
        start,
        pc: Some(start),
        before: 0,
        causes: [0; 2],
    };
    let mut found = [None; 2];
    loop {
        match reader.next(&mut rest) {
            Next::More => return Ok(found),
            // What happened in between, nobody knows.
            Next::Problem(_) => pass.pc = None,
            Next::Resumed(_) => {}
            Next::Group => {
                let here = pass.pc.filter(|_| reader.group().insn.is_some());
                for (found, wanted) in found.iter_mut().zip(wanted) {
                    if found.is_none() && wanted.is_some() && here == wanted {
                        *found = Some(pass.before);
                    }
                }
                if found
                    .iter()
                    .zip(wanted)
                    .all(|(f, w)| f.is_some() || w.is_none())
                {
                    return Ok(found);
                }
                pass.group(reader.group());
            }
        }
    }
}

/// A trace passing by.
struct Pass {
    xlen: Xlen,
    start: u64,
    pc: Option<u64>,
    /// Instructions so far, those that trapped among them.
    before: u64,
    /// mcause and scause.
    causes: [u64; 2],
}

impl Pass {
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
