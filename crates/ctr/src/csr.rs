//! CTR as software sees it: CSRs (chapter 2), entry registers (chapter 3) and
//! access control (chapter 4).

use hartrace_flow::Mode;
use hartrace_isa::{Xlen, csr};

use crate::control::{Control, asks_to_clear, depth_field, wished_depth};
use crate::engine::Ctr;
use crate::record::{MISP, Record};
use crate::version::Version;

/// A CSR of CTR. The high halves are those of 0.1.4 on RV32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Csr {
    /// `mctrctl`, `mctrcontrol`.
    MachineControl,
    /// `mctrcontrolh`.
    MachineControlHigh,
    /// `sctrctl`, `sctrcontrol`; the guest's for a guest.
    SupervisorControl,
    /// `sctrcontrolh`.
    SupervisorControlHigh,
    /// `vsctrctl`, `vsctrcontrol`.
    GuestControl,
    /// `vsctrcontrolh`.
    GuestControlHigh,
    /// `mctrstatus`: 0.1.4.
    MachineStatus,
    /// `sctrstatus`.
    SupervisorStatus,
    /// `sctrdepth`: 1.0.
    Depth,
}

impl Csr {
    /// The CSR of this number in a version's map.
    #[must_use]
    pub const fn from_number(version: Version, number: u16) -> Option<Csr> {
        Some(match (version, number) {
            (Version::V0_1_4, csr::draft::SCTRCONTROL) => Csr::SupervisorControl,
            (Version::V0_1_4, csr::draft::SCTRCONTROLH) => Csr::SupervisorControlHigh,
            (Version::V0_1_4, csr::draft::SCTRSTATUS) => Csr::SupervisorStatus,
            (Version::V0_1_4, csr::draft::VSCTRCONTROL) => Csr::GuestControl,
            (Version::V0_1_4, csr::draft::VSCTRCONTROLH) => Csr::GuestControlHigh,
            (Version::V0_1_4, csr::draft::MCTRCONTROL) => Csr::MachineControl,
            (Version::V0_1_4, csr::draft::MCTRCONTROLH) => Csr::MachineControlHigh,
            (Version::V0_1_4, csr::draft::MCTRSTATUS) => Csr::MachineStatus,
            (Version::V1_0, csr::SCTRCTL) => Csr::SupervisorControl,
            (Version::V1_0, csr::SCTRSTATUS) => Csr::SupervisorStatus,
            (Version::V1_0, csr::SCTRDEPTH) => Csr::Depth,
            (Version::V1_0, csr::VSCTRCTL) => Csr::GuestControl,
            (Version::V1_0, csr::MCTRCTL) => Csr::MachineControl,
            _ => return None,
        })
    }

    /// Whether a version has it, on RV32 at least.
    const fn exists(self, version: Version) -> bool {
        match (self, version) {
            (Csr::Depth, Version::V0_1_4) => false,
            (Csr::MachineStatus, Version::V1_0) => false,
            (_, Version::V1_0) => !self.is_high(),
            (_, Version::V0_1_4) => true,
        }
    }

    const fn is_high(self) -> bool {
        matches!(
            self,
            Csr::MachineControlHigh | Csr::SupervisorControlHigh | Csr::GuestControlHigh
        )
    }
}

/// Which registers of Smcsrind and Sscsrind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// `miselect`, `mireg*`.
    Machine,
    /// `siselect`, `sireg*`; the guest's for a guest.
    Supervisor,
    /// `vsiselect`, `vsireg*`.
    Guest,
}

/// A register of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Indirect {
    /// `*iselect`.
    Select,
    /// `*ireg` to `*ireg6`, by number from 1.
    Register(u8),
}

