//! A trace that can be decoded from many places.
//!
//! While a trace is decoded from its start, [`Replay::decode`] looks for places where a
//! decoder that starts there comes to the same state, and [marks](Marked) them. Later
//! [`Replay::from`] decodes from a mark. Nothing of the decoder's state needs to be kept.

use super::drive::Watch;
use super::{
    Counting, Decoded, Decoder, Explained, Explainer, Growth, MAX_WHOLE, Settings, SettingsError,
    Trace, View,
};
use crate::digest::Digest;
use crate::input::{Contents, InputError};
use crate::shard::{Pause, first};
use hartrace_flow::{Checkpoint, Consumer, Decode as _, HartId, Image, Marked};
use hartrace_isa::Isa;
use std::ops::ControlFlow;

/// Bytes that are decoded at a time.
const STEP: usize = 1 << 12;

/// Bytes in which a decoder that starts anywhere must synchronise.
const REACH: usize = 1 << 18;

/// Messages after a mark in which a consumer must get ready for it.
const PATIENCE: usize = 64;

/// Marks are at least so many bytes apart, and there are at most [`MARKS`] of them.
const APART: usize = 1 << 13;
const MARKS: usize = 1 << 12;

/// A trace in memory, or mapped, that is decoded several times.
pub struct Replay {
    settings: Settings,
    bytes: Contents,
    contained: bool,
}

impl Trace {
    /// The trace, to be decoded several times.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn replay(self) -> Result<Replay, InputError> {
        Ok(Replay {
            contained: self.is_contained(),
            settings: self.settings,
            bytes: self.input.contents(MAX_WHOLE)?,
        })
    }
}

impl Replay {
    /// Whether the format allows to start anywhere. What a group of a tandem trace means
    /// depends on all groups before it, and data accesses are assigned to instructions in
    /// their order.
    #[must_use]
    pub fn has_checkpoints(&self) -> bool {
        !self.settings.has_data() && !matches!(self.settings, Settings::Tandem(_))
    }

    /// Its settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A counter for its messages.
    #[must_use]
    pub fn counting(&self) -> Counting {
        Counting::new(&self.settings)
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// A digest of its size and of samples of its bytes: enough to notice that a file is
    /// another one, and fast for large files.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::of_samples(&self.bytes)
    }

