//! Which instruction set: the base width and the extensions, from an ISA
//! string such as `rv64gc_zba` or `rv32i2p1_m2p0_c2p0`.

mod silent;

use core::fmt;

/// Width of the integer registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Xlen {
    /// 32 bits.
    Rv32,
    /// 64 bits.
    Rv64,
}

impl Xlen {
    /// 32 or 64.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Xlen::Rv32 => 32,
            Xlen::Rv64 => 64,
        }
    }

    /// An address or register value as this width holds it, zero-extended.
    #[must_use]
    #[inline]
    pub const fn wrap(self, value: u64) -> u64 {
        match self {
            Xlen::Rv32 => value & 0xffff_ffff,
            Xlen::Rv64 => value,
        }
    }
}

macro_rules! extensions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $(implies $($implied:ident)+)?;)+) => {
        /// An extension this crate knows by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Ext { $($(#[$doc])* $variant,)+ }

        impl Ext {
            pub(crate) const ALL: &'static [Ext] = &[$(Ext::$variant),+];

            /// The name as an ISA string spells it, in lower case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Ext::$variant => $name),+ }
            }

            /// This extension alone, as a set. The base is the empty set: every
            /// hart has it, with 16 registers or with 32.
            pub(crate) const fn bit(self) -> u128 {
                match self {
                    Ext::I => 0,
                    _ => 1 << (self as u8),
                }
            }

            /// The extensions that always come with this one, one level deep.
            const fn implied(self) -> &'static [Ext] {
                match self { $(Ext::$variant => &[$($(Ext::$implied),+)?]),+ }
            }
        }
    };
}

