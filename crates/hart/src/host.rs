//! The host that serves the program's requests.
//!
//! A bare-metal program reaches the outside through the host-target interface
//! ([`htif`], two words in memory that the host polls), through semihosting
//! ([`semihosting`], a trap with an operation in `a0`) or through devices: a
//! console and disks. All of these end here, in a [`Host`] that owns the streams,
//! the arguments, the files and the disks that a program may access.
//!
//! Nothing here depends on the wall clock, on the timestamps of files or on
//! whether a stream is a terminal: the same program with the same input runs
//! the same way twice. Time is passed in by the caller, in ticks of the
//! timebase. The exception is [`Input`] that is live: what is typed arrives
//! when it is typed.

mod disk;
mod files;
pub mod htif;
mod input;
pub mod semihosting;
mod syscall;

pub use disk::{Disk, Storage, Writes};
pub use files::Files;
use files::Table;
pub use input::Input;
use input::Present;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;

use crate::devices::Outside;

/// Memory as the host sees it: physical addresses for [`htif`]; for
/// [`semihosting`] the caller passes something that translates, since there a
/// pointer means what it means to the program.
pub trait GuestMemory {
    /// Fills the buffer; `false` when any byte of it is not there, and then
    /// the content of the buffer means nothing.
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> bool;

    /// Stores the bytes; `false` when any of them has no place to go.
    fn write(&mut self, address: u64, data: &[u8]) -> bool;
}

/// A doubleword of memory, or `None` where there is no memory.
fn read_u64(memory: &mut dyn GuestMemory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory
        .read(address, &mut bytes)
        .then(|| u64::from_le_bytes(bytes))
}

/// Bytes moved between memory and a stream at a time. A length given by the
/// program decides how many pieces there are, never how much is allocated.
const PIECE: usize = 4096;

/// The longest path a program may name, with its NUL (Linux `PATH_MAX`).
const PATH_MAX: u64 = 4096;

/// Notes kept until they are taken. The program decides how many reasons
/// it gives for one.
const NOTES_MAX: usize = 64;

/// Where the program may put its heap and its stack, for `SYS_HEAPINFO`. Zero
/// is "unknown": the program uses what it was linked with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Lowest address of the heap.
    pub base: u64,
    /// First address past the heap.
    pub limit: u64,
    /// Highest address of the stack, which grows down from there.
    pub stack_base: u64,
    /// Lowest address of the stack.
    pub stack_limit: u64,
}

/// Something the user should hear about: the program asked for what it did
/// not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A proxied system call that is not provided; the program got `ENOSYS`.
    UnknownSyscall(u64),
    /// A semihosting operation that is not provided; the program got -1.
    UnknownOperation(u64),
    /// The host was given an address where there is no memory.
    BadAddress {
        /// What the memory was wanted for.
        purpose: &'static str,
        /// The address given.
        address: u64,
    },
    /// A file the policy keeps away from the program.
    FileRefused(String),
    /// The program asked for a command to be run on the host.
    SystemRefused,
    /// More requests than the host is ready to queue; the newest was dropped.
    QueueFull,
    /// The program asked for the machine to be reset, and has ended instead.
    Reset,
    /// A disk, by number, could not be read or written; the guest got an error.
    Disk(usize, String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::UnknownSyscall(number) => write!(
                f,
                "the program made system call {number}, which is not supported; it returned \
                 ENOSYS"
            ),
            Note::UnknownOperation(operation) => write!(
                f,
                "the program used semihosting operation {operation:#x}, which is not supported; \
                 it returned -1"
            ),
            Note::BadAddress { purpose, address } => {
                write!(f, "no memory at {address:#x}, given as {purpose}")
            }
            Note::FileRefused(path) => {
                write!(f, "the program is not allowed to use the file {path:?}")
            }
            Note::SystemRefused => f.write_str(
                "the program is not allowed to run commands on \
                the host",
            ),
            Note::QueueFull => f.write_str(
                "the program sends requests to tohost without reading fromhost; \
                    requests were dropped",
            ),
            Note::Disk(disk, why) => {
                write!(f, "disk {disk}: {why}; the guest got an I/O error")
            }
            Note::Reset => f.write_str("the program requested a reset, which ends the run"),
        }
    }
}

