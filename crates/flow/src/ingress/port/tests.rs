//! The port against the tables and examples of E-Trace chapter 4.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::{Access, AccessKind, Mode, RegId, RegWrite, Trap};

#[derive(Default)]
struct Seen {
    blocks: Vec<Ingress>,
    data: Vec<(usize, DataIngress)>,
}

impl IngressSink for &mut Seen {
    fn ingress(&mut self, _: HartId, block: &Ingress) {
        self.blocks.push(*block);
    }

    fn data(&mut self, _: HartId, access: &DataIngress) {
        self.data.push((self.blocks.len(), *access));
    }
}

fn insn(pc: u64, bits: u32, next: u64) -> Insn {
    Insn {
        pc,
        bits,
        next,
        ..Insn::default()
    }
}

fn trap(epc: u64, cause: Cause, bits: Option<u32>) -> Step {
    Step::Trap(TrapStep {
        trap: Trap {
            epc: Some(epc),
            handler: Some(0x8000),
            cause,
            tval: Some(0x55),
            pending: None,
        },
        bits,
        mode: Mode::M,
        context: Context(0),
        time: 0,
    })
}

fn show(config: PortConfig, steps: &[Step]) -> Vec<Ingress> {
    let mut seen = Seen::default();
    let mut port = Port::new(config, &mut seen);
    for step in steps {
        port.step(HartId(0), step, &Effects::default());
    }
    port.finish();
    seen.blocks
}

fn blocks() -> PortConfig {
    PortConfig {
        retirement: Retirement::Block(32),
        ..PortConfig::new(Isa::RV64GC)
    }
}

const NOP: u32 = 0x13;
const C_NOP: u32 = 1;

/// The retirement example of table 4.8: nine instructions, two branches.
#[test]
fn table_4_8() {
    let steps = [
        insn(0x1000, 0x02b5_553b, 0x1004), // divuw a0, a0, a1
        insn(0x1004, 0x00b5_0533, 0x1008), // add
        insn(0x1008, 0x00b5_6533, 0x100c), // or
        insn(0x100c, 0x9502, 0x0940),      // c.jalr a0
        insn(0x0940, 0x0015_0513, 0x0944), // addi
        insn(0x0944, 0xc111, 0x0946),      // c.beqz, not taken
        insn(0x0946, 0xe129, 0x0988),      // c.bnez, taken
        insn(0x0988, 0x0005_4503, 0x098c), // lbu
        insn(0x098c, 0x3415_1573, 0x0990), // csrrw
    ];
    let shown = show(blocks(), &steps.map(Step::Insn));
    let rows: Vec<_> = shown
        .iter()
        .map(|b| (b.iretire, b.iaddr, b.itype.code()))
        .collect();
    assert_eq!(
        rows,
        [
            (7, 0x1000, 8),
            (3, 0x0940, 4),
            (1, 0x0946, 5),
            (4, 0x0988, 0)
        ]
    );
    let sizes: Vec<_> = shown.iter().map(|b| b.ilastsize).collect();
    assert_eq!(sizes, [0, 0, 0, 1]);
    assert_eq!(shown[0].last_addr(), 0x100c);
}

#[test]
fn single_retirement_shows_one_instruction_per_block() {
    let steps = [insn(0, NOP, 4), insn(4, C_NOP, 6)].map(Step::Insn);
    let shown = show(PortConfig::new(Isa::RV64GC), &steps);
    let rows: Vec<_> = shown
        .iter()
        .map(|b| (b.iaddr, b.iretire, b.ilastsize))
        .collect();
    assert_eq!(rows, [(0, 2, 1), (4, 1, 0)]);
}

#[test]
fn a_block_has_a_limit_and_ends_with_its_mode() {
    let mut config = blocks();
    config.retirement = Retirement::Block(4);
    let mut steps: Vec<Insn> = (0..5).map(|i| insn(2 * i, C_NOP, 2 * i + 2)).collect();
    steps.push(Insn {
        mode: Mode::U,
        ..insn(10, C_NOP, 12)
    });
    let steps: Vec<Step> = steps.into_iter().map(Step::Insn).collect();
    let sizes: Vec<_> = show(config, &steps)
        .iter()
        .map(|b| (b.iretire, b.mode))
        .collect();
    assert_eq!(sizes, [(4, Mode::M), (1, Mode::M), (1, Mode::U)]);
}

