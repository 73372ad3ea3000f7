//! Files of moderate size, kept until it is known that they are wanted.

use std::io;

/// Keeps what is written up to a limit, and counts the rest.
#[derive(Debug)]
pub struct Held {
    bytes: Vec<u8>,
    limit: usize,
    count: u64,
}

impl Held {
    /// Keeps `limit` bytes; if there are more, none.
    #[must_use]
    pub const fn new(limit: usize) -> Held {
        Held {
            bytes: Vec::new(),
            limit,
            count: 0,
        }
    }

    /// How many bytes were written.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// All that was written; nothing if that was more than the limit.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl io::Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count += bytes.len() as u64;
        match self.count <= self.limit as u64 {
            true => self.bytes.extend_from_slice(bytes),
            false => self.bytes = Vec::new(),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
