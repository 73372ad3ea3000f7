//! Logs in Spike's format, and what they mean.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use super::*;

mod cores;
mod straight;
use crate::tests::{Keep, Told, assert_any_cut, assert_robust, read, whole};
use hartrace_flow::{
    Access, AccessKind, Cause, CsrWrite, Effects, Mode, RegId, RegWrite, Signal, SpaceId, Step,
    Trap, Wants,
};
use hartrace_testkit::{Random, pieces};

fn reader() -> SpikeReader<'static> {
    SpikeReader::new(SpikeOptions::default(), None)
}

/// Reads a log, wherever it is cut.
fn log(text: &str) -> Told {
    assert_any_cut(reader, text.as_bytes())
}

/// Reads a log without a fault.
fn good(text: &str) -> Keep {
    let (keep, bad) = log(text);
    assert_eq!(bad, vec![], "{text}");
    keep
}

/// The effects of a single commit line.
fn effects(line: &str) -> Effects {
    let keep = good(line);
    assert_eq!(keep.steps.len(), 1);
    keep.steps[0].2
}

fn reg(reg: RegId, value: u64) -> RegWrite {
    RegWrite { reg, value }
}

fn csr(csr: u16, value: u64) -> CsrWrite {
    CsrWrite { csr, value }
}

fn access(
    kind: AccessKind,
    size: u8,
    addr: u64,
    data: Option<u64>,
    operand: Option<u64>,
) -> Access {
    Access {
        paddr: None,
        kind,
        size,
        addr,
        data,
        operand,
    }
}

#[test]
fn registers_and_csrs() {
    let fx = effects("core   0: 3 0x0000000080000004 (0x08428293) x5  0x0000000080000084\n");
    assert_eq!(&*fx.regs, [reg(RegId::X(5), 0x8000_0084)]);
    let fx = effects(
        "core   0: 3 0x0000000080000038 (0x1aa5f653) c1_fflags 0x0000000000000008 f12 0x7ff0000000000000",
    );
    assert_eq!(&*fx.regs, [reg(RegId::F(12), 0x7ff0_0000_0000_0000)]);
    assert_eq!(&*fx.csrs, [csr(1, 8)]);
    let fx = effects(
        "core   0: 3 0x0000000080000054 (0x0030d8f3) c1_fflags 0x0000000000000001 \
         c2_frm 0x0000000000000000 x17 0x0000000000000000\n",
    );
    assert_eq!(&*fx.csrs, [csr(1, 1), csr(2, 0)]);
    assert_eq!(&*fx.regs, [reg(RegId::X(17), 0)]);
    assert!(!fx.incomplete);
}

#[test]
fn loads_take_their_size_from_the_instruction_and_their_data_from_rd() {
    let load = |size, data| vec![access(AccessKind::Load, size, 0x8000_2000, data, None)];
    for (bits, regs, want) in [
        // c.lw, lbu, lh, ld, flw, a load to x0, lr.w
        (
            "4110",
            " x12 0xffffffff90abcdef",
            load(2, Some(0x90ab_cdef)),
        ),
        ("00054603", " x12 0x00000000000000ef", load(0, Some(0xef))),
        ("00051603", " x12 0xffffffffffffcdef", load(1, Some(0xcdef))),
        (
            "00053603",
            " x12 0xfedcba9876543210",
            load(3, Some(0xfedc_ba98_7654_3210)),
        ),
        (
            "00052087",
            " f1  0xffffffff40000000",
            load(2, Some(0x4000_0000)),
        ),
        ("00052003", "", load(2, None)),
        (
            "100526af",
            " x13 0xffffffff90abcdef",
            load(2, Some(0x90ab_cdef)),
        ),
    ] {
        let line =
            format!("core   0: 3 0x0000000080000000 (0x{bits}){regs} mem 0x0000000080002000\n");
        assert_eq!(&*effects(&line).accesses, want, "{bits}");
    }
}

