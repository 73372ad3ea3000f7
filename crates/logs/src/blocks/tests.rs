//! Blocks as steps: where signals, traps and odd lengths come out.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use hartrace_isa::{Isa, ItypeTable};

use super::*;
use crate::tests::Keep;
use crate::{IngressColumns, IngressReader, IngressWriter, Iretire};
use hartrace_flow::{
    AccessKind, Context, DataPort, IngressSink, Mode, Port, PortConfig, Retirement, Retires,
};

/// 1000 nop, 1004 beq +8, 1008 nop, 100c jal ra +8, 1010 nop, 1014 ret,
/// 1018 ecall, 101c c.nop, 101e c.ebreak, 1020 48 bits, 1026 80 bits,
/// 1030 c.j -0x30
fn program() -> Image {
    let mut image = Image::new();
    let code: [u32; 13] = [
        0x13,
        0x0080_0463,
        0x13,
        0x0080_00ef,
        0x13,
        0x8067,
        0x73,
        0x9002_0001,
        0x1111_001f,
        0x007f_2222,
        0x4444_3333,
        0x6666_5555,
        0xbfc1,
    ];
    let bytes: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
    image.add_raw(SpaceId::FIRST, 0x1000, &bytes, Isa::RV64GC);
    image
}

fn block(itype: Itype, iaddr: u64, iretire: u32, ilastsize: u8) -> Ingress {
    Ingress {
        itype,
        iaddr,
        iretire,
        ilastsize,
        ..Ingress::default()
    }
}

fn trap(itype: Itype, iaddr: u64) -> Ingress {
    let cause = if itype == Itype::Exception { 13 } else { 7 };
    Ingress {
        cause,
        ..block(itype, iaddr, 0, 0)
    }
}

/// The steps of some blocks and what was reported of which.
fn read(blocks: &[Ingress]) -> (Keep, Vec<(u64, LineErrorKind)>) {
    let image = program();
    let mut steps = BlockSteps::new(&image, SpaceId::FIRST, HartId(0));
    let (mut keep, mut bad) = (Keep::default(), Vec::new());
    for (line, block) in blocks.iter().enumerate() {
        let mut damaged = |e: LineError| bad.push((e.line, e.kind));
        steps.block(line as u64, block, &mut keep, &mut damaged);
    }
    steps.finish(&mut keep);
    (keep, bad)
}

fn told(keep: &Keep) -> Vec<String> {
    let tell = |s: &(HartId, Step, Effects)| match s.1 {
        Step::Insn(i) => format!("{:x}>{:x}", i.pc, i.next),
        Step::Trap(t) => format!(
            "trap {:x}>{:x}",
            t.trap.epc.unwrap(),
            t.trap.handler.unwrap_or(0)
        ),
        Step::Signal(s) => format!("{s:?}"),
    };
    keep.steps.iter().map(tell).collect()
}

fn assert_told(blocks: &[Ingress], want: &[&str]) {
    let (keep, bad) = read(blocks);
    assert_eq!(told(&keep), want);
    assert_eq!(bad, vec![]);
}

#[test]
fn notify_and_trace_off_stand_before_the_last_instruction() {
    let all = Ingress {
        trigger: Trigger::from_bits(7),
        external: 0x81,
        ..block(Itype::NotTaken, 0x1000, 4, 1)
    };
    let second = Ingress {
        trigger: Trigger::from_bits(6),
        block: 1,
        ..block(Itype::DirectCall, 0x1008, 4, 1)
    };
    assert_told(
        &[all, second],
        &[
            "TraceOn",
            "External(0)",
            "External(7)",
            "1000>1004",
            "Notify",
            "TraceOff",
            "1004>1008",
            "1008>100c",
            "Notify",
            "TraceOff",
            "100c>1014",
        ],
    );
}

#[test]
fn pulses_with_a_trap_stand_before_it() {
    let marked = |block| Ingress {
        trigger: Trigger::from_bits(7),
        external: 2,
        ..block
    };
    let nop = block(Itype::None, 0x1000, 2, 1);
    assert_told(
        &[nop, marked(trap(Itype::Exception, 0x1004)), nop],
        &[
            "1000>1004",
            "TraceOn",
            "External(1)",
            "Notify",
            "TraceOff",
            "trap 1004>1000",
            "1000>1004",
        ],
    );
    // The last that retired, or the ecall that counts as such.
    let behind = marked(Ingress {
        itype: Itype::Exception,
        cause: 2,
        ..nop
    });
    let ecall = marked(Ingress {
        cause: 11,
        ..block(Itype::Exception, 0x1018, 2, 1)
    });
    assert_told(
        &[behind, ecall, nop],
        &[
            "TraceOn",
            "External(1)",
            "Notify",
            "TraceOff",
            "1000>1004",
            "trap 1004>1018",
            "TraceOn",
            "External(1)",
            "Notify",
            "TraceOff",
            "trap 1018>1000",
            "1000>1004",
        ],
    );
}

