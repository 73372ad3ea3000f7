//! What Spike does where an implementation may choose, or where it is easy to
//! do something else: small programs, and the registers they end with.

#![allow(clippy::unwrap_used)]

use hartrace_flow::{Effects, HartId, Observer, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program, Segment};
use hartrace_isa::Xlen;

const START: u64 = 0x8000_0000;

struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// A machine with a program of so many words at the start of its RAM.
fn machine(platform: Platform, isa: &str, code: &[u32]) -> Machine {
    let config = Config {
        isa: isa.to_owned(),
        ..Config::new(platform, Xlen::Rv64)
    };
    let data: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let program = Program {
        xlen: Xlen::Rv64,
        entry: START,
        segments: vec![Segment {
            addr: START,
            size: data.len() as u64,
            data,
        }],
        tohost: None,
        fromhost: None,
    };
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    machine.load(program, None).unwrap();
    machine
}

/// Runs a program to the jump to itself at its end.
fn run(platform: Platform, isa: &str, code: &[u32]) -> Machine {
    let mut machine = machine(platform, isa, code);
    machine.run(20_000, &mut NoObserver);
    machine
}

const A0: u8 = 10;
const A1: u8 = 11;
const A2: u8 = 12;
const A3: u8 = 13;
const A4: u8 = 14;
const A5: u8 = 15;

/// Classes of a register before and after it is written.
const UNWRITTEN: &[u32] = &[
    0x0000_62b7, // 00: lui t0,0x6
    0x3002_a073, // 04: csrs mstatus,t0
    0xe200_9553, // 08: fclass.d a0,ft1
    0xe200_85d3, // 0c: fmv.x.d a1,ft1
    0xf200_00d3, // 10: fmv.d.x ft1,zero
    0xe200_9653, // 14: fclass.d a2,ft1
    0x0000_006f, // 18: j 18
];

#[test]
fn a_float_register_never_written_is_no_double() {
    const ZERO: u64 = 0x10;
    const QUIET_NAN: u64 = 0x200;
    let spike = run(Platform::Spike, "rv64gc", UNWRITTEN);
    assert_eq!(
        [spike.x(A0), spike.x(A1), spike.x(A2)],
        [QUIET_NAN, 0, ZERO]
    );
    let virt = run(Platform::Virt, "rv64gc", UNWRITTEN);
    assert_eq!([virt.x(A0), virt.x(A1), virt.x(A2)], [ZERO, 0, ZERO]);
}

/// Store-conditionals over the end of a region: without a reservation, and
/// with one of four bytes.
const CUT_CONDITIONAL: &[u32] = &[
    0x0000_0297, // 00: auipc t0,0x0
    0x0482_8313, // 04: add t1,t0,72
    0x3053_1073, // 08: csrw mtvec,t1
    0x0000_1337, // 0c: lui t1,0x1
    0x0062_82b3, // 10: add t0,t0,t1
    0x0022_d313, // 14: srl t1,t0,0x2
    0x3b03_1073, // 18: csrw pmpaddr0,t1
    0xfff0_0313, // 1c: li t1,-1
    0x3b13_1073, // 20: csrw pmpaddr1,t1
    0x0000_2337, // 24: lui t1,0x2
    0xf173_0313, // 28: add t1,t1,-233
    0x3a03_1073, // 2c: csrw pmpcfg0,t1
    0x1802_b52f, // 30: sc.d a0,zero,(t0)
    0x1002_a3af, // 34: lr.w t2,(t0)
    0x1802_b5af, // 38: sc.d a1,zero,(t0)
    0x0000_0013, // 3c: nop
    0x0000_0013, // 40: nop
    0x0000_0013, // 44: nop
    0x3420_2673, // 48: csrr a2,mcause
    0x3410_26f3, // 4c: csrr a3,mepc
    0x0000_006f, // 50: j 50
];

#[test]
fn a_store_conditional_that_fails_needs_no_right_to_its_second_half() {
    let spike = run(Platform::Spike, "rv64gc", CUT_CONDITIONAL);
    assert_eq!(spike.x(A0), 1, "fails, does not trap");
    assert_eq!([spike.x(A2), spike.x(A3)], [7, START + 0x38]);
}

