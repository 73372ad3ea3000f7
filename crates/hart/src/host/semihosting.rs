//! Semihosting: requests by a trap.
//!
//! The program executes `slli x0, x0, 0x1f`, `ebreak`, `srai x0, x0, 7` (RISC-V
//! Semihosting 1.0), none of them compressed, with the number of an operation
//! in `a0` and its parameter in `a1`; the result comes back in `a0`. The
//! operations are those of Semihosting for AArch32 and AArch64, release 2.0.
//! The parameter is mostly the address of a block of fields, each as wide as a
//! register.
//!
//! Two things differ from a debugger. Time is the time of the hart,
//! never that of the host: `SYS_TIME`, `SYS_CLOCK` and `SYS_ELAPSED` follow
//! from the ticks the caller passes in, so that a run can be repeated. And no
//! command is ever run on the host: `SYS_SYSTEM` is refused.

use super::files::{Answer, Errno, Handle, Kind, Mode};
use super::{GuestMemory, Host, Note};
use hartrace_isa::Xlen;
use std::io::{Cursor, SeekFrom};

/// Bytes of a string without an end that `SYS_WRITE0` puts out.
const STRING_MAX: u64 = 16 << 20;

/// Handles from here on: 0 is no handle, and 1 and 2 are streams that some C
/// libraries use without opening them.
const FIRST_HANDLE: usize = 3;

/// `ADP_Stopped_ApplicationExit`, the one reason that is not a failure.
const APPLICATION_EXIT: u64 = 0x20026;

/// `:semihosting-features`: the magic number, and a byte that says that
/// `SYS_EXIT_EXTENDED` exists (bit 0) and that `:tt` opened for appending is
/// standard error (bit 1).
const FEATURES: &[u8] = b"SHFB\x03";

/// What becomes of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on with this in `a0`, zero-extended from the register's width.
    Return(u64),
    /// It ends with this code; 0 is success. A code is a C `int`, here
    /// sign-extended.
    Exit(u64),
}

/// The state between operations: the last error.
#[derive(Clone, Debug, Default)]
pub struct Semihosting {
    /// A Linux error number, whatever the host is; 0 is none yet.
    errno: u32,
}

/// An operation under way.
struct Call<'a> {
    host: &'a mut Host,
    memory: &'a mut dyn GuestMemory,
    xlen: Xlen,
    param: u64,
    /// Ticks of the timebase since the start.
    time: u64,
}

/// A copy between a handle and an address, of a length; bytes copied.
type Copying = fn(&mut Host, u64, &mut dyn GuestMemory, u64, u64) -> Answer<u64>;

/// An operation that failed: why, and what the program gets for it.
struct Failure {
    errno: Errno,
    result: u64,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure {
            errno,
            result: u64::MAX,
        }
    }
}

impl Semihosting {
    /// No error yet.
    #[must_use]
    pub fn new() -> Semihosting {
        Semihosting::default()
    }

    /// Does an operation: `operation` and `param` are `a0` and `a1`, `time` is
    /// the time of the hart in ticks of the timebase. Addresses are what the
    /// program's own loads and stores would use; `memory` translates them.
    pub fn call(
        &mut self,
        host: &mut Host,
        xlen: Xlen,
        operation: u64,
        param: u64,
        time: u64,
        memory: &mut dyn GuestMemory,
    ) -> Outcome {
        let (operation, param) = (xlen.wrap(operation), xlen.wrap(param));
        let mut call = Call {
            host,
            memory,
            xlen,
            param,
            time,
        };
        match operation {
            0x13 => return Outcome::Return(u64::from(self.errno)),
            0x18 => return Outcome::Exit(call.exit(xlen == Xlen::Rv64)),
            0x20 => return Outcome::Exit(call.exit(true)),
            _ => {}
        }
        let result = call.run(operation).unwrap_or_else(|failure| {
            self.errno = failure.errno.0;
            failure.result
        });
        Outcome::Return(xlen.wrap(result))
    }
}

