//! Tests of what happens at the edges: of the address space, of time, of
//! limits, of what is remembered.

use hartrace_flow::{
    Cause, Effects, HartId, Model, Observer, Place, RegId, RegWrite, Step, Trap, Wants,
};
use hartrace_isa::Xlen;

use crate::code::Code;
use crate::host::Host;
use crate::{
    Config, Costs, Machine, Memory, MemoryError, Platform, Program, Region, Segment, Stop,
};

const RAM: (u64, u64) = (0x8000_0000, 0x1_0000);
const TOP: (u64, u64) = (0xffff_ffff_ffff_0000, 0x1_0000);
const NOP: u32 = 0x13;
const WFI: u32 = 0x1050_0073;

/// Keeps every step.
#[derive(Default)]
struct All(Vec<(Step, Effects)>);

impl Observer for All {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.0.push((*step, *effects));
    }
}

/// The registers that transfers write.
#[derive(Default)]
struct Links(Vec<RegWrite>);

impl Observer for Links {
    const WANTS: Wants = Wants::TRANSFERS.with(Wants::REGS);

    fn step(&mut self, _: HartId, _: &Step, effects: &Effects) {
        self.0.extend(effects.regs.iter());
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

fn set_csr(machine: &mut Machine, csr: u16, value: u64) {
    machine.write(Place::Csr(csr), value).unwrap();
}

/// The steps of so many instructions, in one go or one by one.
fn steps(machine: &mut Machine, count: u64, one_by_one: bool) -> Vec<(Step, Effects)> {
    let mut all = All::default();
    if one_by_one {
        for _ in 0..count {
            assert_eq!(machine.run(1, &mut all), Stop::Limit);
        }
    } else {
        assert_eq!(machine.run(count, &mut all), Stop::Limit);
    }
    all.0
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
fn nobody_waits_for_the_end_of_time() {
    // sd x2, 0(x1); wfi
    for time in [u64::MAX / 100, u64::MAX / 100 - 1, u64::MAX / 200 + 1] {
        let mut machine = Start::virt(RAM).load(&[0x0020_b023, WFI, NOP, NOP]);
        set_x(&mut machine, 1, 0x0200_4000);
        set_x(&mut machine, 2, time);
        set_csr(&mut machine, 0x304, 1 << 7);
        let pc = RAM.0 + 8;
        let stop = machine.run(100, &mut All::default());
        assert_eq!(stop, Stop::Asleep { pc }, "{time:#x}");
    }
}

#[test]
fn a_due_timer_is_seen_however_the_run_is_cut() {
    // sd x2, 0(x1), time to pass, csrr x3, mip
    let mut code = vec![0x0020_b023];
    code.extend([NOP; 40]);
    code.push(0x3440_21f3);
    let run = |one_by_one| {
        let mut start = Start::virt(RAM);
        start.config.cycles_per_tick = 10;
        let mut machine = start.load(&code);
        set_x(&mut machine, 1, 0x0200_4000);
        set_x(&mut machine, 2, 3);
        let steps = steps(&mut machine, code.len() as u64, one_by_one);
        assert_eq!(machine.x(3), 1 << 7);
        steps
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn spike_looks_for_interrupts_at_the_same_places_however_the_run_is_cut() {
    // sw x2, 0(x1) to msip; the interrupt is taken at the next CSR access
    let mut code = vec![0x0020_a023];
    code.extend([NOP; 9]);
    code.extend([0x3400_21f3, NOP, NOP]);
    let run = |one_by_one| {
        let mut machine = Start::new(Platform::Spike, Xlen::Rv64, RAM).load(&code);
        set_x(&mut machine, 1, 0x0200_0000);
        set_x(&mut machine, 2, 1);
        set_csr(&mut machine, 0x304, 1 << 3);
        set_csr(&mut machine, 0x300, 0xa_0000_0008);
        set_csr(&mut machine, 0x305, RAM.0 + 40);
        steps(&mut machine, 12, one_by_one)
    };
    let whole = run(false);
    let Step::Trap(trap) = whole[10].0 else {
        panic!("{:x?}", whole[10]);
    };
    assert_eq!(trap.trap.cause, Cause::Interrupt(Some(3)));
    assert_eq!(whole, run(true));
}

#[test]
fn nothing_happens_within_a_limit_of_nothing() {
    for platform in Platform::ALL {
        // sd x2, 0(x1); wfi
        let start = Start::new(platform, Xlen::Rv64, RAM);
        let mut machine = start.load(&[0x0020_b023, WFI, NOP, NOP]);
        set_x(&mut machine, 1, 0x0200_4000);
        set_x(&mut machine, 2, 1 << 20);
        set_csr(&mut machine, 0x304, 1 << 7);
        assert_eq!(machine.run(2, &mut All::default()), Stop::Limit);
        let (instructions, cycles) = (machine.instructions(), machine.cycles());
        assert_eq!(machine.run(0, &mut All::default()), Stop::Limit);
        assert_eq!(machine.instructions(), instructions);
        assert_eq!(machine.cycles(), cycles);
    }
}

#[test]
fn transfers_have_only_effects_of_their_own() {
    // addi x5, x5, 1, twenty times, and a store to this page; jal x1, .+4
    let mut code = vec![0x0012_8293; 20];
    code.extend([0x0061_3023, 0x0040_00ef, NOP]);
    let mut machine = Start::virt(RAM).load(&code);
    set_x(&mut machine, 2, RAM.0 + 0x800);
    let mut links = Links::default();
    assert_eq!(machine.run(22, &mut links), Stop::Limit);
    let (reg, value) = (RegId::X(1), RAM.0 + 22 * 4);
    assert_eq!(links.0, [RegWrite { reg, value }]);
}

#[test]
fn code_in_many_pages_is_forgotten_in_time() {
    let isa = Start::virt(RAM).config.validate().unwrap();
    let mut code = Code::new(
        isa,
        Costs::default(),
        hartrace_isa::ItypeTable::NTrace10,
        64,
    );
    for frame in 0..10_000 {
        if code.is_full() {
            // 16 KiB for each page.
            assert!(frame <= 1 << 14);
            return;
        }
        code.table(frame);
    }
    panic!("it grows for ever");
}

#[test]
fn fence_i_sees_what_was_written_past_the_hart() {
    // addi x1, x1, 1; fence.i; j .-8
    let mut machine = Start::virt(RAM).load(&[0x0010_8093, 0x0000_100f, 0xff9f_f06f]);
    steps(&mut machine, 4, false);
    assert_eq!(machine.x(1), 2);
    // As the page-table walker does: addi x1, x1, 16
    let bytes = 0x0100_8093_u32.to_le_bytes();
    assert!(machine.bus.memory.write(RAM.0, &bytes));
    steps(&mut machine, 3, false);
    assert_eq!(machine.x(1), 18);
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

#[test]
fn a_short_jump_does_not_spin_where_there_are_none() {
    let mut machine = Start::virt(RAM).isa("rv64ima").load(&[0xa001]);
    let stop = machine.run(20_000, &mut All::default());
    assert!(matches!(stop, Stop::TrapLoop { .. }), "{stop:x?}");
    let mut machine = Start::virt(RAM).isa("rv64imac").load(&[0xa001]);
    let stop = machine.run(20_000, &mut All::default());
    assert_eq!(stop, Stop::Spins { pc: RAM.0 });
}

#[test]
fn memory_has_as_many_pages_as_can_be_numbered() {
    let region = |base, size| Region { base, size };
    let ram = [region(0x8000_0000, 1 << 44), region(1 << 50, 0x1000)];
    assert!(matches!(
        Memory::new(&ram, 0, &[]),
        Err(MemoryError::TooLarge(_))
    ));
}

#[test]
fn the_largest_region_of_memory_is_the_one_at_hand() {
    let region = |base, size| Region { base, size };
    let (small, large) = (region(0x1000, 0x1000), region(0x8000_0000, 0x4000));
    let main = |ram: &[Region]| Memory::new(ram, 0x10_0000, &[1; 100]).unwrap().main_ram();
    assert_eq!(main(&[small, large]), Some(large));
    assert_eq!(main(&[large, small]), Some(large));
    assert_eq!(main(&[small]), Some(small));
    assert_eq!(main(&[]), None);
    let memory = Memory::new(&[small, large], 0x10_0000, &[7; 100]).unwrap();
    assert_eq!(memory.spot(large.base).map(|spot| spot.frame), Some(0));
    assert_eq!(memory.spot(small.base).map(|spot| spot.frame), Some(4));
    assert_eq!(memory.spot(0x10_0000).map(|spot| spot.frame), Some(5));
    assert_eq!(memory.page(5).map(|page| page[99]), Some(7));
}

#[test]
fn a_model_decodes_again_when_misa_is_set() {
    // c.addi x1, 1; c.j .-2
    let mut machine = Start::virt(RAM).load(&[0xbffd_0085]);
    steps(&mut machine, 5, false);
    let misa = machine.read(Place::Csr(0x301)).unwrap();
    machine.write(Place::Pc, RAM.0).unwrap();
    set_csr(&mut machine, 0x301, misa & !4);
    assert_eq!(trap(&mut machine).cause, Cause::Exception(Some(2)));
}

#[test]
fn a_model_has_no_more_than_there_is() {
    let mut machine = Start::virt(RAM).load(&[NOP]);
    let place = Place::Reg(RegId::X(33));
    assert!(machine.read(place).is_err());
    assert!(machine.write(place, 5).is_err());
    assert_eq!(machine.x(1), 0);
    machine.write(Place::Pc, RAM.0 + 1).unwrap();
    assert_eq!(machine.pc(), RAM.0);
    // mret
    let mut machine = Start::new(Platform::Virt, Xlen::Rv32, RAM).load(&[0x3020_0073]);
    set_csr(&mut machine, 0x341, u64::MAX);
    steps(&mut machine, 1, false);
    assert_eq!(machine.pc(), 0xffff_fffe);
}

#[test]
fn an_instruction_may_go_over_the_end_of_the_address_space() {
    // addi x1, x1, 1 and j .-4, each half in another place.
    for (xlen, top) in [(Xlen::Rv64, u64::MAX - 0xfff), (Xlen::Rv32, 0xffff_f000)] {
        let mut start = Start::new(Platform::Virt, xlen, (0, 0x1000));
        let (base, size) = (top, 0x1000);
        start.config.memory.push(Region { base, size });
        let mut machine = start.load(&[0xf06f_0010, 0x0000_ffdf]);
        let (addr, size) = (top + 0xffe, 2);
        machine.write(Place::Memory { addr, size }, 0x8093).unwrap();
        machine.write(Place::Pc, addr).unwrap();
        steps(&mut machine, 7, false);
        assert_eq!(machine.x(1), 4);
        // addi x1, x1, 16
        let (addr, size) = (0, 2);
        machine.write(Place::Memory { addr, size }, 0x0100).unwrap();
        steps(&mut machine, 2, false);
        assert_eq!(machine.x(1), 20);
    }
}

#[test]
fn a_page_stays_where_it_was_found_however_the_run_is_cut() {
    // sd x0, 16(x1) takes the page of the code out of the page table, but
    // without a fence nothing is forgotten.
    let tables = RAM.0 + 0x4000;
    let run = |one_by_one| {
        let mut machine = Start::virt(RAM).load(&[0x0000_b823, NOP, NOP, NOP, NOP]);
        let (addr, size) = (tables + 16, 8);
        let entry = RAM.0 >> 12 << 10 | 0xcf;
        machine.write(Place::Memory { addr, size }, entry).unwrap();
        set_x(&mut machine, 1, tables);
        set_csr(&mut machine, 0x180, 8 << 60 | tables >> 12);
        machine.write(Place::Mode, 1).unwrap();
        steps(&mut machine, 5, one_by_one)
    };
    assert_eq!(run(false), run(true));
}