/// The outside as one program sees it.
///
/// ```
/// use hartrace_hart::host::Host;
/// use std::io;
///
/// let input: &[u8] = b"typed in advance";
/// let mut host = Host::new(Box::new(input), Box::new(io::sink()), Box::new(io::sink()))
///     .with_arguments(["program", "--fast"]);
/// assert!(host.take_notes().is_empty());
/// assert!(host.finish().is_ok());
/// ```
pub struct Host {
    stdin: Box<dyn Input>,
    /// Whether the input has ended; it is not asked again.
    ended: bool,
    /// Read for a console of the guest, and not yet taken.
    typed: VecDeque<u8>,
    disks: Vec<Disk>,
    stdout: BufWriter<Box<dyn Write>>,
    stderr: BufWriter<Box<dyn Write>>,
    arguments: Vec<Vec<u8>>,
    files: Table,
    terminal: bool,
    /// Ticks of the timebase in a second, at least 1.
    timebase: u64,
    /// Seconds since 1970 at tick 0.
    epoch: u64,
    heap: Heap,
    notes: Vec<Note>,
    /// The first failure of an output, kept for [`Host::finish`].
    failure: Option<io::Error>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("arguments", &self.arguments)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// A host with these streams, no arguments and no files, a timebase of
    /// 10 MHz and a clock that starts at the beginning of 1970.
    ///
    /// Output is buffered here, and written out by [`Host::finish`] and before
    /// input is read. Input that is not there yet may be reported as
    /// [`io::ErrorKind::WouldBlock`]; otherwise reading waits.
    #[must_use]
    pub fn new(stdin: Box<dyn Read>, stdout: Box<dyn Write>, stderr: Box<dyn Write>) -> Host {
        Host {
            stdin: Box::new(Present(stdin)),
            ended: false,
            typed: VecDeque::new(),
            disks: Vec::new(),
            stdout: BufWriter::new(stdout),
            stderr: BufWriter::new(stderr),
            arguments: Vec::new(),
            files: Table::new(),
            terminal: false,
            timebase: 10_000_000,
            epoch: 0,
            heap: Heap::default(),
            notes: Vec::new(),
            failure: None,
        }
    }

    /// Input, output and errors of this process.
    #[must_use]
    pub fn standard() -> Host {
        Host::new(
            Box::new(io::stdin()),
            Box::new(io::stdout()),
            Box::new(io::stderr()),
        )
    }

    /// No input, and output that goes nowhere.
    #[must_use]
    pub fn silent() -> Host {
        Host::new(
            Box::new(io::empty()),
            Box::new(io::sink()),
            Box::new(io::sink()),
        )
    }

    /// The command line of the program, its own name first.
    #[must_use]
    pub fn with_arguments<A: Into<Vec<u8>>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Host {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Which files the program may use.
    ///
    /// # Errors
    ///
    /// A folder that does not exist or cannot be reached.
    pub fn with_files(mut self, files: Files) -> io::Result<Host> {
        self.files.allow(files)?;
        Ok(self)
    }

    /// Whether the program sees its streams as a terminal; not,
    /// unless said here. C libraries choose their buffering by it, so the
    /// answer changes what the program executes.
    #[must_use]
    pub fn with_terminal(mut self, terminal: bool) -> Host {
        self.terminal = terminal;
        self
    }

    /// Ticks of the timebase in a second; 0 counts as 1.
    #[must_use]
    pub fn with_timebase(mut self, hertz: u64) -> Host {
        self.timebase = hertz.max(1);
        self
    }

    /// What the clock of the program says at tick 0, in seconds since 1970.
    #[must_use]
    pub fn with_epoch(mut self, seconds: u64) -> Host {
        self.epoch = seconds;
        self
    }

    /// Where the program may put heap and stack.
    #[must_use]
    pub fn with_heap(mut self, heap: Heap) -> Host {
        self.heap = heap;
        self
    }

    /// Input that need not be there yet, instead of that given first.
    #[must_use]
    pub fn with_input(mut self, input: Box<dyn Input>) -> Host {
        self.stdin = input;
        self
    }

    /// The disks, by number.
    #[must_use]
    pub fn with_disks(mut self, disks: Vec<Disk>) -> Host {
        self.disks = disks;
        self
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    ///
    /// The first failure of an output since the last call.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flush();
        self.failure.take().map_or(Ok(()), Err)
    }

    /// What the user should hear about, each once; at most 64 between two
    /// calls.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn note(&mut self, note: Note) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn bad_address(&mut self, purpose: &'static str, address: u64) {
        self.note(Note::BadAddress { purpose, address });
    }

