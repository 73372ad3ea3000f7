//! Tables read, written and turned into steps.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use hartrace_isa::{Isa, Itype};
use hartrace_testkit::{Random, pieces};

use crate::tests::{Keep, Read, Told, assert_any_cut, assert_robust, read, whole};
use crate::*;
use hartrace_flow::{
    Cause, Context, Ctype, DataIngress, HartId, Image, Ingress, Mode, Signal, SpaceId, Step,
    Trigger,
};

mod sideband;

const TABLE: &str = "\
itype_0,cause,tval,priv,iaddr_0,context,ctype,iretire_0,ilastsize_0
0,0,0,3,1000,0,0,1,1
5,0,0,3,1004,0,0,1,1
9,0,0,3,100c,0,0,1,1
13,0,0,3,1014,7,2,1,1
1,11,0,3,1018,7,0,1,1
0,0,0,3,1000,7,0,1,1
1,13,deadbeef,0,1004,7,0,0,0
2,7,0,0,1000,7,0,0,0
0,0,0,3,1000,4294967295,0,1,1
";

/// Reads rows only.
fn rows(retirement: Iretire, text: &str) -> (Vec<Vec<Ingress>>, Vec<LineError>, IngressReader) {
    let (mut rows, mut bad) = (Vec::new(), Vec::new());
    let mut reader = IngressReader::new(retirement);
    let mut out = |_, row: IngressRow<'_>| match row {
        IngressRow::Blocks(blocks) => rows.push(blocks.to_vec()),
        IngressRow::Lost => rows.push(vec![]),
    };
    reader.feed(text.as_bytes(), &mut out, &mut |e| bad.push(e));
    let columns = reader.clone();
    reader.finish(&mut out, &mut |e| bad.push(e));
    (rows, bad, columns)
}

fn assert_writes_back(retirement: Iretire, text: &str) {
    let (rows, bad, reader) = rows(retirement, text);
    assert_eq!(bad, vec![]);
    let writer = IngressWriter::new(reader.columns().unwrap(), retirement);
    let mut out = String::new();
    writer.write_header(&mut out).unwrap();
    for row in &rows {
        writer.write_row(&mut out, row).unwrap();
    }
    assert_eq!(out, text);
}

#[test]
fn a_table_of_the_reference_flow_reads_and_writes_back() {
    assert_writes_back(Iretire::Instructions, TABLE);
    let (rows, ..) = rows(Iretire::Instructions, TABLE);
    assert_eq!((rows[0][0].iretire, rows[0][0].iaddr), (2, 0x1000));
    assert_eq!(rows[3][0].context, Context(7));
    assert_eq!(rows[3][0].ctype, Ctype::Precise);
    assert_eq!((rows[6][0].cause, rows[6][0].tval), (13, 0xdead_beef));
    assert_eq!((rows[6][0].mode, rows[6][0].iretire), (Mode::U, 0));
}

#[test]
fn every_column_and_several_blocks() {
    assert_writes_back(
        Iretire::Halfwords,
        "itype_0,itype_1,cause,tval,priv,iaddr_0,iaddr_1,context,time,ctype,sijump_0,sijump_1,\
         iretire_0,iretire_1,ilastsize_0,ilastsize_1,trigger,halted,reset,impdef\n\
         5,8,0,0,1,80000000,80000100,3,12345,1,0,1,7,9,1,0,5,0,0,ff\n\
         0,0,0,0,3,80000200,0,3,12346,0,0,0,2,0,1,0,0,0,0,0\n\
         0,0,0,0,3,0,0,3,12347,0,0,0,0,0,0,0,0,1,1,1a\n",
    );
}

#[test]
fn columns_in_any_order_and_case_and_of_others() {
    let text = "ILASTSIZE_0, iretire , note,PRIV,tval,Cause,iaddr_0,itype_0\r\n\
                0 ,1,whatever,0,0x5,2,0x1000,0\r\n";
    let (rows, bad, reader) = rows(Iretire::Instructions, text);
    assert_eq!(bad, vec![]);
    let want = Ingress {
        iaddr: 0x1000,
        iretire: 1,
        cause: 2,
        tval: 5,
        mode: Mode::U,
        ..Ingress::default()
    };
    assert_eq!(rows, [[want]]);
    let columns = reader.columns().unwrap();
    assert!(!columns.context && !columns.time && columns.groups == 1);
}

