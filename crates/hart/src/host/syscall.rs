//! System calls a program has the host make through [`htif`](super::htif).
//!
//! The numbers are those of Linux on RISC-V, with two of their own: 1039
//! (`lstat`) and 2011 (the command line). Number and arguments are eight
//! doublewords in memory, on RV32 too, and the result goes over the number;
//! an error is its negative number. Paths come with their length, the NUL
//! counted.

use super::files::{Answer, Errno, Kind, Mode};
use super::{GuestMemory, Host, Note, htif};
use std::io::SeekFrom;

/// Eight doublewords: the number and seven arguments.
const CALL_SIZE: usize = 64;

/// "Relative to the working folder", in place of a descriptor of a folder.
const AT_FDCWD: i32 = -100;

/// Bytes of `struct stat` as Linux has it on RISC-V.
const STAT_SIZE: usize = 128;

impl Host {
    /// Makes the call that is described at an address and stores its result
    /// there; gives the exit code when it was the call to end the program.
    pub(super) fn syscall(&mut self, memory: &mut dyn GuestMemory, address: u64) -> Option<u64> {
        let mut bytes = [0; CALL_SIZE];
        if !memory.read(address, &mut bytes) {
            self.bad_address("a system call", address);
            return None;
        }
        let mut words = [0; CALL_SIZE / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let [number, a, ..] = words;
        let exit = (number == 93).then(|| htif::exit_code(a << 1 | 1));
        let result = self.dispatch(memory, words).unwrap_or_else(Errno::returned);
        if let Some(first) = bytes.first_chunk_mut() {
            *first = result.to_le_bytes();
        }
        // All eight, as they were before the call, even where the call itself
        // has written in the meantime: that is what Spike leaves in memory.
        if !memory.write(address, &bytes) {
            self.bad_address("the result of a system call", address);
        }
        exit
    }

    fn dispatch(&mut self, memory: &mut dyn GuestMemory, words: [u64; 8]) -> Answer<u64> {
        let [number, a, b, c, d, e, f, _] = words;
        match number {
            // getcwd: the folder the program may use is all it sees.
            17 if b < 2 => Err(Errno::RANGE),
            17 => self.put(memory, a, b"/\0").map(|()| 2),
            35 => {
                let name = self.path_at(memory, a, b, c)?;
                self.remove(&name).map(|()| 0)
            }
            38 => {
                let from = self.path_at(memory, a, b, c)?;
                let to = self.path_at(memory, d, e, f)?;
                self.rename(&from, &to).map(|()| 0)
            }
            46 => self.set_length(a, b).map(|()| 0),
            48 => {
                let name = self.path_at(memory, a, b, c)?;
                self.access(&name, d)
            }
            56 => {
                let name = self.path_at(memory, a, b, c)?;
                self.open(&name, mode(d)?, 0)
            }
            57 => self.close(a).map(|()| 0),
            62 => self.seek(a, origin(b, c)?),
            63 => self.read_into(a, memory, b, c),
            64 => self.write_from(a, memory, b, c),
            67 | 68 => self.at_position(memory, words),
            79 => {
                let name = self.path_at(memory, a, b, c)?;
                let kind = self.kind_of_path(&name)?;
                self.put_stat(memory, d, kind)
            }
            80 => {
                let kind = self.kind(a)?;
                self.put_stat(memory, b, kind)
            }
            93 => Ok(0),
            1039 => {
                let name = self.read_path(memory, a, b)?;
                let kind = self.kind_of_path(&name)?;
                self.put_stat(memory, c, kind)
            }
            2011 => self.put_arguments(memory, a, b),
            _ => {
                self.note(Note::UnknownSyscall(number));
                Err(Errno::NOSYS)
            }
        }
    }

    fn put(&mut self, memory: &mut dyn GuestMemory, address: u64, bytes: &[u8]) -> Answer<()> {
        if memory.write(address, bytes) {
            return Ok(());
        }
        self.bad_address("a buffer of a system call", address);
        Err(Errno::FAULT)
    }

    /// A path that may be given relative to a folder; only the working folder
    /// can be one, since folders cannot be opened.
    fn path_at(
        &mut self,
        memory: &mut dyn GuestMemory,
        folder: u64,
        address: u64,
        length: u64,
    ) -> Answer<Vec<u8>> {
        if folder as i32 != AT_FDCWD {
            return Err(Errno::BADF);
        }
        self.read_path(memory, address, length)
    }

    /// `faccessat`: bit 1 asks for writing, bit 0 for executing, which no
    /// file allows.
    fn access(&mut self, name: &[u8], wanted: u64) -> Answer<u64> {
        let kind = self.kind_of_path(name)?;
        if wanted & 2 != 0 {
            self.may_change(name)?;
        }
        if wanted & 1 != 0 && kind != Kind::Folder {
            return Err(Errno::ACCES);
        }
        Ok(0)
    }

    /// `pread` and `pwrite`: there and back again.
    fn at_position(&mut self, memory: &mut dyn GuestMemory, words: [u64; 8]) -> Answer<u64> {
        let [number, file, address, length, position, ..] = words;
        if position > i64::MAX as u64 {
            return Err(Errno::INVAL);
        }
        let before = self.seek(file, SeekFrom::Current(0))?;
        self.seek(file, SeekFrom::Start(position))?;
        let result = if number == 67 {
            self.read_into(file, memory, address, length)
        } else {
            self.write_from(file, memory, address, length)
        };
        self.seek(file, SeekFrom::Start(before))?;
        result
    }

    /// `struct stat`, with what does not change from run to run: no times, no
    /// owners, no inode.
    fn put_stat(&mut self, memory: &mut dyn GuestMemory, address: u64, kind: Kind) -> Answer<u64> {
        // Type and permissions, size, and the preferred length of a transfer,
        // which C libraries take for that of their buffers.
        let (mode, size, block): (u32, u64, u32) = match kind {
            Kind::Stream if self.terminal => (0o020_620, 0, 1024),
            Kind::Stream => (0o010_600, 0, 4096),
            Kind::Folder => (0o040_755, 0, 4096),
            Kind::Regular { size } => (0o100_644, size, 4096),
        };
        let mut stat = [0; STAT_SIZE];
        let mut set = |at: usize, bytes: &[u8]| {
            if let Some(field) = stat.get_mut(at..at + bytes.len()) {
                field.copy_from_slice(bytes);
            }
        };
        set(16, &mode.to_le_bytes());
        set(20, &1u32.to_le_bytes());
        set(48, &size.to_le_bytes());
        set(56, &block.to_le_bytes());
        set(64, &size.div_ceil(512).to_le_bytes());
        self.put(memory, address, &stat).map(|()| 0)
    }

    /// The command line in one block: the count, the addresses of the
    /// arguments, two zeros (the end of the arguments and an empty
    /// environment), all doublewords, and then the texts with their NULs.
    fn put_arguments(
        &mut self,
        memory: &mut dyn GuestMemory,
        address: u64,
        limit: u64,
    ) -> Answer<u64> {
        let count = self.arguments.len();
        let mut block = (count as u64).to_le_bytes().to_vec();
        let mut at = address.wrapping_add((count as u64 + 3) * 8);
        for argument in &self.arguments {
            block.extend(at.to_le_bytes());
            at = at.wrapping_add(argument.len() as u64 + 1);
        }
        block.extend([0; 16]);
        for argument in &self.arguments {
            block.extend(argument);
            block.push(0);
        }
        if block.len() as u64 > limit {
            return Err(Errno::NOMEM);
        }
        self.put(memory, address, &block).map(|()| 0)
    }
}

/// Flags of `open` as Linux on RISC-V numbers them.
fn mode(flags: u64) -> Answer<Mode> {
    let access = flags & 3;
    if access == 3 {
        return Err(Errno::INVAL);
    }
    let write = access != 0;
    Ok(Mode {
        read: access != 1,
        write,
        append: write && flags & 0x400 != 0,
        create: flags & 0x40 != 0,
        exclusive: flags & 0x80 != 0,
        truncate: flags & 0x200 != 0,
    })
}

/// Where `lseek` counts from.
fn origin(offset: u64, whence: u64) -> Answer<SeekFrom> {
    match whence {
        0 if offset <= i64::MAX as u64 => Ok(SeekFrom::Start(offset)),
        1 => Ok(SeekFrom::Current(offset as i64)),
        2 => Ok(SeekFrom::End(offset as i64)),
        _ => Err(Errno::INVAL),
    }
}
