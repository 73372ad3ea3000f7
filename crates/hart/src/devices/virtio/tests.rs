use std::collections::VecDeque;

use hartrace_testkit::Random;

use super::*;

/// Where the driver has its rings and buffers.
const DESCRIPTORS: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const BUFFERS: u64 = 0x4000;

/// Flags of a descriptor.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// Memory from 0 on.
struct Ram(Vec<u8>);

impl GuestMemory for Ram {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        let from = usize::try_from(address).unwrap_or(usize::MAX);
        let end = from.saturating_add(buffer.len());
        match self.0.get(from..end) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return false,
        }
        true
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let from = usize::try_from(address).unwrap_or(usize::MAX);
        let end = from.saturating_add(data.len());
        match self.0.get_mut(from..end) {
            Some(bytes) => bytes.copy_from_slice(data),
            None => return false,
        }
        true
    }
}

/// One disk, and what was printed and typed.
#[derive(Default)]
struct World {
    disk: Vec<u8>,
    printed: Vec<u8>,
    typed: VecDeque<u8>,
    /// Bytes moved.
    work: u64,
}

impl Outside for World {
    fn output(&mut self, bytes: &[u8]) {
        self.work += bytes.len() as u64;
        self.printed.extend(bytes);
    }

    fn has_input(&mut self) -> bool {
        !self.typed.is_empty()
    }

    fn input(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.typed.len());
        for (to, byte) in into.iter_mut().zip(self.typed.drain(..count)) {
            *to = byte;
        }
        count
    }

    fn read_disk(&mut self, disk: usize, offset: u64, into: &mut [u8]) -> bool {
        assert_eq!(disk, 0);
        self.work += into.len() as u64;
        let from = offset as usize;
        into.copy_from_slice(&self.disk[from..from + into.len()]);
        true
    }

    fn write_disk(&mut self, disk: usize, offset: u64, data: &[u8]) -> bool {
        assert_eq!(disk, 0);
        self.work += data.len() as u64;
        let from = offset as usize;
        self.disk[from..from + data.len()].copy_from_slice(data);
        true
    }

    fn flush_disk(&mut self, disk: usize) -> bool {
        disk == 0
    }
}

/// A device, and a driver that knows its specification.
struct Bench {
    slot: Slot,
    ram: Ram,
    world: World,
    /// Chains made available.
    count: u16,
}

impl Bench {
    fn new(device: &Virtio) -> Bench {
        Bench {
            slot: Slot::new(device),
            ram: Ram(vec![0; 0x2_0000]),
            world: World::default(),
            count: 0,
        }
    }

    fn reg(&self, offset: u64) -> u32 {
        self.slot.load(offset, 4) as u32
    }

    fn set(&mut self, offset: u64, value: u32) {
        self.slot.store(offset, 4, value.into());
    }

    /// 3.1.1, with all the features there are.
    fn initialize(&mut self) {
        self.set(0x070, 0);
        self.set(0x070, 1);
        self.set(0x070, 3);
        for half in [0, 1] {
            self.set(0x014, half);
            let offered = self.reg(0x010);
            self.set(0x024, half);
            self.set(0x020, offered);
        }
        self.set(0x070, 11);
        assert_eq!(self.reg(0x070), 11, "the features are agreed to");
        self.queue(0, 8);
        self.set(0x070, 15);
    }

    /// Puts a queue where the rings are.
    fn queue(&mut self, number: u32, size: u32) {
        self.set(0x030, number);
        assert_eq!((self.reg(0x034), self.reg(0x044)), (256, 0));
        self.set(0x038, size);
        for (offset, value) in [(0x080, DESCRIPTORS), (0x090, AVAILABLE), (0x0a0, USED)] {
            self.set(offset, value as u32);
            self.set(offset + 4, (value >> 32) as u32);
        }
        self.set(0x044, 1);
    }

    fn put16(&mut self, addr: u64, value: u16) {
        assert!(self.ram.write(addr, &value.to_le_bytes()));
    }

