//! A model of the circular buffer of a RAM sink.

use hartrace_files::transport::{RamError, RamSink};
use hartrace_flow::encode::Sink;

/// A model of the buffer.
#[derive(Clone, Debug)]
pub struct RamBuffer {
    sink: RamSink,
    memory: Vec<u8>,
    /// Bytes that do not make a word yet.
    queue: Vec<u8>,
    /// What fills the last word.
    idle: u8,
    enabled: bool,
}

impl RamBuffer {
    /// An empty, enabled buffer with these registers; the write pointer may be
    /// anywhere in it. Memory that was never written is zero. `idle` is a byte that
    /// means nothing in the stream.
    ///
    /// # Errors
    ///
    /// Registers that make no sense, and buffers of 4 GiB and more.
    pub fn new(sink: RamSink, idle: u8) -> Result<RamBuffer, RamError> {
        let size = u32::try_from(sink.size()?).map_err(|_| RamError::Limit)?;
        Ok(RamBuffer {
            sink,
            memory: vec![0; size as usize],
            queue: Vec::new(),
            idle,
            enabled: true,
        })
    }

    /// The registers now.
    #[must_use]
    pub const fn registers(&self) -> RamSink {
        self.sink
    }

    /// The memory now.
    #[must_use]
    pub fn dump(&self) -> &[u8] {
        &self.memory
    }

    /// Whether the sink still takes bytes: trRamEnable.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Takes bytes; gives how many, less than all when the sink stopped on wrap.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        for (i, &byte) in bytes.iter().enumerate() {
            if !self.enabled {
                return i;
            }
            self.queue.push(byte);
            if self.queue.len() == self.sink.word as usize {
                self.store();
            }
        }
        bytes.len()
    }

    /// Disables the sink: what is queued goes to memory, with idle bytes after
    /// it up to a word.
    pub fn flush(&mut self) {
        if !self.queue.is_empty() {
            self.queue.resize(self.sink.word as usize, self.idle);
            self.store();
        }
        self.enabled = false;
    }

    /// The queued word goes to memory.
    fn store(&mut self) {
        let sink = &mut self.sink;
        let at = (sink.write_pointer - sink.start) as usize;
        if let Some(place) = self.memory.get_mut(at..at + self.queue.len()) {
            place.copy_from_slice(&self.queue);
        }
        self.queue.clear();
        if sink.write_pointer == sink.limit {
            sink.write_pointer = sink.start;
            sink.wrapped = true;
            self.enabled = !sink.stop_on_wrap;
        } else {
            sink.write_pointer += u64::from(sink.word);
        }
    }
}

/// Messages that come when the sink has stopped are lost.
impl Sink for RamBuffer {
    fn message(&mut self, bytes: &[u8]) {
        self.write(bytes);
    }
}

#[cfg(test)]
mod tests;
