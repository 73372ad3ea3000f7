//! What all readers share: chunks, long lines, garbage. And a log for tests.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use super::*;
use hartrace_flow::{
    Cause, HartId, Image, Insn, Observer, Signal, SpaceId, Step, Trap, TrapStep, Wants,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::{Random, flip_bits, pieces};

/// Keeps everything.
#[derive(Default, PartialEq, Debug)]
pub(super) struct Keep {
    pub(super) steps: Vec<(HartId, Step, Effects)>,
    pub(super) ended: bool,
}

impl Observer for Keep {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.steps.push((hart, *step, *effects));
    }

    fn finish(&mut self) {
        self.ended = true;
    }
}

impl Keep {
    pub(super) fn lost(&self) -> usize {
        let lost = |s: &&(_, Step, _)| s.1 == Step::Signal(Signal::Lost);
        self.steps.iter().filter(lost).count()
    }

    pub(super) fn insns(&self) -> Vec<Insn> {
        let insn = |s: &(_, Step, _)| match s.1 {
            Step::Insn(insn) => Some(insn),
            _ => None,
        };
        self.steps.iter().filter_map(insn).collect()
    }

    pub(super) fn traps(&self) -> Vec<TrapStep> {
        let trap = |s: &(_, Step, _)| match s.1 {
            Step::Trap(trap) => Some(trap),
            _ => None,
        };
        self.steps.iter().filter_map(trap).collect()
    }
}

/// Any reader: what it makes of a chunk, and of the end.
pub(super) trait Read {
    fn feed(&mut self, chunk: &[u8], out: &mut Keep, bad: &mut Vec<LineError>);
    fn finish(&mut self, out: &mut Keep, bad: &mut Vec<LineError>);
}

macro_rules! read {
    ($($reader:ident)+) => {$(
        impl Read for $reader<'_> {
            fn feed(&mut self, chunk: &[u8], out: &mut Keep, bad: &mut Vec<LineError>) {
                $reader::feed(self, chunk, out, &mut |e| bad.push(e));
            }
            fn finish(&mut self, out: &mut Keep, bad: &mut Vec<LineError>) {
                $reader::finish(self, out, &mut |e| bad.push(e));
            }
        }
    )+};
}
read!(PcReader SpikeReader);

/// A reader of pcs for an observer that gets straight-line code at once.
struct InPieces<'a>(PcReader<'a>);

struct Steps<'k>(&'k mut Keep);

impl Observer for Steps<'_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        self.0.step(hart, step, &unreported());
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

impl Read for InPieces<'_> {
    fn feed(&mut self, chunk: &[u8], out: &mut Keep, bad: &mut Vec<LineError>) {
        self.0.feed(chunk, &mut Steps(out), &mut |e| bad.push(e));
    }
    fn finish(&mut self, out: &mut Keep, bad: &mut Vec<LineError>) {
        self.0.finish(&mut Steps(out), &mut |e| bad.push(e));
    }
}

fn in_pieces(image: &Image) -> InPieces<'_> {
    InPieces(PcReader::new(image).in_pieces(Isa::RV64GC))
}

pub(super) type Told = (Keep, Vec<LineError>);

/// Reads chunks one after the other.
pub(super) fn read<'t>(mut reader: impl Read, chunks: impl Iterator<Item = &'t [u8]>) -> Told {
    let (mut keep, mut bad) = (Keep::default(), Vec::new());
    for chunk in chunks {
        reader.feed(chunk, &mut keep, &mut bad);
    }
    reader.finish(&mut keep, &mut bad);
    assert!(keep.ended);
    (keep, bad)
}

pub(super) fn whole(reader: impl Read, text: &[u8]) -> Told {
    read(reader, core::iter::once(text))
}

/// Asserts that the text gives the same wherever it is cut.
pub(super) fn assert_any_cut<R: Read>(reader: impl Fn() -> R, text: &[u8]) -> Told {
    hartrace_testkit::assert_any_cut(text, |pieces| read(reader(), pieces.iter().copied()))
}

