//! Software that uses CTR: by CSR numbers and bits, as programs do.

use hartrace_ctr::{Caller, Config, Control, Csr, Ctr, Denied, Indirect, Version, Window};
use hartrace_flow::{Cause, Mode, Transfer};
use hartrace_isa::{Itype, Xlen};

pub(crate) use Mode::{D, M, S, U, VS, VU};
pub(crate) use Version::{V0_1_4, V1_0};

/// Every mode with records.
pub(crate) const MODES: [Mode; 5] = [M, S, U, VS, VU];

/// Every type of 5.2, by its code.
pub(crate) const TYPES: [Itype; 13] = [
    Itype::Exception,
    Itype::Interrupt,
    Itype::TrapReturn,
    Itype::NotTaken,
    Itype::Taken,
    Itype::IndirectCall,
    Itype::DirectCall,
    Itype::IndirectJump,
    Itype::DirectJump,
    Itype::Swap,
    Itype::Return,
    Itype::OtherIndirect,
    Itype::OtherDirect,
];

/// The numbers of the registers (2.6 of both texts). What a text does not have
/// is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub(crate) mctl: u16,
    pub(crate) mctlh: u16,
    pub(crate) sctl: u16,
    pub(crate) vsctl: u16,
    pub(crate) vsctlh: u16,
    pub(crate) sstatus: u16,
    pub(crate) depth: u16,
}

pub(crate) const MAP_0_1_4: Map = Map {
    mctl: 0x381,
    mctlh: 0x382,
    sctl: 0x181,
    vsctl: 0x281,
    vsctlh: 0x282,
    sstatus: 0x183,
    depth: 0,
};

pub(crate) const MAP_1_0: Map = Map {
    mctl: 0x34e,
    mctlh: 0,
    sctl: 0x14e,
    vsctl: 0x24e,
    vsctlh: 0,
    sstatus: 0x14f,
    depth: 0x15f,
};

pub(crate) const fn map(version: Version) -> Map {
    match version {
        V0_1_4 => MAP_0_1_4,
        V1_0 => MAP_1_0,
    }
}

/// The fields of mctrcontrol (0.1.4, 2.1), but CLR and DEPTH.
pub(crate) const FIELDS_0_1_4: [(&str, u32); 22] = [
    ("M", 0),
    ("S", 1),
    ("U", 2),
    ("MTE", 8),
    ("STE", 9),
    ("RASEMU", 10),
    ("BPFRZ", 11),
    ("LCOFIFRZ", 12),
    ("EXCINH", 33),
    ("INTRINH", 34),
    ("TRETINH", 35),
    ("NTBREN", 36),
    ("TKBRINH", 37),
    ("ETEN", 38),
    ("INDCALLINH", 40),
    ("DIRCALLINH", 41),
    ("INDJUMPINH", 42),
    ("DIRJUMPINH", 43),
    ("CORSWAPINH", 44),
    ("RETINH", 45),
    ("INDOJMPINH", 46),
    ("DIROJMPINH", 47),
];

/// CLR and DEPTH of mctrcontrol (0.1.4, 2.1).
pub(crate) const CLR: u64 = 1 << 7;
pub(crate) const DEPTH_0_1_4: u64 = 0xf << 16;

/// The fields of mctrctl (1.0, 2.1), but Custom.
pub(crate) const FIELDS_1_0: [(&str, u32); 21] = [
    ("U", 0),
    ("S", 1),
    ("M", 2),
    ("RASEMU", 7),
    ("STE", 8),
    ("MTE", 9),
    ("BPFRZ", 11),
    ("LCOFIFRZ", 12),
    ("EXCINH", 33),
    ("INTRINH", 34),
    ("TRETINH", 35),
    ("NTBREN", 36),
    ("TKBRINH", 37),
    ("INDCALLINH", 40),
    ("DIRCALLINH", 41),
    ("INDJMPINH", 42),
    ("DIRJMPINH", 43),
    ("CORSWAPINH", 44),
    ("RETINH", 45),
    ("INDLJMPINH", 46),
    ("DIRLJMPINH", 47),
];

pub(crate) const fn fields(version: Version) -> &'static [(&'static str, u32)] {
    match version {
        V0_1_4 => &FIELDS_0_1_4,
        V1_0 => &FIELDS_1_0,
    }
}

/// The bits of fields, by their names in this version, with spaces between.
pub(crate) fn bits(version: Version, names: &str) -> u64 {
    names.split_whitespace().fold(0, |bits, name| {
        let field = fields(version).iter().find(|(known, _)| *known == name);
        let (_, bit) = field.unwrap_or_else(|| panic!("{version} has no {name}"));
        bits | 1 << bit
    })
}

/// The enable of a mode in its register.
pub(crate) fn enable(version: Version, mode: Mode) -> u64 {
    bits(
        version,
        match mode {
            M => "M",
            S | VS => "S",
            U | VU => "U",
            D => "",
        },
    )
}

/// Everything there is, of 64 bits and with a hypervisor.
pub(crate) fn full(version: Version) -> Config {
    Config::new(version, Xlen::Rv64).with_hypervisor()
}

