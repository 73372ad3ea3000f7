//! What observers are told (the contract of `hartrace_flow::Observer`).

use hartrace_flow::{
    Access, AccessKind, Effects, HartId, Mode, Model as _, Observer, RegId, Signal, Step, Wants,
};
use hartrace_hart::ContextSource;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, HANDLER, Recorder, csr, csr_writes, status, virt};
use crate::swaps::amocas;

/// Keeps what it is told, wanting only some of it.
struct Watch<const WHAT: u8>(Vec<(Step, Effects)>);

const fn wants(what: u8) -> Wants {
    match what {
        0 => Wants::NOTHING,
        1 => Wants::TRANSFERS,
        2 => Wants::INSNS,
        3 => Wants::EVENTS,
        4 => Wants::STEPS,
        5 => Wants::INSNS.with(Wants::REGS),
        6 => Wants::INSNS.with(Wants::CSRS),
        7 => Wants::INSNS.with(Wants::ACCESSES),
        _ => Wants::ALL,
    }
}

impl<const WHAT: u8> Observer for Watch<WHAT> {
    const WANTS: Wants = wants(WHAT);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        assert_eq!(hart, HartId(0));
        self.0.push((*step, *effects));
    }
}

/// A program with a little of everything: ends with a call, whose handler goes
/// back to the start.
fn everything() -> Bench {
    let mut b = Bench::rv64();
    let code = [
        addi(A0, ZERO, 1),
        sd(A0, 0, A5),
        ld(A1, 0, A5),
        csrrw(A2, csr::MSCRATCH, A0),
        beq(A0, ZERO, 8),
        bne(A0, ZERO, 8),
        NOP,
        jal(RA, 4),
        amoadd_d(A3, A0, A5),
        ECALL,
    ];
    b.code(BASE, &code);
    b.set_x(T0, BASE);
    b.code(HANDLER, &[csrw(csr::MEPC, T0), MRET]);
    b.set_x(A5, DATA);
    b
}

fn told<const WHAT: u8>() -> Vec<(Step, Effects)> {
    let mut observer = Watch::<WHAT>(Vec::new());
    everything().m.run(40, &mut observer);
    observer.0
}

fn is_insn(step: &Step) -> bool {
    matches!(step, Step::Insn(_))
}

#[test]
fn nothing_wanted_is_nothing_told() {
    assert!(told::<0>().is_empty());
}

#[test]
fn every_want_delivers_its_part_of_the_whole() {
    let all = told::<8>();
    assert!(all.len() > 40, "traps are steps as well");
    let steps = |from: &[(Step, Effects)]| from.iter().map(|s| s.0).collect::<Vec<_>>();
    assert_eq!(steps(&told::<4>()), steps(&all));
    let insns: Vec<_> = all.iter().filter(|s| is_insn(&s.0)).copied().collect();
    let events: Vec<_> = all.iter().filter(|s| !is_insn(&s.0)).copied().collect();
    assert_eq!(steps(&told::<2>()), steps(&insns));
    assert_eq!(steps(&told::<3>()), steps(&events));
}

#[test]
fn transfers_are_the_instructions_that_went_elsewhere() {
    let all = told::<8>();
    let moved = all.iter().filter(|(step, _)| match step {
        Step::Insn(insn) => insn.next != insn.end() || insn.bits == jal(RA, 4),
        _ => false,
    });
    let transfers: Vec<Step> = told::<1>().iter().map(|s| s.0).collect();
    assert_eq!(transfers, moved.map(|s| s.0).collect::<Vec<_>>());
    let has = |bits: u32| {
        transfers
            .iter()
            .any(|step| matches!(step, Step::Insn(insn) if insn.bits == bits))
    };
    assert!(has(bne(A0, ZERO, 8)) && has(jal(RA, 4)) && has(MRET));
    assert!(!has(beq(A0, ZERO, 8)) && !has(addi(A0, ZERO, 1)));
}