    fn get16(&mut self, addr: u64) -> u16 {
        let mut bytes = [0; 2];
        assert!(self.ram.read(addr, &mut bytes));
        u16::from_le_bytes(bytes)
    }

    fn descriptor(&mut self, number: u16, addr: u64, len: u32, flags: u16, next: u16) {
        let mut bytes = addr.to_le_bytes().to_vec();
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        let at = DESCRIPTORS + 16 * u64::from(number);
        assert!(self.ram.write(at, &bytes));
    }

    /// A chain of buffers one after the other, from descriptor 0 on.
    fn chain(&mut self, buffers: &[(u64, u32, u16)]) {
        for (number, &(addr, len, flags)) in (0..).zip(buffers) {
            let last = usize::from(number) + 1 == buffers.len();
            let flags = if last { flags } else { flags | NEXT };
            self.descriptor(number, addr, len, flags, number + 1);
        }
        self.available(0);
    }

    fn available(&mut self, head: u16) {
        self.put16(AVAILABLE + 4 + 2 * u64::from(self.count % 8), head);
        self.count = self.count.wrapping_add(1);
        self.put16(AVAILABLE + 2, self.count);
    }

    fn notify(&mut self, queue: u32) {
        self.set(0x050, queue);
        self.slot.serve(&mut self.ram, &mut self.world, true);
    }

    /// The last element of the used ring.
    fn used(&mut self) -> (u32, u32) {
        let index = self.get16(USED + 2).wrapping_sub(1) % 8;
        let at = USED + 4 + 8 * u64::from(index);
        let [a, b, c, d] = [0, 2, 4, 6].map(|i| u32::from(self.get16(at + i)));
        (a | b << 16, c | d << 16)
    }

    /// A request to a block device: its header, its data, its outcome.
    fn request(&mut self, kind: u32, sector: u64, data: &[(u64, u32, u16)]) -> u8 {
        let mut header = kind.to_le_bytes().to_vec();
        header.extend([0; 4]);
        header.extend(sector.to_le_bytes());
        assert!(self.ram.write(BUFFERS, &header));
        assert!(self.ram.write(BUFFERS + 16, &[0xee]));
        let mut buffers = vec![(BUFFERS, 16, 0)];
        buffers.extend(data);
        buffers.push((BUFFERS + 16, 1, WRITE));
        self.chain(&buffers);
        self.notify(0);
        let mut status = [0];
        assert!(self.ram.read(BUFFERS + 16, &mut status));
        status[0]
    }
}

fn disk(sectors: u64, read_only: bool) -> Virtio {
    Virtio::Disk {
        disk: 0,
        sectors,
        read_only,
    }
}

fn block(sectors: u64) -> Bench {
    let mut bench = Bench::new(&disk(sectors, false));
    bench.world.disk = (0..sectors * 512).map(|i| (i / 512) as u8).collect();
    bench.initialize();
    bench
}

#[test]
fn registers_say_what_it_is() {
    // 4.2.2: magic, version, device id.
    for (device, id) in [
        (disk(1, false), 2),
        (Virtio::Console, 3),
        (Virtio::Entropy { seed: 1 }, 4),
    ] {
        let bench = Bench::new(&device);
        assert_eq!([0, 4, 8].map(|at| bench.reg(at)), [0x7472_6976, 2, id]);
        assert_eq!(bench.reg(0x0fc), 0, "the configuration never changes");
        assert_eq!(bench.slot.load(0, 1), 0, "registers are words");
    }
    let bench = Bench::new(&disk(0x1_0000_0001, false));
    assert_eq!(bench.slot.load(0x100, 8), 0x1_0000_0001);
    assert_eq!((bench.reg(0x108), bench.reg(0x10c)), (4096, 254));
    assert_eq!((bench.reg(0x114), bench.slot.load(0x104, 1)), (512, 1));
    assert_eq!((bench.reg(0x118), bench.reg(0xffc)), (0, 0));
}

