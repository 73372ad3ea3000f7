//! The machine: loading, limits, reasons to stop, repeatability.

use hartrace_flow::{Mode, Step};
use hartrace_hart::host::Host;
use hartrace_hart::{
    Config, ConfigError, LoadError, Machine, MemoryError, Platform, Region, Segment, Stop,
};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{
    BASE, Bench, DATA, HANDLER, MTIMECMP, NoObserver, Recorder, SIZE, WIDTHS, csr, program, small,
    status, virt,
};

/// A program that computes, calls, traps, waits and is interrupted.
fn busy(platform: Platform) -> Bench {
    let mut b = Bench::new(small(platform, Xlen::Rv64));
    let handler = [
        csrr(T0, csr::MCAUSE),
        bge(T0, ZERO, 24),
        // The timer: a little later.
        csrr(T1, csr::TIME),
        addi(T1, T1, 3),
        sd(T1, 0, A4),
        MRET,
        NOP,
        // An exception: over it.
        csrr(T0, csr::MEPC),
        addi(T0, T0, 4),
        csrw(csr::MEPC, T0),
        MRET,
    ];
    b.code(HANDLER, &handler);
    let code = [
        addi(A0, A0, 1),
        mul(A1, A0, A0),
        sd(A1, 0, A5),
        ECALL,
        ld(A2, 0, A5),
        div(A3, A2, A0),
        WFI,
        0xffff_ffff,
        jal(ZERO, -32),
    ];
    b.code(BASE, &code);
    b.set_x(A5, DATA);
    b.set_x(A4, MTIMECMP);
    b.set_csr(csr::MIE, 1 << 7);
    b.status(status::MIE);
    b
}

fn recorded(mut b: Bench, slices: &[u64]) -> Vec<Step> {
    let mut recorder = Recorder::default();
    for &slice in slices {
        assert_eq!(b.m.run(slice, &mut recorder), Stop::Limit);
    }
    recorder.0.into_iter().map(|s| s.0).collect()
}

#[test]
fn limits_are_exact() {
    for platform in Platform::ALL {
        let mut b = busy(platform);
        let mut total = 0;
        for limit in [1, 2, 3, 5, 100, 1000, 0, 4999, 5000, 5001, 1] {
            assert_eq!(b.run(limit), Stop::Limit);
            total += limit;
            assert_eq!(b.m.instructions(), total, "{platform:?}");
        }
    }
}

#[test]
fn slices_make_the_same_steps_as_one_run() {
    for platform in Platform::ALL {
        let whole = recorded(busy(platform), &[12_000]);
        assert!(whole.iter().any(|s| matches!(s, Step::Trap(_))));
        for slice in [1, 6, 1000] {
            let cut = recorded(busy(platform), &vec![slice; (12_000 / slice) as usize]);
            assert!(whole == cut, "{platform:?} {slice}");
        }
    }
}

#[test]
fn the_same_program_takes_the_same_steps() {
    for platform in Platform::ALL {
        let (a, b) = (
            recorded(busy(platform), &[9000]),
            recorded(busy(platform), &[9000]),
        );
        assert!(a == b);
        // And after a reset.
        let mut m = Machine::new(small(platform, Xlen::Rv64), Host::silent()).unwrap();
        let code = [
            csrr(A0, csr::MCYCLE),
            csrr(A1, csr::TIME),
            addi(A2, A2, 1),
            jal(0, -12),
        ];
        m.load(program(Xlen::Rv64, &code), None).unwrap();
        let mut first = Recorder::default();
        m.run(8000, &mut first);
        m.reset();
        let mut second = Recorder::default();
        m.run(8000, &mut second);
        assert!(first.0 == second.0);
    }
}

