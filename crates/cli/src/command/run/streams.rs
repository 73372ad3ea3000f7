//! The standard streams of the program.

use crate::progress::RunProgress;
use crate::talk::interrupted;
use crate::terminal::{Keys, is_left};
use hartrace_hart::host::Input;
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
/// Ctrl-C ends a run that waits for it, and a guest that does not wait goes on.
pub(super) struct ProgramInput {
    chunks: Option<Receiver<io::Result<Vec<u8>>>>,
    chunk: io::Cursor<Vec<u8>>,
    /// Bytes arrive in their own time.
    live: bool,
    /// What the thread has sent instead of bytes: the end, or a failure.
    ended: bool,
}

/// How often waiting looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

impl ProgramInput {
    /// Read when the program asks for it.
    pub(super) fn new() -> ProgramInput {
        ProgramInput {
            chunks: None,
            chunk: io::Cursor::default(),
            live: is_live(),
            ended: false,
        }
    }

    /// Keys of a terminal: read at once, since some of them are for us.
    pub(super) fn keys() -> ProgramInput {
        ProgramInput {
            chunks: Some(read_ahead(1024, Some(Keys::default()))),
            ..ProgramInput::new()
        }
    }

    fn is_empty(&self) -> bool {
        self.chunk.position() >= self.chunk.get_ref().len() as u64
    }

    /// Takes what the thread has sent.
    fn take(&mut self, sent: io::Result<Vec<u8>>) -> io::Result<()> {
        self.chunk = io::Cursor::new(sent?);
        self.ended = self.is_empty();
        Ok(())
    }
}

impl Read for ProgramInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.chunk.read(buffer)?;
            if got > 0 || buffer.is_empty() || self.ended {
                return Ok(got);
            }
            let chunks = self.chunks.get_or_insert_with(|| read_ahead(1, None));
            match chunks.recv_timeout(LOOK) {
                Ok(sent) => self.take(sent)?,
                Err(RecvTimeoutError::Timeout) if !interrupted() && !is_left() => {}
                Err(_) => return Ok(0),
            }
        }
    }
}

impl Input for ProgramInput {
    fn is_ready(&mut self, wait: Duration) -> bool {
        if !self.live || self.ended || !self.is_empty() {
            return true;
        }
        let chunks = self.chunks.get_or_insert_with(|| read_ahead(1, None));
        let sent = match wait.is_zero() {
            true => chunks.try_recv().ok(),
            false => chunks.recv_timeout(wait).ok(),
        };
        match sent {
            // A failure is an end.
            Some(sent) => {
                self.ended |= self.take(sent).is_err();
                true
            }
            None => false,
        }
    }

    fn is_live(&self) -> bool {
        self.live && !self.ended
    }
}

/// Whether standard input arrives in its own time: from a terminal, a pipe or a
/// socket. A file is there, and so is the end of `/dev/null`.
fn is_live() -> bool {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return true;
    }
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        use std::os::unix::fs::FileTypeExt as _;
        let Ok(stdin) = stdin.as_fd().try_clone_to_owned() else {
            return false;
        };
        let kind = std::fs::File::from(stdin).metadata().map(|m| m.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
    }
    #[cfg(not(unix))]
    false
}

/// Reads standard input, so many chunks ahead, until it ends: the last chunk is
/// empty. Of keys, those for us are taken out.
fn read_ahead(chunks: usize, mut keys: Option<Keys>) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = sync_channel(chunks);
    std::thread::spawn(move || {
        loop {
            let mut chunk = vec![0; 4096];
            let read = io::stdin().read(&mut chunk);
            let over = !matches!(read, Ok(1..));
            let read = read.map(|length| {
                chunk.truncate(length);
                if let Some(keys) = &mut keys {
                    keys.filter(&mut chunk);
                }
                chunk
            });
            if !over && matches!(&read, Ok(chunk) if chunk.is_empty()) {
                continue;
            }
            if sender.send(read).is_err() || over {
                return;
            }
        }
    });
    receiver
}
