//! The interpreter.
//!
//! [`run`] goes from block to block until something needs the attention of
//! the whole hart: a trap, a system instruction, code that is not decoded yet,
//! a device, or the end of its budget. It is compiled once for every width
//! and observer, and what the observer does not want is not there.

mod atomic;
pub(crate) mod bits;
mod cache;
mod float;
mod frame;
mod stack;
mod tentative;

use frame::collects;
pub(crate) use frame::{Fault, Frame};

use hartrace_flow::{HartId, Insn, Observer, Step, Straight, Wants};

use hartrace_isa::Itype;

use crate::bus::Bus;
use crate::code::{Block, Code, Do, Micro};
use crate::cpu::{Exception, cause};
use crate::hart::Hart;
use crate::memory::PAGE;
use crate::mmu::Tlb;
use crate::notes::Pen;
use crate::pieces::Whose;
use crate::report::Report;
use crate::system::Tried;
use crate::width::Width;

/// Why the interpreter came back. The pc is where it will go on: at the
/// instruction that trapped or was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The budget is used up.
    Spent,
    /// There is no decoded code at pc.
    Fetch,
    /// The instruction at pc concerns more than registers and memory.
    System {
        /// The instruction.
        bits: u32,
        /// The same, decoded.
        micro: Micro,
    },
    /// The instruction at pc traps.
    Trap {
        /// How.
        exception: Exception,
        /// The instruction.
        bits: u32,
    },
    /// The last instruction did something that may change what comes next.
    Event,
}

/// A block that was found before.
#[derive(Clone, Copy)]
struct Lately<'a> {
    /// Its address plus one: none is 0.
    key: u64,
    /// Number of its first instruction in the code.
    first: usize,
    micros: Option<&'a [Micro]>,
}

/// How many are kept.
const LATELY: usize = 32;

impl Lately<'_> {
    const NONE: Lately<'static> = Lately {
        key: 0,
        first: 0,
        micros: None,
    };
}

/// The block at pc, if it is known, or if its page is and it has been decoded;
/// otherwise one without instructions.
#[inline(never)]
fn look_up(code: &Code, tlb: &mut Tlb, pc: u64) -> Block {
    if let Some(block) = tlb.blocks.find(pc) {
        return block;
    }
    let entry = Tlb::slot(&tlb.fetch, pc);
    if entry.tag != pc & !(PAGE - 1) | tlb.fetch_context {
        return Block::NONE;
    }
    let block = code.block(entry.frame, pc);
    if block.count != 0 {
        tlb.blocks.keep(pc, block);
    }
    block
}

/// How an observer ends a run. Most cannot, and their interpreter does not ask.
pub(crate) trait Brake<O> {
    /// Whether there is one.
    const FITTED: bool;

    /// Whether the run is of one instruction: then nothing is prepared for the next.
    const ONCE: bool = false;

    /// Whether the run may be taken back: what memory held is kept, nothing that concerns
    /// more than registers and memory at hand is done, and all that was done is reported at
    /// once.
    const TENTATIVE: bool = false;

    /// Whether the run ends after the step that the observer saw last.
    fn is_pulled(observer: &O) -> bool;
}

/// No way to end a run.
pub(crate) struct NoBrake;

impl<O> Brake<O> for NoBrake {
    const FITTED: bool = false;

    #[inline(always)]
    fn is_pulled(_: &O) -> bool {
        false
    }
}

