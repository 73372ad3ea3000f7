//! Rocket's verbose output, `+verbose`:
//!
//! `C0:  1234 [1] pc=[0000000080000000] W[r 5=0000000080000000][1] R[r 0=0...] R[r 0=0...]
//! inst=[00000297] DASM(00000297)`
//!
//! The numbers are the hart, the cycle and whether it retired: 0 is an exception. Of the
//! register that it writes, the second number says whether the value is there: those of
//! floating-point and late writes are not.

use super::{Entries, Grammar};
use crate::scan::{Fault, Scan, is_blank};
use hartrace_flow::{Cause, HartId, RegId};

pub(super) struct Rocket;

pub(super) fn is_line(line: &[u8]) -> bool {
    let mut scan = Scan::new(line);
    scan.eat(b"C") && scan.count("").is_ok() && scan.eat(b":") && contains(scan.rest, b"] pc=[")
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

impl Grammar for Rocket {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        // What the program or the simulator prints.
        if is_blank(line) || !line.starts_with(b"C") {
            return Ok(());
        }
        let mut scan = Scan::new(line);
        scan.eat(b"C");
        let hart = scan.count("`C` and a hart number")?;
        scan.need(b":", "`:` after the hart number")?;
        let time = scan.count("a cycle in decimal")?;
        scan.spaces();
        scan.need(b"[", "`[1]` or `[0]`")?;
        let retired = scan.count("`[1]` or `[0]`")? != 0;
        scan.need(b"] pc=[", "`pc=[...]`")?;
        let pc = scan.digits("`pc=[...]`")?;
        scan.need(b"] W[r", "`W[r...]`")?;
        let reg = scan.count("a register")?;
        scan.need(b"=", "`=` and a value")?;
        let value = scan.digits("a value in hexadecimal")?;
        scan.need(b"][", "`[1]` or `[0]`")?;
        let written = scan.count("`[1]` or `[0]`")? != 0;
        if scan.before(b"inst=[", 0).is_none() {
            return scan.expected("`inst=[...]`");
        }
        let bits = scan.digits("`inst=[...]`")? as u32;
        let Ok(hart) = u32::try_from(hart) else {
            return Scan::new(line).expected("a hart number");
        };
        let entry = to.begin(pc, Some(bits));
        (entry.hart, entry.time) = (HartId(hart), time);
        if !retired {
            entry.trapped(Cause::Exception(None));
        } else if written {
            entry.reg(RegId::X(reg as u8 & 31), value);
        }
        // Memory and CSRs are not recorded, nor is such a register.
        entry.incomplete = true;
        to.give()
    }
}
