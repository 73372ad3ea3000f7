//! What is typed to a console of the guest.

use std::io::{self, Read};
use std::time::Duration;

/// A stream of input.
pub trait Input: Read {
    /// Whether a read would give something, or the end, without waiting; waits for
    /// that for at most so long.
    fn is_ready(&mut self, wait: Duration) -> bool;

    /// Whether bytes arrive in their own time, as from a keyboard. Otherwise all of
    /// them are there, and runs with the same input are the same.
    fn is_live(&self) -> bool;
}

/// Input that is there, as that of a file.
pub(super) struct Present(pub(super) Box<dyn Read>);

impl Read for Present {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Input for Present {
    fn is_ready(&mut self, _: Duration) -> bool {
        true
    }

    fn is_live(&self) -> bool {
        false
    }
}