impl Window {
    /// The register of this number.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<(Window, Indirect)> {
        let window = match number >> 8 {
            1 => Window::Supervisor,
            2 => Window::Guest,
            3 => Window::Machine,
            _ => return None,
        };
        let register = match number & 0xff {
            0x50 => Indirect::Select,
            low @ 0x51..=0x53 => Indirect::Register(low as u8 - 0x50),
            // Between them is the high half of another register.
            low @ 0x55..=0x57 => Indirect::Register(low as u8 - 0x51),
            _ => return None,
        };
        Some((window, register))
    }

    /// The entry that a `*iselect` names.
    #[must_use]
    pub const fn entry(select: u64) -> Option<u8> {
        match select {
            0x200..=0x2ff => Some(select as u8),
            _ => None,
        }
    }
}

/// Who accesses a register, and what the hart says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The mode of the instruction.
    pub mode: Mode,
    /// XLEN in this mode.
    pub xlen: Xlen,
    /// `mstateen0`; `None` without Smstateen.
    pub mstateen0: Option<u64>,
    /// `hstateen0`; `None` without Smstateen or without a hypervisor.
    pub hstateen0: Option<u64>,
    /// Cycles of the hart.
    pub cycles: u64,
}

/// Why an access does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denied {
    /// An illegal-instruction exception.
    Illegal,
    /// A virtual-instruction exception.
    Virtual,
}

/// `mstateen0.CSRIND` and `hstateen0.CSRIND`.
const CSRIND: u32 = 60;

impl Caller {
    /// Whether the modes above open the state of a bit to this one. Nothing is
    /// closed to the machine, nor to debug mode, which has its rights.
    fn is_open(&self, bit: u32) -> Result<(), Denied> {
        let closed = |enable: Option<u64>| enable.is_some_and(|enable| enable >> bit & 1 == 0);
        let machine = matches!(self.mode, Mode::M | Mode::D);
        if !machine && closed(self.mstateen0) {
            return Err(Denied::Illegal);
        }
        if self.mode.is_virtual() && closed(self.hstateen0) {
            return Err(Denied::Virtual);
        }
        Ok(())
    }

    /// Whether the mode is privileged enough for a register of a window's
    /// level.
    fn may(&self, level: Window) -> Result<(), Denied> {
        match (self.mode, level) {
            (Mode::M | Mode::D, _) => Ok(()),
            (_, Window::Machine) | (Mode::U, _) => Err(Denied::Illegal),
            (Mode::S, _) | (Mode::VS, Window::Supervisor) => Ok(()),
            (Mode::VS | Mode::VU, _) => Err(Denied::Virtual),
        }
    }

    /// Whether it may touch `*iselect` and `*ireg*` at all (Smcsrind,
    /// Sscsrind). Windows to CTR entries are also subject to
    /// [`Ctr::check_entry`].
    ///
    /// # Errors
    ///
    /// The exception to raise.
    pub fn check_window(&self, window: Window) -> Result<(), Denied> {
        let rank = self.may(window);
        if window == Window::Machine || rank == Err(Denied::Illegal) {
            return rank;
        }
        self.is_open(CSRIND).and(rank)
    }
}

impl Ctr {
    /// Whether a CSR may be accessed.
    ///
    /// # Errors
    ///
    /// The exception to raise.
    pub fn check(&self, csr: Csr, caller: &Caller) -> Result<(), Denied> {
        let config = &self.config;
        let level = match csr {
            Csr::MachineControl | Csr::MachineControlHigh | Csr::MachineStatus => Window::Machine,
            Csr::GuestControl | Csr::GuestControlHigh => Window::Guest,
            _ => Window::Supervisor,
        };
        let exists = csr.exists(config.version) && self.has_level(level);
        if !exists || csr.is_high() && caller.xlen == Xlen::Rv64 {
            return Err(Denied::Illegal);
        }
        let rank = caller.may(level);
        if level == Window::Machine || rank == Err(Denied::Illegal) {
            return rank;
        }
        caller.is_open(config.version.state_enable())?;
        // Guests learn their depth from the hypervisor.
        if csr == Csr::Depth && caller.mode.is_virtual() {
            return Err(Denied::Virtual);
        }
        rank
    }

