//! Logs of other simulators.

use std::sync::OnceLock;

use hartrace_flow::{Effects, HartId, Image, Ingress, Observer, SpaceId, Step, Wants};
use hartrace_isa::Isa;
use hartrace_logs::{
    BlockSteps, Columns, EntryOptions, FormatReader, IngressReader, IngressRow, Iretire, LineError,
    LogFormat, PcReader, SpikeCsvReader, SpikeOptions, SpikeReader,
};

use super::elf::{SIEVES, random_of};
use super::{Input, ensure};

const HART: HartId = HartId(0);

/// Of a line of eight blocks: none may follow the one before, and none may be
/// code.
const MAX_ERRORS: u64 = 16;

/// Everything that came out of a reader.
#[derive(Default, PartialEq)]
struct Record {
    steps: Vec<(HartId, Step, Effects)>,
    rows: Vec<(u64, Option<Ingress>)>,
    errors: Vec<LineError>,
    ended: u32,
}

/// Room for the steps; what comes beyond is only counted.
struct Keep<'a> {
    record: &'a mut Record,
    count: u64,
}

impl Observer for Keep<'_> {
    const WANTS: Wants = Wants::STEPS
        .with(Wants::REGS)
        .with(Wants::CSRS)
        .with(Wants::ACCESSES);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.count += 1;
        if self.record.steps.len() < 4096 {
            self.record.steps.push((hart, *step, *effects));
        }
    }

    fn finish(&mut self) {
        self.record.ended += 1;
    }
}

/// The committed programs.
fn image(narrow: bool) -> &'static Image {
    static IMAGES: OnceLock<[Image; 2]> = OnceLock::new();
    let [wide, other] =
        IMAGES.get_or_init(|| SIEVES.map(|elf| Image::from_elf(elf).unwrap_or_default()));
    if narrow { other } else { wide }
}

/// A reader of any kind: takes a chunk, or the end.
type Feed<'f> = dyn FnMut(Option<&[u8]>, &mut Keep<'_>, &mut dyn FnMut(LineError)) + 'f;

/// Reads the text in one piece and in many: what comes out is the same, not
/// more than `per_line` steps for each line, and not more than two errors for
/// each of the blocks a line may have.
fn invariant(
    text: &[u8],
    per_line: u64,
    mut reader: impl FnMut(&mut dyn FnMut(&mut Feed<'_>)),
) -> Result<(), String> {
    let mut random = random_of(text);
    let mut records = [Record::default(), Record::default(), Record::default()];
    let lines = text.split(|&b| b == b'\n').count() as u64;
    for (way, record) in records.iter_mut().enumerate() {
        let mut count = 0;
        let mut errors = Vec::new();
        reader(&mut |feed| {
            let mut keep = Keep { record, count: 0 };
            let mut damaged = |e| errors.push(e);
            let mut rest = text;
            while !rest.is_empty() {
                let most = match way {
                    0 => rest.len(),
                    1 => 1 + random.below(40) as usize,
                    _ if text.len() < 600 => 1,
                    _ => 1 + random.below(500) as usize,
                };
                let (chunk, more) = rest.split_at(most.min(rest.len()));
                feed(Some(chunk), &mut keep, &mut damaged);
                rest = more;
            }
            feed(None, &mut keep, &mut damaged);
            count = keep.count;
        });
        ensure(errors.len() as u64 <= lines * MAX_ERRORS, || {
            format!("{} errors in {lines} lines", errors.len())
        })?;
        ensure(count <= lines * per_line + 2, || {
            format!("{count} steps in {lines} lines")
        })?;
        for error in &errors {
            let _ = error.to_string();
        }
        record.errors = errors;
    }
    let [whole, some, bytes] = &records;
    ensure(whole == some && whole == bytes, || {
        let first = |r: &Record| {
            let same = r.steps.iter().zip(&whole.steps).take_while(|(a, b)| a == b);
            let at = same.count();
            format!("{at}: {:x?} {:?}", r.steps.get(at), r.errors.last())
        };
        format!(
            "differs with the chunks: {} / {}",
            first(some),
            first(bytes)
        )
    })?;
    ensure(whole.ended <= 1, || "ended twice".into())
}

/// Steps alone.
#[derive(Default)]
struct Path(Vec<(HartId, Step)>);

impl Observer for Path {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        self.0.push((hart, *step));
    }
}

/// A log of commits gives the same steps one by one and in pieces.
fn same_steps(text: &[u8], single: SpikeReader<'_>, whole: SpikeReader<'_>) -> Result<(), String> {
    let read = |mut reader: SpikeReader<'_>| {
        let (mut path, mut errors) = (Path::default(), Vec::new());
        reader.feed(text, &mut path, &mut |error| errors.push(error));
        reader.finish(&mut path, &mut |error| errors.push(error));
        (path.0, errors)
    };
    let ((single, errors), (whole, others)) = (read(single), read(whole));
    ensure(errors == others, || "other errors in pieces".into())?;
    ensure(single == whole, || "other steps in pieces".into())
}

