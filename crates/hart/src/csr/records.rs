//! The registers of control transfer records (Smctr, Ssctr).

use hartrace_ctr::{Caller, Csr, Ctr, Indirect, Version, Window};
use hartrace_isa::{Ext, csr};

use crate::cpu::Cpu;
use crate::csr::Wrote;

impl Cpu {
    /// The current mode, as control transfer records ask about it.
    pub(crate) fn caller(&self) -> Caller {
        let [mstateen0, ..] = self.mstateen;
        Caller {
            mode: self.mode,
            xlen: self.xlen(),
            mstateen0: self.whole.has(Ext::Smstateen).then_some(mstateen0),
            hstateen0: None,
            cycles: self.cycles,
        }
    }

    /// The control transfer records and their register of this number.
    fn record_csr(&self, csr: u16) -> Option<(&Ctr, Csr)> {
        let ctr = self.records.as_ref()?.shown()?;
        Some((ctr, Csr::from_number(ctr.config().version, csr)?))
    }

    /// Brings control transfer records up to date before a CSR is read that
    /// shows them.
    pub(crate) fn settle_for(&mut self, csr: u16) {
        if self.is_record_csr(csr) || Window::from_number(csr).is_some() {
            self.settled();
        }
    }

    /// Whether this is a register of control transfer records.
    pub(super) fn is_record_csr(&self, csr: u16) -> bool {
        self.record_csr(csr).is_some()
    }

    /// Whether the current mode may access a register of control transfer
    /// records or an entry of them; true for any other.
    pub(super) fn may_access_records(&self, csr: u16) -> bool {
        let Some(ctr) = self.records.as_ref().and_then(|records| records.shown()) else {
            return true;
        };
        let caller = self.caller();
        if let Some((window, ..)) = self.shown_entry(csr) {
            return ctr.check_entry(window, &caller).is_ok();
        }
        self.record_csr(csr)
            .is_none_or(|(_, csr)| ctr.check(csr, &caller).is_ok())
    }

    /// Whether the current mode may clear them.
    pub(crate) fn may_clear_records(&self) -> bool {
        let shown = self.records.as_ref().and_then(|records| records.shown());
        shown.is_some_and(|ctr| ctr.check_clear(&self.caller()).is_ok())
    }

    pub(super) fn read_record_csr(&self, csr: u16) -> Option<u64> {
        let caller = self.caller();
        self.record_csr(csr)
            .map(|(ctr, csr)| ctr.read(csr, &caller))
    }

    /// Writes one; the machine-level register it maps to is reported.
    pub(super) fn write_record_csr(&mut self, number: u16, value: u64, wrote: Wrote<'_>) {
        let caller = self.caller();
        let Some(ctr) = self.settled() else {
            return;
        };
        let version = ctr.config().version;
        let Some(csr) = Csr::from_number(version, number) else {
            return;
        };
        ctr.write(csr, value, &caller);
        let (behind, number) = match (version, csr) {
            (Version::V1_0, Csr::SupervisorControl) => (Csr::MachineControl, csr::MCTRCTL),
            (Version::V0_1_4, Csr::SupervisorControl) => {
                (Csr::MachineControl, csr::draft::MCTRCONTROL)
            }
            (_, Csr::SupervisorControlHigh) => (Csr::MachineControlHigh, csr::draft::MCTRCONTROLH),
            (Version::V0_1_4, Csr::SupervisorStatus) => {
                (Csr::MachineStatus, csr::draft::MCTRSTATUS)
            }
            _ => (csr, number),
        };
        wrote(number, ctr.read(behind, &caller));
    }

    /// The window, the entry and its register that an alias CSR shows, if it
    /// shows one.
    fn shown_entry(&self, csr: u16) -> Option<(Window, u8, u8)> {
        let ctr = self.records.as_ref()?.shown()?;
        let (window, indirect) = Window::from_number(csr)?;
        let Indirect::Register(register) = indirect else {
            return None;
        };
        let select = match window {
            Window::Machine => self.miselect,
            Window::Supervisor => self.siselect,
            Window::Guest => return None,
        };
        let entry = Window::entry(select).filter(|_| ctr.shows_entries(window))?;
        Some((window, entry, register))
    }

    /// Reads an alias CSR (Smcsrind, Sscsrind); `None` where it shows nothing,
    /// and an access to it is illegal. They give access to the entries only.
    pub(super) fn read_alias(&self, csr: u16) -> Option<u64> {
        let (_, entry, register) = self.shown_entry(csr)?;
        let ctr = self.records.as_ref()?.shown()?;
        Some(ctr.read_entry(entry, register, &self.caller()))
    }

    /// Writes an alias CSR.
    pub(super) fn write_alias(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        let caller = self.caller();
        if let Some((_, entry, register)) = self.shown_entry(csr)
            && let Some(ctr) = self.settled()
        {
            ctr.write_entry(entry, register, value, &caller);
            wrote(csr, ctr.read_entry(entry, register, &caller));
        }
    }
}
