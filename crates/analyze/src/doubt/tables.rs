//! Jump tables: where the indirect jumps of a `switch` can lead.
//!
//! A compiler puts the cases of a `switch` into a table of addresses, or of distances
//! from the table, whose address the function forms with `auipc` or `lui` and `addi`.

use crate::functions::{FunctionId, Functions};
use hartrace_flow::{Image, SpaceId};
use hartrace_isa::{Op, Reg, Xlen, decode};
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a function that are searched for tables.
const MAX_CODE: u64 = 1 << 18;

/// Entries of a table that are read.
const MAX_ENTRIES: u64 = 1 << 12;

/// Entries that make a table: fewer may be anything.
const LEAST: usize = 3;

/// Jumps of an instruction that have to agree with the tables before one that does not
/// is doubtful.
const PROVED: u32 = 3;

/// Functions and jumps that are remembered.
const MANY: usize = 1 << 14;

/// The tables of functions, and how far the jumps agree with them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    cases: FxHashMap<(SpaceId, FunctionId), FxHashSet<u64>>,
    proved: FxHashMap<(SpaceId, u64), u32>,
}

impl Tables {
    /// Whether an indirect jump inside a function goes to none of its cases, although
    /// it always did before.
    pub(super) fn contradict(
        &mut self,
        (image, space): (&Image, SpaceId),
        functions: &Functions,
        (from, to): (u64, u64),
    ) -> bool {
        let Some(id) = functions
            .of(from)
            .filter(|id| functions.of(to) == Some(*id))
        else {
            return false;
        };
        if self.cases.len() > MANY || self.proved.len() > MANY {
            *self = Tables::default();
        }
        let cases = self.cases.entry((space, id));
        let cases = cases.or_insert_with(|| find_cases(image, space, id, functions));
        let proved = self.proved.entry((space, from)).or_insert(0);
        match cases.contains(&to) {
            true => *proved = proved.saturating_add(1),
            // Its table is not one of those: nothing is known about it.
            false if *proved < PROVED => *proved = 0,
            false => return true,
        }
        false
    }
}

/// Every address in a jump table of a function.
fn find_cases(
    image: &Image,
    space: SpaceId,
    id: FunctionId,
    functions: &Functions,
) -> FxHashSet<u64> {
    let mut all = FxHashSet::default();
    for (start, end, _) in functions.ranges().filter(|(.., of)| *of == id) {
        for base in constants(image, space, start, end) {
            let inside = |address: u64| address & 1 == 0 && functions.of(address) == Some(id);
            for entry in [Entry::Distance, Entry::Word, Entry::Double] {
                let cases: Vec<u64> = (0..MAX_ENTRIES)
                    .map_while(|n| entry.read(image, space, base, n))
                    .take_while(|address| inside(*address))
                    .collect();
                if cases.len() >= LEAST {
                    all.extend(cases);
                }
            }
        }
    }
    all
}

/// An entry of a table.
#[derive(Clone, Copy)]
enum Entry {
    /// 32 bits, the distance from the table.
    Distance,
    /// A 32-bit address.
    Word,
    /// A 64-bit address.
    Double,
}

impl Entry {
    fn read(self, image: &Image, space: SpaceId, base: u64, n: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let size: usize = match self {
            Entry::Double => 8,
            _ => 4,
        };
        let at = base.checked_add(n * size as u64)?;
        let bytes_here = bytes.get_mut(..size)?;
        if image.read(space, at, bytes_here) < size {
            return None;
        }
        let value = u64::from_le_bytes(bytes);
        Some(match self {
            Entry::Distance => base.wrapping_add_signed(i64::from(value as u32 as i32)),
            _ => value,
        })
    }
}

/// The addresses that code forms.
fn constants(image: &Image, space: SpaceId, start: u64, end: u64) -> FxHashSet<u64> {
    let mut found = FxHashSet::default();
    let mut known: [Option<u64>; 32] = [None; 32];
    let insns = image.insns(space, start, MAX_CODE);
    let inside = |pc: u64| pc < end && pc.wrapping_sub(start) < MAX_CODE;
    for (pc, insn) in insns.take_while(|(pc, _)| inside(*pc)) {
        let inst = decode(insn.bits, insn.isa);
        let imm = i64::from(inst.imm);
        let value = |reg: Reg| known.get(usize::from(reg.number())).copied().flatten();
        let formed = match inst.op {
            Op::Auipc => Some(pc.wrapping_add_signed(imm)),
            Op::Lui => Some(imm as u64),
            Op::Addi => value(inst.rs1).map(|base| base.wrapping_add_signed(imm)),
            _ => None,
        };
        let formed = formed.map(|value| match insn.isa.xlen() {
            Xlen::Rv32 => value & 0xffff_ffff,
            Xlen::Rv64 => value,
        });
        if inst.rd != Reg::ZERO
            && let Some(place) = known.get_mut(usize::from(inst.rd.number()))
        {
            *place = formed;
        }
        found.extend(formed);
    }
    found
}
