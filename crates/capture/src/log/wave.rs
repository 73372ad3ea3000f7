//! The steps of a waveform.

use super::{LogError, LogOptions};
use crate::detect::Kind;
use crate::wave::{Shown, WavePort, WaveReader};
use hartrace_flow::{HartId, Observer, SpaceId};
use hartrace_logs::{BlockSteps, EntryOptions, EntrySteps, LineError, LineErrorKind, Moment};

/// Reads the port of a waveform as steps.
pub(super) struct WaveSteps<'a> {
    reader: WaveReader,
    form: Form<'a>,
}

/// One at a time, so that their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Form<'a> {
    Entries(EntrySteps<'a>),
    Blocks(BlockSteps<'a>),
}

impl<'a> WaveSteps<'a> {
    pub(super) fn new(kind: Kind, options: &LogOptions<'a>) -> Result<WaveSteps<'a>, LogError> {
        let plan = match &options.wave {
            Some(Ok(plan)) => plan,
            Some(Err(error)) => return Err(LogError::Wave(error.clone())),
            None => return Err(LogError::NotALog(kind)),
        };
        let form = match plan.port {
            WavePort::Rvfi => {
                let entries = EntryOptions {
                    isa: options.isa,
                    plain_jumps: options.plain_jumps,
                    ..EntryOptions::default()
                };
                Form::Entries(EntrySteps::new(entries, options.image))
            }
            port => {
                let kind = Kind::Wave(Some(port));
                let image = options.image.ok_or(LogError::NeedsProgram(kind))?;
                Form::Blocks(BlockSteps::new(image, SpaceId::FIRST, HartId(0)))
            }
        };
        Ok(WaveSteps {
            reader: WaveReader::new(plan),
            form,
        })
    }

    pub(super) fn edges(&self) -> u64 {
        self.reader.edges()
    }

    pub(super) fn exponent(&self) -> i8 {
        self.reader.plan().exponent()
    }

    /// Reads on, or ends.
    pub(super) fn part<O: Observer>(
        &mut self,
        chunk: Option<&[u8]>,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let WaveSteps { reader, form } = self;
        let exponent = Some(reader.plan().exponent());
        let mut show = |shown: Shown<'_>| match (shown, &mut *form) {
            (Shown::Entry(entry), Form::Entries(steps)) => {
                if let Err(kind) = steps.entry(entry, out) {
                    let ticks = entry.time;
                    damaged(LineError::at(Moment { ticks, exponent }, "", kind));
                    if !matches!(kind, LineErrorKind::CodeDiffers(_)) {
                        steps.lost(Some(entry.hart), out);
                    }
                }
            }
            (Shown::Blocks(cycle), Form::Blocks(blocks)) => {
                for block in cycle {
                    let ticks = block.time;
                    let time = Some(Moment { ticks, exponent });
                    let mut placed = |error| damaged(LineError { time, ..error });
                    blocks.block(0, block, out, &mut placed);
                }
            }
            (Shown::Lost, Form::Entries(steps)) => steps.lost(None, out),
            (Shown::Lost, Form::Blocks(blocks)) => blocks.lost(out),
            (Shown::Damaged(error), _) => damaged(error),
            // A port shows one of them.
            (Shown::Entry(_), Form::Blocks(_)) | (Shown::Blocks(_), Form::Entries(_)) => {}
        };
        match chunk {
            Some(chunk) => return reader.feed(chunk, &mut show),
            None => reader.finish(&mut show),
        }
        match form {
            Form::Entries(steps) => {
                steps.flush(out);
                out.finish();
            }
            Form::Blocks(blocks) => blocks.finish(out),
        }
    }
}