extensions! {
    /// Base integer instructions.
    I "i";
    /// Base with 16 registers.
    E "e";
    /// Multiplication and division.
    M "m" implies Zmmul;
    /// Atomics.
    A "a" implies Zaamo Zalrsc;
    /// Single-precision floating point.
    F "f" implies Zicsr;
    /// Double-precision floating point.
    D "d" implies F;
    /// Quad-precision floating point.
    Q "q" implies D;
    /// Compressed instructions; with F or D also [`Ext::Zcf`] and [`Ext::Zcd`].
    C "c" implies Zca;
    /// Bit manipulation, the usual three.
    B "b" implies Zba Zbb Zbs;
    /// Vectors.
    V "v" implies D Zve64d;
    /// Hypervisor.
    H "h";
    /// CSR access.
    Zicsr "zicsr";
    /// Instruction-fetch fence.
    Zifencei "zifencei";
    /// Base counters.
    Zicntr "zicntr" implies Zicsr;
    /// Performance counters.
    Zihpm "zihpm" implies Zicsr;
    /// Conditional zeroing.
    Zicond "zicond";
    /// Pause hint.
    Zihintpause "zihintpause";
    /// Non-temporal locality hints.
    Zihintntl "zihintntl";
    /// Cache-block management.
    Zicbom "zicbom";
    /// Cache-block prefetch.
    Zicbop "zicbop";
    /// Cache-block zeroing.
    Zicboz "zicboz";
    /// May-be-operations.
    Zimop "zimop";
    /// Compressed may-be-operations.
    Zcmop "zcmop" implies Zca;
    /// Shadow stack.
    Zicfiss "zicfiss" implies Zicsr Zimop;
    /// Landing pads.
    Zicfilp "zicfilp" implies Zicsr;
    /// Multiplication without division.
    Zmmul "zmmul";
    /// Atomic memory operations.
    Zaamo "zaamo";
    /// Load-reserved and store-conditional.
    Zalrsc "zalrsc";
    /// Wait on a reservation set.
    Zawrs "zawrs";
    /// Compare and swap.
    Zacas "zacas" implies Zaamo;
    /// Byte and halfword atomics.
    Zabha "zabha" implies Zaamo;
    /// Half-precision floating point.
    Zfh "zfh" implies Zfhmin;
    /// Half-precision loads, stores and conversions.
    Zfhmin "zfhmin" implies F;
    /// Additional scalar floating point.
    Zfa "zfa" implies F;
    /// Bfloat16 conversions.
    Zfbfmin "zfbfmin" implies F;
    /// Single precision in integer registers.
    Zfinx "zfinx" implies Zicsr;
    /// Double precision in integer registers.
    Zdinx "zdinx" implies Zfinx;
    /// Half precision in integer registers.
    Zhinx "zhinx" implies Zhinxmin;
    /// Half-precision conversions in integer registers.
    Zhinxmin "zhinxmin" implies Zfinx;
    /// Address generation.
    Zba "zba";
    /// Basic bit manipulation.
    Zbb "zbb";
    /// Carry-less multiplication.
    Zbc "zbc";
    /// Single-bit instructions.
    Zbs "zbs";
    /// Bit manipulation for cryptography.
    Zbkb "zbkb";
    /// Carry-less multiplication for cryptography.
    Zbkc "zbkc";
    /// Crossbar permutations.
    Zbkx "zbkx";
    /// Scalar cryptography.
    Zk "zk" implies Zkn Zkr Zkt;
    /// The NIST suite.
    Zkn "zkn" implies Zbkb Zbkc Zbkx Zkne Zknd Zknh;
    /// AES decryption.
    Zknd "zknd";
    /// AES encryption.
    Zkne "zkne";
    /// SHA-2.
    Zknh "zknh";
    /// Entropy source.
    Zkr "zkr";
    /// The ShangMi suite.
    Zks "zks" implies Zbkb Zbkc Zbkx Zksed Zksh;
    /// SM4.
    Zksed "zksed";
    /// SM3.
    Zksh "zksh";
    /// Data-independent timing.
    Zkt "zkt";
    /// The integer part of C.
    Zca "zca";
    /// Compressed single-precision loads and stores (RV32).
    Zcf "zcf" implies Zca F;
    /// Compressed double-precision loads and stores.
    Zcd "zcd" implies Zca D;
    /// More compressed instructions.
    Zcb "zcb" implies Zca;
    /// Push, pop and double move.
    Zcmp "zcmp" implies Zca;
    /// Table jumps.
    Zcmt "zcmt" implies Zca Zicsr;
    /// The code-size bundle for embedded harts.
    Zce "zce" implies Zcb Zcmp Zcmt;
    /// Total store ordering.
    Ztso "ztso";
    /// Embedded vectors up to double precision.
    Zve64d "zve64d" implies Zve64f D;
    /// Embedded vectors, 64-bit integers, single precision.
    Zve64f "zve64f" implies Zve64x Zve32f;
    /// Embedded vectors, 64-bit integers.
    Zve64x "zve64x" implies Zve32x;
    /// Embedded vectors, single precision.
    Zve32f "zve32f" implies Zve32x F;
    /// Embedded vectors, 32-bit integers.
    Zve32x "zve32x" implies Zicsr;
    /// Vectors of half precision.
    Zvfh "zvfh" implies Zvfhmin Zfhmin;
    /// Vector conversions of half precision.
    Zvfhmin "zvfhmin" implies Zve32f;
    /// Vector conversions of bfloat16.
    Zvfbfmin "zvfbfmin" implies Zve32f;
    /// Vector multiply-add of bfloat16.
    Zvfbfwma "zvfbfwma" implies Zvfbfmin Zfbfmin;
    /// Vector bit manipulation.
    Zvbb "zvbb" implies Zvkb;
    /// Vector carry-less multiplication.
    Zvbc "zvbc" implies Zve64x;
    /// Vector bit manipulation for cryptography.
    Zvkb "zvkb" implies Zve32x;
    /// Vector GCM and GMAC.
    Zvkg "zvkg" implies Zve32x;
    /// Vector AES.
    Zvkned "zvkned" implies Zve32x;
    /// Vector SHA-256.
    Zvknha "zvknha" implies Zve32x;
    /// Vector SHA-256 and SHA-512.
    Zvknhb "zvknhb" implies Zve64x;
    /// Vector SM4.
    Zvksed "zvksed" implies Zve32x;
    /// Vector SM3.
    Zvksh "zvksh" implies Zve32x;
    /// The vector NIST suite.
    Zvkn "zvkn" implies Zvkned Zvknhb Zvkb;
    /// The vector NIST suite with carry-less multiplication.
    Zvknc "zvknc" implies Zvkn Zvbc;
    /// The vector NIST suite with GCM.
    Zvkng "zvkng" implies Zvkn Zvkg;
    /// The vector ShangMi suite.
    Zvks "zvks" implies Zvksed Zvksh Zvkb;
    /// The vector ShangMi suite with carry-less multiplication.
    Zvksc "zvksc" implies Zvks Zvbc;
    /// The vector ShangMi suite with GCM.
    Zvksg "zvksg" implies Zvks Zvkg;
    /// Fine-grained TLB invalidation.
    Svinval "svinval";
    /// Resumable non-maskable interrupts.
    Smrnmi "smrnmi";
    /// State enables.
    Smstateen "smstateen";
    /// Indirect CSR access, over all levels.
    Smcsrind "smcsrind" implies Sscsrind;
    /// Indirect CSR access, supervisor level.
    Sscsrind "sscsrind";
    /// Counter overflow and filtering.
    Sscofpmf "sscofpmf";
    /// Control transfer records, machine level.
    Smctr "smctr" implies Smcsrind;
    /// Control transfer records, supervisor level.
    Ssctr "ssctr" implies Sscsrind;
    /// Supervisor timer compare.
    Sstc "sstc";
    /// Double traps, machine level.
    Smdbltrp "smdbltrp";
    /// Double traps, supervisor level.
    Ssdbltrp "ssdbltrp";
}