/// An exception belongs to the block before it, unless that one ended in
/// something of its own; then nothing retires in the trap's block.
#[test]
fn traps_end_blocks() {
    let fault = trap(4, Cause::Exception(Some(13)), None);
    let shown = show(blocks(), &[Step::Insn(insn(0, NOP, 4)), fault]);
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].itype, shown[0].iretire), (Itype::Exception, 2));
    assert_eq!((shown[0].cause, shown[0].tval), (13, 0x55));

    let branch = Step::Insn(insn(0, 0xc111, 4));
    let interrupt = trap(4, Cause::Interrupt(Some(7)), None);
    let shown = show(blocks(), &[branch, interrupt, fault]);
    let rows: Vec<_> = shown
        .iter()
        .map(|b| (b.itype, b.iretire, b.iaddr, b.cause))
        .collect();
    assert_eq!(
        rows,
        [
            (Itype::Taken, 1, 0, 0),
            (Itype::Interrupt, 0, 4, 7),
            (Itype::Exception, 0, 4, 13)
        ]
    );
    // Single retirement never joins them.
    let shown = show(
        PortConfig::new(Isa::RV64GC),
        &[Step::Insn(insn(0, NOP, 4)), fault],
    );
    assert_eq!(shown.len(), 2);
}

#[test]
fn ecall_retires_only_where_the_port_says_so() {
    let ecall = trap(0x40, Cause::Exception(Some(11)), Some(0x73));
    let ebreak = trap(0x40, Cause::Exception(Some(3)), Some(0x9002));
    let illegal = trap(0x40, Cause::Exception(Some(2)), Some(0xffff_ffff));
    let mut config = PortConfig::new(Isa::RV64GC);
    assert_eq!(show(config, &[ecall])[0].iretire, 0);
    config.retires = Retires::EcallAndEbreak;
    let sizes = |step| {
        let b = show(config, &[step])[0];
        (b.iretire, b.ilastsize, b.iaddr, b.itype)
    };
    assert_eq!(sizes(ecall), (2, 1, 0x40, Itype::Exception));
    assert_eq!(sizes(ebreak), (1, 0, 0x40, Itype::Exception));
    assert_eq!(sizes(illegal), (0, 0, 0x40, Itype::Exception));
}

#[test]
fn an_ecall_that_faults_does_not_retire() {
    let mut config = PortConfig::new(Isa::RV64GC);
    config.retires = Retires::EcallAndEbreak;
    let size = |cause, bits| show(config, &[trap(0x40, cause, Some(bits))])[0].iretire;
    let exception = |code| Cause::Exception(Some(code));
    for code in [0, 1, 2, 3, 12, 13] {
        assert_eq!(size(exception(code), 0x73), 0, "ecall {code}");
    }
    for code in [1, 2, 8, 11] {
        assert_eq!(size(exception(code), 0x0010_0073), 0, "ebreak {code}");
    }
    assert_eq!(size(Cause::Interrupt(Some(11)), 0x73), 0);
    assert_eq!(
        (size(exception(9), 0x73), size(exception(3), 0x9002)),
        (2, 1)
    );
    assert_eq!(size(Cause::Unknown, 0x73), 2);
}

