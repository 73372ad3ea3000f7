//! Virtio devices behind memory-mapped registers (Virtual I/O Device 1.2, 4.2),
//! version 2: a block device, a source of entropy or a console.
//!
//! A store to QueueNotify is only remembered; the machine lets the device work
//! after it ([`Slot::serve`]), with memory and the outside at hand.

mod block;
mod entropy;
mod queue;
#[cfg(test)]
mod tests;

pub(crate) use entropy::Entropy;

use block::Block;
use queue::{Broken, Chain, Queue, SIZE_MAX};

use crate::devices::Outside;
use crate::host::GuestMemory;
use crate::memory::Region;

/// Slots for devices, as on QEMU's `virt` machine.
pub const SLOTS: usize = 8;

/// Where a slot is.
pub(crate) const fn region(slot: usize) -> Region {
    Region {
        base: 0x1000_1000 + 0x1000 * slot as u64,
        size: 0x1000,
    }
}

/// The source of a slot's interrupt.
pub(crate) const fn source(slot: usize) -> u32 {
    1 + slot as u32
}

/// What a machine has in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Virtio {
    /// A block device; its sectors are those of the host's disk of this number.
    Disk {
        /// Which disk.
        disk: usize,
        /// Its size in sectors of 512 bytes.
        sectors: u64,
        /// Whether it refuses writes.
        read_only: bool,
    },
    /// A source of bytes that follow from a seed.
    Entropy {
        /// The seed.
        seed: u64,
    },
    /// A console. It gets the input, which otherwise goes to the UART.
    Console,
}

const MAGIC: u32 = 0x7472_6976;
const VERSION: u32 = 2;
const VENDOR: u32 = 0x5452_4148;

/// Feature bit of devices that follow version 1 of the specification (6).
const VERSION_1: u64 = 1 << 32;

/// Bits of the device status (2.1).
const FEATURES_OK: u32 = 8;
const DRIVER_OK: u32 = 4;
const NEEDS_RESET: u32 = 64;

/// Bits of the interrupt status.
const USED_BUFFERS: u32 = 1;
const CONFIG_CHANGED: u32 = 2;

/// The queues of a console (5.3.2).
const RECEIVE: usize = 0;

#[derive(Clone, Debug)]
enum Kind {
    Block(Block),
    Entropy(Entropy),
    Console,
}

/// A device and its registers.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    kind: Kind,
    queues: Vec<Queue>,
    /// The queue whose registers are seen.
    selected: usize,
    device_features_sel: u32,
    driver_features_sel: u32,
    driver_features: u64,
    status: u32,
    interrupt_status: u32,
    /// Queues the driver has notified of, by bit.
    notified: u32,
}

impl Slot {
    pub(crate) fn new(device: &Virtio) -> Slot {
        let (kind, queues) = match *device {
            Virtio::Disk {
                disk,
                sectors,
                read_only,
            } => {
                let block = Block {
                    disk,
                    sectors,
                    read_only,
                };
                (Kind::Block(block), 1)
            }
            Virtio::Entropy { seed } => (Kind::Entropy(Entropy::new(seed)), 1),
            Virtio::Console => (Kind::Console, 2),
        };
        Slot {
            kind,
            queues: vec![Queue::new(); queues],
            selected: 0,
            device_features_sel: 0,
            driver_features_sel: 0,
            driver_features: 0,
            status: 0,
            interrupt_status: 0,
            notified: 0,
        }
    }