/// Flips bytes at random; the readers must survive and lose little.
pub(super) fn assert_robust<R: Read>(reader: impl Fn() -> R, text: &[u8], seed: u64) {
    let mut rng = Random::new(seed);
    let (good, bad) = whole(reader(), text);
    assert_eq!(bad, vec![]);
    for _ in 0..200 {
        let mut text = text.to_vec();
        let flips = 1 + rng.index(4);
        flip_bits(&mut text, flips, &mut rng);
        let (keep, bad) = whole(reader(), &text);
        assert!(bad.len() <= 3 * flips, "{bad:?}");
        let (got, want) = (keep.steps.len(), good.steps.len());
        assert!(got.abs_diff(want) <= 16 * flips, "{got} of {want} steps");
    }
    for len in [0, 1, 1000, 200_000] {
        let garbage = rng.bytes(len);
        let (keep, bad) = whole(reader(), &garbage);
        assert!(keep.lost() >= bad.len());
        whole(reader(), &vec![0; len]);
    }
}

fn program() -> Image {
    let mut image = Image::new();
    let code: [u32; 8] = [
        0x0000_0013, // 1000 nop
        0x0080_0463, // 1004 beq x0, x8, +8
        0x0000_0013, // 1008 nop
        0x0080_006f, // 100c j +8
        0x0000_0013, // 1010 nop
        0x0000_8067, // 1014 ret
        0x0000_0073, // 1018 ecall
        0x9002_0001, // 101c c.nop, 101e c.ebreak
    ];
    let bytes: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
    image.add_raw(SpaceId::FIRST, 0x1000, &bytes, Isa::RV64GC);
    image
}

fn pcs(text: &str) -> Told {
    let image = program();
    let told = assert_any_cut(|| PcReader::new(&image), text.as_bytes());
    assert_eq!(assert_any_cut(|| in_pieces(&image), text.as_bytes()), told);
    told
}

fn unknown(epc: u64, handler: u64) -> Trap {
    Trap {
        epc: Some(epc),
        handler: Some(handler),
        cause: Cause::Unknown,
        tval: None,
        pending: None,
    }
}

/// A user program's list ends in the system call that ends the program.
#[test]
fn a_list_that_ends_in_an_ecall_ends_in_a_trap() {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &[1, 0, 0x73, 0, 0, 0], Isa::RV64GC);
    let (mut reader, mut keep) = (PcReader::new(&image), Keep::default());
    reader.feed(b"1000\n1002\n", &mut keep, &mut |e| panic!("{e}"));
    reader.finish(&mut keep, &mut |e| panic!("{e}"));
    let traps = keep.traps();
    assert_eq!((keep.insns().len(), traps.len()), (1, 1));
    assert_eq!(
        (traps[0].trap.epc.unwrap(), traps[0].trap.handler),
        (0x1002, None)
    );
    assert_eq!(traps[0].bits, Some(0x73));
}

#[test]
fn a_plain_list() {
    let (keep, bad) = pcs("0000000000001000\n0x1004\r\n\n# a comment\n 100C # why\n00001014\n1000");
    assert_eq!(bad, vec![]);
    let path: Vec<_> = keep
        .insns()
        .iter()
        .map(|i| (i.pc, i.bits, i.next))
        .collect();
    assert_eq!(
        path,
        [
            (0x1000, 0x13, 0x1004),
            (0x1004, 0x80_0463, 0x100c),
            (0x100c, 0x80_006f, 0x1014),
            (0x1014, 0x8067, 0x1000),
            (0x1000, 0x13, 0x1004),
        ]
    );
    assert_eq!(keep.traps(), vec![]);
}

#[test]
fn a_pc_that_cannot_follow_shows_a_trap() {
    // After straight code, a jump, a branch; an indirect jump goes anywhere.
    let (keep, bad) = pcs("1000\n1010\n100c\n1000\n1004\n1014\n1000\n");
    assert_eq!(bad, vec![]);
    let traps: Vec<_> = keep.traps().iter().map(|t| t.trap).collect();
    assert_eq!(
        traps,
        [
            unknown(0x1004, 0x1010),
            unknown(0x1014, 0x100c),
            unknown(0x1014, 0x1000),
            unknown(0x1008, 0x1014),
        ]
    );
    let nexts: Vec<_> = keep.insns().iter().map(|i| i.next).collect();
    assert_eq!(
        nexts,
        [0x1004, 0x1014, 0x1014, 0x1004, 0x1008, 0x1000, 0x1004]
    );
}

