//! Groups become events.

use hartrace_flow::{Access, Cause, CsrWrite};
use hartrace_flow::{
    AccessKind, Check, Effects, Few, HartId, Insn, Mode, Observer, RegId, RegWrite, Signal, Step,
    Trap, TrapStep,
};
use hartrace_isa::{Ext, Isa};
use hartrace_tandem::{Config, Decoder, Encoder, Flen, Item, PcForm, Register, StoreData, Style};

use hartrace_testkit::Random;

use crate::common::{Events, decode, rv32, write};

const NOP: Item = Item::Insn16(1);
/// `c.beqz a0, +8`
const BEQZ: Item = Item::Insn16(0xc501);
/// `ret`
const RET: Item = Item::Insn16(0x8082);

/// Groups with these items, behind the initial state.
fn trace(config: &Config, groups: &[&[Item]]) -> Vec<u8> {
    let mut bytes = write(
        config,
        &[
            Item::BeginGroup,
            Item::StateInit,
            Item::Pc(0x1000),
            Item::EndGroup,
        ],
    );
    for group in groups {
        let items = [&[Item::BeginGroup], *group, &[Item::EndGroup]].concat();
        bytes.extend(write(config, &items));
    }
    bytes
}

fn events(groups: &[&[Item]]) -> Vec<String> {
    let config = Config::default();
    decode(&config, &trace(&config, groups))
}

/// Straight code is one run, up to what ends it.
#[test]
fn runs_and_branches() {
    assert_eq!(
        events(&[
            &[Item::IncrementPc, NOP],
            &[Item::IncrementPc, Item::Insn32(0x13)],
            &[Item::IncrementPc, BEQZ],
            &[Item::Pc(0x1010), BEQZ],
            &[Item::Pc(0x1012), NOP],
            &[Item::Pc(0x2000), RET],
            &[NOP, Item::IncrementPc],
        ]),
        [
            "run 1000-1008 3 NotTaken 1008",
            "run 1008-100a 1 Taken 1010",
            "run 1010-1014 2 Return 2000",
            "run 2000-2002 1 Stop 2002",
        ]
    );
}

/// Every class of jump.
#[test]
fn jumps() {
    for (item, exit) in [
        (Item::Insn32(0x0000_006f), "DirectJump"),
        (Item::Insn32(0x0000_00ef), "DirectCall"),
        (Item::Insn32(0x0000_056f), "OtherDirect"),
        (Item::Insn32(0x0005_0067), "IndirectJump"),
        (Item::Insn32(0x0005_00e7), "IndirectCall"),
        (Item::Insn32(0x0005_0567), "OtherIndirect"),
        (Item::Insn32(0x0002_80e7), "Swap"),
        (Item::Insn32(0x0000_8067), "Return"),
        (Item::Insn32(0x3020_0073), "TrapReturn"),
    ] {
        let run = format!("run 1000-1004 1 {exit} 2000");
        assert_eq!(events(&[&[Item::Pc(0x2000), item]]), [run]);
    }
    // A jump to the next instruction may be an increment.
    assert_eq!(
        events(&[&[Item::IncrementPc, Item::Insn32(0x0040_006f)]]),
        ["run 1000-1004 1 DirectJump 1004"]
    );
    // The encodings that Zcmp shares with c.fsdsp.
    let popret = [&[Item::Pc(0x2000), Item::Insn16(0xbe42)][..]];
    let config = Config {
        flen: Flen::None,
        ..Config::default()
    };
    assert_eq!(
        decode(&config, &trace(&config, &popret)),
        ["run 1000-1002 1 Return 2000"]
    );
    let config = Config::default();
    let isa = Isa::RV64GC.without(Ext::Zcd).with(Ext::Zcmp);
    let mut decoder = Decoder::new(config.clone(), HartId(0))
        .unwrap()
        .with_isa(isa);
    let mut told = Events::default();
    decoder.feed(&trace(&config, &popret), &mut told);
    decoder.finish(&mut told);
    assert_eq!(told.lines, ["run 1000-1002 1 Return 2000"]);
}

