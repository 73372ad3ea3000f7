//! The names of ratified extensions that are not in [`Ext`](super::Ext): they
//! add no instructions, or none that are decoded.

/// In lower case.
#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    // Properties of memory and caches.
    "zic64b", "ziccamoa", "ziccamoc", "ziccif", "zicclsm", "ziccrse",
    "za64rs", "za128rs", "zama16b",
    // The least length of a vector register.
    "zvl32b", "zvl64b", "zvl128b", "zvl256b", "zvl512b", "zvl1024b",
    "zvl2048b", "zvl4096b", "zvl8192b", "zvl16384b", "zvl32768b", "zvl65536b",
    // Vector instructions whose time does not depend on data.
    "zvkt",
    // Versions of the privileged manual.
    "sm1p11", "sm1p12", "sm1p13", "ss1p11", "ss1p12", "ss1p13",
    // Machine level.
    "smaia", "smcdeleg", "smcntrpmf", "smepmp", "smmpm", "smnpm",
    // Supervisor level.
    "ssaia", "ssccfg", "ssccptr", "sscounterenw", "ssnpm", "sspm", "ssqosid",
    "ssstateen", "ssstrict", "sstvala", "sstvecd", "ssu64xl", "supm",
    // Virtual memory.
    "sv32", "sv39", "sv48", "sv57", "svade", "svadu", "svbare", "svnapot",
    "svpbmt", "svrsw60t59b", "svvptc",
    // Hypervisor.
    "sha", "shcounterenw", "shgatpa", "shlcofideleg", "shtvala", "shvsatpa",
    "shvstvala", "shvstvecd",
    // Debug.
    "sdext", "sdtrig",
];
