//! The pc of a hart, group by group. A trace reports new pcs and instructions;
//! the address of each instruction follows from the previous groups.

use hartrace_isa::Xlen;

use crate::group::{Group, NewPc};

/// The pc of a hart, as far as its trace reports it.
///
/// ```
/// use hartrace_isa::Xlen;
/// use hartrace_tandem::{Config, Follower, Next, Reader};
///
/// // The pc is 0x1000; then c.nop.
/// let trace = [1, 11, 7, 10, 0, 16, 0, 0, 0, 0, 0, 0, 2, 1, 3, 16, 1, 0, 2];
/// let mut reader = Reader::new(Config::default());
/// let mut follower = Follower::new(Xlen::Rv64);
/// let mut rest = &trace[..];
/// let mut places = Vec::new();
/// while reader.next(&mut rest) == Next::Group {
///     places.push(follower.follow(reader.group()));
/// }
/// assert_eq!(places, [None, Some(0x1000)]);
/// assert_eq!(follower.pc(), Some(0x1002));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    xlen: Xlen,
    pc: Option<u64>,
}

/// From where to where a group takes a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// The pc before the group: the address of its instruction, if it has one.
    pub from: Option<u64>,
    /// The pc after it. Like all state, a pc that is not reported stays.
    pub to: Option<u64>,
}

impl Follower {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new(xlen: Xlen) -> Follower {
        Follower { xlen, pc: None }
    }

    /// The hart is here.
    #[must_use]
    #[inline]
    pub const fn at(xlen: Xlen, pc: Option<u64>) -> Follower {
        Follower { xlen, pc }
    }

    /// Where the hart is.
    #[must_use]
    #[inline]
    pub const fn pc(&self) -> Option<u64> {
        self.pc
    }

    /// The hart is here now, or somewhere unknown.
    #[inline]
    pub const fn set(&mut self, pc: Option<u64>) {
        self.pc = pc;
    }

    /// The address so many bytes after another.
    #[must_use]
    #[inline]
    pub const fn after(&self, pc: u64, len: u8) -> u64 {
        self.xlen.wrap(pc.wrapping_add(len as u64))
    }

    /// Where a group leads from here. A reset is not considered: where the hart
    /// starts is for [`Follower::follow`], or for a caller that knows.
    #[must_use]
    #[inline]
    pub fn moves(&self, group: &Group) -> Moves {
        let len = group.insn.map_or(0, |insn| insn.len);
        let (from, to) = match group.pc {
            None => (self.pc, self.pc),
            Some(NewPc::Increment) => (self.pc, self.pc.map(|pc| self.after(pc, len))),
            Some(NewPc::To(to)) => (self.pc, Some(self.xlen.wrap(to))),
            Some(NewPc::FromTo(from, to)) => (Some(from), Some(self.xlen.wrap(to))),
        };
        Moves { from, to }
    }