#[test]
fn features_are_agreed_to_only_if_they_were_offered() {
    // 2.2, 3.1.1, 6.1: VERSION_1 is required.
    for (features, agreed) in [
        (1u64 << 32, true),
        (0, false),
        (1 << 32 | 1 << 9, true),
        (1 << 32 | 1 << 28, false),
        (1 << 32 | 1 << 34, false),
    ] {
        let mut bench = Bench::new(&disk(1, true));
        bench.set(0x014, 0);
        assert_eq!(bench.reg(0x010), 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 9);
        bench.set(0x014, 1);
        assert_eq!(bench.reg(0x010), 1);
        bench.set(0x014, 2);
        assert_eq!(bench.reg(0x010), 0);
        bench.set(0x070, 3);
        for half in [0, 1] {
            bench.set(0x024, half);
            bench.set(0x020, (features >> (32 * half)) as u32);
        }
        bench.set(0x070, 11);
        assert_eq!(bench.reg(0x070) & 8 != 0, agreed, "{features:#x}");
    }
}

#[test]
fn queues_have_sizes_that_are_powers_of_two() {
    let mut bench = Bench::new(&disk(1, false));
    for (size, is) in [(0, false), (1, true), (3, false), (256, true), (512, false)] {
        assert_eq!(Queue::is_size(size), is);
    }
    bench.set(0x030, 1);
    assert_eq!(bench.reg(0x034), 0, "no such queue");
    bench.set(0x044, 1);
    assert_eq!(bench.reg(0x044), 0);
    bench.set(0x030, u32::MAX);
    assert_eq!(bench.reg(0x034), 0);
}

#[test]
fn sectors_are_read_and_written() {
    let mut bench = block(8);
    // 5.2.6: the data in two buffers that do not end with sectors.
    let data = [(BUFFERS + 0x100, 700, WRITE), (BUFFERS + 0x800, 324, WRITE)];
    assert_eq!(bench.request(0, 3, &data), 0);
    assert_eq!(bench.used(), (0, 1025));
    let mut read = vec![0; 1024];
    assert!(bench.ram.read(BUFFERS + 0x100, &mut read[..700]));
    assert!(bench.ram.read(BUFFERS + 0x800, &mut read[700..]));
    assert_eq!(read, [vec![3; 512], vec![4; 512]].concat());
    // An interrupt until it is acknowledged.
    assert!(bench.slot.interrupts());
    assert_eq!(bench.reg(0x060), 1);
    bench.set(0x064, 1);
    assert!(!bench.slot.interrupts());
    assert!(bench.ram.write(BUFFERS + 0x100, &[0xaa; 512]));
    assert_eq!(bench.request(1, 7, &[(BUFFERS + 0x100, 512, 0)]), 0);
    assert_eq!(bench.world.disk[7 * 512..], [0xaa; 512]);
    assert_eq!(bench.used(), (0, 1));
    assert_eq!(bench.request(4, 0, &[]), 0, "flush");
    assert_eq!(bench.request(8, 0, &[(BUFFERS + 0x100, 20, WRITE)]), 0);
    let mut name = [0; 20];
    assert!(bench.ram.read(BUFFERS + 0x100, &mut name));
    assert_eq!(&name, b"hartrace0\0\0\0\0\0\0\0\0\0\0\0");
}

#[test]
fn requests_that_cannot_be_served_say_so() {
    let mut bench = block(8);
    let read = |len| [(BUFFERS + 0x100, len, WRITE)];
    let write = |len| [(BUFFERS + 0x100, len, 0)];
    let before = bench.world.disk.clone();
    // Past the end, by one sector or by overflow; not whole sectors.
    for (kind, sector, data) in [
        (0, 8, read(512)),
        (0, 7, read(1024)),
        (0, u64::MAX, read(512)),
        (0, 0, read(511)),
        (1, 8, write(512)),
        (1, u64::MAX - 1, write(512)),
        (1, 0, write(100)),
    ] {
        assert_eq!(bench.request(kind, sector, &data), 1, "{kind} {sector:#x}");
        assert_eq!(bench.reg(0x070), 15);
    }
    // Unsupported: SCSI, discard, and anything else.
    for kind in [2, 11, 13, u32::MAX] {
        assert_eq!(bench.request(kind, 0, &read(512)), 2);
    }
    assert_eq!(bench.world.disk, before);
    let mut read_only = Bench::new(&disk(8, true));
    read_only.world.disk = vec![0; 4096];
    read_only.initialize();
    assert_eq!(read_only.request(1, 0, &write(512)), 1);
    assert_eq!(read_only.request(0, 0, &read(512)), 0);
}

