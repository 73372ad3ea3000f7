//! The code of a program as its file has it, to compare it with what ran.

use hartrace_flow::elf::Elf;
use std::sync::Arc;

/// Bytes that are compared at most, to tell programs at the same addresses apart.
pub(crate) const COMPARED: usize = 64;

/// The code of a program, where it is loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramCode(Arc<[(u64, Vec<u8>)]>);

impl ProgramCode {
    /// That of an ELF file; `bias` is added to all addresses.
    pub(crate) fn of(file: &[u8], bias: u64) -> ProgramCode {
        let loads = Elf::parse(file).and_then(|elf| elf.loads());
        let loads = loads.unwrap_or_default().into_iter();
        let code = loads.filter(|load| load.access.last() == Some(&true));
        let code = code.filter_map(|load| {
            let address = load.address.wrapping_add(bias);
            Some((address, load.data?.to_vec()))
        });
        ProgramCode(code.collect())
    }

    fn at(&self, address: u64) -> Option<&[u8]> {
        self.0.iter().find_map(|(start, bytes)| {
            let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(offset..).filter(|rest| !rest.is_empty())
        })
    }

    /// Whether it has this address.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// Whether these bytes are at an address.
    pub(crate) fn is(&self, address: u64, bytes: &[u8]) -> bool {
        self.at(address).is_some_and(|rest| rest.starts_with(bytes))
    }

    /// Whether it has addresses of another.
    pub(crate) fn overlaps(&self, other: &ProgramCode) -> bool {
        let ends = |(start, bytes): &(u64, Vec<u8>)| {
            let end = start.saturating_add(bytes.len() as u64);
            (*start, end)
        };
        self.0.iter().map(ends).any(|(low, high)| {
            let mut others = other.0.iter().map(ends);
            others.any(|(start, end)| low < end && start < high)
        })
    }
}