#[test]
fn sequential_jumps_are_marked_when_the_pair_retired_together() {
    let auipc = insn(0x1000, 0x0000_0317, 0x1004);
    let jalr = insn(0x1004, 0x0103_0067, 0x1010);
    let shown = show(PortConfig::new(Isa::RV64GC), &[auipc, jalr].map(Step::Insn));
    assert!(!shown[0].sijump && shown[1].sijump);
    // A trap in between parts them.
    let interrupt = trap(0x1004, Cause::Interrupt(Some(7)), None);
    let back = insn(0x8000, 0x3020_0073, 0x1004);
    let steps = [
        Step::Insn(auipc),
        interrupt,
        Step::Insn(back),
        Step::Insn(jalr),
    ];
    assert!(
        show(PortConfig::new(Isa::RV64GC), &steps)
            .iter()
            .all(|b| !b.sijump)
    );
    // Sleep does not.
    let sleep = [Signal::PowerDown, Signal::PowerUp].map(Step::Signal);
    let steps = [Step::Insn(auipc), sleep[0], sleep[1], Step::Insn(jalr)];
    let shown = show(PortConfig::new(Isa::RV64GC), &steps);
    assert!(shown.last().unwrap().sijump);
    // Another register does.
    let other = insn(0x1004, 0x0102_8067, 0x1010);
    let shown = show(
        PortConfig::new(Isa::RV64GC),
        &[auipc, other].map(Step::Insn),
    );
    assert!(!shown[1].sijump);
}

#[test]
fn itype_width_and_all_jumps() {
    let steps = [insn(0, 0x0080_00ef, 8), insn(8, 0x8082, 0x40)].map(Step::Insn);
    let codes = |config| -> Vec<u8> {
        show(config, &steps)
            .iter()
            .map(|b| b.itype.code())
            .collect()
    };
    let mut config = PortConfig::new(Isa::RV64GC);
    assert_eq!(codes(config), [9, 13]);
    config.itype_width = ItypeWidth::Three;
    assert_eq!(codes(config), [0, 6]);
    config.all_jumps = true;
    assert_eq!(codes(config), [5, 6]);
}

/// N-Trace 10.1: a custom instruction is a jump where it goes elsewhere.
#[test]
fn custom_instructions_that_jump() {
    const CUSTOM: u32 = 0x0b;
    let steps = [insn(0, CUSTOM, 4), insn(4, CUSTOM, 0x40)].map(Step::Insn);
    let codes = |table, itype_width| -> Vec<u8> {
        let config = PortConfig {
            table,
            itype_width,
            ..PortConfig::new(Isa::RV64GC)
        };
        let shown = show(config, &steps);
        shown.iter().map(|b| b.itype.code()).collect()
    };
    for table in [ItypeTable::NTraceRc7, ItypeTable::NTrace10] {
        assert_eq!(codes(table, ItypeWidth::Three), [0, 6]);
        assert_eq!(codes(table, ItypeWidth::Four), [0, 14]);
    }
    assert_eq!(codes(ItypeTable::ETrace20, ItypeWidth::Four), [0, 0]);
}

#[test]
fn a_direct_jump_ends_its_block_even_without_a_code() {
    let mut config = blocks();
    config.itype_width = ItypeWidth::Three;
    let steps = [insn(0, NOP, 4), insn(4, 0x0080_006f, 12), insn(12, NOP, 16)].map(Step::Insn);
    let rows: Vec<_> = show(config, &steps)
        .iter()
        .map(|b| (b.iaddr, b.iretire))
        .collect();
    assert_eq!(rows, [(0, 4), (12, 2)]);
}

#[test]
fn a_new_context_is_reported_once() {
    let with = |pc, context| Insn {
        context: Context(context),
        ..insn(pc, NOP, pc + 4)
    };
    let steps = [with(0, 1), with(4, 1), with(8, 2), with(12, 2)].map(Step::Insn);
    let shown = show(blocks(), &steps);
    let rows: Vec<_> = shown
        .iter()
        .map(|b| (b.iaddr, b.ctype, b.context))
        .collect();
    assert_eq!(
        rows,
        [
            (0, Ctype::Unreported, Context(1)),
            (8, Ctype::Precise, Context(2)),
        ]
    );
}