    /// Gives the events of the hart `only`, or of all, to `out`, with marks, until it breaks.
    /// Now and then `after` gets what was decoded so far, and the number of bytes that are
    /// done. `counting` counts messages, if that is wanted.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn decode(
        &self,
        image: &Image,
        only: Option<HartId>,
        out: &mut dyn Marked,
        mut counting: Option<&mut Counting>,
        after: &mut dyn FnMut(&Decoded, u64),
    ) -> Result<Decoded, SettingsError> {
        let bytes: &[u8] = &self.bytes;
        let mut out = Watch::new(out, only);
        let mut decoder = Decoder::new(&self.settings, image)?;
        let mut probe = decoder.another();
        let hint = first(&mut probe, bytes);
        let every = APART.max(bytes.len() / MARKS);
        let mut at = 0;
        // Where nothing was found before.
        let mut blind = if self.has_checkpoints() {
            0
        } else {
            usize::MAX
        };
        while at < bytes.len() {
            let wanted = at + every;
            let found = match wanted >= blind && wanted < bytes.len() {
                true => synchronise(&mut probe, bytes, wanted, &hint),
                false => None,
            };
            if found.is_none() && wanted >= blind {
                blind = wanted + REACH;
            }
            let goal = found.map_or(wanted, |(_, position)| position);
            let goal = goal.min(bytes.len());
            while at < goal {
                let length = match counting {
                    // Who counts wants to know how the trace grows.
                    Some(_) => Growth::step(at as u64, STEP),
                    None => STEP,
                };
                let length = length.min(goal - at);
                let step = bytes.get(at..at + length).unwrap_or_default();
                if let Some(counting) = &mut counting {
                    counting.feed(step);
                }
                feed(&mut decoder, step, &mut out);
                at += length;
                after(&out.decoded, at as u64);
                if out.ended {
                    return Ok(out.decoded);
                }
            }
            let Some((offset, _)) = found.filter(|_| decoder.seam() == probe.seam()) else {
                continue;
            };
            for _ in 0..PATIENCE {
                if out.inner.is_ready() {
                    out.inner.mark(Checkpoint {
                        offset: offset as u64,
                        position: at as u64,
                    });
                    break;
                }
                let rest = bytes.get(at..).unwrap_or_default();
                let used = probe.feed(rest.get(..STEP).unwrap_or(rest), &mut Pause);
                let message = rest.get(..used).unwrap_or_default();
                if let Some(counting) = &mut counting {
                    counting.feed(message);
                }
                feed(&mut decoder, message, &mut out);
                at += used;
            }
        }
        decoder.finish(&mut out);
        after(&out.decoded, at as u64);
        Ok(out.decoded)
    }

    /// Gives the events of the hart `only`, or of all, to `out`: from a checkpoint, or from
    /// the start, until it breaks.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn from(
        &self,
        image: &Image,
        only: Option<HartId>,
        checkpoint: Option<Checkpoint>,
        out: &mut dyn Consumer,
    ) -> Result<(), SettingsError> {
        let decoded = self.part(image, only, (checkpoint, None), out);
        decoded.map(drop)
    }

    /// The same up to the position of another checkpoint, or to the end.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn part(
        &self,
        image: &Image,
        only: Option<HartId>,
        (checkpoint, until): (Option<Checkpoint>, Option<u64>),
        out: &mut dyn Consumer,
    ) -> Result<Decoded, SettingsError> {
        let bytes: &[u8] = &self.bytes;
        let mut decoder = Decoder::new(&self.settings, image)?;
        let mut at = 0;
        if let Some(Checkpoint { offset, position }) = checkpoint {
            let hint = first(&mut decoder, bytes);
            decoder.restart(offset);
            decoder.hint(&hint);
            let range = offset as usize..(position as usize).min(bytes.len());
            feed(
                &mut decoder,
                bytes.get(range).unwrap_or_default(),
                &mut Pause,
            );
            at = position as usize;
        }
        let end = until.map_or(bytes.len(), |until| (until as usize).min(bytes.len()));
        let mut out = Watch::new(out, only);
        for step in bytes.get(at..end).unwrap_or_default().chunks(STEP) {
            decoder.feed(step, &mut out);
            if out.ended {
                return Ok(out.decoded);
            }
        }
        if until.is_none() {
            decoder.finish(&mut out);
        }
        Ok(out.decoded)
    }

    /// Gives every message, packet or group to `take`, until it breaks. `isa` is for the
    /// instructions in a tandem trace.
    pub fn messages(&self, isa: Isa, take: &mut dyn FnMut(&Explained) -> ControlFlow<()>) {
        let mut explainer = Explainer::new(&self.settings, isa, self.contained, View::Objects);
        let mut each = |explained: &Explained, _: &[u8]| match take(explained) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(()),
        };
        for chunk in self.bytes.chunks(STEP) {
            if explainer.feed(chunk, &mut each).is_err() {
                return;
            }
        }
        // There is nothing more to break off.
        let _ = explainer.finish(&mut each);
    }
}

/// Feeds all bytes, whatever pauses are asked for.
fn feed(decoder: &mut Decoder<'_>, bytes: &[u8], out: &mut impl Consumer) {
    let mut rest = bytes;
    while !rest.is_empty() {
        // A pause comes after a message, so there is one at least.
        let used = decoder.feed(rest, out).max(1);
        rest = rest.get(used..).unwrap_or_default();
    }
}

/// Where a decoder can start at or after `from`, and where it is synchronised then.
fn synchronise<'a>(
    decoder: &mut Decoder<'a>,
    bytes: &[u8],
    from: usize,
    hint: &<Decoder<'a> as hartrace_flow::Decode>::Seam,
) -> Option<(usize, usize)> {
    let offset = decoder.boundary(bytes, from)?;
    decoder.restart(offset as u64);
    decoder.hint(hint);
    let end = (offset + REACH).min(bytes.len());
    let mut at = offset;
    while at < end {
        at += decoder.feed(bytes.get(at..end)?, &mut Pause);
        if decoder.is_synchronised() {
            return Some((offset, at));
        }
    }
    None
}

#[cfg(test)]
mod tests;