#[test]
fn pulses_of_an_idle_cycle_stand_behind_what_retired_before() {
    let idle = Ingress {
        trigger: Trigger::from_bits(1),
        external: 4,
        ..Ingress::default()
    };
    assert_told(
        &[
            idle,
            block(Itype::None, 0x1000, 2, 1),
            idle,
            block(Itype::Taken, 0x1004, 2, 1),
            idle,
        ],
        &[
            "TraceOn",
            "External(2)",
            "1000>1004",
            "TraceOn",
            "External(2)",
            "1004>100c",
            "TraceOn",
            "External(2)",
        ],
    );
    // However many there are.
    let mut blocks = vec![trap(Itype::Exception, 0x1018)];
    blocks.extend([idle; 100]);
    let (keep, bad) = read(&blocks);
    assert_eq!(
        (keep.steps.len(), keep.traps().len(), bad),
        (201, 1, vec![])
    );
}

#[test]
fn a_lost_block_is_a_loss_before_it() {
    let lost = Ingress {
        lost: true,
        ..block(Itype::None, 0x1010, 2, 1)
    };
    assert_told(
        &[block(Itype::None, 0x1000, 2, 1), lost],
        &["1000>1004", "Lost", "1010>1014"],
    );
}

#[test]
fn direct_jumps_may_be_taken_branches() {
    assert_told(
        &[
            block(Itype::Taken, 0x100c, 2, 1),
            block(Itype::Return, 0x1014, 2, 1),
            block(Itype::Taken, 0x1030, 1, 0),
            block(Itype::None, 0x1000, 2, 1),
        ],
        &["100c>1014", "1014>1030", "1030>1000", "1000>1004"],
    );
    let (_, bad) = read(&[block(Itype::NotTaken, 0x100c, 2, 1)]);
    assert_eq!(bad, [(0, LineErrorKind::Itype(0x100c))]);
    let (_, bad) = read(&[block(Itype::Taken, 0x1014, 2, 1)]);
    assert_eq!(bad, [(0, LineErrorKind::Itype(0x1014))]);
}

#[test]
fn odd_lengths_fill_their_blocks() {
    assert_told(
        &[
            block(Itype::None, 0x1020, 3, 2),
            block(Itype::None, 0x1026, 5, 3),
            block(Itype::DirectJump, 0x1030, 1, 0),
        ],
        &["1020>1026", "1026>1030", "1030>1000"],
    );
    // One behind the other, and inside.
    assert_told(
        &[block(Itype::DirectJump, 0x1020, 9, 0)],
        &["1020>1026", "1026>1030", "1030>1000"],
    );
    assert_told(
        &[block(Itype::None, 0x1020, 8, 3)],
        &["1020>1026", "1026>1030"],
    );
    for (iretire, ilastsize) in [(4, 2), (3, 1), (2, 1), (8, 2)] {
        let (_, bad) = read(&[block(Itype::None, 0x1020, iretire, ilastsize)]);
        assert_eq!(bad, [(0, LineErrorKind::BlockBounds(0x1020))]);
    }
}

#[test]
fn interrupts_come_where_the_block_before_went() {
    // Whatever `iaddr` says.
    for iaddr in [0, 0x1018, 0x1004, 0x1001] {
        for itype in [Itype::Interrupt, Itype::Exception] {
            assert_told(
                &[
                    block(Itype::None, 0x1000, 2, 1),
                    trap(itype, iaddr),
                    block(Itype::Taken, 0x1004, 2, 1),
                    trap(itype, iaddr),
                    block(Itype::DirectCall, 0x100c, 2, 1),
                    trap(itype, iaddr),
                    block(Itype::None, 0x1000, 2, 1),
                ],
                &[
                    "1000>1004",
                    "trap 1004>1004",
                    "1004>100c",
                    "trap 100c>100c",
                    "100c>1014",
                    "trap 1014>1000",
                    "1000>1004",
                ],
            );
        }
    }
}