#[test]
fn signals_stand_before_their_instruction() {
    let nop = |pc| Step::Insn(insn(pc, NOP, pc + 4));
    let signal = Step::Signal;
    let steps = [
        nop(0),
        signal(Signal::Notify),
        signal(Signal::External(3)),
        nop(4),
        nop(8),
        signal(Signal::Halted),
        signal(Signal::Resumed),
        signal(Signal::TraceOn),
        nop(12),
        signal(Signal::Reset),
    ];
    let shown = show(blocks(), &steps);
    let rows: Vec<_> = shown
        .iter()
        .map(|b| {
            (
                b.iaddr,
                b.iretire,
                b.trigger.bits(),
                b.external,
                b.halted,
                b.reset,
            )
        })
        .collect();
    assert_eq!(
        rows,
        vec![
            (0, 2, 0, 0, false, false),
            (4, 2, 4, 8, false, false),
            (8, 2, 0, 0, false, false),
            (0, 0, 0, 0, true, false),
            (0, 0, 0, 0, false, false),
            (12, 2, 1, 0, false, false),
            (0, 0, 0, 0, false, true),
        ]
    );
}

#[test]
fn accesses_follow_the_block_of_their_instruction() {
    let mut effects = Effects::default();
    let reg = RegWrite {
        reg: RegId::X(10),
        value: 7,
    };
    effects.regs.push(reg).unwrap();
    let amo = Access {
        kind: AccessKind::AtomicAdd,
        size: 2,
        addr: 0x9000,
        paddr: None,
        data: Some(0x11),
        operand: Some(0x22),
    };
    effects.accesses.push(amo).unwrap();
    let mut seen = Seen::default();
    let config = PortConfig {
        data: DataPort::Unified,
        ..blocks()
    };
    let mut port = Port::new(config, &mut seen);
    port.step(HartId(0), &Step::Insn(insn(0, 0x00b5_252f, 4)), &effects);
    port.step(HartId(0), &Step::Insn(insn(4, NOP, 8)), &Effects::default());
    port.finish();
    let [(after, access)] = seen.data[..] else {
        panic!("one access");
    };
    assert_eq!((after, seen.blocks.len()), (1, 1));
    assert_eq!((access.dtype, access.daddr, access.dsize), (9, 0x9000, 2));
    assert_eq!(access.data, 0x22_0000_0011);
}

#[test]
fn harts_do_not_mix() {
    let mut seen = Vec::new();
    let mut port = Port::new(blocks(), |hart: HartId, block: &Ingress| {
        seen.push((hart.0, block.iaddr, block.iretire));
    });
    for (hart, pc) in [(0, 0), (1, 4), (0, 4), (1, 8)] {
        port.step(
            HartId(hart),
            &Step::Insn(insn(pc, NOP, pc + 4)),
            &Effects::default(),
        );
    }
    port.finish();
    drop(port);
    assert_eq!(seen, [(0, 0, 4), (1, 4, 4)]);
}

#[test]
fn rc7_retires_ecall_but_not_ebreak() {
    let mut config = PortConfig::new(Isa::RV64GC);
    config.retires = Retires::Ecall;
    let size = |bits| show(config, &[trap(0x40, Cause::Exception(None), Some(bits))])[0].iretire;
    assert_eq!((size(0x73), size(0x0010_0073), size(0x9002)), (2, 0, 0));
}

#[test]
fn a_pulse_before_a_trap_is_not_lost_in_the_block_before_it() {
    let steps = [
        Step::Insn(insn(0, NOP, 4)),
        Step::Signal(Signal::Notify),
        Step::Signal(Signal::External(1)),
        trap(4, Cause::Exception(Some(2)), None),
        Step::Signal(Signal::TraceOff),
    ];
    let rows: Vec<_> = show(blocks(), &steps)
        .iter()
        .map(|b| (b.itype, b.iretire, b.trigger.bits(), b.external))
        .collect();
    assert_eq!(
        rows,
        [
            (Itype::None, 2, 0, 0),
            (Itype::Exception, 0, 4, 2),
            (Itype::None, 0, 2, 0),
        ]
    );
}

