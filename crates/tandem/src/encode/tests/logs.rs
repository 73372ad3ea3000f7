//! Traps and returns of sources that do not tell all: logs of Spike.

use super::*;
use crate::{Change, How, NewPc};
use hartrace_flow::{HartId, Observer, Wants};
use hartrace_logs::{SpikeOptions, SpikeReader};

struct Trace {
    encoder: Encoder,
    bytes: Vec<u8>,
}

impl Observer for Trace {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.encoder.step(step, effects, &mut self.bytes);
    }

    fn finish(&mut self) {
        self.encoder.finish(&mut self.bytes);
    }
}

/// The groups of a log, and what they do not tell.
fn log(config: Config, text: &str) -> (Vec<Group>, std::string::String) {
    let mut trace = Trace {
        encoder: Encoder::new(config.clone()).unwrap(),
        bytes: Vec::new(),
    };
    let mut reader = SpikeReader::new(SpikeOptions::default(), None);
    let mut damaged = |error| panic!("{error}");
    reader.feed(text.as_bytes(), &mut trace, &mut damaged);
    reader.finish(&mut trace, &mut damaged);
    let unreported = std::format!("{}", trace.encoder.unreported());
    (groups(&config, &trace.bytes), unreported)
}

fn full(csr: u16, value: u64) -> Change {
    Change {
        register: Register::csr(csr),
        how: How::Full(value),
    }
}

/// User mode traps to machine mode and to supervisor mode.
const TRAPS: &str = "\
core   0: 0x0000000080000000 (0x30029073) csrw    mstatus, t0
core   0: 3 0x0000000080000000 (0x30029073) c768_mstatus 0x0000000000000000
core   0: 0x0000000080000004 (0x30200073) mret
core   0: 3 0x0000000080000004 (0x30200073) c768_mstatus 0x0000000000000080
core   0: 0x0000000000001000 (0x00000073) ecall
core   0: exception trap_user_ecall, epc 0x0000000000001000
core   0: >>>>  handler
core   0: 0x0000000080000100 (0x30200073) mret
core   0: 3 0x0000000080000100 (0x30200073) c768_mstatus 0x0000000000000080
core   0: 0x0000000000001004 (0x00053503) ld a0, 0(a0)
core   0: exception trap_load_page_fault, epc 0x0000000000001004
core   0:           tval 0x0000000000000008
core   0: 0x0000000080000200 (0x00000013) nop
core   0: 1 0x0000000080000200 (0x00000013)
core   0: exception trap_instruction_page_fault, epc 0x0000000080000204
core   0:           tval 0x0000000080000204
core   0: 1 0x0000000080000200 (0x00000013)
core   0: exception interrupt #7, epc 0x0000000080000204
core   0: 3 0x0000000080000100 (0x00000013)
";

#[test]
fn traps_are_made_from_their_lines() {
    let (groups, unreported) = log(Config::default(), TRAPS);
    assert_eq!(unreported, "trap.sstatus,trap.mstatus");
    let to = |pc| Some(NewPc::To(pc));
    let bits = |group: &Group| group.insn.map(|i| i.bits);
    let got: Vec<_> = groups.iter().map(|g| (g.pc, bits(g), g.mode)).collect();
    let (user, super_visor, machine) = (Some(Mode::U), Some(Mode::S), Some(Mode::M));
    let next = Some(NewPc::Increment);
    assert_eq!(
        got,
        [
            (to(0x8000_0000), None, machine),
            (next, Some(0x3002_9073), None),
            (to(0x1000), Some(0x3020_0073), user),
            (to(0x8000_0100), Some(0x73), machine),
            (to(0x1004), Some(0x3020_0073), user),
            (to(0x8000_0200), Some(0x0005_3503), super_visor),
            (next, Some(0x13), None),
            (to(0x8000_0200), None, super_visor),
            (next, Some(0x13), None),
            (to(0x8000_0100), None, machine),
            (next, Some(0x13), None),
        ]
    );
    assert_eq!(
        groups[3].changes,
        [full(0x341, 0x1000), full(0x342, 8), full(0x343, 0)]
    );
    assert_eq!(
        groups[5].changes,
        [full(0x141, 0x1004), full(0x142, 13), full(0x143, 8)]
    );
    let epc = 0x8000_0204;
    assert_eq!(
        groups[7].changes,
        [full(0x141, epc), full(0x142, 12), full(0x143, epc)]
    );
    assert_eq!(
        groups[9].changes,
        [full(0x341, epc), full(0x342, 1 << 63 | 7), full(0x343, 0)]
    );
}

/// Interrupts of RV32, and differences to a status nobody has told.
#[test]
fn traps_in_compact_style_on_rv32() {
    let mut config = Config::new(hartrace_isa::Isa::RV32GC, true);
    config.style = Style::compact();
    let text = "\
core   0: 3 0x80000000 (0x30029073) c768_mstatus 0x00000008
core   0: exception interrupt #11, epc 0x80000004
core   0: 3 0x80000100 (0x30029073) c768_mstatus 0x00000009
core   0: exception interrupt #11, epc 0x80000104
core   0: 3 0x80000100 (0x30029073) c768_mstatus 0x00000009
";
    let (groups, unreported) = log(config, text);
    assert_eq!(unreported, "trap.mstatus");
    let changes: Vec<_> = groups
        .iter()
        .flat_map(|g| g.changes.iter().copied())
        .collect();
    let offset = |csr, offset| Change {
        register: Register::csr(csr),
        how: How::Offset(offset),
    };
    assert_eq!(
        changes,
        [
            full(0x300, 8),
            full(0x341, 0x8000_0004),
            full(0x342, 0x8000_000b),
            full(0x343, 0),
            full(0x300, 9),
            full(0x341, 0x8000_0104),
            offset(0x342, 0),
            offset(0x343, 0),
            full(0x300, 9),
        ]
    );
}

