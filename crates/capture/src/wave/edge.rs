//! A port at an edge of its clock: its signals, and what they show.

use super::find::{Bits, Plan};
use hartrace_flow::Ingress;
use hartrace_logs::{Entry, LineError, LineErrorKind, Moment};
use hartrace_wave::{Sample, WaveError};

/// What a port shows.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'s> {
    /// An instruction, of RVFI.
    Entry(&'s Entry),
    /// The blocks of a cycle, of the ingress port, oldest first.
    Blocks(&'s [Ingress]),
    /// What comes next does not follow what came before.
    Lost,
    /// Something is wrong.
    Damaged(LineError),
}

/// What takes what a port shows.
pub(super) type Show<'s> = dyn FnMut(Shown<'_>) + 's;

/// The signals of a port at an edge.
pub(super) struct At<'a, 's> {
    pub(super) plan: &'a Plan,
    pub(super) sample: &'a mut Sample<'s>,
}

/// Why a lane is not read.
pub(super) enum Fault {
    /// Something is wrong with a signal.
    Line(LineError),
    /// The file is damaged.
    Wave(WaveError),
}

impl From<WaveError> for Fault {
    fn from(error: WaveError) -> Fault {
        Fault::Wave(error)
    }
}

impl At<'_, '_> {
    pub(super) fn moment(&self) -> Moment {
        Moment {
            ticks: self.sample.time(),
            exponent: Some(self.plan.exponent()),
        }
    }

    /// The value of a signal; `None` without it.
    #[inline(always)]
    pub(super) fn get(&mut self, bits: Option<Bits>) -> Result<Option<u64>, Fault> {
        let Some(bits) = bits else {
            return Ok(None);
        };
        // Of wider ones, the lowest bits.
        match self
            .sample
            .value(bits.watched)?
            .get(bits.lsb, bits.width.min(64))
        {
            Some(value) => Ok(Some(value)),
            None => Err(self.fault(bits, LineErrorKind::UnknownBits)),
        }
    }

    /// The bits of a signal under a mask; those outside of it need not be known.
    pub(super) fn masked(&mut self, bits: Option<Bits>, mask: u64) -> Result<Option<u64>, Fault> {
        let Some(bits) = bits else {
            return Ok(None);
        };
        let value = self.sample.value(bits.watched)?;
        let width = bits.width.min(64);
        if let Some(value) = value.get(bits.lsb, width) {
            return Ok(Some(value & mask));
        }
        let one = |at: u32| value.get(bits.lsb + at, 1).is_none() && mask >> at & 1 == 1;
        match (0..width).any(one) {
            true => Err(self.fault(bits, LineErrorKind::UnknownBits)),
            false => self.known(Some(bits), mask),
        }
    }

    /// The bits of a signal under a mask; those that are unknown count as 0.
    pub(super) fn known(&mut self, bits: Option<Bits>, mask: u64) -> Result<Option<u64>, Fault> {
        let Some(bits) = bits else {
            return Ok(None);
        };
        let value = self.sample.value(bits.watched)?;
        Ok(Some(value.known_bits(bits.lsb, bits.width.min(64)) & mask))
    }

    #[cold]
    pub(super) fn fault(&self, bits: Bits, kind: LineErrorKind) -> Fault {
        let name = self.plan.names.get(bits.watched);
        let name = name.map_or("", String::as_str);
        Fault::Line(LineError::at(self.moment(), name, kind))
    }
}
