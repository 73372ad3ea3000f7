//! A UART with the registers of a 16550, one byte each. What is sent leaves at
//! once. What was typed waits on the line until the guest wants it and there is
//! room, so nothing overruns.

use std::collections::VecDeque;

use crate::fdt;
use crate::memory::Region;

/// Where the UART is; of what the device tree says there are eight registers.
pub(crate) const UART: Region = Region {
    base: fdt::UART.0,
    size: 8,
};

/// Line control: the divisor latch is where data and interrupts are.
const DLAB: u8 = 1 << 7;
/// Line status: a byte was received.
const DATA_READY: u8 = 0x01;
/// Line status: the transmitter is empty, and its holding register too.
const TRANSMITTER_EMPTY: u8 = 0x60;
/// Modem status: a device is connected and ready.
const CONNECTED: u8 = 0xb0;
/// Modem control: what is sent is received.
const LOOP: u8 = 1 << 4;
/// FIFO control.
const ENABLE: u8 = 1;
const CLEAR_RECEIVED: u8 = 1 << 1;
/// Interrupt enable.
const RECEIVED: u8 = 1;
const EMPTY: u8 = 1 << 1;
/// Interrupt identification, highest priority first, and with FIFOs.
const DATA_AVAILABLE: u8 = 0x04;
const TIMEOUT: u8 = 0x0c;
const HOLDING_EMPTY: u8 = 0x02;
const NO_INTERRUPT: u8 = 0x01;
const FIFOS: u8 = 0xc0;

/// Reads of line status in a row that are a loop. Drivers look a few times when they
/// start, and throw away what they find.
const POLLING: u32 = 16;

/// Bytes that the receiver holds with FIFOs.
const DEPTH: usize = 16;

/// Its registers, but for those that never change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uart {
    divisor: [u8; 2],
    interrupts: u8,
    fifos: bool,
    /// Received bytes that bring an interrupt, as in FIFO control.
    trigger: u8,
    line: u8,
    modem: u8,
    scratch: u8,
    received: VecDeque<u8>,
    /// The holding register became empty, and the guest was not told so.
    emptied: bool,
    /// How often line status was read in a row, but for received bytes: a guest that
    /// does so often waits for input, since the transmitter is always empty.
    looks: u32,
    /// Typed, and not yet received.
    pub(crate) typed: VecDeque<u8>,
    /// Sent, and not yet taken by the host.
    pub(crate) sent: Vec<u8>,
}

impl Uart {
    /// Reads the register at an offset. Wide reads see one register, too.
    pub(crate) fn load(&mut self, offset: u64) -> u64 {
        let latch = self.line & DLAB != 0;
        let [low, high] = self.divisor;
        match offset {
            5 => self.looks = self.looks.saturating_add(1),
            0 if !latch => {}
            _ => self.looks = 0,
        }
        self.receive();
        let value = match offset {
            0 if latch => low,
            1 if latch => high,
            0 => self.received.pop_front().unwrap_or(0),
            1 => self.interrupts,
            2 => self.identify(),
            3 => self.line,
            4 => self.modem,
            5 if self.received.is_empty() => TRANSMITTER_EMPTY,
            5 => TRANSMITTER_EMPTY | DATA_READY,
            6 => self.modem_status(),
            7 => self.scratch,
            _ => 0,
        };
        self.receive();
        value.into()
    }

    /// Writes the register at an offset, with the lowest byte of the value.
    pub(crate) fn store(&mut self, offset: u64, value: u64) {
        let value = value as u8;
        let latch = self.line & DLAB != 0;
        let [low, high] = &mut self.divisor;
        self.looks = 0;
        match offset {
            0 if latch => *low = value,
            1 if latch => *high = value,
            0 => self.send(value),
            1 => {
                self.emptied |= value & !self.interrupts & EMPTY != 0;
                self.interrupts = value & 0x0f;
            }
            2 => self.control_fifos(value),
            3 => self.line = value,
            4 => self.modem = value & 0x1f,
            7 => self.scratch = value,
            // The status registers are read-only.
            _ => {}
        }
        self.receive();
    }

    /// Whether the guest has use for input: it is told of it, or looks for it.
    pub(crate) fn wants_input(&self) -> bool {
        self.interrupts & RECEIVED != 0 || self.looks >= POLLING
    }

    /// Takes from the line what there is room for.
    pub(crate) fn receive(&mut self) {
        while self.wants_input()
            && self.modem & LOOP == 0
            && self.received.len() < self.depth()
            && let Some(byte) = self.typed.pop_front()
        {
            self.received.push_back(byte);
        }
    }

    /// Whether the interrupt line is high.
    pub(crate) fn interrupts(&self) -> bool {
        self.cause() != NO_INTERRUPT
    }

    fn depth(&self) -> usize {
        if self.fifos { DEPTH } else { 1 }
    }

    fn send(&mut self, byte: u8) {
        self.emptied = true;
        if self.modem & LOOP == 0 {
            self.sent.push(byte);
        } else if self.received.len() < self.depth() {
            self.received.push_back(byte);
        }
    }

    fn control_fifos(&mut self, value: u8) {
        let on = value & ENABLE != 0;
        // To change between the modes empties them, too. Drivers do both when they
        // start: what is thrown away unread is on the line again, and no input is lost.
        if on != self.fifos || value & CLEAR_RECEIVED != 0 {
            while let Some(byte) = self.received.pop_back() {
                if self.modem & LOOP == 0 {
                    self.typed.push_front(byte);
                }
            }
        }
        self.fifos = on;
        self.trigger = value >> 6;
    }