#[test]
fn bad_headers_are_reported_once() {
    for (header, want) in [
        ("itype_0,cause", "the header lacks the column `tval`"),
        (
            "itype_0,itype_0,cause",
            "expected a header that names each column once",
        ),
        ("itype_9", "expected a header that names each column once"),
        (
            "itype_0,itype_1,cause,tval,priv,iaddr_0,iretire_0,ilastsize_0",
            "lacks the column `iaddr`",
        ),
    ] {
        let (rows, bad, reader) = rows(Iretire::Instructions, &format!("\n{header}\n1,2\n3,4\n"));
        assert_eq!((rows.len(), bad.len(), reader.columns()), (1, 1, None));
        assert!(bad[0].to_string().contains(want), "{}", bad[0]);
        assert_eq!(bad[0].line, 2);
    }
}

#[test]
fn bad_rows_are_named() {
    let head = TABLE.lines().next().unwrap();
    for (row, want) in [
        (
            "16,0,0,3,1000,0,0,1,1",
            "line 2, column 1: not a value of the column `itype`, found `16,0,0,3,1000,0,0,1,1`",
        ),
        (
            "0,0,0,2,1000,0,0,1,1",
            "line 2, column 7: not a value of the column `priv`, found `2,1000,0,0,1,1`",
        ),
        (
            "0,0,0,3,xyz,0,0,1,1",
            "line 2, column 9: expected a hexadecimal number of 1 to 16 digits, found `xyz,0,0,1,1`",
        ),
        (
            "0,0,0,3,1000,0,0,1",
            "line 2, column 19: expected one field for each column of the header",
        ),
        (
            "0,0,0,3,1000,0,0,1,1,1",
            "line 2, column 22: expected one field for each column of the header, found `1`",
        ),
        (
            "0,0,0,3,1000,0,0,2,1",
            "line 2, column 1: not a value of the column `iretire`, found `0,0,0,3,1000,0,0,2,1`",
        ),
        (
            "0,4294967296,0,3,1000,0,0,1,1",
            "line 2, column 3: expected a decimal number that fits its signal, found `4294967296,0,3,1000,0,0,1,1`",
        ),
    ] {
        let text = format!("{head}\n{row}\n0,0,0,3,1000,0,0,1,1");
        let (rows, bad, _) = rows(Iretire::Instructions, &text);
        let shown: Vec<_> = bad.iter().map(ToString::to_string).collect();
        assert_eq!(shown, [want]);
        assert_eq!((rows.len(), rows[0].len(), rows[1].len()), (2, 0, 1));
    }
}

#[test]
fn what_does_not_fit_is_not_written() {
    let writer = IngressWriter::new(IngressColumns::default(), Iretire::Instructions);
    let block = Ingress {
        iretire: 3,
        ..Ingress::default()
    };
    let mut out = String::new();
    assert_eq!(
        writer.write_row(&mut out, &[block]),
        Err(RowError::Halfwords(3))
    );
    assert_eq!(
        writer.write_row(&mut out, &[block; 2]),
        Err(RowError::Groups(2))
    );
    assert_eq!(out, "");
}

/// 1000 nop, beq +8, nop, jal ra +8, nop, ret, ecall, c.nop, c.ebreak
fn program() -> Image {
    let mut image = Image::new();
    let code: [u32; 8] = [
        0x13,
        0x0080_0463,
        0x13,
        0x0080_00ef,
        0x13,
        0x8067,
        0x73,
        0x9002_0001,
    ];
    let bytes: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
    image.add_raw(SpaceId::FIRST, 0x1000, &bytes, Isa::RV64GC);
    image
}

/// A table to steps, as one reader.
struct ToSteps<'a>(IngressReader, BlockSteps<'a>);

impl Read for ToSteps<'_> {
    fn feed(&mut self, chunk: &[u8], out: &mut Keep, bad: &mut Vec<LineError>) {
        self.0
            .feed_steps(chunk, &mut self.1, out, &mut |e| bad.push(e));
    }
    fn finish(&mut self, out: &mut Keep, bad: &mut Vec<LineError>) {
        self.0.finish_steps(&mut self.1, out, &mut |e| bad.push(e));
    }
}

fn to_steps(image: &Image, retirement: Iretire) -> ToSteps<'_> {
    let blocks = BlockSteps::new(image, SpaceId::FIRST, HartId(0));
    ToSteps(IngressReader::new(retirement), blocks)
}

fn steps(retirement: Iretire, text: &str) -> Told {
    let image = program();
    assert_any_cut(|| to_steps(&image, retirement), text.as_bytes())
}

