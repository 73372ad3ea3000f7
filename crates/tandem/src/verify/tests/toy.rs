//! A model small enough to be right: a few instructions, machine and user
//! mode, 64 KiB of memory and a device that always reads zero.

use super::std::collections::BTreeMap;
use super::std::vec;
use super::std::vec::Vec;

use hartrace_flow::{
    Absent, Access, AccessKind, Cause, Change, Changes, Confirm, Context, CsrWrite, Effects, Insn,
    Mode, Model, Place, Placed, RegId, RegWrite, Step, Straight, Straights, Trap, TrapStep,
};
use hartrace_isa::{Flow, Isa, Xlen};

/// Where memory and the program start.
pub(super) const BASE: u64 = 0x8000_0000;
const SIZE: u64 = 0x1_0000;
/// The device.
pub(super) const DEVICE: u64 = 0x1000_0000;
/// Where traps go.
pub(super) const HANDLER: u64 = BASE + 0x100;

/// The CSRs there are, with what they hold after a reset.
const CSRS: [(u16, u64); 19] = [
    (0x001, 0),
    (0x002, 0),
    (0x140, 0),
    (0x141, 0),
    (0x142, 0),
    (0x143, 0),
    (0x300, 0xa_0000_0000),
    (0x303, 0),
    (0x304, 0),
    (0x305, HANDLER),
    (0x340, 0),
    (0x341, 0),
    (0x342, 0),
    (0x343, 0),
    (0x344, 0),
    (0xb00, 0),
    (0xb02, 0),
    (0xc01, 0),
    (0xf14, 0),
];

#[derive(Clone, Debug)]
pub(super) struct Toy {
    xlen: Xlen,
    pub(super) x: [u64; 32],
    pub(super) f: [u64; 32],
    pub(super) csrs: BTreeMap<u16, u64>,
    pub(super) pc: u64,
    pub(super) mode: u8,
    memory: Vec<u8>,
    first: Vec<u8>,
    pub(super) reserved: Option<u64>,
    pub(super) steps: u64,
    pub(super) resets: u64,
    /// Instructions that it ran ahead, and those that were taken back.
    pub(super) ahead: (u64, u64),
}

impl Toy {
    /// A hart in front of a program.
    pub(super) fn new(xlen: Xlen, program: &[u32]) -> Toy {
        let mut memory = vec![0; SIZE as usize];
        for (slot, word) in memory.chunks_mut(4).zip(program) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        let mut toy = Toy {
            xlen,
            x: [0; 32],
            f: [0; 32],
            csrs: BTreeMap::new(),
            pc: 0,
            mode: 3,
            first: memory.clone(),
            memory,
            reserved: None,
            steps: 0,
            resets: 0,
            ahead: (0, 0),
        };
        toy.restart();
        toy
    }

    fn restart(&mut self) {
        self.x = [0; 32];
        self.f = [0; 32];
        self.csrs = CSRS
            .into_iter()
            .map(|(n, v)| (n, self.xlen.wrap(v)))
            .collect();
        self.pc = BASE;
        self.mode = 3;
        self.memory = self.first.clone();
        self.reserved = None;
    }

    pub(super) fn csr(&self, number: u16) -> u64 {
        self.csrs[&number]
    }