#[test]
fn iaddr_of_a_trap_tells_what_nothing_else_does() {
    let ret = block(Itype::Return, 0x1014, 2, 1);
    let nop = block(Itype::None, 0x1000, 2, 1);
    for itype in [Itype::Interrupt, Itype::Exception] {
        assert_told(
            &[ret, trap(itype, 0x1008), nop],
            &["1014>1008", "trap 1008>1000", "1000>1004"],
        );
        // The first of all, and a trap before the handler of another.
        assert_told(
            &[trap(itype, 0x1008), trap(itype, 0x1010), nop],
            &["trap 1008>1010", "trap 1010>1000", "1000>1004"],
        );
    }
    // A jump to nowhere faults there.
    for (iaddr, cause, tval) in [(0, 1, 0), (0xdead_0000, 12, 0xdead_0000)] {
        let fault = Ingress {
            cause,
            tval,
            ..trap(Itype::Exception, iaddr)
        };
        let (keep, bad) = read(&[ret, fault, nop]);
        assert_eq!(bad, vec![]);
        let trap = keep.traps()[0];
        assert_eq!((trap.trap.epc.unwrap(), trap.bits), (iaddr, None));
        assert_eq!(keep.insns()[0].next, iaddr);
    }
}

#[test]
fn a_trap_that_could_be_anywhere_is_reported_and_lost() {
    let ret = block(Itype::Return, 0x1014, 2, 1);
    let nop = block(Itype::None, 0x1000, 2, 1);
    for nowhere in [
        trap(Itype::Interrupt, 0),
        trap(Itype::Interrupt, 0x5000),
        trap(Itype::Interrupt, 0x1001),
        trap(Itype::Exception, 0),
        trap(Itype::Exception, 0x1001),
    ] {
        let (keep, bad) = read(&[ret, nowhere, nop]);
        assert_eq!(bad, [(1, LineErrorKind::Epc)]);
        assert_eq!(told(&keep), ["1014>1018", "Lost", "1000>1004"]);
        let (keep, bad) = read(&[trap(Itype::Exception, 0x1018), nowhere, nop]);
        assert_eq!(bad, [(1, LineErrorKind::Epc)]);
        assert_eq!(told(&keep), ["trap 1018>0", "Lost", "1000>1004"]);
    }
    // In the block of a jump or branch: nothing tells where that went.
    for iaddr in [0x1014, 0x1004] {
        let (keep, bad) = read(&[block(Itype::Interrupt, iaddr, 2, 1), nop]);
        assert_eq!(bad, [(0, LineErrorKind::Epc)]);
        assert_eq!(told(&keep), ["Lost", "1000>1004"]);
    }
}

#[test]
fn a_trap_before_a_halt_is_kept() {
    let nop = block(Itype::None, 0x1000, 2, 1);
    let halted = |block| Ingress {
        halted: true,
        ..block
    };
    let idle = halted(Ingress::default());
    let ecall = trap(Itype::Exception, 0x1018);
    assert_told(
        &[ecall, idle, idle, nop],
        &["trap 1018>1000", "Halted", "Resumed", "1000>1004"],
    );
    // Without a handler: the end, a reset, a debugger's own code, a loss.
    assert_told(&[ecall, idle], &["trap 1018>0", "Halted"]);
    let reset = Ingress {
        reset: true,
        ..idle
    };
    assert_told(&[ecall, idle, reset], &["trap 1018>0", "Halted", "Reset"]);
    assert_told(
        &[ecall, idle, halted(nop), Ingress::default()],
        &["trap 1018>0", "Halted", "1000>1004", "Resumed"],
    );
    let lost = Ingress { lost: true, ..nop };
    assert_told(
        &[ecall, idle, lost],
        &["trap 1018>0", "Halted", "Lost", "Resumed", "1000>1004"],
    );
}

#[test]
fn the_instruction_that_trapped_is_looked_up() {
    let exception = |iaddr, iretire, ilastsize, cause| Ingress {
        cause,
        ..block(Itype::Exception, iaddr, iretire, ilastsize)
    };
    let nop = block(Itype::None, 0x1000, 2, 1);
    for (row, epc, bits) in [
        // Behind the block, in the block, alone.
        (exception(0x101c, 1, 0, 3), 0x101e, Some(0x9002)),
        (exception(0x101c, 2, 0, 3), 0x101e, Some(0x9002)),
        (exception(0x101e, 0, 0, 3), 0x101e, Some(0x9002)),
        (exception(0x1018, 2, 1, 11), 0x1018, Some(0x73)),
        (exception(0x1000, 2, 1, 2), 0x1004, Some(0x0080_0463)),
        // Fetch faults and interrupts have none.
        (exception(0x101c, 1, 0, 12), 0x101e, None),
        (block(Itype::Interrupt, 0x101c, 1, 0), 0x101e, None),
    ] {
        let (keep, bad) = read(&[row, nop]);
        assert_eq!(bad, vec![]);
        let trap = keep.traps()[0];
        assert_eq!((trap.trap.epc.unwrap(), trap.bits), (epc, bits), "{row:?}");
    }
}