    /// Whether there is a mode that registers of this level belong to.
    const fn has_level(&self, level: Window) -> bool {
        match level {
            Window::Machine => true,
            Window::Supervisor => self.config.supervisor,
            Window::Guest => self.config.hypervisor,
        }
    }

    /// Whether this window shows the entries: in 1.0 the machine's does not.
    #[must_use]
    pub fn shows_entries(&self, window: Window) -> bool {
        window != Window::Machine || self.config.version == Version::V0_1_4
    }

    /// Whether an entry may be accessed through a window that shows them.
    ///
    /// # Errors
    ///
    /// The exception to raise.
    pub fn check_entry(&self, window: Window, caller: &Caller) -> Result<(), Denied> {
        if !self.shows_entries(window) || !self.has_level(window) {
            return Err(Denied::Illegal);
        }
        caller.check_window(window)?;
        match window {
            Window::Machine => Ok(()),
            _ => caller.is_open(self.config.version.state_enable()),
        }
    }

    /// Whether `SCTRCLR` may be executed: an instruction of 1.0.
    ///
    /// # Errors
    ///
    /// The exception to raise.
    pub fn check_clear(&self, caller: &Caller) -> Result<(), Denied> {
        if self.config.version == Version::V0_1_4 {
            return Err(Denied::Illegal);
        }
        let rank = caller.may(Window::Supervisor);
        if rank == Err(Denied::Illegal) {
            return rank;
        }
        caller.is_open(self.config.version.state_enable()).and(rank)
    }

    /// What a CSR holds. Whether it may be read is [`Ctr::check`]'s business.
    #[must_use]
    pub fn read(&self, csr: Csr, caller: &Caller) -> u64 {
        let whole = match csr {
            Csr::MachineControl | Csr::MachineControlHigh => self.control_bits(),
            Csr::GuestControl | Csr::GuestControlHigh => self.guest_bits(),
            Csr::SupervisorControl | Csr::SupervisorControlHigh => {
                if caller.mode.is_virtual() {
                    self.guest_bits()
                } else {
                    self.control_bits() & !self.machine_only()
                }
            }
            Csr::MachineStatus | Csr::SupervisorStatus => self.status_bits().into(),
            Csr::Depth => u64::from(self.depth().trailing_zeros() - 4),
        };
        let value = if csr.is_high() { whole >> 32 } else { whole };
        caller.xlen.wrap(value)
    }

    /// Writes a CSR. Whether it may be is [`Ctr::check`]'s business.
    pub fn write(&mut self, csr: Csr, value: u64, caller: &Caller) {
        let now = caller.cycles;
        match csr {
            Csr::MachineControl | Csr::MachineControlHigh => {
                let whole = self.merge(csr, self.control_bits(), value, caller);
                self.write_control(whole, now);
            }
            Csr::SupervisorControl | Csr::SupervisorControlHigh if !caller.mode.is_virtual() => {
                let hidden = self.machine_only();
                let whole = self.merge(csr, self.control_bits(), value, caller);
                let whole = whole & !hidden | self.control_bits() & hidden;
                self.write_control(whole, now);
            }
            Csr::SupervisorControl
            | Csr::SupervisorControlHigh
            | Csr::GuestControl
            | Csr::GuestControlHigh => {
                let whole = self.merge(csr, self.guest_bits(), value, caller);
                let version = self.config.version;
                self.set_guest_control(Control::from_bits(version, whole), now);
                // Only in force, with V = 1, can it clear (2.3).
                if caller.mode.is_virtual() {
                    self.clear_if_asked(whole, now);
                }
            }
            Csr::MachineStatus | Csr::SupervisorStatus => self.write_status(value, now),
            Csr::Depth => {
                // Larger codes are reserved.
                let code = (value & 7).min(4);
                self.set_depth(16 << code);
            }
        }
    }