#[test]
fn what_is_missing_or_left_out_ends_a_block() {
    for signal in [Signal::Lost, Signal::Untraced] {
        let nop = |pc| Step::Insn(insn(pc, NOP, pc + 4));
        let steps = [nop(0), Step::Signal(signal), nop(4)];
        let rows: Vec<_> = show(blocks(), &steps)
            .iter()
            .map(|b| (b.iaddr, b.iretire, b.lost, b.untraced))
            .collect();
        let lost = signal == Signal::Lost;
        let expected = [
            (0, 2, false, false),
            (0, 0, lost, !lost),
            (4, 2, false, false),
        ];
        assert_eq!(rows, expected);
    }
}

#[test]
fn a_trap_joins_only_where_there_is_room() {
    let mut config = blocks();
    config.retirement = Retirement::Block(4);
    config.retires = Retires::Ecall;
    let steps = [
        Step::Insn(insn(0, NOP, 4)),
        Step::Insn(insn(4, NOP, 8)),
        trap(8, Cause::Exception(Some(11)), Some(0x73)),
    ];
    let sizes: Vec<_> = show(config, &steps).iter().map(|b| b.iretire).collect();
    assert_eq!(sizes, [4, 2]);
}

#[test]
fn an_instruction_of_48_bits_has_a_block_of_its_own() {
    let long = 0x0000_001f;
    let steps = [insn(0, NOP, 4), insn(4, long, 10), insn(10, NOP, 14)].map(Step::Insn);
    let shown = show(blocks(), &steps);
    let rows: Vec<_> = shown
        .iter()
        .map(|b| (b.iaddr, b.iretire, b.last_addr()))
        .collect();
    assert_eq!(rows, [(0, 2, 0), (4, 3, 4), (10, 2, 10)]);
}

#[test]
fn a_jump_to_the_next_instruction_ends_its_block() {
    let mut config = blocks();
    config.itype_width = ItypeWidth::Three;
    let steps = [insn(0, 0x0040_006f, 4), insn(4, NOP, 8)].map(Step::Insn);
    let rows: Vec<_> = show(config, &steps)
        .iter()
        .map(|b| (b.iaddr, b.iretire))
        .collect();
    assert_eq!(rows, [(0, 2), (4, 2)]);
}

#[test]
fn a_retired_compressed_instruction_proves_the_extension() {
    let isa = Isa::parse("rv64imafd").unwrap();
    let steps = [insn(0, 0xa011, 4), insn(4, 0x8082, 0x40)].map(Step::Insn);
    let codes: Vec<_> = show(PortConfig::new(isa), &steps)
        .iter()
        .map(|b| b.itype.code())
        .collect();
    assert_eq!(codes, [11, 13]);
}

#[test]
fn lost_steps_are_told_apart_from_a_halt() {
    let at = |time| {
        Step::Insn(Insn {
            time,
            ..insn(0, NOP, 4)
        })
    };
    let steps = [at(7), Step::Signal(Signal::Lost), at(9)];
    let rows: Vec<_> = show(blocks(), &steps)
        .iter()
        .map(|b| (b.lost, b.halted, b.time))
        .collect();
    assert_eq!(
        rows,
        [(false, false, 7), (true, false, 7), (false, false, 9)]
    );
}

#[test]
fn power_down_is_a_level_that_reset_ends() {
    let nop = |pc| Step::Insn(insn(pc, NOP, pc + 4));
    let signal = Step::Signal;
    let steps = [
        nop(0),
        signal(Signal::PowerDown),
        signal(Signal::Halted),
        signal(Signal::Resumed),
        signal(Signal::PowerUp),
        nop(4),
        signal(Signal::PowerDown),
        signal(Signal::Reset),
        nop(0),
    ];
    let rows: Vec<_> = show(blocks(), &steps)
        .iter()
        .map(|b| (b.iretire, b.power_down, b.halted, b.reset))
        .collect();
    assert_eq!(
        rows,
        [
            (2, false, false, false),
            (0, true, false, false),
            (0, true, true, false),
            (0, true, false, false),
            (0, false, false, false),
            (2, false, false, false),
            (0, true, false, false),
            (0, false, false, true),
            (2, false, false, false),
        ]
    );
}