/// Lists of pcs.
pub(super) fn pc(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let narrow = input.flag();
    invariant(input.rest(), 2, |run| {
        let mut reader = PcReader::new(image(narrow));
        run(&mut |chunk, out, mut damaged| match chunk {
            Some(chunk) => reader.feed(chunk, out, &mut damaged),
            None => reader.finish(out, &mut damaged),
        });
    })
}

pub(super) fn pc_seeds() -> Vec<Vec<u8>> {
    [
        "\x000000000080000000\n0000000080000004\n0000000080000008\n",
        "\080000000 # start\n0x80000004\r\n\n  8000000a\nzz\n80000000",
        "\x0180000000\n80000004\n8000000c\n123456789abcdef01\n",
        "\0#\n#\n0X80000000\n00000000000000000\nffffffffffffffff\n1\n",
    ]
    .iter()
    .map(|t| t.as_bytes().to_vec())
    .collect()
}

/// Spike's log.
pub(super) fn spike(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let choices = input.byte();
    let options = SpikeOptions {
        plain_jumps: choices & 8 != 0,
        isa: (choices & 1 != 0).then_some(Isa::RV32GC),
        max_harts: 1 + usize::from(choices >> 4),
        max_repeat: 9,
    };
    let image = (choices & 2 != 0).then(|| image(choices & 4 != 0));
    if let Some(image) = image {
        let isa = image.isa().unwrap_or(Isa::RV64GC);
        let single = SpikeReader::new(options, Some(image));
        let whole = single.clone().in_pieces(isa);
        same_steps(input.rest(), single, whole)?;
    }
    // What waited for the line, the traps around it, a repeated instruction.
    invariant(input.rest(), options.max_repeat + 3, |run| {
        let mut reader = SpikeReader::new(options, image);
        run(&mut |chunk, out, mut damaged| match chunk {
            Some(chunk) => reader.feed(chunk, out, &mut damaged),
            None => reader.finish(out, &mut damaged),
        });
    })
}

pub(super) fn spike_seeds() -> Vec<Vec<u8>> {
    [
        "\x02core   0: 0x0000000080000000 (0x00000297) auipc   t0, 0x0\ncore   0: 3 0x0000000080000000 (0x00000297) x5  0x0000000080000000\ncore   0: 3 0x0000000080000004 (0x00b52023) mem 0x0000000080001000 0x00000001\n",
        "\0core   0: 0x0000000000001000 (0x0000006f) j       pc + 0x0\ncore   0: Executed 7 times\ncore   0: >>>>  main\ncore   0: trigger action 3\n",
        "\0core   0: exception trap_machine_ecall, epc 0x0000000080000010\ncore   0:           tval 0x0000000000000000\ncore   0: exception interrupt #7, epc 0x0000000080000010\n",
        "\x31core   1: 1 0x80000000 (0x30200073) c768_mstatus 0x00000080\ncore   0: 3 0x80000000 (0x4501) x10 0x00000000\ncore  12: 0 0x80000002 (0x1005202f) x0  0x0 mem 0x80000000 mem 0x80000000 0x00000001\nwarning\n",
        "\x12core   0: 3 0x0000000080000000 (0x0d00f057) e32 m1 l4 c8_vstart 0x0 v1  0x00000000000000000000000000000000\ncore   0: 3 0x0000000080000004 (0x1855a5af) mem 0x0000000080001000 x11 0x0 f8  0xffffffff00000000\n",
    ]
    .iter()
    .map(|t| t.as_bytes().to_vec())
    .chain([straight_commits()])
    .collect()
}

/// Commits of the program's first instructions, one after the other, with lines of `-l`.
fn straight_commits() -> Vec<u8> {
    let mut text = String::from("\x02");
    let mut pc = 0x8000_0000;
    for _ in 0..30 {
        let Some(code) = image(false).fetch(SpaceId::FIRST, pc) else {
            break;
        };
        let (bits, digits) = (code.bits, 2 * usize::from(code.len));
        text += &format!("core   0: 0x{pc:016x} (0x{bits:08x}) text\n");
        text += &format!("core   0: 3 0x{pc:016x} (0x{bits:0digits$x}) x5  0x0\n");
        pc += u64::from(code.len);
    }
    text.into_bytes()
}

