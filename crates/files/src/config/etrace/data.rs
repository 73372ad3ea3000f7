//! `[etrace.data]`: settings of E-Trace data trace.

use super::super::filter::data::{DataFilter, access_kinds, access_sizes};
use super::super::section::{set, some, value};
use super::super::value::Named;
use hartrace_etrace::{Compression, DataConfig, Version};
use hartrace_flow::AccessKind;
use hartrace_isa::Xlen;

const COMPRESSIONS: Named<Compression> = &[
    ("xor", Compression::Xor),
    ("differential", Compression::Differential),
    ("dynamic", Compression::Dynamic),
];

section! {
    /// `[etrace.data]`. What is `None` is not said; there is data trace if anything
    /// is.
    EtraceData = "[etrace.data]" {
        /// Whether there is data trace.
        enabled: bool = (boolean);
        /// Loads and atomics have a request and a response.
        split: bool = (boolean);
        /// Width of `lrid`.
        lrid_width: u8 = (number 1 8);
        /// Atomics are traced.
        atomics: bool = (boolean);
        /// Accesses to CSRs are traced.
        csrs: bool = (boolean);
        /// Width of data.
        data_width: u8 = (number 32 64);
        /// Bits of a data address that are traced; without it all of them.
        daddress_width: u8 = (number 8 64);
        /// Width of `size`.
        size_width: u8 = (number 2 3);
        /// Width of `diff` where it may be 1 or 2.
        diff_width: u8 = (number 1 2);
        /// Width of `subtype` in CSR packets without data.
        csr_subtype_width: u8 = (number 2 3);
        /// Width of `diff` in CSR packets without data.
        csr_diff_width: u8 = (number 0 1);
        /// Failed store-conditionals have packets.
        failures: bool = (boolean);
        /// Packets have no address.
        no_address: bool = (boolean);
        /// Packets have no data.
        no_data: bool = (boolean);
        /// Addresses are full, not differences.
        full_address: bool = (boolean);
        /// Data is never compressed.
        full_data: bool = (boolean);
        /// How it is compressed otherwise.
        compression: Compression = (named COMPRESSIONS);
        /// Differences of addresses are exclusive ors.
        xor_addresses: bool = (boolean);
        /// Packets for multiple memory accesses and compare-and-swap (2.05).
        mmacas: bool = (boolean);
        /// Only these kinds are traced.
        kinds: Vec<AccessKind> = (access_kinds);
        /// Only these sizes are traced, in bytes.
        sizes: Vec<u8> = (access_sizes);
        /// Filters leave accesses out.
        filtered: bool = (boolean);
        /// Data packets are in a file of their own.
        separate: bool = (boolean);
    }
}

impl EtraceData {
    /// Whether there is data trace.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        value(&self.enabled, self.is_said())
    }

    /// The settings, if there is data trace. By default `daddress_width` of the draft
    /// is `iaddress_width`.
    pub(super) fn settings(
        &self,
        version: Version,
        xlen: Xlen,
        iaddress_width: u8,
    ) -> Option<DataConfig> {
        if !self.is_enabled() {
            return None;
        }
        let mut data = DataConfig::new(version, xlen);
        if version.is_draft() {
            data.daddress_width = iaddress_width;
        }
        set(&mut data.split, &self.split);
        set(&mut data.lrid_width, &self.lrid_width);
        set(&mut data.atomics, &self.atomics);
        set(&mut data.csrs, &self.csrs);
        set(&mut data.data_width, &self.data_width);
        set(&mut data.daddress_width, &self.daddress_width);
        set(&mut data.size_width, &self.size_width);
        set(&mut data.diff_width, &self.diff_width);
        set(&mut data.csr_subtype_width, &self.csr_subtype_width);
        set(&mut data.csr_diff_width, &self.csr_diff_width);
        set(&mut data.failures, &self.failures);
        set(&mut data.no_address, &self.no_address);
        set(&mut data.no_data, &self.no_data);
        set(&mut data.full_address, &self.full_address);
        set(&mut data.full_data, &self.full_data);
        set(&mut data.compression, &self.compression);
        set(&mut data.xor_addresses, &self.xor_addresses);
        set(&mut data.mmacas, &self.mmacas);
        set(&mut data.filtered, &self.filtered);
        set(&mut data.separate, &self.separate);
        let sets = DataFilter {
            kinds: self.kinds.clone(),
            sizes: self.sizes.clone(),
            ..DataFilter::default()
        };
        data.kinds = sets.kind_bits().unwrap_or(data.kinds);
        data.sizes = sets.size_bits().unwrap_or(data.sizes);
        Some(data)
    }

    /// Every setting of a configuration, as a default; nothing without data trace.
    pub(super) fn of(data: Option<&DataConfig>) -> EtraceData {
        let Some(data) = data else {
            return EtraceData::default();
        };
        let kinds = (0..16).filter(|n| data.kinds >> n & 1 != 0);
        let kinds = kinds.filter_map(AccessKind::from_code).collect();
        let sizes = (0..8u8).filter(|n| data.sizes >> n & 1 != 0);
        let sizes = sizes.map(|n| 1 << n).collect();
        EtraceData {
            enabled: some(true),
            split: some(data.split),
            lrid_width: some(data.lrid_width),
            atomics: some(data.atomics),
            csrs: some(data.csrs),
            data_width: some(data.data_width),
            daddress_width: some(data.daddress_width),
            size_width: some(data.size_width),
            diff_width: some(data.diff_width),
            csr_subtype_width: some(data.csr_subtype_width),
            csr_diff_width: some(data.csr_diff_width),
            failures: some(data.failures),
            no_address: some(data.no_address),
            no_data: some(data.no_data),
            full_address: some(data.full_address),
            full_data: some(data.full_data),
            compression: some(data.compression),
            xor_addresses: some(data.xor_addresses),
            mmacas: some(data.mmacas),
            kinds: some(kinds).filter(|_| data.kinds != u16::MAX),
            sizes: some(sizes).filter(|_| data.sizes != u8::MAX),
            filtered: some(data.filtered),
            separate: some(data.separate),
        }
    }
}
