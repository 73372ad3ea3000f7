//! Systems and devices together: the places of firmware and kernels, what they find in
//! registers, and a program that uses every device by interrupt.

use std::cell::RefCell;
use std::io::{self, Cursor, Write};
use std::rc::Rc;

use hartrace_flow::{Effects, RegId, Signal, Step};
use hartrace_hart::host::{Disk, Host, Note, Writes};
use hartrace_hart::{
    BootError, BootFiles, BootPart, Config, Machine, Platform, Program, Region, Stop, System,
    Virtio,
};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, Recorder, csr, virt};

const MIB: u64 = 1 << 20;
const PLIC: u64 = 0x0c00_0000;
const UART: u64 = 0x1000_0000;
const SEIP: u64 = 1 << 9;
const MEIP: u64 = 1 << 11;

fn machine(size: u64) -> Config {
    Config {
        memory: vec![Region { base: BASE, size }],
        ..Config::new(Platform::Virt, Xlen::Rv64)
    }
}

/// `j .`
const SPIN: [u8; 4] = [0x6f, 0, 0, 0];

#[test]
fn parts_are_where_qemu_has_them() {
    let files = BootFiles {
        bios: Some(&[0x13; 0x4_2000]),
        kernel: Some(&SPIN),
        initrd: Some(&[7; 5000]),
        append: Some("quiet"),
        dtb: None,
    };
    let place = |size: u64| {
        let system = System::new(&machine(size), &files).unwrap();
        let parts = [
            BootPart::Bios,
            BootPart::Kernel,
            BootPart::Initrd,
            BootPart::Tree,
        ];
        parts.map(|part| system.place(part).unwrap() - BASE)
    };
    assert_eq!(place(512 * MIB), [0, 2 * MIB, 130 * MIB, 510 * MIB]);
    assert_eq!(place(64 * MIB), [0, 2 * MIB, 34 * MIB, 62 * MIB]);
    // Not above 3 GiB, where a kernel does not see it yet.
    assert_eq!(place(2048 * MIB), [0, 2 * MIB, 130 * MIB, 1022 * MIB]);
    // Without firmware a kernel starts where RAM does.
    let alone = BootFiles {
        bios: None,
        ..files
    };
    let system = System::new(&machine(64 * MIB), &alone).unwrap();
    assert_eq!(system.place(BootPart::Kernel), Some(BASE));
}

#[test]
fn firmware_finds_the_tree_and_the_kernel_in_registers() {
    // OpenSBI, fw_dynamic: magic, version, address, mode, options, hart.
    let files = BootFiles {
        bios: Some(&SPIN),
        kernel: Some(&SPIN),
        append: Some("console=ttyS0"),
        ..BootFiles::default()
    };
    let config = machine(64 * MIB);
    let system = System::new(&config, &files).unwrap();
    let mut b = Bench::with_host(config, Host::silent());
    b.m.boot(system.clone()).unwrap();
    assert_eq!((b.m.pc(), b.x(A0)), (BASE, 0));
    let tree = system.place(BootPart::Tree).unwrap();
    assert_eq!(b.x(A1), tree);
    assert_eq!(b.mem(tree, 4), 0xedfe_0dd0);
    let words: Vec<u64> = (0..6).map(|i| b.mem(b.x(A2) + 8 * i, 8)).collect();
    assert_eq!(words, [0x4942_534f, 2, BASE + 2 * MIB, 1, 0, 0]);
    assert_eq!(b.run(10), Stop::Spins { pc: BASE });
    // After a reset it is all there again.
    b.m.reset();
    assert_eq!((b.m.pc(), b.x(A1)), (BASE, tree));
}

/// Firmware that counts up a word of its own and asks for a reset.
fn restless() -> Vec<u8> {
    const WORD: i32 = 64;
    let [high, low] = li32(A0, 0x7777);
    let [finisher, _] = li32(A2, 0x0010_0000);
    let code = [
        lw(A3, WORD, A4),
        addi(A3, A3, 1),
        sw(A3, WORD, A4),
        high,
        low,
        finisher,
        sw(A0, 0, A2),
        jal(ZERO, 0),
    ];
    // The start of RAM as a0 to a7 do not have it.
    let [base, _] = li32(A4, BASE as u32);
    let short = [base, slli(A4, A4, 32), srli(A4, A4, 32)];
    let code = short.iter().chain(&code);
    let mut bytes: Vec<u8> = code.flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(WORD as usize + 4, 0);
    bytes
}

