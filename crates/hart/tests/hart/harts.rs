//! Several harts on one machine: turns, memory between them, interrupts to each other.

use hartrace_flow::{Effects, HartId, Insn, Observer, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Stop};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, CLINT, DATA, NoObserver, csr, program, virt};

/// Keeps the instructions with their harts.
#[derive(Default)]
struct Log(Vec<(u32, Insn)>);

impl Observer for Log {
    const WANTS: Wants = Wants::INSNS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        if let Step::Insn(insn) = step {
            self.0.push((hart.0, *insn));
        }
    }
}

fn config(harts: u32) -> Config {
    let mut config = virt(Xlen::Rv64);
    config.harts = harts;
    config.quantum = 100;
    config
}

fn machine(config: &Config, code: &[u32]) -> Machine {
    let mut machine = Machine::new(config.clone(), Host::silent()).unwrap();
    machine.load(program(Xlen::Rv64, code), None).unwrap();
    machine
}

/// A word of memory.
fn word(machine: &Machine, addr: u64) -> u64 {
    use hartrace_flow::{Model, Place};
    machine.read(Place::Memory { addr, size: 4 }).unwrap()
}

/// a1 = DATA
const POINT: u32 = auipc(A1, (DATA - BASE) as u32 >> 12);

/// Ends the run when all harts are here: nothing can happen any more.
const END: [u32; 2] = [csrw(csr::MIE, ZERO), WFI];

#[test]
fn every_hart_starts_with_its_number() {
    // a0 is the hart's number, and so is mhartid; a1 is the device tree.
    let code = [
        POINT,
        csrr(A2, 0xf14),
        slli(A3, A2, 2),
        add(A1, A1, A3),
        sub(A4, A2, A0),
        addi(A4, A4, 7),
        sw(A4, 0, A1),
        END[0],
        END[1],
    ];
    let mut m = machine(&config(5), &code);
    assert!(matches!(
        m.run(10_000, &mut NoObserver),
        Stop::Asleep { .. }
    ));
    assert_eq!(m.instructions(), 5 * 9);
    let seen: Vec<u64> = (0..6).map(|hart| word(&m, DATA + 4 * hart)).collect();
    assert_eq!(seen, [7, 7, 7, 7, 7, 0]);
}

/// Every hart adds 1 to a word this often, with these instructions.
fn adding(times: i32, add: &[u32]) -> Vec<u32> {
    let mut code = vec![POINT, addi(A2, ZERO, times), addi(A3, ZERO, 1)];
    code.extend(add);
    let back = -4 * (add.len() as i64 + 1);
    code.extend([addi(A2, A2, -1), bne(A2, ZERO, back), END[0], END[1]]);
    code
}

#[test]
fn atomics_are_atomic_between_harts() {
    // Unprivileged 14.4; turns end wherever they end.
    for quantum in [1, 7, 64, 1000] {
        for seed in [0, 1, 2] {
            let mut config = config(4);
            (config.quantum, config.seed) = (quantum, seed);
            let mut m = machine(&config, &adding(250, &[amoadd_w(ZERO, A3, A1)]));
            assert!(matches!(
                m.run(100_000, &mut NoObserver),
                Stop::Asleep { .. }
            ));
            assert_eq!(word(&m, DATA), 1000, "{quantum} {seed}");
        }
    }
}

#[test]
fn a_reservation_does_not_outlive_the_stores_of_others() {
    // Unprivileged 14.2: the pair fails if another hart stored in between.
    let pair = [
        lr_w(A4, A1),
        add(A4, A4, A3),
        sc_w(A5, A4, A1),
        bne(A5, ZERO, -12),
    ];
    for quantum in [40, 64, 1000] {
        let mut config = config(4);
        config.quantum = quantum;
        let mut m = machine(&config, &adding(250, &pair));
        assert!(matches!(
            m.run(200_000, &mut NoObserver),
            Stop::Asleep { .. }
        ));
        assert_eq!(word(&m, DATA), 1000, "{quantum}");
    }
    // Plain loads and stores are no such pair: the test can fail.
    let plain = [lw(A4, 0, A1), add(A4, A4, A3), sw(A4, 0, A1)];
    let mut m = machine(&config(4), &adding(250, &plain));
    m.run(200_000, &mut NoObserver);
    assert!(word(&m, DATA) < 1000);
}

#[test]
fn one_hart_wakes_another() {
    // ACLINT, MSWI: hart 0 writes msip of hart 1, which waits with the interrupt
    // enabled in mie alone.
    let code = [
        POINT,
        bne(A0, ZERO, 24),
        lui(A2, CLINT as u32 >> 12),
        addi(A3, ZERO, 1),
        sw(A3, 4, A2),
        END[0],
        END[1],
        // Hart 1.
        addi(A3, ZERO, 8),
        csrw(csr::MIE, A3),
        WFI,
        sw(A3, 0, A1),
        END[0],
        END[1],
    ];
    let mut m = machine(&config(2), &code);
    assert!(matches!(
        m.run(10_000, &mut NoObserver),
        Stop::Asleep { .. }
    ));
    assert_eq!(word(&m, DATA), 8);
}