/// Straight code is cut at 4 KiB; RV32 goes round.
#[test]
fn pages_and_the_end_of_memory() {
    let config = rv32();
    let mut bytes = write(
        &config,
        &[
            Item::BeginGroup,
            Item::StateInit,
            Item::Pc(0xffff_fffc),
            Item::EndGroup,
        ],
    );
    for _ in 0..3 {
        let group = [
            Item::BeginGroup,
            Item::IncrementPc,
            Item::Insn32(0x13),
            Item::EndGroup,
        ];
        bytes.extend(write(&config, &group));
    }
    assert_eq!(
        decode(&config, &bytes),
        ["run fffffffc-100000000 1 Stop 0", "run 0-8 2 Stop 8"]
    );
}

/// Exceptions: the instruction is in no run; all of cause, epc, tval and
/// handler are told.
#[test]
fn exceptions() {
    let csr = |number, value| Item::Full(Register::csr(number), value);
    let trap = [
        Item::Pc(0x100),
        Item::Insn32(0x73),
        csr(0x341, 0x1002),
        csr(0x342, 11),
        csr(0x343, 0),
        csr(0x300, 0x1800),
        Item::Mode(3),
    ];
    assert_eq!(
        events(&[&[Item::IncrementPc, NOP], &trap, &[Item::IncrementPc, NOP]]),
        [
            "run 1000-1002 1 Stop 1002",
            "trap Some(1002) to Some(100) Exception(Some(11)) Some(0)",
            "mode Some(M)",
            "run 100-102 1 Stop 102",
        ]
    );
    // To S mode; nothing but the jump; only the cause.
    for (items, told) in [
        (
            &[csr(0x141, 0x1000), csr(0x142, 2), csr(0x143, 1)][..],
            "Exception(Some(2)) Some(1)",
        ),
        (&[], "Exception(None) None"),
        (&[csr(0x342, 5)], "Exception(Some(5)) None"),
    ] {
        let group = [&[Item::Pc(0x100), Item::Insn32(0x0005_2503)], items].concat();
        let line = format!("trap Some(1000) to Some(100) {told}");
        assert_eq!(events(&[&group]), [line]);
    }
}

/// Interrupts have no instruction; where nothing is told of a cause, there is
/// none.
#[test]
fn interrupts() {
    let csr = |number, value| Item::Full(Register::csr(number), value);
    let interrupt = [Item::Pc(0x100), csr(0x341, 0x1000), csr(0x342, 1 << 63 | 7)];
    assert_eq!(
        events(&[&interrupt]),
        ["trap Some(1000) to Some(100) Interrupt(Some(7)) None"]
    );
    let fetch = [Item::Pc(0x100), csr(0x342, 12), csr(0x343, 0x1000)];
    assert_eq!(
        events(&[&fetch]),
        ["trap Some(1000) to Some(100) Exception(Some(12)) Some(1000)"]
    );
    assert_eq!(
        events(&[&[Item::Pc(0x100)]]),
        ["trap Some(1000) to Some(100) Unknown None"]
    );
    // Where the hart was before is told by the trap itself.
    let config = Config::default();
    let items = [&[Item::BeginGroup], &interrupt[..], &[Item::EndGroup]].concat();
    assert_eq!(
        decode(&config, &write(&config, &items)),
        ["trap Some(1000) to Some(100) Interrupt(Some(7)) None"]
    );
}

/// An instruction that writes a CSR of traps is no trap; one that traps on it
/// is.
#[test]
fn writes_to_the_csrs_of_traps() {
    let csrw = Item::Insn32(0x3425_1073); // csrw mcause, a0
    let mcause = Item::Full(Register::csr(0x342), 9);
    assert_eq!(
        events(&[
            &[Item::IncrementPc, csrw, mcause],
            &[Item::Pc(0x1008), csrw, mcause]
        ]),
        ["run 1000-1008 2 Stop 1008"]
    );
    let mepc = Item::Full(Register::csr(0x341), 0x1000);
    assert_eq!(
        events(&[&[Item::Pc(0x100), csrw, mepc, mcause]]),
        ["trap Some(1000) to Some(100) Exception(Some(9)) None"]
    );
}

