//! The settings of data trace.

use hartrace_flow::{AccessKind, Reported};
use hartrace_isa::Xlen;

use crate::{ConfigError, Support, Version};

/// How data is compressed where it is (`DataCompress`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Exclusive or with the previous data of the same size.
    Xor,
    /// Difference from it.
    Differential,
    /// Whatever makes the packet shortest, the full value included.
    #[default]
    Dynamic,
}

/// The settings of the data trace of an encoder: parameters first, then what can
/// be switched at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataConfig {
    /// Loads and atomics have a packet for the request and one for the response.
    pub split: bool,
    /// `lrid_width_p` (draft: `index_width_p`), 1 to 8; only used with `split`.
    pub lrid_width: u8,
    /// Atomics are traced.
    pub atomics: bool,
    /// Accesses to CSRs are traced.
    pub csrs: bool,
    /// `data_width_p`: 32 or 64. Larger accesses are not traced.
    pub data_width: u8,
    /// `daddress_width_p`, 8 to the program's XLEN; the draft has
    /// `iaddress_width_p` instead.
    pub daddress_width: u8,
    /// Width of `size`, 2 or 3.
    pub size_width: u8,
    /// Width of `diff` where the tables say 1 or 2: 1 if only one compression of data
    /// is offered.
    pub diff_width: u8,
    /// Width of `subtype` in CSR packets without data, 2 or 3: table 7.13 says 3,
    /// and has codes of two bits.
    pub csr_subtype_width: u8,
    /// Width of `diff` in CSR packets without data, 0 or 1.
    pub csr_diff_width: u8,
    /// A store-conditional that failed has a packet, with subtype 111 (2.0).
    pub failures: bool,
    /// `noAddress`: packets have no address.
    pub no_address: bool,
    /// `noData`: packets have no data.
    pub no_data: bool,
    /// Addresses are full, not differences, and so is the data beside them.
    pub full_address: bool,
    /// Data is never compressed.
    pub full_data: bool,
    /// How it is compressed otherwise.
    pub compression: Compression,
    /// Differences of addresses are exclusive ors (2.05, diff field).
    pub xor_addresses: bool,
    /// Only these kinds are traced, bit `n` for `dtype` `n`.
    pub kinds: u16,
    /// Only these sizes are traced, bit `n` for 2^n bytes.
    pub sizes: u8,
    /// Filters leave out accesses of these kinds and sizes, so that a decoder cannot
    /// know which instruction an access belongs to.
    pub filtered: bool,
    /// Data packets are in a stream of their own.
    pub separate: bool,
    /// Packets are those of the extension for multiple memory accesses and
    /// compare-and-swap (`mmacas_ext` of the standard support packet, 2.05).
    pub mmacas: bool,
}

/// Largest `lrid_width`.
const MOST_IDS: u8 = 8;

impl DataConfig {
    /// Unified data trace of every kind of access, with addresses and data, each
    /// packet as short as it can be.
    #[must_use]
    pub const fn new(version: Version, xlen: Xlen) -> DataConfig {
        DataConfig {
            split: false,
            lrid_width: 4,
            atomics: true,
            csrs: true,
            data_width: 64,
            daddress_width: xlen.bits() as u8,
            size_width: 2,
            diff_width: 2,
            csr_subtype_width: 3,
            csr_diff_width: 0,
            failures: !version.is_draft(),
            no_address: false,
            no_data: false,
            full_address: false,
            full_data: false,
            compression: Compression::Dynamic,
            xor_addresses: false,
            kinds: u16::MAX,
            sizes: u8::MAX,
            filtered: false,
            separate: false,
            mmacas: false,
        }
    }

