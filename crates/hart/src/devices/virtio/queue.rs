//! Split virtqueues (Virtual I/O Device 1.2, 2.7), as the device sees them.
//!
//! The driver puts chains of buffers into the available ring; the device works
//! through them and puts them into the used ring. Everything in the rings is the
//! guest's: whatever it says, a chain has at most as many buffers as the queue has
//! descriptors, and one notification is answered with at most as many chains.

use crate::host::GuestMemory;

/// Most descriptors of a queue.
pub(crate) const SIZE_MAX: u16 = 256;

/// Most bytes in the buffers of a chain that a device reads or writes.
pub(crate) const CHAIN_MAX: u64 = (1 << 20) + 4096;

/// Flags of a descriptor.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// A flag of the available ring: the driver wants no interrupt.
const NO_INTERRUPT: u16 = 1;

/// The driver broke a rule; the device needs a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// Memory of the guest that a chain is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    addr: u64,
    len: u32,
}

/// One request: buffers to read, then buffers to write, each as one stretch of bytes.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    head: u16,
    read: Stretch,
    write: Stretch,
}

/// Buffers one after the other, and how much of them was used.
#[derive(Debug, Default)]
struct Stretch {
    buffers: Vec<Buffer>,
    len: u64,
    at: u64,
}

impl Stretch {
    fn push(&mut self, buffer: Buffer) {
        self.len += u64::from(buffer.len);
        self.buffers.push(buffer);
    }

    fn clear(&mut self) {
        self.buffers.clear();
        (self.len, self.at) = (0, 0);
    }

    fn left(&self) -> u64 {
        self.len - self.at
    }

    /// Gives the pieces of memory that the next `len` bytes are, and passes them.
    fn pass(
        &mut self,
        len: usize,
        piece: &mut dyn FnMut(u64, core::ops::Range<usize>) -> bool,
    ) -> Result<(), Broken> {
        let len = len as u64;
        if len > self.left() {
            return Err(Broken);
        }
        let (from, to) = (self.at, self.at + len);
        let mut start = 0;
        for buffer in &self.buffers {
            let end = start + u64::from(buffer.len);
            let (first, last) = (from.max(start), to.min(end));
            if first < last {
                let range = (first - from) as usize..(last - from) as usize;
                let addr = buffer.addr.wrapping_add(first - start);
                if !piece(addr, range) {
                    return Err(Broken);
                }
            }
            start = end;
        }
        self.at = to;
        Ok(())
    }
}

impl Chain {
    /// Bytes that are left to be read.
    pub(crate) fn readable(&self) -> u64 {
        self.read.left()
    }

    /// Bytes that are left to be written.
    pub(crate) fn writable(&self) -> u64 {
        self.write.left()
    }

    /// Reads the next bytes.
    pub(crate) fn read(
        &mut self,
        memory: &mut dyn GuestMemory,
        into: &mut [u8],
    ) -> Result<(), Broken> {
        let len = into.len();
        self.read.pass(len, &mut |addr, range| {
            into.get_mut(range)
                .is_some_and(|part| memory.read(addr, part))
        })
    }

    /// Writes the next bytes.
    pub(crate) fn write(
        &mut self,
        memory: &mut dyn GuestMemory,
        data: &[u8],
    ) -> Result<(), Broken> {
        self.write.pass(data.len(), &mut |addr, range| {
            data.get(range).is_some_and(|part| memory.write(addr, part))
        })
    }

    /// Leaves bytes as they are and goes on after them.
    pub(crate) fn skip_writable(&mut self, len: u64) -> Result<(), Broken> {
        self.write.at = match self.write.at.checked_add(len) {
            Some(at) if at <= self.write.len => at,
            _ => return Err(Broken),
        };
        Ok(())
    }
}

/// A virtqueue: where the driver has put it, and how far the device is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) size: u16,
    pub(crate) ready: bool,
    /// Descriptors, available ring, used ring.
    pub(crate) areas: [u64; 3],
    /// Chains taken, and given back; both wrap.
    taken: u16,
    used: u16,
}