/// What Spike logs of instructions that access memory several times, read and written
/// again as it was.
#[test]
fn several_accesses_of_one_instruction() {
    let place = 0x8010_2600;
    let (low, high) = (0xffff_ffff_ffff_5803, 0xffff_ffff_0000_5ffe);
    let swap = |addr, data| access(AccessKind::AtomicSwap, 3, addr, Some(data), None);
    let load = |addr| access(AccessKind::Load, 3, addr, None, None);
    let zero = |addr| access(AccessKind::Store, 3, addr, Some(0), None);
    let bytes: String = (0..64)
        .map(|at| format!(" mem 0x{:016x} 0x00", place + at))
        .collect();
    let cases = [
        // amocas.q that stores, and one that does not.
        (
            "2e66432f",
            format!(
                " x6  0x{low:016x} x7  0x{high:016x} mem 0x{place:016x} \
                 mem 0x{place:016x} 0x{low:016x} mem 0x{:016x} 0x{high:016x}",
                place + 8
            ),
            vec![swap(place, low), swap(place + 8, high)],
        ),
        (
            "2e66432f",
            format!(" x6  0x{low:016x} x7  0x{high:016x} mem 0x{place:016x}"),
            vec![load(place), load(place + 8)],
        ),
        // cbo.zero.
        (
            "0043200f",
            bytes,
            (0..64).step_by(8).map(|at| zero(place + at)).collect(),
        ),
    ];
    for (bits, tail, want) in cases {
        let line = format!("core   0: 3 0x0000000080000000 (0x{bits}){tail}\n");
        let told = good(&line);
        let (hart, step, effects) = &told.steps[0];
        assert_eq!(&*effects.accesses, want, "{bits}");
        assert!(!effects.incomplete, "{bits}");
        let mut text = Vec::new();
        let mut writer = SpikeWriter::new(Isa::RV64GC, |bytes| text.extend_from_slice(bytes));
        writer.step(*hart, step, effects);
        writer.finish();
        drop(writer);
        assert_eq!(String::from_utf8(text).unwrap(), line);
    }
}

#[test]
fn stores_and_atomics() {
    let fx = effects("core   0: 3 0x0000000080000036 (0x00b504a3) mem 0x0000000080002009 0xef\n");
    let store = access(AccessKind::Store, 0, 0x8000_2009, Some(0xef), None);
    assert_eq!(&*fx.accesses, [store]);
    let fx = effects(
        "core   0: 3 0x0000000080000040 (0x00b5272f) x14 0xffffffff90abcdef \
         mem 0x0000000080002000 mem 0x0000000080002000 0x21579bde\n",
    );
    let (new, old) = (Some(0x2157_9bde), Some(0x90ab_cdef));
    let add = access(AccessKind::AtomicAdd, 2, 0x8000_2000, new, old);
    assert_eq!(&*fx.accesses, [add]);
    // amoswap to x0 shows no old value; sc that succeeds is a store.
    let fx = effects(
        "core   0: 3 0x0000000080000040 (0x08b5302f) mem 0x0000000080002000 \
         mem 0x0000000080002000 0x1234567890abcdef\n",
    );
    let new = Some(0x1234_5678_90ab_cdef);
    let swap = access(AccessKind::AtomicSwap, 3, 0x8000_2000, new, None);
    assert_eq!(&*fx.accesses, [swap]);
    let fx = effects(
        "core   0: 3 0x0000000080000048 (0x18b5382f) x16 0x0000000000000000 \
         mem 0x0000000080002000 0x1234567890abcdef\n",
    );
    let store = access(AccessKind::Store, 3, 0x8000_2000, new, None);
    assert_eq!(&*fx.accesses, [store]);
}

#[test]
fn a_failed_sc_has_its_address_from_the_registers_so_far() {
    let sc = "core   0: 3 0x0000000080000004 (0x18a5252f) x10 0x0000000000000001\n";
    assert!(effects(sc).incomplete);
    let set = "core   0: 3 0x0000000080000000 (0x00002537) x10 0x0000000080002000\n";
    let keep = good(&(set.to_string() + sc));
    let want = access(
        AccessKind::ConditionalStoreFailure,
        2,
        0x8000_2000,
        None,
        None,
    );
    assert_eq!(&*keep.steps[1].2.accesses, [want]);
    assert!(!keep.steps[1].2.incomplete);
}

#[test]
fn vector_registers_make_effects_incomplete() {
    let fx = effects(
        "core   0: 3 0x0000000080000010 (0x02056007) e32 m1 l4 v0  \
         0x00000004000000030000000200000001 mem 0x0000000080002000 mem 0x0000000080002004\n",
    );
    assert!(fx.incomplete);
    let load = |addr| access(AccessKind::Load, 2, addr, None, None);
    assert_eq!(&*fx.accesses, [load(0x8000_2000), load(0x8000_2004)]);
    assert!(fx.regs.is_empty());
    // vluxei8 of 16-bit elements.
    let fx = effects(
        "core   0: 3 0x0000000080000010 (0x06250087) e16 mf2 l1 v1  \
         0x00000000000000000000000000000001 mem 0x0000000080002000\n",
    );
    assert_eq!(fx.accesses[0].size, 1);
}