    /// Checks the settings for a program of this width.
    pub(crate) fn validate(&self, version: Version, xlen: Xlen) -> Result<(), ConfigError> {
        let checks = [
            (
                (1..=MOST_IDS).contains(&self.lrid_width),
                ConfigError::LridWidth,
            ),
            (matches!(self.data_width, 32 | 64), ConfigError::DataWidth),
            (
                (8..=xlen.bits() as u8).contains(&self.daddress_width),
                ConfigError::DaddressWidth,
            ),
            (
                matches!(self.size_width, 2 | 3)
                    && matches!(self.diff_width, 1 | 2)
                    && matches!(self.csr_subtype_width, 2 | 3)
                    && self.csr_diff_width <= 1,
                ConfigError::DataFieldWidth,
            ),
            (
                self.diff_width == 2 || self.compression != Compression::Dynamic || self.full_data,
                ConfigError::DataDiffWidth,
            ),
            (
                !(self.no_address && self.no_data),
                ConfigError::NothingOfData,
            ),
            (!self.mmacas || version.is_standard(), ConfigError::Mmacas),
        ];
        match checks.iter().find(|(good, _)| !good) {
            Some(&(_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// What the bytes of packets depend on.
    #[must_use]
    pub const fn layout(&self, version: Version, xlen: Xlen) -> DataLayout {
        let more = self.split || self.atomics || self.csrs;
        DataLayout {
            version,
            mmacas: self.mmacas,
            format_width: match (self.mmacas, more) {
                (false, true) => 3,
                (true, false) => 1,
                _ => 2,
            },
            size_width: self.size_width,
            diff_width: self.diff_width,
            data_width: self.data_width,
            daddress_width: self.daddress_width,
            csr_size: match xlen {
                Xlen::Rv32 => 2,
                Xlen::Rv64 => 3,
            },
            csr_subtype_width: self.csr_subtype_width,
            csr_diff_width: match self.mmacas {
                true => 1,
                false => self.csr_diff_width,
            },
            split: self.split,
            lrid_width: self.lrid_width,
            no_address: self.no_address,
            no_data: self.no_data,
        }
    }

    /// Value of `doptions`: the four bits of the reference models, or those of the
    /// standard support packet.
    pub(crate) const fn doptions(&self, version: Version) -> u16 {
        let bits = self.no_address as u16
            | (self.no_data as u16) << 1
            | (self.full_address as u16) << 2
            | (self.full_data as u16) << 3;
        match version.is_standard() {
            true => bits << 1 | self.mmacas as u16,
            false => bits,
        }
    }

    /// The same settings after a support packet.
    pub(crate) fn follow(mut self, support: &Support, version: Version, width: u8) -> DataConfig {
        if let Some(data) = support.data
            && width >= 4
        {
            let mut bits = data.doptions;
            if version.is_standard() {
                self.mmacas = bits & 1 != 0;
                bits >>= 1;
            }
            self.no_address = bits & 1 != 0;
            self.no_data = bits & 2 != 0;
            self.full_address = bits & 4 != 0;
            self.full_data = bits & 8 != 0;
        }
        self
    }

    /// Whether an access of this kind and size is traced.
    #[must_use]
    pub const fn traces(&self, kind: AccessKind, size: u8, version: Version) -> bool {
        let fits = 8 << (size & 7) <= self.data_width;
        if self.kinds >> kind.code() & 1 == 0 || self.sizes >> (size & 7) & 1 == 0 {
            return false;
        }
        match kind {
            AccessKind::Load | AccessKind::Store => fits,
            AccessKind::CsrReadWrite | AccessKind::CsrReadSet | AccessKind::CsrReadClear => {
                self.csrs
            }
            // There is no packet for it without an address.
            AccessKind::CompareSwapFailure => {
                self.mmacas && self.atomics && fits && !self.no_address
            }
            AccessKind::ConditionalStoreFailure => {
                self.failures && self.atomics && fits && size >= 2
            }
            // The draft has atomics of words and doublewords only.
            _ => self.atomics && fits && (size >= 2 || !version.is_draft()),
        }
    }

    /// What a trace with these settings reports of the accesses of a hart.
    #[must_use]
    pub fn reported(&self, version: Version, xlen: Xlen) -> Reported {
        let mut kinds = [0; 16];
        for (set, code) in kinds.iter_mut().zip(0u8..) {
            if let Some(kind) = AccessKind::from_code(code) {
                let sizes = (0..8u8).filter(|&size| self.traces(kind, size, version));
                *set = sizes.fold(0, |all, size| all | 1 << size);
            }
        }
        Reported {
            kinds,
            addresses: !self.no_address,
            values: !self.no_data,
            address_width: self.daddress_width,
            xlen,
            failures: self.failures,
            failed_swaps: self.mmacas,
            each: !(self.filtered || self.split && self.no_address),
        }
    }
}

/// What the bytes of data packets depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLayout {
    /// Which text.
    pub version: Version,
    /// Packets have classes and a subformat ([`DataConfig::mmacas`]).
    pub mmacas: bool,
    /// Width of `format`: 2 if there are only unified loads and stores, else 3. With
    /// `mmacas` 1 or 2.
    pub format_width: u8,
    /// Width of `size`.
    pub size_width: u8,
    /// Width of `diff` where it may be 1 or 2.
    pub diff_width: u8,
    /// `data_width_p`.
    pub data_width: u8,
    /// Width of `address`.
    pub daddress_width: u8,
    /// log2 of the bytes of a CSR.
    pub csr_size: u8,
    /// Width of `subtype` in CSR packets without data.
    pub csr_subtype_width: u8,
    /// Width of `diff` in CSR packets without data.
    pub csr_diff_width: u8,
    /// Loads and atomics are split, unless addresses or data are left out.
    pub split: bool,
    /// Width of `lrid` (draft: `index`).
    pub lrid_width: u8,
    /// Addresses are left out.
    pub no_address: bool,
    /// Data is left out.
    pub no_data: bool,
}

impl DataLayout {
    /// Whether loads and atomics have two packets.
    #[must_use]
    #[inline]
    pub const fn is_split(&self) -> bool {
        self.split && !self.no_address && !self.no_data
    }

    /// Width of `diff` in the request of a split atomic.
    pub(super) const fn request_diff_width(&self) -> u8 {
        match self.mmacas {
            true => 2,
            false => self.diff_width,
        }
    }

    /// Name of the transfer's id.
    pub(crate) const fn id(&self) -> &'static str {
        match self.version.is_draft() {
            true => "index",
            false => "lrid",
        }
    }
}