/// Nothing that is optional.
pub(crate) fn bare(version: Version) -> Config {
    Config {
        fields: Control::NONE,
        types: false,
        mispredicts: false,
        cycles: None,
        ..full(version)
    }
}

/// Every version, of 64 and of 32 bits, with a hypervisor.
pub(crate) fn everything() -> Vec<Config> {
    let widths = [Xlen::Rv64, Xlen::Rv32];
    let all = Version::ALL.into_iter();
    all.flat_map(|version| widths.map(|xlen| Config::new(version, xlen).with_hypervisor()))
        .collect()
}

/// A hart as far as CTR needs one: a mode, the selects, the state enables.
#[derive(Clone, Debug)]
pub(crate) struct Software {
    pub(crate) ctr: Ctr,
    pub(crate) version: Version,
    pub(crate) mode: Mode,
    pub(crate) xlen: Xlen,
    pub(crate) mstateen0: Option<u64>,
    pub(crate) hstateen0: Option<u64>,
    /// mcycle.
    pub(crate) now: u64,
    /// miselect, siselect, vsiselect.
    selects: [u64; 3],
}

impl Software {
    /// In machine mode, after reset, without Smstateen.
    pub(crate) fn new(config: Config) -> Software {
        Software {
            ctr: Ctr::new(config).unwrap(),
            version: config.version,
            mode: M,
            xlen: config.xlen,
            mstateen0: None,
            hstateen0: None,
            now: 0,
            selects: [0; 3],
        }
    }

    pub(crate) fn map(&self) -> Map {
        map(self.version)
    }

    fn caller(&self) -> Caller {
        Caller {
            mode: self.mode,
            xlen: self.xlen,
            mstateen0: self.mstateen0,
            hstateen0: self.hstateen0,
            cycles: self.now,
        }
    }

    /// Which select a window has in this mode.
    fn select_of(&mut self, window: Window) -> &mut u64 {
        let guest = self.mode.is_virtual();
        match window {
            Window::Machine => &mut self.selects[0],
            Window::Supervisor if !guest => &mut self.selects[1],
            _ => &mut self.selects[2],
        }
    }

    /// The entry and its register behind a number, or the select itself.
    fn indirect(&mut self, window: Window, what: Indirect) -> Result<Option<(u8, u8)>, Denied> {
        let caller = self.caller();
        caller.check_window(window)?;
        let Indirect::Register(register) = what else {
            return Ok(None);
        };
        let select = *self.select_of(window);
        let entry = Window::entry(select).ok_or(Denied::Illegal)?;
        self.ctr.check_entry(window, &caller)?;
        Ok(Some((entry, register)))
    }

    /// csrr.
    pub(crate) fn try_read(&mut self, number: u16) -> Result<u64, Denied> {
        let caller = self.caller();
        if let Some((window, what)) = Window::from_number(number) {
            let found = self.indirect(window, what)?;
            return Ok(match found {
                Some((entry, register)) => self.ctr.read_entry(entry, register, &caller),
                None => *self.select_of(window),
            });
        }
        let csr = Csr::from_number(self.version, number).ok_or(Denied::Illegal)?;
        self.ctr.check(csr, &caller)?;
        Ok(self.ctr.read(csr, &caller))
    }

    /// csrw.
    pub(crate) fn try_write(&mut self, number: u16, value: u64) -> Result<(), Denied> {
        let caller = self.caller();
        let value = self.xlen.wrap(value);
        if let Some((window, what)) = Window::from_number(number) {
            match self.indirect(window, what)? {
                Some((entry, register)) => self.ctr.write_entry(entry, register, value, &caller),
                None => *self.select_of(window) = value,
            }
            return Ok(());
        }
        let csr = Csr::from_number(self.version, number).ok_or(Denied::Illegal)?;
        self.ctr.check(csr, &caller)?;
        self.ctr.write(csr, value, &caller);
        Ok(())
    }

    /// SCTRCLR.
    pub(crate) fn try_clear(&mut self) -> Result<(), Denied> {
        self.ctr.check_clear(&self.caller())?;
        self.ctr.clear();
        Ok(())
    }

    pub(crate) fn read(&mut self, number: u16) -> u64 {
        let mode = self.mode;
        let read = self.try_read(number);
        read.unwrap_or_else(|e| panic!("{number:#x} in {mode:?}: {e:?}"))
    }

    pub(crate) fn write(&mut self, number: u16, value: u64) {
        let mode = self.mode;
        let written = self.try_write(number, value);
        written.unwrap_or_else(|e| panic!("{number:#x} in {mode:?}: {e:?}"));
    }

    /// Writes and reads back.
    pub(crate) fn try_out(&mut self, number: u16, value: u64) -> u64 {
        self.write(number, value);
        self.read(number)
    }

    /// The same as machine mode, whatever the mode.
    pub(crate) fn as_machine<T>(&mut self, act: impl FnOnce(&mut Software) -> T) -> T {
        let before = (self.mode, self.xlen);
        (self.mode, self.xlen) = (M, self.ctr.config().xlen);
        let done = act(self);
        (self.mode, self.xlen) = before;
        done
    }

