//! The CSV of riscv-dv: `pc,instr,gpr,csr,binary,mode,instr_str,operand,pad`, by name in
//! any order. `gpr` and `csr` are lists of `name:value`, divided by `;`.
//!
//! The scripts that make it leave out instructions that write no register, unless they are
//! called with `--full_trace`, and do not record traps. So where a row cannot follow the
//! one before, rows are missing.

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::scan::{Fault, Name, csv_fields, is_blank, register_or_csr};
use crate::site::Site;
use crate::text::prefixed_hex;
use hartrace_flow::{HartId, Mode};
use hartrace_isa::{Isa, Xlen, length};

/// The columns that are read, in the order of the places.
const NAMES: [&str; 5] = ["pc", "binary", "gpr", "csr", "mode"];

#[derive(Default)]
pub(super) struct RiscvDv {
    places: Option<[Option<usize>; NAMES.len()]>,
    last: Option<(u64, u32)>,
    told: bool,
}

pub(super) fn is_line(line: &[u8]) -> bool {
    let has = |name: &[u8]| csv_fields(line).any(|field| field.1 == name);
    has(b"pc") && has(b"gpr") && has(b"binary") && has(b"instr_str")
}

impl Grammar for RiscvDv {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        if is_blank(line) {
            return Ok(());
        }
        if is_line(line) {
            self.places = Some(
                NAMES.map(|name| csv_fields(line).position(|field| field.1 == name.as_bytes())),
            );
            return Ok(());
        }
        let Some(places) = self.places else {
            return Err((Kind::MissingColumn("pc"), 0));
        };
        let mut values = [(0, &b""[..]); NAMES.len()];
        for (field, found) in csv_fields(line).enumerate() {
            for (place, value) in places.iter().zip(&mut values) {
                if *place == Some(field) {
                    *value = found;
                }
            }
        }
        let [pc, binary, gpr, csr, mode] = values;
        let number =
            |(at, text): (usize, &[u8]), what| prefixed_hex(text).ok_or((Kind::Expected(what), at));
        let bits = number(binary, "an instruction in hexadecimal")? as u32;
        let pc = number(pc, "a pc in hexadecimal")?;
        let gap = self.gap(pc, to);
        let entry = to.begin(pc, Some(bits));
        self.last = Some((pc, bits));
        entry.incomplete = true;
        entry.mode = match mode.1 {
            b"" => None,
            [digit @ b'0'..=b'3'] => Mode::from_code(digit - b'0'),
            _ => return Err((Kind::Value("mode"), mode.0)),
        };
        for (at, list) in [gpr, csr] {
            for write in list.split(|&b| b == b';').filter(|w| !w.is_empty()) {
                written(write, entry).ok_or((Kind::Expected("a list as `t0:1;t1:2`"), at))?;
            }
        }
        to.give()?;
        match gap && !core::mem::replace(&mut self.told, true) {
            true => Err((Kind::Limit(GAP), 0)),
            false => Ok(()),
        }
    }

    fn close(&mut self, _: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        self.last = None;
        Ok(())
    }
}

const GAP: &str = "instructions that write no register, nor traps (make it with --full_trace)";

impl RiscvDv {
    /// Rows are missing before this one: what is before it is given.
    fn gap(&mut self, pc: u64, to: &mut Entries<'_, '_, '_, '_>) -> bool {
        let Some((last, bits)) = self.last else {
            return false;
        };
        let isa = match to.steps.xlen() {
            Xlen::Rv32 => Isa::RV32GC,
            Xlen::Rv64 => Isa::RV64GC,
        };
        let site = Site::new(last, bits, length(bits as u16), isa, |_| None);
        let gap = !site.allows(pc);
        if gap {
            to.steps.lose(Some(HartId(0)), to.out);
        }
        gap
    }
}

fn written(write: &[u8], entry: &mut crate::Entry) -> Option<()> {
    let at = write.iter().position(|&b| b == b':')?;
    let value = prefixed_hex(write.get(at + 1..)?)?;
    match register_or_csr(write.get(..at)?)? {
        Name::Reg(reg) => entry.reg(reg, value),
        Name::Csr(number) => entry.csr(number, value),
        Name::Vector => entry.incomplete = true,
    }
    Some(())
}
