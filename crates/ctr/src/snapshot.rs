//! A snapshot: all CTR state at one point in time.

use alloc::vec::Vec;

use hartrace_flow::{HartId, Mode};
use hartrace_isa::Xlen;

use crate::control::Control;
use crate::record::Record;
use crate::version::Version;

/// What software that stops here would read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The hart.
    pub hart: HartId,
    /// The next instruction, where known.
    pub pc: Option<u64>,
    /// The mode the hart is in, where known.
    pub mode: Option<Mode>,
    /// Instructions retired so far, where known.
    pub instructions: Option<u64>,
    /// Cycles so far, in the unit of the source, where known.
    pub cycles: Option<u64>,
    /// The map the registers below are in.
    pub version: Version,
    /// MXLEN.
    pub xlen: Xlen,
    /// `mctrctl`, or `mctrcontrol`.
    pub control: u64,
    /// `vsctrctl`, or `vsctrcontrol`; 0 without a hypervisor.
    pub guest_control: u64,
    /// `sctrstatus`, or `mctrstatus`.
    pub status: u32,
    /// The chosen depth in entries.
    pub depth: u16,
    /// The logical entries 0 up to the depth: the newest first, with those
    /// that are not valid.
    pub entries: Vec<Record>,
}

/// `sctrstatus.WRPTR`.
const WRPTR: u32 = 0xff;

/// Of a hart of which nothing is known.
impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot {
            hart: HartId(0),
            pc: None,
            mode: None,
            instructions: None,
            cycles: None,
            version: Version::default(),
            xlen: Xlen::Rv64,
            control: 0,
            guest_control: 0,
            status: 0,
            depth: 16,
            entries: Vec::new(),
        }
    }
}

impl Snapshot {
    /// The fields of the machine's control register.
    #[must_use]
    pub fn fields(&self) -> Control {
        Control::from_bits(self.version, self.control)
    }

    /// Whether the records are calls that have not returned: RAS emulation in
    /// the mode the hart is in.
    #[must_use]
    pub fn is_stack(&self) -> bool {
        let guest = self.mode.is_some_and(Mode::is_virtual);
        let bits = if guest {
            self.guest_control
        } else {
            self.control
        };
        Control::from_bits(self.version, bits).has(Control::RASEMU)
    }

    /// `FROZEN`.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        let bit = match self.version {
            Version::V0_1_4 => 15,
            Version::V1_0 => 31,
        };
        self.status >> bit & 1 != 0
    }

    /// The fields by which not every transfer that is taken in an enabled mode
    /// is recorded: filters, and RAS emulation.
    #[must_use]
    pub fn left_out(&self) -> Control {
        let guest = Control::from_bits(self.version, self.guest_control);
        let all = Control::INHIBITS.with(Control::RASEMU);
        self.fields().with(guest).and(all)
    }

    /// Whether branches that are not taken are recorded, in some mode.
    #[must_use]
    pub fn records_not_taken(&self) -> bool {
        let guest = Control::from_bits(self.version, self.guest_control);
        self.fields().with(guest).has(Control::NTBREN)
    }

    /// Whether older records may have been overwritten. A stack of calls is
    /// whole as long as WRPTR counts its calls. (Where exactly as many are lost
    /// as there is room for, or twice as many, the registers do not show it.)
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let depth = usize::from(self.depth);
        let valid = self.records().count();
        let next = (self.status & WRPTR) as usize % depth.max(1);
        valid >= depth || self.is_stack() && next != valid
    }

    /// The records, the newest first. In RAS emulation mode these are the calls
    /// that have not returned.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.entries.iter().filter(|entry| entry.is_valid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::engine::Ctr;
    use hartrace_flow::Transfer;
    use hartrace_isa::Itype;

    fn stack(version: Version) -> Ctr {
        let mut ctr = Ctr::new(Config::new(version, Xlen::Rv64)).unwrap();
        ctr.set_control(Control::MODES.with(Control::RASEMU), 0);
        ctr
    }

    fn go(ctr: &mut Ctr, kind: Itype, times: u64) -> Snapshot {
        for n in 0..times {
            ctr.record(&Transfer {
                source: 0x1000 + n * 4,
                target: 0x2000,
                kind,
                ..Transfer::default()
            });
        }
        ctr.snapshot(HartId(0))
    }

    /// More calls than there is room for leave their mark until all of those
    /// that are left have returned.
    #[test]
    fn a_stack_that_was_too_deep_is_cut() {
        for version in Version::ALL {
            let mut ctr = stack(version);
            assert!(!go(&mut ctr, Itype::DirectCall, 15).is_cut());
            assert!(go(&mut ctr, Itype::DirectCall, 5).is_cut());
            let some = go(&mut ctr, Itype::Return, 6);
            assert_eq!((some.records().count(), some.is_cut()), (10, true));
            let mut fresh = stack(version);
            go(&mut fresh, Itype::DirectCall, 5);
            assert!(!go(&mut fresh, Itype::Return, 3).is_cut());
            assert!(go(&mut fresh, Itype::Taken, 40).is_stack());
        }
    }

    #[test]
    fn without_emulation_a_full_array_is_cut() {
        let mut ctr = stack(Version::V1_0);
        ctr.set_control(Control::MODES, 0);
        assert!(!go(&mut ctr, Itype::Taken, 15).is_cut());
        let full = go(&mut ctr, Itype::Taken, 1);
        assert!(full.is_cut() && !full.is_stack());
    }

    #[test]
    fn what_is_left_out() {
        for version in Version::ALL {
            let mut ctr = stack(version);
            let snapshot = |ctr: &mut Ctr, control| {
                ctr.set_control(control, 0);
                ctr.snapshot(HartId(0)).left_out()
            };
            let all = Control::ALL.without(Control::ETEN);
            let filters = snapshot(&mut ctr, all);
            assert_eq!(filters, Control::INHIBITS.with(Control::RASEMU));
            let harmless = all.without(filters);
            assert!(harmless.has(Control::NTBREN));
            assert_eq!(snapshot(&mut ctr, harmless), Control::NONE);
            assert!(ctr.snapshot(HartId(0)).records_not_taken());
            ctr.set_control(harmless.without(Control::NTBREN), 0);
            assert!(!ctr.snapshot(HartId(0)).records_not_taken());
        }
        let inhibits = Control::NAMES
            .iter()
            .filter(|(name, _)| name.ends_with("INH"));
        let inhibits = inhibits.fold(Control::NONE, |all, (_, one)| all.with(*one));
        assert_eq!(inhibits, Control::INHIBITS);
        let all = crate::KINDS.map(|(_, kind)| kind);
        assert_eq!(Control::recording(all), Control::NTBREN);
        assert_eq!(Control::recording([]), Control::INHIBITS);
        let calls = [Itype::IndirectCall, Itype::DirectCall];
        assert!(Control::recording(calls).recorded().eq(calls));
        assert_eq!(Control::MODES.recorded().count(), 12);
    }
}