#[test]
fn reset_restores_memory_and_hart() {
    for platform in Platform::ALL {
        let mut m = Machine::new(small(platform, Xlen::Rv64), Host::silent()).unwrap();
        let code = [
            auipc(A1, 0),
            lw(A0, 32, A1),
            addi(A0, A0, 1),
            sw(A0, 32, A1),
            sw(A0, 2044, A1),
            csrw(csr::MSCRATCH, A0),
            csrw(csr::PMPCFG0, ZERO),
            SPIN,
            41,
        ];
        m.load(program(Xlen::Rv64, &code), None).unwrap();
        let start = m.pc();
        for _ in 0..2 {
            assert_eq!(
                m.run(100_000, &mut NoObserver),
                Stop::Spins { pc: BASE + 28 }
            );
            assert_eq!(m.x(A0 as u8), 42);
            let mut b = Bench { m };
            assert_eq!((b.mem(BASE + 32, 4), b.mem(BASE + 2044, 4)), (42, 42));
            b.m.reset();
            assert_eq!((b.mem(BASE + 32, 4), b.mem(BASE + 2044, 4)), (41, 0));
            assert_eq!((b.csr(csr::MSCRATCH), b.csr(csr::PMPCFG0)), (0, 0x1f));
            assert_eq!((b.m.instructions(), b.m.cycles(), b.m.pc()), (0, 0, start));
            assert_eq!((b.x(A0), b.mode()), (0, Mode::M));
            m = b.m;
        }
    }
}

#[test]
fn our_machine_starts_at_the_entry() {
    for xlen in WIDTHS {
        let mut m = Machine::new(virt(xlen), Host::silent()).unwrap();
        m.load(program(xlen, &[NOP, NOP]), None).unwrap();
        assert_eq!((m.pc(), m.x(10), m.x(11)), (BASE, 0, 0x1020));
        m.load(program(xlen, &[NOP, NOP]), Some(BASE + 4)).unwrap();
        assert_eq!(m.pc(), BASE + 4);
    }
}

#[test]
fn spike_starts_in_the_boot_rom() {
    for xlen in WIDTHS {
        let mut m = Machine::new(small(Platform::Spike, xlen), Host::silent()).unwrap();
        m.load(program(xlen, &[NOP, NOP]), Some(BASE + 4)).unwrap();
        assert_eq!(m.pc(), 0x1000);
        m.run(5, &mut NoObserver);
        assert_eq!((m.pc(), m.x(10), m.x(11)), (BASE + 4, 0, 0x1020));
    }
}

#[test]
fn a_jump_to_itself_stops_the_machine() {
    for platform in Platform::ALL {
        for xlen in WIDTHS {
            let mut b = Bench::new(small(platform, xlen));
            b.code(BASE, &[NOP, SPIN]);
            b.set_pc(BASE);
            assert_eq!(b.run(100_000), Stop::Spins { pc: BASE + 4 });
            b.halfwords(BASE + 4, &[0xa001]);
            b.set_pc(BASE);
            assert_eq!(b.run(100_000), Stop::Spins { pc: BASE + 4 }, "c.j .");
        }
    }
}

#[test]
fn a_jump_to_itself_that_will_be_interrupted_does_not() {
    for platform in Platform::ALL {
        let mut b = Bench::new(small(platform, Xlen::Rv64));
        b.set_x(A4, MTIMECMP);
        b.set_x(A5, 1000);
        b.set_x(A3, 1 << 7);
        b.code(
            BASE,
            &[
                sd(A5, 0, A4),
                csrw(csr::MIE, A3),
                csrrsi(0, csr::MSTATUS, 8),
                SPIN,
            ],
        );
        b.code(HANDLER, &[addi(A0, ZERO, 5), SPIN]);
        b.set_pc(BASE);
        assert_eq!(b.run(10_000_000), Stop::Spins { pc: HANDLER + 4 });
        assert_eq!(b.x(A0), 5);
    }
}

#[test]
fn a_handler_that_is_not_there_is_a_loop_of_traps() {
    for platform in Platform::ALL {
        let mut b = Bench::new(small(platform, Xlen::Rv64));
        b.set_csr(csr::MTVEC, 0);
        b.code(BASE, &[NOP, ECALL]);
        b.set_pc(BASE);
        let stop = Stop::TrapLoop {
            epc: 0,
            code: 1,
            tval: 0,
        };
        assert_eq!(b.run(100_000), stop);
        assert_eq!(b.m.instructions(), 1);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "a million traps")]