    /// The interrupt of the highest priority.
    fn cause(&self) -> u8 {
        let level = match self.trigger {
            _ if !self.fifos => 1,
            0 => 1,
            1 => 4,
            2 => 8,
            _ => 14,
        };
        match self.received.len() {
            _ if self.interrupts & RECEIVED == 0 => {}
            0 => {}
            // Fewer than that interrupt after a while without another one: at once,
            // since no time passes between bytes that were typed.
            count if count < level => return TIMEOUT,
            _ => return DATA_AVAILABLE,
        }
        match self.emptied && self.interrupts & EMPTY != 0 {
            true => HOLDING_EMPTY,
            false => NO_INTERRUPT,
        }
    }

    /// Reads interrupt identification: the guest knows now that it can send.
    fn identify(&mut self) -> u8 {
        let cause = self.cause();
        if cause == HOLDING_EMPTY {
            self.emptied = false;
        }
        if self.fifos { cause | FIFOS } else { cause }
    }

    /// The inputs, which are the outputs while they are looped back: DTR to DSR, RTS to
    /// CTS, OUT1 to RI, OUT2 to DCD.
    fn modem_status(&self) -> u8 {
        if self.modem & LOOP == 0 {
            return CONNECTED;
        }
        let wires = [(0, 5), (1, 4), (2, 6), (3, 7)];
        let inputs = wires.map(|(from, to)| (self.modem >> from & 1) << to);
        inputs.into_iter().fold(0, |all, input| all | input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &[u8]) -> Uart {
        let mut uart = Uart::default();
        uart.typed.extend(text);
        uart
    }

    #[test]
    fn nothing_is_received_before_the_guest_wants_it() {
        let mut uart = typed(b"ab");
        assert_eq!((uart.load(0), uart.load(5)), (0, 0x60));
        assert_eq!(uart.load(0), 0);
        assert!(!uart.interrupts());
        uart.store(1, 1);
        assert!(uart.interrupts());
        assert_eq!((uart.load(2), uart.load(5)), (0x04, 0x61));
        assert_eq!((uart.load(0), uart.load(0), uart.load(0)), (97, 98, 0));
        assert!(!uart.interrupts());
    }

    #[test]
    fn a_guest_that_polls_line_status_wants_input() {
        let mut uart = typed(b"a");
        // To send and to start, too, line status is read, and the data register.
        for _ in 0..30 {
            assert_eq!((uart.load(5), uart.load(5)), (0x60, 0x60));
            uart.store(0, 65);
            assert_eq!((uart.load(5), uart.load(0), uart.load(2)), (0x60, 0, 1));
        }
        assert!(!uart.wants_input());
        let polls = (0..POLLING).take_while(|_| uart.load(5) == 0x60).count();
        assert_eq!(polls as u32, POLLING - 1);
        assert_eq!((uart.load(0), uart.load(5)), (97, 0x60));
        uart.typed.push_back(98);
        assert_eq!((uart.load(5), uart.load(0)), (0x61, 98));
        assert!(!uart.interrupts());
    }

    #[test]
    fn without_fifos_there_is_room_for_one_byte() {
        let mut uart = typed(b"abc");
        uart.store(1, 1);
        assert_eq!((uart.received.len(), uart.typed.len()), (1, 2));
        // What had been received is not lost with the change.
        uart.store(2, 1);
        assert_eq!((uart.received.len(), uart.typed.len()), (3, 0));
        uart.store(2, 7);
        uart.store(2, 0);
        assert_eq!((uart.load(0), uart.load(0), uart.load(0)), (97, 98, 99));
    }

    #[test]
    fn fifos_hold_16_bytes_and_nothing_overruns() {
        let mut uart = typed(&[7; 40]);
        uart.store(2, 0xc1);
        uart.store(1, 1);
        assert_eq!((uart.received.len(), uart.typed.len()), (16, 24));
        assert_eq!(uart.load(2), 0xc4, "14 or more");
        for _ in 0..40 {
            assert_eq!(uart.load(5), 0x61);
            assert_eq!(uart.load(0), 7);
        }
        assert_eq!(uart.load(5), 0x60);
        assert_eq!(uart.load(2), 0xc1);
        uart.typed.push_back(1);
        uart.receive();
        assert_eq!(uart.load(2), 0xcc, "fewer, and no more to come");
        uart.store(1, 0);
        assert!(!uart.interrupts());
    }

    #[test]
    fn the_holding_register_interrupts_until_it_is_known_to_be_empty() {
        let mut uart = Uart::default();
        uart.store(1, 2);
        assert!(uart.interrupts(), "when it is enabled");
        assert_eq!((uart.load(2), uart.load(2)), (2, 1));
        uart.store(0, 65);
        assert_eq!((uart.load(2), uart.load(2)), (2, 1));
        uart.store(0, 65);
        uart.store(1, 0);
        assert!(!uart.interrupts());
        // Received data come first, and do not hide it for good.
        uart.typed.push_back(1);
        uart.store(1, 3);
        assert_eq!((uart.load(2), uart.load(0)), (4, 1));
        assert_eq!(uart.load(2), 2);
        assert_eq!(uart.sent, [65, 65]);
    }

    #[test]
    fn outputs_are_inputs_in_a_loop() {
        let mut uart = typed(b"x");
        uart.store(4, 0x1a);
        assert_eq!(uart.load(6), 0x90);
        uart.store(4, 0x15);
        assert_eq!(uart.load(6), 0x60);
        uart.store(1, 1);
        uart.store(0, 65);
        uart.store(0, 66);
        assert_eq!((uart.load(0), uart.load(0)), (65, 0));
        assert!(uart.sent.is_empty());
        uart.store(4, 0);
        assert_eq!((uart.load(0), uart.load(6)), (120, 0xb0));
    }
}