/// An instruction set: the base width and the extensions in force.
///
/// ```
/// use hartrace_isa::{Ext, Isa, Xlen};
///
/// let isa = Isa::parse("rv32imac_zicsr2p0_zba").unwrap();
/// assert_eq!(isa.xlen(), Xlen::Rv32);
/// assert!(isa.has(Ext::Zba) && !isa.has(Ext::D));
/// assert!(Isa::parse("rv64gc_znonsense").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Isa {
    xlen: Xlen,
    set: u128,
}

/// Why an ISA string was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaError<'a> {
    /// It does not start with `rv32` or `rv64`.
    Base(&'a str),
    /// The letter after the width is not `i`, `e` or `g`.
    BaseLetter(&'a str),
    /// An unknown extension.
    Unknown(&'a str),
    /// Two extensions that use the same encodings.
    Conflict(Ext, Ext),
}

impl fmt::Display for IsaError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IsaError::Base(s) => write!(f, "`{s}` does not start with rv32 or rv64"),
            IsaError::BaseLetter(s) => {
                write!(f, "`{s}`: the width must be followed by i, e or g")
            }
            IsaError::Unknown(s) => write!(f, "unknown extension `{s}`"),
            IsaError::Conflict(a, b) => write!(
                f,
                "`{}` and `{}` use the same encodings and exclude each other",
                a.name(),
                b.name()
            ),
        }
    }
}

impl core::error::Error for IsaError<'_> {}

impl Isa {
    /// `rv64gc`.
    pub const RV64GC: Isa = Isa::general(Xlen::Rv64);
    /// `rv32gc`.
    pub const RV32GC: Isa = Isa::general(Xlen::Rv32);

    /// `rv64gc` or `rv32gc`.
    #[must_use]
    pub const fn general(xlen: Xlen) -> Isa {
        Isa { xlen, set: 0 }
            .with(Ext::I)
            .with(Ext::M)
            .with(Ext::A)
            .with(Ext::D)
            .with(Ext::C)
            .with(Ext::Zicsr)
            .with(Ext::Zifencei)
    }

    /// Width of the integer registers.
    #[must_use]
    #[inline]
    pub const fn xlen(self) -> Xlen {
        self.xlen
    }

    /// Whether the extension is in force, named or implied.
    #[must_use]
    #[inline]
    pub const fn has(self, ext: Ext) -> bool {
        self.set >> (ext as u8) & 1 != 0
    }

    /// Whether every extension of a [`Ext::bit`] set is in force.
    #[inline]
    pub(crate) const fn covers(self, set: u128) -> bool {
        self.set & set == set
    }

    /// This instruction set with one more extension and all it implies.
    ///
    /// C brings Zcf (RV32 with F) and Zcd (with D), unless Zcmp or Zcmt
    /// already claim the encodings of Zcd.
    #[must_use]
    pub const fn with(self, ext: Ext) -> Isa {
        let mut isa = self.add(ext);
        if isa.has(Ext::C) {
            if isa.has(Ext::F) && matches!(isa.xlen, Xlen::Rv32) {
                isa = isa.add(Ext::Zcf);
            }
            if isa.has(Ext::D) && !isa.has(Ext::Zcmp) && !isa.has(Ext::Zcmt) {
                isa = isa.add(Ext::Zcd);
            }
        }
        if isa.has(Ext::Zce) && isa.has(Ext::F) && matches!(isa.xlen, Xlen::Rv32) {
            isa = isa.add(Ext::Zcf);
        }
        isa
    }

