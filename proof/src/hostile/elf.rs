//! ELF files.

use std::io;
use std::ops::ControlFlow;

use hartrace_analyze::{Listing, Symbols, isa_of, listing as list};
use hartrace_capture::detect::detect;
use hartrace_capture::elf_info::ElfInfo;
use hartrace_flow::{
    Blocks, Consumer, Event, HartId, History, Image, Remember, ReturnStack, Rules, Run, SpaceId,
    Stop, Swaps, UNCOUNTED, Walk,
};
use hartrace_isa::{Dialect, Isa};

use super::ensure;
use crate::generate::{Random, arbitrary};

pub(super) const SIEVES: [&[u8]; 2] = [
    include_bytes!("../../../programs/sieve/sieve-rv64gc.elf"),
    include_bytes!("../../../programs/sieve/sieve-rv32imac.elf"),
];

/// The committed programs and some generated ones of every shape, the smaller
/// ones.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let generated = (0..200).map(|seed| arbitrary(seed).to_elf());
    let small = generated.filter(|elf| elf.len() < 16_384).take(24);
    let sieves = SIEVES.iter().map(|elf| elf.to_vec());
    sieves.chain(small).collect()
}

/// Numbers that depend on the bytes alone.
pub(super) fn random_of(bytes: &[u8]) -> Random {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h: u64, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    });
    Random::new(hash)
}

/// Every instruction of every run is code of the image.
struct Inside<'a> {
    image: &'a Image,
    halfwords: u64,
    fault: Option<String>,
}

