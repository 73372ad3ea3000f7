//! The same bytes must give the same events: however they are cut, wherever
//! decoding starts, on any number of threads, and when they are damaged.

use std::fmt::Debug;
use std::ops::ControlFlow;

use hartrace_capture::shard;
use hartrace_flow::{Consumer, Decode, Event, HartId, Image};

use super::identity::Case;
use super::pipe::feed;
use super::{Events, Format};
use crate::generate::Random;

/// A trace and what it was made with.
struct Trace<'a, F: Format> {
    bytes: Vec<u8>,
    config: &'a F::Config,
    image: &'a Image,
}

impl<'a, F: Format> Trace<'a, F> {
    fn decoder(&self) -> Result<F::Decoder<'a>, String> {
        F::decoder(self.config, self.image)
    }

    /// The events of the whole of it.
    fn events(&self) -> Result<Events, String> {
        let mut events = Events::default();
        let mut decoder = self.decoder()?;
        feed(&mut decoder, &self.bytes, &mut events);
        decoder.finish(&mut events);
        Ok(events)
    }

    /// In chunks of any length, with a pause now and then.
    fn chunks(&self, events: &Events, r: &mut Random) -> Result<(), String> {
        let mut decoder = self.decoder()?;
        let mut out = Events::default();
        let most = r.pick(&[2, 5, 60, 1000]);
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let len = 1 + r.below(most) as usize;
            let (chunk, behind) = rest.split_at(len.min(rest.len()));
            if r.chance(100) {
                let mut pause = Pausing(&mut out);
                let used = decoder.feed(chunk, &mut pause);
                rest = rest.get(used..).unwrap_or_default();
            } else {
                feed(&mut decoder, chunk, &mut out);
                rest = behind;
            }
        }
        decoder.finish(&mut out);
        same(&out.0, &events.0).map_err(|e| format!("in chunks: {e}"))
    }

    /// From every sync point: what a source says from there on.
    fn sync_points(&self, events: &Events) -> Result<(), String> {
        let points = F::sync_points(self.config, &self.bytes);
        // All of a short list, some of a long one.
        let step = 1 + points.len() / 40;
        for point in points.iter().step_by(step) {
            let mut out = Events::default();
            let mut decoder = self.decoder()?;
            decoder.restart(point.at as u64);
            let bytes = self.bytes.get(point.at..).unwrap_or_default();
            feed(&mut decoder, bytes, &mut out);
            decoder.finish(&mut out);
            let only = |all: &Events| -> Vec<Event> {
                let events = all.0.iter().filter(|e| e.0 == point.hart);
                events.map(|e| F::plain(self.config, e.1)).collect()
            };
            let (tail, whole) = F::tails(self.config, only(&out), only(events));
            same(&tail, &whole).map_err(|e| format!("from byte {:#x}: {e}", point.at))?;
        }
        Ok(())
    }

    /// The same bytes in another form.
    fn rewritten(&self, events: &Events, seed: u64) -> Result<(), String> {
        let Some(bytes) = F::rewrite(self.config, &self.bytes, seed) else {
            return Ok(());
        };
        let other = Trace::<F> { bytes, ..*self };
        // Where something was lost is another place.
        let plain = |events: &Events| -> Vec<(HartId, Event)> {
            let mut events = events.0.clone();
            // Data trace, which is not decoded.
            events.retain(|(_, event)| !matches!(event, Event::Warning(w) if !w.is_loss));
            for (_, event) in &mut events {
                if let Event::Gap(gap) = event {
                    (gap.at, gap.bytes) = (0, 0);
                }
            }
            events
        };
        same(&plain(&other.events()?), &plain(events)).map_err(|e| format!("rewritten: {e}"))
    }

    /// On several threads, in pieces of any length.
    fn threads(&self, events: &Events, r: &mut Random) -> Result<(), String> {
        for threads in [2, 3, 8] {
            let piece = 16 + r.below(1 + self.bytes.len() as u64 / 3) as usize;
            let mut out = Events::default();
            let decoder = self.decoder()?;
            drop(decoder);
            shard::Sharding { threads, piece }
                .decode(
                    &self.bytes,
                    #[allow(clippy::unwrap_used)] // it was made a moment ago
                    || self.decoder().unwrap(),
                    Events::default,
                    |part: &mut Events, _| {
                        out.0.append(&mut part.0);
                        Ok(())
                    },
                )
                .map_err(|e| e.to_string())?;
            same(&out.0, &events.0)
                .map_err(|e| format!("{threads} threads, pieces of {piece}: {e}"))?;
        }
        Ok(())
    }

    /// Messages are counted the same while they are decoded.
    fn counted(&self) -> Result<(), String> {
        super::counted(&F::settings(self.config), self.image, &self.bytes)
    }

    /// Any damage: bits, holes, things twice.
    fn damage(&mut self, r: &mut Random) {
        for _ in 0..1 + r.below(6) {
            let at = r.below(self.bytes.len().max(1) as u64) as usize;
            let end = (at + 1 + r.below(200) as usize).min(self.bytes.len());
            match r.below(4) {
                0 | 1 => {
                    if let Some(byte) = self.bytes.get_mut(at) {
                        *byte ^= 1 << r.below(8);
                    }
                }
                2 => {
                    self.bytes.drain(at.min(end)..end);
                }
                _ => {
                    let twice = self.bytes.get(at..end).unwrap_or_default().to_vec();
                    self.bytes.splice(at.min(end)..at.min(end), twice);
                }
            }
        }
    }
}