/// Runs up to `budget` instructions; gives back why it stopped: as if the
/// budget were used up when the brake is pulled. `start` is a block to run
/// first instead of what is at pc.
// One dispatch for all instructions: splitting it would cost a second jump
// for each.
#[allow(clippy::too_many_lines)]
pub(crate) fn run<W: Width, O: Observer, B: Brake<O>>(
    hart: &mut Hart,
    bus: &mut Bus,
    start: Option<Block>,
    budget: &mut u64,
    observer: &mut O,
) -> Leave {
    bus.memory.run();
    let id = HartId(hart.cpu.id);
    let (mode, context) = (hart.cpu.mode, hart.cpu.context());
    let misalignment = hart.cpu.misalignment();
    let taken_cost = u64::from(hart.costs.taken);
    let code = &hart.code;
    let pieces = &mut hart.pieces;
    if !B::TENTATIVE && pieces.begin(const { wants_straights::<O>() }) {
        hart.tlb.forget_blocks();
    }
    hart.tlb.blocks.news |= start.is_some();
    // None of the block that was found last retired.
    let mut unreported = false;
    let whose = Whose { id, mode, context };
    let mut records = hart.cpu.records.take();
    let mut pen = Pen::new(records.as_deref_mut());
    let wanted = pen.wanted;
    let report = Report {
        effects: &mut hart.effects,
        accesses: &mut hart.accesses,
        observer,
    };
    let changes = &mut hart.changes;
    let x = &mut hart.x;
    let mut hart = Frame::new::<W>(
        &mut hart.cpu,
        &mut hart.tlb,
        bus,
        (report, changes),
        hart.misaligned,
        x,
    );
    let mut pc = hart.cpu.pc;
    // Instructions left, and cycles not yet added to the counters.
    let (mut left, mut cycles) = (*budget, hart.cpu.cycles);
    // Blocks seen lately, by address: a loop finds its way without looking
    // anything up.
    let mut lately = [Lately::NONE; LATELY];
    // Instructions that were left before the first piece that the observer has not seen.
    let mut unseen = left;
    let leave = 'blocks: {
        // The block at pc.
        macro_rules! find {
            () => {{
                if B::ONCE {
                    if left == 0 {
                        break 'blocks Leave::Spent;
                    }
                    let (first, micros) = code.slice(look_up(code, hart.tlb, pc));
                    if micros.is_empty() {
                        break 'blocks Leave::Fetch;
                    }
                    (first, micros)
                } else {
                    // Masked to the size of the array.
                    #[allow(clippy::indexing_slicing)]
                    let slot = &mut lately[(pc / 2) as usize % LATELY];
                    if slot.key != pc | 1 {
                        let (first, micros) = code.slice(look_up(code, hart.tlb, pc));
                        if micros.is_empty() {
                            break 'blocks Leave::Fetch;
                        }
                        *slot = Lately {
                            key: pc | 1,
                            first,
                            micros: Some(micros),
                        };
                    }
                    (slot.first, slot.micros.unwrap_or_default())
                }
            }};
        }
        // Adds a piece to those that the observer has not seen. Its instructions are still
        // among those that are left.
        macro_rules! push {
            ($piece:expr) => {{
                let piece: Straight = $piece;
                if pieces.push(piece)
                    || const { collects::<O>() && !B::TENTATIVE } && hart.changes.is_full()
                {
                    let left = left - u64::from(piece.count);
                    let blocks = &mut hart.tlb.blocks;
                    let report = (&mut hart.report, &mut *hart.changes);
                    pieces.flush(unseen - left, report, code, blocks, whose);
                    unseen = left;
                }
            }};
        }
        let mut block = match start {
            Some(block) => code.slice(block),
            None => find!(),
        };
        'next: loop {
            if B::TENTATIVE && hart.changes.is_full() {
                break 'blocks Leave::Spent;
            }
            let (first, mut micros) = block;
            if left < micros.len() as u64 {
                if left == 0 {
                    unreported = true;
                    break 'blocks Leave::Spent;
                }
                micros = micros.get(..left as usize).unwrap_or_default();
            }
            let mut rest = micros.iter();
            'insns: while let Some(mut op) = rest.next() {
                /// The address of the instruction.
                macro_rules! here {
                    () => {
                        pc.wrapping_add(u64::from(op.offset))
                    };
                }
                macro_rules! bits {
                    () => {
                        code.placed
                            .get(first + usize::from(op.number) - 1)
                            .map_or(0, |insn| insn.bits)
                    };
                }
                macro_rules! now {
                    () => {
                        cycles + u64::from(op.cost)
                    };
                }
                macro_rules! tell {
                    ($next:expr, $time:expr) => {{
                        let insn = Insn {
                            pc: here!(),
                            next: $next,
                            time: $time,
                            context,
                            bits: bits!(),
                            mode,
                        };
                        let report = &mut hart.report;
                        report.observer.step(id, &Step::Insn(insn), report.effects);
                        if const { wants_effects::<O>() } {
                            report.effects.clear();
                        }
                    }};
                }
                // The first instructions of the block retired, and the last of them
                // went to `next`: for observers that take many instructions at once.
                macro_rules! straight {
                    ($count:expr, $next:expr, $taken:expr, $extra:expr) => {
                        if const { wants_straights::<O>() } {
                            let count: u8 = $count;
                            let piece = Straight {
                                pc,
                                next: $next,
                                time: cycles,
                                last: (first as u32 + u32::from(count)).wrapping_sub(1),
                                count,
                                taken: $taken,
                                extra: $extra,
                            };
                            push!(piece);
                        }
                    };
                }
                // Leaves the block before this instruction.
                macro_rules! leave {
                    ($why:expr) => {{
                        let why = $why;
                        let before = before(micros, op);
                        if op.number > 1 {
                            straight!(op.number - 1, W::unsigned(here!()), 0, 0);
                        } else {
                            unreported = true;
                        }
                        pc = W::unsigned(here!());
                        left -= u64::from(op.number) - 1;
                        cycles += before;
                        break 'blocks why;
                    }};
                }
                macro_rules! next_pc {
                    () => {
                        W::unsigned(here!().wrapping_add(op.len.into()))
                    };
                }
                macro_rules! braked {
                    () => {
                        B::FITTED && B::is_pulled(hart.report.observer)
                    };
                }
                // Leaves the block after this instruction.
                macro_rules! leave_behind {
                    ($why:expr) => {{
                        left -= u64::from(op.number);
                        cycles += u64::from(op.cost);
                        pc = next_pc!();
                        break 'blocks $why;
                    }};
                }
                // For control transfer records.
                macro_rules! note {
                    ($to:expr, $time:expr, $kind:expr) => {
                        if wanted.has($kind) {
                            pen.note(here!(), $to, $time, $kind);
                        }
                    };
                }
                macro_rules! jump {
                    ($to:expr, $kind:expr, $then:block) => {
                        jump!($to, $kind, $then, 0)
                    };
                    ($to:expr, $kind:expr, $then:block, $taken:expr) => {{
                        let to: u64 = $to;
                        if to & misalignment != 0 {
                            trap!(Fault::Memory(Exception {
                                code: cause::FETCH_MISALIGNED,
                                tval: to
                            }));
                        }
                        $then;
                        hart.keep_changes();
                        straight!(op.number, to, $taken, taken_cost as u16);
                        left -= u64::from(op.number);
                        cycles += u64::from(op.cost) + taken_cost;
                        note!(to, cycles, $kind);
                        if const { wants_steps::<O>() } {
                            tell!(to, cycles);
                        }
                        pc = to;
                        if braked!() {
                            break 'blocks Leave::Spent;
                        }
                        block = find!();
                        continue 'next;
                    }};
                }
                macro_rules! branch {
                    ($a:ident, $b:ident => $taken:expr) => {{
                        let ($a, $b) = (hart.get(op.rs1), hart.get(op.rs2));
                        if $taken {
                            let to = W::unsigned(pc.wrapping_add(op.imm as u64));
                            jump!(to, Itype::Taken.code(), {}, op.rd);
                        }
                        note!(next_pc!(), now!(), Itype::NotTaken.code());
                    }};
                }
                // Leaves the block before an instruction that could not be taken back.
                macro_rules! require {
                    ($can:expr) => {
                        if B::TENTATIVE && !$can {
                            leave!(Leave::Spent);
                        }
                    };
                }
                macro_rules! load {
                    ($bytes:literal, $extend:expr) => {{
                        let addr = W::unsigned(hart.get(op.rs1).wrapping_add(op.imm as u64));
                        require!(hart.is_at_hand::<$bytes>(addr));
                        match hart.load::<$bytes>(addr, now!()) {
                            Ok(value) => hart.set::<W>(op.rd, $extend(value)),
                            Err(exception) => trap!(Fault::Memory(exception)),
                        }
                    }};
                }
                macro_rules! store {
                    ($bytes:literal) => {{
                        let addr = W::unsigned(hart.get(op.rs1).wrapping_add(op.imm as u64));
                        require!(hart.keep_old::<$bytes>(addr));
                        match hart.store::<$bytes>(addr, hart.get(op.rs2), now!()) {
                            Ok(false) => {}
                            Ok(true) => event!(),
                            Err(exception) => trap!(Fault::Memory(exception)),
                        }
                    }};
                }
                macro_rules! load_float {
                    ($bytes:literal) => {{
                        require!({
                            let addr = hart.get(op.rs1).wrapping_add(op.imm as u64);
                            hart.is_at_hand::<$bytes>(W::unsigned(addr))
                        });
                        match hart.load_float::<W, $bytes>(op, now!()) {
                            Ok(()) => {}
                            Err(fault) => trap!(fault),
                        }
                    }};
                }
                macro_rules! set {
                    ($value:expr) => {
                        hart.set::<W>(op.rd, $value)
                    };
                }

                // Computations of two registers, and of a register and the
                // immediate: only what is needed is read.
                macro_rules! rr {
                    ($a:ident, $b:ident => $value:expr) => {{
                        let ($a, $b) = (hart.get(op.rs1), hart.get(op.rs2));
                        set!($value)
                    }};
                }
                macro_rules! ri {
                    ($a:ident, $imm:ident => $value:expr) => {{
                        let ($a, $imm) = (hart.get(op.rs1), op.imm as u64);
                        set!($value)
                    }};
                }

                // After an instruction that does not jump.
                macro_rules! done {
                    () => {
                        if const { wants_steps::<O>() } {
                            tell!(next_pc!(), now!());
                            if braked!() {
                                leave_behind!(Leave::Spent);
                            }
                        } else if const { wants_straights::<O>() } {
                            hart.keep_changes();
                        } else if const { wants_effects::<O>() } {
                            // What it did is not part of the next transfer.
                            hart.report.effects.clear();
                        }
                    };
                }
                // The second instruction of a pair. A budget may end between
                // the two.
                macro_rules! next {
                    () => {
                        done!();
                        match rest.next() {
                            Some(next) => op = next,
                            None => break 'insns,
                        }
                    };
                }
                // Instructions that occur alone and in pairs.
                macro_rules! one {
                    (Addi) => { ri!(a, i => a.wrapping_add(i)) };
                    (Add) => { rr!(a, b => a.wrapping_add(b)) };
                    (Mv) => { set!(hart.get(op.rs1)) };
                    (Li) => { set!(op.imm as u64) };
                    (Auipc) => { set!(here!().wrapping_add(op.imm as u64)) };
                    (Or) => { rr!(a, b => a | b) };
                    (Xor) => { rr!(a, b => a ^ b) };
                    (Andi) => { ri!(a, i => a & i) };
                    (Slli) => { ri!(a, i => a << (i as u32 % W::BITS)) };
                    (Srli) => { ri!(a, i => W::unsigned(a) >> (i as u32 % W::BITS)) };
                    (Addiw) => { ri!(a, i => a.wrapping_add(i) as i32 as u64) };
                    (Addw) => { rr!(a, b => a.wrapping_add(b) as i32 as u64) };
                    (Slliw) => { ri!(a, i => ((a as i32) << (i & 31)) as u64) };
                    (Srliw) => { ri!(a, i => (a as u32 >> (i & 31)) as i32 as u64) };
                    (Lbu) => { load!(1, |v| v) };
                    (Lw) => { load!(4, |v| v as i32 as u64) };
                    (Ld) => { load!(8, |v| v) };
                    (Sb) => { store!(1) };
                    (Sw) => { store!(4) };
                    (Sd) => { store!(8) };
                    (Beq) => { branch!(a, b => a == b) };
                    (Bne) => { branch!(a, b => a != b) };
                    (Blt) => { branch!(a, b => (a as i64) < b as i64) };
                    (Bltu) => { branch!(a, b => a < b) };
                    (Jal) => {{
                        let link = here!().wrapping_add(op.len.into());
                        let to = W::unsigned(pc.wrapping_add(op.imm as u64));
                        jump!(to, op.rs2, { set!(link) })
                    }};
                    (Jalr) => {{
                        let link = here!().wrapping_add(op.len.into());
                        let to = W::unsigned(hart.get(op.rs1).wrapping_add(op.imm as u64)) & !1;
                        jump!(to, op.rs2, { set!(link) })
                    }};
                }
                macro_rules! two {
                    ($first:ident $second:ident) => {
                        if const { knows_pairs::<O>() } {
                            one!($first);
                            next!();
                            one!($second)
                        }
                    };
                }

                // Instructions that occur in pairs are done one by one where each is reported.
                let what = match const { knows_pairs::<O>() } {
                    true => op.what,
                    false => op.what.alone(),
                };
                // What is rare is written once: each instruction would have its copy.
                'event: {
                    let fault = 'fault: {
                        macro_rules! trap {
                            ($fault:expr) => {
                                break 'fault $fault
                            };
                        }
                        macro_rules! event {
                            () => {
                                break 'event
                            };
                        }

                        match what {
                            Do::Addi => one!(Addi),
                            Do::Add => one!(Add),
                            Do::Sub => rr!(a, b => a.wrapping_sub(b)),
                            Do::Li => one!(Li),
                            Do::Mv => one!(Mv),
                            Do::Auipc => one!(Auipc),
                            Do::And => rr!(a, b => a & b),
                            Do::Or => one!(Or),
                            Do::Xor => one!(Xor),
                            Do::Andi => one!(Andi),
                            Do::Ori => ri!(a, i => a | i),
                            Do::Xori => ri!(a, i => a ^ i),
                            Do::Slt => rr!(a, b => ((a as i64) < (b as i64)).into()),
                            Do::Sltu => rr!(a, b => (a < b).into()),
                            Do::Slti => ri!(a, i => ((a as i64) < i as i64).into()),
                            Do::Sltiu => ri!(a, i => (a < i).into()),
                            Do::Slli => one!(Slli),
                            Do::Srli => one!(Srli),
                            Do::Srai => ri!(a, i => ((a as i64) >> (i as u32 % W::BITS)) as u64),
                            Do::Sll => rr!(a, b => a << (b as u32 % W::BITS)),
                            Do::Srl => rr!(a, b => W::unsigned(a) >> (b as u32 % W::BITS)),
                            Do::Sra => rr!(a, b => ((a as i64) >> (b as u32 % W::BITS)) as u64),
                            Do::Addiw => one!(Addiw),
                            Do::Addw => one!(Addw),
                            Do::Subw => rr!(a, b => a.wrapping_sub(b) as i32 as u64),
                            Do::Slliw => one!(Slliw),
                            Do::Srliw => one!(Srliw),
                            Do::Sraiw => ri!(a, i => (a as i32 >> (i & 31)) as u64),
                            Do::Sllw => rr!(a, b => ((a as i32) << (b & 31)) as u64),
                            Do::Srlw => rr!(a, b => (a as u32 >> (b & 31)) as i32 as u64),
                            Do::Sraw => rr!(a, b => (a as i32 >> (b & 31)) as u64),

                            Do::Lb => load!(1, |v| v as i8 as u64),
                            Do::Lbu => one!(Lbu),
                            Do::Lh => load!(2, |v| v as i16 as u64),
                            Do::Lhu => load!(2, |v| v),
                            Do::Lw => one!(Lw),
                            Do::Lwu => load!(4, |v| v),
                            Do::Ld => one!(Ld),
                            Do::Sb => one!(Sb),
                            Do::Sh => store!(2),
                            Do::Sw => one!(Sw),
                            Do::Sd => one!(Sd),

                            Do::Beq => one!(Beq),
                            Do::Bne => one!(Bne),
                            Do::Blt => one!(Blt),
                            Do::Bge => branch!(a, b => a as i64 >= b as i64),
                            Do::Bltu => one!(Bltu),
                            Do::Bgeu => branch!(a, b => a >= b),
                            Do::Jal => one!(Jal),
                            Do::Jalr => one!(Jalr),

                            Do::Mul => rr!(a, b => a.wrapping_mul(b)),
                            Do::Mulh => {
                                rr!(a, b => multiply_high::<W>((a as i64).into(), (b as i64).into()))
                            }
                            Do::Mulhsu => {
                                rr!(a, b => multiply_high::<W>((a as i64).into(), W::unsigned(b).into()))
                            }
                            Do::Mulhu => {
                                rr!(a, b => multiply_high::<W>(W::unsigned(a).into(), W::unsigned(b).into()))
                            }
                            Do::Div => rr!(a, b => match b as i64 {
                                0 => u64::MAX,
                                b => (a as i64).wrapping_div(b) as u64,
                            }),
                            Do::Divu => rr!(a, b => divide(W::unsigned(a), W::unsigned(b))),
                            Do::Rem => rr!(a, b => match b as i64 {
                                0 => a,
                                b => (a as i64).wrapping_rem(b) as u64,
                            }),
                            Do::Remu => rr!(a, b => remainder(W::unsigned(a), W::unsigned(b))),
                            Do::Mulw => rr!(a, b => (a as i32).wrapping_mul(b as i32) as u64),
                            Do::Divw => rr!(a, b => match b as i32 {
                                0 => u64::MAX,
                                b => (a as i32).wrapping_div(b) as u64,
                            }),
                            Do::Divuw => {
                                rr!(a, b => divide(a as u32 as u64, b as u32 as u64) as i32 as u64)
                            }
                            Do::Remw => rr!(a, b => match b as i32 {
                                0 => a as i32 as u64,
                                b => (a as i32).wrapping_rem(b) as u64,
                            }),
                            Do::Remuw => {
                                rr!(a, b => remainder(a as u32 as u64, b as u32 as u64) as i32 as u64)
                            }

                            Do::Fld => load_float!(8),
                            Do::Flw => load_float!(4),
                            Do::Flh => load_float!(2),
                            Do::FStore => {
                                require!(hart.keeps_old_float::<W>(op));
                                match hart.store_float::<W>(op, now!()) {
                                    Ok(false) => {}
                                    Ok(true) => event!(),
                                    Err(fault) => trap!(fault),
                                }
                            }
                            Do::Nothing => {}
                            Do::Bits => {
                                let b = hart.get(op.rs2);
                                ri!(a, i => bits::evaluate::<W>(op.op, a, b, i).unwrap_or(0));
                            }
                            Do::Float => match hart.float::<W>(op) {
                                Ok(()) => {}
                                Err(fault) => trap!(fault),
                            },
                            Do::Rare => {
                                require!(false);
                                match hart.rare::<W>(op, now!()) {
                                    Ok(false) => {}
                                    Ok(true) => event!(),
                                    Err(fault) => trap!(fault),
                                }
                            }
                            Do::System => {
                                let tried = if const { wants_no_effects::<O>() } {
                                    hart.try_csr(op, bits!(), cycles + before(micros, op))
                                } else {
                                    Tried::Left
                                };
                                match tried {
                                    Tried::Done => {}
                                    Tried::Interrupts => event!(),
                                    Tried::Left => leave!(Leave::System {
                                        bits: bits!(),
                                        micro: *op
                                    }),
                                }
                            }
                            Do::PopReturn => {
                                require!(false);
                                match hart.pop_return::<W>(op, now!()) {
                                    Ok(to) => jump!(to, op.rs2, {}),
                                    Err(fault) => trap!(fault),
                                }
                            }
                            Do::Table => {
                                require!(false);
                                match hart.table_jump::<W>(op, next_pc!(), now!()) {
                                    Ok(to) => jump!(to, op.rs2, {}),
                                    Err(fault) => trap!(fault),
                                }
                            }
                            Do::Illegal => trap!(Fault::Illegal),

                            Do::SlliAdd => two!(Slli Add),
                            Do::SlliAddi => two!(Slli Addi),
                            Do::SlliSrli => two!(Slli Srli),
                            Do::SlliSlli => two!(Slli Slli),
                            Do::AddAdd => two!(Add Add),
                            Do::AddAddi => two!(Add Addi),
                            Do::AddSlli => two!(Add Slli),
                            Do::AddLw => two!(Add Lw),
                            Do::AddLd => two!(Add Ld),
                            Do::AddLbu => two!(Add Lbu),
                            Do::AddBne => two!(Add Bne),
                            Do::AddBltu => two!(Add Bltu),
                            Do::AddJal => two!(Add Jal),
                            Do::AddiAdd => two!(Addi Add),
                            Do::AddiAddi => two!(Addi Addi),
                            Do::AddiMv => two!(Addi Mv),
                            Do::AddiSlli => two!(Addi Slli),
                            Do::AddiAddiw => two!(Addi Addiw),
                            Do::AddiSb => two!(Addi Sb),
                            Do::AddiSw => two!(Addi Sw),
                            Do::AddiSd => two!(Addi Sd),
                            Do::AddiBne => two!(Addi Bne),
                            Do::AddiBeq => two!(Addi Beq),
                            Do::AddiBlt => two!(Addi Blt),
                            Do::AddiBltu => two!(Addi Bltu),
                            Do::AddiJal => two!(Addi Jal),
                            Do::AddiJalr => two!(Addi Jalr),
                            Do::MvMv => two!(Mv Mv),
                            Do::MvAddi => two!(Mv Addi),
                            Do::MvJal => two!(Mv Jal),
                            Do::AddiwAddi => two!(Addiw Addi),
                            Do::AddiwAddiw => two!(Addiw Addiw),
                            Do::AddiwXor => two!(Addiw Xor),
                            Do::AddiwBne => two!(Addiw Bne),
                            Do::AndiAddiw => two!(Andi Addiw),
                            Do::AndiXor => two!(Andi Xor),
                            Do::SrliwAndi => two!(Srliw Andi),
                            Do::SrliwBeq => two!(Srliw Beq),
                            Do::XorSrliw => two!(Xor Srliw),
                            Do::LbuAddi => two!(Lbu Addi),
                            Do::LbuLbu => two!(Lbu Lbu),
                            Do::LwLw => two!(Lw Lw),
                            Do::LwAdd => two!(Lw Add),
                            Do::LwAddi => two!(Lw Addi),
                            Do::LdLd => two!(Ld Ld),
                            Do::LdAddi => two!(Ld Addi),
                            Do::SbBne => two!(Sb Bne),
                            Do::SwAddi => two!(Sw Addi),
                            Do::SwAdd => two!(Sw Add),
                            Do::SdSd => two!(Sd Sd),
                            Do::SdLd => two!(Sd Ld),
                            Do::SdAddi => two!(Sd Addi),
                            Do::LiLi => two!(Li Li),
                            Do::LiBeq => two!(Li Beq),
                            Do::LbuBeq => two!(Lbu Beq),
                            Do::AndiBne => two!(Andi Bne),
                            Do::AuipcJalr => two!(Auipc Jalr),
                            Do::SrliwSlliw => two!(Srliw Slliw),
                            Do::SlliwOr => two!(Slliw Or),
                            Do::OrAddw => two!(Or Addw),
                            Do::XorAddw => two!(Xor Addw),
                            Do::AddwAddw => two!(Addw Addw),
                            Do::AddwSrliw => two!(Addw Srliw),
                        }
                        done!();
                        continue 'insns;
                    };
                    hart.report.effects.clear();
                    leave!(Leave::Trap {
                        exception: fault.exception(bits!()),
                        bits: bits!()
                    });
                }
                hart.keep_changes();
                straight!(op.number, next_pc!(), 0, 0);
                if const { wants_steps::<O>() } {
                    tell!(next_pc!(), now!());
                }
                hart.report.effects.clear();
                leave_behind!(Leave::Event);
            }
            // Through to the end of the block.
            if let Some(end) = micros.last() {
                if const { wants_straights::<O>() } {
                    let end_pc = u64::from(end.offset) + u64::from(end.len);
                    let piece = Straight {
                        pc,
                        next: W::unsigned(pc.wrapping_add(end_pc)),
                        time: cycles,
                        last: (first + micros.len()).wrapping_sub(1) as u32,
                        count: end.number,
                        taken: 0,
                        extra: 0,
                    };
                    push!(piece);
                }
                left -= micros.len() as u64;
                cycles += u64::from(end.cost);
                pc = W::unsigned(pc.wrapping_add(u64::from(end.offset) + u64::from(end.len)));
            }
            block = find!();
        }
    };
    if const { wants_straights::<O>() } {
        let blocks = &mut hart.tlb.blocks;
        let still = unreported && blocks.news;
        let report = (&mut hart.report, &mut *hart.changes);
        pieces.flush(unseen - left, report, code, blocks, whose);
        blocks.news |= still;
    }
    hart.finish();
    let noted = pen.taken;
    if let Some(records) = &mut records {
        records.taken(noted);
    }
    hart.cpu.records = records;
    let retired = *budget - left;
    *budget = left;
    let spent = cycles - hart.cpu.cycles;
    hart.cpu.retire(retired, spent);
    hart.cpu.pc = pc;
    leave
}

