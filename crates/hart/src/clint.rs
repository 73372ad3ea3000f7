//! The core-local interruptor: software interrupts and the timer.

use crate::fdt;
use crate::memory::Region;

/// Where the CLINT is, as the device tree says.
pub(crate) const CLINT: Region = Region {
    base: fdt::CLINT.0,
    size: fdt::CLINT.1,
};

const MTIMECMP: u64 = 0x4000;
const MTIME: u64 = 0xbff8;

/// Registers of the CLINT. Time is in ticks.
#[derive(Clone, Debug)]
pub(crate) struct Clint {
    pub(crate) mtime: u64,
    msip: Vec<bool>,
    mtimecmp: Vec<u64>,
}

impl Clint {
    pub(crate) fn new(harts: usize) -> Clint {
        Clint {
            mtime: 0,
            msip: vec![false; harts],
            mtimecmp: vec![0; harts],
        }
    }

    pub(crate) fn software_interrupt(&self, hart: u32) -> bool {
        self.msip.get(hart as usize).copied().unwrap_or(false)
    }

    /// The time at which the timer interrupt becomes pending.
    pub(crate) fn deadline(&self, hart: u32) -> u64 {
        self.mtimecmp
            .get(hart as usize)
            .copied()
            .unwrap_or(u64::MAX)
    }

    /// Reads 1, 2, 4 or 8 aligned bytes at an offset into the device.
    pub(crate) fn load(&self, offset: u64, len: u64) -> u64 {
        if offset < MTIMECMP && len == 8 {
            return self.load(offset, 4) | self.load(offset + 4, 4) << 32;
        }
        let hart = |base: u64, size: u64| ((offset - base) / size) as usize;
        let register = match offset {
            0..MTIMECMP => self.msip.get(hart(0, 4)).copied().unwrap_or(false).into(),
            MTIMECMP..MTIME => self.mtimecmp.get(hart(MTIMECMP, 8)).copied().unwrap_or(0),
            MTIME..0xc000 => self.mtime,
            _ => 0,
        };
        let in_register = if offset < MTIMECMP {
            offset % 4
        } else {
            offset % 8
        };
        register >> (8 * in_register) & mask(len)
    }

    /// Writes 1, 2, 4 or 8 aligned bytes.
    pub(crate) fn store(&mut self, offset: u64, len: u64, value: u64) {
        match offset {
            0..MTIMECMP if len == 8 => {
                self.store(offset, 4, value & mask(4));
                self.store(offset + 4, 4, value >> 32);
            }
            0..MTIMECMP => {
                // Only bit 0 exists; bytes above the first change nothing.
                if offset.is_multiple_of(4)
                    && let Some(pending) = self.msip.get_mut((offset / 4) as usize)
                {
                    *pending = value & 1 != 0;
                }
            }
            MTIMECMP..MTIME => {
                let hart = ((offset - MTIMECMP) / 8) as usize;
                if let Some(register) = self.mtimecmp.get_mut(hart) {
                    *register = insert(*register, offset, len, value);
                }
            }
            MTIME..0xc000 => self.mtime = insert(self.mtime, offset, len, value),
            _ => {}
        }
    }
}

fn mask(len: u64) -> u64 {
    u64::MAX >> (64 - 8 * len.clamp(1, 8))
}

fn insert(register: u64, offset: u64, len: u64, value: u64) -> u64 {
    let shift = 8 * (offset % 8);
    let mask = mask(len) << shift;
    register & !mask | (value << shift) & mask
}