/// Straight code at `pc` in mode M.
fn commit(hart: u32, pc: u64, bits: u32) -> String {
    let digits = if bits & 3 == 3 { 8 } else { 4 };
    format!("core{hart:4}: 3 0x{pc:016x} (0x{bits:0digits$x})\n")
}

fn list(hart: u32, pc: u64, bits: u32) -> String {
    format!("core{hart:4}: 0x{pc:016x} (0x{bits:08x}) some text\n")
}

const TRAPS: &str = "\
core   0: 0x0000000080000000 (0x00000013) nop
core   0: 3 0x0000000080000000 (0x00000013)
core   0: 0x0000000080000004 (0x00000073) ecall
core   0: exception trap_machine_ecall, epc 0x0000000080000004
core   0: >>>>  handler
core   0: 0x0000000080000100 (0x00000013) nop
core   0: 3 0x0000000080000100 (0x00000013)
core   0: 0x0000000080000104 (0x0000ffff) unknown
core   0: exception trap_illegal_instruction, epc 0x0000000080000104
core   0:           tval 0x000000000000ffff
core   0: exception interrupt #7, epc 0x0000000080000100
core   0: 0x0000000080000100 (0x00000013) nop
core   0: 3 0x0000000080000100 (0x00000013)
core   0: 0x0000000080000104 (0x30200073) mret
core   0: 3 0x0000000080000104 (0x30200073) c768_mstatus 0x0000000a00000080
core   0: exception trap_instruction_page_fault, epc 0x0000000000000040
core   0:           tval 0x0000000000000040
core   0: 1 0x0000000080000200 (0x00000013)
";

#[test]
fn traps_have_cause_value_instruction_and_handler() {
    let keep = good(TRAPS);
    let traps = keep.traps();
    let told: Vec<_> = traps
        .iter()
        .map(|t| {
            (
                t.trap.epc.unwrap(),
                t.trap.handler.unwrap_or(0),
                t.trap.cause,
                t.trap.tval,
                t.bits,
            )
        })
        .collect();
    let exception = |code| Cause::Exception(Some(code));
    assert_eq!(
        told,
        [
            (0x8000_0004, 0x8000_0100, exception(11), None, Some(0x73)),
            (
                0x8000_0104,
                0x8000_0100,
                exception(2),
                Some(0xffff),
                Some(0xffff)
            ),
            (
                0x8000_0100,
                0x8000_0100,
                Cause::Interrupt(Some(7)),
                None,
                None
            ),
            (0x40, 0x8000_0200, exception(12), Some(0x40), None),
        ]
    );
    let path: Vec<_> = keep.insns().iter().map(|i| (i.pc, i.next)).collect();
    assert_eq!(
        path,
        [
            (0x8000_0000, 0x8000_0004),
            (0x8000_0100, 0x8000_0104),
            (0x8000_0100, 0x8000_0104),
            (0x8000_0104, 0x40),
            (0x8000_0200, 0x8000_0204),
        ]
    );
    assert!(
        keep.steps
            .iter()
            .all(|s| s.2.incomplete == matches!(s.1, Step::Trap(_)))
    );
}

/// An ecall that supervisor mode takes, with an interrupt before its first
/// instruction: no line shows the mode between them.
#[test]
fn a_trap_before_the_handlers_first_instruction() {
    let text = "\
core   0: 3 0x0000000080000000 (0x30229073) c770_medeleg 0x0000000000000100
core   0: 3 0x0000000080000004 (0x30200073) c768_mstatus 0x0000000000000080
core   0: 0 0x0000000000001000 (0x00000013)
core   0: exception trap_user_ecall, epc 0x0000000000001004
core   0: exception interrupt #7, epc 0x0000000000002000
core   0: 3 0x0000000080000100 (0x30200073) c768_mstatus 0x0000000000000080
core   0: 1 0x0000000000002000 (0x00000013)
core   0: exception trap_load_page_fault, epc 0x0000000000002004
";
    let keep = good(text);
    let traps: Vec<_> = keep
        .steps
        .iter()
        .filter_map(|s| match s.1 {
            Step::Trap(t) => Some((t.mode, s.2.mode, t.trap.handler)),
            _ => None,
        })
        .collect();
    assert_eq!(
        traps,
        [
            (Mode::U, Some(Mode::S), Some(0x2000)),
            (Mode::S, Some(Mode::M), Some(0x8000_0100)),
            (Mode::S, Some(Mode::M), None),
        ]
    );
}

