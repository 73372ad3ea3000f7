//! The host-target interface: the doublewords `tohost` and `fromhost`.
//!
//! The program stores a request in `tohost`; the host looks there between two
//! stretches of execution, sets it back to zero, does what is asked and, for
//! requests that have an answer, stores that in `fromhost` as soon as it reads
//! zero. A request is a device (bits 63:56), a command (bits 55:48) and a
//! payload (bits 47:0); an answer has the device and command of its request.
//!
//! | device | command | |
//! |---|---|---|
//! | 0 | 0 | payload odd: the program ends, `payload >> 1` is its exit code; even: address of a system call |
//! | 1 | 0 | a character is wanted, answered with `0x100` and the character |
//! | 1 | 1 | a character is put out, no answer |
//! | any | 255 | writes the name of a command or device to memory, answered with 1 |
//!
//! Everything else is ignored. There is no specification; the behaviour is
//! that of Spike, which programs are written against.
//!
//! Both words are 64 bits wide on RV32 as well. There the program cannot store
//! one at once and must write the half that leaves the word meaningless first.

use super::{GuestMemory, Host, Note, read_u64};
use std::collections::VecDeque;
use std::io;

/// Requests done at one look. Only a program that has the host store requests
/// for it can make more than one at a time; it must not keep the host forever.
const REQUESTS_MAX: usize = 64;

/// Answers, or wishes for a character, that are kept waiting.
const QUEUE_MAX: usize = 1 << 16;

/// Bytes that the name of a device or command takes in memory.
const NAME_SIZE: usize = 64;

/// The command every device has.
const IDENTIFY: u64 = 255;

/// The interface of one program: what has been asked and not answered.
#[derive(Debug, Default)]
pub struct Htif {
    /// Requests for a character, oldest first.
    wanted: VecDeque<Request>,
    /// What goes into `fromhost`, oldest first.
    answers: VecDeque<u64>,
    exit: Option<u64>,
}

/// What `tohost` was found to hold.
#[derive(Clone, Copy, Debug)]
struct Request(u64);

impl Request {
    fn device(self) -> u64 {
        self.0 >> 56
    }

    fn command(self) -> u64 {
        self.0 >> 48 & 0xff
    }

    fn payload(self) -> u64 {
        self.0 & 0xffff_ffff_ffff
    }

    /// The answer to it, with up to 48 bits of payload.
    fn answer(self, payload: u64) -> u64 {
        self.0 & !0xffff_ffff_ffff | payload & 0xffff_ffff_ffff
    }
}

/// A code as Spike ends with it: its 32-bit integer holds the code shifted
/// left by one with a one below it, and loses the top bit of the code. Sign-
/// extended, so that the low bits are right at any width.
pub(super) fn exit_code(shifted: u64) -> u64 {
    i64::from(shifted as i32 >> 1) as u64
}

impl Htif {
    /// Nothing asked yet.
    #[must_use]
    pub fn new() -> Htif {
        Htif::default()
    }

    /// The look at the two words, at their physical addresses: to be called
    /// before the program starts and after each stretch of execution. Gives
    /// the exit code once the program has ended, and from then on.
    ///
    /// The answers of earlier looks go out first, one if `fromhost` is free;
    /// then the request is done and its answer may go out at once. An address
    /// of zero for `tohost` is a program without the interface.
    pub fn poll(
        &mut self,
        host: &mut Host,
        memory: &mut dyn GuestMemory,
        tohost: u64,
        fromhost: u64,
    ) -> Option<u64> {
        if tohost == 0 || self.exit.is_some() {
            return self.exit;
        }
        self.settle(host, memory, fromhost);
        for _ in 0..REQUESTS_MAX {
            let Some(value) = read_u64(memory, tohost) else {
                host.bad_address("tohost", tohost);
                break;
            };
            if value == 0 {
                break;
            }
            if !memory.write(tohost, &[0; 8]) {
                host.bad_address("tohost", tohost);
                break;
            }
            self.handle(Request(value), host, memory);
            self.settle(host, memory, fromhost);
            if self.exit.is_some() {
                break;
            }
        }
        self.exit
    }

    /// What ends every round: a character that has come in answers the oldest
    /// request for one, and the oldest answer goes into a free `fromhost`.
    fn settle(&mut self, host: &mut Host, memory: &mut dyn GuestMemory, fromhost: u64) {
        if let Some(&request) = self.wanted.front() {
            let mut byte = [0];
            // At the end of the input the request stays unanswered.
            if let Ok(1) = host.input(&mut byte) {
                self.wanted.pop_front();
                let [byte] = byte;
                self.answer(host, request.answer(0x100 | u64::from(byte)));
            }
        }
        if let Some(answer) = self.answers.front() {
            match read_u64(memory, fromhost) {
                Some(0) if memory.write(fromhost, &answer.to_le_bytes()) => {
                    self.answers.pop_front();
                }
                Some(value) if value != 0 => {}
                _ => host.bad_address("fromhost", fromhost),
            }
        }
    }

    fn answer(&mut self, host: &mut Host, answer: u64) {
        if self.answers.len() < QUEUE_MAX {
            self.answers.push_back(answer);
        } else {
            host.note(Note::QueueFull);
        }
    }

    fn handle(&mut self, request: Request, host: &mut Host, memory: &mut dyn GuestMemory) {
        let payload = request.payload();
        match (request.device(), request.command()) {
            (0, 0) if payload & 1 != 0 => self.exit = Some(exit_code(payload)),
            (0, 0) => {
                if let Some(code) = host.syscall(memory, payload) {
                    self.exit = Some(code);
                }
                self.answer(host, request.answer(1));
            }
            (1, 0) if self.wanted.len() < QUEUE_MAX => self.wanted.push_back(request),
            (1, 0) => host.note(Note::QueueFull),
            (1, 1) => {
                // A failure is kept by the host; the program cannot be informed.
                let _: io::Result<()> = host.output(false, &[payload as u8]);
            }
            (device, IDENTIFY) => {
                let (what, address) = (payload & 0xff, payload >> 8);
                let mut name = [0; NAME_SIZE];
                for (to, from) in name.iter_mut().zip(name_of(device, what).bytes()) {
                    *to = from;
                }
                if !memory.write(address, &name) {
                    host.bad_address("a buffer for a device's name", address);
                }
                self.answer(host, request.answer(1));
            }
            _ => {}
        }
    }
}

/// Names, of the device itself under the number of the command that asks.
fn name_of(device: u64, what: u64) -> &'static str {
    match (device, what) {
        (0, 0) => "syscall",
        (0, IDENTIFY) => "syscall_proxy",
        (1, 0) => "read",
        (1, 1) => "write",
        (1, IDENTIFY) => "bcd",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