/// Values told by how much they have changed.
#[test]
fn incremental_values() {
    let csr = |number, value| Item::Full(Register::csr(number), value);
    let init = [
        Item::StateInit,
        csr(0x341, 0xff0),
        csr(0x342, 8),
        Item::Full(Register::x(10), 0xffff_ffff_ffff_fff0),
    ];
    let trap = [
        Item::Pc(0x100),
        Item::Insn32(0x73),
        Item::Offset(Register::csr(0x341), 0x10),
        Item::Mask(Register::csr(0x342), 3),
    ];
    // lw a0, 8(a0)
    let load = [
        Item::IncrementPc,
        Item::Insn32(0x0085_2503),
        Item::Offset(Register::x(10), 1),
        Item::EffectiveAddress(8),
    ];
    assert_eq!(
        events(&[&init, &trap, &load]),
        [
            "trap Some(1000) to Some(100) Exception(Some(11)) None",
            "run 100-104 1 Stop 104",
            "0 Load 2 8 None Some(fffffff1) None"
        ]
    );
    // Of an unknown value nothing is known.
    assert_eq!(
        events(&[&load]),
        ["run 1000-1004 1 Stop 1004", "0 Load 2 8 None None None"]
    );
}

/// Loads, stores and atomic operations come behind their run, with the index
/// of the instruction.
#[test]
fn accesses() {
    let (a, eaddr, paddr) = (
        Register::x(10),
        Item::EffectiveAddress(0x80),
        Item::PhysicalAddress(0x9080),
    );
    assert_eq!(
        events(&[
            &[Item::IncrementPc, NOP],
            // lb, c.ld, fld
            &[
                Item::IncrementPc,
                Item::Insn32(0x0005_0503),
                Item::Full(a, u64::MAX),
                eaddr
            ],
            &[
                Item::IncrementPc,
                Item::Insn16(0x6108),
                Item::Full(a, 7),
                eaddr,
                paddr
            ],
            &[
                Item::IncrementPc,
                Item::Insn32(0x0005_3507),
                Item::Full(Register::f(10), 9),
                paddr
            ],
            // sw, c.sdsp
            &[
                Item::IncrementPc,
                Item::Insn32(0x00b5_2423),
                eaddr,
                Item::StoreData(2, 5)
            ],
            &[Item::IncrementPc, Item::Insn16(0xe42e), eaddr],
            // amoadd.w, lr.w, sc.w that fails, sc.w that does not
            &[
                Item::IncrementPc,
                Item::Insn32(0x00b5_252f),
                Item::Full(a, 0xffff_ffff_ffff_fffe),
                eaddr,
                Item::StoreData(2, 3),
            ],
            &[
                Item::IncrementPc,
                Item::Insn32(0x1005_252f),
                Item::Full(a, 4),
                eaddr
            ],
            &[
                Item::IncrementPc,
                Item::Insn32(0x18b5_252f),
                Item::Full(a, 1),
                eaddr
            ],
            &[
                Item::IncrementPc,
                Item::Insn32(0x18b5_252f),
                Item::Full(a, 0),
                eaddr,
                Item::StoreData(2, 6)
            ],
            // Data and no address.
            &[
                Item::IncrementPc,
                Item::Insn32(0x00b5_2423),
                Item::StoreData(2, 5)
            ],
        ])[1..],
        [
            "1 Load 0 80 None Some(ff) None",
            "2 Load 3 80 Some(9080) Some(7) None",
            "3 Load 3 9080 Some(9080) Some(9) None",
            "4 Store 2 80 None Some(5) None",
            "5 Store 3 80 None None None",
            "6 AtomicAdd 2 80 None Some(3) Some(fffffffe)",
            "7 Load 2 80 None Some(4) None",
            "8 ConditionalStoreFailure 2 80 None None None",
            "9 Store 2 80 None Some(6) None",
        ]
    );
    let operand = Config {
        store_data: StoreData::Operand,
        ..Config::default()
    };
    let amo = [
        Item::IncrementPc,
        Item::Insn32(0x00b5_252f),
        Item::Full(a, 1),
        eaddr,
        Item::StoreData(2, 3),
    ];
    assert_eq!(
        decode(&operand, &trace(&operand, &[&amo]))[1],
        "0 AtomicAdd 2 80 None None Some(3)"
    );
}

