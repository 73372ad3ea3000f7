use super::*;
use crate::trace::Format;
use crate::trace::drive::tests::{image, recorded, trace};
use hartrace_flow::{Event, HartId};
use std::ops::ControlFlow;

/// Keeps all events, and how many there were at each checkpoint. It is ready after an
/// even number of them.
#[derive(Default)]
struct Keep {
    events: Vec<(HartId, Event)>,
    marks: Vec<(Checkpoint, usize)>,
    stop: Option<usize>,
}

impl Consumer for Keep {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.events.push((hart, *event));
        match self.stop.is_some_and(|stop| self.events.len() >= stop) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Marked for Keep {
    fn is_ready(&self) -> bool {
        self.events.len().is_multiple_of(2)
    }

    fn mark(&mut self, checkpoint: Checkpoint) {
        self.marks.push((checkpoint, self.events.len()));
    }
}

/// From each checkpoint on, the events are those of the whole.
#[test]
fn parts_are_the_same_as_in_the_whole() {
    let image = image();
    for format in [Format::Ntrace, Format::Etrace] {
        let (settings, bytes, _) = recorded(format, 16_000);
        let replay = trace(&settings, &bytes).replay().unwrap();
        let (mut all, mut counting) = (Keep::default(), replay.counting());
        let mut done = 0;
        let mut after = |_: &Decoded, bytes: u64| {
            assert!(bytes >= done);
            done = bytes;
        };
        let decoded = replay.decode(&image, None, &mut all, Some(&mut counting), &mut after);
        assert_eq!(decoded.unwrap().gaps, 0);
        assert_eq!(done, bytes.len() as u64);
        assert_eq!(counting.finish().bytes(), done);
        assert!(
            all.marks.len() > 1,
            "{format}: {} of {done}",
            all.marks.len()
        );
        for (checkpoint, before) in &all.marks {
            let mut part = Keep::default();
            replay
                .from(&image, None, Some(*checkpoint), &mut part)
                .unwrap();
            assert!(
                part.events == all.events[*before..],
                "{format}: {checkpoint:?}"
            );
        }
        let mut part = Keep::default();
        replay.from(&image, None, None, &mut part).unwrap();
        assert!(part.events == all.events);
    }
}

/// A consumer that has enough is given little more.
#[test]
fn a_part_ends_when_it_is_enough() {
    let (settings, bytes, _) = recorded(Format::Ntrace, 16_000);
    let (image, replay) = (image(), trace(&settings, &bytes).replay().unwrap());
    let mut part = Keep {
        stop: Some(100),
        ..Keep::default()
    };
    replay.from(&image, None, None, &mut part).unwrap();
    assert!(
        (100..5000).contains(&part.events.len()),
        "{}",
        part.events.len()
    );
}

/// A trace of nothing, or of noise, has no checkpoints, and ends.
#[test]
fn noise_has_no_checkpoints() {
    let (settings, ..) = recorded(Format::Ntrace, 1);
    let image = image();
    for bytes in [Vec::new(), vec![0x55; 100_000], vec![0xff; 50_000]] {
        let replay = trace(&settings, &bytes).replay().unwrap();
        let (mut all, mut counting) = (Keep::default(), replay.counting());
        let mut after = |_: &Decoded, _| {};
        let decoded = replay.decode(&image, None, &mut all, Some(&mut counting), &mut after);
        assert_eq!(decoded.unwrap().instructions, 0);
        assert!(all.marks.is_empty());
    }
}

#[test]
fn fingerprints_differ() {
    let (settings, bytes, _) = recorded(Format::Ntrace, 5000);
    let print = |bytes: &[u8]| trace(&settings, bytes).replay().unwrap().fingerprint();
    let first = print(&bytes);
    assert_eq!(print(&bytes), first);
    let mut other = bytes.clone();
    other[0] ^= 1;
    assert_ne!(print(&other), first);
    assert_ne!(print(&bytes[..bytes.len() - 1]), first);
}
