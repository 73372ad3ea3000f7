//! What Spike does where an implementation may choose, or where it is easy to
//! do something else: small programs, and the registers they end with.

use hartrace_flow::{Effects, HartId, Observer, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program, Segment};
use hartrace_isa::Xlen;

const START: u64 = 0x8000_0000;

struct Nobody;

impl Observer for Nobody {
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
    machine.run(20_000, &mut Nobody);
    machine
}

const A0: u8 = 10;
const A1: u8 = 11;
const A2: u8 = 12;

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