/// Modes and times hold behind the group that tells them.
#[test]
fn modes_and_times() {
    assert_eq!(
        events(&[
            &[Item::IncrementPc, NOP, Item::Mode(3)],
            &[Item::IncrementPc, NOP, Item::Mode(3)],
            &[Item::Pc(0x2000), Item::Insn32(0x3020_0073), Item::Mode(0)],
            &[Item::Mtime(9)],
            &[Item::IncrementPc, NOP],
            &[Item::Mtime(9)],
            &[Item::IncrementPc, NOP],
            &[Item::IncrementPc, NOP, Item::Mode(1)],
        ]),
        [
            "run 1000-1002 1 Stop 1002",
            "mode Some(M)",
            "run 1002-1008 2 TrapReturn 2000",
            "mode Some(U)",
            "time 9",
            "run 2000-2002 1 Stop 2002",
            "run 2002-2006 2 Stop 2006",
            "mode Some(S)",
        ]
    );
}

/// Reset, and a pc that a debugger has set.
#[test]
fn resets_and_debuggers() {
    assert_eq!(
        events(&[
            &[Item::IncrementPc, NOP],
            &[Item::StateInit, Item::Pc(0x2000)],
            &[Item::IncrementPc, NOP],
            &[Item::Reset],
            &[Item::StateInit, Item::Pc(0x100)],
            &[Item::IncrementPc, NOP],
            &[Item::Reset, Item::Pc(0x200)],
            &[Item::IncrementPc, NOP],
            &[Item::Reset],
            &[Item::IncrementPc, NOP],
        ]),
        [
            "run 1000-1002 1 Stop 1002",
            "Halted",
            "Resumed",
            "run 2000-2002 1 Stop 2002",
            "Reset",
            "run 100-102 1 Stop 102",
            "Reset",
            "run 200-202 1 Stop 202",
            "Reset",
            "gap 52 TP0301 6",
        ]
    );
    // Other initial state changes nothing.
    assert_eq!(
        events(&[
            &[Item::IncrementPc, NOP],
            &[Item::StateInit, Item::Full(Register::csr(0x344), 0x80)],
            &[Item::StateInit, Item::Pc(0x1002)],
            &[Item::IncrementPc, NOP],
        ]),
        ["run 1000-1004 2 Stop 1004"]
    );
}

/// Without an initial state the first instruction's place follows from where
/// it went, unless it jumped.
#[test]
fn the_first_instruction() {
    let config = Config::default();
    let group = |items: &[Item]| {
        write(
            &config,
            &[&[Item::BeginGroup], items, &[Item::EndGroup]].concat(),
        )
    };
    let first = group(&[Item::Pc(0x1004), Item::Insn32(0x13)]);
    let jump = group(&[Item::Pc(0x1004), RET]);
    let second = group(&[Item::Pc(0x1006), NOP]);
    assert_eq!(
        decode(&config, &[first, second.clone()].concat()),
        ["run 1000-1006 2 Stop 1006"]
    );
    assert_eq!(
        decode(&config, &[jump.clone(), second].concat()),
        ["gap 0 TP0301 15", "run 1004-1006 1 Stop 1006"]
    );
    // Increments from nowhere are all missing, as one gap.
    let step = group(&[Item::IncrementPc, NOP]);
    assert_eq!(
        decode(&config, &[step.clone(), step.clone(), jump, step].concat()),
        ["gap 0 TP0301 27", "run 1004-1006 1 Stop 1006"]
    );
}