#[test]
fn a_system_that_asks_for_a_reset_starts_again() {
    let bios = restless();
    let files = BootFiles {
        bios: Some(&bios),
        ..BootFiles::default()
    };
    for harts in [1, 2] {
        let config = Config {
            harts,
            ..machine(64 * MIB)
        };
        let system = System::new(&config, &files).unwrap();
        let mut b = Bench::with_host(config, Host::silent());
        b.m.boot(system).unwrap();
        let steps = b.steps(100);
        assert_eq!(b.m.instructions(), 100);
        let starts = |(step, _): &&(Step, Effects)| matches!(step, Step::Insn(i) if i.pc == BASE);
        let resets = |(step, _): &&(Step, Effects)| *step == Step::Signal(Signal::Reset);
        let (starts, resets) = (steps.iter().filter(starts), steps.iter().filter(resets));
        let (starts, resets) = (starts.count(), resets.count());
        assert!(starts >= 9, "{starts}");
        assert_eq!(resets, (starts - 1) * harts as usize);
        // Memory is as it was, but time goes on.
        let counted = steps.iter().filter_map(|(_, effects)| {
            let written = effects.regs.iter().find(|write| write.reg == RegId::X(13));
            written.map(|write| write.value)
        });
        assert!(counted.clone().all(|value| value <= 1));
        assert!(counted.clone().any(|value| value == 1));
        let times = steps.iter().filter_map(|(step, _)| match step {
            Step::Insn(insn) => Some(insn.time),
            _ => None,
        });
        assert!(times.is_sorted());
    }
}

#[test]
fn a_reset_can_end_the_run_of_a_system() {
    let bios = restless();
    let files = BootFiles {
        bios: Some(&bios),
        ..BootFiles::default()
    };
    let config = Config {
        reboot: false,
        ..machine(64 * MIB)
    };
    let system = System::new(&config, &files).unwrap();
    let mut b = Bench::with_host(config, Host::silent());
    b.m.boot(system).unwrap();
    assert_eq!(b.run(1000), Stop::Exit(0));
    assert_eq!(b.m.host().take_notes(), [Note::Reset]);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let kernel = |kernel: &'static [u8], initrd| BootFiles {
        kernel: Some(kernel),
        initrd,
        ..BootFiles::default()
    };
    let refused = |size, files: &BootFiles<'_>| System::new(&machine(size), files).unwrap_err();
    static BIG: [u8; 5 * MIB as usize] = [0; 5 * MIB as usize];
    assert_eq!(refused(64 * MIB, &BootFiles::default()), BootError::Nothing);
    assert_eq!(
        refused(64 * MIB, &kernel(b"", None)),
        BootError::Empty(BootPart::Kernel)
    );
    assert!(matches!(
        refused(4 * MIB, &kernel(&BIG, None)),
        BootError::Outside(BootPart::Kernel, _)
    ));
    assert!(matches!(
        refused(8 * MIB, &kernel(&SPIN, Some(&BIG))),
        BootError::NoRoom(BootPart::Initrd, _)
    ));
    // The tree is in the last 2 MiB, where the kernel ends.
    assert!(matches!(
        refused(6 * MIB, &kernel(&BIG, None)),
        BootError::Overlap(BootPart::Tree, _, BootPart::Kernel, _)
    ));
    for (bytes, how) in [
        (&b"\x1f\x8b\x08"[..], "gzip"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ] {
        assert_eq!(
            refused(64 * MIB, &kernel(bytes, None)),
            BootError::Compressed(BootPart::Kernel, how)
        );
    }
    let nul = BootFiles {
        append: Some("a\0b"),
        ..kernel(&SPIN, None)
    };
    assert_eq!(refused(64 * MIB, &nul), BootError::CommandLine);
    // Linux's Image says how much memory it wants.
    let mut image = [0; 64];
    image[0x10..0x18].copy_from_slice(&(100 * MIB).to_le_bytes());
    image[0x38..0x3c].copy_from_slice(b"RSC\x05");
    let wants = BootFiles {
        kernel: Some(&image),
        ..BootFiles::default()
    };
    assert!(matches!(refused(64 * MIB, &wants), BootError::Outside(..)));
    assert!(System::new(&machine(128 * MIB), &wants).is_ok());
}