fn a_fault_that_is_always_repeated_is_a_loop_of_traps() {
    let mut b = Bench::rv64();
    b.code(BASE, &[0xffff_ffff]);
    b.code(HANDLER, &[MRET]);
    b.set_mode(Mode::U);
    b.set_pc(BASE);
    let stop = Stop::TrapLoop {
        epc: BASE,
        code: 2,
        tval: 0xffff_ffff,
    };
    assert_eq!(b.run(u64::MAX), stop);
}

#[test]
fn calls_may_be_repeated_for_ever() {
    let mut b = Bench::rv64();
    b.code(BASE, &[ECALL]);
    b.code(HANDLER, &[MRET]);
    b.set_mode(Mode::U);
    b.set_pc(BASE);
    assert_eq!(b.run(20_000), Stop::Limit);
}

#[test]
fn a_limit_is_no_reason_not_to_go_on() {
    let mut b = busy(Platform::Virt);
    assert_eq!(b.run(10), Stop::Limit);
    assert_eq!(b.run(0), Stop::Limit);
    assert_eq!(b.m.instructions(), 10);
    assert_eq!(b.run(10), Stop::Limit);
    assert_eq!(b.m.instructions(), 20);
}

#[test]
fn programs_must_fit_the_machine() {
    let mut m = Machine::new(virt(Xlen::Rv64), Host::silent()).unwrap();
    let ram = vec![Region {
        base: BASE,
        size: SIZE,
    }];
    let wrong = LoadError::Width {
        program: Xlen::Rv32,
        hart: Xlen::Rv64,
    };
    assert_eq!(m.load(program(Xlen::Rv32, &[NOP]), None), Err(wrong));
    for (addr, size) in [
        (BASE - 4, 8),
        (BASE + SIZE - 4, 8),
        (0x1000, 4),
        (BASE, SIZE + 1),
    ] {
        let mut outside = program(Xlen::Rv64, &[NOP]);
        outside.segments.push(Segment {
            addr,
            size,
            data: Vec::new(),
        });
        let error = LoadError::Outside {
            segment: Region { base: addr, size },
            ram: ram.clone(),
        };
        assert_eq!(m.load(outside, None), Err(error));
    }
    for entry in [0, BASE - 2, BASE + SIZE] {
        let error = LoadError::Entry {
            entry,
            ram: ram.clone(),
        };
        assert_eq!(m.load(program(Xlen::Rv64, &[NOP]), Some(entry)), Err(error));
    }
    let entry = BASE + 1;
    let odd = m.load(program(Xlen::Rv64, &[NOP]), Some(entry));
    assert_eq!(odd, Err(LoadError::Misaligned { entry }));
    assert_eq!(m.load(program(Xlen::Rv64, &[NOP]), None), Ok(()));
}

#[test]
fn segments_are_zero_behind_their_data() {
    let mut m = Machine::new(virt(Xlen::Rv64), Host::silent()).unwrap();
    let mut with_bss = program(Xlen::Rv64, &[NOP]);
    with_bss.segments[0].size = 0x100;
    m.load(with_bss, None).unwrap();
    let b = Bench { m };
    assert_eq!(b.mem(BASE, 8), NOP.into());
}

fn refused(change: impl FnOnce(&mut Config)) -> ConfigError {
    let mut config = virt(Xlen::Rv64);
    change(&mut config);
    let error = config.validate().err();
    let built = Machine::new(config, Host::silent()).unwrap_err();
    assert!(error.is_none_or(|error| error == built));
    assert!(!built.to_string().is_empty());
    built
}