#[test]
fn effects_come_only_where_they_are_wanted() {
    let all: Vec<_> = told::<8>().into_iter().filter(|s| is_insn(&s.0)).collect();
    let (regs, csrs, accesses) = (told::<5>(), told::<6>(), told::<7>());
    for (i, (_, whole)) in all.iter().enumerate() {
        assert_eq!(regs[i].1.regs, whole.regs);
        assert_eq!(csrs[i].1.csrs, whole.csrs);
        assert_eq!(accesses[i].1.accesses, whole.accesses);
        assert!(regs[i].1.csrs.is_empty() && regs[i].1.accesses.is_empty());
        assert!(csrs[i].1.regs.is_empty() && csrs[i].1.accesses.is_empty());
        assert!(accesses[i].1.regs.is_empty() && accesses[i].1.csrs.is_empty());
        assert!(!whole.incomplete);
    }
}

#[test]
fn steps_have_no_gaps() {
    // next is the following pc, or the epc of a trap; a handler follows a trap.
    let mut expected = BASE;
    for (step, _) in told::<8>() {
        match step {
            Step::Insn(insn) => {
                assert_eq!(insn.pc, expected);
                expected = insn.next;
            }
            Step::Trap(trap) => {
                assert_eq!(trap.trap.epc, Some(expected));
                expected = trap.trap.handler.unwrap();
            }
            Step::Signal(_) => {}
        }
    }
}

/// The steps of a run, in which many are reported at once, and those of a model, which makes
/// them one by one.
fn together_and_alone(bench: impl Fn() -> Bench, steps: usize) {
    let together = bench().steps(steps as u64);
    let mut alone = Vec::new();
    let mut b = bench();
    while alone.len() < together.len() {
        let mut effects = Effects::NONE;
        let step = b.m.step(&mut effects);
        alone.push((step, effects));
    }
    assert!(together.len() >= steps);
    for (index, (a, b)) in together.iter().zip(&alone).enumerate() {
        assert_eq!(a, b, "step {index}");
    }
}

/// More instructions than are reported together; those that change much among them.
#[test]
fn effects_of_many_instructions_are_those_of_each() {
    together_and_alone(everything, 2000);
    let floating = || {
        let mut b = Bench::rv64();
        b.status(status::FS_INITIAL);
        b.set_x(A5, DATA);
        b.set_f(1, 1f64.to_bits());
        b.set_f(2, 3f64.to_bits());
        let mut code = vec![
            fsd(1, 0, A5),
            fld(3, 0, A5),
            fadd_d(4, 1, 2, 7),
            fdiv_d(5, 1, 2, 7),
            lr_w(A0, A5),
            sc_w(A1, A0, A5),
            sb(A1, 3, A5),
            lbu(ZERO, 3, A5),
        ];
        code.extend([amoadd_d(A3, A0, A5); 20]);
        code.extend([addi(A0, A0, 1); 60]);
        code.push(jal(ZERO, -4 * code.len() as i64));
        b.code(BASE, &code);
        b
    };
    together_and_alone(floating, 1500);
    let small = || {
        let mut b = Bench::isa("rv64imac_zicsr_zcmp_zacas");
        b.set_x(SP, DATA + 0x400);
        b.set_x(A5, DATA);
        b.code(BASE, &[amocas(4, A0, A2, A5), amocas(4, A0, A2, A5)]);
        let stack = |what| cm_stack(what, 8, 1);
        b.halfwords(BASE + 8, &[stack(Stack::Push), stack(Stack::Pop)]);
        b.code(BASE + 12, &[jal(ZERO, -12)]);
        b
    };
    together_and_alone(small, 1000);
}

#[test]
fn time_is_the_cycle_count_and_grows() {
    let mut b = everything();
    let mut last = 0;
    for (step, _) in b.steps(40) {
        let time = match step {
            Step::Insn(insn) => insn.time,
            Step::Trap(trap) => trap.time,
            Step::Signal(_) => continue,
        };
        assert!(time > last);
        last = time;
    }
    assert_eq!(last, b.m.cycles());
}

fn regs(effects: &Effects) -> Vec<(RegId, u64)> {
    effects.regs.iter().map(|w| (w.reg, w.value)).collect()
}