/// Asks for a pause at every event.
struct Pausing<'e>(&'e mut Events);

impl Consumer for Pausing<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        let _ = self.0.event(hart, event);
        ControlFlow::Break(())
    }
}

/// Whether events are the same; otherwise the first that differs.
pub(crate) fn same<E: PartialEq + Debug>(a: &[E], b: &[E]) -> Result<(), String> {
    if a == b {
        return Ok(());
    }
    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    Err(format!(
        "event {at} is {:x?} instead of {:x?} ({} and {} events)",
        a.get(at),
        b.get(at),
        a.len(),
        b.len()
    ))
}

/// All of it for one case of so many steps. Gives the number of events
/// compared.
///
/// # Errors
///
/// The first difference.
pub(super) fn all<F: Format>(case: &Case<F>, steps: u64) -> Result<u64, String> {
    let blame = |what: String| case.blame(&what, steps);
    let mut trace = Trace::<F> {
        bytes: case.trace(steps)?,
        config: &case.setting.config,
        image: case.program.image(),
    };
    let mut r = Random::new(case.seed ^ 0x59117);
    let events = trace.events()?;
    trace.chunks(&events, &mut r).map_err(blame)?;
    trace.sync_points(&events).map_err(blame)?;
    trace.threads(&events, &mut r).map_err(blame)?;
    trace.rewritten(&events, r.draw()).map_err(blame)?;
    trace.counted().map_err(blame)?;
    trace.damage(&mut r);
    let damaged = trace.events()?;
    let blame = |what: String| blame(format!("damaged, {what}"));
    trace.chunks(&damaged, &mut r).map_err(blame)?;
    trace.threads(&damaged, &mut r).map_err(blame)?;
    trace.counted().map_err(blame)?;
    Ok((events.0.len() + damaged.0.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etrace::ETrace;
    use crate::ntrace::NTrace;

    fn the_same_bytes_give_the_same_events<F: Format>() {
        for seed in 0..60 {
            all(&Case::<F>::new(seed), 800).unwrap();
        }
    }

    #[test]
    fn ntrace() {
        the_same_bytes_give_the_same_events::<NTrace>();
    }

    #[test]
    fn etrace() {
        the_same_bytes_give_the_same_events::<ETrace>();
    }
}