#[test]
fn a_driver_that_breaks_the_rules_needs_a_reset() {
    type Breaks = fn(&mut Bench);
    let rules: [(&str, Breaks); 10] = [
        ("a descriptor that does not exist", |b| b.available(8)),
        ("a loop", |b| {
            b.descriptor(0, BUFFERS, 16, NEXT, 1);
            b.descriptor(1, BUFFERS, 16, NEXT, 0);
            b.available(0);
        }),
        ("an indirect descriptor, which was not agreed to", |b| {
            b.chain(&[(BUFFERS, 16, INDIRECT)]);
        }),
        ("a buffer to read after one to write", |b| {
            b.chain(&[(BUFFERS, 16, WRITE), (BUFFERS, 16, 0)]);
        }),
        ("no room for the outcome", |b| b.chain(&[(BUFFERS, 16, 0)])),
        ("no header", |b| b.chain(&[(BUFFERS, 16, WRITE)])),
        ("a buffer that is not in memory", |b| {
            b.chain(&[(u64::MAX - 7, 16, 0), (BUFFERS, 1, WRITE)]);
        }),
        ("an outcome that is not in memory", |b| {
            b.chain(&[(BUFFERS, 16, 0), (0x2_0000, 1, WRITE)]);
        }),
        ("more than memory can hold", |b| {
            b.chain(&[(BUFFERS, 16, 0), (BUFFERS, u32::MAX, WRITE)]);
        }),
        ("more chains than descriptors", |b| {
            b.put16(AVAILABLE + 2, 9)
        }),
    ];
    for (rule, breaks) in rules {
        let mut bench = block(8);
        breaks(&mut bench);
        bench.notify(0);
        assert_eq!(bench.reg(0x070), 15 | 64, "{rule}");
        assert_eq!(bench.reg(0x060), 2, "{rule}");
        // It does nothing more until then, and works after.
        bench.notify(0);
        assert_eq!(bench.get16(USED + 2), 0, "{rule}");
        bench.initialize();
        bench.count = 0;
        assert_eq!(bench.request(4, 0, &[]), 0, "{rule}");
    }
}

#[test]
fn rings_that_are_not_in_memory_break_a_queue() {
    for area in 0..3 {
        for place in [0x2_0000u64, u64::MAX - 0xfff] {
            let mut bench = block(8);
            bench.chain(&[(BUFFERS, 16, 0), (BUFFERS + 16, 1, WRITE)]);
            bench.set(0x044, 0);
            bench.set(0x080 + 0x10 * area, place as u32);
            bench.set(0x084 + 0x10 * area, (place >> 32) as u32);
            bench.set(0x044, 1);
            bench.notify(0);
            assert_eq!(bench.reg(0x070) & 64, 64, "{area} {place:#x}");
        }
    }
}

#[test]
fn nothing_happens_before_the_driver_is_ready() {
    let mut bench = block(8);
    bench.set(0x070, 11);
    bench.chain(&[(BUFFERS, 16, 0), (BUFFERS + 16, 1, WRITE)]);
    bench.notify(0);
    assert_eq!(bench.get16(USED + 2), 0);
    bench.set(0x070, 15);
    bench.set(0x044, 0);
    bench.notify(0);
    assert_eq!(bench.get16(USED + 2), 0);
    bench.notify(7);
    assert!(!bench.slot.is_notified(), "no such queue");
}

#[test]
fn a_driver_can_do_without_interrupts() {
    let mut bench = block(8);
    bench.put16(AVAILABLE, 1);
    assert_eq!(bench.request(4, 0, &[]), 0);
    assert!(!bench.slot.interrupts());
}