/// What a hart did that shows most of what a port can show.
fn steps() -> Vec<Step> {
    let image = program();
    let insn = |pc, next| {
        Step::Insn(Insn {
            pc,
            next,
            bits: image.fetch(SpaceId::FIRST, pc).unwrap().bits,
            mode: Mode::S,
            context: Context(5),
            ..Insn::default()
        })
    };
    let trap = |epc, handler, cause, bits| {
        Step::Trap(TrapStep {
            trap: Trap {
                epc: Some(epc),
                handler: Some(handler),
                cause,
                tval: Some(0x77),
                pending: matches!(cause, Cause::Interrupt(_)).then_some(0),
            },
            bits,
            mode: Mode::S,
            context: Context(5),
            time: 0,
        })
    };
    let exception = |code| Cause::Exception(Some(code));
    let interrupt = Cause::Interrupt(Some(7));
    let signal = Step::Signal;
    vec![
        signal(Signal::TraceOn),
        insn(0x1000, 0x1004),
        insn(0x1004, 0x1008),
        insn(0x1008, 0x100c),
        signal(Signal::External(3)),
        insn(0x100c, 0x1014),
        trap(0x1014, 0x101c, interrupt, None),
        insn(0x101c, 0x101e),
        trap(0x101e, 0x1014, exception(3), Some(0x9002)),
        signal(Signal::Notify),
        insn(0x1014, 0x1020),
        trap(0x1020, 0x1020, interrupt, None),
        insn(0x1020, 0x1026),
        insn(0x1026, 0x1030),
        insn(0x1030, 0x1000),
        insn(0x1000, 0x1004),
        trap(0x1004, 0x1018, interrupt, None),
        trap(0x1018, 0x1010, exception(9), Some(0x73)),
        signal(Signal::Halted),
        signal(Signal::Resumed),
        signal(Signal::PowerDown),
        signal(Signal::PowerUp),
        insn(0x1010, 0x1014),
        signal(Signal::TraceOff),
        // Where it went is lost too.
        insn(0x1014, 0x1018),
        signal(Signal::Lost),
        insn(0x1020, 0x1026),
        signal(Signal::PowerDown),
        signal(Signal::Reset),
        insn(0x1000, 0x1004),
    ]
}

/// Writes blocks as a table, each in a cycle of its own.
struct Table(IngressWriter, String);

impl IngressSink for Table {
    fn ingress(&mut self, _: HartId, block: &Ingress) {
        self.0.write_row(&mut self.1, &[*block]).unwrap();
    }
}

#[test]
fn what_a_port_shows_is_read_back_as_the_same_steps() {
    let columns = IngressColumns {
        time: true,
        sijump: true,
        trigger: true,
        halted: true,
        reset: true,
        external: true,
        lost: true,
        power_down: true,
        pending: true,
        ..IngressColumns::default()
    };
    let image = program();
    let want = steps();
    for retires in [Retires::Neither, Retires::Ecall, Retires::EcallAndEbreak] {
        for (retirement, iretire) in [
            (Retirement::Single, Iretire::Instructions),
            (Retirement::Single, Iretire::Halfwords),
            (Retirement::Block(32), Iretire::Halfwords),
        ] {
            for (all_jumps, table) in [
                (false, ItypeTable::ETrace20),
                (true, ItypeTable::ETrace20),
                (false, ItypeTable::NexRv),
            ] {
                let config = PortConfig {
                    table,
                    retirement,
                    retires,
                    all_jumps,
                    ..PortConfig::new(Isa::RV64GC)
                };
                let writer = IngressWriter::new(columns, iretire);
                let mut table = Table(writer, String::new());
                writer.write_header(&mut table.1).unwrap();
                let mut port = Port::new(config, table);
                for step in &want {
                    port.step(HartId(0), step, &Effects::default());
                }
                let text = port.into_sink().1;
                let mut reader = IngressReader::new(iretire);
                let mut blocks = BlockSteps::new(&image, SpaceId::FIRST, HartId(0));
                let (mut keep, mut bad) = (Keep::default(), Vec::new());
                reader.feed_steps(text.as_bytes(), &mut blocks, &mut keep, &mut |e| {
                    bad.push(e);
                });
                reader.finish_steps(&mut blocks, &mut keep, &mut |e| bad.push(e));
                assert_eq!(bad, vec![], "{text}");
                let got: Vec<_> = keep.steps.iter().map(|s| s.1).collect();
                assert_eq!(got, want, "{config:?}\n{text}");
            }
        }
    }
}

