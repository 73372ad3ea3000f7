//! One pc per line.

use super::{Gathered, Look, Render, RunText, Spaces};
use hartrace_flow::{Cause, Consumer, Event, HartId, Image, Run, SpaceId};
use hartrace_isa::{Flow, Xlen};
use std::ops::ControlFlow;

/// Lists retired instructions, one pc per line: sixteen digits, or eight on
/// RV32, as `hartrace-logs`' `PcWriter` does with steps.
///
/// ```
/// use hartrace_analyze::PcList;
/// use hartrace_flow::{Consumer, Event, Exit, HartId, Image, Run, SpaceId};
/// use hartrace_isa::Isa;
///
/// let mut image = Image::new();
/// image.add_raw(SpaceId::FIRST, 0x1000, &[0x13, 0, 0, 0, 0x01, 0], Isa::RV32GC);
/// let mut list = PcList::new(&image, Isa::RV32GC.xlen(), |_: &mut Vec<u8>| ());
/// let run = Run { start: 0x1000, end: 0x1006, next: 0x1006, insns: 2, exit: Exit::Stop, last: 2 };
/// let _ = list.event(HartId(0), &Event::Run(run));
/// assert_eq!(list.out.text(), b"00001000\n00001004\n");
/// ```
pub struct PcList<'a> {
    image: &'a Image,
    lines: RunText<'a, Lines>,
    spaces: Spaces,
    traps: bool,
    /// The text.
    pub out: Gathered<'a>,
}

impl<'a> PcList<'a> {
    /// A list of the pcs of all harts, as they come.
    pub fn new(
        image: &'a Image,
        xlen: Xlen,
        flush: impl FnMut(&mut Vec<u8>) + Send + 'a,
    ) -> PcList<'a> {
        PcList {
            image,
            lines: RunText::new(image, Lines(xlen)),
            spaces: Spaces::default(),
            traps: false,
            out: Gathered::new(flush),
        }
    }

    /// Lists ecall and ebreak too, which do not retire.
    #[must_use]
    pub fn listing_traps(mut self) -> PcList<'a> {
        self.traps = true;
        self
    }

    #[inline]
    fn run(&mut self, hart: HartId, run: &Run) {
        let space = self.spaces.of(hart);
        self.lines.append(space, run, 0, &mut 0, self.out.text());
        self.out.added();
    }

    /// An interrupt before an ecall is not an ecall.
    fn trap(&mut self, hart: HartId, epc: u64, cause: Cause) {
        let insn = self.image.fetch(self.spaces.of(hart), epc);
        let made_to = insn.is_some_and(|i| Flow::of(i.bits, i.isa) == Flow::Trap);
        if made_to && !matches!(cause, Cause::Interrupt(_)) {
            self.lines.render.line(epc, self.out.text());
        }
    }
}

impl Consumer for PcList<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.run(hart, run),
            Event::Trap(trap) if self.traps => {
                if let Some(epc) = trap.epc {
                    self.trap(hart, epc, trap.cause);
                }
            }
            Event::Context(owner) => self.spaces.enter(hart, owner, self.image),
            Event::Code(space) => self.spaces.set(hart, *space),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.run(hart, run);
        }
        ControlFlow::Continue(())
    }
}

struct Lines(Xlen);

impl Lines {
    fn line(&self, pc: u64, out: &mut Vec<u8>) {
        let digits = self.0.bits() / 4;
        for i in (0..digits).rev() {
            let digit = (pc >> (4 * i)) as u8 & 15;
            out.push(if digit < 10 { b'0' } else { b'a' - 10 } + digit);
        }
        out.push(b'\n');
    }
}

impl Render for Lines {
    fn lines(&mut self, image: &Image, space: SpaceId, run: &Run, _: Look, out: &mut Vec<u8>) {
        for (pc, _) in image.insns(space, run.start, u64::from(run.insns)) {
            self.line(pc, out);
        }
    }
}