/// Stores to a region of four bytes, behind it, and over its end, in machine
/// mode.
const CUT_STORE: &[u32] = &[
    0x0000_0297, // 00: auipc t0,0x0
    0x0402_8313, // 04: add t1,t0,64
    0x3053_1073, // 08: csrw mtvec,t1
    0x0000_1337, // 0c: lui t1,0x1
    0x0062_82b3, // 10: add t0,t0,t1
    0x0022_d313, // 14: srl t1,t0,0x2
    0x3b03_1073, // 18: csrw pmpaddr0,t1
    0xfff0_0313, // 1c: li t1,-1
    0x3b13_1073, // 20: csrw pmpaddr1,t1
    0x0000_2337, // 24: lui t1,0x2
    0xf173_0313, // 28: add t1,t1,-233
    0x3a03_1073, // 2c: csrw pmpcfg0,t1
    0x0062_a023, // 30: sw t1,0(t0)
    0x0062_a223, // 34: sw t1,4(t0)
    0x0062_b023, // 38: sd t1,0(t0)
    0x0000_0013, // 3c: nop
    0x3420_2673, // 40: csrr a2,mcause
    0x3410_26f3, // 44: csrr a3,mepc
    0x0000_006f, // 48: j 48
];

#[test]
fn no_store_is_done_that_a_region_holds_a_part_of() {
    for platform in Platform::ALL {
        let machine = run(platform, "rv64gc", CUT_STORE);
        assert_eq!([machine.x(A2), machine.x(A3)], [7, START + 0x38]);
    }
}

/// A return in `mtimecmp`, and zeros in the software interrupts.
const CODE_IN_DEVICE: &[u32] = &[
    0x0000_0297, // 00: auipc t0,0x0
    0x02c2_8313, // 04: add t1,t0,44
    0x3053_1073, // 08: csrw mtvec,t1
    0x0200_42b7, // 0c: lui t0,0x2004
    0x0000_8337, // 10: lui t1,0x8
    0x0673_0313, // 14: add t1,t1,103
    0x0062_b023, // 18: sd t1,0(t0)
    0x0002_80e7, // 1c: jalr t0
    0x0010_0513, // 20: li a0,1
    0x0200_02b7, // 24: lui t0,0x2000
    0x0002_8067, // 28: jr t0
    0x3420_2673, // 2c: csrr a2,mcause
    0x3410_26f3, // 30: csrr a3,mepc
    0x0000_006f, // 34: j 34
];

#[test]
fn code_can_be_in_a_device() {
    let spike = run(Platform::Spike, "rv64gc", CODE_IN_DEVICE);
    assert_eq!(spike.x(A0), 1, "came back");
    assert_eq!([spike.x(A2), spike.x(A3)], [2, 0x0200_0000]);
}

/// A store over the end of a page into one that must not be written.
const HALF_A_STORE: &[u32] = &[
    0x0000_0297, // 00: auipc t0,0x0
    0x0302_8313, // 04: add t1,t0,48
    0x3053_1073, // 08: csrw mtvec,t1
    0x0000_2337, // 0c: lui t1,0x2
    0x0062_82b3, // 10: add t0,t0,t1
    0x0022_d313, // 14: srl t1,t0,0x2
    0x3b03_1073, // 18: csrw pmpaddr0,t1
    0x0910_0313, // 1c: li t1,145
    0x3a03_1073, // 20: csrw pmpcfg0,t1
    0xfff0_0313, // 24: li t1,-1
    0xfe62_af23, // 28: sw t1,-2(t0)
    0x0000_0013, // 2c: nop
    0x3420_2673, // 30: csrr a2,mcause
    0x3430_26f3, // 34: csrr a3,mtval
    0xffe2_d703, // 38: lhu a4,-2(t0)
    0x0002_d783, // 3c: lhu a5,0(t0)
    0x0000_006f, // 40: j 40
];