impl Call<'_> {
    fn run(&mut self, operation: u64) -> Result<u64, Failure> {
        match operation {
            0x01 => self.open(),
            0x02 => self.close(),
            0x03 => self.write_character(),
            0x04 => self.write_string(),
            0x05 => self.transfer(Host::write_from),
            0x06 => self.transfer(Host::read_into),
            0x07 => self.read_character(),
            0x08 => self.is_error(),
            0x09 => self.is_terminal(),
            0x0a => self.seek(),
            0x0c => self.length(),
            0x0d => self.temporary_name(),
            0x0e => self.remove(),
            0x0f => self.rename(),
            0x10 => Ok(self.scaled(100)),
            0x11 => Ok(self.host.epoch.wrapping_add(self.scaled(1))),
            0x12 => {
                self.host.note(Note::SystemRefused);
                Err(Errno::NOSYS.into())
            }
            0x15 => self.command_line(),
            0x16 => self.heap(),
            // A doubleword on RV32 too, low half first.
            0x30 => self.put(self.param, &self.time.to_le_bytes()),
            0x31 => Ok(self.host.timebase),
            _ => {
                self.host.note(Note::UnknownOperation(operation));
                Err(Errno::NOSYS.into())
            }
        }
    }

    /// The fields of the block the parameter points at.
    fn fields<const N: usize>(&mut self) -> Result<[u64; N], Failure> {
        let mut fields = [0; N];
        let width = self.width();
        for (i, field) in (0..).zip(&mut fields) {
            let at = self.xlen.wrap(self.param.wrapping_add(i * width));
            let mut bytes = [0; 8];
            let used = bytes.get_mut(..width as usize).unwrap_or_default();
            if !self.memory.read(at, used) {
                self.host.bad_address("the block of a semihosting call", at);
                return Err(Errno::FAULT.into());
            }
            *field = u64::from_le_bytes(bytes);
        }
        Ok(fields)
    }

    /// Bytes of a field.
    fn width(&self) -> u64 {
        u64::from(self.xlen.bits() / 8)
    }

    /// Stores bytes, and succeeds with 0.
    fn put(&mut self, address: u64, bytes: &[u8]) -> Result<u64, Failure> {
        if self.memory.write(address, bytes) {
            return Ok(0);
        }
        let purpose = "a buffer of a semihosting call";
        self.host.bad_address(purpose, address);
        Err(Errno::FAULT.into())
    }

    /// Stores fields one after the other.
    fn put_fields(&mut self, address: u64, fields: &[u64]) -> Result<u64, Failure> {
        let width = self.width() as usize;
        let bytes: Vec<u8> = fields
            .iter()
            .flat_map(|field| field.to_le_bytes().into_iter().take(width))
            .collect();
        self.put(address, &bytes)
    }

    /// `SYS_OPEN`: name, mode, length of the name. The mode counts through
    /// those of C: r, rb, r+, r+b, w, wb, w+, w+b, a, ab, a+, a+b.
    fn open(&mut self) -> Result<u64, Failure> {
        let [address, mode, length] = self.fields()?;
        if mode > 11 {
            return Err(Errno::INVAL.into());
        }
        let name = self.host.read_path(self.memory, address, length)?;
        let handle = match (name.as_slice(), mode / 4) {
            (b":tt", 0) => Handle::Stdin,
            (b":tt", 1) => Handle::Stdout,
            (b":tt", _) => Handle::Stderr,
            (b":semihosting-features", 0) if mode < 2 => Handle::Bytes(Cursor::new(FEATURES)),
            (b":semihosting-features", _) => return Err(Errno::ACCES.into()),
            (name, letter) => {
                let plus = mode & 2 != 0;
                let mode = Mode {
                    read: letter == 0 || plus,
                    write: letter == 1 || plus,
                    append: letter == 2,
                    create: letter != 0,
                    exclusive: false,
                    truncate: letter == 1,
                };
                return Ok(self.host.open(name, mode, FIRST_HANDLE)?);
            }
        };
        Ok(self.host.files.insert(handle, FIRST_HANDLE)?)
    }

    fn close(&mut self) -> Result<u64, Failure> {
        let [handle] = self.fields()?;
        self.host.close(handle)?;
        Ok(0)
    }

    /// `SYS_WRITEC`: the parameter points at the character.
    fn write_character(&mut self) -> Result<u64, Failure> {
        let mut byte = [0];
        if !self.memory.read(self.param, &mut byte) {
            self.host.bad_address("a character", self.param);
            return Err(Errno::FAULT.into());
        }
        self.host.output(false, &byte).map_err(Errno::from)?;
        Ok(0)
    }

    /// `SYS_WRITE0`: the parameter points at text that a NUL ends. Where it
    /// ends is not known before it is read, so it is read in small steps that
    /// no end of memory can lie inside of.
    fn write_string(&mut self) -> Result<u64, Failure> {
        const STEP: u64 = 64;
        let mut done = 0;
        while done < STRING_MAX {
            let at = self.xlen.wrap(self.param.wrapping_add(done));
            let mut bytes = [0; STEP as usize];
            let step = STEP - at % STEP;
            let bytes = bytes.get_mut(..step as usize).unwrap_or_default();
            if !self.memory.read(at, bytes) {
                self.host.bad_address("text to write", at);
                return Err(Errno::FAULT.into());
            }
            let end = bytes.iter().position(|&b| b == 0);
            let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            self.host.output(false, text).map_err(Errno::from)?;
            if end.is_some() {
                return Ok(0);
            }
            done += step;
        }
        Err(Errno::INVAL.into())
    }

    /// `SYS_WRITE` and `SYS_READ`: handle, address, length. The result is what
    /// is missing: all of it at the end of a file and after a failure.
    fn transfer(&mut self, copy: Copying) -> Result<u64, Failure> {
        let [handle, address, length] = self.fields()?;
        match copy(self.host, handle, self.memory, address, length) {
            Ok(done) => Ok(length.saturating_sub(done)),
            Err(errno) => Err(Failure {
                errno,
                result: length,
            }),
        }
    }

    /// `SYS_READC`: -1 at the end of the input, for which there is no rule.
    fn read_character(&mut self) -> Result<u64, Failure> {
        let mut byte = [0];
        let count = self.host.input(&mut byte).map_err(Errno::from)?;
        let [byte] = byte;
        Ok(if count == 1 {
            u64::from(byte)
        } else {
            u64::MAX
        })
    }

    /// `SYS_ISERROR`: a result is an error when it is negative.
    fn is_error(&mut self) -> Result<u64, Failure> {
        let [status] = self.fields()?;
        Ok(status >> (self.xlen.bits() - 1) & 1)
    }

    fn is_terminal(&mut self) -> Result<u64, Failure> {
        let [handle] = self.fields()?;
        let stream = self.host.kind(handle)? == Kind::Stream;
        Ok(u64::from(stream && self.host.terminal))
    }

    /// `SYS_SEEK`: handle, position from the start.
    fn seek(&mut self) -> Result<u64, Failure> {
        let [handle, position] = self.fields()?;
        self.host.seek(handle, SeekFrom::Start(position))?;
        Ok(0)
    }

    fn length(&mut self) -> Result<u64, Failure> {
        let [handle] = self.fields()?;
        match self.host.kind(handle)? {
            Kind::Regular { size } => Ok(size),
            Kind::Stream | Kind::Folder => Err(Errno::SPIPE.into()),
        }
    }

    /// `SYS_TMPNAM`: buffer, a number up to 255, length of the buffer. The
    /// same number gives the same name.
    fn temporary_name(&mut self) -> Result<u64, Failure> {
        let [buffer, number, length] = self.fields()?;
        let name = format!("hartrace-{number:03}.tmp\0");
        if number > 255 || length < name.len() as u64 {
            return Err(Errno::INVAL.into());
        }
        self.put(buffer, name.as_bytes())
    }

    fn remove(&mut self) -> Result<u64, Failure> {
        let [address, length] = self.fields()?;
        let name = self.host.read_path(self.memory, address, length)?;
        self.host.remove(&name)?;
        Ok(0)
    }

    fn rename(&mut self) -> Result<u64, Failure> {
        let [address, length, new_address, new_length] = self.fields()?;
        let name = self.host.read_path(self.memory, address, length)?;
        let new = self.host.read_path(self.memory, new_address, new_length)?;
        self.host.rename(&name, &new)?;
        Ok(0)
    }

    /// The time in parts of a second.
    fn scaled(&self, parts: u64) -> u64 {
        let scaled = u128::from(self.time) * u128::from(parts) / u128::from(self.host.timebase);
        scaled as u64
    }

    /// `SYS_GET_CMDLINE`: buffer, its length; the length becomes that of the
    /// text, whose NUL is not counted. Arguments are joined by spaces.
    fn command_line(&mut self) -> Result<u64, Failure> {
        let [buffer, length] = self.fields()?;
        let mut line = self.host.arguments.join(&b' ');
        line.push(0);
        if length < line.len() as u64 {
            return Err(Errno::NOMEM.into());
        }
        self.put(buffer, &line)?;
        self.put_fields(self.param, &[buffer, line.len() as u64 - 1])
    }

    /// `SYS_HEAPINFO`: the block holds the address of another, of four fields.
    fn heap(&mut self) -> Result<u64, Failure> {
        let [address] = self.fields()?;
        let heap = self.host.heap;
        let fields = [heap.base, heap.limit, heap.stack_base, heap.stack_limit];
        self.put_fields(address, &fields)
    }

    /// `SYS_EXIT` and `SYS_EXIT_EXTENDED`: a reason, and a code in a block of
    /// both. `SYS_EXIT` on RV32 has no block; the parameter is the reason.
    fn exit(&mut self, block: bool) -> u64 {
        let (reason, code) = if !block {
            (self.param, 0)
        } else {
            match self.fields() {
                Ok([reason, code]) => (reason, i64::from(code as i32) as u64),
                Err(_) => return 1,
            }
        };
        if reason == APPLICATION_EXIT { code } else { 1 }
    }
}

#[cfg(test)]
mod tests;