    /// A register of 64 bits with the half or the whole that was written.
    fn merge(&self, csr: Csr, old: u64, value: u64, caller: &Caller) -> u64 {
        let low = 0xffff_ffff;
        match (caller.xlen, csr.is_high()) {
            (Xlen::Rv64, _) => value,
            (Xlen::Rv32, false) => old & !low | value & low,
            (Xlen::Rv32, true) => old & low | value << 32,
        }
    }

    fn write_control(&mut self, bits: u64, now: u64) {
        let version = self.config.version;
        if version == Version::V0_1_4 {
            self.set_depth(wished_depth(bits));
        }
        self.set_control(Control::from_bits(version, bits), now);
        self.clear_if_asked(bits, now);
    }

    /// `CLR` of 0.1.4 zeroes the entries and the status.
    fn clear_if_asked(&mut self, bits: u64, now: u64) {
        if self.config.version == Version::V0_1_4 && asks_to_clear(bits) {
            self.clear();
            self.write_status(0, now);
        }
    }

    fn write_status(&mut self, value: u64, now: u64) {
        self.ring.set_next(value as u8);
        let frozen = match self.config.version {
            Version::V0_1_4 => {
                self.ring.wrapped = value >> 14 & 1 != 0;
                15
            }
            Version::V1_0 => 31,
        };
        self.set_frozen(value >> frozen & 1 != 0, Some(now));
    }

    /// The bits of `mctrctl` that `sctrctl` does not show.
    fn machine_only(&self) -> u64 {
        Control::M.with(Control::MTE).to_bits(self.config.version)
    }

    fn depth_bits(&self) -> u64 {
        match self.config.version {
            Version::V0_1_4 => depth_field(self.depth()),
            Version::V1_0 => 0,
        }
    }

    pub(crate) fn control_bits(&self) -> u64 {
        self.control.to_bits(self.config.version) | self.depth_bits()
    }

    pub(crate) fn guest_bits(&self) -> u64 {
        if !self.config.hypervisor {
            return 0;
        }
        self.guest.to_bits(self.config.version) | self.depth_bits()
    }

    pub(crate) fn status_bits(&self) -> u32 {
        let frozen = u32::from(self.frozen);
        let next = u32::from(self.ring.next);
        match self.config.version {
            Version::V0_1_4 => next | u32::from(self.ring.wrapped) << 14 | frozen << 15,
            Version::V1_0 => next | frozen << 31,
        }
    }

    /// What `*ireg` (1) to `*ireg6` (6) show of an entry.
    #[must_use]
    pub fn read_entry(&self, entry: u8, register: u8, caller: &Caller) -> u64 {
        let held = self.ring.get(entry);
        caller.xlen.wrap(match register {
            1 => held.ctrsource,
            2 => held.ctrtarget,
            3 => held.ctrdata,
            _ => 0,
        })
    }

    /// Writes an entry register. Bits that do not exist stay 0, and so does
    /// everything beyond the depth.
    pub fn write_entry(&mut self, entry: u8, register: u8, value: u64, caller: &Caller) {
        let mispredicts = self.config.mispredicts;
        let data = self.data_mask();
        let above = match (self.config.version, caller.xlen) {
            // Only the lower bits are accessed.
            (Version::V0_1_4, Xlen::Rv32) => !0xffff_ffff,
            _ => 0,
        };
        let value = caller.xlen.wrap(value);
        let Some(Record {
            ctrsource,
            ctrtarget,
            ctrdata,
        }) = self.ring.get_mut(entry)
        else {
            return;
        };
        match register {
            1 => *ctrsource = *ctrsource & above | value,
            2 => {
                let misp = if mispredicts { 0 } else { MISP };
                *ctrtarget = *ctrtarget & above | value & !misp;
            }
            // The reserved types are held, too, for extensions to come.
            3 => *ctrdata = *ctrdata & above | value & data,
            _ => {}
        }
    }
}