#[test]
fn the_mode_before_a_trap_survives_a_return() {
    let text = "\
core   0: 3 0x0000000080000000 (0x30029073) c768_mstatus 0x0000000000000000
core   0: 3 0x0000000080000004 (0x30200073) c768_mstatus 0x0000000000000080
core   0: exception interrupt #7, epc 0x0000000000001000
core   0: 3 0x0000000080000100 (0x30200073) c768_mstatus 0x0000000000000080
core   0: exception trap_load_page_fault, epc 0x0000000000001000
core   0:           tval 0x0000000000000008
core   0: 3 0x0000000080000100 (0x00000013)
";
    let keep = good(text);
    let modes: Vec<_> = keep.traps().iter().map(|t| t.mode).collect();
    assert_eq!(modes, [Mode::U, Mode::U]);
    // Effects tell the mode where it changes.
    let after: Vec<_> = keep.steps.iter().map(|s| s.2.mode).collect();
    let (user, machine) = (Some(Mode::U), Some(Mode::M));
    assert_eq!(after, [None, user, machine, user, machine, None]);
}

#[test]
fn several_harts_do_not_mix() {
    let text = commit(0, 0x1000, 0x13)
        + &commit(11, 0x2000, 0x13)
        + &commit(11, 0x2004, 0x1)
        + &commit(0, 0x1004, 0x13)
        + &commit(11, 0x2006, 0x13);
    let keep = good(&text);
    let path: Vec<_> = keep
        .steps
        .iter()
        .map(|s| match s.1 {
            Step::Insn(i) => (s.0.0, i.pc, i.next),
            _ => (s.0.0, 0, 0),
        })
        .collect();
    assert_eq!(
        path,
        [
            (11, 0x2000, 0x2004),
            (0, 0x1000, 0x1004),
            (11, 0x2004, 0x2006),
            (0, 0x1004, 0x1008),
            (11, 0x2006, 0x200a),
        ]
    );
}

#[test]
fn commits_alone_show_traps_as_jumps_that_cannot_be() {
    let text = commit(0, 0x1000, 0x13) + &commit(0, 0x8000, 0x13);
    let traps = good(&text).traps();
    let trap = Trap {
        epc: Some(0x1004),
        handler: Some(0x8000),
        cause: Cause::Unknown,
        tval: None,
        pending: None,
    };
    assert_eq!((traps.len(), traps[0].trap), (1, trap));
    // An image may tell more.
    let mut image = Image::new();
    let code = [0x13, 0, 0, 0, 0x73, 0, 0, 0];
    image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
    let reader = SpikeReader::new(SpikeOptions::default(), Some(&image));
    let (keep, bad) = whole(reader, text.as_bytes());
    assert_eq!(bad, vec![]);
    let traps = keep.traps();
    assert_eq!(traps[0].trap.cause, Cause::Exception(Some(11)));
    assert_eq!(traps[0].bits, Some(0x73));
}

