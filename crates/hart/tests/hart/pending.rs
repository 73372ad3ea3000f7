//! When interrupts became pending ([`Trap::pending`](hartrace_flow::Trap)): when their
//! bit in `mip` was set (privileged manual, 3.1.9, 3.2.1; ACLINT; PLIC).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hartrace_flow::{
    AccessKind, Cause, Effects, HartId, Insn, Mode, Observer, Step, TrapStep, Wants,
};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Costs, Machine, Platform, Program, Stop};

use crate::asm::*;
use crate::bench::{BASE, Bench, CLINT, DATA, MTIMECMP, WIDTHS, csr, status, virt};

const SSI: u64 = 1 << 1;
const MSI: u64 = 1 << 3;
const MTI: u64 = 1 << 7;

/// Cycles in a tick of mtime.
const TICK: u64 = 100;

/// The first interrupt within `limit` instructions, run in slices.
fn interrupt(b: &mut Bench, limit: u64, slice: u64) -> TrapStep {
    let mut seen = Interrupts(Vec::new());
    for _ in 0..limit.div_ceil(slice) {
        b.m.run(slice, &mut seen);
        if let Some(trap) = seen.0.first() {
            return *trap;
        }
    }
    panic!("no interrupt");
}

/// Keeps interrupts; wants no instructions.
struct Interrupts(Vec<TrapStep>);

impl Observer for Interrupts {
    const WANTS: Wants = Wants::EVENTS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        if let Step::Trap(trap) = step
            && matches!(trap.trap.cause, Cause::Interrupt(_))
        {
            self.0.push(*trap);
        }
    }
}

/// A hart whose timer is due at a tick.
fn with_timer(mut b: Bench, tick: u64) -> Bench {
    b.set_x(30, MTIMECMP);
    b.set_x(31, tick);
    b.exec(&[sw(31, 0, 30), sw(ZERO, 4, 30)]);
    b.set_pc(BASE + 0x100);
    b
}

#[test]
fn a_timer_that_matches_in_the_middle_of_a_block() {
    for xlen in WIDTHS {
        for slice in [1, 7, 100, 3000] {
            let mut b = with_timer(Bench::of(xlen), 5);
            b.set_csr(csr::MIE, MTI);
            b.status(status::MIE);
            // Products of three cycles: the deadline is inside of one.
            b.code(BASE + 0x100, &[mul(A0, A0, A0); 0x300]);
            let trap = interrupt(&mut b, 3000, slice);
            assert_eq!(trap.trap.pending, Some(5 * TICK), "{slice}");
            let costs = Costs::default();
            let taken = trap.time - u64::from(costs.trap);
            assert!((5 * TICK..5 * TICK + 3).contains(&taken), "{}", trap.time);
        }
    }
}

/// The moment of the match, however late the machine looks at the timer.
#[test]
fn a_masked_timer_waits() {
    for slice in [1, 10, 5000] {
        for by_mie in [true, false] {
            let mut b = with_timer(Bench::rv64(), 5);
            let (enable, bits) = match by_mie {
                true => (csr::MIE, MTI),
                false => (csr::MSTATUS, status::MIE),
            };
            match by_mie {
                true => b.status(status::MIE),
                false => b.set_csr(csr::MIE, MTI),
            }
            // A store to a device on the way, which finds the deadline again.
            b.set_x(29, CLINT + 4);
            b.set_x(28, bits);
            let mut code = vec![NOP; 0x280];
            code.extend([sw(ZERO, 0, 29), NOP, csrrs(ZERO, enable, 28), NOP]);
            b.code(BASE + 0x100, &code);
            let trap = interrupt(&mut b, 5000, slice);
            assert_eq!(trap.trap.pending, Some(5 * TICK), "{slice} {by_mie}");
            assert!(trap.time > 5 * TICK + 100);
        }
    }
}

#[test]
fn a_timer_set_to_the_past_is_pending_at_once() {
    let mut b = with_timer(Bench::rv64(), 1 << 20);
    b.set_csr(csr::MIE, MTI);
    b.status(status::MIE);
    let mut code = vec![NOP; 150];
    code.push(sw(ZERO, 0, 30));
    b.code(BASE + 0x100, &code);
    let trap = interrupt(&mut b, 1000, 1000);
    assert_eq!(trap.trap.pending, Some(trap.time - 8));
}