/// Logs of all other formats.
pub(super) fn format(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let (which, choices) = (usize::from(input.byte()), input.byte());
    let Some(&format) = LogFormat::ALL.get(which % LogFormat::ALL.len()) else {
        return Ok(());
    };
    let image = image(choices & 1 != 0);
    let with = Some(image).filter(|_| choices & 2 != 0 || !format.carries().code);
    let options = EntryOptions {
        plain_jumps: choices & 4 != 0,
        max_harts: 1 + usize::from(choices >> 4),
        ..EntryOptions::default()
    };
    // A block of QEMU has up to 512 instructions; a line of RVVI-TEXT has one for each
    // event. The records of Renode are not lines.
    let text = input.rest();
    let per_line = match format {
        LogFormat::QemuBlocks => 600,
        LogFormat::Rvvi | LogFormat::RenodeBinary => text.len() as u64 + 4,
        _ => 5,
    };
    let columns = Columns::pattern("{time} {pc} ({insn}) {rd}={rd_value}");
    let columns = columns.map_err(|error| format!("{error:?}"))?;
    invariant(text, per_line, |run| {
        let mut reader = match format {
            LogFormat::Columns => FormatReader::of_columns(columns.clone(), options, with),
            _ => FormatReader::new(format, options, with),
        };
        run(&mut |chunk, out, mut damaged| match chunk {
            Some(chunk) => reader.feed(chunk, out, &mut damaged),
            None => reader.finish(out, &mut damaged),
        });
    })
}

/// A log of each format, in the order of [`LogFormat::ALL`].
pub(super) fn format_seeds() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 14] = [
        b"  10\t 5\t80000000\t    4505\tc.li\tx10,1\t x10=0x00000001\n  12\t 6\t80000002\t00a58023\tsb\tx10,0(x11)\t x11:0x00003000 PA:0x00003000 store:0x??????01\n  16\t 8\t80000006\t00000073\t-->ecall\t\n  18\t 9\t80000010\t0001\t==>c.nop\n",
        b"VENDOR Us 0 1\nPARAMS 1 XLEN 64\nRET 80000000 4505 'li' X 10 1 \\\n C 300 8 MODE 3\nHART 1 TRAP 80000002 73 C 342 b HART 0 RET 80000002 0001\n",
        b"[0] [M]: 0x0000000080000000 (0x4505) c.li\nx10 <- 0x0000000000000001\nmem[W,0x80001000] <- 0x01\nCSR mcause (0x342) <- 0x000000000000000B\nCSR mepc (0x341) <- 0x0000000080000000\nhandling exc#m-call at priv M with tval 0x0\n[1] [M]: 0x0000000080000010 (0x0001) c.nop\n",
        b"C0: 10 [1] pc=[0000000080000000] W[r10=0000000000000001][1] R[r 0=0] R[r 0=0] inst=[00004505] DASM(00004505)\nC0: 11 [0] pc=[0000000080000002] W[r 0=0][0] inst=[00000073] DASM(0)\n",
        b"0, 0x80000000, 0x4505, \"li a0,1\", a0 -> 0x1\n0, 0x80000002, 0xa5a023, \"sw a0,0(a1)\", store, 0x80001000, RAM\n1, 0x80000000, 0x5a503, \"lw\"\n",
        b"Trace 0: 0x7f00 [00000000/0000000080000000/00209003/ff000200] main\nriscv_cpu_do_interrupt: hart:0, async:1, cause:0000000000000007, epc:0x0000000080000008, tval:0x0, desc=x\nTrace 0: 0x7f00 [0/0000000080000024/00209003/ff000201] f\nStopped execution of TB chain before 0x7f00 [0000000080000024] f\nTrace 0: 0x7f00 [0/0000000080000028/00209003/0] f\n",
        b"#1 0  M 0000000080000000     4505 r 000000000000000a 0000000000000001 c.li x10, 0x1\n#2 0  M 0000000080000002 00000073 c 0000000000000342 000000000000000b ecall (exception)  +\n#2 0  M 0000000080000002 00000073 c 0000000000000341 0000000080000002 ecall (exception)\n",
        b"pc, inst, modified regs, source operands, memory, inst info, privilege, trap, disassembly, hartid\n80000000,4505,x10=1;c768=2,i1,1000:80001000=1,s,m,,c.li,0\n80000002,73,,,,,m,b,ecall,0\n",
        b"   1000: system.cpu: T0 : 0x80000000 @_start    : auipc : IntAlu :  D=0x0000000000000001 A=0x3000\n   1500: system.cpu: T0 : 0x80000004. 0 : addi : IntAlu :\n   1600: system.cpu: T0 : 0x80000004. 1 : addi : IntAlu :\n",
        b"0x80000000: 0x4505\n0x80000002: 0x00A5A023\nMemoryWrite with address 0x3000 => 0x80003000, value 0x1\n0x80000006:   0001           nop\n",
        b"ReTrace\x05\x04\x01\x01\x02rv\0\0\0\x80\x02\x05\x45\x01\x03\0\x30\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x30\0\0\0\0\0\0\0\x02\0\0\x80\x02\x01\0\0",
        b"pc,instr,gpr,csr,binary,mode,instr_str,operand,pad\n80000000,c.li,a0:1,c768_mstatus:8,4505,3,\"c.li a0, 1\",\"a0,1\",\n80000008,c.li,a0:1,,4505,3,,,\n",
        b"# Clock\nCycle: 0000000000000079 I0: 0000000080000000\nC0: 0000010080000004, cycle: 0000000000000105\n",
        b"10 80000000 (4505) a0=1\n11 80000002 (0001) zero=0\n",
    ];
    let seed = |(which, text): (usize, &&[u8])| [&[which as u8, 0xf2], *text].concat();
    texts.iter().enumerate().map(seed).collect()
}