#[test]
fn an_amo_is_one_access_with_both_values() {
    let mut b = Bench::rv64();
    b.set_mem(DATA, 4, 0xffff_fff0);
    b.set_x(A1, DATA);
    b.set_x(A2, 5);
    let effects = b.one(amoadd_w(A0, A2, A1));
    let access = Access {
        kind: AccessKind::AtomicAdd,
        size: 2,
        addr: DATA,
        paddr: Some(DATA),
        data: Some(0xffff_fff5),
        operand: Some(0xffff_fff0),
    };
    assert_eq!(&*effects.accesses, &[access]);
    assert_eq!(regs(&effects), [(RegId::X(10), 0xffff_ffff_ffff_fff0)]);
    let effects = b.one(amominu_w(ZERO, A2, A1));
    assert_eq!(effects.accesses[0].kind, AccessKind::AtomicMin);
    assert!(effects.regs.is_empty());
}

#[test]
fn loads_and_stores_are_accesses() {
    let mut b = Bench::rv64();
    b.set_mem(DATA, 8, 0x8877_6655_4433_2281);
    b.set_x(A1, DATA);
    let effects = b.one(lb(A0, 0, A1));
    let access = effects.accesses[0];
    assert_eq!(
        (access.kind, access.size, access.addr),
        (AccessKind::Load, 0, DATA)
    );
    assert_eq!(access.data, Some(0x81), "as in memory");
    assert_eq!(regs(&effects), [(RegId::X(10), 0xffff_ffff_ffff_ff81)]);
    let effects = b.one(sh(A0, 6, A1));
    let access = effects.accesses[0];
    assert_eq!(
        (access.kind, access.size, access.addr),
        (AccessKind::Store, 1, DATA + 6)
    );
    assert_eq!(access.data, Some(0xff81));
}

#[test]
fn a_failed_sc_says_so() {
    let mut b = Bench::rv64();
    b.set_x(A1, DATA);
    b.set_x(A2, 5);
    let access = |kind, data| Access {
        kind,
        size: 2,
        addr: DATA,
        paddr: Some(DATA),
        data: Some(data),
        operand: None,
    };
    let effects = b.one(sc_w(A0, A2, A1));
    let failure = access(AccessKind::ConditionalStoreFailure, 5);
    assert_eq!(&*effects.accesses, &[failure]);
    assert_eq!(regs(&effects), [(RegId::X(10), 1)]);
    b.set_mem(DATA, 4, 0xffff_fff0);
    let steps = b.exec(&[lr_w(A0, A1), sc_w(A0, A2, A1)]);
    let load = access(AccessKind::Load, 0xffff_fff0);
    assert_eq!(&*steps[0].1.accesses, &[load]);
    assert_eq!(regs(&steps[0].1), [(RegId::X(10), 0xffff_ffff_ffff_fff0)]);
    assert_eq!(&*steps[1].1.accesses, &[access(AccessKind::Store, 5)]);
    assert_eq!(regs(&steps[1].1), [(RegId::X(10), 0)]);
}

#[test]
fn a_misaligned_access_is_one_of_its_full_size() {
    // Within a page and across two.
    for addr in [DATA + 1, DATA + 0xffd] {
        let mut b = Bench::rv64();
        b.set_x(A1, addr);
        b.set_x(A2, 0x8877_6655_4433_2211);
        let mut access = Access {
            kind: AccessKind::Store,
            size: 3,
            addr,
            paddr: Some(addr),
            data: Some(0x8877_6655_4433_2211),
            operand: None,
        };
        assert_eq!(&*b.one(sd(A2, 0, A1)).accesses, &[access]);
        access.kind = AccessKind::Load;
        assert_eq!(&*b.one(ld(A0, 0, A1)).accesses, &[access]);
        assert_eq!(b.x(A0), 0x8877_6655_4433_2211);
    }
}