    /// Memory, which is `None` where there is none.
    pub(super) fn load(&self, addr: u64, size: u64) -> Option<u64> {
        if (DEVICE..DEVICE + 0x100).contains(&addr) {
            return Some(0);
        }
        let at = addr.checked_sub(BASE).filter(|at| at + size <= SIZE)? as usize;
        let bytes = &self.memory[at..at + size as usize];
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |sum, b| sum << 8 | u64::from(*b)),
        )
    }

    pub(super) fn store(&mut self, addr: u64, size: u64, value: u64) -> Option<()> {
        if (DEVICE..DEVICE + 0x100).contains(&addr) {
            return Some(());
        }
        let at = addr.checked_sub(BASE).filter(|at| at + size <= SIZE)? as usize;
        let bytes = value.to_le_bytes();
        self.memory[at..at + size as usize].copy_from_slice(&bytes[..size as usize]);
        Some(())
    }

    fn set_csr(&mut self, csr: u16, value: u64, effects: &mut Effects) {
        let value = self.xlen.wrap(value);
        self.csrs.insert(csr, value);
        effects.csrs.push(CsrWrite { csr, value }).unwrap();
    }

    fn set_x(&mut self, rd: u32, value: u64, effects: &mut Effects) {
        if rd == 0 {
            return;
        }
        let value = self.xlen.wrap(value);
        self.x[rd as usize] = value;
        let reg = RegId::X(rd as u8);
        effects.regs.push(RegWrite { reg, value }).unwrap();
    }

    fn trap(&mut self, cause: Cause, tval: u64, bits: Option<u32>, effects: &mut Effects) -> Step {
        effects.clear();
        let code = match cause {
            Cause::Exception(code) => u64::from(code.unwrap()),
            Cause::Interrupt(code) => u64::from(code.unwrap()) | 1 << (self.xlen.bits() - 1),
            Cause::Unknown => panic!(),
        };
        let (epc, mode) = (self.pc, self.mode);
        let status = self.csr(0x300);
        // MPP, MPIE and MIE.
        let status = status & !0x1888 | u64::from(mode) << 11 | (status >> 3 & 1) << 7;
        for (csr, value) in [(0x341, epc), (0x342, code), (0x300, status), (0x343, tval)] {
            self.set_csr(csr, value, effects);
        }
        self.pc = self.csr(0x305);
        self.mode = 3;
        effects.mode = (mode != 3).then_some(Mode::M);
        Step::Trap(TrapStep {
            trap: Trap {
                epc: Some(epc),
                handler: Some(self.pc),
                cause,
                tval: Some(tval),
                pending: None,
            },
            bits,
            mode: Mode::from_code(mode).unwrap(),
            context: Context(0),
            time: 0,
        })
    }

    /// What an instruction does; `Err` is an exception with its value.
    fn execute(&mut self, bits: u32, effects: &mut Effects) -> Result<u64, (u32, u64)> {
        let illegal = (2, u64::from(bits));
        let next = self
            .xlen
            .wrap(self.pc.wrapping_add(if bits & 3 == 3 { 4 } else { 2 }));
        let (rd, rs1, rs2) = (bits >> 7 & 31, bits >> 15 & 31, bits >> 20 & 31);
        let (a, b) = (self.x[rs1 as usize], self.x[rs2 as usize]);
        let immediate = i64::from(bits.cast_signed() >> 20);
        let sum = self.xlen.wrap(a.wrapping_add_signed(immediate));
        match (bits & 0x7f, bits >> 12 & 7) {
            (0x13, 0) => self.set_x(rd, sum, effects),
            // c.nop
            _ if bits == 1 => {}
            // jalr, beq
            (0x67, 0) => {
                self.set_x(rd, next, effects);
                return Ok(sum & !1);
            }
            // beq over one instruction
            (0x63, 0) => return Ok(if a == b { next + 4 } else { next }),
            (0x03, width @ (2..=4)) => {
                let size = [4, 8, 1][width as usize - 2];
                let value = self.load(sum, size).ok_or((5, sum))?;
                effects
                    .accesses
                    .push(access(AccessKind::Load, size, sum, value))
                    .unwrap();
                let value = match size {
                    4 => i64::from(value as i32).cast_unsigned(),
                    _ => value,
                };
                self.set_x(rd, value, effects);
            }
            (0x23, width @ (2 | 3)) => {
                let offset = (bits & 0xfe00_0000).cast_signed() >> 20 | rd.cast_signed();
                let addr = self.xlen.wrap(a.wrapping_add_signed(offset.into()));
                let size = 1 << width;
                self.store(addr, size, b).ok_or((7, addr))?;
                let value = if width == 2 { b & 0xffff_ffff } else { b };
                effects
                    .accesses
                    .push(access(AccessKind::Store, size, addr, value))
                    .unwrap();
            }
            // fmv.w.x
            (0x53, 0) if bits >> 25 == 0x78 => {
                let value = b_low(a) | 0xffff_ffff_0000_0000;
                self.f[rd as usize] = value;
                let reg = RegId::F(rd as u8);
                effects.regs.push(RegWrite { reg, value }).unwrap();
                let flags = self.csr(1) | 1;
                self.set_csr(1, flags, effects);
            }
            (0x2f, 2) => self.atomic(bits, (rd, a, b), effects)?,
            (0x73, 0) if bits == 0x73 => return Err((if self.mode == 3 { 11 } else { 8 }, 0)),
            (0x73, 0) if bits == 0x3020_0073 && self.mode == 3 => {
                let status = self.csr(0x300);
                let mode = (status >> 11 & 3) as u8;
                let status = status & !0x1888 | (status >> 7 & 1) << 3 | 0x80;
                self.set_csr(0x300, status, effects);
                self.mode = mode;
                effects.mode = (mode != 3).then(|| Mode::from_code(mode).unwrap());
                return Ok(self.csr(0x341));
            }
            (0x73, how @ (1..=3)) => {
                let csr = (bits >> 20) as u16;
                let view = |csr| match csr {
                    0xc00 => 0xb00,
                    0xc02 => 0xb02,
                    csr => csr,
                };
                let old = *self.csrs.get(&view(csr)).ok_or(illegal)?;
                let new = match how {
                    1 => a,
                    2 => old | a,
                    _ => old & !a,
                };
                if how == 1 || rs1 != 0 {
                    self.set_csr(view(csr), new, effects);
                }
                self.set_x(rd, old, effects);
            }
            // Fences.
            (0x0f, 0 | 1) => {}
            _ => return Err(illegal),
        }
        Ok(next)
    }

    fn atomic(
        &mut self,
        bits: u32,
        (rd, addr, operand): (u32, u64, u64),
        effects: &mut Effects,
    ) -> Result<(), (u32, u64)> {
        let old = self.load(addr, 4).ok_or((7, addr))?;
        let signed = i64::from(old as i32).cast_unsigned();
        match bits >> 27 {
            2 => {
                self.reserved = Some(addr);
                effects
                    .accesses
                    .push(access(AccessKind::Load, 4, addr, old))
                    .unwrap();
                self.set_x(rd, signed, effects);
            }
            3 => {
                let holds = self.reserved.take() == Some(addr);
                let kind = match holds {
                    true => AccessKind::Store,
                    false => AccessKind::ConditionalStoreFailure,
                };
                if holds {
                    self.store(addr, 4, operand).ok_or((7, addr))?;
                }
                let value = operand & 0xffff_ffff;
                effects.accesses.push(access(kind, 4, addr, value)).unwrap();
                self.set_x(rd, u64::from(!holds), effects);
            }
            0 => {
                let sum = old.wrapping_add(operand) & 0xffff_ffff;
                self.store(addr, 4, sum).ok_or((7, addr))?;
                let mut access = access(AccessKind::AtomicAdd, 4, addr, sum);
                access.operand = Some(old);
                effects.accesses.push(access).unwrap();
                self.set_x(rd, signed, effects);
            }
            _ => return Err((2, bits.into())),
        }
        Ok(())
    }
}