    /// This instruction set without one extension; what it implied or what
    /// stands on it stays.
    #[must_use]
    pub const fn without(self, ext: Ext) -> Isa {
        Isa {
            set: self.set & !(1 << (ext as u8)),
            ..self
        }
    }

    const fn add(mut self, ext: Ext) -> Isa {
        if self.has(ext) {
            return self;
        }
        self.set |= 1 << (ext as u8);
        let implied = ext.implied();
        let mut i = 0;
        while i < implied.len() {
            // `const fn` has no iterators; the loop condition bounds the index.
            #[allow(clippy::indexing_slicing)]
            let next = implied[i];
            self = self.add(next);
            i += 1;
        }
        self
    }

    /// Reads an ISA string, with or without versions, in either case. Vendor
    /// extensions (`x...`) are accepted and ignored, and so are the ratified
    /// ones that add nothing to decode, by their names.
    ///
    /// # Errors
    ///
    /// What is not an ISA string, extensions that are not known, and pairs
    /// that exclude each other.
    pub fn parse(text: &str) -> Result<Isa, IsaError<'_>> {
        Isa::read(text, true)
    }

    /// As [`Isa::parse`], for strings that a tool chain wrote: unknown
    /// extensions are left out, and where two exclude each other the newer one
    /// (Zcmp, Zcmt) holds.
    ///
    /// # Errors
    ///
    /// What is not an ISA string.
    pub fn parse_lenient(text: &str) -> Result<Isa, IsaError<'_>> {
        Isa::read(text, false)
    }

    fn read(text: &str, strict: bool) -> Result<Isa, IsaError<'_>> {
        let bad = IsaError::Base(text);
        let (head, rest) = text.split_at_checked(4).ok_or(bad)?;
        let xlen = if head.eq_ignore_ascii_case("rv32") {
            Xlen::Rv32
        } else if head.eq_ignore_ascii_case("rv64") {
            Xlen::Rv64
        } else {
            return Err(bad);
        };
        let mut isa = Isa { xlen, set: 0 };
        let mut parts = rest.split('_');
        let letters = parts.next().unwrap_or_default();
        isa = isa.read_letters(letters, strict, text)?;
        for part in parts.filter(|p| !p.is_empty()) {
            isa = if is_multi_letter(part) {
                isa.read_name(part, strict)?
            } else {
                isa.read_singles(part, strict)?
            };
        }
        isa.settle(strict)
    }

    /// The base letter and the single-letter extensions up to the first `_`;
    /// a `z`, `s` or `x` name may follow them without one.
    fn read_letters<'a>(
        self,
        letters: &'a str,
        strict: bool,
        whole: &'a str,
    ) -> Result<Isa, IsaError<'a>> {
        let base = letters.chars().next().map(|c| c.to_ascii_lowercase());
        let isa = match base {
            Some('i') => self.with(Ext::I),
            Some('e') => self.with(Ext::E),
            Some('g') => Isa {
                set: self.set | Isa::general(self.xlen).set,
                ..self
            }
            .without_compressed(),
            _ => return Err(IsaError::BaseLetter(whole)),
        };
        let after = letters.get(1..).unwrap_or_default();
        // Up to version 2.0 the base had what became Zicsr and Zifencei.
        let old = after.starts_with("2p0") || after.starts_with("1p");
        let isa = match base {
            Some('i') if old => isa.with(Ext::Zicsr).with(Ext::Zifencei),
            _ => isa,
        };
        isa.read_singles(skip_version(after), strict)
    }

    /// `g` is everything of [`Isa::general`] but C.
    const fn without_compressed(self) -> Isa {
        let c = 1 << (Ext::C as u8) | 1 << (Ext::Zca as u8);
        let fd = 1 << (Ext::Zcf as u8) | 1 << (Ext::Zcd as u8);
        Isa {
            set: self.set & !(c | fd),
            ..self
        }
    }

    fn read_singles(mut self, mut letters: &str, strict: bool) -> Result<Isa, IsaError<'_>> {
        while let Some(first) = letters.chars().next() {
            if is_multi_letter(letters) {
                return self.read_name(letters, strict);
            }
            let (one, rest) = letters.split_at(first.len_utf8());
            let known = Ext::ALL.iter().find(|e| e.name().eq_ignore_ascii_case(one));
            match known {
                Some(&ext) => self = self.with(ext),
                // Modes, not extensions, in strings of old simulators.
                None if one.eq_ignore_ascii_case("s") || one.eq_ignore_ascii_case("u") => {}
                None if strict => return Err(IsaError::Unknown(one)),
                None => {}
            }
            letters = skip_version(rest);
        }
        Ok(self)
    }

    fn read_name(self, name: &str, strict: bool) -> Result<Isa, IsaError<'_>> {
        let bare = strip_version(name);
        let known = Ext::ALL
            .iter()
            .find(|e| e.name().eq_ignore_ascii_case(bare));
        match known {
            Some(&ext) => Ok(self.with(ext)),
            None if !strict || is_vendor(bare) => Ok(self),
            None if silent::NAMES.iter().any(|n| n.eq_ignore_ascii_case(bare)) => Ok(self),
            None => Err(IsaError::Unknown(bare)),
        }
    }

    /// Zcd and Zcmp/Zcmt share encodings: `c.fsdsp` and `cm.*`.
    fn settle(self, strict: bool) -> Result<Isa, IsaError<'static>> {
        let cm = [Ext::Zcmp, Ext::Zcmt].into_iter().find(|&e| self.has(e));
        match cm {
            Some(cm) if self.has(Ext::Zcd) || (self.has(Ext::C) && self.has(Ext::D)) => {
                if strict {
                    return Err(IsaError::Conflict(Ext::Zcd, cm));
                }
                Ok(Isa {
                    set: self.set & !(1 << (Ext::Zcd as u8)),
                    ..self
                })
            }
            _ => Ok(self),
        }
    }

    /// Every extension name that [`Isa::parse`] accepts, in lower case, but
    /// those of vendors.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let known = Ext::ALL.iter().map(|e| e.name());
        known.chain(silent::NAMES.iter().copied())
    }

    /// The extensions in force, in the order of [`Ext`].
    pub fn extensions(self) -> impl Iterator<Item = Ext> {
        Ext::ALL.iter().copied().filter(move |&e| self.has(e))
    }
}

