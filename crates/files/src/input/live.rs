//! Input that arrives while it is read, from a pipe or a socket: more may come
//! at any time.

use super::{Input, InputError, InputProblem};
use crate::input::socket::Removed;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// The most that is read at a time.
const CHUNK: usize = 1 << 18;

/// Chunks that are read ahead.
const AHEAD: usize = 4;

/// An input that is read by a thread of its own, so that waiting for it can
/// end.
pub struct Live {
    path: PathBuf,
    offset: u64,
    chunks: Receiver<io::Result<Vec<u8>>>,
    /// Chunks that can be filled again.
    spare: Sender<Vec<u8>>,
    chunk: Vec<u8>,
    _removed: Option<Removed>,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// These, at least one.
    Bytes(&'a [u8]),
    /// Nothing in this time.
    Nothing,
    /// Nothing any more.
    End,
}

impl Input {
    /// Reads it as it comes.
    #[must_use]
    pub fn live(self) -> Live {
        let (filled, chunks) = sync_channel(AHEAD);
        let (spare, empty) = channel();
        let (path, removed) = (self.path, self.removed);
        let (head, reader) = (self.head, self.reader);
        std::thread::spawn(move || {
            if head.is_empty() || filled.send(Ok(head)).is_ok() {
                read(reader, &filled, &empty);
            }
        });
        Live {
            path,
            offset: 0,
            chunks,
            spare,
            chunk: Vec::new(),
            _removed: removed,
        }
    }
}

/// Reads to the end, or until the receiver is gone.
fn read(
    mut reader: Box<dyn Read + Send>,
    filled: &SyncSender<io::Result<Vec<u8>>>,
    empty: &Receiver<Vec<u8>>,
) {
    loop {
        let mut chunk = empty.try_recv().unwrap_or_default();
        chunk.resize(CHUNK, 0);
        let read = match reader.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) => return,
            read => read,
        };
        let failed = read.is_err();
        let read = read.map(|count| {
            chunk.truncate(count);
            chunk
        });
        if filled.send(read).is_err() || failed {
            return;
        }
    }
}

impl Live {
    /// What comes next, if it comes soon enough.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn next(&mut self, patience: Duration) -> Result<Arrival<'_>, InputError> {
        match self.chunks.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) => Ok(Arrival::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Arrival::End),
            Ok(Ok(chunk)) => {
                self.offset += chunk.len() as u64;
                // It is no longer needed if the receiver is gone.
                let _ = self.spare.send(std::mem::replace(&mut self.chunk, chunk));
                Ok(Arrival::Bytes(&self.chunk))
            }
            Ok(Err(error)) => Err(InputError {
                path: self.path.clone(),
                problem: InputProblem::Read {
                    offset: self.offset,
                    error,
                },
            }),
        }
    }
}
