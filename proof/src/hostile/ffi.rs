//! The handles of libhartrace, with whatever a simulation may show.

use hartrace::{
    Block, Check, CheckSetup, Encode, EncodeSetup, HARTRACE_ARGUMENT, HARTRACE_DIFFERENCE,
    HARTRACE_FORMAT_ETRACE, HARTRACE_FORMAT_NTRACE, HARTRACE_OK, HARTRACE_ORDER, HARTRACE_RVFI,
    Retired, Write,
};

use super::elf::SIEVES;
use super::{Input, ensure};

/// Instructions and blocks of a case.
const MOST: usize = 512;

/// Bytes of trace for a block, of any setting: what is sent for one is far less.
const MOST_BYTES: usize = 512;

const CONFIGS: [&str; 4] = [
    "",
    "[hart]\nmemory = [\"0x80000000:64K\"]\nentry = 0x80000000\n",
    "[verify]\nabsent = [\"gpr\", \"store\"]\nvolatile = [\"0x80000000:0x1000\"]\n",
    "[verify]\ncheck_csrs = false\ndefault_volatile = false\n",
];

/// A retirement that the next bytes describe, near the last one or anywhere.
fn retired(input: &mut Input<'_>, pc: u64, order: u64) -> Retired {
    let any = input.flag();
    let wild = |input: &mut Input<'_>, usual: u64| match any {
        true => input.number(8),
        false => usual,
    };
    Retired {
        size: size_of::<Retired>() as u32,
        valid: match input.flag() {
            true => HARTRACE_RVFI,
            false => input.number(2) as u32,
        },
        order: wild(input, order),
        pc_rdata: wild(input, pc),
        pc_wdata: wild(input, pc.wrapping_add(4)),
        insn: input.number(4) as u32,
        trap: u8::from(input.below(8) == 0),
        halt: 0,
        intr: u8::from(input.below(8) == 0),
        mode: match any {
            true => input.byte(),
            false => 3,
        },
        ixl: input.byte(),
        rd_addr: input.byte(),
        mem_rmask: input.byte(),
        mem_wmask: input.byte(),
        rd_wdata: input.number(8),
        mem_addr: input.number(8),
        mem_rdata: input.number(8),
        mem_wdata: input.number(8),
        cause: input.number(8),
        tval: input.number(8),
        writes: std::ptr::null(),
        write_count: 0,
    }
}

/// Any retirements: a checker answers each with one of its results, and stays with a
/// difference until it is told to go on. In a row, each has the same result.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let input = &mut Input::new(bytes);
    let setup = CheckSetup {
        reports: input.number(2) as u32,
        config: CONFIGS.get(usize::from(input.below(4))).copied(),
        elf: Some(match input.flag() {
            true => SIEVES[1],
            false => SIEVES[0],
        }),
        ..CheckSetup::default()
    };
    let (mut check, mut in_rows) = (Check::new(&setup), Check::new(&setup));
    ensure(check.status() == HARTRACE_OK, || {
        format!("{:?}", check.handle.text())
    })?;
    let (mut pc, mut order) = (0x8000_0000, 0);
    for _ in 0..MOST {
        if input.is_empty() {
            break;
        }
        let retired = retired(input, pc, order);
        let writes: Vec<Write> = (0..input.below(4))
            .map(|_| Write {
                kind: u32::from(input.below(4)),
                number: input.number(2) as u32,
                value: input.number(8),
            })
            .collect();
        let stood = check.status() == HARTRACE_DIFFERENCE;
        let status = check.retire(&retired, &writes);
        let row = match writes.is_empty() {
            true => std::slice::from_ref(&retired),
            false => &[],
        };
        let same = match in_rows.pass(row) {
            0 => in_rows.retire(&retired, &writes),
            _ => HARTRACE_OK,
        };
        ensure(same == status && in_rows.counts() == check.counts(), || {
            format!("result {status}, in a row {same}")
        })?;
        let known = [
            HARTRACE_OK,
            HARTRACE_DIFFERENCE,
            HARTRACE_ARGUMENT,
            HARTRACE_ORDER,
        ];
        ensure(known.contains(&status), || format!("result {status}"))?;
        ensure(!(stood && status == HARTRACE_OK), || {
            "a difference is forgotten".to_owned()
        })?;
        ensure(
            status == HARTRACE_OK || !check.handle.text().is_empty(),
            || format!("result {status} has no text"),
        )?;
        if status == HARTRACE_DIFFERENCE {
            ensure(check.status() == HARTRACE_DIFFERENCE, || {
                "no difference after one".to_owned()
            })?;
            check.go_on();
            in_rows.go_on();
        }
        if input.below(64) == 1 {
            check.reset();
            in_rows.reset();
        }
        (pc, order) = (retired.pc_wdata, retired.order.wrapping_add(1));
    }
    ensure(check.finish() == in_rows.finish(), || {
        "the ends differ".to_owned()
    })
}