#[test]
fn listed_ecall_and_ebreak_are_traps_or_not() {
    let text = "1018\n1000\n101e\n1000\n1018\n";
    let (keep, bad) = pcs(text);
    assert_eq!(bad, vec![]);
    let traps: Vec<_> = keep.traps();
    assert_eq!(traps[0].trap.cause, Cause::Exception(None));
    assert_eq!(
        (traps[0].trap.epc.unwrap(), traps[0].bits),
        (0x1018, Some(0x73))
    );
    assert_eq!(traps[2].trap.cause, Cause::Exception(Some(3)));
    assert_eq!(
        (traps[2].trap.epc.unwrap(), traps[2].trap.handler),
        (0x101e, Some(0x1000))
    );
    assert_eq!(keep.insns().len(), 2);

    let image = program();
    let reader = PcReader::of_hart(&image, SpaceId::FIRST, HartId(3), ListedTraps::Retired);
    let (keep, _) = whole(reader, text.as_bytes());
    assert_eq!(keep.insns().len(), 5);
    assert!(keep.steps.iter().all(|s| s.0 == HartId(3)));
}

#[test]
fn a_bad_line_is_named_and_the_rest_is_read() {
    let (keep, bad) = pcs("1000\nxyz\n1004 1008\n\n12345678123456781\n1ffe\n1001\n1000\n");
    let shown: Vec<String> = bad.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "line 2, column 1: expected a hexadecimal number of 1 to 16 digits, found `xyz`",
            "line 3, column 5: expected a hexadecimal number of 1 to 16 digits, found ` 1008`",
            "line 5, column 17: expected a hexadecimal number of 1 to 16 digits, found `1`",
            "line 6, column 1: no code at 0x1ffe in the program (is an ELF file missing?), \
             found `1ffe`",
            "line 7, column 1: no code at 0x1001 in the program (is an ELF file missing?), \
             found `1001`",
        ]
    );
    assert_eq!(keep.lost(), 5);
    assert_eq!(keep.insns().len(), 2);
}

#[test]
fn an_endless_line_is_one_damaged_line() {
    let image = program();
    let mut text = b"1000\n".to_vec();
    text.extend(vec![b'z'; 5 * MAX_LINE]);
    text.extend(b"\n1004\n");
    let want = whole(PcReader::new(&image), &text);
    assert_eq!(want.1.len(), 1);
    assert_eq!(want.1[0].kind, LineErrorKind::TooLong);
    assert_eq!(want.1[0].line, 2);
    assert_eq!(want.0.insns().len(), 2);
    for size in [1000, 4096, MAX_LINE, MAX_LINE + 1] {
        assert_eq!(read(PcReader::new(&image), text.chunks(size)), want);
    }
    // One byte decides.
    for (len, kind) in [
        (MAX_LINE, LineErrorKind::Hex),
        (MAX_LINE + 1, LineErrorKind::TooLong),
    ] {
        let text = vec![b'1'; len];
        let (_, bad) = whole(PcReader::new(&image), &[&text[..], b"\n"].concat());
        assert_eq!(bad[0].kind, kind);
        let (_, bad) = read(PcReader::new(&image), [&text[..], b"\n"].into_iter());
        assert_eq!(bad[0].kind, kind);
    }
}

#[test]
fn an_empty_list() {
    let (keep, bad) = pcs("");
    assert_eq!((keep.steps, bad), (vec![], vec![]));
    let (keep, bad) = pcs("\r\n\n\n");
    assert_eq!((keep.steps, bad), (vec![], vec![]));
}

#[test]
fn a_long_list_in_random_pieces_and_with_flipped_bits() {
    let image = program();
    let mut text = String::new();
    for n in 0..2000 {
        let lap = if n % 3 == 0 {
            "0000000000001000\n0000000000001004\n000000000000100c\n0000000000001014\n"
        } else {
            "1000\r\n0x1004\n1008\n# turn\n100C\n0x1014\n"
        };
        text += lap;
    }
    let want = whole(PcReader::new(&image), text.as_bytes());
    assert_eq!((want.1.len(), want.0.traps().len()), (0, 0));
    let mut rng = Random::new(5);
    for _ in 0..10 {
        let chunks = pieces(text.as_bytes(), &mut rng);
        assert_eq!(read(PcReader::new(&image), chunks.into_iter()), want);
        let chunks = pieces(text.as_bytes(), &mut rng);
        assert_eq!(read(in_pieces(&image), chunks.into_iter()), want);
    }
    let some = text.get(..20_000).and_then(|t| t.rsplit_once('\n'));
    assert_robust(|| PcReader::new(&image), some.unwrap().0.as_bytes(), 9);
}

