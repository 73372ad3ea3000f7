//! An instruction at its address, and its possible successors.

use alloc::boxed::Box;

use hartrace_isa::{Flow, Isa, Itype};

use hartrace_flow::{Image, SpaceId};

/// How an instruction may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exits {
    /// At one of two known addresses (or one, given twice).
    Known,
    /// At an address the instruction does not determine.
    Anywhere,
    /// In a trap: it does not retire.
    Trap,
}

/// Whether the hart passed the `ebreak` of a semihosting call: it came from the
/// instruction with `bits` to `epc`, and went on at `next`. (Semihosting for
/// RISC-V: `slli x0,x0,0x1f`, `ebreak`, `srai x0,x0,7`, none compressed.)
pub(super) const fn is_semihosting(bits: u32, epc: u64, next: u64) -> bool {
    bits == 0x01f0_1013 && next.wrapping_sub(epc) == 4
}

/// An instruction, classified once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) pc: u64,
    /// Its successor as far as its encoding determines it: the target of a direct jump, else
    /// the next instruction in memory.
    pub(super) natural: u64,
    /// Target of a taken branch, else the same.
    pub(super) taken: u64,
    pub(super) bits: u32,
    pub(super) len: u8,
    pub(super) exits: Exits,
    /// What kind of transfer it is, for [`Site::may_be`].
    flow: Flow,
}

impl Site {
    /// `table` is asked for the target of a table jump.
    pub(super) fn new(
        pc: u64,
        bits: u32,
        len: u8,
        isa: Isa,
        table: impl FnOnce(u8) -> Option<u64>,
    ) -> Site {
        let flow = Flow::of_retired(bits, isa);
        let end = isa.xlen().wrap(pc.wrapping_add(u64::from(len)));
        let target = match flow {
            Flow::Table { index, .. } => table(index),
            _ => flow.target(pc, isa.xlen()),
        };
        let (natural, taken, exits) = match flow {
            Flow::Seq | Flow::Const { .. } => (end, end, Exits::Known),
            Flow::Branch { .. } => (end, target.unwrap_or(end), Exits::Known),
            Flow::Trap => (end, end, Exits::Trap),
            _ => match target {
                Some(target) => (target, target, Exits::Known),
                None => (end, end, Exits::Anywhere),
            },
        };
        Site {
            pc,
            natural,
            taken,
            bits,
            len,
            exits,
            flow,
        }
    }

    /// The instruction of the image at `pc`.
    pub(super) fn fetch(image: &Image, space: SpaceId, pc: u64) -> Option<Site> {
        if pc & 1 != 0 {
            return None;
        }
        let code = image.fetch(space, pc)?;
        Some(Site::new(pc, code.bits, code.len, code.isa, |index| {
            image.table_entry(space, index, code.isa)
        }))
    }

    /// Whether the instruction may retire and send the hart to `next`.
    #[inline]
    pub(super) fn allows(&self, next: u64) -> bool {
        match self.exits {
            Exits::Known => next == self.natural || next == self.taken,
            Exits::Anywhere => true,
            Exits::Trap => false,
        }
    }

    /// The one address it goes to, where there is only one.
    #[inline]
    pub(super) fn successor(&self) -> Option<u64> {
        (self.exits == Exits::Known && self.natural == self.taken).then_some(self.natural)
    }

    /// Whether the program has a table of where it goes.
    pub(super) const fn is_table(&self) -> bool {
        matches!(self.flow, Flow::Table { .. })
    }

    /// Whether a trap right after it, or at it, has a known `epc`.
    pub(super) fn has_epc(&self) -> bool {
        self.exits == Exits::Trap || self.successor().is_some()
    }

    /// Its size as reported by `ilastsize`, in bytes: rounded up to a power
    /// of two.
    #[inline]
    pub(super) fn rounded(&self) -> u64 {
        u64::from(self.len).next_power_of_two()
    }

    /// Whether execution always continues after it.
    pub(super) fn is_sequential(&self) -> bool {
        self.flow.is_sequential()
    }

    /// Whether a block that ends with this instruction may have this `itype`,
    /// three or four bits wide, under any of the tables. A trap may
    /// follow any instruction; with trTeInstEnAllJumps direct jumps are taken
    /// branches. To the E-Trace reference flow a jump with `sijump` is direct.
    pub(super) fn may_be(&self, itype: Itype, sijump: bool) -> bool {
        use Itype as T;
        let direct = matches!(
            itype,
            T::None | T::Reserved | T::DirectCall | T::DirectJump | T::OtherDirect
        );
        let inferable = direct || itype == T::Taken;
        let indirect = itype.is_uninferable() && itype != T::TrapReturn;
        itype.is_trap()
            || match self.flow {
                Flow::Seq | Flow::Const { .. } => itype == T::None,
                // NexRv counts them, ecall as a call.
                Flow::Trap if self.bits == 0x73 => {
                    matches!(itype, T::IndirectCall | T::Uninferable)
                }
                Flow::Trap => itype == T::None,
                Flow::Branch { .. } => itype.is_branch(),
                Flow::Jump { .. } => inferable,
                // Through a table or x0: inferable in some texts.
                Flow::Table { .. } => inferable || indirect,
                Flow::Indirect { rs1, .. } => indirect || (direct && (sijump || rs1.number() == 0)),
                // The reference programs do not know them.
                Flow::PopReturn => indirect || itype == T::None,
                // The reference flow has no code 3 for returns from traps, and
                // NexRv takes those but mret for linear.
                Flow::TrapReturn => itype == T::TrapReturn || indirect || itype == T::None,
            }
    }

    /// The same instruction, a branch with its outcome known.
    pub(super) fn decided(mut self, itype: Itype) -> Site {
        match itype {
            Itype::Taken => self.natural = self.taken,
            Itype::NotTaken => self.taken = self.natural,
            _ => {}
        }
        self
    }
}

/// Entries of the cache. A loop of this many halfwords is classified once.
const SITES: usize = 4096;

/// Sites of an image by their address: a direct-mapped cache.
#[derive(Clone, Debug)]
pub(super) struct Sites<'a> {
    pub(super) image: &'a Image,
    pub(super) space: SpaceId,
    slots: Box<[Site; SITES]>,
}

impl<'a> Sites<'a> {
    pub(super) fn new(image: &'a Image, space: SpaceId) -> Sites<'a> {
        // No instruction has an odd pc.
        let nothing = Site {
            pc: 1,
            natural: 0,
            taken: 0,
            bits: 0,
            len: 0,
            exits: Exits::Trap,
            flow: Flow::Trap,
        };
        Sites {
            image,
            space,
            slots: Box::new([nothing; SITES]),
        }
    }

    /// The instruction at `pc`, `None` where the image has none.
    #[inline]
    pub(super) fn get(&mut self, pc: u64) -> Option<Site> {
        let slot = self.slots.get_mut((pc >> 1) as usize % SITES)?;
        if slot.pc != pc || pc & 1 != 0 {
            *slot = fill(self.image, self.space, pc)?;
        }
        Some(*slot)
    }
}

#[cold]
#[inline(never)]
fn fill(image: &Image, space: SpaceId, pc: u64) -> Option<Site> {
    Site::fetch(image, space, pc)
}