fn b_low(value: u64) -> u64 {
    value & 0xffff_ffff
}

fn access(kind: AccessKind, size: u64, addr: u64, data: u64) -> Access {
    Access {
        kind,
        size: size.ilog2() as u8,
        addr,
        paddr: Some(addr),
        data: Some(data),
        operand: None,
    }
}

impl Model for Toy {
    fn read(&self, place: Place) -> Result<u64, Absent> {
        let value = match place {
            Place::Pc => Some(self.pc),
            Place::Mode => Some(self.mode.into()),
            Place::Reg(RegId::X(n)) => Some(self.x[usize::from(n)]),
            Place::Reg(RegId::F(n)) => Some(self.f[usize::from(n)]),
            Place::Csr(csr) => self.csrs.get(&csr).copied(),
            Place::Memory { addr, size } => match addr >= BASE {
                true => self.load(addr, size.into()),
                false => None,
            },
        };
        value.ok_or(Absent(place))
    }

    fn write(&mut self, place: Place, value: u64) -> Result<(), Absent> {
        let done = match place {
            Place::Pc => set(Some(&mut self.pc), value),
            Place::Mode => set(Some(&mut self.mode), value as u8),
            Place::Reg(RegId::X(0)) => true,
            Place::Reg(RegId::X(n)) => set(self.x.get_mut(usize::from(n)), value),
            Place::Reg(RegId::F(n)) => set(self.f.get_mut(usize::from(n)), value),
            Place::Csr(csr) => set(self.csrs.get_mut(&csr), value),
            Place::Memory { addr, size } => {
                addr >= BASE && self.store(addr, size.into(), value).is_some()
            }
        };
        done.then_some(()).ok_or(Absent(place))
    }