#[test]
fn waiting_ends_when_the_interrupt_becomes_pending() {
    let mut b = with_timer(Bench::rv64(), 1000);
    b.set_csr(csr::MIE, MTI);
    b.status(status::MIE);
    b.code(BASE + 0x100, &[WFI]);
    let trap = interrupt(&mut b, 10, 10);
    assert_eq!(trap.trap.pending, Some(1000 * TICK));
    assert_eq!(trap.time, 1000 * TICK + 8);
}

/// What a program sets in `mip` or `sip`, delegated or not.
#[test]
fn software_sets_it() {
    for delegated in [true, false] {
        let mut b = with_timer(Bench::rv64(), 1 << 20);
        b.set_csr(csr::MIE, SSI);
        b.set_csr(csr::MIDELEG, if delegated { SSI } else { 0 });
        let mut code = vec![csrrsi(ZERO, csr::MIP, 2)];
        code.extend([NOP; 20]);
        // To supervisor mode, where it can be taken.
        b.set_x(5, BASE + 0x1f0);
        code.extend([csrrw(ZERO, csr::MEPC, 5), MRET]);
        b.code(BASE + 0x100, &code);
        b.status(status::MPP_S | status::SIE);
        let before = b.m.cycles();
        let trap = interrupt(&mut b, 100, 100);
        assert_eq!(trap.mode, Mode::S);
        let system = u64::from(Costs::default().system);
        assert_eq!(trap.trap.pending, Some(before + system), "{delegated}");
    }
}

/// An exception was never pending, and neither knows Spike's machine less.
#[test]
fn exceptions_and_other_machines() {
    let mut b = Bench::rv64();
    assert_eq!(b.trap_step(&[ECALL]).trap.pending, None);
    let mut config = virt(hartrace_isa::Xlen::Rv64);
    config.platform = Platform::Spike;
    let mut b = Bench::new(config);
    b.set_csr(csr::MIE, MSI);
    b.status(status::MIE);
    b.set_x(30, CLINT);
    b.set_x(31, 1);
    b.code(BASE, &[sw(31, 0, 30), NOP, jal(ZERO, -4)]);
    let trap = interrupt(&mut b, 100_000, 100_000);
    // Spike looks for interrupts when its quantum is over.
    assert_eq!(trap.trap.pending, Some(1));
    assert!(trap.time >= 5000);
}

/// External interrupts: a device that asks at once, and one that does so in its own time.
#[test]
fn devices_and_their_alarms() {
    const PLIC: u64 = 0x0c00_0000;
    const UART: u64 = 0x1000_0000;
    const RTC: u64 = 0x10_1000;
    const MEI: u64 = 1 << 11;
    let ready = || {
        let mut b = with_timer(Bench::rv64(), 1 << 20);
        b.set_csr(csr::MIE, MEI);
        b.status(status::MIE);
        for (addr, value) in [(PLIC + 40, 1), (PLIC + 44, 1), (PLIC + 0x2000, 0xc00)] {
            b.set_x(30, addr);
            b.set_x(31, value);
            b.exec(&[sw(31, 0, 30)]);
        }
        b.set_pc(BASE + 0x100);
        b
    };
    // The transmitter is always ready: enabling its interrupt is enough.
    let mut b = ready();
    b.set_x(30, UART);
    b.set_x(31, 2);
    b.code(BASE + 0x100, &[NOP, NOP, NOP, sb(31, 1, 30)]);
    let before = b.m.cycles();
    let trap = interrupt(&mut b, 100, 100);
    assert_eq!(trap.trap.pending, Some(before + 4));
    // An alarm 700 ns after the start of the run: in tick 7.
    for slice in [1, 13, 1000] {
        let mut b = ready();
        b.set_x(30, RTC);
        b.exec(&[lw(A0, 0, 30)]);
        let origin = b.x(A0) - b.m.cycles() / TICK * 100;
        b.set_x(31, origin + 700);
        let enable = [
            lw(A0, 4, 30),
            sw(A0, 12, 30),
            sw(31, 8, 30),
            addi(A1, ZERO, 1),
        ];
        b.exec(&enable);
        b.exec(&[sw(A1, 16, 30)]);
        b.set_pc(BASE + 0x100);
        b.code(BASE + 0x100, &[mul(A0, A0, A0); 0x300]);
        let trap = interrupt(&mut b, 1000, slice);
        assert_eq!(trap.trap.cause, Cause::Interrupt(Some(11)));
        assert_eq!(trap.trap.pending, Some(7 * TICK), "{slice}");
    }
}

