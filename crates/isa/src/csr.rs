//! Control and status registers by number and by name.
//!
//! Names are those of the current privileged manual and of the extensions
//! that add registers (debug triggers, AIA, Smcsrind/Sscsrind, Smstateen,
//! Smrnmi, Smctr/Ssctr and others). Control transfer records moved their
//! registers between the 0.1.4 draft and the ratified 1.0; the draft's numbers
//! have a lookup of their own, since one of them (0x181) now means another
//! register. Every register has a constant too: [`MSTATUS`] is 0x300.

/// A version of the privileged manual, for names that came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priv {
    /// 1.10.
    V1_10,
    /// 1.11.
    V1_11,
    /// 1.12.
    V1_12,
    /// 1.13, the current one.
    #[default]
    V1_13,
}

impl Priv {
    /// The version of these numbers, as an ELF attribute gives them.
    #[must_use]
    pub const fn from_numbers(major: u32, minor: u32) -> Option<Priv> {
        match (major, minor) {
            (1, 10) => Some(Priv::V1_10),
            (1, 11) => Some(Priv::V1_11),
            (1, 12) => Some(Priv::V1_12),
            (1, 13) => Some(Priv::V1_13),
            _ => None,
        }
    }
}

struct Row {
    number: u16,
    name: &'static str,
    since: Priv,
    until: Priv,
}

macro_rules! versions {
    () => {
        (Priv::V1_10, Priv::V1_13)
    };
    (since_1_11) => {
        (Priv::V1_11, Priv::V1_13)
    };
    (since_1_12) => {
        (Priv::V1_12, Priv::V1_13)
    };
    (since_1_13) => {
        (Priv::V1_13, Priv::V1_13)
    };
    (until_1_11) => {
        (Priv::V1_10, Priv::V1_11)
    };
}

/// A name as the manuals write it.
const fn lower<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut rest = name.as_bytes();
    let mut at = 0;
    while let [first, more @ ..] = rest {
        // The name has N bytes.
        #[allow(clippy::indexing_slicing)]
        {
            bytes[at] = first.to_ascii_lowercase();
        }
        (rest, at) = (more, at + 1);
    }
    bytes
}

macro_rules! name {
    ($name:ident) => {{
        const NAME: [u8; stringify!($name).len()] = lower(stringify!($name));
        match core::str::from_utf8(&NAME) {
            Ok(name) => name,
            Err(_) => "",
        }
    }};
}

macro_rules! constants {
    ($($number:literal $name:ident)+) => {$(
        #[doc = concat!("`", stringify!($name), "`, ", stringify!($number), ".")]
        pub const $name: u16 = $number;
    )+};
}

macro_rules! csrs {
    ($($number:literal $name:ident $($version:ident)?,)+) => {
        constants! { $($number $name)+ }

        /// In the order of the numbers.
        static ROWS: &[Row] = &[$(Row {
            number: $number,
            name: name!($name),
            since: versions!($($version)?).0,
            until: versions!($($version)?).1,
        }),+];
    };
}

macro_rules! draft_csrs {
    ($($number:literal $name:ident,)+) => {
        /// The registers of the control transfer records draft 0.1.4.
        pub mod draft {
            constants! { $($number $name)+ }
        }

        static DRAFT_CTR: &[(&str, u16)] = &[$((name!($name), $number)),+];
    };
}

/// The name of a CSR in the current manual.
///
/// ```
/// use hartrace_isa::csr;
///
/// assert_eq!(csr::name(csr::MSTATUS), Some("mstatus"));
/// assert_eq!(csr::number("sctrdepth"), Some(0x15f));
/// assert_eq!(csr::draft_name(0x383), Some("mctrstatus"));
/// ```
#[must_use]
pub fn name(number: u16) -> Option<&'static str> {
    name_in(number, Priv::default())
}

/// The name of a CSR in a version of the manual. Registers that extensions
/// add have their name in all of them.
#[must_use]
pub fn name_in(number: u16, version: Priv) -> Option<&'static str> {
    let at = ROWS.binary_search_by_key(&number, |row| row.number).ok()?;
    let row = ROWS.get(at)?;
    (row.since <= version && version <= row.until).then_some(row.name)
}