    /// Moves on with a group, and gives the pc before it: the address of its
    /// instruction, if it has one. A trace does not report where a reset leads
    /// (notes 33) unless the same group has the pc.
    #[inline]
    pub fn follow(&mut self, group: &Group) -> Option<u64> {
        if group.reset {
            self.pc = None;
        }
        let Moves { from, to } = self.moves(group);
        self.pc = to;
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{Change, How, Insn};
    use crate::register::Register;

    fn insn(bits: u32, len: u8, pc: Option<NewPc>) -> Group {
        Group {
            insn: Some(Insn { bits, len }),
            pc,
            ..Group::default()
        }
    }

    fn only(pc: Option<NewPc>) -> Group {
        Group {
            pc,
            ..Group::default()
        }
    }

    const INCREMENT: Option<NewPc> = Some(NewPc::Increment);

    #[test]
    fn increments_by_the_length_of_the_instruction() {
        let mut follower = Follower::at(Xlen::Rv64, Some(0x1000));
        assert_eq!(follower.follow(&insn(1, 2, INCREMENT)), Some(0x1000));
        assert_eq!(follower.follow(&insn(0x13, 4, INCREMENT)), Some(0x1002));
        assert_eq!(follower.pc(), Some(0x1006));
        // The opcode in the trace is the length, whatever the bits say.
        assert_eq!(follower.follow(&insn(0x13, 2, INCREMENT)), Some(0x1006));
        assert_eq!(follower.pc(), Some(0x1008));
    }

    #[test]
    fn the_pc_wraps_at_xlen() {
        for (xlen, last) in [
            (Xlen::Rv32, 0xffff_fffe),
            (Xlen::Rv64, 0xffff_ffff_ffff_fffe),
        ] {
            let mut follower = Follower::at(xlen, Some(last));
            assert_eq!(follower.follow(&insn(0x13, 4, INCREMENT)), Some(last));
            assert_eq!(follower.pc(), Some(2));
        }
        let mut follower = Follower::new(Xlen::Rv32);
        follower.follow(&only(Some(NewPc::To(0x1_0000_1000))));
        assert_eq!(follower.pc(), Some(0x1000));
    }

    /// A trace may say anything; an odd pc stays odd.
    #[test]
    fn hostile_pcs_are_taken_as_they_are() {
        for (pc, next) in [(u64::MAX, 3), (1, 5), (u64::MAX - 3, 0)] {
            let mut follower = Follower::new(Xlen::Rv64);
            assert_eq!(follower.follow(&only(Some(NewPc::To(pc)))), None);
            assert_eq!(follower.follow(&insn(0x13, 4, INCREMENT)), Some(pc));
            assert_eq!(follower.pc(), Some(next));
        }
    }

    #[test]
    fn two_pcs_say_where_the_instruction_was() {
        let mut follower = Follower::new(Xlen::Rv64);
        let both = |from, to| insn(0x13, 4, Some(NewPc::FromTo(from, to)));
        assert_eq!(follower.follow(&both(0x1000, 0x1004)), Some(0x1000));
        // It contradicts what came before; what it says itself counts.
        assert_eq!(follower.follow(&both(0x2000, 0x2004)), Some(0x2000));
        assert_eq!(follower.pc(), Some(0x2004));
    }

    /// An exception with its instruction, and an interrupt without.
    #[test]
    fn traps_go_to_their_handler() {
        let cause = Change {
            register: Register::csr(0x342),
            how: How::Full(8),
        };
        let mut follower = Follower::at(Xlen::Rv64, Some(0x1000));
        let mut ecall = insn(0x73, 4, Some(NewPc::To(0x100)));
        ecall.changes.push(cause);
        assert_eq!(follower.follow(&ecall), Some(0x1000));
        assert_eq!(follower.follow(&only(Some(NewPc::To(0x200)))), Some(0x100));
        assert_eq!(follower.pc(), Some(0x200));
    }

    #[test]
    fn a_group_without_a_pc_stays_where_it_is() {
        let mut follower = Follower::at(Xlen::Rv64, Some(0x1000));
        assert_eq!(follower.follow(&only(None)), Some(0x1000));
        // `j .` changes nothing.
        assert_eq!(follower.follow(&insn(0x6f, 4, None)), Some(0x1000));
        assert_eq!(follower.pc(), Some(0x1000));
    }

    #[test]
    fn an_increment_of_an_unknown_pc_is_unknown() {
        let mut follower = Follower::new(Xlen::Rv64);
        assert_eq!(follower.follow(&insn(1, 2, INCREMENT)), None);
        assert_eq!(follower.pc(), None);
        // The reader refuses an increment without an instruction; it moves
        // nothing.
        follower.set(Some(0x1000));
        follower.follow(&only(INCREMENT));
        assert_eq!(follower.pc(), Some(0x1000));
    }

    #[test]
    fn a_reset_leads_where_its_group_says_or_nowhere_known() {
        let reset = |pc| Group {
            reset: true,
            ..only(pc)
        };
        let mut follower = Follower::at(Xlen::Rv64, Some(0x1000));
        assert_eq!(follower.follow(&reset(None)), None);
        assert_eq!(follower.pc(), None);
        assert_eq!(follower.follow(&reset(Some(NewPc::To(0x80)))), None);
        assert_eq!(follower.pc(), Some(0x80));
    }
}