/// A problem is a gap, up to the next whole pc.
#[test]
fn problems_are_gaps() {
    let config = Config::default();
    let groups: [&[Item]; 6] = [
        &[Item::IncrementPc, NOP],
        &[Item::IncrementPc, Item::IncrementPc, NOP],
        &[Item::IncrementPc, NOP],
        &[Item::Pc(0x2000), RET],
        &[Item::IncrementPc, NOP],
        &[Item::IncrementPc, NOP],
    ];
    assert_eq!(
        events(&groups),
        [
            "run 1000-1002 1 Stop 1002",
            "gap 15 TP0202 28",
            "run 2000-2004 2 Stop 2004"
        ]
    );
    let mut bytes = trace(&config, &[groups[0]]);
    bytes.extend([0xff; 10]);
    bytes.extend(&trace(&config, &groups[2..])[13..]);
    assert_eq!(
        decode(&config, &bytes),
        [
            "run 1000-1002 1 Stop 1002",
            "gap 13 TP0101 31",
            "run 2000-2004 2 Stop 2004"
        ]
    );
    // No byte is in two gaps, though a reset and what is missing may share a
    // group.
    let mut bytes = trace(&config, &[groups[0], groups[1]]);
    bytes.extend(&trace(&config, &[&[Item::Reset, Item::IncrementPc, NOP]])[13..]);
    assert_eq!(
        decode(&config, &bytes)[1..],
        ["gap 15 TP0202 7", "Reset", "gap 1a TP0301 7"]
    );
    // To the end of the trace.
    let mut bytes = trace(&config, &[groups[0]]);
    bytes.extend([0xff; 10]);
    assert_eq!(decode(&config, &bytes)[1], "gap 13 TP0101 10");
}

/// Fields that are left out: what follows from the instruction is not missing.
#[test]
fn pcs_left_out() {
    assert_eq!(
        events(&[
            &[NOP],
            // j +8
            &[Item::Insn32(0x0080_006f)],
            &[NOP],
            &[RET],
            &[NOP],
            &[Item::Pc(0x2002), NOP],
        ]),
        [
            "run 1000-1006 2 DirectJump 100a",
            "run 100a-100e 2 Stop 100e",
            "gap 23 TP0301 5",
            "run 2000-2002 1 Stop 2002",
        ]
    );
}

/// The two-pc form tells where every instruction is.
#[test]
fn two_pcs() {
    let config = Config {
        pc: PcForm::Both,
        style: Style::bluespec(),
        ..Config::default()
    };
    let groups = [
        [Item::TwoPcs(0x10, 0x12), NOP],
        [Item::TwoPcs(0x12, 0x2000), RET],
        [Item::TwoPcs(0x2000, 0x2002), NOP],
    ];
    let mut bytes = Vec::new();
    for group in groups {
        let items = [&[Item::BeginGroup], &group[..], &[Item::EndGroup]].concat();
        bytes.extend(write(&config, &items));
    }
    assert_eq!(
        decode(&config, &bytes),
        ["run 10-14 2 Return 2000", "run 2000-2002 1 Stop 2002"]
    );
}

/// An interrupt that was not where the group before it went: something is
/// missing, as with an instruction.
#[test]
fn a_trap_from_elsewhere() {
    let config = Config {
        pc: PcForm::Both,
        style: Style::bluespec(),
        ..Config::default()
    };
    let cause = Item::Full(Register::csr(0x342), 1 << 63 | 7);
    let mut bytes = Vec::new();
    for group in [
        &[Item::TwoPcs(0x10, 0x12), NOP][..],
        &[Item::TwoPcs(0x80, 0x2000), cause],
        &[Item::TwoPcs(0x2000, 0x2002), NOP],
    ] {
        let items = [&[Item::BeginGroup], group, &[Item::EndGroup]].concat();
        bytes.extend(write(&config, &items));
    }
    assert_eq!(
        decode(&config, &bytes),
        [
            "run 10-12 1 Stop 12",
            "gap 17 TP0303 0",
            "trap Some(80) to Some(2000) Interrupt(Some(7)) None",
            "run 2000-2002 1 Stop 2002"
        ]
    );
}

/// Outside of groups a pc is set, also by an increment: what follows is there.
#[test]
fn an_increment_outside_of_groups() {
    let config = Config::default();
    let mut bytes = trace(&config, &[&[Item::IncrementPc, NOP]]);
    bytes.extend(write(&config, &[Item::IncrementPc, NOP]));
    bytes.extend(write(
        &config,
        &[Item::BeginGroup, Item::IncrementPc, NOP, Item::EndGroup],
    ));
    assert_eq!(
        decode(&config, &bytes),
        [
            "run 1000-1002 1 Stop 1002",
            "Halted",
            "Resumed",
            "run 1004-1006 1 Stop 1006",
        ]
    );
}