/// Writes blocks with their accesses as a table.
struct DataTable {
    writer: IngressWriter,
    text: String,
    block: Option<Ingress>,
    data: Vec<DataIngress>,
}

impl DataTable {
    fn close(&mut self) {
        if let Some(block) = self.block.take() {
            let written = self
                .writer
                .write_cycle(&mut self.text, &[block], &self.data);
            written.unwrap();
        }
        self.data.clear();
    }
}

impl IngressSink for DataTable {
    fn ingress(&mut self, _: HartId, block: &Ingress) {
        self.close();
        self.block = Some(*block);
    }

    fn data(&mut self, _: HartId, data: &DataIngress) {
        self.data.push(*data);
    }

    fn finish(&mut self) {
        self.close();
    }
}

/// Accesses come back with their instructions, also those of an instruction that is
/// shown once for each of them.
#[test]
fn accesses_are_read_back() {
    let isa = Isa::parse("rv32ima_zicsr_zca_zcmp").unwrap();
    // cm.push {ra, s0-s2}, -16; c.nop; amoadd.w a0, a1, (a2); csrrw a0, mscratch, a1
    let code = [
        0x72, 0xb8, 0x01, 0x00, 0x2f, 0x25, 0xb6, 0x00, 0x73, 0x95, 0x05, 0x34,
    ];
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &code, isa);
    let access = |kind, addr, data| Access {
        kind,
        size: 2,
        addr,
        paddr: None,
        data: Some(data),
        operand: (kind != AccessKind::Store).then_some(u64::from(u32::MAX)),
    };
    let mut want = Vec::new();
    for (pc, len, bits) in [
        (0x1000, 2, 0xb872),
        (0x1002, 2, 1),
        (0x1004, 4, 0x00b6_252f),
        (0x1008, 4, 0x3405_9573),
    ] {
        let mut effects = Effects::default();
        match bits {
            0xb872 => (0..4).for_each(|i| {
                let one = access(AccessKind::Store, 0x2000 + 4 * i, i + 1);
                effects.accesses.push(one).unwrap();
            }),
            1 => {}
            0x00b6_252f => {
                let one = access(AccessKind::AtomicAdd, 0x3000, 7);
                effects.accesses.push(one).unwrap();
            }
            _ => effects.csr_access = Some(access(AccessKind::CsrReadWrite, 0x340, 9)),
        }
        let insn = Insn {
            pc,
            bits,
            next: pc + len,
            ..Insn::default()
        };
        want.push((insn, effects));
    }
    for (retirement, iretire, accesses) in [
        (Retirement::Single, Iretire::Instructions, 1),
        (Retirement::Block(32), Iretire::Halfwords, 8),
    ] {
        let config = PortConfig {
            retirement,
            data: DataPort::Unified,
            ..PortConfig::new(isa)
        };
        let columns = IngressColumns {
            accesses,
            ..IngressColumns::default()
        };
        let writer = IngressWriter::new(columns, iretire);
        let mut text = String::new();
        writer.write_header(&mut text).unwrap();
        let table = DataTable {
            writer,
            text,
            block: None,
            data: Vec::new(),
        };
        let mut port = Port::new(config, table);
        for (insn, effects) in &want {
            port.step(HartId(0), &Step::Insn(*insn), effects);
        }
        port.finish();
        let text = port.into_sink().text;
        let mut reader = IngressReader::new(iretire);
        let mut blocks = BlockSteps::new(&image, SpaceId::FIRST, HartId(0));
        let (mut keep, mut bad) = (Keep::default(), Vec::new());
        reader.feed_steps(text.as_bytes(), &mut blocks, &mut keep, &mut |e| {
            bad.push(e)
        });
        reader.finish_steps(&mut blocks, &mut keep, &mut |e| bad.push(e));
        assert_eq!(bad, vec![], "{text}");
        assert_eq!(keep.steps.len(), want.len(), "{text}");
        for ((_, step, effects), (insn, expected)) in keep.steps.iter().zip(&want) {
            assert_eq!(*step, Step::Insn(*insn), "{text}");
            assert_eq!(effects.accesses, expected.accesses, "{text}");
            assert_eq!(effects.csr_access, expected.csr_access, "{text}");
        }
    }
}