/// While misa.D is clear Spike shows half of a register, which holds a boxed
/// value.
/// The cause of a trap from the handler that reads it, where steps may wait.
#[test]
fn a_handler_that_reads_its_cause_tells_it() {
    struct Steps(Vec<(HartId, Step)>);
    impl Observer for Steps {
        const WANTS: Wants = Wants::STEPS;
        fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
            self.0.push((hart, *step));
        }
    }
    let steps = |text: &str| {
        let (mut reader, mut steps) = (reader(), Steps(Vec::new()));
        for line in text.as_bytes().chunks(7) {
            reader.feed(line, &mut steps, &mut |e| panic!("{e}"));
        }
        reader.finish(&mut steps, &mut |e| panic!("{e}"));
        steps.0
    };
    let cause = |text: &str| {
        let traps = steps(text).into_iter().filter_map(|(_, step)| match step {
            Step::Trap(trap) => Some(trap.trap.cause),
            _ => None,
        });
        traps.collect::<Vec<Cause>>()
    };
    let nop = |pc| commit(0, pc, 0x13);
    let read = |csr: &str, value: &str| {
        format!("core   0: 3 0x0000000000000804 (0x{csr}02573) x10 {value}\n")
    };
    let (mcause, scause) = ("342", "142");
    let trap = nop(0x100) + &nop(0x800);
    let timer = read(mcause, "0x8000000000000007");
    let interrupt = Cause::Interrupt(Some(7));
    assert_eq!(cause(&format!("{trap}{timer}")), [interrupt]);
    let fault = read(mcause, "0x000000000000000d");
    assert_eq!(
        cause(&format!("{trap}{fault}")),
        [Cause::Exception(Some(13))]
    );
    // Nothing tells, or something about another trap.
    assert_eq!(cause(&trap), [Cause::Unknown]);
    let other = read(scause, "0x0000000000000002");
    assert_eq!(
        cause(&format!("{trap}{other}")),
        [Cause::Unknown],
        "of another mode"
    );
    let mret = commit(0, 0x804, 0x3020_0073) + &commit(0, 0x104, 0x13);
    let late = "core   0: 3 0x0000000000000108 (0x34202573) x10 0x0000000000000002\n";
    assert_eq!(
        cause(&format!("{trap}{mret}{late}")),
        [Cause::Unknown],
        "after the handler"
    );
    let nested = nop(0x804) + &nop(0x900);
    let inner = "core   0: 3 0x0000000000000904 (0x34202573) x10 0x0000000000000002\n";
    let expected = [Cause::Unknown, Cause::Exception(Some(2))];
    assert_eq!(
        cause(&format!("{trap}{nested}{inner}")),
        expected,
        "of the last trap"
    );
    let many: String = (0..300).map(|i| nop(0x804 + 4 * i)).collect();
    let far = "core   0: 3 0x0000000000000cb4 (0x34202573) x10 0x0000000000000002\n";
    assert_eq!(
        cause(&format!("{trap}{many}{far}")),
        [Cause::Unknown],
        "too late"
    );
    // The steps are the same and in the same order, of other harts too.
    let beside = commit(1, 0x200, 0x13) + &commit(1, 0x204, 0x13);
    let text = format!("{trap}{beside}{timer}{}", nop(0x808));
    let kept = good(&text);
    let same = steps(&text);
    assert_eq!(same.len(), kept.steps.len());
    for ((hart, step), (other, at_once, _)) in same.iter().zip(&kept.steps) {
        assert_eq!(hart, other);
        match (step, at_once) {
            (Step::Trap(a), Step::Trap(b)) => {
                assert_eq!(b.trap.cause, Cause::Unknown, "effects are not kept back");
                assert_eq!((a.trap.epc, a.trap.handler), (b.trap.epc, b.trap.handler));
            }
            (a, b) => assert_eq!(a, b),
        }
    }
}

/// What a debugger does, as our own logs tell it; and a semihosting call in a log
/// that does not.
#[test]
fn a_debugger_halts_and_resumes() {
    let call = [commit(0, 0x100, 0x01f0_1013), commit(0, 0x108, 0x4070_5013)];
    let debugger = "core   0: debugger wrote mem 0x0000000000000200 0x12\n\
                    core   0: debugger halted x10 0x0000000000000007\n\
                    core   0: debugger resumed\n";
    let told = good(&format!("{}{debugger}{}", call[0], call[1]));
    let steps: Vec<&Step> = told.steps.iter().map(|(_, step, _)| step).collect();
    let Step::Insn(first) = steps[0] else {
        panic!("{steps:?}");
    };
    assert_eq!((first.pc, first.next), (0x100, 0x104));
    let signals = [Signal::Update, Signal::Halted, Signal::Resumed];
    for (step, signal) in steps[1..].iter().zip(signals) {
        assert_eq!(**step, Step::Signal(signal));
    }
    assert_eq!(steps.len(), 5);
    assert_eq!(told.steps[1].2.accesses[0].data, Some(0x12));
    assert_eq!(told.steps[2].2.regs[0].value, 7);
    assert!(!told.steps[2].2.incomplete);
    // Nothing but the calls themselves.
    let told = good(&call.concat());
    let signals: Vec<Signal> = told
        .steps
        .iter()
        .filter_map(|(_, step, _)| match step {
            Step::Signal(signal) => Some(*signal),
            Step::Trap(trap) => panic!("{trap:?}"),
            Step::Insn(_) => None,
        })
        .collect();
    assert_eq!(signals, [Signal::Halted, Signal::Resumed]);
    assert!(told.steps[1].2.incomplete, "what it changed is not known");
    for line in ["core   0: debugger", "core   0: debugger left"] {
        assert_eq!(log(line).1.len(), 1, "{line}");
    }
}