/// Steps, encoded and decoded, are the same steps.
#[test]
fn there_and_back() {
    let bluespec = Style {
        start: true,
        ..Style::bluespec()
    };
    for style in [Style::default(), Style::compact(), bluespec] {
        for seed in 1..30 {
            let config = Config {
                style,
                ..Config::default()
            };
            let mut check = Check::new();
            let mut encoder = Encoder::new(config.clone()).unwrap();
            let mut bytes = Vec::new();
            for (step, effects) in walk(seed) {
                check.step(HartId(0), &step, &effects);
                encoder.step(&step, &effects, &mut bytes);
            }
            encoder.finish(&mut bytes);
            let mut decoder = Decoder::new(config, HartId(0)).unwrap();
            decoder.feed(&bytes, &mut check);
            decoder.finish(&mut check);
            let checked = check.result().unwrap_or_else(|e| panic!("{e}"));
            assert!(checked.insns > 200 && checked.traps > 5);
        }
    }
}

/// A way through code that does not exist.
fn walk(seed: u64) -> Vec<(Step, Effects)> {
    let mut random = Random::new(seed);
    let mut steps = Vec::new();
    let mut pc = 0x8000_0000;
    for _ in 0..500 {
        let mut effects = Effects::default();
        let mut insn = Insn {
            pc,
            mode: Mode::M,
            ..Insn::default()
        };
        (insn.bits, insn.next) = match random.below(12) {
            0 => (0xc501, pc + 2),
            1 => (0xc501, pc + 8),
            2 => (0x8082, 0x8000_0000 + random.below(0x1000) * 2),
            3 => (0x0000_00ef | 0x0080_0000, pc + 8),
            4 => {
                let access = Access {
                    kind: AccessKind::Load,
                    size: 2,
                    addr: random.draw(),
                    paddr: None,
                    data: Some(5),
                    operand: None,
                };
                effects.accesses.push(access).unwrap();
                (0x0085_2503, pc + 4)
            }
            5 => {
                steps.push(trap(pc, &mut random));
                let Step::Trap(step) = steps[steps.len() - 1].0 else {
                    panic!();
                };
                pc = step.trap.handler.unwrap();
                continue;
            }
            6 if seed.is_multiple_of(3) => {
                steps.push((Step::Signal(Signal::Halted), effects));
                steps.push((Step::Signal(Signal::Resumed), effects));
                pc += 4;
                continue;
            }
            7 | 8 => (0x0001, pc + 2),
            _ => (0x00b5_0533, pc + 4),
        };
        if insn.bits & 0x7f == 0x33 {
            let reg = RegId::X(10);
            let value = random.below(300);
            effects.regs = Few::new();
            effects.regs.push(RegWrite { reg, value }).unwrap();
        }
        pc = insn.next;
        steps.push((Step::Insn(insn), effects));
    }
    steps
}

fn trap(pc: u64, random: &mut Random) -> (Step, Effects) {
    let interrupt = random.below(2) == 0;
    let code = random.below(6) as u32;
    let handler = 0x8000_4000;
    let mut effects = Effects::default();
    let cause = u64::from(interrupt) << 63 | u64::from(code);
    for (csr, value) in [(0x341, pc), (0x342, cause), (0x343, 0), (0x300, 0x1800)] {
        effects.csrs.push(CsrWrite { csr, value }).unwrap();
    }
    effects.mode = Some(Mode::M);
    let step = TrapStep {
        trap: Trap {
            epc: Some(pc),
            handler: Some(handler),
            cause: match interrupt {
                true => Cause::Interrupt(Some(code)),
                false => Cause::Exception(Some(code)),
            },
            tval: Some(0),
            pending: None,
        },
        bits: (!interrupt).then_some(0x0085_2503),
        mode: Mode::M,
        context: Default::default(),
        time: 0,
    };
    (Step::Trap(step), effects)
}