fn path(keep: &Keep) -> Vec<(u64, u64)> {
    keep.insns().iter().map(|i| (i.pc, i.next)).collect()
}

#[test]
fn single_rows_become_steps() {
    let (keep, bad) = steps(Iretire::Instructions, TABLE);
    assert_eq!(bad, vec![]);
    assert_eq!(
        path(&keep),
        [
            (0x1000, 0x1004),
            (0x1004, 0x100c),
            (0x100c, 0x1014),
            (0x1014, 0x1018),
            (0x1000, 0x1004),
            (0x1000, 0x1004),
        ]
    );
    let traps: Vec<_> = keep
        .traps()
        .iter()
        .map(|t| {
            (
                t.trap.epc.unwrap(),
                t.trap.handler.unwrap_or(0),
                t.trap.cause,
                t.bits,
                t.mode,
            )
        })
        .collect();
    let exception = |code| Cause::Exception(Some(code));
    assert_eq!(
        traps,
        [
            (0x1018, 0x1000, exception(11), Some(0x73), Mode::M),
            (0x1004, 0x1000, exception(13), Some(0x0080_0463), Mode::U),
            (0x1000, 0x1000, Cause::Interrupt(Some(7)), None, Mode::U),
        ]
    );
    assert_eq!(keep.traps()[1].trap.tval, Some(0xdead_beef));
    assert_eq!(keep.insns()[3].context, Context(7));
}

const BLOCKS: &str = "\
itype_0,cause,tval,priv,iaddr_0,time,iretire_0,ilastsize_0,trigger,halted,reset
0,0,0,3,0,1,0,0,0,0,1
4,0,0,3,1000,2,4,1,1,0,0
0,0,0,3,1008,3,4,1,0,0,0
13,0,0,3,1014,4,2,1,0,0,0
2,7,0,3,1000,5,2,1,0,0,0
0,0,0,3,0,6,0,0,0,1,0
1,3,101e,3,101c,7,2,0,4,0,0
5,0,0,3,1004,8,2,1,2,0,0
";