    fn memory(&self, visit: &mut dyn FnMut(u64, &[u8])) {
        visit(BASE, &self.memory);
    }

    fn step(&mut self, effects: &mut Effects) -> Step {
        effects.clear();
        self.steps += 1;
        let (pc, mode) = (self.pc, self.mode);
        let Some(bits) = self.load(pc, 4).filter(|_| pc >= BASE) else {
            return self.trap(Cause::Exception(Some(1)), pc, None, effects);
        };
        let bits = if bits & 3 == 3 { bits } else { bits & 0xffff } as u32;
        match self.execute(bits, effects) {
            Ok(next) => {
                self.pc = next;
                Step::Insn(Insn {
                    pc,
                    next,
                    bits,
                    mode: Mode::from_code(mode).unwrap(),
                    ..Insn::default()
                })
            }
            Err((code, tval)) => self.trap(Cause::Exception(Some(code)), tval, Some(bits), effects),
        }
    }

    fn advance(&mut self, limit: u64, confirm: &mut Confirm<'_>) -> u64 {
        let mut done = Done::default();
        let (mut ahead, mut effects) = (self.clone(), Effects::default());
        while done.changes.len() < limit.min(AHEAD) as usize {
            let Step::Insn(insn) = ahead.step(&mut effects) else {
                break;
            };
            done.add(&insn, &effects, self.xlen);
        }
        let count = done.changes.len() as u64;
        if count == 0 {
            return 0;
        }
        let right = confirm(&Straights {
            code: &done.code,
            list: &done.pieces,
            count,
            accesses: &[],
            changes: Changes {
                list: &done.changes,
                others: &done.others,
            },
            context: Context(0),
            mode: Mode::M,
            news: None,
        });
        for _ in 0..right {
            self.step(&mut effects);
        }
        self.ahead.0 += count;
        self.ahead.1 += count - right;
        count
    }

    fn interrupt(&mut self, cause: Cause, effects: &mut Effects) -> Step {
        self.trap(cause, 0, None, effects)
    }

    fn reset(&mut self) {
        self.resets += 1;
        self.restart();
    }
}

/// Most instructions that it runs ahead.
const AHEAD: u64 = 40;

/// Instructions on their way to who confirms them.
#[derive(Default)]
struct Done {
    code: Vec<Placed>,
    pieces: Vec<Straight>,
    changes: Vec<Change>,
    others: Vec<Effects>,
}

impl Done {
    fn add(&mut self, insn: &Insn, effects: &Effects, xlen: Xlen) {
        let isa = match xlen {
            Xlen::Rv32 => Isa::RV32GC,
            Xlen::Rv64 => Isa::RV64GC,
        };
        let flow = Flow::of_retired(insn.bits, isa);
        let before = self.code.last().copied().unwrap_or_default();
        match self.pieces.last_mut() {
            Some(piece) if piece.count < 5 && piece.pc + u64::from(before.end) == insn.pc => {
                self.code.push(Placed::after(&before, insn.bits, flow, 0));
                piece.count += 1;
            }
            _ => {
                let first = Placed::after(&Placed::default(), insn.bits, flow, 0);
                self.code.push(first);
                self.pieces.push(Straight {
                    pc: insn.pc,
                    count: 1,
                    ..Straight::default()
                });
            }
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.next = insn.next;
            piece.last = self.code.len() as u32 - 1;
        }
        let fflags = effects.csrs.first().map(|write| write.value as u8);
        let mut change = Change {
            reg: effects.regs.first().copied(),
            access: effects.accesses.first().copied(),
            fflags,
            more: false,
        };
        let mut same = Effects::default();
        change.add_to(&mut same);
        if same != *effects {
            change.more = true;
            self.others.push(*effects);
        }
        self.changes.push(change);
    }
}

/// Puts a value where there is a place for it.
fn set<T>(slot: Option<&mut T>, value: T) -> bool {
    slot.map(|slot| *slot = value).is_some()
}
