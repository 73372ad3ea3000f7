//! Ports of harts in waveforms: RVFI, the trace ingress port of E-Trace and that of CVA6.
//!
//! A [`Plan`] says where the signals of a port are: found by their names, or given in
//! section `[wave]` of a configuration. A [`WaveReader`] then reads a file of any size and
//! gives what the port shows at every edge of its clock: entries ([`Entry`](hartrace_logs::Entry)) of
//! instructions, or blocks ([`Ingress`](hartrace_flow::Ingress)) of the ingress port.

mod edge;
mod fields;
mod find;
mod ingress;
mod names;
mod read;
mod rvfi;

#[cfg(test)]
mod tests;

pub use edge::Shown;
pub use find::{MapError, Plan, ingress_in};
pub use hartrace_files::wave_port::{WavePort, is_field};
pub use read::WaveReader;

use crate::input::{Input, InputError};
use hartrace_wave::{WaveFormat, read_header};

/// The header of a waveform is held in memory. Designs with a million signals have some
/// tens of megabytes.
const MAX_HEADER: usize = 1 << 30;

/// As much of a file as is looked at first.
const FIRST_PART: usize = 1 << 16;

/// As many of the first bytes of a waveform as its header takes.
///
/// # Errors
///
/// A failing read.
pub fn head(input: &mut Input) -> Result<&[u8], InputError> {
    let mut count = FIRST_PART;
    loop {
        let head = input.peek(count)?;
        let ended = head.len() < count;
        let more = match WaveFormat::detect(head) {
            Some(format) => matches!(read_header(format, head, &mut |_| {}), Ok(None)),
            None => false,
        };
        if ended || !more || count >= MAX_HEADER {
            break;
        }
        count *= 4;
    }
    input.peek(count)
}