/// The number of a CSR, by any name it has or had (but see
/// [`draft_number`]).
#[must_use]
pub fn number(name: &str) -> Option<u16> {
    let current = ROWS.iter().find(|row| row.name == name);
    let alias = || ALIASES.iter().find(|(alias, _)| *alias == name);
    current.map(|row| row.number).or_else(|| Some(alias()?.1))
}

/// The name of a register of the control transfer records draft 0.1.4.
#[must_use]
pub fn draft_name(number: u16) -> Option<&'static str> {
    let row = DRAFT_CTR.iter().find(|(_, at)| *at == number)?;
    Some(row.0)
}

/// The number of a register of the control transfer records draft 0.1.4.
#[must_use]
pub fn draft_number(name: &str) -> Option<u16> {
    let row = DRAFT_CTR.iter().find(|(known, _)| *known == name)?;
    Some(row.1)
}

draft_csrs! {
    0x181 SCTRCONTROL, 0x182 SCTRCONTROLH, 0x183 SCTRSTATUS, 0x281 VSCTRCONTROL,
    0x282 VSCTRCONTROLH, 0x381 MCTRCONTROL, 0x382 MCTRCONTROLH, 0x383 MCTRSTATUS,
}

/// Views of trigger registers, and names of earlier manuals.
static ALIASES: &[(&str, u16)] = &[
    ("ubadaddr", 0x043),
    ("sbadaddr", 0x143),
    ("sptbr", 0x180),
    ("mbadaddr", 0x343),
    ("etrigger", 0x7a1),
    ("icount", 0x7a1),
    ("itrigger", 0x7a1),
    ("mcontrol", 0x7a1),
    ("mcontrol6", 0x7a1),
    ("tmexttrigger", 0x7a1),
    ("textra32", 0x7a3),
    ("textra64", 0x7a3),
    ("dscratch", 0x7b2),
];

