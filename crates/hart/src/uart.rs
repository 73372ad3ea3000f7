//! A UART with the registers of a 16550, one byte each. Output goes to the
//! host's console at once. Nothing is ever received, and there is no interrupt,
//! because there is no interrupt controller.

use crate::fdt;
use crate::memory::Region;

/// Where the UART is; of what the device tree says there are eight registers.
pub(crate) const UART: Region = Region {
    base: fdt::UART.0,
    size: 8,
};

/// Line control: the divisor latch is where data and interrupts are.
const DLAB: u8 = 1 << 7;
/// Line status: the transmitter is empty, and its holding register too.
const READY: u8 = 0x60;
/// Modem status: a device is connected and ready.
const CONNECTED: u8 = 0xb0;
/// Interrupt identification: none is pending; and with FIFOs.
const NO_INTERRUPT: u8 = 0x01;
const FIFOS: u8 = 0xc0;

/// Its registers, but for those that never change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uart {
    divisor: [u8; 2],
    interrupts: u8,
    fifos: bool,
    line: u8,
    modem: u8,
    scratch: u8,
    /// Sent, and not yet taken by the host.
    pub(crate) sent: Vec<u8>,
}

impl Uart {
    /// Reads the register at an offset. Wide reads see one register, too.
    pub(crate) fn load(&self, offset: u64) -> u64 {
        let latch = self.line & DLAB != 0;
        let [low, high] = self.divisor;
        let value = match offset {
            0 if latch => low,
            1 if latch => high,
            1 => self.interrupts,
            2 if self.fifos => NO_INTERRUPT | FIFOS,
            2 => NO_INTERRUPT,
            3 => self.line,
            4 => self.modem,
            5 => READY,
            6 => CONNECTED,
            7 => self.scratch,
            // There is nothing to be received.
            _ => 0,
        };
        value.into()
    }

    /// Writes the register at an offset, with the lowest byte of the value.
    pub(crate) fn store(&mut self, offset: u64, value: u64) {
        let value = value as u8;
        let latch = self.line & DLAB != 0;
        let [low, high] = &mut self.divisor;
        match offset {
            0 if latch => *low = value,
            1 if latch => *high = value,
            0 => self.sent.push(value),
            1 => self.interrupts = value & 0x0f,
            2 => self.fifos = value & 1 != 0,
            3 => self.line = value,
            4 => self.modem = value & 0x1f,
            7 => self.scratch = value,
            // The status registers are read-only.
            _ => {}
        }
    }
}
