//! Tests of what happens at the edges: of the address space, of time, of
//! limits, of what is remembered.

use hartrace_flow::{Cause, Effects, HartId, Model, Observer, Place, RegId, Step, Trap, Wants};
use hartrace_isa::Xlen;

use crate::host::Host;
use crate::{Config, Machine, Platform, Program, Region, Segment, Stop};

const RAM: (u64, u64) = (0x8000_0000, 0x1_0000);
const TOP: (u64, u64) = (0xffff_ffff_ffff_0000, 0x1_0000);
const NOP: u32 = 0x13;

/// Keeps every step.
#[derive(Default)]
struct All(Vec<(Step, Effects)>);

impl Observer for All {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.0.push((*step, *effects));
    }
}

/// What a test starts from: a machine with code at the start of its RAM.
struct Start {
    config: Config,
    tohost: Option<u64>,
}

impl Start {
    fn new(platform: Platform, xlen: Xlen, ram: (u64, u64)) -> Start {
        let mut config = Config::new(platform, xlen);
        let (base, size) = ram;
        config.memory = vec![Region { base, size }];
        let tohost = None;
        Start { config, tohost }
    }

    fn virt(ram: (u64, u64)) -> Start {
        Start::new(Platform::Virt, Xlen::Rv64, ram)
    }

    fn tohost(mut self, addr: u64) -> Start {
        self.tohost = Some(addr);
        self
    }

    fn isa(mut self, isa: &str) -> Start {
        self.config.isa = isa.to_owned();
        self
    }

    /// Loaded, and at the code.
    fn load(self, code: &[u32]) -> Machine {
        let data: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let addr = self.config.memory[0].base;
        let isa = self.config.validate().unwrap();
        let mut machine = Machine::new(self.config, Host::silent()).unwrap();
        let size = data.len() as u64;
        let program = Program {
            xlen: isa.xlen(),
            entry: addr,
            segments: vec![Segment { addr, size, data }],
            tohost: self.tohost,
            fromhost: None,
        };
        machine.load(program, None).unwrap();
        machine.write(Place::Pc, addr).unwrap();
        machine
    }
}

fn set_x(machine: &mut Machine, number: u8, value: u64) {
    machine.write(Place::Reg(RegId::X(number)), value).unwrap();
}

/// The trap of the next step.
fn trap(machine: &mut Machine) -> Trap {
    match machine.step(&mut Effects::default()) {
        Step::Trap(step) => step.trap,
        step => panic!("{step:x?}"),
    }
}

#[test]
fn tohost_may_be_the_last_word_there_is() {
    // sd x1, -8(x0)
    let mut machine = Start::virt(TOP).tohost(u64::MAX - 7).load(&[0xfe10_3c23]);
    set_x(&mut machine, 1, 7 << 1 | 1);
    assert_eq!(machine.run(100, &mut All::default()), Stop::Exit(7));
}

#[test]
fn a_tohost_over_the_end_hurts_nobody() {
    // sd x1, -8(x0), in a page that is watched
    let code = [0xfe10_3c23, NOP, NOP];
    let mut machine = Start::virt(TOP).tohost(u64::MAX - 2).load(&code);
    assert_eq!(machine.run(3, &mut All::default()), Stop::Limit);
}

#[test]
fn behind_the_last_address_of_rv32_comes_the_first() {
    // lw x1, -2(x0)
    let ram = (0xffff_f000, 0x2000);
    let mut machine = Start::new(Platform::Virt, Xlen::Rv32, ram).load(&[0xffe0_2083]);
    let trap = trap(&mut machine);
    assert_eq!(trap.cause, Cause::Exception(Some(5)));
    assert_eq!(trap.tval, Some(0));
}

#[test]
fn a_call_to_the_host_needs_all_its_instructions() {
    let mut machine = Start::virt(TOP).load(&[NOP]);
    // slli x0, x0, 31 and ebreak; of srai x0, x0, 7 only the first half fits.
    for (addr, value) in [(-10i64, 0x01f0_1013), (-6, 0x0010_0073), (-2, 0x5013)] {
        let size = if addr == -2 { 2 } else { 4 };
        let addr = addr as u64;
        machine.write(Place::Memory { addr, size }, value).unwrap();
    }
    machine.write(Place::Pc, (-6i64) as u64).unwrap();
    let mut all = All::default();
    machine.run(1, &mut all);
    let Step::Trap(trap) = all.0[0].0 else {
        panic!("{:x?}", all.0[0]);
    };
    assert_eq!(trap.trap.cause, Cause::Exception(Some(3)));
}

#[test]
fn a_store_that_traps_stores_nothing() {
    // sd x2, 0(x1), four bytes before the end of RAM
    let mut machine = Start::virt(RAM).load(&[0x0020_b023]);
    let end = RAM.0 + RAM.1;
    set_x(&mut machine, 1, end - 4);
    set_x(&mut machine, 2, u64::MAX);
    let trap = trap(&mut machine);
    assert_eq!(trap.cause, Cause::Exception(Some(7)));
    assert_eq!(trap.tval, Some(end));
    let (addr, size) = (end - 4, 4);
    assert_eq!(machine.read(Place::Memory { addr, size }), Ok(0));
}