/// `rv64imafdc_zicsr_zifencei...`: single letters first, then every other
/// extension in force.
impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rv{}", self.xlen.bits())?;
        for ext in self.extensions().filter(|e| e.name().len() == 1) {
            f.write_str(ext.name())?;
        }
        for ext in self.extensions().filter(|e| e.name().len() > 1) {
            write!(f, "_{}", ext.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Names that start with z, s or x have several letters; a lone `s` is a mode,
/// and so are the letters of `su`.
fn is_multi_letter(text: &str) -> bool {
    let supm = text
        .get(..4)
        .is_some_and(|t| t.eq_ignore_ascii_case("supm"));
    let mut chars = text.chars().map(|c| c.to_ascii_lowercase());
    matches!(chars.next(), Some('z' | 's' | 'x'))
        && chars
            .next()
            .is_some_and(|c| c.is_ascii_lowercase() && (c != 'u' || supm))
}

/// Vendor extensions start with an x; what they are called is their own matter.
fn is_vendor(name: &str) -> bool {
    name.starts_with(['x', 'X'])
}

/// Drops a version such as `2p1` or `2` before the next letter.
fn skip_version(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == text.len() {
        return text;
    }
    let minor = rest.strip_prefix(['p', 'P']).unwrap_or_default();
    let after = minor.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() == minor.len() {
        rest
    } else {
        after
    }
}

/// Drops a version such as `2p1` at the end of a name; digits that belong to
/// the name stay: they are followed by a letter (`zve32x`), or there is not
/// much of a name without them (`sv39`, `ss1p12`).
fn strip_version(name: &str) -> &str {
    let digits = |c: char| c.is_ascii_digit();
    let major = name.trim_end_matches(digits);
    if major.len() == name.len() {
        return name;
    }
    let bare = match major.strip_suffix(['p', 'P']) {
        Some(m) if m.ends_with(digits) => m.trim_end_matches(digits),
        _ => major,
    };
    if bare.len() == 2 && bare.starts_with(['s', 'S']) {
        name
    } else {
        bare
    }
}

#[cfg(test)]
mod tests;