#[test]
fn floating_point_accesses_are_not_boxed() {
    let mut b = Bench::rv64();
    b.status(status::FS);
    b.set_x(A1, DATA);
    b.set_mem(DATA, 4, 0x8765_4321);
    let effects = b.one(flw(3, 0, A1));
    let mut access = Access {
        kind: AccessKind::Load,
        size: 2,
        addr: DATA,
        paddr: Some(DATA),
        data: Some(0x8765_4321),
        operand: None,
    };
    assert_eq!(&*effects.accesses, &[access]);
    assert_eq!(regs(&effects), [(RegId::F(3), 0xffff_ffff_8765_4321)]);
    access.kind = AccessKind::Store;
    assert_eq!(&*b.one(fsw(3, 0, A1)).accesses, &[access]);
}

#[test]
fn a_csr_write_is_told_with_what_the_register_then_holds() {
    let mut b = Bench::rv64();
    b.set_x(A1, u64::MAX);
    let effects = b.one(csrrw(A0, csr::MIDELEG, A1));
    assert_eq!(csr_writes(&effects), [(csr::MIDELEG, 0x222)]);
    assert_eq!(regs(&effects), [(RegId::X(10), 0)]);
    assert!(
        b.one(csrr(A0, csr::MIDELEG)).csrs.is_empty(),
        "a read writes nothing"
    );
    // A view is told under the register it is a view of.
    b.set_x(A1, status::SUM);
    let effects = b.one(csrw(csr::SSTATUS, A1));
    assert_eq!(csr_writes(&effects), [(csr::MSTATUS, b.csr(csr::MSTATUS))]);
}

#[test]
fn traps_and_returns_tell_csrs_and_mode() {
    let mut b = Bench::rv64();
    b.set_mode(Mode::U);
    let steps = b.exec(&[ECALL]);
    let Step::Trap(trap) = steps[0].0 else {
        panic!("{steps:?}");
    };
    assert_eq!((trap.mode, trap.bits), (Mode::U, Some(ECALL)));
    assert_eq!(steps[0].1.mode, Some(Mode::M));
    let mut written = csr_writes(&steps[0].1);
    written.sort_unstable();
    let status = b.csr(csr::MSTATUS);
    let expected = [
        (csr::MSTATUS, status),
        (csr::MEPC, BASE),
        (csr::MCAUSE, 8),
        (csr::MTVAL, 0),
    ];
    assert_eq!(written, expected);
    let effects = b.one(MRET);
    assert_eq!(effects.mode, Some(Mode::U));
    assert_eq!(csr_writes(&effects), [(csr::MSTATUS, b.csr(csr::MSTATUS))]);
}

#[test]
fn what_traps_has_no_other_effects() {
    let mut b = Bench::rv64();
    b.set_x(A1, 16);
    let steps = b.exec(&[ld(A0, 0, A1)]);
    assert!(steps[0].1.regs.is_empty() && steps[0].1.accesses.is_empty());
    let Step::Trap(trap) = steps[0].0 else {
        panic!("{steps:?}");
    };
    assert_eq!(trap.bits, Some(ld(A0, 0, A1)));
    // A fetch that fails has no instruction.
    let steps = b.exec(&[jalr(ZERO, A1, 0), NOP]);
    let Step::Trap(trap) = steps[1].0 else {
        panic!("{steps:?}");
    };
    assert_eq!(trap.bits, None);
}

#[test]
fn floating_point_tells_register_flags_and_status() {
    let mut b = Bench::rv64();
    b.status(status::FS_INITIAL);
    b.set_f(1, 1f64.to_bits());
    b.set_f(2, 3f64.to_bits());
    let effects = b.one(fdiv_d(RNE, 3, 1, 2));
    assert_eq!(regs(&effects), [(RegId::F(3), (1f64 / 3.0).to_bits())]);
    let mut written = csr_writes(&effects);
    written.sort_unstable();
    assert_eq!(
        written,
        [(csr::FFLAGS, 1), (csr::MSTATUS, b.csr(csr::MSTATUS))]
    );
    let effects = b.one(fadd_d(RNE, 3, 1, 1));
    assert!(effects.csrs.is_empty(), "exact, and dirty already");
}

