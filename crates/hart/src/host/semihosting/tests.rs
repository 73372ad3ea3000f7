use super::super::tests::{Folder, Ram, Typed, host};
use super::super::{Files, Heap, Host, Note};
use super::*;
use std::collections::VecDeque;
use std::io;

const BLOCK: u64 = 0x8000_0000;
const DATA: u64 = 0x8000_0100;
const SIZE: usize = 0x4000;
const END: u64 = BLOCK + SIZE as u64;

/// A program of one width with its host.
struct Program {
    xlen: Xlen,
    semihosting: Semihosting,
    host: Host,
    ram: Ram,
    time: u64,
}

impl Program {
    fn new(xlen: Xlen, host: Host) -> Program {
        Program {
            xlen,
            semihosting: Semihosting::new(),
            host,
            ram: Ram::new(BLOCK, SIZE),
            time: 0,
        }
    }

    fn raw(&mut self, operation: u64, param: u64) -> Outcome {
        let Program {
            xlen, host, ram, ..
        } = self;
        self.semihosting
            .call(host, *xlen, operation, param, self.time, ram)
    }

    /// An operation with a block of fields; the result as a signed number.
    fn call(&mut self, operation: u64, fields: &[u64]) -> i64 {
        let width = self.xlen.bits() as usize / 8;
        for (i, field) in fields.iter().enumerate() {
            let at = BLOCK + (i * width) as u64;
            self.ram.put(at, &field.to_le_bytes()[..width]);
        }
        self.with(operation, BLOCK)
    }

    fn with(&mut self, operation: u64, param: u64) -> i64 {
        match (self.raw(operation, param), self.xlen) {
            (Outcome::Return(value), Xlen::Rv64) => value as i64,
            (Outcome::Return(value), Xlen::Rv32) => {
                let value = u32::try_from(value).expect("zero-extended");
                i64::from(value as i32)
            }
            (Outcome::Exit(code), _) => panic!("ended with {code}"),
        }
    }

    fn field(&mut self, at: u64) -> u64 {
        let width = self.xlen.bits() as usize / 8;
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&self.ram.get(at, width));
        u64::from_le_bytes(bytes)
    }

    fn open(&mut self, name: &str, mode: u64) -> i64 {
        self.ram.put(DATA, name.as_bytes());
        self.ram.put(DATA + name.len() as u64, &[0]);
        self.call(1, &[DATA, mode, name.len() as u64])
    }

    fn errno(&mut self) -> i64 {
        self.with(0x13, 0)
    }
}

/// Runs a test at both widths.
fn both(test: impl Fn(Xlen)) {
    test(Xlen::Rv32);
    test(Xlen::Rv64);
}

#[test]
fn console() {
    both(|xlen| {
        let (host, out, err) = host(b"ab");
        let mut program = Program::new(xlen, host);
        program.ram.put(DATA, b"hello, world\0not this");
        assert_eq!(program.with(4, DATA), 0);
        assert_eq!(program.with(3, DATA + 4), 0);
        assert_eq!(program.with(7, 0), i64::from(b'a'));
        assert_eq!(out.text(), "hello, worldo");
        assert_eq!(program.with(7, 0), i64::from(b'b'));
        assert_eq!(program.with(7, 0), -1);
        assert_eq!(err.text(), "");
        assert_eq!(program.host.take_notes(), []);
    });
}

#[test]
fn streams_by_the_mode_of_tt() {
    both(|xlen| {
        let (host, out, err) = host(b"input");
        let mut program = Program::new(xlen, host);
        let stdin = program.open(":tt", 0);
        let stdout = program.open(":tt", 4);
        let stderr = program.open(":tt", 8);
        assert_eq!([stdin, stdout, stderr], [3, 4, 5]);
        program.ram.put(DATA, b"outerr..");
        assert_eq!(program.call(5, &[stdout as u64, DATA, 3]), 0);
        assert_eq!(program.call(5, &[stderr as u64, DATA + 3, 3]), 0);
        assert_eq!(program.call(6, &[stdin as u64, DATA, 8]), 3, "3 missing");
        assert_eq!(program.ram.get(DATA, 8), b"inputr..");
        assert_eq!(program.call(6, &[stdin as u64, DATA, 8]), 8, "the end");
        assert_eq!((out.text().as_str(), err.text().as_str()), ("out", "err"));
        // The wrong way round.
        assert_eq!(program.call(5, &[stdin as u64, DATA, 8]), 8);
        assert_eq!(program.errno(), 9);
        assert_eq!(program.call(6, &[stdout as u64, DATA, 8]), 8);
        assert_eq!(program.call(9, &[stdout as u64]), 0);
        assert_eq!(program.call(0xc, &[stdout as u64]), -1);
        assert_eq!(program.errno(), 29);
        assert_eq!(program.call(0xa, &[stdout as u64, 0]), -1);
        assert_eq!(program.call(2, &[stdout as u64]), 0);
        assert_eq!(program.call(2, &[stdout as u64]), -1);
        // Some libraries use these without opening them.
        assert_eq!(program.call(5, &[1, DATA, 2]), 0);
        assert!(program.host.finish().is_ok());
        assert_eq!(out.text(), "outin");
    });
}

