//! Data trace on several threads: the events of one, in their order.

use std::ops::ControlFlow;
use std::sync::Mutex;

use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::{Decoder, Settings};
use hartrace_etrace::Config;
use hartrace_flow::{Consumer, Event, Gather, HartId};

use crate::generate::Random;
use crate::trace::Recorded;

/// Events that a part keeps at most.
const ROOM: usize = 3000;

/// Keeps events until it is its turn.
#[derive(Default)]
struct Part(Vec<(HartId, Event)>);

impl Consumer for Part {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.push((hart, *event));
        ControlFlow::Continue(())
    }
}

impl Gather for Part {
    fn is_full(&self) -> bool {
        self.0.len() >= ROOM
    }
}

/// All events of a trace, decoded in this way.
fn events(
    settings: &Settings,
    program: &Recorded,
    bytes: &[u8],
    sharding: Sharding,
) -> Result<Vec<(HartId, Event)>, String> {
    let first = Decoder::new(settings, &program.image).map_err(|e| e.to_string())?;
    let all = Mutex::new(Vec::new());
    let give = |part: &mut Part, _| {
        let mut all = all.lock().map_err(|_| std::io::ErrorKind::Other)?;
        all.append(&mut part.0);
        Ok(())
    };
    let decoder = || {
        use hartrace_flow::Decode as _;
        first.another()
    };
    let done = sharding.decode(bytes, decoder, Part::default, give);
    done.map_err(|e| e.to_string())?;
    all.into_inner().map_err(|e| e.to_string())
}

/// Compares what several threads make of a trace, whole and damaged, with what one makes
/// of it.
///
/// # Errors
///
/// The first difference.
pub fn compare(
    config: &Config,
    program: &Recorded,
    bytes: &[u8],
    random: &mut Random,
) -> Result<(), String> {
    let settings = Settings::Etrace(config.clone());
    let mut bytes = bytes.to_vec();
    for damage in [0, 1, 5] {
        for _ in 0..damage {
            let at = random.below(bytes.len() as u64) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        let one = Sharding::new(1);
        let truth = events(&settings, program, &bytes, one)?;
        let several = Sharding {
            threads: 2 + random.below(3) as usize,
            piece: 200 + random.below(60_000) as usize,
        };
        let found = events(&settings, program, &bytes, several)?;
        if found != truth {
            let same = found.iter().zip(&truth).take_while(|(a, b)| a == b);
            let at = same.count();
            return Err(format!(
                "{several:?}, {damage} bits: event {at} is {:x?}, not {:x?}",
                found.get(at),
                truth.get(at)
            ));
        }
    }
    Ok(())
}
