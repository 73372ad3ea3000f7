//! `[filter.data]`: which data accesses an encoder traces.

use super::{Code, FilterError, FindSymbol, Span, codes, modes, spans};
use crate::config::read::{Reader, Value};
use crate::config::value::{Named, name_of};
use crate::config::write::quote;
use hartrace_flow::filter::{DataMatch, FilterConfig, mode_bits};
use hartrace_flow::{AccessKind, Mode};

section! {
    /// `[filter.data]`. What is `None` is not said. An access must fit each that is
    /// said, and in it one of the values.
    DataFilter = "[filter.data]" {
        /// Kinds of accesses.
        kinds: Vec<AccessKind> = (access_kinds);
        /// Sizes in bytes.
        sizes: Vec<u8> = (access_sizes);
        /// Addresses of the accesses.
        address: Vec<Span> = (spans);
        /// Addresses of their instructions, and functions by their names.
        code: Vec<Code> = (codes);
        /// Privilege modes.
        modes: Vec<Mode> = (modes);
    }
}

/// Kinds of accesses by name.
pub(in crate::config) const KINDS: Named<AccessKind> = &[
    ("load", AccessKind::Load),
    ("store", AccessKind::Store),
    ("csr-read-write", AccessKind::CsrReadWrite),
    ("csr-read-set", AccessKind::CsrReadSet),
    ("csr-read-clear", AccessKind::CsrReadClear),
    ("atomic-swap", AccessKind::AtomicSwap),
    ("atomic-add", AccessKind::AtomicAdd),
    ("atomic-and", AccessKind::AtomicAnd),
    ("atomic-or", AccessKind::AtomicOr),
    ("atomic-xor", AccessKind::AtomicXor),
    ("atomic-max", AccessKind::AtomicMax),
    ("atomic-min", AccessKind::AtomicMin),
    ("compare-swap-failure", AccessKind::CompareSwapFailure),
    (
        "conditional-store-failure",
        AccessKind::ConditionalStoreFailure,
    ),
];

impl Reader {
    pub(in crate::config) fn access_kinds(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
    ) -> Option<Vec<AccessKind>> {
        self.some(name, value)?;
        self.list(name, value, "kinds", |r, n, v| r.one_of(n, v, KINDS))
    }

    pub(in crate::config) fn access_sizes(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
    ) -> Option<Vec<u8>> {
        self.some(name, value)?;
        let sizes: Vec<u8> = self.list(name, value, "sizes", |r, n, v| r.number(n, v, 1..=128))?;
        match sizes.iter().all(|size| size.is_power_of_two()) {
            true => Some(sizes),
            false => self.refuse(name, value, "sizes in bytes: 1, 2, 4 or 8"),
        }
    }
}

pub(in crate::config) fn access_kinds(kinds: &[AccessKind]) -> String {
    let names: Vec<String> = kinds
        .iter()
        .map(|kind| quote(name_of(KINDS, kind)))
        .collect();
    format!("[{}]", names.join(", "))
}

pub(in crate::config) fn access_sizes(sizes: &[u8]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u8::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

impl DataFilter {
    /// The set of kinds, bit `n` for `dtype` `n`.
    #[must_use]
    pub fn kind_bits(&self) -> Option<u16> {
        let kinds = &self.kinds.as_ref()?.value;
        Some(kinds.iter().fold(0, |bits, kind| bits | 1 << kind.code()))
    }

    /// The set of sizes, bit `n` for 2^n bytes.
    #[must_use]
    pub fn size_bits(&self) -> Option<u8> {
        let sizes = &self.sizes.as_ref()?.value;
        let bit = |size: &u8| 1u8 << (size.trailing_zeros() & 7);
        Some(sizes.iter().fold(0, |bits, size| bits | bit(size)))
    }

    /// Whether which accesses are traced depends on more than their kind and size.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.address.is_some() || self.code.is_some() || self.modes.is_some()
    }

    /// Adds the filters to those of an encoder.
    pub(super) fn add_to(
        &self,
        config: &mut FilterConfig,
        find: &FindSymbol<'_>,
    ) -> Result<(), FilterError> {
        // Kinds and sizes alone are settings of the encoder.
        if !self.is_dynamic() {
            return Ok(());
        }
        let addresses: Vec<_> = match &self.address {
            None => vec![None],
            Some(spans) => spans.value.iter().map(|s| Some(s.0.clone())).collect(),
        };
        let instructions: Vec<_> = match &self.code {
            None => vec![None],
            Some(codes) => {
                let codes = codes.value.iter().map(|code| code.resolve(find).map(Some));
                codes.collect::<Result<_, _>>()?
            }
        };
        for daddr in &addresses {
            for address in &instructions {
                config.add_data(&DataMatch {
                    dtypes: self.kind_bits(),
                    dsizes: self.size_bits(),
                    daddr: daddr.clone(),
                    address: address.clone(),
                    modes: self.modes.as_ref().map(|s| mode_bits(&s.value)),
                })?;
            }
        }
        Ok(())
    }
}
