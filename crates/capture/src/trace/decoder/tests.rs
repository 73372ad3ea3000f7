use super::*;
use hartrace_flow::{Exit, Mark};
use hartrace_testkit::Random;

/// What a consumer got, call by call.
#[derive(Debug, PartialEq)]
enum Call {
    Runs(HartId, Vec<Run>),
    Event(HartId, Event),
}

/// Keeps every call, and asks for a pause at those whose number is in `pauses`.
#[derive(Default)]
struct Calls {
    calls: Vec<Call>,
    pauses: Vec<usize>,
}

impl Calls {
    fn keep(&mut self, call: Call) -> ControlFlow<()> {
        let number = self.calls.len();
        self.calls.push(call);
        match self.pauses.contains(&number) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Every event as it came, whatever it came with.
    fn flat(&self) -> Vec<(HartId, Event)> {
        let mut flat = Vec::new();
        for call in &self.calls {
            match call {
                Call::Runs(hart, runs) => {
                    flat.extend(runs.iter().map(|run| (*hart, Event::Run(*run))));
                }
                Call::Event(hart, event) => flat.push((*hart, *event)),
            }
        }
        flat
    }
}

impl Consumer for Calls {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.keep(Call::Event(hart, *event))
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.keep(Call::Runs(hart, runs.to_vec()))
    }
}

fn run(start: u64) -> Run {
    Run {
        start,
        end: start + 4,
        next: start + 4,
        insns: 1,
        exit: Exit::Stop,
        last: 4,
    }
}

/// Runs one by one and in slices of any length, other events, several harts:
/// everything arrives, in its order.
#[test]
fn a_batch_passes_on_everything_in_order() {
    let mut random = Random::new(1);
    for _ in 0..200 {
        let mut calls = Calls::default();
        let mut expected = Vec::new();
        let mut batch = Batch::new(&mut calls);
        for n in 0..random.below(100) {
            let hart = HartId(random.below32(2));
            let start = n << 16;
            match random.below(4) {
                0 => {
                    let event = Event::Mark(Mark::Vendor(n as u16));
                    assert!(batch.event(hart, &event).is_continue());
                    expected.push((hart, event));
                }
                1 => {
                    let event = Event::Run(run(start));
                    assert!(batch.event(hart, &event).is_continue());
                    expected.push((hart, event));
                }
                _ => {
                    let length = random.bits(10);
                    let runs: Vec<Run> = (0..length).map(|i| run(start + 4 * i)).collect();
                    assert!(batch.runs(hart, &runs).is_continue());
                    expected.extend(runs.iter().map(|run| (hart, Event::Run(*run))));
                }
            }
        }
        batch.flush();
        assert_eq!(calls.flat(), expected);
    }
}

#[test]
fn runs_come_together() {
    let mut calls = Calls::default();
    let mut batch = Batch::new(&mut calls);
    let all: Vec<Run> = (0..2 * BATCH as u64 + 10).map(|i| run(4 * i)).collect();
    for run in &all {
        let _ = batch.event(HartId(0), &Event::Run(*run));
    }
    let _ = batch.runs(HartId(1), &all);
    batch.flush();
    // What is left is passed on once.
    batch.flush();
    let lengths: Vec<(u32, usize)> = calls
        .calls
        .iter()
        .map(|call| match call {
            Call::Runs(hart, runs) => (hart.0, runs.len()),
            Call::Event(..) => panic!("{call:?}"),
        })
        .collect();
    assert_eq!(lengths, [(0, BATCH), (0, BATCH), (0, 10), (1, all.len())]);
}

/// The pause is asked for once, by the call that passed the batch on or the one
/// after it.
#[test]
fn a_pause_comes_with_the_batch() {
    let mut calls = Calls {
        pauses: vec![0, 2],
        ..Calls::default()
    };
    let mut batch = Batch::new(&mut calls);
    let mut paused = Vec::new();
    for n in 0..3 * BATCH as u64 {
        if batch.event(HartId(0), &Event::Run(run(4 * n))).is_break() {
            paused.push(n);
        }
    }
    // The first batch is passed on with the run after it; no pause at the second.
    assert_eq!(paused, [BATCH as u64]);
    // An event passes on what came before it, and itself.
    assert!(batch.event(HartId(0), &Event::Mark(Mark::On)).is_break());
    assert!(
        batch
            .event(HartId(0), &Event::Mark(Mark::Off))
            .is_continue()
    );
    assert_eq!(calls.calls.len(), 5);
}