/// The tables of the reference flow.
pub(super) fn csv(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let choices = input.byte();
    let text = input.rest();
    let narrow = choices & 1 != 0;
    if choices & 2 != 0 {
        let isa = if narrow { Isa::RV32GC } else { Isa::RV64GC };
        return invariant(text, 2, |run| {
            let mut reader = SpikeCsvReader::new(isa, HART);
            run(&mut |chunk, out, mut damaged| match chunk {
                Some(chunk) => reader.feed(chunk, out, &mut damaged),
                None => reader.finish(out, &mut damaged),
            });
        });
    }
    let (kind, code) = if choices & 4 != 0 {
        (Iretire::Halfwords, 20_000)
    } else {
        (Iretire::Instructions, 0)
    };
    if choices & 8 != 0 {
        return invariant(text, 0, |run| {
            let mut reader = IngressReader::new(kind);
            run(&mut |chunk, keep, mut damaged| {
                let mut row = |line, row: IngressRow<'_>| {
                    let rows = &mut keep.record.rows;
                    match row {
                        IngressRow::Blocks(b) => rows.extend(b.iter().map(|b| (line, Some(*b)))),
                        IngressRow::Lost => rows.push((line, None)),
                    }
                };
                match chunk {
                    Some(chunk) => reader.feed(chunk, &mut row, &mut damaged),
                    None => reader.finish(&mut row, &mut damaged),
                }
            });
        });
    }
    // Eight blocks, each with a step, a trap and a loss; triggers and sideband.
    invariant(text, 8 * (3 + code) + 6, |run| {
        let mut reader = IngressReader::new(kind);
        let mut blocks = BlockSteps::new(image(narrow), SpaceId::FIRST, HART);
        run(&mut |chunk, out, mut damaged| match chunk {
            Some(chunk) => reader.feed_steps(chunk, &mut blocks, out, &mut damaged),
            None => reader.finish_steps(&mut blocks, out, &mut damaged),
        });
    })
}

pub(super) fn csv_seeds() -> Vec<Vec<u8>> {
    let ingress = "itype_0,cause,tval,priv,iaddr_0,context,ctype,iretire_0,ilastsize_0\n0,0,0,3,80000000,0,0,1,1\n0,0,0,3,80000004,0,0,1,1\n1,2,0,3,80000008,0,0,0,0\n";
    let wide = "itype_0,itype_1,cause,tval,priv,iaddr_0,iaddr_1,time,iretire_0,iretire_1,ilastsize_0,ilastsize_1,trigger,halted,reset,impdef,sijump_0\n0,0,0,0,3,80000000,80000004,5,2,2,1,1,1,0,0,ff,0\n0,5,0,0,3,80000008,8000000c,6,4,2,1,1,7,1,1,0,1\n";
    let spike = "VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT\n1,80000000,297,3,0,0,0,0\n1,80000004,73,3,1,b,0,0\n1,80000100,0001,3,0,0,0,1\n0,,,,,,,\n";
    let mut seeds = Vec::new();
    for choices in [0u8, 1, 4, 8, 12] {
        for text in [ingress, wide] {
            seeds.push([&[choices], text.as_bytes()].concat());
        }
    }
    for choices in [2u8, 3] {
        seeds.push([&[choices], spike.as_bytes()].concat());
    }
    seeds
}