impl Queue {
    /// As after a reset.
    pub(crate) fn new() -> Queue {
        Queue {
            size: SIZE_MAX,
            ..Queue::default()
        }
    }

    /// A size that the queue can have: a power of two, not more than the most.
    pub(crate) fn is_size(size: u32) -> bool {
        size.is_power_of_two() && size <= u32::from(SIZE_MAX)
    }

    /// Takes the next chain that the driver has made available.
    pub(crate) fn take(
        &mut self,
        memory: &mut dyn GuestMemory,
        chain: &mut Chain,
    ) -> Result<bool, Broken> {
        let [_, available, _] = self.areas;
        if !self.ready {
            return Ok(false);
        }
        let index = half(memory, available.wrapping_add(2))?;
        match index.wrapping_sub(self.taken) {
            0 => return Ok(false),
            waiting if waiting > self.size => return Err(Broken),
            _ => {}
        }
        let place = u64::from(self.taken % self.size);
        let head = half(memory, available.wrapping_add(4 + 2 * place))?;
        self.taken = self.taken.wrapping_add(1);
        self.follow(memory, head, chain)?;
        Ok(true)
    }

    /// Follows the descriptors of a chain.
    fn follow(
        &self,
        memory: &mut dyn GuestMemory,
        head: u16,
        chain: &mut Chain,
    ) -> Result<(), Broken> {
        chain.head = head;
        chain.read.clear();
        chain.write.clear();
        let mut number = head;
        for _ in 0..self.size {
            let (buffer, flags, next) = self.descriptor(memory, number)?;
            let write = flags & WRITE != 0;
            // Buffers to be read come first (2.7.4.2).
            if flags & INDIRECT != 0 || !write && !chain.write.buffers.is_empty() {
                return Err(Broken);
            }
            match write {
                true => chain.write.push(buffer),
                false => chain.read.push(buffer),
            }
            if chain.read.len + chain.write.len > CHAIN_MAX {
                return Err(Broken);
            }
            if flags & NEXT == 0 {
                return Ok(());
            }
            number = next;
        }
        // It is longer than the queue: a loop.
        Err(Broken)
    }

    fn descriptor(
        &self,
        memory: &mut dyn GuestMemory,
        number: u16,
    ) -> Result<(Buffer, u16, u16), Broken> {
        if number >= self.size {
            return Err(Broken);
        }
        let [descriptors, ..] = self.areas;
        let mut bytes = [0; 16];
        let at = descriptors.wrapping_add(16 * u64::from(number));
        if !memory.read(at, &mut bytes) {
            return Err(Broken);
        }
        let all = u128::from_le_bytes(bytes);
        let buffer = Buffer {
            addr: all as u64,
            len: (all >> 64) as u32,
        };
        Ok((buffer, (all >> 96) as u16, (all >> 112) as u16))
    }

    /// Gives a chain back; the device has written to its buffers as far as it went.
    pub(crate) fn give_back(
        &mut self,
        memory: &mut dyn GuestMemory,
        chain: &Chain,
    ) -> Result<(), Broken> {
        let [.., used] = self.areas;
        let place = u64::from(self.used % self.size);
        let mut element = [0; 8];
        let fields = u64::from(chain.head) | chain.write.at << 32;
        element.copy_from_slice(&fields.to_le_bytes());
        let next = self.used.wrapping_add(1);
        let done = memory.write(used.wrapping_add(4 + 8 * place), &element)
            && memory.write(used.wrapping_add(2), &next.to_le_bytes());
        self.used = next;
        done.then_some(()).ok_or(Broken)
    }

    /// Whether the driver wants to be interrupted when chains come back.
    pub(crate) fn wants_interrupt(&self, memory: &mut dyn GuestMemory) -> Result<bool, Broken> {
        let [_, available, _] = self.areas;
        Ok(half(memory, available)? & NO_INTERRUPT == 0)
    }
}

fn half(memory: &mut dyn GuestMemory, addr: u64) -> Result<u16, Broken> {
    let mut bytes = [0; 2];
    match memory.read(addr, &mut bytes) {
        true => Ok(u16::from_le_bytes(bytes)),
        false => Err(Broken),
    }
}