/// Code of all kinds, in two instruction sets and up to the last address; pcs that
/// follow it, leave it and are not in it.
#[test]
fn pcs_in_pieces_of_straight_line_code_are_the_same_steps() {
    let mut rng = Random::new(17);
    for round in 0..12 {
        let mut image = Image::new();
        // From the end of the address space back, or where the first half of addresses changes.
        let base = [0x1000, 0u64.wrapping_sub(0x400), (1 << 32) - 0x200][round % 3];
        let mut code = Vec::new();
        while code.len() < 0x400 {
            let word: u32 = match rng.below(12) {
                0 => 0x0080_0463,       // beq x0, x8, +8
                1 => 0xfe80_0ee3,       // beq x0, x8, -4
                2 => 0x0080_006f,       // j +8
                3 => 0x0000_8067,       // ret
                4 => 0x0000_0073,       // ecall
                5 => 0x9002_0001,       // c.nop, c.ebreak
                6 => 0xa001_0001,       // c.nop, c.j .
                7 => 0x01f0_1013,       // slli x0, x0, 0x1f
                8 => 0x0000_001f,       // six bytes long
                9 => rng.draw() as u32, // anything
                _ => 0x0000_0013,       // nop
            };
            code.extend(word.to_le_bytes());
        }
        image.add_raw(SpaceId::FIRST, base, &code, Isa::RV64GC);
        image.add_raw(
            SpaceId::FIRST,
            0x1200,
            &code[..64],
            Isa::parse("rv64imac").unwrap(),
        );
        let mut pc = base;
        let mut text = String::new();
        for _ in 0..3000 {
            text += &match rng.below(50) {
                0 => "what\n".to_string(),
                1 => format!("{pc:#x} # here\n"),
                2 => format!("{:016x}\n", pc ^ 1 << 32),
                _ => format!("{pc:016x}\n"),
            };
            pc = match rng.below(16) {
                0 => base + rng.below(0x100) * 4,
                1 => base.wrapping_add(rng.below(0x500)),
                2 | 3 => pc.wrapping_add(8),
                4 => pc.wrapping_sub(4),
                _ => match image.fetch(SpaceId::FIRST, pc) {
                    Some(code) => pc.wrapping_add(code.len.into()),
                    None => base,
                },
            };
        }
        let want = whole(PcReader::new(&image), text.as_bytes());
        assert_eq!(whole(in_pieces(&image), text.as_bytes()), want);
        let chunks = pieces(text.as_bytes(), &mut rng);
        assert_eq!(read(in_pieces(&image), chunks.into_iter()), want);
        let retired = PcReader::of_hart(&image, SpaceId::FIRST, HartId(3), ListedTraps::Retired);
        let want = whole(retired.clone(), text.as_bytes());
        let got = InPieces(retired.in_pieces(Isa::RV64GC));
        assert_eq!(whole(got, text.as_bytes()), want);
    }
}

#[test]
fn a_written_list_reads_back() {
    let image = program();
    let text = "0000000000001000\n0000000000001004\n0000000000001008\n000000000000101c\n\
                000000000000101e\n0000000000001018\n0000000000001000\n";
    let (keep, _) = whole(PcReader::new(&image), text.as_bytes());
    let mut written = Vec::new();
    let mut writer =
        PcWriter::new(Xlen::Rv64, |b: &[u8]| written.extend_from_slice(b)).listing_traps();
    for (hart, step, effects) in &keep.steps {
        writer.step(*hart, step, effects);
    }
    writer.finish();
    drop(writer);
    assert_eq!(String::from_utf8(written).unwrap(), text);

    let mut narrow = Vec::new();
    let mut writer =
        PcWriter::new(Xlen::Rv32, |b: &[u8]| narrow.extend_from_slice(b)).of_hart(HartId(0));
    for hart in 0..2 {
        for (_, step, effects) in &keep.steps {
            writer.step(HartId(hart), step, effects);
        }
    }
    writer.finish();
    drop(writer);
    let want = format!("{:08x}\n", 0x1000);
    assert!(narrow.starts_with(want.as_bytes()));
    assert_eq!(narrow.len(), 9 * keep.insns().len());
}
