//! The devices of our own machine besides the CLINT, at the addresses and with the
//! interrupts of QEMU's `virt` machine. RAM at the address of a device replaces it.
//!
//! A device does not know the host. What it has for the host waits in it, and the
//! machine lets it work with the [`Outside`] after the access that caused it, so
//! everything happens at an instruction and never at a time of the host.

mod finisher;
mod plic;
mod rtc;
mod uart;
mod virtio;

pub(crate) use finisher::{FINISHER, Finish};
pub(crate) use plic::{LAST_SOURCE, PLIC};
pub(crate) use rtc::{RTC, RTC_SOURCE};
pub(crate) use uart::UART;
pub(crate) use virtio::{Entropy, region as slot_region, source as slot_source};
pub use virtio::{SLOTS, Virtio};

use plic::Plic;
use rtc::Rtc;
use uart::Uart;
use virtio::Slot;

use crate::host::GuestMemory;
use crate::memory::Region;

/// The source of the UART's interrupt.
pub(crate) const UART_SOURCE: u32 = 10;

/// Bytes that wait to be received at most; the rest stays outside.
const TYPED_MAX: usize = 4096;

/// The world outside, as far as devices need it.
pub(crate) trait Outside {
    /// What a console prints.
    fn output(&mut self, bytes: &[u8]);
    /// Whether something was typed that was not taken.
    fn has_input(&mut self) -> bool;
    /// Takes what was typed; how many bytes.
    fn input(&mut self, into: &mut [u8]) -> usize;
    /// Reads bytes of a disk; false when it cannot be done.
    fn read_disk(&mut self, disk: usize, offset: u64, into: &mut [u8]) -> bool;
    /// Writes bytes of a disk; false when it cannot be done.
    fn write_disk(&mut self, disk: usize, offset: u64, data: &[u8]) -> bool;
    /// Makes what was written to a disk last.
    fn flush_disk(&mut self, disk: usize) -> bool;
}

/// Which devices a machine has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Equipment<'a> {
    pub(crate) plic: bool,
    pub(crate) uart: bool,
    pub(crate) finisher: bool,
    pub(crate) rtc: bool,
    pub(crate) slots: &'a [Virtio],
}

impl<'a> Equipment<'a> {
    /// What RAM leaves room for.
    pub(crate) fn beside(ram: &[Region], slots: &'a [Virtio]) -> Equipment<'a> {
        let free = |device: &Region| !ram.iter().any(|region| region.overlaps(device));
        let count = slots.len().min(SLOTS);
        let count = (0..count).take_while(|slot| free(&virtio::region(*slot)));
        Equipment {
            plic: free(&PLIC),
            // The whole page, as the device tree says.
            uart: free(&Region {
                size: 0x100,
                ..UART
            }),
            finisher: free(&FINISHER),
            rtc: free(&RTC),
            slots: slots.get(..count.count()).unwrap_or_default(),
        }
    }
}

/// The devices. Without any, as on Spike's machine, none answers.
#[derive(Debug)]
pub(crate) struct Devices {
    plic: Option<Plic>,
    uart: Option<Uart>,
    rtc: Option<Rtc>,
    slots: Vec<Slot>,
    finisher: bool,
    /// The end that the guest has asked for.
    pub(crate) finish: Option<Finish>,
}

/// A device and an offset into it.
enum Place {
    Plic(u64),
    Uart(u64),
    Rtc(u64),
    Slot(usize, u64),
    Finisher(u64),
}

impl Devices {
    /// None.
    pub(crate) fn none() -> Devices {
        Devices {
            plic: None,
            uart: None,
            rtc: None,
            slots: Vec::new(),
            finisher: false,
            finish: None,
        }
    }

    /// As they are after power-on, for so many harts; the clock starts at so many
    /// seconds after the start of 1970.
    pub(crate) fn new(equipment: &Equipment<'_>, harts: usize, epoch: u64) -> Devices {
        Devices {
            plic: equipment.plic.then(|| Plic::new(harts)),
            uart: equipment.uart.then(Uart::default),
            rtc: equipment.rtc.then(|| Rtc::new(epoch)),
            slots: equipment.slots.iter().map(Slot::new).collect(),
            finisher: equipment.finisher,
            finish: None,
        }
    }

    fn place(&self, paddr: u64, len: u64) -> Option<Place> {
        let first = virtio::region(0).base;
        if UART.contains(paddr, len) {
            self.uart.as_ref().map(|_| Place::Uart(paddr - UART.base))
        } else if PLIC.contains(paddr, len) {
            self.plic.as_ref().map(|_| Place::Plic(paddr - PLIC.base))
        } else if RTC.contains(paddr, len) {
            self.rtc.as_ref().map(|_| Place::Rtc(paddr - RTC.base))
        } else if FINISHER.contains(paddr, len) {
            self.finisher
                .then_some(Place::Finisher(paddr - FINISHER.base))
        } else {
            let offset = paddr.checked_sub(first)?;
            let slot = usize::try_from(offset / 0x1000).ok()?;
            self.slots.get(slot)?;
            Some(Place::Slot(slot, offset % 0x1000))
        }
    }

