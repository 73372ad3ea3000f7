//! The standard streams of the program.

use crate::progress::RunProgress;
use crate::talk::interrupted;
use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal as _, Read, Write};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The state of the program's output. The program does not see it: its execution must
/// not depend on who listens.
#[derive(Clone, Default)]
pub(super) struct Fate(Rc<State>);

#[derive(Default)]
struct State {
    closed: Cell<bool>,
    failure: RefCell<Option<io::Error>>,
}

impl Fate {
    /// The reader closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.0.closed.get()
    }

    /// Why it could not be written.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        self.0.failure.take()
    }
}

/// One of the program's output streams.
pub(super) struct ProgramOutput {
    to: Box<dyn Write>,
    fate: Fate,
    /// What has to go from the terminal first.
    progress: Option<RunProgress>,
}

impl ProgramOutput {
    pub(super) fn stdout(fate: &Fate, progress: &RunProgress) -> ProgramOutput {
        ProgramOutput {
            to: Box::new(io::stdout()),
            fate: fate.clone(),
            progress: io::stdout().is_terminal().then(|| progress.clone()),
        }
    }

    pub(super) fn stderr(fate: &Fate, progress: &RunProgress) -> ProgramOutput {
        ProgramOutput {
            to: Box::new(io::stderr()),
            fate: fate.clone(),
            progress: Some(progress.clone()),
        }
    }

    fn keep(&self, done: io::Result<()>) {
        match done {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.fate.0.closed.set(true);
            }
            Err(error) => {
                self.fate.0.failure.borrow_mut().get_or_insert(error);
            }
        }
    }
}

impl Write for ProgramOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(progress) = self.progress.take_if(|_| !bytes.is_empty()) {
            progress.give_way();
        }
        if !self.fate.is_closed() {
            let done = self.to.write_all(bytes);
            self.keep(done);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.fate.is_closed() {
            let done = self.to.flush();
            self.keep(done);
        }
        Ok(())
    }
}

/// Standard input for the program. It is read by a thread of its own, so that
/// Ctrl-C ends a run that waits for it.
#[derive(Default)]
pub(super) struct ProgramInput {
    chunks: Option<Receiver<io::Result<Vec<u8>>>>,
    chunk: io::Cursor<Vec<u8>>,
}

/// How often waiting looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

impl Read for ProgramInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.chunk.read(buffer)?;
        if got > 0 || buffer.is_empty() {
            return Ok(got);
        }
        let chunks = self.chunks.get_or_insert_with(read_ahead);
        loop {
            match chunks.recv_timeout(LOOK) {
                Ok(chunk) => {
                    self.chunk = io::Cursor::new(chunk?);
                    return self.chunk.read(buffer);
                }
                Err(RecvTimeoutError::Timeout) if !interrupted() => {}
                Err(_) => return Ok(0),
            }
        }
    }
}

/// Reads standard input, not far ahead, until it ends.
fn read_ahead() -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        loop {
            let mut chunk = vec![0; 4096];
            let read = io::stdin().read(&mut chunk);
            let over = !matches!(read, Ok(1..));
            let read = read.map(|length| {
                chunk.truncate(length);
                chunk
            });
            if sender.send(read).is_err() || over {
                return;
            }
        }
    });
    receiver
}