/// Without `-l` the cause is not known, and not told.
#[test]
fn a_trap_without_a_line() {
    let text = "\
core   0: 3 0x0000000080000000 (0x00000013)
core   0: 3 0x0000000080000100 (0x00000013)
";
    let (groups, unreported) = log(Config::default(), text);
    assert_eq!(unreported, "trap.mstatus,trap.mcause,trap.mtval");
    assert_eq!(groups[2].changes, [full(0x341, 0x8000_0004)]);
    assert_eq!(groups[2].pc, Some(NewPc::To(0x8000_0100)));
}

/// A trap or a return that waits for a step that does not come.
#[test]
fn the_end_of_what_waits() {
    let ecall = Step::Trap(trap(Cause::Exception(Some(8)), Some(0x73)));
    let read = |steps: &[Did]| groups(&bare(), &encode(&bare(), steps));
    let alone = read(&[(ecall, none())]);
    assert_eq!(alone[0].mode, Some(Mode::M));
    assert_eq!(alone[0].changes.len(), 3);
    // A signal that says nothing does not end the wait, a loss does.
    let nop = Insn {
        pc: 0x2000,
        next: 0x2004,
        mode: Mode::S,
        ..insn(0x13)
    };
    let nop = (Step::Insn(nop), none());
    let silent = (Step::Signal(Signal::TraceOn), none());
    let lost = (Step::Signal(Signal::Lost), none());
    assert_eq!(read(&[(ecall, none()), silent, nop])[0].mode, Some(Mode::S));
    assert_eq!(read(&[(ecall, none()), lost, nop])[0].mode, Some(Mode::M));
    // A trap whose handler nobody knows: the next step shows it.
    let mut unseen = trap(Cause::Exception(Some(8)), Some(0x73));
    unseen.trap.handler = None;
    let unseen = Step::Trap(unseen);
    assert_eq!(
        read(&[(unseen, none()), nop])[0].pc,
        Some(NewPc::To(0x2000))
    );
    let lost = read(&[(unseen, none()), lost, nop]);
    assert_eq!(lost[0].pc, None);
    assert_eq!((lost[1].init, lost[1].pc), (true, Some(NewPc::To(0x2000))));
    // mret at the end leads nowhere else.
    let mret = (Step::Insn(insn(0x3020_0073)), none().csr(0x300, 0));
    assert_eq!(read(&[mret])[0].mode, None);
    let after = Insn {
        pc: 0x1004,
        next: 0x1008,
        mode: Mode::U,
        ..insn(0x13)
    };
    let told = read(&[mret, (Step::Insn(after), none())]);
    assert_eq!((told.len(), told[0].mode), (2, Some(Mode::U)));
}

/// Modes have two bits.
#[test]
fn modes_without_a_code() {
    for (mode, code) in [(Mode::VS, Mode::S), (Mode::VU, Mode::U), (Mode::D, Mode::M)] {
        let bytes = encode_insn(&bare(), 0x13, none().mode(mode));
        assert_eq!(groups(&bare(), &bytes)[0].mode, Some(code));
    }
}

/// fcsr appears as its two parts, a failed sc with its address from the
/// registers, vectors as incomplete.
#[test]
fn what_commit_lines_say() {
    let text = "\
core   0: 3 0x0000000080000000 (0x00002537) x10 0x0000000080002000
core   0: 3 0x0000000080000004 (0x0030d8f3) c1_fflags 0x0000000000000001 c2_frm 0x0000000000000000 x17 0x0000000000000000
core   0: 3 0x0000000080000008 (0x18a5252f) x10 0x0000000000000001
core   0: 3 0x000000008000000c (0x00b5272f) x14 0xffffffff90abcdef mem 0x0000000080002000 mem 0x0000000080002000 0x21579bde
core   0: 3 0x0000000080000010 (0x5e003057) e8 m1 l16 v0  0x00000000000000000000000000000000
";
    let (groups, unreported) = log(Config::default(), text);
    assert_eq!((groups.len(), unreported.as_str()), (6, ""));
    let x17 = Change {
        register: Register::x(17),
        how: How::Full(0),
    };
    assert_eq!(groups[2].changes, [x17, full(1, 1), full(2, 0)]);
    let (sc, amo) = (groups[3].data[0], groups[4].data[0]);
    assert_eq!((sc.eaddr, sc.store), (Some(0x8000_2000), None));
    let new = Some((2, 0x2157_9bde));
    assert_eq!((amo.eaddr, amo.store), (Some(0x8000_2000), new));
    assert_eq!(groups[4].data.len(), 1);
    assert!(groups[5].changes.is_empty());
}