#[test]
fn code_that_another_hart_writes_is_seen() {
    // Unprivileged 6: hart 1 runs a function over and over; hart 0 rewrites it, with
    // a store to a page that it has written to before there was code in it.
    let function = addi(A4, ZERO, 1);
    let code = [
        auipc(A1, 0x1),
        bne(A0, ZERO, 44),
        // Hart 0: some stores to the page, a wait, then the new function.
        addi(A2, ZERO, 500),
        sw(ZERO, 0x100, A1),
        addi(A2, A2, -1),
        bne(A2, ZERO, -8),
        lw(A3, 0x40, A1),
        addi(A5, ZERO, 2),
        slli(A5, A5, 20),
        add(A3, A3, A5),
        sw(A3, 0x40, A1),
        SPIN,
        // Hart 1, at 0x30: until it gives another value.
        jalr(RA, A1, 0x40),
        addi(A5, ZERO, 3),
        bne(A4, A5, -8),
        POINT,
        sw(A4, 0, A1),
        SPIN,
    ];
    // In supervisor mode, where stores find their pages in a table.
    let down = [
        addi(A5, ZERO, 1),
        slli(A5, A5, 11),
        csrw(csr::MSTATUS, A5),
        auipc(A5, 0),
        addi(A5, A5, 16),
        csrw(csr::MEPC, A5),
        MRET,
    ];
    let mut all = [&down[..], &code[..]].concat();
    all.resize((0x1040 + down.len() * 4) / 4, NOP);
    all.extend([function, RET]);
    for quantum in [10, 100, 1000] {
        let mut config = config(2);
        config.quantum = quantum;
        let mut m = machine(&config, &all);
        let stop = m.run(100_000, &mut NoObserver);
        assert!(matches!(stop, Stop::Spins { .. }), "{quantum} {stop:?}");
        let at = DATA + 4 * (down.len() as u64 + 15);
        assert_eq!(word(&m, at), 3, "{quantum}");
    }
}

#[test]
fn a_machine_stops_when_no_hart_can_go_on() {
    // One spins, one sleeps; the third works a while.
    let code = [
        addi(A2, A0, -1),
        beq(A2, ZERO, 24),
        addi(A2, A0, -2),
        bne(A2, ZERO, 20),
        addi(A2, ZERO, 2000),
        addi(A2, A2, -1),
        bne(A2, ZERO, -4),
        SPIN,
        END[0],
        END[1],
    ];
    let mut m = machine(&config(3), &code);
    let stop = m.run(1_000_000, &mut NoObserver);
    assert!(matches!(stop, Stop::Spins { .. } | Stop::Asleep { .. }));
    assert!(m.instructions() > 4000, "{}", m.instructions());
}

#[test]
fn runs_are_the_same_however_they_are_cut() {
    let code = adding(100, &[amoadd_w(ZERO, A3, A1), NOP, NOP]);
    let run = |seed: u64, slice: u64| {
        let mut config = config(3);
        config.seed = seed;
        let mut m = machine(&config, &code);
        let mut log = Log::default();
        while m.run(slice, &mut log) == Stop::Limit {}
        assert_eq!(log.0.len() as u64, m.instructions());
        log.0
    };
    for seed in [0, 9] {
        let whole = run(seed, u64::MAX);
        assert!(whole.iter().any(|(hart, _)| *hart == 2));
        assert_eq!(run(seed, u64::MAX), whole);
        assert_eq!(run(seed, 13), whole);
    }
    let harts = |log: Vec<(u32, Insn)>| log.into_iter().map(|(hart, _)| hart).collect::<Vec<_>>();
    assert_ne!(harts(run(9, u64::MAX)), harts(run(0, u64::MAX)));
}

#[test]
fn a_hart_in_wrs_leaves_its_turn_to_the_others() {
    // Zawrs. Hart 1 waits for a word that hart 0 stores after a while; with `wrs` it
    // executes a few instructions in each turn, without it as many as fit.
    let run = |wait: u32| {
        let code = [
            POINT,
            // Hart 0 goes on with the next instruction, hart 1 below.
            bne(A0, ZERO, 4 * 6),
            addi(A2, ZERO, 500),
            addi(A2, A2, -1),
            bne(A2, ZERO, -4),
            sw(A1, 0, A1),
            jal(ZERO, 4 * 4),
            lr_w(A3, A1),
            wait,
            beq(A3, ZERO, -8),
            END[0],
            END[1],
        ];
        let mut m = machine(&config(2), &code);
        let mut log = Log::default();
        assert!(matches!(m.run(100_000, &mut log), Stop::Asleep { .. }));
        assert_ne!(word(&m, DATA), 0);
        log.0.iter().filter(|(hart, _)| *hart == 1).count()
    };
    let (busy, waiting) = (run(NOP), run(0x00d0_0073));
    assert!(waiting * 3 < busy, "{waiting} against {busy}");
    assert_eq!(run(0x01d0_0073), waiting, "wrs.sto");
}

#[test]
fn clocks_stay_together() {
    // A hart that works and one that waits for its timer see the same time.
    let code = adding(400, &[csrr(A4, csr::TIME), NOP]);
    let mut config = config(4);
    config.cycles_per_tick = 1;
    let mut m = machine(&config, &code);
    let mut log = Log::default();
    m.run(u64::MAX, &mut log);
    let mut last = [0; 4];
    for (hart, insn) in log.0 {
        last[hart as usize] = insn.time;
        let most = last.iter().max().unwrap();
        // Two turns, and the longest instruction.
        assert!(most - last[hart as usize] < 300);
    }
}

#[test]
fn numbers_of_harts_are_checked() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(2);
        change(&mut config);
        Machine::new(config, Host::silent())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(refused(&|c| c.harts = 0), "harts must be between 1 and 64");
    assert_eq!(refused(&|c| c.harts = 65), "harts must be between 1 and 64");
    assert_eq!(
        refused(&|c| c.quantum = 0),
        "quantum must be at least 1 cycle"
    );
    let spike = refused(&|c| c.platform = hartrace_hart::Platform::Spike);
    assert_eq!(
        spike,
        "the platform \"spike\" has exactly one hart; \"virt\" can have more"
    );
}