/// An overflow whose interrupt is not enabled.
#[test]
fn counters_overflow_at_an_instruction() {
    for (event, insns) in [(2u64, 40u64), (1, 40)] {
        let mut b = Bench::isa("rv64imac_zicntr_zihpm_sscofpmf");
        b.set_x(30, MTIMECMP);
        b.set_x(31, 1 << 20);
        b.exec(&[sw(31, 0, 30)]);
        b.set_csr(0x323, event);
        b.set_csr(0xb03, 0u64.wrapping_sub(insns));
        b.status(status::MIE);
        b.set_x(28, 1 << 13);
        let mut code = vec![NOP; 200];
        code.push(csrrs(ZERO, csr::MIE, 28));
        b.code(BASE + 0x100, &code);
        b.set_pc(BASE + 0x100);
        let before = b.m.cycles();
        let trap = interrupt(&mut b, 400, 400);
        assert_eq!(trap.trap.cause, Cause::Interrupt(Some(13)));
        assert_eq!(trap.trap.pending, Some(before + insns), "{event}");
    }
}

/// What must be pending since when, worked out from what harts do: their stores to the
/// CLINT, their writes of `mip`, the time of their steps.
#[derive(Default)]
struct Truth {
    harts: BTreeMap<u32, Known>,
    interrupts: usize,
    longest: u64,
    codes: std::collections::BTreeSet<u32>,
}

#[derive(Default)]
struct Known {
    /// Of its last step.
    time: u64,
    mtimecmp: u64,
    /// When mtimecmp was written last.
    written: u64,
    timer: Option<u64>,
    msi: bool,
    /// The software interrupt became pending not before and not after.
    msi_since: (u64, u64),
    mip: u64,
    software: [u64; 16],
    /// Times of stores to devices.
    stores: Vec<u64>,
}

impl Known {
    /// The timer interrupt at a time: since when it is pending.
    fn timer(&mut self, now: u64) -> Option<u64> {
        let due = self.mtimecmp.saturating_mul(TICK);
        if due > now {
            self.timer = None;
        } else if self.timer.is_none() {
            self.timer = Some(due.max(self.written));
        }
        self.timer
    }
}

impl Truth {
    fn insn(&mut self, hart: u32, insn: &Insn, effects: &Effects) {
        for access in effects.accesses.iter() {
            if access.kind != AccessKind::Store {
                continue;
            }
            let (addr, value) = (access.addr, access.data.unwrap());
            match addr {
                0x0200_0000..0x0200_4000 => {
                    let whom = self.harts.entry((addr - CLINT) as u32 / 4).or_default();
                    let set = value & 1 != 0;
                    if set && !whom.msi {
                        whom.msi_since = (whom.time, insn.time);
                    }
                    whom.msi = set;
                }
                0x0200_4000..0x0200_bff8 => {
                    let whom = ((addr - MTIMECMP) / 8) as u32;
                    let known = self.harts.entry(whom).or_default();
                    known.timer(insn.time);
                    let (size, shift) = (8 << access.size, addr % 8 * 8);
                    let mask = (u64::MAX >> (64 - size)) << shift;
                    known.mtimecmp = known.mtimecmp & !mask | value << shift;
                    known.written = insn.time;
                    known.timer(insn.time);
                }
                0x0200_bff8..0x0200_c000 => panic!("time is written"),
                0x0c00_0000..0x2000_0000 => {
                    let known = self.harts.entry(hart).or_default();
                    known.stores.push(insn.time);
                }
                _ => {}
            }
        }
        let known = self.harts.entry(hart).or_default();
        for write in effects.csrs.iter().filter(|write| write.csr == csr::MIP) {
            for code in [1, 5] {
                if write.value >> code & 1 > known.mip >> code & 1 {
                    known.software[code] = insn.time;
                }
            }
            known.mip = write.value;
        }
        known.time = insn.time;
    }

