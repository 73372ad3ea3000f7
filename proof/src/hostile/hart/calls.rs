//! Calls to the host, through HTIF and semihosting, with arbitrary memory
//! contents.

use hartrace_hart::host::htif::Htif;
use hartrace_hart::host::semihosting::{Outcome, Semihosting};
use hartrace_hart::host::{GuestMemory, Heap, Host};
use hartrace_isa::Xlen;

use super::super::ensure;
use super::dice::Dice;

/// Memory from `base` on.
struct Flat {
    base: u64,
    bytes: Vec<u8>,
    /// Bytes moved.
    moved: u64,
}

impl Flat {
    fn place(&self, address: u64, i: usize) -> Option<usize> {
        let offset = address.wrapping_add(i as u64).wrapping_sub(self.base);
        (offset < self.bytes.len() as u64).then_some(offset as usize)
    }
}

impl GuestMemory for Flat {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.moved += buffer.len() as u64;
        for (i, to) in buffer.iter_mut().enumerate() {
            match self.place(address, i).and_then(|at| self.bytes.get(at)) {
                Some(byte) => *to = *byte,
                None => return false,
            }
        }
        true
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        self.moved += data.len() as u64;
        if data
            .iter()
            .enumerate()
            .any(|(i, _)| self.place(address, i).is_none())
        {
            return false;
        }
        for (i, from) in data.iter().enumerate() {
            if let Some(at) = self.place(address, i)
                && let Some(byte) = self.bytes.get_mut(at)
            {
                *byte = *from;
            }
        }
        true
    }
}

/// The numbers of calls that exist.
const SYSCALLS: [u64; 18] = [
    17, 35, 38, 46, 48, 56, 57, 62, 63, 64, 67, 68, 79, 80, 93, 1039, 2011, 9999,
];

/// Any calls of the host end, and soon; only a call to end ends the program.
pub(in super::super) fn calls(bytes: &[u8]) -> Result<(), String> {
    let mut dice = Dice::new(bytes);
    let base = dice.pick(&[0x8000_0000, 0, 0xffff_ffff_ffff_f000, 0xffff_f800]);
    let mut memory = Flat {
        base,
        bytes: (0..512)
            .flat_map(|_| dice.integer().to_le_bytes())
            .collect(),
        moved: 0,
    };
    let input: &[u8] = b"typed in advance";
    let sink = || Box::new(std::io::sink());
    let mut host = Host::new(Box::new(input), sink(), sink())
        .with_arguments(["one", "two"])
        .with_timebase(dice.draw())
        .with_epoch(dice.integer())
        .with_heap(Heap {
            base: dice.draw(),
            ..Heap::default()
        });
    let (mut htif, mut semihosting) = (Htif::new(), Semihosting::new());
    for _ in 0..dice.below(64) {
        let block = base
            .wrapping_add(8 * dice.below(256))
            .wrapping_add(dice.below(2));
        fill(&mut dice, &mut memory, block);
        memory.moved = 0;
        if dice.one_in(2) {
            let tohost = if dice.one_in(8) {
                dice.integer()
            } else {
                base.wrapping_add(0xf00)
            };
            let request = match dice.below(4) {
                0 => dice.draw(),
                1 => dice.draw() & !(0xfe << 56),
                _ => block & !1 & 0xffff_ffff_ffff,
            };
            let _ = memory.write(tohost, &request.to_le_bytes());
            let fromhost = if dice.one_in(8) {
                tohost
            } else {
                tohost.wrapping_add(8)
            };
            let _ = htif.poll(&mut host, &mut memory, tohost, fromhost);
        } else {
            let xlen = if dice.one_in(2) {
                Xlen::Rv32
            } else {
                Xlen::Rv64
            };
            let operation = if dice.one_in(8) {
                dice.draw()
            } else {
                dice.below(0x33)
            };
            let param = if dice.one_in(8) {
                dice.integer()
            } else {
                block
            };
            let time = dice.draw();
            let outcome = semihosting.call(&mut host, xlen, operation, param, time, &mut memory);
            let ends = matches!(outcome, Outcome::Exit(_));
            let exit = matches!(xlen.wrap(operation), 0x18 | 0x20);
            ensure(ends == exit, || format!("{operation:#x}: {outcome:?}"))?;
        }
        ensure(memory.moved < 1 << 20, || format!("{} bytes", memory.moved))?;
    }
    let _ = host.take_notes();
    host.finish().map_err(|e| e.to_string())
}

/// Fields that may mean something to a call.
fn fill(dice: &mut Dice<'_>, memory: &mut Flat, block: u64) {
    for i in 0..8 {
        let value = match (i, dice.below(4)) {
            (0, 0) => dice.integer(),
            (0, 1) => dice.below(8),
            (0, _) => SYSCALLS.get(dice.below(18) as usize).copied().unwrap_or(0),
            (_, 0) => dice.below(8),
            (_, 1) => dice.integer(),
            (_, 2) => memory.base.wrapping_add(8 * dice.below(256)),
            _ => (-100i64) as u64,
        };
        let _ = memory.write(block.wrapping_add(8 * i), &value.to_le_bytes());
    }
}

pub(in super::super) fn seeds() -> Vec<Vec<u8>> {
    (0..64u8).map(|n| vec![n, n / 4, n ^ 0x33, 7, 1]).collect()
}