    /// Reads `len` bytes at an offset. Registers are words; the configuration space
    /// can be read in any size.
    pub(crate) fn load(&self, offset: u64, len: u64) -> u64 {
        if offset >= 0x100 {
            return self.load_config(offset - 0x100, len);
        }
        let value = match offset {
            _ if len != 4 => 0,
            0x000 => MAGIC,
            0x004 => VERSION,
            0x008 => match self.kind {
                Kind::Block(_) => 2,
                Kind::Console => 3,
                Kind::Entropy(_) => 4,
            },
            0x00c => VENDOR,
            0x010 => match self.device_features_sel {
                0 => self.features() as u32,
                1 => (self.features() >> 32) as u32,
                _ => 0,
            },
            0x034 if self.selected < self.queues.len() => SIZE_MAX.into(),
            0x044 => self.queue().is_some_and(|queue| queue.ready).into(),
            0x060 => self.interrupt_status,
            0x070 => self.status,
            // There is no shared memory: its length is -1.
            0x0b0 | 0x0b4 | 0x0b8 | 0x0bc => u32::MAX,
            _ => 0,
        };
        value.into()
    }

    fn load_config(&self, offset: u64, len: u64) -> u64 {
        let block = match &self.kind {
            Kind::Block(block) => block.config(),
            Kind::Entropy(_) | Kind::Console => [0; 24],
        };
        let byte = |at: u64| block.get(at as usize).copied().unwrap_or(0);
        (0..len).fold(0, |value, i| value | u64::from(byte(offset + i)) << (8 * i))
    }

    /// Writes `len` bytes at an offset. No field of a configuration space can be
    /// written.
    pub(crate) fn store(&mut self, offset: u64, len: u64, value: u64) {
        let value = value as u32;
        match offset {
            _ if len != 4 => {}
            0x014 => self.device_features_sel = value,
            0x020 => self.accept_features(value),
            0x024 => self.driver_features_sel = value,
            0x030 => self.selected = value as usize,
            0x038 | 0x044 | 0x080..=0x0a4 => self.set_up(offset, value),
            0x050 if self.status & DRIVER_OK != 0 && (value as usize) < self.queues.len() => {
                self.notified |= 1 << value;
            }
            0x064 => self.interrupt_status &= !value,
            0x070 => self.set_status(value),
            _ => {}
        }
    }

    fn queue(&self) -> Option<&Queue> {
        self.queues.get(self.selected)
    }

    fn features(&self) -> u64 {
        VERSION_1
            | match &self.kind {
                Kind::Block(block) => block.features(),
                Kind::Entropy(_) | Kind::Console => 0,
            }
    }

    /// Features cannot be changed once they are agreed on.
    fn accept_features(&mut self, value: u32) {
        let shift = match self.driver_features_sel {
            0 => 0,
            1 => 32,
            _ => return,
        };
        if self.status & FEATURES_OK == 0 {
            let mask = u64::from(u32::MAX) << shift;
            self.driver_features = self.driver_features & !mask | u64::from(value) << shift;
        }
    }

    /// Registers of the selected queue, which stay as they are while it is ready.
    fn set_up(&mut self, offset: u64, value: u32) {
        let Some(queue) = self.queues.get_mut(self.selected) else {
            return;
        };
        if offset == 0x044 {
            queue.ready = value & 1 != 0;
            return;
        }
        if queue.ready {
            return;
        }
        let [descriptors, available, used] = &mut queue.areas;
        let (area, shift) = match offset {
            0x038 => {
                if Queue::is_size(value) {
                    queue.size = value as u16;
                }
                return;
            }
            0x080 => (descriptors, 0),
            0x084 => (descriptors, 32),
            0x090 => (available, 0),
            0x094 => (available, 32),
            0x0a0 => (used, 0),
            0x0a4 => (used, 32),
            _ => return,
        };
        let mask = u64::from(u32::MAX) << shift;
        *area = *area & !mask | u64::from(value) << shift;
    }

    /// 0 resets the device. Features that were not offered are not agreed to (3.1.1).
    fn set_status(&mut self, value: u32) {
        if value == 0 {
            self.reset();
            return;
        }
        let offered = self.features();
        let fit = self.driver_features & !offered == 0 && self.driver_features & VERSION_1 != 0;
        let agreed = if fit { value } else { value & !FEATURES_OK };
        self.status = agreed & 0xff | self.status & NEEDS_RESET;
    }

