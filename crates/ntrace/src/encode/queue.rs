//! The encoder's output queue.

use hartrace_flow::queue::Level;

use crate::Config;

/// The queue of these settings, empty.
pub(super) fn level(config: &Config) -> Option<Level> {
    let queue = config.queue?;
    Some(Level::new(queue, reserve(config)))
}

/// Bytes of the longest Error, ProgTraceSync and Ownership messages: what goes
/// first after a loss.
fn reserve(config: &Config) -> u32 {
    let bytes = |bits: u32| bits.div_ceil(6);
    let head = 6 + u32::from(config.src_bits);
    let stamp = config.timestamps.map_or(0, |t| bytes(u32::from(t.width)));
    let error = bytes(head + 4 + 4);
    let sync = bytes(head + 4 + 1) + bytes(config.xlen.bits());
    let owner = bytes(head + 5 + 32);
    let owners = match (config.context, config.hcontext) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    error + sync + owners * owner + (2 + owners) * stamp
}