/// Whether the observer wants what instructions change.
const fn wants_effects<O: Observer>() -> bool {
    O::WANTS.overlaps(Wants::EFFECTS)
}

/// Whether the observer wants none of it, accesses included.
const fn wants_no_effects<O: Observer>() -> bool {
    !O::WANTS.overlaps(Wants::EFFECTS.with(Wants::DATA))
}

/// Whether the observer is shown every instruction by itself.
const fn wants_steps<O: Observer>() -> bool {
    O::WANTS.contains(Wants::INSNS) && !wants_straights::<O>()
}

/// Whether the observer wants every instruction, and no effects or all together with many
/// instructions: it is given all that were executed of a block at once.
const fn wants_straights<O: Observer>() -> bool {
    O::WANTS.contains(Wants::INSNS) && knows_pairs::<O>()
}

/// Whether pairs of instructions are executed with one dispatch: not where each is reported
/// with its effects.
const fn knows_pairs<O: Observer>() -> bool {
    !wants_effects::<O>() || O::WANTS.contains(Wants::CHANGES)
}

/// The upper half of a product.
#[inline(always)]
fn multiply_high<W: Width>(a: i128, b: i128) -> u64 {
    (a.wrapping_mul(b) >> W::BITS) as u64
}

#[inline(always)]
fn divide(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

#[inline(always)]
fn remainder(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}

/// Cycles of a block before an instruction.
fn before(micros: &[Micro], op: &Micro) -> u64 {
    let previous = op
        .number
        .checked_sub(2)
        .and_then(|i| micros.get(usize::from(i)));
    previous.map_or(0, |micro| micro.cost.into())
}
