//! Renode's execution tracer as text: `0x80000000: 0x00000297`, or with the text of the
//! instruction `0x80000000:   00000297       auipc t0, 0   [_start]`. Lines after an
//! instruction have its memory accesses (`MemoryWrite with address 0x..., value 0x...`) and
//! more, which is passed over. Bare pcs are a pc list.

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::EntryAccess;
use crate::scan::{Fault, Scan, is_blank};
use hartrace_isa::Xlen;

#[derive(Default)]
pub(super) struct Renode {
    /// There is an instruction that has not been given.
    open: bool,
}

pub(super) fn is_line(line: &[u8]) -> bool {
    instruction(&mut Scan::new(line)).is_ok()
}

fn instruction(scan: &mut Scan<'_>) -> Result<(u64, u32), Fault> {
    scan.need(b"0x", "a pc as `0x...:`")?;
    let pc = scan.digits("a pc as `0x...:`")?;
    scan.need(b":", "a pc as `0x...:`")?;
    scan.spaces();
    scan.eat(b"0x");
    let start = *scan;
    let len = scan
        .rest
        .iter()
        .take_while(|b| b.is_ascii_hexdigit())
        .count();
    let bits = scan.digits("an instruction in hexadecimal")?;
    match matches!(len, 4 | 8 | 12 | 16) && matches!(scan.rest, [] | [b' ', ..]) {
        true => Ok((pc, bits as u32)),
        false => start.expected("an instruction of 4 or 8 digits"),
    }
}

impl Grammar for Renode {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        if is_blank(line) {
            return Ok(());
        }
        let mut scan = Scan::new(line);
        if line.starts_with(b"0x") {
            if !line.contains(&b':') {
                let what = "addresses beside instructions (use the format PCAndOpcode)";
                return Err((Kind::Limit(what), 0));
            }
            let (pc, bits) = instruction(&mut scan)?;
            self.give(to)?;
            let entry = to.begin(pc, Some(bits));
            entry.incomplete = true;
            self.open = true;
            return Ok(());
        }
        let operation = scan.word();
        if !scan.eat(b" with address 0x") || !self.open {
            return Ok(());
        }
        let addr = scan.digits("an address in hexadecimal")?;
        let paddr = match scan.eat(b" => 0x") {
            true => Some(scan.digits("an address in hexadecimal")?),
            false => None,
        };
        scan.need(b", value 0x", "`, value` and a number")?;
        let data = Some(scan.digits("a value in hexadecimal")?);
        let store = operation.ends_with(b"Write");
        if store || operation.ends_with(b"Read") {
            to.entry.access(EntryAccess {
                store,
                addr,
                paddr,
                size: None,
                data,
            });
        }
        Ok(())
    }

    fn close(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        self.give(to)
    }
}

impl Renode {
    fn give(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        match core::mem::take(&mut self.open) {
            true => give(to),
            false => Ok(()),
        }
    }
}

/// Gives an instruction. Addresses of RV32 have no more than its bits.
pub(super) fn give(to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
    if to.steps.xlen() == Xlen::Rv32 {
        to.entry.pc &= 0xffff_ffff;
    }
    to.give()
}
