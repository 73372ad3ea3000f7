//! The same bytes give the same events: however they are cut, wherever
//! decoding begins, on any number of threads, and when they are damaged.

use std::ops::ControlFlow;

use hartrace_capture::shard::{self, Part};
use hartrace_flow::{Consumer, Event, HartId, Image};
use hartrace_ntrace::{Config, Decoder, ImplicitReturn, Timestamps, Version, sync_points};

use super::Pipe;
use super::identity::Case;
use super::pipe::feed;
use crate::generate::Random;

/// Keeps all events.
#[derive(Clone, Debug, Default, PartialEq)]
struct Events(Vec<(HartId, Event)>);

impl Consumer for Events {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.push((hart, *event));
        ControlFlow::Continue(())
    }
}

impl Part for Events {
    fn is_full(&self) -> bool {
        self.0.len() > 64
    }
}

/// A trace and what it was made with.
struct Trace<'a> {
    bytes: Vec<u8>,
    config: &'a Config,
    image: &'a Image,
}

impl<'a> Trace<'a> {
    fn decoder(&self) -> Result<Decoder<'a>, String> {
        Decoder::new(self.config.clone(), self.image).map_err(|e| e.to_string())
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
        let config = self.config;
        let stack = config.implicit_return != ImplicitReturn::Off;
        let keeps = stack && config.version == Version::Rc7 && config.markers_keep_stack;
        let points: Vec<_> = sync_points(&self.bytes, &config.layout()).collect();
        // All of a short list, some of a long one.
        let step = 1 + points.len() / 40;
        for point in points.iter().step_by(step) {
            if keeps && point.sync.is_marker() {
                continue;
            }
            let src = u32::from(point.src).wrapping_sub(u32::from(config.src_id));
            let hart = HartId(src & ((1 << config.src_bits) - 1));
            let mut out = Events::default();
            let mut decoder = self.decoder()?;
            decoder.restart(point.at);
            let bytes = self.bytes.get(point.at as usize..).unwrap_or_default();
            feed(&mut decoder, bytes, &mut out);
            decoder.finish(&mut out);
            let only = |all: &Events| -> Vec<(HartId, Event)> {
                let events = all.0.iter().copied();
                events
                    .filter(|e| e.0 == hart)
                    .map(|e| self.plain(e))
                    .collect()
            };
            let (tail, whole) = (only(&out), only(events));
            let from = whole.len().checked_sub(tail.len());
            let from = from.and_then(|from| whole.get(from..));
            let end = from.ok_or_else(|| format!("from byte {:#x}: more events", point.at))?;
            // The first context is told in parts, and one part is known.
            let part = |e: &&(HartId, Event)| !matches!(e.1, Event::Context(_));
            let first = tail.iter().take_while(part).count() + usize::from(config.hcontext);
            let (a, b) = (tail.get(..first), end.get(..first));
            let (c, d) = (tail.get(first + 1..), end.get(first + 1..));
            if !config.hcontext || a.is_none() {
                same(&tail, end)
            } else {
                let known = |s: Option<&[(HartId, Event)]>| -> Vec<(HartId, Event)> {
                    s.unwrap_or_default()
                        .iter()
                        .copied()
                        .filter(|e| part(&e))
                        .collect()
                };
                same(&known(a), &known(b))
                    .and_then(|()| same(c.unwrap_or_default(), d.unwrap_or_default()))
            }
            .map_err(|e| format!("from byte {:#x}: {e}", point.at))?;
        }
        Ok(())
    }

    /// Without what only the start of a stream tells: turns of a narrow clock.
    fn plain(&self, (hart, event): (HartId, Event)) -> (HartId, Event) {
        match (event, self.config.timestamps) {
            (Event::Time(time), Some(Timestamps { width, .. })) if width < 64 => {
                (hart, Event::Time(time & ((1 << width) - 1)))
            }
            _ => (hart, event),
        }
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

fn same(a: &[(HartId, Event)], b: &[(HartId, Event)]) -> Result<(), String> {
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
pub(super) fn all(case: &Case, steps: u64) -> Result<u64, String> {
    let blame = |what: String| {
        format!(
            "{what}\n  case {}: {:?}\n  again: hartrace-proof ntrace-identity --case {} {steps}",
            case.seed, case.setting, case.seed
        )
    };
    let image = case.program.image();
    let mut pipe = Pipe::new(&case.setting, image)?.keeping();
    case.drive(steps, &mut pipe, |_| false);
    let mut trace = Trace {
        bytes: pipe.into_bytes(),
        config: &case.setting.config,
        image,
    };
    let mut r = Random::new(case.seed ^ 0x59117);
    let events = trace.events()?;
    trace.chunks(&events, &mut r).map_err(blame)?;
    trace.sync_points(&events).map_err(blame)?;
    trace.threads(&events, &mut r).map_err(blame)?;
    trace.damage(&mut r);
    let damaged = trace.events()?;
    let blame = |what: String| blame(format!("damaged, {what}"));
    trace.chunks(&damaged, &mut r).map_err(blame)?;
    trace.threads(&damaged, &mut r).map_err(blame)?;
    Ok((events.0.len() + damaged.0.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_give_the_same_events() {
        for seed in 0..60 {
            all(&Case::new(seed), 800).unwrap();
        }
    }
}