#[test]
fn half_a_float_register_is_boxed() {
    let text =
        "core   0: 3 0x0000000080000000 (0xf7819907) f18 0xffffbc02 mem 0x0000000080001000\n";
    let told = reg(RegId::F(18), 0xffff_ffff_ffff_bc02);
    assert_eq!(&*effects(text).regs, &[told]);
}

/// Where traps are told, a jump that cannot be may stay one.
#[test]
fn jumps_that_nothing_explains_stay_jumps_if_asked_for() {
    let listed = "core   0: 0x0000000000001000 (0x00000013) nop\n";
    let commits = commit(0, 0x1000, 0x13) + &commit(0, 0x8000, 0x13);
    let text = alloc::format!("{listed}{commits}");
    let options = SpikeOptions {
        plain_jumps: true,
        ..SpikeOptions::default()
    };
    let nexts = |text: &str| {
        let (keep, bad) = whole(SpikeReader::new(options, None), text.as_bytes());
        assert_eq!(bad, vec![]);
        (keep.traps().len(), keep.insns().first().map(|i| i.next))
    };
    assert_eq!(nexts(&text), (0, Some(0x8000)));
    // Where the last one goes is not guessed if it is a branch.
    let branch = commit(0, 0x1000, 0x13) + &commit(0, 0x1004, 0xfed8_ebe3);
    let (keep, _) = whole(
        SpikeReader::new(options, None),
        alloc::format!("{listed}{branch}").as_bytes(),
    );
    assert_eq!(keep.insns().len(), 1);
    // Without the listing there is nothing that would tell a trap.
    assert_eq!(nexts(&commits), (1, Some(0x1004)));
}

#[test]
fn a_rise_in_privilege_is_a_trap() {
    let text = "core   0: 0 0x0000000000001000 (0x00000013)\n\
                core   0: 3 0x0000000000001004 (0x00000013)\n";
    let traps = good(text).traps();
    assert_eq!(
        (traps[0].trap.epc.unwrap(), traps[0].trap.handler),
        (0x1004, Some(0x1004))
    );
    assert_eq!(traps[0].mode, Mode::U);
}

#[test]
fn an_image_with_other_code_is_reported_and_the_log_believed() {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &[1, 0, 0, 0], Isa::RV64GC);
    let reader = SpikeReader::new(SpikeOptions::default(), Some(&image));
    let (keep, bad) = whole(reader, commit(0, 0x1000, 0x13).as_bytes());
    assert_eq!(bad[0].kind, LineErrorKind::CodeDiffers(0x1000));
    assert_eq!((keep.lost(), keep.insns().len()), (0, 1));
}

#[test]
fn the_listing_alone() {
    let text = list(0, 0x1000, 0x13)
        + "core   0: >>>>  loop\n"
        + &list(0, 0x1004, 0xa001)
        + "core   0: exception interrupt #7, epc 0x0000000000001004\n"
        + "core   0: >>>>  handler\ncore   0: Executed 3 times\n"
        + &list(0, 0x2000, 0x73)
        + "core   0: exception trap_machine_ecall, epc 0x0000000000002000\n"
        + &list(0, 0x2000, 0x1)
        + &list(0, 0x2002, 0x1);
    let keep = good(&text);
    let path: Vec<_> = keep.insns().iter().map(|i| (i.pc, i.next)).collect();
    assert_eq!(
        path,
        [
            (0x1000, 0x1004),
            (0x1004, 0x1004),
            (0x1004, 0x1004),
            (0x1004, 0x1004),
            (0x2000, 0x2002),
            (0x2002, 0x2004),
        ]
    );
    let traps: Vec<_> = keep
        .traps()
        .iter()
        .map(|t| (t.trap.epc.unwrap(), t.trap.handler.unwrap_or(0)))
        .collect();
    assert_eq!(traps, [(0x1004, 0x2000), (0x2000, 0x2000)]);
    assert!(keep.steps.iter().all(|s| s.2.incomplete));
}