    /// Whether a device is at an address.
    pub(crate) fn answers(&self, paddr: u64) -> bool {
        self.place(paddr, 1).is_some()
    }

    /// Reads `len` aligned bytes of a device. `None` when nothing answers.
    pub(crate) fn load(&mut self, paddr: u64, len: u64, mtime: u64) -> Option<u64> {
        match self.place(paddr, len)? {
            Place::Plic(offset) => {
                let plic = self.plic.as_mut().filter(|_| len == 4)?;
                Some(plic.load(offset).into())
            }
            Place::Uart(offset) => {
                let value = self.uart.as_mut()?.load(offset);
                self.connect();
                Some(value)
            }
            Place::Rtc(offset) => {
                let rtc = self.rtc.as_mut().filter(|_| len == 4)?;
                Some(rtc.load(offset, mtime).into())
            }
            Place::Slot(slot, offset) => self.slots.get(slot).map(|slot| slot.load(offset, len)),
            Place::Finisher(_) => finisher::answers(len).then_some(0),
        }
    }

    /// Writes `len` aligned bytes of a device. False when nothing answers.
    pub(crate) fn store(&mut self, paddr: u64, len: u64, value: u64, mtime: u64) -> bool {
        match self.place(paddr, len) {
            Some(Place::Plic(offset)) if len == 4 => {
                if let Some(plic) = &mut self.plic {
                    plic.store(offset, value as u32);
                }
                return true;
            }
            Some(Place::Uart(offset)) => {
                if let Some(uart) = &mut self.uart {
                    uart.store(offset, value);
                }
            }
            Some(Place::Rtc(offset)) if len == 4 => {
                if let Some(rtc) = &mut self.rtc {
                    rtc.store(offset, value as u32, mtime);
                }
            }
            Some(Place::Slot(slot, offset)) => {
                if let Some(slot) = self.slots.get_mut(slot) {
                    slot.store(offset, len, value);
                }
            }
            Some(Place::Finisher(offset)) if finisher::answers(len) => {
                self.finish = self.finish.or(finisher::request(offset, value));
                return true;
            }
            _ => return false,
        }
        self.connect();
        true
    }

    /// Connects the interrupt lines of the devices with the controller.
    fn connect(&mut self) {
        let Some(plic) = &mut self.plic else { return };
        if let Some(uart) = &self.uart {
            plic.set_level(UART_SOURCE, uart.interrupts());
        }
        if let Some(rtc) = &self.rtc {
            plic.set_level(RTC_SOURCE, rtc.interrupts());
        }
        for (number, slot) in self.slots.iter().enumerate() {
            plic.set_level(virtio::source(number), slot.interrupts());
        }
    }

    /// The external interrupts of a hart, as bits of `mip`.
    pub(crate) fn interrupts(&self, hart: u32) -> u64 {
        self.plic.as_ref().map_or(0, |plic| plic.interrupts(hart))
    }

    /// The tick at which a device does something by itself.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.rtc.as_ref()?.deadline()
    }

    /// Does what is due at a tick.
    pub(crate) fn tick(&mut self, mtime: u64) {
        if let Some(rtc) = &mut self.rtc {
            rtc.ring(mtime);
            self.connect();
        }
    }

    /// Whether the guest waits for input, and has had all there was.
    pub(crate) fn wants_input(&self) -> bool {
        // A console in a slot gets the input.
        if self.slots.iter().any(Slot::is_console) {
            return self.slots.iter().any(Slot::wants_input);
        }
        let uart = self.uart.as_ref();
        uart.is_some_and(|uart| uart.wants_input() && uart.typed.is_empty())
    }

    /// Whether there is something to be done outside.
    pub(crate) fn is_busy(&self) -> bool {
        let uart = self.uart.as_ref();
        uart.is_some_and(|uart| !uart.sent.is_empty()) || self.slots.iter().any(Slot::is_notified)
    }

    /// Does what the guest has asked for, and gives it what was typed; `idle` if it does
    /// nothing but wait.
    pub(crate) fn serve(
        &mut self,
        memory: &mut dyn GuestMemory,
        outside: &mut dyn Outside,
        idle: bool,
    ) {
        if let Some(uart) = &mut self.uart
            && !uart.sent.is_empty()
        {
            outside.output(&uart.sent);
            uart.sent.clear();
        }
        for slot in &mut self.slots {
            slot.serve(memory, outside, idle);
        }
        if let Some(uart) = &mut self.uart
            && uart.wants_input()
            && !self.slots.iter().any(Slot::is_console)
        {
            let mut bytes = [0; 256];
            while uart.typed.len() + bytes.len() <= TYPED_MAX && outside.has_input() {
                let got = outside.input(&mut bytes);
                uart.typed.extend(bytes.iter().take(got));
            }
            uart.receive();
        }
        self.connect();
    }
}
