//! Data trace on several threads: the events of one, in their order.

use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::{Decoder, Settings};
use hartrace_etrace::Config;
use hartrace_flow::Decode as _;

use crate::generate::Random;
use crate::trace::{Events, Recorded, counted, same};

/// All events of a trace, decoded in this way.
fn events(
    settings: &Settings,
    program: &Recorded,
    bytes: &[u8],
    sharding: Sharding,
) -> Result<Events, String> {
    let first = Decoder::new(settings, &program.image).map_err(|e| e.to_string())?;
    let mut all = Events::default();
    let give = |part: &mut Events, _| {
        all.0.append(&mut part.0);
        Ok(())
    };
    let done = sharding.decode(bytes, || first.another(), Events::default, give);
    done.map_err(|e| e.to_string())?;
    Ok(all)
}

/// Compares what several threads make of a trace, whole and damaged, with what one makes
/// of it, and what is counted meanwhile with what is counted apart.
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
        let truth = events(&settings, program, &bytes, Sharding::new(1))?;
        let several = Sharding {
            threads: 2 + random.below(3) as usize,
            piece: 200 + random.below(60_000) as usize,
        };
        let found = events(&settings, program, &bytes, several)?;
        same(&found.0, &truth.0).map_err(|e| format!("{several:?}, {damage} bits: {e}"))?;
        counted(&settings, &program.image, &bytes).map_err(|e| format!("{damage} bits: {e}"))?;
    }
    Ok(())
}