    /// Sets the machine's control register to these fields, all 64 bits of it;
    /// the depth of 0.1.4 stays.
    pub(crate) fn control(&mut self, bits: u64) {
        self.as_machine(|s| {
            let map = s.map();
            let keep = match s.version {
                V0_1_4 => s.read(map.mctl) & DEPTH_0_1_4,
                V1_0 => 0,
            };
            s.write(map.mctl, keep | bits);
            if s.xlen == Xlen::Rv32 && map.mctlh != 0 {
                s.write(map.mctlh, bits >> 32);
            }
        });
    }

    /// The same for the guest's.
    pub(crate) fn guest_control(&mut self, bits: u64) {
        self.as_machine(|s| {
            let map = s.map();
            s.write(map.vsctl, bits);
            if s.xlen == Xlen::Rv32 && map.vsctlh != 0 {
                s.write(map.vsctlh, bits >> 32);
            }
        });
    }

    /// Enables recording in these modes, with fields in either register.
    pub(crate) fn record_in(&mut self, modes: &[Mode], names: &str) {
        let (version, extra) = (self.version, bits(self.version, names));
        let of = |guest: bool| {
            let modes = modes.iter().filter(|m| m.is_virtual() == guest);
            modes.fold(extra, |bits, mode| bits | enable(version, *mode))
        };
        self.control(of(false));
        if self.ctr.config().hypervisor {
            self.guest_control(of(true));
        }
    }

    /// Chooses a depth, as the machine.
    pub(crate) fn depth(&mut self, depth: u16) {
        self.as_machine(|s| {
            let map = s.map();
            match s.version {
                V0_1_4 => {
                    let rest = s.read(map.mctl) & !DEPTH_0_1_4;
                    s.write(map.mctl, rest | (u64::from(depth >> 4) - 1) << 16);
                }
                V1_0 => s.write(map.depth, u64::from(depth.ilog2()) - 4),
            }
        });
        assert_eq!(self.ctr.depth(), depth);
    }

    /// The status register, as the machine.
    pub(crate) fn status(&mut self) -> u64 {
        let number = self.map().sstatus;
        self.as_machine(|s| s.read(number))
    }

    /// Writes it.
    pub(crate) fn set_status(&mut self, value: u64) {
        let number = self.map().sstatus;
        self.as_machine(|s| s.write(number, value));
    }

    pub(crate) fn wrptr(&mut self) -> u64 {
        self.status() & 0xff
    }

    /// ctrsource, ctrtarget and ctrdata of an entry, through siselect.
    pub(crate) fn entry(&mut self, entry: u16) -> (u64, u64, u64) {
        self.as_machine(|s| {
            s.write(0x150, 0x200 + u64::from(entry));
            (s.read(0x151), s.read(0x152), s.read(0x153))
        })
    }

    /// Writes them.
    pub(crate) fn set_entry(&mut self, entry: u16, values: (u64, u64, u64)) {
        self.as_machine(|s| {
            s.write(0x150, 0x200 + u64::from(entry));
            s.write(0x151, values.0);
            s.write(0x152, values.1);
            s.write(0x153, values.2);
        });
    }

    /// The sources of the valid entries, newest first.
    pub(crate) fn sources(&mut self) -> Vec<u64> {
        let all = (0..self.ctr.depth()).map(|entry| self.entry(entry).0);
        let all: Vec<u64> = all.collect();
        let valid = all.into_iter().filter(|source| source & 1 != 0);
        valid.map(|source| source & !1).collect()
    }

    /// A transfer within the mode, at this time.
    pub(crate) fn jump(&mut self, kind: Itype, source: u64, target: u64) {
        self.ctr.record(&Transfer {
            source,
            target,
            kind,
            from: Some(self.mode),
            to: Some(self.mode),
            time: Some(self.now),
            ..Transfer::default()
        });
    }

    /// A trap or trap return into another mode, at this time.
    pub(crate) fn change(&mut self, kind: Itype, source: u64, target: u64, to: Mode) {
        let cause = match kind {
            Itype::Exception => Some(Cause::Exception(Some(8))),
            Itype::Interrupt => Some(Cause::Interrupt(Some(7))),
            _ => None,
        };
        self.trap(kind, cause, source, target, to);
    }

    /// The same with a cause.
    pub(crate) fn trap(
        &mut self,
        kind: Itype,
        cause: Option<Cause>,
        source: u64,
        target: u64,
        to: Mode,
    ) {
        self.ctr.record(&Transfer {
            source,
            target,
            kind,
            from: Some(self.mode),
            to: Some(to),
            cause,
            time: Some(self.now),
            ..Transfer::default()
        });
        self.mode = to;
    }

    /// A transfer of any type that stays in enabled modes: traps out of user
    /// modes go one up.
    pub(crate) fn transfer(&mut self, kind: Itype, source: u64, target: u64) {
        let to = match (kind.is_trap(), self.mode) {
            (true, U) => S,
            (true, VU) => VS,
            (_, mode) => mode,
        };
        self.change(kind, source, target, to);
    }
}