#[test]
fn blocks_become_steps_and_signals() {
    let (keep, bad) = steps(Iretire::Halfwords, BLOCKS);
    assert_eq!(bad, vec![]);
    let told: Vec<String> = keep
        .steps
        .iter()
        .map(|s| match s.1 {
            Step::Insn(i) => format!("{:x}>{:x}@{}", i.pc, i.next, i.time),
            Step::Trap(t) => format!(
                "trap {:x}>{:x}",
                t.trap.epc.unwrap(),
                t.trap.handler.unwrap_or(0)
            ),
            Step::Signal(s) => format!("{s:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            "Reset",
            "TraceOn",
            "1000>1004@2",
            "1004>1008@2",
            "1008>100c@3",
            "100c>1014@3",
            "1014>1000@4",
            "1000>1004@5",
            "trap 1004>101c",
            "Halted",
            "Resumed",
            "101c>101e@7",
            "Notify",
            "trap 101e>1004",
            "TraceOff",
            "1004>100c@8",
        ]
    );
}

#[test]
fn blocks_that_contradict_the_image_are_reported() {
    let head = "itype_0,cause,tval,priv,iaddr_0,iretire_0,ilastsize_0\n";
    for (row, want) in [
        // Past the end, last size, cut instruction.
        ("0,0,0,3,2000,2,1", LineErrorKind::MissingCode(0x2000)),
        ("0,0,0,3,1000,2,0", LineErrorKind::BlockBounds(0x1000)),
        ("0,0,0,3,1000,1,0", LineErrorKind::BlockBounds(0x1000)),
        // A branch is no jump; a branch inside; a return is not direct; code
        // 3 wants a return from a trap; an ecall does not retire.
        ("9,0,0,3,1004,2,1", LineErrorKind::Itype(0x1004)),
        ("0,0,0,3,1004,4,1", LineErrorKind::Itype(0x1004)),
        ("9,0,0,3,1014,2,1", LineErrorKind::Itype(0x1014)),
        ("3,0,0,3,1000,2,1", LineErrorKind::Itype(0x1000)),
        ("0,0,0,3,1018,2,1", LineErrorKind::Itype(0x1018)),
        ("5,0,0,3,1018,0,0", LineErrorKind::Itype(0x1018)),
    ] {
        let (keep, bad) = steps(
            Iretire::Halfwords,
            &format!("{head}{row}\n0,0,0,3,1000,2,1\n"),
        );
        assert_eq!((bad.len(), bad[0].kind, bad[0].line), (1, want, 2), "{row}");
        assert_eq!((keep.lost(), path(&keep)), (1, vec![(0x1000, 0x1004)]));
    }
    // Nothing leads from the first block to the second.
    let text = format!("{head}0,0,0,3,1000,2,1\n0,0,0,3,1010,2,1\n");
    let (keep, bad) = steps(Iretire::Halfwords, &text);
    assert_eq!(bad[0].kind, LineErrorKind::Discontinuity(0x1010));
    assert_eq!(path(&keep), [(0x1000, 0x1004), (0x1010, 0x1014)]);
    assert_eq!(keep.steps[1].1, Step::Signal(Signal::Lost));
}

#[test]
fn a_three_bit_port_is_believed_too() {
    let text = "itype_0,cause,tval,priv,iaddr_0,iretire_0,ilastsize_0\n\
                0,0,0,3,100c,1,1\n6,0,0,3,1014,1,1\n0,0,0,3,1000,1,1\n";
    let (keep, bad) = steps(Iretire::Instructions, text);
    assert_eq!(bad, vec![]);
    assert_eq!(
        path(&keep),
        [(0x100c, 0x1014), (0x1014, 0x1000), (0x1000, 0x1004)]
    );
}

#[test]
fn long_tables_in_random_pieces_and_with_flipped_bits() {
    let image = program();
    let (head, rows) = TABLE.split_once('\n').unwrap();
    let lap = format!("{rows}2,7,0,3,1004,7,0,0,0\n");
    let text = format!("{head}\n{}", lap.repeat(100));
    let reader = || to_steps(&image, Iretire::Instructions);
    let want = whole(reader(), text.as_bytes());
    assert_eq!(want.1, vec![]);
    let mut rng = Random::new(3);
    for _ in 0..10 {
        let chunks = pieces(text.as_bytes(), &mut rng);
        assert_eq!(read(reader(), chunks.into_iter()), want);
    }
    let mut flips = 0;
    for at in head.len() + 1..head.len() + 400 {
        let mut text = text.clone().into_bytes();
        text[at] ^= 1 << rng.below(7);
        let (keep, bad) = whole(reader(), &text);
        flips += usize::from(!bad.is_empty());
        assert!(bad.len() <= 3, "{bad:?}");
        assert!(keep.steps.len().abs_diff(want.0.steps.len()) <= 8);
    }
    assert!(flips > 100);
    whole(reader(), &[0; 1000]);
    whole(reader(), &[0xff; 100_000]);
    whole(reader(), b"");
}

const PCS: &str = "\
VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT
1,0000000080000000,00000013,3,0,0,0,0
1,0000000080000004,0000a001,3,0,0,0,0
1,0000000080000004,0000a001,3,0,0,0,0
1,0000000080000004,0000a001,3,1,8000000000000007,0,1
1,0000000080000100,00000013,3,0,0,0,0
0,0000000000000000,00000000,3,0,0,0,0
1,0000000080000104,00000000,3,1,2,dead,0
1,0000000080000100,00000013,3,0,0,0,0
1,0000000080000200,00000013,0,0,0,0,0
1,0000000080000204,00000073,0,1,8,0,0
";

struct Pcs(SpikeCsvReader);

impl Read for Pcs {
    fn feed(&mut self, chunk: &[u8], out: &mut Keep, bad: &mut Vec<LineError>) {
        self.0.feed(chunk, out, &mut |e| bad.push(e));
    }
    fn finish(&mut self, out: &mut Keep, bad: &mut Vec<LineError>) {
        self.0.finish(out, &mut |e| bad.push(e));
    }
}

fn pcs() -> Pcs {
    Pcs(SpikeCsvReader::new(Isa::RV64GC, HartId(0)))
}

#[test]
fn the_pc_trace_of_the_reference_flow() {
    let (keep, bad) = assert_any_cut(pcs, PCS.as_bytes());
    assert_eq!(bad, vec![]);
    assert_eq!(
        path(&keep),
        [
            (0x8000_0000, 0x8000_0004),
            (0x8000_0004, 0x8000_0004),
            (0x8000_0004, 0x8000_0004),
            (0x8000_0100, 0x8000_0104),
            (0x8000_0100, 0x8000_0104),
            (0x8000_0200, 0x8000_0204),
        ]
    );
    let traps: Vec<_> = keep
        .traps()
        .iter()
        .map(|t| {
            (
                t.trap.epc.unwrap(),
                t.trap.handler.unwrap_or(0),
                t.trap.cause,
                t.trap.tval,
            )
        })
        .collect();
    assert_eq!(
        traps,
        [
            (0x8000_0004, 0x8000_0100, Cause::Interrupt(Some(7)), Some(0)),
            (
                0x8000_0104,
                0x8000_0100,
                Cause::Exception(Some(2)),
                Some(0xdead)
            ),
            (0x8000_0104, 0x8000_0200, Cause::Unknown, None),
            // The file ends before its handler.
            (0x8000_0204, 0, Cause::Exception(Some(8)), Some(0)),
        ]
    );
    let (head, rows) = PCS.split_once('\n').unwrap();
    let (keep, bad) = whole(pcs(), format!("{head}\n1,2,3\n{rows}").as_bytes());
    assert_eq!((bad[0].kind, keep.lost()), (LineErrorKind::Fields, 1));
    let (keep, bad) = whole(pcs(), b"VALID,ADDRESS\n1,2\n1,2\n");
    assert_eq!(bad[0].kind, LineErrorKind::MissingColumn("insn"));
    assert_eq!((bad.len(), keep.steps.len()), (1, 1));
}

#[test]
fn a_pc_trace_with_flipped_bits() {
    let (head, rows) = PCS.split_once('\n').unwrap();
    let text = format!("{head}\n{}", rows.repeat(30));
    // The header is not what is tested: a flip there refuses the table.
    struct Rows(Pcs, bool);
    impl Read for Rows {
        fn feed(&mut self, chunk: &[u8], out: &mut Keep, bad: &mut Vec<LineError>) {
            if !core::mem::replace(&mut self.1, true) {
                self.0.feed(
                    PCS.split_inclusive('\n').next().unwrap().as_bytes(),
                    out,
                    bad,
                );
            }
            self.0.feed(chunk, out, bad);
        }
        fn finish(&mut self, out: &mut Keep, bad: &mut Vec<LineError>) {
            self.0.finish(out, bad);
        }
    }
    let rows = text.split_once('\n').unwrap().1;
    assert_robust(|| Rows(pcs(), false), rows.as_bytes(), 8);
}

/// Eight blocks with the largest value in every column.
#[test]
fn the_longest_row_is_whole() {
    let columns = IngressColumns {
        groups: 8,
        context: true,
        time: true,
        ctype: true,
        sijump: true,
        trigger: true,
        halted: true,
        reset: true,
        impdef: true,
        external: true,
        lost: true,
        power_down: true,
        pending: true,
        hart: true,
        accesses: 8,
    };
    let block = Ingress {
        itype: Itype::from_code(15).unwrap(),
        iretire: u32::MAX,
        ilastsize: u8::MAX,
        iaddr: u64::MAX,
        cause: u32::MAX,
        tval: u64::MAX,
        mode: Mode::VS,
        context: Context(u64::MAX),
        ctype: Ctype::Discontinuity,
        sijump: true,
        time: u64::MAX,
        trigger: Trigger::from_bits(7),
        halted: true,
        reset: true,
        impdef: u32::MAX,
        external: 255,
        lost: true,
        power_down: true,
        pending: Some(u64::MAX),
        ..Ingress::default()
    };
    let mut row = String::new();
    let writer = IngressWriter::new(columns, Iretire::Halfwords).of(HartId(u32::MAX));
    let access = DataIngress {
        dretire: true,
        dtype: u8::MAX,
        daddr: u64::MAX,
        dsize: u8::MAX,
        data: u128::MAX,
        iaddr_lsbs: u64::MAX,
        ..DataIngress::default()
    };
    writer
        .write_cycle(&mut row, &[block; 8], &[access; 8])
        .unwrap();
    let eight = |field: &str| [field; 8].join(",");
    let expected = format!(
        "{},{},{:x},6,{},{},{},3,{},{},{},1023,1,1,ffffffff,255,1,1,{},{},{},{},{},{},{},{}\n",
        eight("15"),
        u32::MAX,
        u64::MAX,
        eight("ffffffffffffffff"),
        u64::MAX,
        u64::MAX,
        eight("1"),
        eight("4294967295"),
        eight("255"),
        u64::MAX,
        u32::MAX,
        eight("1"),
        eight("255"),
        eight("ffffffffffffffff"),
        eight("255"),
        eight("ffffffffffffffffffffffffffffffff"),
        eight("ffffffffffffffff"),
    );
    assert_eq!(row, expected);
}
