//! FireSim's TracerV, human-readable: `Cycle: 0000000000000079 I0: 0000000000010040`, and
//! as earlier versions wrote it, `C0: 0000010000010040, cycle: 0000000000000046`. Addresses
//! have 40 bits; above them, the earlier form has the bit that says that there is one.

use super::{Entries, Grammar};
use crate::scan::{Fault, Scan, is_blank};
use hartrace_isa::Xlen;

pub(super) struct Tracerv;

pub(super) fn is_line(line: &[u8]) -> bool {
    read(line).is_ok_and(|row| row.is_some())
}

/// Cycle and address; `None` where nothing was committed.
fn read(line: &[u8]) -> Result<Option<(u64, u64)>, Fault> {
    let mut scan = Scan::new(line);
    if scan.eat(b"Cycle:") {
        let time = scan.count("a cycle in decimal")?;
        scan.spaces();
        scan.need(b"I", "`I0:` and an address")?;
        scan.count("`I0:` and an address")?;
        scan.need(b":", "`I0:` and an address")?;
        return Ok(Some((time, scan.hex("an address in hexadecimal")?)));
    }
    scan.need(b"C", "`Cycle:`, or `C0:` and an address")?;
    scan.count("`Cycle:`, or `C0:` and an address")?;
    scan.need(b":", "`Cycle:`, or `C0:` and an address")?;
    scan.spaces();
    let pc = scan.digits("an address in hexadecimal")?;
    scan.need(b", cycle:", "`, cycle:` and a number")?;
    let time = scan.count("a cycle in decimal")?;
    Ok((pc >> 40 & 1 != 0).then_some((time, pc)))
}

impl Grammar for Tracerv {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        if is_blank(line) || line.starts_with(b"#") {
            return Ok(());
        }
        let Some((time, pc)) = read(line)? else {
            return Ok(());
        };
        let pc = match to.steps.xlen() {
            Xlen::Rv32 => pc & 0xffff_ffff,
            // Virtual addresses are sign-extended.
            Xlen::Rv64 => ((pc << 24).cast_signed() >> 24).cast_unsigned(),
        };
        let entry = to.begin(pc, None);
        (entry.time, entry.incomplete) = (time, true);
        to.give()
    }
}