#[test]
fn a_terminal_only_when_it_is_said_to_be() {
    both(|xlen| {
        let mut program = Program::new(xlen, Host::silent().with_terminal(true));
        let stdout = program.open(":tt", 4) as u64;
        assert_eq!(program.call(9, &[stdout]), 1);
        assert_eq!(program.call(9, &[77]), -1);
        assert_eq!(program.errno(), 9);
    });
}

#[test]
fn input_that_is_not_there_yet() {
    let typed = Typed(VecDeque::from([None, Some(b'k')]));
    let host = Host::new(Box::new(typed), Box::new(io::sink()), Box::new(io::sink()));
    let mut program = Program::new(Xlen::Rv64, host);
    assert_eq!(program.with(7, 0), -1);
    assert_eq!(program.errno(), 11);
    assert_eq!(program.with(7, 0), i64::from(b'k'));
}

#[test]
fn features() {
    both(|xlen| {
        let mut program = Program::new(xlen, Host::silent());
        let handle = program.open(":semihosting-features", 0) as u64;
        assert_eq!(program.call(0xc, &[handle]), 5);
        assert_eq!(program.call(6, &[handle, DATA, 4]), 0);
        assert_eq!(program.ram.get(DATA, 4), [0x53, 0x48, 0x46, 0x42]);
        assert_eq!(program.call(6, &[handle, DATA, 1]), 0);
        assert_eq!(program.ram.get(DATA, 1), [3]);
        assert_eq!(program.call(6, &[handle, DATA, 1]), 1, "the end");
        assert_eq!(program.call(0xa, &[handle, 4]), 0);
        assert_eq!(program.call(6, &[handle, DATA, 9]), 8);
        assert_eq!(program.call(5, &[handle, DATA, 1]), 1, "read-only");
        assert_eq!(program.call(9, &[handle]), 0);
        assert_eq!(program.call(2, &[handle]), 0);
        assert_eq!(program.open(":semihosting-features", 4), -1);
    });
}

#[test]
fn files() {
    both(|xlen| {
        let folder = Folder::new(&format!("semihosting-{}", xlen.bits()));
        let host = Host::silent()
            .with_files(Files::ReadWrite(folder.0.clone()))
            .expect("a folder");
        let mut program = Program::new(xlen, host);
        assert_eq!(program.open("f", 0), -1);
        assert_eq!(program.errno(), 2);
        assert_eq!(program.open("f", 12), -1);
        assert_eq!(program.open("../f", 4), -1);
        assert_eq!(program.errno(), 13);
        let f = program.open("f", 6) as u64;
        program.ram.put(DATA + 0x40, b"0123456789");
        assert_eq!(program.call(5, &[f, DATA + 0x40, 10]), 0);
        assert_eq!(program.call(0xc, &[f]), 10);
        assert_eq!(program.call(0xa, &[f, 7]), 0);
        assert_eq!(program.call(6, &[f, DATA + 0x40, 10]), 7);
        assert_eq!(program.ram.get(DATA + 0x40, 4), b"7893");
        assert_eq!(program.call(2, &[f]), 0);
        let f = program.open("f", 8) as u64;
        assert_eq!(program.call(5, &[f, DATA + 0x40, 1]), 0, "appended");
        assert_eq!(program.call(6, &[f, DATA + 0x40, 1]), 1, "not for reading");
        assert_eq!(program.call(2, &[f]), 0);
        program.ram.put(DATA, b"fg");
        assert_eq!(program.call(0xf, &[DATA, 1, DATA + 1, 1]), 0);
        let text = std::fs::read(folder.0.join("g")).expect("renamed");
        assert_eq!(text, b"01234567897");
        assert_eq!(program.call(0xf, &[DATA, 1, DATA + 1, 1]), -1);
        assert_eq!(program.call(0xe, &[DATA + 1, 1]), 0);
        assert_eq!(program.call(0xe, &[DATA + 1, 1]), -1);
        assert_eq!(program.errno(), 2);
    });
}

