//! A host that a program calls through a word of memory (HTIF), and that
//! answers by writing to the program's memory, which the trace does not record.

use super::volatile::Range;

/// The call block of a proxied system call: eight doublewords.
const BLOCK: u64 = 64;

/// What the host may have written since the last call.
#[derive(Clone, Debug, Default)]
pub(super) struct Mailbox {
    tohost: Option<u64>,
    fromhost: Option<u64>,
    /// The call block, and the buffer of a call that reads.
    answers: [Option<Range>; 2],
}

impl Mailbox {
    pub(super) fn new(tohost: Option<u64>, fromhost: Option<u64>) -> Mailbox {
        Mailbox {
            tohost,
            fromhost,
            answers: [None; 2],
        }
    }

    /// Whether a store to an address can change what the host writes.
    #[inline]
    pub(super) fn minds(&self, addr: u64) -> bool {
        self.tohost.is_some_and(|at| addr.wrapping_sub(at) < 8)
            || self.answers.iter().flatten().any(|r| r.touches(addr, 8))
    }

    /// Whether the host may have written any of `len` bytes.
    pub(super) fn writes(&self, addr: u64, len: u64) -> bool {
        let word = |base| Range { base, size: 8 };
        let words = [self.tohost, self.fromhost].into_iter().flatten().map(word);
        let answers = self.answers.iter().copied().flatten();
        words.chain(answers).any(|range| range.touches(addr, len))
    }

    /// The program has stored something. `read` reads a doubleword of memory.
    pub(super) fn stored(&mut self, addr: u64, len: u64, read: impl Fn(u64) -> Option<u64>) {
        let Some(tohost) = self.tohost.filter(|at| addr.wrapping_sub(*at) < 8) else {
            // Its own memory again.
            for answer in &mut self.answers {
                *answer = answer.filter(|range| !range.touches(addr, len));
            }
            return;
        };
        self.answers = [None; 2];
        // Device 0, command 0, and not the end of the program.
        let value = read(tohost).unwrap_or(0);
        if value == 0 || value >> 48 != 0 || value & 1 != 0 {
            return;
        }
        self.answers = [
            Some(Range {
                base: value,
                size: BLOCK,
            }),
            buffer(value, read),
        ];
    }
}

/// Where the answer to a system call goes besides the call block.
fn buffer(block: u64, read: impl Fn(u64) -> Option<u64>) -> Option<Range> {
    let word = |i: u64| read(block.wrapping_add(8 * i));
    let range = |base: Option<u64>, size| Some(Range { base: base?, size });
    match word(0)? {
        // getcwd
        17 => range(word(1), word(2)?),
        // read, pread
        63 | 67 => range(word(2), word(3)?),
        // fstatat
        79 => range(word(4), 128),
        // fstat, lstat
        80 | 1039 => range(word(2), 128),
        // The program's arguments.
        2011 => range(word(1), word(2)?),
        _ => None,
    }
}