impl Consumer for Inside<'_> {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            self.halfwords += run.end.wrapping_sub(run.start) / 2;
            if let Err(what) = inside(self.image, SpaceId::FIRST, run) {
                self.fault.get_or_insert(what);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether a run is what the code says: its instructions, its length, the
/// length of its last instruction.
pub(super) fn inside(image: &Image, space: SpaceId, run: &Run) -> Result<(), String> {
    let (mut pc, mut last, mut found) = (run.start, 0, 0);
    for (at, code) in image.insns(space, run.start, u64::from(run.insns)) {
        let mut bytes = [0; 24];
        let whole = bytes.get_mut(..usize::from(code.len)).unwrap_or_default();
        let there = image.read(space, at, whole) == usize::from(code.len);
        ensure(at == pc && there, || format!("{run:x?} at {at:#x}"))?;
        (pc, last, found) = (at.wrapping_add(u64::from(code.len)), code.len, found + 1);
    }
    ensure(
        run.insns > 0 && found == run.insns && pc == run.end && last == run.last,
        || format!("{run:x?} but {found} instructions to {pc:#x}, the last of {last} bytes"),
    )
}

/// Any file is an image or is refused; a walk in it from anywhere, on any
/// evidence, stays inside.
pub(super) fn image(bytes: &[u8]) -> Result<(), String> {
    let image = match Image::from_elf(bytes) {
        Ok(image) => image,
        Err(error) => {
            let _ = error.to_string();
            return Ok(());
        }
    };
    let mut end = None;
    for (base, code) in image.segments(SpaceId::FIRST) {
        ensure(end.is_none_or(|e| e < base) && !code.is_empty(), || {
            format!("segments overlap at {base:#x}")
        })?;
        let last = base.checked_add(code.len() as u64 - 1);
        end = Some(last.ok_or("a segment passes the end of the address space")?);
    }
    let mut random = random_of(bytes);
    let bits = random.draw();
    let rules = Rules {
        sequential_jumps: bits & 1 != 0,
        sequential_returns: bits & 1 != 0,
        absolute_jumps: bits & 2 != 0,
        all_jumps: bits & 4 != 0,
        nexrv_links: false,
    };
    let starts: Vec<(u64, u64)> = image
        .segments(SpaceId::FIRST)
        .map(|(base, code)| (base, code.len() as u64))
        .take(64)
        .collect();
    let mut blocks = Blocks::new(&image, rules);
    let mut walk = Walk::new(HartId(0));
    if bits & 8 != 0 {
        walk.set_stack(Some(ReturnStack::new(Remember::Address, Swaps::Ignored, 8)));
    }
    let mut out = Inside {
        image: &image,
        halfwords: 0,
        fault: None,
    };
    for _ in 0..16 {
        let (base, len) = random.pick(&starts);
        walk.restart(&mut blocks, base.wrapping_add(random.below(len)) & !1);
        for _ in 0..8 {
            let mut history = History::new(random.draw(), random.below(65) as u8);
            let count = if random.chance(300) {
                UNCOUNTED
            } else {
                random.below(1000)
            };
            let (mut left, before) = (count, out.halfwords);
            let stop = walk.advance(&mut blocks, &mut history, &mut left, &mut out);
            ensure(count - left == out.halfwords - before, || {
                format!("{stop:?}: the count is off")
            })?;
            match stop {
                Stop::Branch => drop(walk.branch(&mut blocks, random.chance(500), &mut out)),
                Stop::Target(_) => {
                    let (base, len) = random.pick(&starts);
                    let to = base.wrapping_add(random.below(len));
                    let _ = walk.target(&mut blocks, to, &mut out);
                }
                Stop::Arrived => {}
                _ => {
                    if !walk.retire(&mut blocks, &mut out) {
                        break;
                    }
                }
            }
            if let Some(fault) = out.fault {
                return Err(fault);
            }
        }
    }
    Ok(())
}

/// Takes so much and no more.
struct Sink {
    left: u64,
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let rest = self.left.checked_sub(bytes.len() as u64);
        self.left = rest.ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a listing may have at most: a line and a heading for every byte of
/// code, each with some names. `None` where that is too much to try.
fn bound(bytes: &[u8]) -> Option<u64> {
    let wide = bytes.get(4) == Some(&2);
    let number = |at: usize, len: usize| {
        let field = bytes.get(at..at.checked_add(len)?)?;
        Some(field.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    };
    let word = if wide { 8 } else { 4 };
    let (table, count) = if wide {
        (number(40, 8)?, number(60, 2)?)
    } else {
        (number(32, 4)?, number(48, 2)?)
    };
    // With too many sections for the field their number is elsewhere.
    let count = if count == 0 { 1 << 16 } else { count };
    let mut code = count;
    for i in 0..count {
        let at = table.checked_add(i * (16 + 6 * word as u64) + 8 + 3 * word as u64);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some(size) = at.and_then(|at| number(at, word)) else {
            break;
        };
        code += size.min(bytes.len() as u64);
    }
    let names = bytes.split(|&b| b == 0).map(<[u8]>::len).max()?;
    let most = code.checked_mul(400 + 24 * names as u64)?;
    (most < 1 << 28).then_some(most)
}

/// Any file has a listing of a bounded size or is refused; symbols are in
/// order.
pub(super) fn listing(bytes: &[u8]) -> Result<(), String> {
    let Ok(symbols) = Symbols::from_elf(bytes) else {
        ensure(isa_of(bytes).is_err(), || "refused and not".into())?;
        let refused = list(bytes, "a.out", &Listing::default(), &mut io::sink());
        return ensure(refused.is_err(), || "refused and not".into());
    };
    let mut last = 0;
    for (address, name) in symbols.iter() {
        ensure(last <= address && !name.is_empty(), || "symbols".into())?;
        last = address;
        let found = symbols.lookup(address);
        ensure(found.is_some_and(|f| f.1 == 0), || name.to_owned())?;
    }
    let mut random = random_of(bytes);
    let bits = random.draw();
    let options = Listing {
        base: None,
        isa: (bits & 7 == 0).then_some(Isa::RV32GC),
        aliases: bits & 8 != 0,
        numeric: bits & 16 != 0,
        dialect: if bits & 32 != 0 {
            Dialect::Binutils245
        } else {
            Dialect::Binutils240
        },
        zeros: bits & 64 != 0,
    };
    let bound = bound(bytes);
    let most = bound.unwrap_or(1 << 24);
    let mut sink = Sink { left: most };
    match list(bytes, "a.out", &options, &mut sink) {
        Ok(()) => Ok(()),
        Err(_) if bound.is_none() => Ok(()),
        Err(error) => Err(format!("{error}: more than {most} bytes of text")),
    }
}

/// Any file has facts or is refused with words.
pub(super) fn info(bytes: &[u8]) -> Result<(), String> {
    let _ = detect(bytes).to_string();
    match ElfInfo::read(bytes) {
        Ok(info) => {
            let _ = (info.kind.to_string(), info.abi.to_string());
            ensure(info.code.len() <= bytes.len() / 40 + 1, || {
                "sections".into()
            })
        }
        Err(error) => {
            let words = error.to_string();
            ensure(words.len() < 256 + 8 * bytes.len(), || words)
        }
    }
}
