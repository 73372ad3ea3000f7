//! Where position-independent programs were loaded: programs and shared libraries of an
//! operating system, which loads them anywhere, each process at other addresses. The code
//! that ran tells: it is that of the file, and its place within a page is the same.

use hartrace_flow::CodeHistory;
use hartrace_flow::elf::Elf;
use std::collections::HashMap;

/// Pages of memory, which loaders keep whole.
const PAGE: u64 = 4096;

/// Bytes of code at least that are looked up: less of it may be anywhere.
const LEAST: usize = 16;

/// Bytes of a program that must have run at a place.
const ENOUGH: u64 = 64;

/// Places of one program, at most.
const MOST: usize = 64;

/// What is added to the addresses of a program, once for each place at which it ran.
pub(super) fn whereabouts<'h>(
    file: &[u8],
    histories: impl Iterator<Item = &'h CodeHistory>,
) -> Vec<u64> {
    let loads = Elf::parse(file).and_then(|elf| elf.loads());
    let loads = loads.unwrap_or_default().into_iter();
    let code = loads.filter(|load| load.access.last() == Some(&true));
    let code = code.filter_map(|load| Some((load.address, load.data?)));
    let code: Vec<(u64, &[u8])> = code.collect();
    let mut found = Found::default();
    for piece in histories.flat_map(|history| &history.pieces) {
        found.look(&code, piece.address, &piece.bytes);
    }
    found.finish(&code)
}

/// Code that was found in a program.
#[derive(Default)]
struct Found {
    /// Bytes that are the same, by what is added to the addresses of the program.
    same: HashMap<u64, u64>,
    /// Those that had much, the latest last: others are probably there too.
    likely: Vec<u64>,
    /// All code that was looked for: start and length.
    all: Vec<(u64, u64)>,
}

impl Found {
    /// Looks for code that ran in the code of the program.
    fn look(&mut self, code: &[(u64, &[u8])], address: u64, bytes: &[u8]) {
        if bytes.len() < LEAST {
            return;
        }
        self.all.push((address, bytes.len() as u64));
        let known = self.likely.iter().rev().copied();
        let known = known
            .into_iter()
            .find(|bias| is_at(code, address.wrapping_sub(*bias), bytes));
        if let Some(bias) = known {
            self.add(bias, bytes.len());
            return;
        }
        for &(start, text) in code {
            let first = address.wrapping_sub(start) % PAGE;
            let places = (first..text.len() as u64).step_by(PAGE as usize);
            for place in places {
                let rest = text.get(place as usize..).unwrap_or_default();
                if rest.starts_with(bytes) {
                    let bias = address.wrapping_sub(start.wrapping_add(place));
                    self.add(bias, bytes.len());
                }
            }
        }
    }

    fn add(&mut self, bias: u64, bytes: usize) {
        let same = self.same.entry(bias).or_default();
        let before = *same;
        *same += bytes as u64;
        if before < ENOUGH && *same >= ENOUGH && self.likely.len() < MOST {
            self.likely.push(bias);
        }
    }

    /// The places where most of what ran is of the program.
    fn finish(self, code: &[(u64, &[u8])]) -> Vec<u64> {
        let mut places = self.likely;
        places.retain(|bias| {
            let is_inside = |address: u64| {
                let own = address.wrapping_sub(*bias);
                code.iter()
                    .any(|(start, text)| own.wrapping_sub(*start) < text.len() as u64)
            };
            let inside = self.all.iter().filter(|(address, _)| is_inside(*address));
            let all: u64 = inside.map(|(_, len)| len).sum();
            let same = self.same.get(bias).copied().unwrap_or(0);
            same.saturating_mul(2) > all
        });
        places.sort_unstable();
        places
    }
}

/// Whether a program has these bytes at one of its addresses.
fn is_at(code: &[(u64, &[u8])], own: u64, bytes: &[u8]) -> bool {
    code.iter().any(|(start, text)| {
        let offset = usize::try_from(own.wrapping_sub(*start)).ok();
        let rest = offset.and_then(|offset| text.get(offset..));
        rest.is_some_and(|rest| rest.starts_with(bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_flow::CodePiece;

    const PROGRAM: &[u8] = include_bytes!("../../../../programs/sieve/sieve-rv64gc.elf");
    const OTHER: &[u8] = include_bytes!("../../../../programs/sort/sort-rv64gc.elf");

    /// Parts of the code of a program, as a history has them.
    fn history(file: &[u8], bias: u64, every: usize) -> CodeHistory {
        let elf = Elf::parse(file).unwrap();
        let loads = elf.loads().unwrap();
        let load = loads.iter().find(|load| load.access[2]).unwrap();
        let chunks = load.data.unwrap().chunks(40).enumerate();
        let chunks = chunks.filter(|(at, _)| at % every == 0);
        let pieces = chunks.map(|(at, bytes)| CodePiece {
            address: load.address.wrapping_add(bias) + 40 * at as u64,
            bytes: bytes.to_vec(),
        });
        CodeHistory {
            pieces: pieces.collect(),
            ..CodeHistory::default()
        }
    }

    #[test]
    fn a_program_is_found_wherever_it_ran() {
        let places = [0x5555_0000_0000, 0x7fff_1234_5000];
        let histories = places.map(|bias| history(PROGRAM, bias, 3));
        assert_eq!(whereabouts(PROGRAM, histories.iter()), places);
        // Where the file says.
        let here = history(PROGRAM, 0, 2);
        assert_eq!(whereabouts(PROGRAM, [&here].into_iter()), [0]);
    }

    #[test]
    fn code_of_others_is_not_taken_for_it() {
        let other = history(OTHER, 0x5555_0000_0000, 1);
        assert!(whereabouts(PROGRAM, [&other].into_iter()).is_empty());
        assert!(whereabouts(b"no ELF file", [&other].into_iter()).is_empty());
        assert!(whereabouts(PROGRAM, std::iter::empty()).is_empty());
        // Not within a page as it is in the file.
        let moved = history(PROGRAM, 0x5555_0000_0010, 1);
        assert!(whereabouts(PROGRAM, [&moved].into_iter()).is_empty());
    }
}