csrs! {
    0x000 USTATUS until_1_11, 0x001 FFLAGS, 0x002 FRM, 0x003 FCSR, 0x004 UIE until_1_11,
    0x005 UTVEC until_1_11, 0x008 VSTART, 0x009 VXSAT, 0x00a VXRM, 0x00f VCSR, 0x011 SSP,
    0x015 SEED, 0x017 JVT, 0x040 USCRATCH until_1_11, 0x041 UEPC until_1_11,
    0x042 UCAUSE until_1_11, 0x043 UTVAL until_1_11, 0x044 UIP until_1_11, 0x100 SSTATUS,
    0x102 SEDELEG until_1_11, 0x103 SIDELEG until_1_11, 0x104 SIE, 0x105 STVEC, 0x106 SCOUNTEREN,
    0x10a SENVCFG since_1_12, 0x10c SSTATEEN0, 0x10d SSTATEEN1, 0x10e SSTATEEN2, 0x10f SSTATEEN3,
    0x114 SIEH, 0x120 SCOUNTINHIBIT, 0x140 SSCRATCH, 0x141 SEPC, 0x142 SCAUSE, 0x143 STVAL,
    0x144 SIP, 0x14d STIMECMP, 0x14e SCTRCTL, 0x14f SCTRSTATUS, 0x150 SISELECT, 0x151 SIREG,
    0x152 SIREG2, 0x153 SIREG3, 0x154 SIPH, 0x155 SIREG4, 0x156 SIREG5, 0x157 SIREG6,
    0x15c STOPEI, 0x15d STIMECMPH, 0x15f SCTRDEPTH, 0x180 SATP, 0x181 SRMCFG, 0x200 VSSTATUS,
    0x204 VSIE, 0x205 VSTVEC, 0x214 VSIEH, 0x240 VSSCRATCH, 0x241 VSEPC, 0x242 VSCAUSE,
    0x243 VSTVAL, 0x244 VSIP, 0x24d VSTIMECMP, 0x24e VSCTRCTL, 0x250 VSISELECT, 0x251 VSIREG,
    0x252 VSIREG2, 0x253 VSIREG3, 0x254 VSIPH, 0x255 VSIREG4, 0x256 VSIREG5, 0x257 VSIREG6,
    0x25c VSTOPEI, 0x25d VSTIMECMPH, 0x280 VSATP, 0x300 MSTATUS, 0x301 MISA, 0x302 MEDELEG,
    0x303 MIDELEG, 0x304 MIE, 0x305 MTVEC, 0x306 MCOUNTEREN, 0x308 MVIEN, 0x309 MVIP,
    0x30a MENVCFG since_1_12, 0x30c MSTATEEN0, 0x30d MSTATEEN1, 0x30e MSTATEEN2, 0x30f MSTATEEN3,
    0x310 MSTATUSH since_1_12, 0x312 MEDELEGH since_1_13, 0x313 MIDELEGH, 0x314 MIEH,
    0x318 MVIENH, 0x319 MVIPH, 0x31a MENVCFGH since_1_12, 0x31c MSTATEEN0H, 0x31d MSTATEEN1H,
    0x31e MSTATEEN2H, 0x31f MSTATEEN3H, 0x320 MCOUNTINHIBIT since_1_11, 0x321 MCYCLECFG,
    0x322 MINSTRETCFG, 0x323 MHPMEVENT3, 0x324 MHPMEVENT4, 0x325 MHPMEVENT5, 0x326 MHPMEVENT6,
    0x327 MHPMEVENT7, 0x328 MHPMEVENT8, 0x329 MHPMEVENT9, 0x32a MHPMEVENT10, 0x32b MHPMEVENT11,
    0x32c MHPMEVENT12, 0x32d MHPMEVENT13, 0x32e MHPMEVENT14, 0x32f MHPMEVENT15, 0x330 MHPMEVENT16,
    0x331 MHPMEVENT17, 0x332 MHPMEVENT18, 0x333 MHPMEVENT19, 0x334 MHPMEVENT20, 0x335 MHPMEVENT21,
    0x336 MHPMEVENT22, 0x337 MHPMEVENT23, 0x338 MHPMEVENT24, 0x339 MHPMEVENT25, 0x33a MHPMEVENT26,
    0x33b MHPMEVENT27, 0x33c MHPMEVENT28, 0x33d MHPMEVENT29, 0x33e MHPMEVENT30, 0x33f MHPMEVENT31,
    0x340 MSCRATCH, 0x341 MEPC, 0x342 MCAUSE, 0x343 MTVAL, 0x344 MIP, 0x34a MTINST since_1_12,
    0x34b MTVAL2 since_1_12, 0x34e MCTRCTL, 0x350 MISELECT, 0x351 MIREG, 0x352 MIREG2,
    0x353 MIREG3, 0x354 MIPH, 0x355 MIREG4, 0x356 MIREG5, 0x357 MIREG6, 0x35c MTOPEI,
    0x3a0 PMPCFG0, 0x3a1 PMPCFG1, 0x3a2 PMPCFG2, 0x3a3 PMPCFG3, 0x3a4 PMPCFG4 since_1_12,
    0x3a5 PMPCFG5 since_1_12, 0x3a6 PMPCFG6 since_1_12, 0x3a7 PMPCFG7 since_1_12,
    0x3a8 PMPCFG8 since_1_12, 0x3a9 PMPCFG9 since_1_12, 0x3aa PMPCFG10 since_1_12,
    0x3ab PMPCFG11 since_1_12, 0x3ac PMPCFG12 since_1_12, 0x3ad PMPCFG13 since_1_12,
    0x3ae PMPCFG14 since_1_12, 0x3af PMPCFG15 since_1_12, 0x3b0 PMPADDR0, 0x3b1 PMPADDR1,
    0x3b2 PMPADDR2, 0x3b3 PMPADDR3, 0x3b4 PMPADDR4, 0x3b5 PMPADDR5, 0x3b6 PMPADDR6,
    0x3b7 PMPADDR7, 0x3b8 PMPADDR8, 0x3b9 PMPADDR9, 0x3ba PMPADDR10, 0x3bb PMPADDR11,
    0x3bc PMPADDR12, 0x3bd PMPADDR13, 0x3be PMPADDR14, 0x3bf PMPADDR15,
    0x3c0 PMPADDR16 since_1_12, 0x3c1 PMPADDR17 since_1_12, 0x3c2 PMPADDR18 since_1_12,
    0x3c3 PMPADDR19 since_1_12, 0x3c4 PMPADDR20 since_1_12, 0x3c5 PMPADDR21 since_1_12,
    0x3c6 PMPADDR22 since_1_12, 0x3c7 PMPADDR23 since_1_12, 0x3c8 PMPADDR24 since_1_12,
    0x3c9 PMPADDR25 since_1_12, 0x3ca PMPADDR26 since_1_12, 0x3cb PMPADDR27 since_1_12,
    0x3cc PMPADDR28 since_1_12, 0x3cd PMPADDR29 since_1_12, 0x3ce PMPADDR30 since_1_12,
    0x3cf PMPADDR31 since_1_12, 0x3d0 PMPADDR32 since_1_12, 0x3d1 PMPADDR33 since_1_12,
    0x3d2 PMPADDR34 since_1_12, 0x3d3 PMPADDR35 since_1_12, 0x3d4 PMPADDR36 since_1_12,
    0x3d5 PMPADDR37 since_1_12, 0x3d6 PMPADDR38 since_1_12, 0x3d7 PMPADDR39 since_1_12,
    0x3d8 PMPADDR40 since_1_12, 0x3d9 PMPADDR41 since_1_12, 0x3da PMPADDR42 since_1_12,
    0x3db PMPADDR43 since_1_12, 0x3dc PMPADDR44 since_1_12, 0x3dd PMPADDR45 since_1_12,
    0x3de PMPADDR46 since_1_12, 0x3df PMPADDR47 since_1_12, 0x3e0 PMPADDR48 since_1_12,
    0x3e1 PMPADDR49 since_1_12, 0x3e2 PMPADDR50 since_1_12, 0x3e3 PMPADDR51 since_1_12,
    0x3e4 PMPADDR52 since_1_12, 0x3e5 PMPADDR53 since_1_12, 0x3e6 PMPADDR54 since_1_12,
    0x3e7 PMPADDR55 since_1_12, 0x3e8 PMPADDR56 since_1_12, 0x3e9 PMPADDR57 since_1_12,
    0x3ea PMPADDR58 since_1_12, 0x3eb PMPADDR59 since_1_12, 0x3ec PMPADDR60 since_1_12,
    0x3ed PMPADDR61 since_1_12, 0x3ee PMPADDR62 since_1_12, 0x3ef PMPADDR63 since_1_12,
    0x5a8 SCONTEXT, 0x600 HSTATUS, 0x602 HEDELEG, 0x603 HIDELEG, 0x604 HIE, 0x605 HTIMEDELTA,
    0x606 HCOUNTEREN, 0x607 HGEIE, 0x608 HVIEN, 0x609 HVICTL, 0x60a HENVCFG, 0x60c HSTATEEN0,
    0x60d HSTATEEN1, 0x60e HSTATEEN2, 0x60f HSTATEEN3, 0x612 HEDELEGH since_1_13, 0x613 HIDELEGH,
    0x615 HTIMEDELTAH, 0x618 HVIENH, 0x61a HENVCFGH, 0x61c HSTATEEN0H, 0x61d HSTATEEN1H,
    0x61e HSTATEEN2H, 0x61f HSTATEEN3H, 0x643 HTVAL, 0x644 HIP, 0x645 HVIP, 0x646 HVIPRIO1,
    0x647 HVIPRIO2, 0x64a HTINST, 0x655 HVIPH, 0x656 HVIPRIO1H, 0x657 HVIPRIO2H, 0x680 HGATP,
    0x6a8 HCONTEXT, 0x721 MCYCLECFGH, 0x722 MINSTRETCFGH, 0x723 MHPMEVENT3H, 0x724 MHPMEVENT4H,
    0x725 MHPMEVENT5H, 0x726 MHPMEVENT6H, 0x727 MHPMEVENT7H, 0x728 MHPMEVENT8H, 0x729 MHPMEVENT9H,
    0x72a MHPMEVENT10H, 0x72b MHPMEVENT11H, 0x72c MHPMEVENT12H, 0x72d MHPMEVENT13H,
    0x72e MHPMEVENT14H, 0x72f MHPMEVENT15H, 0x730 MHPMEVENT16H, 0x731 MHPMEVENT17H,
    0x732 MHPMEVENT18H, 0x733 MHPMEVENT19H, 0x734 MHPMEVENT20H, 0x735 MHPMEVENT21H,
    0x736 MHPMEVENT22H, 0x737 MHPMEVENT23H, 0x738 MHPMEVENT24H, 0x739 MHPMEVENT25H,
    0x73a MHPMEVENT26H, 0x73b MHPMEVENT27H, 0x73c MHPMEVENT28H, 0x73d MHPMEVENT29H,
    0x73e MHPMEVENT30H, 0x73f MHPMEVENT31H, 0x740 MNSCRATCH, 0x741 MNEPC, 0x742 MNCAUSE,
    0x744 MNSTATUS, 0x747 MSECCFG since_1_12, 0x757 MSECCFGH since_1_12, 0x7a0 TSELECT,
    0x7a1 TDATA1, 0x7a2 TDATA2, 0x7a3 TDATA3, 0x7a4 TINFO, 0x7a5 TCONTROL, 0x7a8 MCONTEXT,
    0x7aa MSCONTEXT, 0x7b0 DCSR, 0x7b1 DPC, 0x7b2 DSCRATCH0, 0x7b3 DSCRATCH1, 0xb00 MCYCLE,
    0xb02 MINSTRET, 0xb03 MHPMCOUNTER3, 0xb04 MHPMCOUNTER4, 0xb05 MHPMCOUNTER5,
    0xb06 MHPMCOUNTER6, 0xb07 MHPMCOUNTER7, 0xb08 MHPMCOUNTER8, 0xb09 MHPMCOUNTER9,
    0xb0a MHPMCOUNTER10, 0xb0b MHPMCOUNTER11, 0xb0c MHPMCOUNTER12, 0xb0d MHPMCOUNTER13,
    0xb0e MHPMCOUNTER14, 0xb0f MHPMCOUNTER15, 0xb10 MHPMCOUNTER16, 0xb11 MHPMCOUNTER17,
    0xb12 MHPMCOUNTER18, 0xb13 MHPMCOUNTER19, 0xb14 MHPMCOUNTER20, 0xb15 MHPMCOUNTER21,
    0xb16 MHPMCOUNTER22, 0xb17 MHPMCOUNTER23, 0xb18 MHPMCOUNTER24, 0xb19 MHPMCOUNTER25,
    0xb1a MHPMCOUNTER26, 0xb1b MHPMCOUNTER27, 0xb1c MHPMCOUNTER28, 0xb1d MHPMCOUNTER29,
    0xb1e MHPMCOUNTER30, 0xb1f MHPMCOUNTER31, 0xb80 MCYCLEH, 0xb82 MINSTRETH, 0xb83 MHPMCOUNTER3H,
    0xb84 MHPMCOUNTER4H, 0xb85 MHPMCOUNTER5H, 0xb86 MHPMCOUNTER6H, 0xb87 MHPMCOUNTER7H,
    0xb88 MHPMCOUNTER8H, 0xb89 MHPMCOUNTER9H, 0xb8a MHPMCOUNTER10H, 0xb8b MHPMCOUNTER11H,
    0xb8c MHPMCOUNTER12H, 0xb8d MHPMCOUNTER13H, 0xb8e MHPMCOUNTER14H, 0xb8f MHPMCOUNTER15H,
    0xb90 MHPMCOUNTER16H, 0xb91 MHPMCOUNTER17H, 0xb92 MHPMCOUNTER18H, 0xb93 MHPMCOUNTER19H,
    0xb94 MHPMCOUNTER20H, 0xb95 MHPMCOUNTER21H, 0xb96 MHPMCOUNTER22H, 0xb97 MHPMCOUNTER23H,
    0xb98 MHPMCOUNTER24H, 0xb99 MHPMCOUNTER25H, 0xb9a MHPMCOUNTER26H, 0xb9b MHPMCOUNTER27H,
    0xb9c MHPMCOUNTER28H, 0xb9d MHPMCOUNTER29H, 0xb9e MHPMCOUNTER30H, 0xb9f MHPMCOUNTER31H,
    0xc00 CYCLE, 0xc01 TIME, 0xc02 INSTRET, 0xc03 HPMCOUNTER3, 0xc04 HPMCOUNTER4,
    0xc05 HPMCOUNTER5, 0xc06 HPMCOUNTER6, 0xc07 HPMCOUNTER7, 0xc08 HPMCOUNTER8, 0xc09 HPMCOUNTER9,
    0xc0a HPMCOUNTER10, 0xc0b HPMCOUNTER11, 0xc0c HPMCOUNTER12, 0xc0d HPMCOUNTER13,
    0xc0e HPMCOUNTER14, 0xc0f HPMCOUNTER15, 0xc10 HPMCOUNTER16, 0xc11 HPMCOUNTER17,
    0xc12 HPMCOUNTER18, 0xc13 HPMCOUNTER19, 0xc14 HPMCOUNTER20, 0xc15 HPMCOUNTER21,
    0xc16 HPMCOUNTER22, 0xc17 HPMCOUNTER23, 0xc18 HPMCOUNTER24, 0xc19 HPMCOUNTER25,
    0xc1a HPMCOUNTER26, 0xc1b HPMCOUNTER27, 0xc1c HPMCOUNTER28, 0xc1d HPMCOUNTER29,
    0xc1e HPMCOUNTER30, 0xc1f HPMCOUNTER31, 0xc20 VL, 0xc21 VTYPE, 0xc22 VLENB, 0xc80 CYCLEH,
    0xc81 TIMEH, 0xc82 INSTRETH, 0xc83 HPMCOUNTER3H, 0xc84 HPMCOUNTER4H, 0xc85 HPMCOUNTER5H,
    0xc86 HPMCOUNTER6H, 0xc87 HPMCOUNTER7H, 0xc88 HPMCOUNTER8H, 0xc89 HPMCOUNTER9H,
    0xc8a HPMCOUNTER10H, 0xc8b HPMCOUNTER11H, 0xc8c HPMCOUNTER12H, 0xc8d HPMCOUNTER13H,
    0xc8e HPMCOUNTER14H, 0xc8f HPMCOUNTER15H, 0xc90 HPMCOUNTER16H, 0xc91 HPMCOUNTER17H,
    0xc92 HPMCOUNTER18H, 0xc93 HPMCOUNTER19H, 0xc94 HPMCOUNTER20H, 0xc95 HPMCOUNTER21H,
    0xc96 HPMCOUNTER22H, 0xc97 HPMCOUNTER23H, 0xc98 HPMCOUNTER24H, 0xc99 HPMCOUNTER25H,
    0xc9a HPMCOUNTER26H, 0xc9b HPMCOUNTER27H, 0xc9c HPMCOUNTER28H, 0xc9d HPMCOUNTER29H,
    0xc9e HPMCOUNTER30H, 0xc9f HPMCOUNTER31H, 0xda0 SCOUNTOVF, 0xdb0 STOPI, 0xe12 HGEIP,
    0xeb0 VSTOPI, 0xf11 MVENDORID, 0xf12 MARCHID, 0xf13 MIMPID, 0xf14 MHARTID,
    0xf15 MCONFIGPTR since_1_12, 0xfb0 MTOPI,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_names_are_unique() {
        assert!(ROWS.is_sorted_by(|a, b| a.number < b.number));
        for row in ROWS {
            assert_eq!(number(row.name), Some(row.number), "{}", row.name);
        }
        for (alias, at) in ALIASES {
            assert_eq!(number(alias), Some(*at));
        }
    }

    #[test]
    fn versions_come_and_go() {
        assert_eq!(name_in(0x30a, Priv::V1_11), None);
        assert_eq!(name_in(0x30a, Priv::V1_12), Some("menvcfg"));
        assert_eq!(name_in(0x000, Priv::V1_11), Some("ustatus"));
        assert_eq!(name(0x000), None);
        assert_eq!(number("ustatus"), Some(0));
        assert_eq!(name(0x7c0), None);
    }

    #[test]
    fn constants_have_the_number_of_their_name() {
        for (constant, name) in [
            (FFLAGS, "fflags"),
            (MSTATUS, "mstatus"),
            (MHPMCOUNTER31H, "mhpmcounter31h"),
            (MTOPI, "mtopi"),
        ] {
            assert_eq!(number(name), Some(constant));
        }
        assert_eq!((MSTATUS, draft::SCTRSTATUS), (0x300, 0x183));
        let lower = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_uppercase());
        assert!(ROWS.iter().all(|row| lower(row.name)));
    }

    #[test]
    fn control_transfer_records_have_two_maps() {
        for (n, at) in [
            ("sctrctl", 0x14e),
            ("sctrstatus", 0x14f),
            ("sctrdepth", 0x15f),
            ("vsctrctl", 0x24e),
            ("mctrctl", 0x34e),
        ] {
            assert_eq!((number(n), name(at)), (Some(at), Some(n)));
        }
        assert_eq!(draft_number("sctrstatus"), Some(0x183));
        assert_eq!(draft_name(0x282), Some("vsctrcontrolh"));
    }
}