    fn reset(&mut self) {
        self.queues.fill(Queue::new());
        self.selected = 0;
        self.device_features_sel = 0;
        self.driver_features_sel = 0;
        self.driver_features = 0;
        self.status = 0;
        self.interrupt_status = 0;
        self.notified = 0;
    }

    /// Whether the interrupt line is high.
    pub(crate) fn interrupts(&self) -> bool {
        self.interrupt_status != 0
    }

    /// Whether the device has something to do.
    pub(crate) fn is_notified(&self) -> bool {
        self.notified != 0
    }

    /// Whether it is a console.
    pub(crate) fn is_console(&self) -> bool {
        matches!(self.kind, Kind::Console)
    }

    /// Whether it is a console whose driver takes input.
    pub(crate) fn wants_input(&self) -> bool {
        let ready = self.queues.first().is_some_and(|queue| queue.ready);
        self.is_console() && ready && self.is_running()
    }

    fn is_running(&self) -> bool {
        self.status & (DRIVER_OK | NEEDS_RESET) == DRIVER_OK
    }

    /// Does what the driver has asked for. While the guest is idle, a console gets what
    /// was typed: Linux's driver loses what arrives while it starts.
    pub(crate) fn serve(
        &mut self,
        memory: &mut dyn GuestMemory,
        outside: &mut dyn Outside,
        idle: bool,
    ) {
        let notified = core::mem::take(&mut self.notified);
        for number in 0..self.queues.len() {
            if !self.is_running() {
                return;
            }
            let done = match number {
                RECEIVE if self.is_console() => match idle {
                    true => self.receive(memory, outside),
                    false => Ok(()),
                },
                _ if notified >> number & 1 != 0 => self.work(number, memory, outside),
                _ => Ok(()),
            };
            if done.is_err() {
                self.status |= NEEDS_RESET;
                self.interrupt_status |= CONFIG_CHANGED;
            }
        }
    }

    /// Works through a queue: as many chains as it can hold, and no more.
    fn work(
        &mut self,
        number: usize,
        memory: &mut dyn GuestMemory,
        outside: &mut dyn Outside,
    ) -> Result<(), Broken> {
        let Some(queue) = self.queues.get_mut(number) else {
            return Ok(());
        };
        let (mut chain, mut buffer) = (Chain::default(), Vec::new());
        let mut used = false;
        for _ in 0..queue.size {
            if !queue.take(memory, &mut chain)? {
                break;
            }
            match &mut self.kind {
                Kind::Block(block) => block.serve(&mut chain, memory, outside, &mut buffer)?,
                Kind::Entropy(entropy) => entropy.serve(&mut chain, memory, &mut buffer)?,
                Kind::Console => {
                    buffer.clear();
                    buffer.resize(chain.readable() as usize, 0);
                    chain.read(memory, &mut buffer)?;
                    outside.output(&buffer);
                }
            }
            queue.give_back(memory, &chain)?;
            used = true;
        }
        if used && queue.wants_interrupt(memory)? {
            self.interrupt_status |= USED_BUFFERS;
        }
        Ok(())
    }

    /// Gives a console what was typed, in buffers of the driver.
    fn receive(
        &mut self,
        memory: &mut dyn GuestMemory,
        outside: &mut dyn Outside,
    ) -> Result<(), Broken> {
        let Some(queue) = self.queues.get_mut(RECEIVE) else {
            return Ok(());
        };
        let mut chain = Chain::default();
        let mut used = false;
        for _ in 0..queue.size {
            if !outside.has_input() || !queue.take(memory, &mut chain)? {
                break;
            }
            let mut buffer = [0; 256];
            let room = chain.writable().min(buffer.len() as u64) as usize;
            let got = match buffer.get_mut(..room) {
                Some(part) => outside.input(part),
                None => 0,
            };
            chain.write(memory, buffer.get(..got).unwrap_or_default())?;
            queue.give_back(memory, &chain)?;
            used = true;
        }
        if used && queue.wants_interrupt(memory)? {
            self.interrupt_status |= USED_BUFFERS;
        }
        Ok(())
    }
}
