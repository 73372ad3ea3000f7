//! The control registers.

use core::fmt;

use hartrace_flow::Mode;
use hartrace_isa::Itype;

use crate::version::Version;

/// Fields of a control register, whatever its map: `mctrctl`, `vsctrctl`, or
/// `mctrcontrol`, `vsctrcontrol` of 0.1.4. The depth is kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Control(u64);

/// Bit numbers that differ: the field, 0.1.4, 1.0 (`None`: not there).
const MOVED: [(Control, u32, Option<u32>); 7] = [
    (Control::M, 0, Some(2)),
    (Control::S, 1, Some(1)),
    (Control::U, 2, Some(0)),
    (Control::MTE, 8, Some(9)),
    (Control::STE, 9, Some(8)),
    (Control::RASEMU, 10, Some(7)),
    (Control::ETEN, 38, None),
];

/// Fields whose place is the same: the freezes, and the filters but ETEN.
const FIXED: u64 = 0x0000_ff3e_0000_1800;

/// Types by their codes that exist: all but 0, 6 and 7.
const TYPES: u16 = 0xff3e;

/// `DEPTH` of 0.1.4, and where it starts.
const DEPTH: u64 = 0xf << DEPTH_AT;
const DEPTH_AT: u32 = 16;

/// `CLR` of 0.1.4.
const CLR: u64 = 1 << 7;