/// The start of sieve, and the same with other values.
pub(super) fn check_seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![vec![0; 64], vec![0xff; 400]];
    for first in [0, 1, 0x7f] {
        let mut seed = vec![first, 0, first, 0];
        for insn in [0x0001_0117u32, 0x0001_0113, 0x297] {
            seed.extend([0, 1]);
            seed.extend(insn.to_le_bytes());
            seed.extend([1, 1, 3, 2, 2, 0, 0]);
            seed.extend(0x8001_0000u64.to_le_bytes());
            seed.extend([0; 42]);
        }
        seeds.push(seed);
    }
    seeds
}

/// Any blocks: an encoder refuses those that cannot be, and gives no more bytes than they
/// are worth, in pieces of any size.
pub(super) fn encode(bytes: &[u8]) -> Result<(), String> {
    let input = &mut Input::new(bytes);
    let setup = EncodeSetup {
        format: match input.flag() {
            true => HARTRACE_FORMAT_ETRACE,
            false => HARTRACE_FORMAT_NTRACE,
        },
        ..EncodeSetup::default()
    };
    let mut encode = Encode::new(&setup);
    ensure(encode.handle.status() == HARTRACE_OK, || {
        format!("{:?}", encode.handle.text())
    })?;
    let (mut blocks, mut taken) = (0, 0);
    let mut room = [0; 37];
    while !input.is_empty() && blocks < MOST {
        blocks += 1;
        let block = Block {
            size: size_of::<Block>() as u32,
            hart: u32::from(input.below(3)),
            itype: input.below(18),
            ilastsize: input.below(4),
            r#priv: input.below(5),
            ctype: input.below(5),
            sijump: input.below(2),
            trigger: input.below(8),
            halted: input.below(2),
            reset: input.below(2),
            iretire: input.number(2) as u32,
            cause: input.number(1) as u32,
            iaddr: input.number(8),
            tval: input.number(4),
            context: input.number(2),
            time: input.number(4),
            ..Block::default()
        };
        let status = encode.block(&block);
        ensure([HARTRACE_OK, HARTRACE_ARGUMENT].contains(&status), || {
            format!("result {status}")
        })?;
        let piece = usize::from(input.below(37));
        taken += encode.take(room.get_mut(..piece).unwrap_or_default());
    }
    encode.finish();
    let pending = encode.pending();
    ensure(taken + pending <= MOST_BYTES * (blocks + 4), || {
        format!("{} bytes of {blocks} blocks", taken + pending)
    })?;
    let mut rest = vec![0; pending + 1];
    ensure(encode.take(&mut rest) == pending, || {
        "not all that waits can be taken".to_owned()
    })?;
    ensure(encode.pending() == 0, || "something waits still".to_owned())
}

/// A few blocks of each kind.
pub(super) fn encode_seeds() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for format in 0..2 {
        let mut seed = vec![format];
        for itype in [0u8, 5, 4, 13, 1, 3, 2, 8] {
            seed.extend([0, itype, 1, 3, 0, 0, 0, 0, 0, 2, 0, 7]);
            seed.extend(0x8000_0000u64.to_le_bytes());
            seed.extend([0; 10]);
            seed.push(9);
        }
        all.push(seed);
    }
    all
}
