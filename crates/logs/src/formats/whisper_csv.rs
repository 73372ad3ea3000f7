//! Whisper's CSV: `pc, inst, modified regs, source operands, memory, inst info, privilege,
//! trap, disassembly, hartid`. An address is `va` or `va:pa`; lists are divided by `;`.

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::{EntryAccess, EntryTrap};
use crate::scan::{Fault, Name, cause_of, csv_fields, is_blank, mode_named, register_or_csr};
use crate::text::hex;
use hartrace_flow::HartId;
use hartrace_isa::Xlen;

pub(super) struct WhisperCsv;

const HEADER: &[u8] = b"pc, inst, modified regs, source operands, memory, inst info, privilege";

pub(super) fn is_line(line: &[u8]) -> bool {
    line.starts_with(HEADER)
}

impl Grammar for WhisperCsv {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        if is_blank(line) || is_line(line) {
            return Ok(());
        }
        let narrow = to.steps.xlen() == Xlen::Rv32;
        let mut fields = csv_fields(line);
        let mut field = || fields.next().unwrap_or((line.len(), b""));
        let bad = |what, at| (Kind::Expected(what), at);
        let (at, pc) = field();
        let pc = pc.split(|&b| b == b':').next().and_then(hex);
        let pc = pc.ok_or(bad("a pc in hexadecimal", at))?;
        let (at, bits) = field();
        let bits = hex(bits).ok_or(bad("an instruction in hexadecimal", at))?;
        let entry = to.begin(pc, Some(bits as u32));
        let (at, changes) = field();
        for change in changes.split(|&b| b == b';').filter(|c| !c.is_empty()) {
            changed(change, entry).ok_or(bad("a list as `x5=1;c768=2`", at))?;
        }
        field();
        let (at, memory) = field();
        for access in memory.split(|&b| b == b';').filter(|a| !a.is_empty()) {
            accessed(access, entry).ok_or(bad("a list as `va:pa=data`", at))?;
        }
        field();
        let (at, mode) = field();
        entry.mode = mode_named(mode);
        if entry.mode.is_none() && !mode.is_empty() {
            return Err(bad("a mode: m, s, u, vs, vu or d", at));
        }
        let (at, cause) = field();
        if !cause.is_empty() {
            let cause = hex(cause).ok_or(bad("a cause in hexadecimal", at))?;
            let cause = cause_of(cause, narrow);
            entry.trap = Some(EntryTrap { cause, tval: None });
        }
        field();
        let (at, hart) = field();
        let hart = hex(hart).and_then(|hart| u32::try_from(hart).ok());
        let missing = at == line.len();
        let hart = hart.or(missing.then_some(0));
        entry.hart = HartId(hart.ok_or(bad("a hart number in hexadecimal", at))?);
        to.give()
    }
}

/// `x5=1`, `f0=2`, `c768=3`, `pc=80000000`; `ff` are the flags that a floating-point
/// instruction added to the others.
fn changed(change: &[u8], entry: &mut crate::Entry) -> Option<()> {
    let at = change.iter().position(|&b| b == b'=')?;
    let (name, value) = (change.get(..at)?, change.get(at + 1..)?);
    if name == b"ff" {
        entry.incomplete = true;
        return Some(());
    }
    if name == b"pc" {
        entry.next = Some(hex(value)?);
        return Some(());
    }
    match register_or_csr(name)? {
        Name::Reg(reg) => entry.reg(reg, hex(value)?),
        Name::Csr(number) => entry.csr(number, hex(value)?),
        Name::Vector => entry.incomplete = true,
    }
    Some(())
}

/// `va`, `va:pa`, with `=data` for a store; `m` marks an element that is masked off.
fn accessed(access: &[u8], entry: &mut crate::Entry) -> Option<()> {
    let mut parts = access.split(|&b| b == b'=');
    let (place, data) = (parts.next()?, parts.next());
    if place.ends_with(b"m") {
        return Some(());
    }
    let mut addresses = place.split(|&b| b == b':');
    let addr = hex(addresses.next()?)?;
    let paddr = addresses.next().map(hex);
    entry.access(EntryAccess {
        store: data.is_some(),
        addr,
        paddr: paddr.flatten(),
        size: None,
        data: match data {
            Some(data) => Some(hex(data)?),
            None => None,
        },
    });
    Some(())
}
