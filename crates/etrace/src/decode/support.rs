//! Support packets: where a trace ends, and in which modes it goes on.
//!
//! Bytes that only look like a support packet would change how all that follows is
//! read. So the modes of one that comes in mid-stream are in doubt until a
//! synchronisation is reached with them.

use hartrace_flow::decode::{Phase, Source as _};
use hartrace_flow::{Blocks, Consumer, Event};

use super::modes::{Doubt, Modes};
use super::pending::{Next, Trouble};
use super::source::Source;
use super::{Ctx, Settings};
use crate::{Ending, Fault, QualStatus, Support};

impl Source {
    /// Format 3 subformat 3.
    pub(super) fn support<C: Consumer>(
        &mut self,
        support: &Support,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        if support.encoder_mode != 0 {
            return Err((Fault::UnknownMode, u64::from(support.encoder_mode)));
        }
        let idle = matches!(self.track.phase, Phase::Start | Phase::Stopped);
        let changed = support.qual_status != QualStatus::NoChange;
        if support.qual_status == QualStatus::EndedRep && self.repeats(cx.settings, cx.blocks) {
            self.pending = None;
        }
        let next = match support.qual_status {
            QualStatus::NoChange | QualStatus::TraceLost => Next::Unknown,
            QualStatus::EndedRep => Next::Sync,
            QualStatus::EndedNtr => Next::Flow,
        };
        match (support.qual_status, self.track.phase) {
            (QualStatus::NoChange, Phase::Running) => self.resolve(next, cx)?,
            (QualStatus::NoChange, _) => {}
            // Even where nothing was traced: the start may be what was lost.
            (QualStatus::TraceLost, phase) => {
                match phase {
                    Phase::Running => self.end(next, cx)?,
                    Phase::Trapped(trap) => self.track.event(&Event::Trap(trap), cx.out),
                    _ => {}
                }
                self.lose(Fault::TraceLost.reason(0), cx.place.at, 0);
            }
            (_, Phase::Start | Phase::Stopped) => {}
            (_, Phase::Lost(gap)) => {
                self.track.event(&Event::Gap(gap), cx.out);
                self.stop(cx);
            }
            (_, Phase::Trapped(trap)) => {
                self.track.event(&Event::Trap(trap), cx.out);
                self.stop(cx);
            }
            (_, Phase::Running) => {
                self.end(next, cx)?;
                self.stop(cx);
            }
        }
        if idle || changed {
            self.aids.fresh = true;
            if let Some(vectors) = &mut self.aids.vectors {
                vectors.forget();
            }
        }
        Ok(())
    }

    /// A support packet reports the modes; `traced` if the hart was being traced.
    pub(super) fn doubt(
        &mut self,
        settings: &Settings,
        support: &Support,
        traced: bool,
        behind: u64,
    ) -> Result<(), Trouble> {
        let refused = settings.refuses(support);
        let before = Doubt {
            modes: settings.modes,
            refused: self.refused,
            failed: false,
            behind,
        };
        if !traced {
            self.doubt = None;
        } else if settings.told(support) != before.modes || refused != before.refused {
            self.doubt.get_or_insert(before).behind = behind;
        }
        self.refused = refused;
        if refused && support.ienable {
            return Err((Fault::UnknownOption, u64::from(support.ioptions)));
        }
        Ok(())
    }

    /// Whether a synchronisation at this offset has the modes be what they were
    /// before a support packet. Should those fail, too, the present ones are back.
    pub(super) fn revoke(&mut self, at: u64, present: Modes) -> Option<Modes> {
        let doubt = self.doubt.filter(|d| d.failed && d.behind != at)?;
        self.doubt = Some(Doubt {
            modes: present,
            refused: self.refused,
            failed: false,
            behind: doubt.behind,
        });
        self.refused = doubt.refused;
        Some(doubt.modes)
    }

    /// A synchronisation at this offset was reached.
    pub(super) fn settle_doubt(&mut self, at: u64) {
        self.doubt = self.doubt.filter(|d| d.behind == at);
    }

    /// Whether the waiting packet only repeats the position of the walk. The
    /// reference encoder ends like that (`Ending::Reference`); had the hart come
    /// back there by a jump, the status were another. It may have come back
    /// without any, round a loop that takes no decision.
    fn repeats(&self, settings: &Settings, blocks: &mut Blocks<'_>) -> bool {
        self.pending.is_some_and(|p| {
            let here = self.named && p.address == self.track.walk.pc(blocks);
            let same = here && p.outcomes == self.carry && !p.modal && !p.arrived;
            let told = settings.config.ending == Ending::Reported;
            same && !(told && self.comes_round(blocks))
        })
    }
}
