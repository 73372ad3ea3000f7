//! Small programs and paths through them, as the steps of a hart. Shared by the
//! clause tests of the formats with an ingress port.

#![allow(dead_code, unused_imports)] // each format uses a part

use std::collections::BTreeMap;

use hartrace_flow::{
    Cause, Context, HartId, Image, Insn, Mode, Signal, SpaceId, Step, Trap, TrapStep,
};
use hartrace_isa::{Flow, Isa};
pub(crate) use hartrace_testkit::asm::code;

/// Instructions.
pub(crate) mod asm {
    use hartrace_testkit::asm;
    pub(crate) use hartrace_testkit::asm::{C_EBREAK, C_RET, EBREAK, ECALL, MRET, SRET};

    /// c.addi a0, 1.
    pub(crate) const C_ADD: u32 = asm::c_addi(asm::A0, 1);
    /// addi a0, a0, 1.
    pub(crate) const ADD: u32 = asm::addi(asm::A0, asm::A0, 1);
    /// c.jr a5.
    pub(crate) const C_JR_A5: u32 = asm::c_jr(false, asm::A5);
    /// c.jalr a5.
    pub(crate) const C_JALR_A5: u32 = asm::c_jr(true, asm::A5);
    /// jalr x0, 0(a5).
    pub(crate) const JR_A5: u32 = jalr(0, 15, 0);
    /// jr t0: a return by the other link register.
    pub(crate) const JR_T0: u32 = jalr(0, 5, 0);
    /// jalr ra, t0: a swap.
    pub(crate) const SWAP: u32 = jalr(1, 5, 0);
    /// csrw scontext, a0.
    pub(crate) const WRITE_SCONTEXT: u32 = asm::csrw(0x5a8, asm::A0);
    /// An instruction of the custom-0 space.
    pub(crate) const CUSTOM: u32 = 0x0000_000b;

    /// beq x0, x0 by so many bytes; whether it is taken is up to the test.
    pub(crate) const fn b(offset: i32) -> u32 {
        asm::beq(asm::ZERO, asm::ZERO, offset as i64)
    }

    /// jal rd, by so many bytes.
    pub(crate) const fn jal(rd: u32, offset: i32) -> u32 {
        asm::jal(rd, offset as i64)
    }

    pub(crate) const fn jalr(rd: u32, rs: u32, offset: u32) -> u32 {
        asm::jalr(rd, rs, offset as i32)
    }

    /// lui a5, with this value in its upper bits.
    pub(crate) const fn lui_a5(value: u32) -> u32 {
        asm::lui(asm::A5, value >> 12)
    }

    /// auipc a5.
    pub(crate) const fn auipc_a5(offset: u32) -> u32 {
        asm::auipc(asm::A5, offset >> 12)
    }
}

/// An image of stretches of code in the first space.
pub(crate) fn image(isa: Isa, parts: &[(u64, &[u32])]) -> Image {
    let mut image = Image::new();
    for (base, insns) in parts {
        image.add_raw(SpaceId::FIRST, *base, &code(insns), isa);
    }
    image
}

/// One thing on a path through a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Do {
    /// The instruction here retires.
    At(u64),
    /// A trap at this address, to that handler, with a `tval` where it is known.
    Trap(u64, u64, Cause, Option<u64>),
    Signal(Signal),
    Mode(Mode),
    /// A context, in the space that the image has for it.
    Context(Context),
    /// A context, in this space.
    In(Context, SpaceId),
    /// So much time passes.
    Wait(u64),
    /// What follows is another hart's.
    Hart(u32),
}

/// The instructions at these addresses.
pub(crate) fn go(pcs: &[u64]) -> Vec<Do> {
    pcs.iter().map(|&pc| Do::At(pc)).collect()
}

/// What a hart is at.
struct Now {
    mode: Mode,
    context: Context,
    space: SpaceId,
    /// The step that does not know yet where it leads.
    last: Option<usize>,
}

/// A path as steps. An instruction goes where the next thing of its hart is;
/// the last one goes on in memory, or where it jumps. Time passes by one at
/// each.
pub(crate) fn steps(image: &Image, path: &[Do]) -> Vec<(HartId, Step)> {
    let (mut hart, mut time) = (0, 0);
    let mut harts: BTreeMap<u32, Now> = BTreeMap::new();
    let mut steps: Vec<(HartId, Step)> = Vec::new();
    for thing in path {
        let now = harts.entry(hart).or_insert_with(|| Now {
            mode: Mode::M,
            context: Context::default(),
            space: image.space_of(Context::default()),
            last: None,
        });
        match *thing {
            Do::Hart(h) => hart = h,
            Do::Wait(ticks) => time += ticks,
            Do::Mode(mode) => now.mode = mode,
            Do::Context(context) => {
                (now.context, now.space) = (context, image.space_of(context));
            }
            Do::In(context, space) => (now.context, now.space) = (context, space),
            Do::Signal(signal) => {
                if matches!(signal, Signal::Reset | Signal::Lost) {
                    // Where it would have gone is not known.
                    now.last = None;
                }
                steps.push((HartId(hart), Step::Signal(signal)));
            }
            Do::At(here) | Do::Trap(here, ..) => {
                if let Some((_, Step::Insn(insn))) = now.last.map(|at| &mut steps[at]) {
                    insn.next = here;
                }
                now.last = Some(steps.len());
                steps.push((HartId(hart), now.step(image, *thing, time)));
                time += 1;
            }
        }
    }
    steps
}

impl Now {
    fn step(&self, image: &Image, thing: Do, time: u64) -> Step {
        let Now { mode, context, .. } = *self;
        let fetch = |pc| image.fetch(self.space, pc);
        match thing {
            Do::Trap(epc, handler, cause, tval) => Step::Trap(TrapStep {
                trap: Trap {
                    epc: Some(epc),
                    handler: Some(handler),
                    cause,
                    tval,
                    pending: None,
                },
                bits: fetch(epc).map(|f| f.bits),
                mode,
                context,
                time,
            }),
            Do::At(pc) => {
                let f = fetch(pc).unwrap_or_else(|| panic!("no code at {pc:x}"));
                let next = match Flow::of(f.bits, f.isa) {
                    jump @ Flow::Jump { .. } => jump.target(pc, f.isa.xlen()).unwrap(),
                    _ => f.isa.xlen().wrap(pc.wrapping_add(u64::from(f.len))),
                };
                Step::Insn(Insn {
                    pc,
                    next,
                    time,
                    context,
                    bits: f.bits,
                    mode,
                })
            }
            other => panic!("{other:?} is no step"),
        }
    }
}