#[test]
fn seip_is_the_sum_of_what_is_written_and_the_signal() {
    // Privileged 3.1.9: the signal does not take part in CSRRS and CSRRC.
    let mut b = Bench::new(virt(Xlen::Rv64));
    b.set_x(A1, UART);
    b.set_x(A2, PLIC);
    b.set_x(A0, 1 << 10);
    b.set_x(A3, PLIC + 0x2080);
    b.one(sw(A0, 0, A3));
    b.set_x(A0, 1);
    b.set_x(A3, PLIC + 40);
    b.one(sw(A0, 0, A3));
    // The transmitter is empty: supervisor external interrupt.
    b.set_x(A0, 2);
    b.one(sb(A0, 1, A1));
    assert_eq!(b.csr(csr::MIP) & (SEIP | MEIP), SEIP);
    b.set_x(A0, 1 << 5);
    b.one(csrrs(A4, csr::MIP, A0));
    assert_eq!(b.x(A4) & SEIP, SEIP, "it is read");
    b.one(sb(ZERO, 1, A1));
    b.set_x(A3, PLIC + 0x20_1004);
    b.one(lw(A5, 0, A3));
    assert_eq!(b.x(A5), 10, "claimed");
    b.one(csrrs(A4, csr::MIP, ZERO));
    assert_eq!(b.x(A4) & (SEIP | 1 << 5), 1 << 5, "it was not written");
    // What a program writes stays until it writes again.
    b.set_x(A0, SEIP);
    b.one(csrrs(A4, csr::MIP, A0));
    b.one(csrrs(A4, csr::MIP, ZERO));
    assert_eq!(b.x(A4) & SEIP, SEIP);
    b.one(csrrc(A4, csr::MIP, A0));
    b.one(csrrs(A4, csr::MIP, ZERO));
    assert_eq!(b.x(A4) & SEIP, 0);
}

/// An output that can be looked at.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<u8>>>);

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The program of the repository with a disk and something typed.
fn devices(seen: &Seen, harts: u32) -> Machine {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../programs/devices/devices-rv64gc.elf"
    );
    let program = Program::from_elf(&std::fs::read(path).unwrap()).unwrap();
    let mut image = b"a line on the disk\n".to_vec();
    image.resize(8 * 512, 0);
    let disk = Disk::new(Box::new(Cursor::new(image)), Writes::Forgotten).unwrap();
    let config = Config {
        harts,
        virtio: vec![
            Virtio::Disk {
                disk: 0,
                sectors: 8,
                read_only: false,
            },
            Virtio::Entropy { seed: 1 },
        ],
        ..machine(16 * MIB)
    };
    let host = Host::new(
        Box::new(Cursor::new(b"one\ntwo\nthree\nend\n".to_vec())),
        Box::new(seen.clone()),
        Box::new(io::sink()),
    );
    let mut machine = Machine::new(config, host.with_disks(vec![disk])).unwrap();
    machine.load(program, None).unwrap();
    machine
}

#[test]
fn devices_do_the_same_however_the_run_is_cut() {
    let run = |slice: u64| {
        let seen = Seen::default();
        let mut machine = devices(&seen, 1);
        let stop = loop {
            let stop = machine.run(slice, &mut crate::bench::Recorder::default());
            if stop != Stop::Limit {
                break stop;
            }
        };
        assert_eq!(stop, Stop::Exit(0));
        machine.host().finish().unwrap();
        let output = String::from_utf8(seen.0.borrow().clone()).unwrap();
        (output, machine.instructions(), machine.cycles())
    };
    let whole = run(u64::MAX);
    assert!(whole.0.contains("\nowt\neerht\n3 lines\n"), "{}", whole.0);
    for slice in [1, 7, 1000] {
        assert_eq!(run(slice), whole, "{slice}");
    }
}

#[test]
fn what_devices_write_to_memory_is_reported() {
    // The line from the disk arrives by a store that no instruction makes.
    let seen = Seen::default();
    let mut machine = devices(&seen, 1);
    let mut recorder = Recorder::default();
    assert_eq!(machine.run(u64::MAX, &mut recorder), Stop::Exit(0));
    let updates = recorder.0.iter().filter(|(step, _)| {
        matches!(
            step,
            hartrace_flow::Step::Signal(hartrace_flow::Signal::Update)
        )
    });
    let line = u64::from_le_bytes(*b"a line o");
    let found = updates.flat_map(|(_, effects)| effects.accesses.iter());
    assert!(found.into_iter().any(|access| access.data == Some(line)));
}