/// What its `post-iss` writes for such instructions.
#[test]
fn the_etrace_reference_has_its_own_ways() {
    let reference = |itype_width| PortConfig {
        table: ItypeTable::ETraceReference,
        itype_width,
        retires: Retires::EcallAndEbreak,
        tval_bits: 8,
        ..PortConfig::new(Isa::RV64GC)
    };
    let lui = Step::Insn(insn(0, 0x0000_1537, 4));
    // jalr x0, 0(a0), and linking x1 or x8.
    for (jump, four) in [
        (0x0005_0067, Itype::DirectJump),
        (0x0005_00e7, Itype::DirectCall),
        (0x0005_0467, Itype::OtherDirect),
    ] {
        let steps = [lui, Step::Insn(insn(4, jump, 0x1000))];
        let row = |width| show(reference(width), &steps)[1];
        let (wide, narrow) = (row(ItypeWidth::Four), row(ItypeWidth::Three));
        assert_eq!((wide.itype, wide.sijump), (four, true));
        assert_eq!((narrow.itype, narrow.sijump), (Itype::None, true));
        // It is a direct jump to that flow, whether the port has the signal
        // or not.
        let without = PortConfig {
            sijump: false,
            ..reference(ItypeWidth::Four)
        };
        let quiet = show(without, &steps)[1];
        assert_eq!((quiet.itype, quiet.sijump), (four, false));
        // With nothing right before it.
        assert!(
            show(reference(ItypeWidth::Four), &steps[1..])[0]
                .itype
                .is_uninferable()
        );
    }
    let traps = [
        (Cause::Exception(Some(13)), Some(0x0005_2503), 0, 1),
        (Cause::Exception(Some(2)), Some(0), 0, 0),
        (Cause::Interrupt(Some(7)), None, 0, 0),
        (Cause::Exception(Some(11)), Some(0x73), 2, 1),
        (Cause::Exception(Some(3)), Some(0x9002), 1, 0),
    ];
    for (cause, bits, iretire, ilastsize) in traps {
        let Step::Trap(mut step) = trap(0x40, cause, bits) else {
            panic!();
        };
        step.trap.tval = Some(0x1234);
        let row = show(reference(ItypeWidth::Four), &[Step::Trap(step)])[0];
        assert_eq!((row.iretire, row.ilastsize), (iretire, ilastsize));
        assert_eq!(row.tval, 0x34);
        for (tval_bits, tval) in [(0, 0), (12, 0x234), (64, 0x1234), (255, 0x1234)] {
            let config = PortConfig {
                tval_bits,
                ..reference(ItypeWidth::Four)
            };
            assert_eq!(show(config, &[Step::Trap(step)])[0].tval, tval);
        }
    }
}

#[test]
fn nexrv_takes_an_ecall_for_a_call_and_an_ebreak_for_nothing() {
    let trap = |epc, code, bits| trap(epc, Cause::Exception(Some(code)), Some(bits));
    let steps = [
        Step::Insn(insn(0, NOP, 4)),
        trap(4, 11, 0x73),
        Step::Insn(insn(0x40, NOP, 0x44)),
        trap(0x44, 3, 0x9002),
        // An illegal instruction is no retirement for anybody.
        trap(0x40, 2, 0),
    ];
    for (width, ecall) in [(ItypeWidth::Four, 8), (ItypeWidth::Three, 6)] {
        for (retirement, want) in [
            (
                Retirement::Single,
                vec![
                    (0, 2, 0),
                    (4, 2, ecall),
                    (0x40, 2, 0),
                    (0x44, 1, 0),
                    (0x40, 0, 1),
                ],
            ),
            (
                Retirement::Block(32),
                vec![(0, 4, ecall), (0x40, 3, 0), (0x40, 0, 1)],
            ),
        ] {
            let config = PortConfig {
                table: ItypeTable::NexRv,
                retires: Retires::EcallAndEbreak,
                itype_width: width,
                retirement,
                ..PortConfig::new(Isa::RV64GC)
            };
            let rows: Vec<_> = show(config, &steps)
                .iter()
                .map(|b| (b.iaddr, b.iretire, b.itype.code()))
                .collect();
            assert_eq!(rows, want);
        }
    }
}
