//! Commits given many at once are the same steps as commits given one by one.

use super::*;
use hartrace_flow::Straights;
use hartrace_testkit::flip_bits;

/// Where the code is; both halves of its addresses change within. And on RV32.
const BASE: u64 = 0xffff_ff80;
const NARROW_BASE: u64 = 0x8000_0000;

/// Steps as they come, and how many came in pieces.
#[derive(Default)]
struct Path {
    steps: Vec<(HartId, Step)>,
    in_pieces: usize,
}

impl Observer for Path {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        self.steps.push((hart, *step));
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        let insns = code.iter().map(|insn| (hart, Step::Insn(insn)));
        let before = self.steps.len();
        self.steps.extend(insns);
        self.in_pieces += self.steps.len() - before;
    }
}

fn path(mut reader: SpikeReader<'_>, chunks: &[&[u8]]) -> (Path, Vec<LineError>) {
    let (mut path, mut bad) = (Path::default(), Vec::new());
    for chunk in chunks {
        reader.feed(chunk, &mut path, &mut |error| bad.push(error));
    }
    reader.finish(&mut path, &mut |error| bad.push(error));
    (path, bad)
}

/// Reads a log one by one and in pieces, whole and cut. Gives how many of its
/// instructions came in pieces.
fn compare(text: &[u8], image: &Image, random: &mut Random) -> usize {
    let isa = image.isa().unwrap();
    let reader = || SpikeReader::new(SpikeOptions::default(), Some(image));
    let (want, bad) = path(reader(), &[text]);
    assert_eq!(want.in_pieces, 0);
    let whole = path(reader().in_pieces(isa), &[text]);
    let cut = path(reader().in_pieces(isa), &pieces(text, random));
    for (got, faults) in [&whole, &cut] {
        assert_eq!(faults, &bad);
        let same = got.steps.iter().zip(&want.steps);
        let at = same.take_while(|(got, want)| got == want).count();
        let (got, want) = (got.steps.get(at), want.steps.get(at));
        assert_eq!(got, want, "step {at} of\n{}", String::from_utf8_lossy(text));
    }
    whole.0.in_pieces
}

/// A program of everything that may end straight-line code.
fn program(isa: Isa, random: &mut Random) -> (Image, Vec<(u64, u32)>) {
    let base = match isa.xlen() {
        Xlen::Rv32 => NARROW_BASE,
        Xlen::Rv64 => BASE,
    };
    let (mut code, mut bytes) = (Vec::new(), Vec::new());
    while bytes.len() < 400 {
        let bits = match random.below(24) {
            0 => 0x0000_0073,
            1 => 0x3020_0073,
            2 => 0x3410_2373,
            3 => 0x9002,
            4 => 0x0000_8067,
            5 => 0x8082,
            6 => 0x0080_006f,
            7 => 0xa011,
            8 => 0x0000_0463,
            9 => 0xc111,
            10 => 0x01f0_1013,
            11..16 => 0x0001,
            16..18 => 0x0205_6007,
            _ => 0x0010_0093 | (random.below(32) as u32) << 20,
        };
        code.push((base + bytes.len() as u64, bits));
        let len = if bits & 3 == 3 { 4 } else { 2 };
        bytes.extend_from_slice(&bits.to_le_bytes()[..len]);
    }
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, base, &bytes, isa);
    (image, code)
}

/// A log of harts that go through the program, and now and then do what they cannot.
fn story(code: &[(u64, u32)], random: &mut Random) -> String {
    let listing = random.below(2) == 0;
    let harts = 1 + random.below(2) as u32;
    let mut at = [(0, 3u8); 2];
    let mut text = String::new();
    let mut hart = 0;
    for _ in 0..600 {
        if random.below(30) == 0 {
            hart = (hart + 1) % harts;
        }
        let (index, mode) = &mut at[hart as usize];
        let (pc, mut bits) = code[*index % code.len()];
        let known = |bits: u32| if bits & 3 == 3 { 8 } else { 4 };
        if listing && random.below(50) != 0 {
            text += &list(hart, pc, bits);
        }
        match random.below(60) {
            0 => text += &format!("core{hart:4}: >>>>  main\n"),
            1 => {
                text += &format!("core{hart:4}: exception interrupt #7, epc 0x{pc:016x}\n");
                *mode = 3;
            }
            2 => bits ^= 1 << random.below(32),
            3 => text += "nothing of a hart\n",
            4 => text += "\n",
            5 => *mode = [0, 1, 3][random.below(3) as usize],
            6 => text += &format!("core{hart:4}: Executed 2 times\n"),
            _ => {}
        }
        let effect = match random.below(12) {
            0 => "\r",
            1 => " x5  0x0000000080000000\r",
            2 => " mem 0x0000000080001000 0x12",
            3 => " anything",
            _ => "",
        };
        let digits = known(bits);
        text += &format!("core{hart:4}: {mode} 0x{pc:016x} (0x{bits:0digits$x}){effect}\n");
        let target = match bits {
            0x0080_006f | 0xa011 | 0x0000_0463 | 0xc111 if random.below(3) > 0 => {
                let offset = if bits & 3 == 3 { 8 } else { 4 };
                code.iter().position(|insn| insn.0 == pc + offset)
            }
            0x8067 | 0x8082 | 0x3020_0073 | 0x73 | 0x9002 => None,
            _ if random.below(40) == 0 => None,
            _ => Some(*index + 1),
        };
        *index = target.unwrap_or_else(|| random.below(code.len() as u64) as usize);
    }
    text
}

#[test]
fn any_log_gives_the_same_steps_in_pieces_and_one_by_one() {
    let mut random = Random::new(2026);
    let (mut in_pieces, mut lines) = (0, 0);
    for lap in 0..150 {
        let isa = [Isa::RV64GC, Isa::RV32GC][lap % 2];
        let (image, code) = program(isa, &mut random);
        let mut text = story(&code, &mut random);
        if isa == Isa::RV32GC {
            // Of the sixteen digits of a pc.
            text = text.replace("0x00000000", "0x");
        }
        in_pieces += compare(text.as_bytes(), &image, &mut random);
        lines += 600;
        let mut damaged = text.into_bytes();
        flip_bits(&mut damaged, 12, &mut random);
        compare(&damaged, &image, &mut random);
    }
    assert!(in_pieces * 4 > lines, "{in_pieces} of {lines}");
}

/// What ends a line may be anywhere, as long as the line is not too long.
#[test]
fn long_lines_of_straight_line_code() {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &[1, 0].repeat(64), Isa::RV64GC);
    let mut random = Random::new(5);
    for long in [MAX - 1, MAX, MAX + 1] {
        let mut text = String::new();
        for n in 0..40u64 {
            let line = commit(0, 0x1000 + 2 * n, 1);
            let line = line.trim_end();
            let more = if n % 9 == 8 { long - line.len() } else { 0 };
            text += &format!("{line}{}\n", " ".repeat(more));
        }
        let in_pieces = compare(text.as_bytes(), &image, &mut random);
        assert!(in_pieces > 20, "{in_pieces}");
    }
}

const MAX: usize = crate::MAX_LINE;
