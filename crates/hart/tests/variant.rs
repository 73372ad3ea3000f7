//! Harts that have less than the whole one, or something of their own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use hartrace_flow::{Effects, Model, Place, RegId, Step};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Modes, Platform, Program, Segment, Variant};
use hartrace_isa::Xlen;
use hartrace_testkit::assemble;

const BASE: u64 = 0x8000_0000;

/// A hart of this kind with a program.
fn machine(variant: Variant, isa: &str, text: &str) -> Machine {
    let code = assemble(BASE, text).unwrap();
    let config = Config {
        isa: isa.to_owned(),
        variant,
        ..Config::new(Platform::Virt, Xlen::Rv32)
    };
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    let program = Program {
        xlen: Xlen::Rv32,
        entry: BASE,
        segments: vec![Segment {
            addr: BASE,
            size: code.bytes.len() as u64,
            data: code.bytes,
        }],
        tohost: None,
        fromhost: None,
    };
    machine.load(program, None).unwrap();
    machine
}

/// Executes so many instructions; how many of them trapped.
fn steps(machine: &mut Machine, count: u32) -> u32 {
    let mut effects = Effects::default();
    let trapped = (0..count).filter(|_| matches!(machine.step(&mut effects), Step::Trap(_)));
    trapped.count() as u32
}

fn x(machine: &Machine, number: u8) -> u64 {
    machine.read(Place::Reg(RegId::X(number))).unwrap()
}

#[test]
fn machine_mode_alone() {
    let variant = Variant {
        modes: Modes::Machine,
        ..Variant::default()
    };
    let mut hart = machine(
        variant,
        "rv32i_zicsr",
        "csrr a0, misa
         csrr a1, mstatus
         li a2, -1
         csrw mstatus, a2
         csrr a3, mstatus
         csrw mstatus, zero
         csrr a4, mstatus
         csrw mie, a2
         csrr a5, mie
         auipc t0, 0
         addi t0, t0, 16
         csrw mepc, t0
         mret
         csrr a6, mstatus",
    );
    assert_eq!(steps(&mut hart, 14), 0);
    assert_eq!(x(&hart, 10), 0x4000_0100, "misa: I");
    assert_eq!(x(&hart, 11), 0x1800, "MPP is M from the start");
    assert_eq!(x(&hart, 13), 0x1888, "MPP, MPIE and MIE are all there is");
    assert_eq!(x(&hart, 14), 0x1800);
    assert_eq!(x(&hart, 15), 0x888, "no interrupts of a supervisor");
    assert_eq!(x(&hart, 16), 0x1880, "mret leaves MPP as it is");
    assert_eq!(hart.read(Place::Mode), Ok(3));
}

#[test]
fn what_belongs_to_other_modes_is_illegal() {
    for (modes, text, traps) in [
        (Modes::Machine, "csrr a0, sstatus", 1),
        (Modes::Machine, "csrr a0, satp", 1),
        (Modes::Machine, "csrr a0, 0x302", 1),
        (Modes::Machine, "csrr a0, 0x306", 1),
        (Modes::MachineUser, "csrr a0, 0x306", 0),
        (Modes::MachineUser, "csrr a0, 0x303", 1),
        (Modes::MachineUser, "sret", 1),
        (Modes::MachineUser, ".word 0x12000073", 1),
        (Modes::All, "csrr a0, 0x302", 0),
        (Modes::All, ".word 0x12000073", 0),
    ] {
        let variant = Variant {
            modes,
            ..Variant::default()
        };
        let mut hart = machine(variant, "rv32i_zicsr", text);
        assert_eq!(steps(&mut hart, 1), traps, "{modes:?} {text}");
    }
}

#[test]
fn a_mode_that_there_is_not_becomes_user_mode() {
    let variant = Variant {
        modes: Modes::MachineUser,
        ..Variant::default()
    };
    let text = "li a0, 0x800
                csrrs zero, mstatus, a0
                csrr a1, mstatus
                csrr a2, misa";
    let mut hart = machine(variant, "rv32i_zicsr", text);
    let most = 6;
    steps(&mut hart, most);
    assert_eq!(x(&hart, 11), 0, "MPP");
    assert_eq!(x(&hart, 12), 0x4010_0100, "misa: I and U");
}

#[test]
fn csrs_and_interrupts_of_its_own() {
    let variant = Variant {
        absent_csrs: vec![0x340],
        plain_csrs: vec![0x7c0],
        interrupts: 1 << 16 | 1 << 30 | 1 << 3,
        reset: vec![(0x305, 0x8000_0101), (0xf12, 22), (0x301, 0x4000_0104)],
        ..Variant::default()
    };
    let text = "csrr a0, mtvec
                csrr a1, 0xf12
                csrr a2, misa
                li a3, -1
                csrw 0x7c0, a3
                csrr a4, 0x7c0
                csrw mie, a3
                csrr a5, mie
                csrw misa, zero
                csrr a6, misa
                csrr a7, mscratch";
    let mut hart = machine(variant, "rv32imac_zicsr", text);
    assert_eq!(steps(&mut hart, 10), 0);
    assert_eq!(x(&hart, 10), 0x8000_0101, "mtvec after reset");
    assert_eq!((x(&hart, 11), x(&hart, 12)), (22, 0x4000_0104));
    assert_eq!(x(&hart, 14), 0xffff_ffff);
    assert_eq!(x(&hart, 15), 0x4001_0aaa);
    assert_eq!(x(&hart, 16), 0x4000_0104, "misa stays as it is");
    assert_eq!(steps(&mut hart, 1), 1, "mscratch is missing");
    // A verifier sees them too, and a reset brings back the first values.
    assert_eq!(hart.read(Place::Csr(0x7c0)), Ok(0xffff_ffff));
    assert!(hart.read(Place::Csr(0x340)).is_err());
    assert_eq!(hart.write(Place::Csr(0x7c0), 5), Ok(()));
    assert_eq!(hart.read(Place::Csr(0x7c0)), Ok(5));
    hart.write(Place::Csr(0x305), 0).unwrap();
    Model::reset(&mut hart);
    assert_eq!(hart.read(Place::Csr(0x7c0)), Ok(0));
    assert_eq!(hart.read(Place::Csr(0x305)), Ok(0x8000_0101));
}