#[test]
fn the_context_is_that_of_the_context_registers() {
    let mut b = Bench::rv64();
    b.set_x(A1, 0x1234);
    b.set_x(A2, 0x56);
    let steps = b.exec(&[csrw(0x5a8, A1), csrw(0x7a8, A2), NOP]);
    let Step::Insn(insn) = steps[2].0 else {
        panic!("{steps:?}");
    };
    assert_eq!(
        (insn.context.scontext(), insn.context.hcontext()),
        (0x1234, 0x56)
    );
}

#[test]
fn instructions_are_told_as_they_are_in_memory() {
    let mut b = Bench::rv64();
    b.halfwords(BASE, &[C_NOP, 0x4505]);
    b.set_pc(BASE);
    let steps = b.steps(2);
    let bits: Vec<u32> = crate::bench::insns(&steps).iter().map(|i| i.bits).collect();
    assert_eq!(bits, [1, 0x4505]);
    assert_eq!(b.x(A0), 1, "c.li a0, 1");
    assert_eq!(b.m.pc(), BASE + 4);
}

#[test]
fn a_call_to_the_host_is_a_halt_and_a_resume() {
    let mut b = Bench::of(Xlen::Rv64);
    b.set_x(10, 0x10); // SYS_CLOCK
    b.code(BASE, &[slli(0, 0, 31), EBREAK, srai(0, 0, 7)]);
    b.set_pc(BASE);
    let mut recorder = Recorder::default();
    b.m.run(2, &mut recorder);
    let steps: Vec<Step> = recorder.0.iter().map(|s| s.0).collect();
    assert_eq!(steps[1], Step::Signal(Signal::Halted));
    assert_eq!(steps[2], Step::Signal(Signal::Resumed));
    assert_eq!(recorder.0[1].1.regs[0].reg, RegId::X(10));
    assert_eq!(steps.len(), 4);
}

/// `satp` can be the context, with either of its fields. Modes are bare, so that no page
/// table is needed; the hart keeps the other bits all the same.
#[test]
fn the_context_is_an_address_space_where_the_machine_says_so() {
    let cases = [
        (
            Xlen::Rv64,
            ContextSource::Asid,
            0xabcd << 44 | 0x1234,
            0xabcd,
        ),
        (
            Xlen::Rv64,
            ContextSource::Root,
            0xabcd << 44 | 0x1234,
            0x1234,
        ),
        (
            Xlen::Rv64,
            ContextSource::Scontext,
            0xabcd << 44 | 0x1234,
            0,
        ),
        (Xlen::Rv32, ContextSource::Asid, 0x155 << 22 | 0x1234, 0x155),
        (
            Xlen::Rv32,
            ContextSource::Root,
            0x155 << 22 | 0x1234,
            0x1234,
        ),
    ];
    for (xlen, context, satp, expected) in cases {
        let mut config = virt(xlen);
        config.context = context;
        let mut b = Bench::new(config);
        b.set_x(A1, satp);
        let steps = b.exec(&[NOP, csrw(0x180, A1), NOP, ECALL]);
        let contexts: Vec<u64> = steps.iter().map(|(step, _)| context_of(step)).collect();
        // The write is the last instruction in the old space.
        let expected_ones = [0, 0, expected, expected];
        assert_eq!(contexts[..4], expected_ones, "{xlen:?} {context:?}");
        // The same for pieces of straight-line code.
        b.code(BASE, &[NOP, csrw(0x180, ZERO), NOP]);
        b.set_pc(BASE);
        let mut watch = Watch::<2>(Vec::new());
        b.m.run(3, &mut watch);
        let contexts: Vec<u64> = watch.0.iter().map(|(step, _)| context_of(step)).collect();
        assert_eq!(contexts, [expected, expected, 0], "{xlen:?} {context:?}");
    }
}

fn context_of(step: &Step) -> u64 {
    match step {
        Step::Insn(insn) => insn.context.0,
        Step::Trap(trap) => trap.context.0,
        Step::Signal(_) => panic!("{step:?}"),
    }
}