#[test]
fn every_mode_of_opening() {
    let folder = Folder::new("modes");
    let host = Host::silent()
        .with_files(Files::ReadWrite(folder.0.clone()))
        .expect("a folder");
    let mut program = Program::new(Xlen::Rv32, host);
    program.ram.put(DATA + 0x40, b"new");
    for mode in 0..12 {
        let path = folder.0.join("f");
        std::fs::write(&path, "old!").expect("written");
        let f = program.open("f", mode) as u64;
        let wrote = program.call(5, &[f, DATA + 0x40, 3]) == 0;
        let read = program.call(6, &[f, DATA + 0x80, 0x10]);
        assert_eq!(program.call(2, &[f]), 0);
        let now = std::fs::read_to_string(&path).expect("there");
        let expected = match mode {
            0 | 1 => (false, 12, "old!"),
            2 | 3 => (true, 15, "new!"),
            4..=7 => (true, 16, "new"),
            _ => (true, 16, "old!new"),
        };
        assert_eq!((wrote, read, now.as_str()), expected, "mode {mode}");
    }
}

#[test]
fn time_is_that_of_the_hart() {
    both(|xlen| {
        let mut program = Program::new(xlen, Host::silent());
        program.time = 12_345_678;
        assert_eq!(program.with(0x10, 0), 123, "hundredths of a second");
        assert_eq!(program.with(0x11, 0), 1);
        assert_eq!(program.with(0x31, 0), 10_000_000);
        assert_eq!(program.with(0x30, DATA), 0);
        assert_eq!(program.ram.word(DATA), 12_345_678);
        program.host = Host::silent().with_epoch(1_700_000_000).with_timebase(0);
        assert_eq!(program.with(0x31, 0), 1);
        assert_eq!(program.with(0x11, 0), 1_712_345_678);
        program.time = u64::MAX;
        program.host = Host::silent().with_timebase(1_000_000_000);
        assert_eq!(program.raw(0x30, DATA), Outcome::Return(0));
        assert_eq!(program.ram.word(DATA), u64::MAX);
        let hundredths = xlen.wrap(1_844_674_407_370);
        assert_eq!(program.raw(0x10, 0), Outcome::Return(hundredths));
        assert_eq!(program.with(0x30, END - 4), -1);
        assert_eq!(program.errno(), 14);
    });
}

#[test]
fn the_command_line() {
    both(|xlen| {
        let host = Host::silent().with_arguments(["prog", "-x", "1"]);
        let mut program = Program::new(xlen, host);
        assert_eq!(program.call(0x15, &[DATA, 9]), -1);
        assert_eq!(program.call(0x15, &[DATA, 10]), 0);
        assert_eq!(program.ram.get(DATA, 10), b"prog -x 1\0");
        assert_eq!(program.field(BLOCK), DATA);
        let width = u64::from(xlen.bits() / 8);
        assert_eq!(program.field(BLOCK + width), 9);
        assert_eq!(program.call(0x15, &[8, 1000]), -1);
        program.host = Host::silent();
        assert_eq!(program.call(0x15, &[DATA, 1]), 0);
        assert_eq!(program.field(BLOCK + width), 0);
    });
}

#[test]
fn heap_through_a_pointer() {
    both(|xlen| {
        let heap = Heap {
            base: 1,
            limit: 2,
            stack_base: 3,
            stack_limit: 4,
        };
        let mut program = Program::new(xlen, Host::silent().with_heap(heap));
        assert_eq!(program.call(0x16, &[DATA]), 0);
        let width = u64::from(xlen.bits() / 8);
        let fields: Vec<_> = (0..4).map(|i| program.field(DATA + i * width)).collect();
        assert_eq!(fields, [1, 2, 3, 4]);
        assert_eq!(program.call(0x16, &[0]), -1);
    });
}

