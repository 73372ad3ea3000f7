//! Reads a port at every edge of its clock.

use super::edge::{At, Show, Shown};
use super::find::Plan;
use super::ingress::IngressPort;
use super::rvfi::RvfiPort;
use hartrace_files::wave_port::WavePort;
use hartrace_logs::{LineError, LineErrorKind, Moment};
use hartrace_wave::{Reader, Sample, WaveError};
use std::sync::Arc;

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
