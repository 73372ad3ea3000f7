//! Reads a port at every edge of its clock.

use super::fields::WavePort;
use super::find::{Bits, Plan};
use super::ingress::IngressPort;
use super::rvfi::RvfiPort;
use hartrace_flow::Ingress;
use hartrace_logs::{Entry, LineError, LineErrorKind, Moment};
use hartrace_wave::{Reader, Sample, WaveError};
use std::sync::Arc;

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

/// Reads the port of a waveform. Feed it chunks of any size.
pub struct WaveReader {
    plan: Arc<Plan>,
    /// `None` after damage.
    reader: Option<Reader>,
    port: Port,
    /// Edges of the clock so far.
    edges: u64,
    /// The time of the last of them.
    now: u64,
    /// Something was shown since the last loss.
    shown: bool,
}

/// The state of a port between edges.
#[allow(clippy::large_enum_variant)] // there is one
enum Port {
    Rvfi(RvfiPort),
    Ingress(IngressPort),
}

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

impl WaveReader {
    /// A reader of the port that a plan describes.
    #[must_use]
    pub fn new(plan: &Arc<Plan>) -> WaveReader {
        WaveReader {
            plan: Arc::clone(plan),
            reader: Reader::new(&plan.header, plan.watch.clone()).ok(),
            port: match plan.port {
                WavePort::Rvfi => Port::Rvfi(RvfiPort::new(plan)),
                WavePort::Ingress | WavePort::Cva6 => Port::Ingress(IngressPort::new(plan)),
            },
            edges: 0,
            now: 0,
            shown: false,
        }
    }

    /// The plan it reads by.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Edges of the clock so far.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Reads on.
    pub fn feed(&mut self, chunk: &[u8], show: &mut Show<'_>) {
        self.part(Some(chunk), show);
    }

    /// The file has ended.
    pub fn finish(&mut self, show: &mut Show<'_>) {
        self.part(None, show);
    }

    fn part(&mut self, chunk: Option<&[u8]>, show: &mut Show<'_>) {
        let Some(mut reader) = self.reader.take() else {
            return;
        };
        let mut take = |sample: &mut Sample<'_>| self.edge(sample, show);
        let read = match chunk {
            Some(chunk) => reader.feed(chunk, &mut take),
            None => reader.finish(&mut take),
        };
        match read {
            Ok(()) => self.reader = Some(reader),
            Err(error) => {
                let moment = Moment {
                    ticks: self.now,
                    exponent: Some(self.plan.exponent()),
                };
                let kind = LineErrorKind::Wave(words(error));
                show(Shown::Damaged(LineError::at(moment, "", kind)));
                show(Shown::Lost);
            }
        }
    }

    fn edge(&mut self, sample: &mut Sample<'_>, show: &mut Show<'_>) -> Result<(), WaveError> {
        self.edges += 1;
        self.now = sample.time();
        let gap = sample.after_gap();
        let plan = &*self.plan;
        let mut at = At { plan, sample };
        let in_reset = match (plan.reset_at, &plan.reset) {
            (Some(watched), Some((_, high))) => {
                // An unknown level is no work of the hart either.
                let level = at.sample.value(watched)?.get(0, 1);
                level != Some(u64::from(!high))
            }
            _ => false,
        };
        if gap || in_reset {
            if std::mem::take(&mut self.shown) {
                show(Shown::Lost);
            }
            match &mut self.port {
                Port::Rvfi(port) => port.restart(),
                Port::Ingress(port) => port.restart(),
            }
        }
        if in_reset {
            return Ok(());
        }
        let shown = &mut self.shown;
        let mut noted = |what: Shown<'_>| {
            *shown |= matches!(what, Shown::Entry(_) | Shown::Blocks(_));
            show(what);
        };
        match &mut self.port {
            Port::Rvfi(port) => port.edge(&mut at, &mut noted),
            Port::Ingress(port) => port.edge(&mut at, &mut noted),
        }
    }
}

/// What is wrong with a file, for a line error, which has no room for more.
fn words(error: WaveError) -> &'static str {
    match error {
        WaveError::Truncated => "it is cut off",
        WaveError::NoHierarchy => "it has no names of signals",
        WaveError::Damaged { what, .. }
        | WaveError::TooLarge { what, .. }
        | WaveError::Unsupported(what) => what,
        _ => "it is damaged",
    }
}