    fn trap(&mut self, hart: u32, trap: &TrapStep) {
        let known = self.harts.entry(hart).or_default();
        let Cause::Interrupt(Some(code)) = trap.trap.cause else {
            assert_eq!(trap.trap.pending, None);
            known.time = trap.time;
            return;
        };
        let pending = trap.trap.pending.unwrap();
        let taken = trap.time - u64::from(Costs::default().trap);
        assert!(pending <= taken, "{trap:?}");
        match code {
            7 => assert_eq!(Some(pending), known.timer(taken), "{trap:?}"),
            3 => {
                let (from, to) = known.msi_since;
                // Another hart may be ahead: what it stores is seen in the next turn.
                let range = from..=to.max(known.time);
                assert!(range.contains(&pending), "{trap:?} {range:?}");
            }
            1 | 5 => assert_eq!(pending, known.software[code as usize], "{trap:?}"),
            _ => assert!(known.stores.contains(&pending), "{trap:?}"),
        }
        known.time = trap.time;
        self.interrupts += 1;
        self.codes.insert(code);
        self.longest = self.longest.max(trap.time - pending);
    }
}

impl Observer for Truth {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        match step {
            Step::Insn(insn) => self.insn(hart.0, insn, effects),
            Step::Trap(trap) => self.trap(hart.0, trap),
            Step::Signal(_) => {}
        }
    }
}

/// Runs a program of this repository.
fn run(name: &str, harts: u32, observer: &mut impl Observer) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../programs");
    let program = name.split('-').next().unwrap();
    let elf = fs::read(folder.join(program).join(format!("{name}.elf"))).unwrap();
    let program = Program::from_elf(&elf).unwrap();
    let mut config = Config::new(Platform::Virt, program.xlen);
    config.harts = harts;
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    machine.load(program, None).unwrap();
    assert_eq!(machine.run(20_000_000, observer), Stop::Exit(0), "{name}");
}

/// Timers, nested interrupts, a scheduler, delegated interrupts, devices, several harts.
#[test]
fn programs_say_so_themselves() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, harts, least) in [
        ("timer-rv64gc", 1, 54),
        ("timer-rv32gc", 1, 54),
        ("scheduler-rv64gc", 1, 4),
        ("modes-rv64gc", 1, 2),
        ("modes-rv32gc", 1, 2),
        ("harts-rv64gc", 4, 1),
    ] {
        let mut truth = Truth::default();
        run(name, harts, &mut truth);
        assert!(truth.interrupts >= least, "{name}: {}", truth.interrupts);
        assert!(truth.longest >= 8, "{name}");
        seen.extend(truth.codes);
        // Whoever watches.
        let mut plain = Interrupts(Vec::new());
        run(name, harts, &mut plain);
        assert_eq!(plain.0.len(), truth.interrupts);
    }
    assert!([1, 3, 7].iter().all(|code| seen.contains(code)), "{seen:?}");
}

/// The level of an interrupt that was taken stays what it is while a handler leaves it.
#[test]
fn a_handler_that_does_not_clear_it() {
    let mut b = with_timer(Bench::rv64(), 5);
    b.set_csr(csr::MIE, MTI);
    b.status(status::MIE);
    b.code(BASE + 0x100, &[sw(ZERO, 0, 29); 0x300]);
    b.set_x(29, DATA);
    b.code(crate::bench::HANDLER, &[MRET]);
    let mut seen = Interrupts(Vec::new());
    b.m.run(1000, &mut seen);
    let pending: Vec<_> = seen.0.iter().map(|trap| trap.trap.pending).collect();
    assert!(pending.len() > 10 && pending.iter().all(|p| *p == Some(5 * TICK)));
}