#[test]
fn machines_that_cannot_be_built_are_refused() {
    assert!(matches!(
        refused(|c| c.isa = "x86".to_owned()),
        ConfigError::Isa(_)
    ));
    for name in ["v", "zve32x", "zvbb", "zvkned", "zvfhmin"] {
        let unsupported = refused(|c| c.isa = format!("rv64gc_{name}"));
        assert!(
            matches!(unsupported, ConfigError::Unsupported(names) if names.iter().any(|n| n == name))
        );
    }
    assert_eq!(refused(|c| c.cycles_per_tick = 0), ConfigError::Clock);
    for name in ["integer", "load", "system", "float_sqrt"] {
        assert_eq!(
            refused(|c| *c.costs.entry_mut(name).unwrap() = 0),
            ConfigError::Cost
        );
    }
    let region = |base, size| Region { base, size };
    for bad in [
        region(BASE + 1, 0x1000),
        region(BASE, 0x1001),
        region(BASE, 0),
    ] {
        let error = ConfigError::Memory(MemoryError::Granularity(bad));
        assert_eq!(refused(|c| c.memory = vec![bad]), error);
    }
    let wraps = region(0xffff_ffff_ffff_f000, 0x2000);
    let error = ConfigError::Memory(MemoryError::Wraps(wraps));
    assert_eq!(refused(|c| c.memory = vec![wraps]), error);
    let overlaps = |memory: Vec<Region>| {
        let error = refused(|c| c.memory = memory);
        matches!(error, ConfigError::Memory(MemoryError::Overlap(..)))
    };
    assert!(overlaps(vec![
        region(BASE, 0x2000),
        region(BASE + 0x1000, 0x1000)
    ]));
    assert!(overlaps(vec![region(0x0200_0000, 0x1000)]), "the CLINT");
    let rom = refused(|c| {
        c.platform = Platform::Spike;
        c.memory = vec![region(0, 0x2000)];
    });
    assert!(matches!(rom, ConfigError::Memory(MemoryError::Overlap(..))));
    let huge = refused(|c| c.memory = vec![region(1 << 62, 1 << 62)]);
    assert!(matches!(
        huge,
        ConfigError::Memory(MemoryError::TooLarge(_))
    ));
}

#[test]
fn the_boot_rom_makes_room_for_ram() {
    let mut config = virt(Xlen::Rv64);
    assert_eq!(config.boot_rom(), 0x1000);
    config.memory = vec![Region {
        base: 0,
        size: 16 << 20,
    }];
    let rom = config.boot_rom();
    let mut m = Machine::new(config, Host::silent()).unwrap();
    let mut low = program(Xlen::Rv64, &[NOP]);
    for segment in &mut low.segments {
        segment.addr = 0x1000;
    }
    m.load(low, Some(0x1000)).unwrap();
    assert_eq!((m.pc(), m.x(11)), (0x1000, rom + 32));
    // The device tree is there.
    assert_eq!(Bench { m }.mem(rom + 32, 4), 0xedfe_0dd0);
}

#[test]
fn only_taken_and_trap_may_cost_nothing() {
    let mut config = virt(Xlen::Rv64);
    (config.costs.taken, config.costs.trap) = (0, 0);
    assert!(config.validate().is_ok());
}

/// A handler that saves registers on a stack that is not there.
#[test]
fn a_handler_that_faults_with_changing_registers_is_a_loop_of_traps() {
    let code = [
        0x0000_0297, // auipc t0, 0
        0x0182_8293, // addi t0, t0, 24
        0x3052_9073, // csrw mtvec, t0
        0x2000_0137, // lui sp, 0x20000
        0x0011_3023, // sd ra, 0(sp)
        0x0000_006f, // j .
        0xf001_0113, // addi sp, sp, -256
        0x0011_3023, // sd ra, 0(sp)
        0x3020_0073, // mret
    ];
    let mut m = Machine::new(virt(Xlen::Rv64), Host::silent()).unwrap();
    m.load(program(Xlen::Rv64, &code), None).unwrap();
    let stop = m.run(1_000_000, &mut crate::bench::NoObserver);
    assert!(matches!(stop, Stop::TrapLoop { code: 7, .. }), "{stop:?}");
    assert!(m.instructions() < 100_000);
}

/// `mtimecmp` is 0 after reset, and so is time.
#[test]
fn the_timer_is_due_from_the_start() {
    for platform in Platform::ALL {
        let config = Config {
            platform,
            ..virt(Xlen::Rv64)
        };
        let mut m = Machine::new(config, Host::silent()).unwrap();
        m.load(program(Xlen::Rv64, &[NOP]), None).unwrap();
        assert_eq!(
            hartrace_flow::Model::read(&m, hartrace_flow::Place::Csr(0x344)),
            Ok(0x80)
        );
    }
}