    fn flush(&mut self) {
        for done in [self.stdout.flush(), self.stderr.flush()] {
            if let Err(error) = done {
                self.failure.get_or_insert(error);
            }
        }
    }

    /// Input of any length up to that of the buffer; 0 at its end.
    fn input(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        // A prompt has to be seen before the answer to it is waited for.
        self.flush();
        loop {
            match self.stdin.read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    self.ended = matches!(result, Ok(0));
                    return result;
                }
            }
        }
    }

    /// Whether a console of the guest may still get input.
    pub(crate) fn expects_input(&self) -> bool {
        !self.ended || !self.typed.is_empty()
    }

    /// Whether that input arrives in its own time.
    pub(crate) fn is_live(&self) -> bool {
        !self.ended && self.stdin.is_live()
    }

    /// Waits for input, at most so long. What was printed is shown first.
    pub(crate) fn wait_for_input(&mut self, wait: Duration) {
        self.flush();
        self.stdin.is_ready(wait);
    }

    /// A disk that a guest uses, and what could not be done with it.
    fn with_disk(
        &mut self,
        disk: usize,
        use_it: &mut dyn FnMut(&mut Disk) -> io::Result<()>,
    ) -> bool {
        let Some(found) = self.disks.get_mut(disk) else {
            return false;
        };
        match use_it(found) {
            Ok(()) => true,
            Err(error) => {
                self.note(Note::Disk(disk, error.to_string()));
                false
            }
        }
    }

    /// All of the bytes to one of the outputs.
    pub(crate) fn output(&mut self, error: bool, bytes: &[u8]) -> io::Result<()> {
        let sink = if error {
            &mut self.stderr
        } else {
            &mut self.stdout
        };
        sink.write_all(bytes).map_err(|problem| {
            let kind = problem.kind();
            self.failure.get_or_insert(problem);
            kind.into()
        })
    }
}

impl Outside for Host {
    fn output(&mut self, bytes: &[u8]) {
        // A failure is kept; the guest does not learn of it.
        let _: io::Result<()> = Host::output(self, false, bytes);
    }

    fn has_input(&mut self) -> bool {
        if self.typed.is_empty() && !self.ended && self.stdin.is_ready(Duration::ZERO) {
            let mut bytes = [0; 1024];
            match self.input(&mut bytes) {
                Ok(got) => self.typed.extend(bytes.iter().take(got)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Input that fails has ended.
                Err(_) => self.ended = true,
            }
        }
        !self.typed.is_empty()
    }

    fn input(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.typed.len());
        for (to, byte) in into.iter_mut().zip(self.typed.drain(..count)) {
            *to = byte;
        }
        count
    }

    fn read_disk(&mut self, disk: usize, offset: u64, into: &mut [u8]) -> bool {
        self.with_disk(disk, &mut |disk| disk.read(offset, into))
    }

    fn write_disk(&mut self, disk: usize, offset: u64, data: &[u8]) -> bool {
        self.with_disk(disk, &mut |disk| disk.write(offset, data))
    }

    fn flush_disk(&mut self, disk: usize) -> bool {
        self.with_disk(disk, &mut Disk::flush)
    }
}

#[cfg(test)]
mod tests;