#[test]
fn a_repeat_count_cannot_blow_up() {
    let text = list(0, 0x1000, 0xa001)
        + "core   0: Executed 18446744073709551615 times\n"
        + &list(0, 0x1002, 0x1);
    let (keep, bad) = log(&text);
    assert_eq!(bad[0].kind, LineErrorKind::Repeat);
    assert_eq!((keep.insns().len(), keep.lost()), (2, 1));
    // With commit lines the count says nothing new.
    let text = commit(0, 0x1000, 0xa001) + "core   0: Executed 99999999999 times\n";
    assert_eq!(good(&text).insns().len(), 1);
}

#[test]
fn a_vector_access_that_faults_half_way_has_not_retired() {
    let text = list(0, 0x1000, 0x0205_6007)
        + "core   0: 3 0x0000000000001000 (0x02056007) e32 m1 l4 v0  0x00000000000000000000000000000001 mem 0x0000000080002000\n"
        + "core   0: exception trap_load_page_fault, epc 0x0000000000001000\n"
        + "core   0:           tval 0x0000000080003000\n"
        + &commit(0, 0x8000, 0x13);
    let keep = good(&text);
    assert_eq!(keep.insns().len(), 1);
    assert_eq!(keep.traps()[0].bits, Some(0x0205_6007));
    assert_eq!(keep.traps()[0].mode, Mode::M);
}

#[test]
fn rv32_has_short_numbers() {
    let text = "core   0: 3 0xfffffffc (0x00000013)\ncore   0: 3 0x00000000 (0x2001) x1  0x00000002\n\
                core   0: 3 0x00000000 (0x6108) x10 0x00000001 mem 0x00000010\n";
    let keep = good(text);
    let path: Vec<_> = keep.insns().iter().map(|i| (i.pc, i.next)).collect();
    assert_eq!(path, [(0xffff_fffc, 0), (0, 0), (0, 2)]);
    assert_eq!(keep.traps(), vec![]);
}

#[test]
fn bad_lines_are_named() {
    let ok = commit(0, 0x1000, 0x13);
    for (line, want) in [
        (
            "hello",
            "line 2, column 1: expected `core` and a hart number, found `hello`",
        ),
        (
            "core   0: 2 0x0000000000001004 (0x13)",
            "line 2, column 11: expected the privilege digit 0, 1 or 3, found `2 0x0000000000001004 (0x13)`",
        ),
        (
            "core   0: 3 0x1004 (0x13)",
            "line 2, column 19: expected a hexadecimal number of 1 to 16 digits, found ` (0x13)`",
        ),
        (
            "core   0: 3 0x0000000000001004 (0x13",
            "line 2, column 37: expected an instruction as `(0x...)`",
        ),
        (
            "core   0: 3 0x0000000000001004 (0x0013) y5  0x1",
            "line 2, column 40: expected a register, a CSR or `mem` with its value, found ` y5  0x1`",
        ),
        (
            "core   0: 3 0x0000000000001004 (0x0013) x32 0x1",
            "line 2, column 44: expected a register, a CSR or `mem` with its value, found ` 0x1`",
        ),
        (
            "core   0: exception trap_of_fate, epc 0x0",
            "line 2, column 21: expected the name of a trap, found `trap_of_fate, epc 0x0`",
        ),
        (
            "core   0:           tval 0x0",
            "line 2, column 1: a trap value without a trap before it, found `core   0:           tval 0x0`",
        ),
        (
            "core 9999999999: 3",
            "line 2, column 6: expected `core` and a hart number, found `9999999999: 3`",
        ),
        (
            "core   0: dance",
            "line 2, column 11: expected a commit, an instruction or an exception, found `dance`",
        ),
    ] {
        let text = format!("{ok}{line}\n{}", commit(0, 0x2000, 0x13));
        let (keep, bad) = log(&text);
        let shown: Vec<_> = bad.iter().map(ToString::to_string).collect();
        assert_eq!(shown, [want], "{line}");
        assert_eq!(
            (keep.lost(), keep.insns().len(), keep.traps().len()),
            (1, 2, 0),
            "{line}"
        );
    }
}