macro_rules! fields {
    ($($(#[$doc:meta])+ $name:ident = $bit:literal;)+) => {
        impl Control {
            $($(#[$doc])+ pub const $name: Control = Control(1 << $bit);)+

            /// The fields by name, in the order of 1.0.
            pub const NAMES: &'static [(&'static str, Control)] =
                &[$((stringify!($name), Control::$name)),+];
        }
    };
}

// The places of 1.0.
fields! {
    /// Records in U-mode; in `vsctrctl` in VU-mode.
    U = 0;
    /// Records in S-mode; in `vsctrctl` in VS-mode.
    S = 1;
    /// Records in M-mode.
    M = 2;
    /// Emulates a return-address stack (5.4).
    RASEMU = 7;
    /// Records traps into S-mode when S is 0; in `vsctrctl` into VS-mode.
    STE = 8;
    /// Records traps into M-mode when M is 0.
    MTE = 9;
    /// Freezes on a breakpoint exception.
    BPFRZ = 11;
    /// Freezes on a local counter overflow interrupt.
    LCOFIFRZ = 12;
    /// Exceptions are not recorded.
    EXCINH = 33;
    /// Interrupts are not recorded.
    INTRINH = 34;
    /// Returns from traps are not recorded.
    TRETINH = 35;
    /// Branches that are not taken are recorded.
    NTBREN = 36;
    /// Taken branches are not recorded.
    TKBRINH = 37;
    /// Traps from an enabled to a disabled mode are recorded, if the target
    /// agrees: 0.1.4 only.
    ETEN = 38;
    /// Indirect calls are not recorded.
    INDCALLINH = 40;
    /// Direct calls are not recorded.
    DIRCALLINH = 41;
    /// Indirect jumps without linkage are not recorded.
    INDJMPINH = 42;
    /// Direct jumps without linkage are not recorded.
    DIRJMPINH = 43;
    /// Co-routine swaps are not recorded.
    CORSWAPINH = 44;
    /// Function returns are not recorded.
    RETINH = 45;
    /// Other indirect jumps, with linkage, are not recorded.
    INDLJMPINH = 46;
    /// Other direct jumps, with linkage, are not recorded.
    DIRLJMPINH = 47;
}

/// Names that 0.1.4 has for fields of 1.0.
const DRAFT_NAMES: [(&str, &str); 4] = [
    ("INDJMPINH", "INDJUMPINH"),
    ("DIRJMPINH", "DIRJUMPINH"),
    ("INDLJMPINH", "INDOJMPINH"),
    ("DIRLJMPINH", "DIROJMPINH"),
];

impl Control {
    /// No field is set.
    pub const NONE: Control = Control(0);
    /// Every field of either map.
    pub const ALL: Control = Control(FIXED | 0x40_0000_0387);
    /// Recording in M-, S- and U-mode.
    pub const MODES: Control = Control(7);
    /// The filters by which transfers that are taken are not recorded.
    pub const INHIBITS: Control = Control(0xff2e << 32);

    /// These fields and others.
    #[must_use]
    pub const fn with(self, other: Control) -> Control {
        Control(self.0 | other.0)
    }

    /// These fields without others.
    #[must_use]
    pub const fn without(self, other: Control) -> Control {
        Control(self.0 & !other.0)
    }

    /// The fields both have.
    #[must_use]
    pub const fn and(self, other: Control) -> Control {
        Control(self.0 & other.0)
    }

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn has(self, other: Control) -> bool {
        self.0 & other.0 == other.0
    }

    /// The filters by which only transfers of these types are recorded.
    #[must_use]
    pub fn recording(kinds: impl IntoIterator<Item = Itype>) -> Control {
        let codes = kinds.into_iter().map(|kind| 1u64 << kind.code());
        let wanted = codes.fold(0, |all, one| all | one);
        // Each filter stands at 32 and its code; one of them is an enable.
        let filters = !wanted ^ 1 << Itype::NotTaken.code();
        Control((filters & u64::from(TYPES)) << 32)
    }

    /// The types that the filters let through.
    pub fn recorded(self) -> impl Iterator<Item = Itype> {
        let types = self.types();
        let kinds = (0..16).filter(move |code| types >> code & 1 != 0);
        kinds.filter_map(Itype::from_code)
    }

    /// The field of this name, in either map, in either case.
    #[must_use]
    pub fn field(name: &str) -> Option<Control> {
        let draft = DRAFT_NAMES
            .iter()
            .find(|(_, draft)| draft.eq_ignore_ascii_case(name));
        let name = draft.map_or(name, |(ratified, _)| ratified);
        let mut names = Control::NAMES.iter();
        names
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, field)| *field)
    }

    /// The names of the set fields, as a version has them.
    pub fn names(self, version: Version) -> impl Iterator<Item = &'static str> {
        let set = Control::NAMES.iter().filter(move |(_, f)| self.has(*f));
        set.map(move |(name, _)| {
            let draft = DRAFT_NAMES.iter().find(|(ratified, _)| ratified == name);
            match (version, draft) {
                (Version::V0_1_4, Some((_, draft))) => *draft,
                _ => *name,
            }
        })
    }

    /// The fields in a register of a version.
    #[must_use]
    pub fn from_bits(version: Version, bits: u64) -> Control {
        let mut control = Control(bits & FIXED);
        for (field, draft, ratified) in MOVED {
            let bit = match version {
                Version::V0_1_4 => Some(draft),
                Version::V1_0 => ratified,
            };
            if bit.is_some_and(|bit| bits >> bit & 1 != 0) {
                control = control.with(field);
            }
        }
        control
    }

    /// A register of a version with these fields.
    #[must_use]
    pub fn to_bits(self, version: Version) -> u64 {
        let mut bits = self.0 & FIXED;
        for (field, draft, ratified) in MOVED {
            let bit = match version {
                Version::V0_1_4 => Some(draft),
                Version::V1_0 => ratified,
            };
            if let (true, Some(bit)) = (self.has(field), bit) {
                bits |= 1 << bit;
            }
        }
        bits
    }

    /// Whether a mode is enabled by the register that concerns it: this one.
    pub(crate) const fn enables(self, mode: Mode) -> bool {
        match mode {
            Mode::U | Mode::VU => self.has(Control::U),
            Mode::S | Mode::VS => self.has(Control::S),
            Mode::M => self.has(Control::M),
            Mode::D => false,
        }
    }

    /// The types that the filters let through, a bit for each code.
    pub(crate) const fn types(self) -> u16 {
        // Each filter stands at 32 and its code; one of them is an enable.
        let filters = (self.0 >> 32) as u16;
        (!filters ^ 1 << Itype::NotTaken.code()) & TYPES
    }
}

impl fmt::Display for Control {
    /// The names of the set fields of 1.0, or `-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for name in self.names(Version::V1_0) {
            let gap = if core::mem::take(&mut first) { "" } else { " " };
            write!(f, "{gap}{name}")?;
        }
        if first { f.write_str("-") } else { Ok(()) }
    }
}

/// Whether a write to a control register of 0.1.4 asks to clear.
pub(crate) const fn asks_to_clear(bits: u64) -> bool {
    bits & CLR != 0
}

/// The depth a write to a control register of 0.1.4 asks for. Codes that are no
/// thermometer count up to their highest bit.
pub(crate) const fn wished_depth(bits: u64) -> u16 {
    let code = (bits & DEPTH) >> DEPTH_AT;
    16 << (64 - code.leading_zeros())
}

/// `DEPTH` of a control register of 0.1.4.
pub(crate) const fn depth_field(depth: u16) -> u64 {
    ((depth as u64 >> 4) - 1) << DEPTH_AT
}