#[test]
fn a_misaligned_store_leaves_its_first_page_stored() {
    let spike = run(Platform::Spike, "rv64gc_zicclsm", HALF_A_STORE);
    assert_eq!([spike.x(A2), spike.x(A3)], [7, START + 0x2000]);
    assert_eq!([spike.x(A4), spike.x(A5)], [0xffff, 0]);
}

/// A software interrupt, instructions that go on, and one that lets it in.
const SOFTWARE_INTERRUPT: &[u32] = &[
    0x0000_0297, // 00: auipc t0,0x0
    0x0382_8313, // 04: add t1,t0,56
    0x3053_1073, // 08: csrw mtvec,t1
    0x3044_5073, // 0c: csrw mie,8
    0x3004_5073, // 10: csrw mstatus,8
    0x0200_02b7, // 14: lui t0,0x2000
    0x0010_0313, // 18: li t1,1
    0x0062_a023, // 1c: sw t1,0(t0)
    0x0000_0013, // 20: nop
    0x0000_0013, // 24: nop
    0x0000_0013, // 28: nop
    0x0000_0013, // 2c: nop
    0x3400_25f3, // 30: csrr a1,mscratch
    0x0000_0013, // 34: nop
    0x3410_2573, // 38: csrr a0,mepc
    0x0000_006f, // 3c: j 3c
];

#[test]
fn running_in_slices_changes_nothing() {
    for slice in [1, 2, 3, 1000] {
        let mut spike = machine(Platform::Spike, "rv64gc", SOFTWARE_INTERRUPT);
        while spike.instructions() < 100 {
            spike.run(slice, &mut NoObserver);
        }
        assert_eq!(spike.x(A0), START + 0x30, "slices of {slice}");
    }
}

/// A supervisor that loads, calls machine mode, which takes the page away and
/// fences nothing, and loads again.
const CHANGED_PAGE: &[u32] = &[
    0x0000_0417, // 00: auipc s0,0x0
    0x0744_0313, // 04: add t1,s0,116
    0x3053_1073, // 08: csrw mtvec,t1
    0x0000_1337, // 0c: lui t1,0x1
    0x0064_04b3, // 10: add s1,s0,t1
    0x0024_5313, // 14: srl t1,s0,0x2
    0x0cf3_0313, // 18: add t1,t1,207
    0x0064_b823, // 1c: sd t1,16(s1)
    0x0064_b423, // 20: sd t1,8(s1)
    0x00c4_d313, // 24: srl t1,s1,0xc
    0x0080_0393, // 28: li t2,8
    0x03c3_9393, // 2c: sll t2,t2,0x3c
    0x0073_6333, // 30: or t1,t1,t2
    0x1803_1073, // 34: csrw satp,t1
    0x0000_1337, // 38: lui t1,0x1
    0x0013_5313, // 3c: srl t1,t1,0x1
    0x3003_1073, // 40: csrw mstatus,t1
    0x0544_0313, // 44: add t1,s0,84
    0x3413_1073, // 48: csrw mepc,t1
    0x4000_22b7, // 4c: lui t0,0x40002
    0x3020_0073, // 50: mret
    0x0002_b503, // 54: ld a0,0(t0)
    0x0002_a003, // 58: lw zero,0(t0)
    0x0000_0073, // 5c: ecall
    0x0002_b583, // 60: ld a1,0(t0)
    0x0000_0013, // 64: nop
    0x0000_0013, // 68: nop
    0x0000_006f, // 6c: j 6c
    0x0000_0013, // 70: nop
    0x0004_b423, // 74: sd zero,8(s1)
    0x3420_2673, // 78: csrr a2,mcause
    0x3410_2373, // 7c: csrr t1,mepc
    0x0043_0313, // 80: add t1,t1,4
    0x3413_1073, // 84: csrw mepc,t1
    0x0016_8693, // 88: add a3,a3,1
    0x3020_0073, // 8c: mret
];

#[test]
fn a_trap_makes_changes_of_page_tables_seen() {
    let spike = run(Platform::Spike, "rv64gc", CHANGED_PAGE);
    assert_eq!(spike.x(A3), 2, "a call and a fault");
    assert_eq!(spike.x(A2), 13);
}