#[test]
fn too_many_harts() {
    let options = SpikeOptions {
        max_harts: 2,
        ..SpikeOptions::default()
    };
    let text: String = (0..5).map(|hart| commit(hart, 0x1000, 0x13)).collect();
    let (keep, bad) = whole(SpikeReader::new(options, None), text.as_bytes());
    assert_eq!((bad.len(), keep.lost(), keep.insns().len()), (3, 3, 2));
    assert_eq!(bad[0].kind, LineErrorKind::TooManyHarts);
}

/// Steps without effects are the same, less the effects.
#[test]
fn a_line_of_nobody_is_no_loss_for_those_already_lost() {
    let mut text: String = (0..9).map(|hart| commit(hart, 0x1000, 1)).collect();
    text += "x\nx\nx\n";
    let (keep, bad) = log(&text);
    assert_eq!((bad.len(), keep.lost(), keep.insns().len()), (3, 11, 9));
    text += &commit(3, 0x1002, 1);
    text += "x\n";
    let (keep, bad) = log(&text);
    assert_eq!((bad.len(), keep.lost(), keep.insns().len()), (4, 12, 10));
}

#[test]
fn an_observer_of_steps_alone_gets_the_same_steps() {
    struct Steps(Vec<(HartId, Step)>);
    impl Observer for Steps {
        const WANTS: Wants = Wants::STEPS;
        fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
            assert!(effects.regs.is_empty() && effects.accesses.is_empty());
            self.0.push((hart, *step));
        }
    }
    let mut steps = Steps(Vec::new());
    let mut reader = reader();
    reader.feed(TRAPS.as_bytes(), &mut steps, &mut |e| panic!("{e}"));
    reader.finish(&mut steps, &mut |e| panic!("{e}"));
    let want: Vec<_> = good(TRAPS).steps.iter().map(|s| (s.0, s.1)).collect();
    assert_eq!(steps.0, want);
}

#[test]
fn a_long_log_in_random_pieces_and_with_flipped_bits() {
    let mut text = String::new();
    for lap in 0..60u64 {
        for n in 0..20 {
            let (pc, value) = (0x8000_0000 + 4 * n, lap * 0x0123_4567_89ab + n);
            text += &list((lap % 2) as u32, pc, 0x0085_3583);
            text += &format!(
                "core{:4}: 3 0x{pc:016x} (0x00853583) x11 0x{value:016x} mem 0x{:016x}\n",
                lap % 2,
                value & !7
            );
        }
        text += &format!(
            "core{:4}: exception interrupt #7, epc 0x0000000080000050\n",
            lap % 2
        );
    }
    let want = whole(reader(), text.as_bytes());
    assert_eq!(
        (want.1.len(), want.0.insns().len(), want.0.traps().len()),
        (0, 1200, 60)
    );
    let mut rng = Random::new(77);
    for _ in 0..10 {
        let chunks = pieces(text.as_bytes(), &mut rng);
        assert_eq!(read(reader(), chunks.into_iter()), want);
    }
    assert_robust(reader, text.as_bytes(), 31);
    let crlf = text.replace('\n', "\r\n");
    assert_eq!(whole(reader(), crlf.as_bytes()), want);
}

/// In a log of commits alone, a trap right after a return is seen if it is known where the
/// return led: by the last trap, or by what was written to `mepc` since.
#[test]
fn a_trap_right_after_mret() {
    let keep = good(
        "\
core   0: 3 0x0000000080000000 (0x00100293) x5  0x0000000000000001
core   0: 3 0x0000000080000100 (0x34102373) x6  0x0000000080000004
core   0: 3 0x0000000080000104 (0x30200073) c768_mstatus 0x0000000a00000080
core   0: 3 0x0000000080000100 (0x34102373) x6  0x0000000080000004
core   0: 3 0x0000000080000104 (0x00430313) x6  0x0000000080000008
core   0: 3 0x0000000080000108 (0x34131073) c833_mepc 0x0000000080000008
core   0: 3 0x000000008000010c (0x30200073) c768_mstatus 0x0000000a00000080
core   0: 3 0x0000000080000100 (0x34102373) x6  0x0000000080000008
",
    );
    let traps: Vec<_> = keep.traps().iter().map(|t| t.trap.epc.unwrap()).collect();
    assert_eq!(traps, [0x8000_0004, 0x8000_0004, 0x8000_0008]);
    let returns = keep.insns().into_iter().filter(|i| i.bits == 0x3020_0073);
    let led: Vec<u64> = returns.map(|i| i.next).collect();
    assert_eq!(led, [0x8000_0004, 0x8000_0008]);
}