#[test]
fn ends() {
    both(|xlen| {
        let mut program = Program::new(xlen, Host::silent());
        let width = u64::from(xlen.bits() / 8);
        for (reason, code, expected) in [
            (0x20026, 0, 0),
            (0x20026, 42, 42),
            (0x20026, u64::MAX, u64::MAX),
            (0x20023, 0, 1),
            (0, 0, 1),
        ] {
            for (at, value) in [(BLOCK, reason), (BLOCK + width, code)] {
                program.ram.put(at, &value.to_le_bytes()[..width as usize]);
            }
            assert_eq!(program.raw(0x20, BLOCK), Outcome::Exit(expected));
            let plain = match xlen {
                Xlen::Rv32 => (reason, u64::from(reason != 0x20026)),
                Xlen::Rv64 => (BLOCK, expected),
            };
            assert_eq!(program.raw(0x18, plain.0), Outcome::Exit(plain.1));
        }
        assert_eq!(program.raw(0x20, 0x10), Outcome::Exit(1));
        assert!(!program.host.take_notes().is_empty());
    });
}

#[test]
fn errors_temporary_names_and_refusals() {
    both(|xlen| {
        let mut program = Program::new(xlen, Host::silent());
        assert_eq!(program.errno(), 0);
        assert_eq!(program.call(8, &[0]), 0);
        assert_eq!(program.call(8, &[5]), 0);
        assert_ne!(program.call(8, &[u64::MAX]), 0);
        assert_eq!(program.call(0xd, &[DATA, 7, 17]), 0);
        assert_eq!(program.ram.get(DATA, 17), b"hartrace-007.tmp\0");
        assert_eq!(program.call(0xd, &[DATA, 7, 16]), -1);
        assert_eq!(program.call(0xd, &[DATA, 256, 100]), -1);
        program.ram.put(DATA, b"ls");
        assert_eq!(program.call(0x12, &[DATA, 2]), -1);
        assert_eq!(program.errno(), 38);
        for operation in [0, 0xb, 0x14, 0x17, 0x19, 0x32, 0x100, 0xffff_ffff] {
            assert_eq!(program.with(operation, DATA), -1);
        }
        let notes = program.host.take_notes();
        assert_eq!(notes[0], Note::SystemRefused);
        assert_eq!(notes[1], Note::UnknownOperation(0));
        assert_eq!(notes.len(), 9);
    });
}

#[test]
fn hostile_blocks() {
    both(|xlen| {
        let (host, out, _) = host(b"x");
        let mut program = Program::new(xlen, host);
        // No block, half a block, a block around the end of the addresses.
        for block in [0, END - 2, END - 4, u64::MAX - 3, u64::MAX] {
            for operation in 0..0x40 {
                match program.raw(operation, block) {
                    Outcome::Exit(code) => {
                        assert!(operation == 0x18 || operation == 0x20);
                        assert_eq!(code, 1);
                    }
                    Outcome::Return(value) => assert_eq!(value, xlen.wrap(value)),
                }
            }
        }
        // Lengths and addresses of all ones.
        let all = xlen.wrap(u64::MAX);
        for operation in 1..0x10 {
            program.call(operation, &[all; 4]);
            program.call(operation, &[1, all, all, all]);
            program.call(operation, &[DATA, all, all, all]);
            program.call(operation, &[DATA, 0, all, all]);
        }
        assert!(program.host.finish().is_ok());
        let before = out.text().len();
        // More than there is: what there is goes out.
        program.host = {
            let (err, out) = (Box::new(io::sink()), Box::new(out.clone()));
            Host::new(Box::new(io::empty()), out, err)
        };
        assert_eq!(program.call(5, &[1, END - 16, all]) as u64, {
            let missing = all - 16;
            match xlen {
                Xlen::Rv32 => i64::from(missing as u32 as i32) as u64,
                Xlen::Rv64 => missing,
            }
        });
        assert!(program.host.finish().is_ok());
        assert_eq!(out.text().len() - before, 16);
    });
}

#[test]
fn text_without_an_end() {
    let (host, out, _) = host(b"");
    let mut program = Program::new(Xlen::Rv64, host);
    program.ram.put(END - 100, &[b'a'; 100]);
    assert_eq!(program.with(4, END - 100), -1);
    assert_eq!(program.errno(), 14);
    assert!(program.host.finish().is_ok());
    assert_eq!(out.text(), "a".repeat(100), "as far as it goes");
    program.ram = Ram::new(BLOCK, 17 << 20);
    program.ram.bytes.fill(b'b');
    assert_eq!(program.with(4, BLOCK), -1);
    assert!(program.host.finish().is_ok());
    assert_eq!(out.text().len(), 100 + (16 << 20));
}