#[test]
fn indexes_wrap() {
    let mut bench = block(8);
    for _ in 0..0x1_0010 {
        assert_eq!(bench.request(4, 0, &[]), 0);
    }
    assert_eq!(bench.get16(USED + 2), 0x10);
}

#[test]
fn entropy_follows_from_its_seed() {
    let fill = |seed| {
        let mut bench = Bench::new(&Virtio::Entropy { seed });
        bench.initialize();
        bench.chain(&[(BUFFERS, 100, WRITE), (BUFFERS + 100, 28, WRITE)]);
        bench.notify(0);
        assert_eq!(bench.used(), (0, 128));
        bench.ram.0[BUFFERS as usize..][..128].to_vec()
    };
    assert_eq!(fill(1), fill(1));
    assert_ne!(fill(1), fill(2));
    let zeros = fill(3).iter().filter(|byte| **byte == 0).count();
    assert!(zeros < 8);
}

#[test]
fn a_console_prints_and_gets_what_is_typed() {
    let mut bench = Bench::new(&Virtio::Console);
    bench.initialize();
    // The receive queue: a buffer waits until something is typed.
    bench.chain(&[(BUFFERS, 5, WRITE)]);
    bench.notify(0);
    assert_eq!(bench.get16(USED + 2), 0);
    assert!(bench.slot.wants_input() && !bench.slot.interrupts());
    bench.world.typed.extend(b"hello!");
    bench.slot.serve(&mut bench.ram, &mut bench.world, false);
    assert_eq!(bench.get16(USED + 2), 0, "not while the guest works");
    bench.slot.serve(&mut bench.ram, &mut bench.world, true);
    assert_eq!(bench.used(), (0, 5));
    assert_eq!(bench.ram.0[BUFFERS as usize..][..5], *b"hello");
    assert!(bench.slot.interrupts());
    assert_eq!(bench.world.typed, [b'!']);
    // The transmit queue, in the same place.
    let mut bench = Bench::new(&Virtio::Console);
    bench.initialize();
    bench.set(0x030, 0);
    bench.set(0x044, 0);
    bench.queue(1, 8);
    assert!(bench.ram.write(BUFFERS, b"to the world"));
    bench.chain(&[(BUFFERS, 3, 0), (BUFFERS + 3, 9, 0)]);
    bench.notify(1);
    assert_eq!(bench.world.printed, b"to the world");
    assert_eq!(bench.used(), (0, 0));
}

#[test]
fn whatever_a_guest_does_work_is_bounded() {
    let mut random = Random::new(23);
    for round in 0..400 {
        let device = match round % 3 {
            0 => disk(64, round % 2 == 0),
            1 => Virtio::Entropy { seed: round },
            _ => Virtio::Console,
        };
        let mut bench = Bench::new(&device);
        bench.world.disk = vec![7; 64 * 512];
        bench.world.typed.extend([b'x'; 1000]);
        bench.initialize();
        // Rings of random words, many of them small enough to make sense.
        for area in [DESCRIPTORS, AVAILABLE, USED] {
            for at in (area..area + 0x1000).step_by(2) {
                let word = match random.below(4) {
                    0 => random.draw() as u16,
                    1 => 0,
                    _ => random.below(9) as u16,
                };
                bench.put16(at, word);
            }
        }
        for _ in 0..20 {
            let offset = 4 * random.below(64);
            let value = match random.below(3) {
                0 => random.draw() as u32,
                _ => random.below(16) as u32,
            };
            if random.below(4) == 0 {
                bench.set(offset, value);
            }
            let before = bench.world.work;
            let index = bench.get16(AVAILABLE + 2);
            bench.put16(AVAILABLE + 2, index.wrapping_add(random.below(4) as u16));
            bench.notify(random.below(2) as u32);
            assert!(bench.world.work - before <= 256 * queue::CHAIN_MAX);
            for offset in (0..0x120).step_by(4) {
                bench.reg(offset);
            }
        }
    }
}
