//! Trap vectors: where handlers are, by cause (3.2.3).
//!
//! In implicit exception mode trap packets have no handler address. A handler
//! is known from the configuration (the values of mtvec, stvec and vstvec), or
//! from an earlier trap packet that had one: encoder and decoder learn alike.

use alloc::boxed::Box;
use alloc::vec;

use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use crate::TrapVectors;

/// Causes that are remembered, of exceptions and of interrupts.
const CAUSES: u32 = 64;

/// Codes of privilege modes.
const MODES: usize = 8;

/// The handlers that are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vectors {
    given: TrapVectors,
    xlen: Xlen,
    /// Learnt, by mode, then exceptions and interrupts, then cause.
    learnt: Box<[Option<u64>]>,
}

impl Vectors {
    pub(crate) fn new(given: TrapVectors, xlen: Xlen) -> Vectors {
        Vectors {
            given,
            xlen,
            learnt: vec![None; MODES * 2 * CAUSES as usize].into_boxed_slice(),
        }
    }

    fn slot(mode: Mode, interrupt: bool, cause: u32) -> Option<usize> {
        let kind = usize::from(mode.code() & 7) * 2 + usize::from(interrupt);
        (cause < CAUSES).then_some(kind * CAUSES as usize + cause as usize)
    }

    /// The handler of a trap into this mode.
    pub(crate) fn handler(&self, mode: Mode, interrupt: bool, cause: u32) -> Option<u64> {
        let slot = Vectors::slot(mode, interrupt, cause);
        let learnt = slot.and_then(|slot| *self.learnt.get(slot)?);
        learnt.or_else(|| {
            let tvec = match mode {
                Mode::M => self.given.mtvec,
                Mode::S => self.given.stvec,
                Mode::VS => self.given.vstvec,
                _ => None,
            }?;
            // The lowest bits are the mode; 1 is vectored.
            let offset = match interrupt && tvec & 3 == 1 {
                true => 4 * u64::from(cause),
                false => 0,
            };
            Some(self.xlen.wrap((tvec & !3).wrapping_add(offset)))
        })
    }

    /// A packet has reported a handler.
    pub(crate) fn learn(&mut self, mode: Mode, interrupt: bool, cause: u32, handler: u64) {
        if let Some(slot) = Vectors::slot(mode, interrupt, cause)
            && let Some(entry) = self.learnt.get_mut(slot)
        {
            *entry = Some(handler);
        }
    }

    /// What was learnt may be missing on the other side.
    pub(crate) fn forget(&mut self) {
        self.learnt.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_those_of_the_privileged_specification() {
        let given = TrapVectors {
            mtvec: Some(0x8000_0101),
            stvec: Some(0xffff_ffff_8000_0000),
            vstvec: None,
        };
        let vectors = Vectors::new(given, Xlen::Rv64);
        let handler = |mode, interrupt, cause| vectors.handler(mode, interrupt, cause);
        // Exceptions go to the base in either mode, interrupts only in direct mode.
        assert_eq!(handler(Mode::M, false, 11), Some(0x8000_0100));
        assert_eq!(handler(Mode::M, true, 7), Some(0x8000_011c));
        assert_eq!(handler(Mode::S, true, 9), Some(0xffff_ffff_8000_0000));
        assert_eq!(handler(Mode::VS, false, 2), None);
        assert_eq!(handler(Mode::U, false, 2), None);
    }

    #[test]
    fn a_handler_that_was_reported_is_known() {
        let mut vectors = Vectors::new(TrapVectors::default(), Xlen::Rv64);
        assert_eq!(vectors.handler(Mode::S, false, 8), None);
        vectors.learn(Mode::S, false, 8, 0x1234);
        assert_eq!(vectors.handler(Mode::S, false, 8), Some(0x1234));
        // Of this cause only, in this mode.
        assert_eq!(vectors.handler(Mode::S, true, 8), None);
        assert_eq!(vectors.handler(Mode::S, false, 9), None);
        assert_eq!(vectors.handler(Mode::M, false, 8), None);
        // One that has no place is not remembered.
        vectors.learn(Mode::S, true, 64, 0x1234);
        assert_eq!(vectors.handler(Mode::S, true, 64), None);
        vectors.forget();
        assert_eq!(vectors.handler(Mode::S, false, 8), None);
    }

    #[test]
    fn what_was_reported_overrides_the_configuration() {
        let given = TrapVectors {
            mtvec: Some(0x100),
            ..TrapVectors::default()
        };
        let mut vectors = Vectors::new(given, Xlen::Rv32);
        vectors.learn(Mode::M, false, 2, 0x200);
        assert_eq!(vectors.handler(Mode::M, false, 2), Some(0x200));
        assert_eq!(vectors.handler(Mode::M, false, 3), Some(0x100));
        let high = TrapVectors {
            mtvec: Some(0xffff_fff1),
            ..TrapVectors::default()
        };
        let vectors = Vectors::new(high, Xlen::Rv32);
        assert_eq!(vectors.handler(Mode::M, true, 7), Some(0xc));
    }
}
