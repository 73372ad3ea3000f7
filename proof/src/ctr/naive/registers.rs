//! The registers of the simple model, and which mode may access them.

use hartrace_ctr::Denied;
use hartrace_flow::Mode;

use super::{Asker, LOW, Naive};
use crate::ctr::plan::Plan;

impl Naive {
    /// Whether an access to a number is possible at all, and allowed.
    /// `select` is what the window's select holds.
    pub(crate) fn may(&self, number: u16, select: u64, who: &Asker) -> Result<(), Denied> {
        let Plan {
            draft, supervisor, ..
        } = self.plan;
        let machine = matches!(who.mode, Mode::M | Mode::D);
        let virtualised = matches!(who.mode, Mode::VS | Mode::VU);
        let ctr = if draft { 55 } else { 54 };
        let set = |register: Option<u64>, bit: u32| register.is_none_or(|r| r >> bit & 1 != 0);
        let (m, h) = (who.mstateen0, who.hstateen0);

        let name = self.name(number).ok_or(Denied::Illegal)?;
        let of_supervisor = name.starts_with('s');
        let of_guest = name.starts_with("vs");
        if of_supervisor && !supervisor || of_guest && !self.plan.hypervisor {
            return Err(Denied::Illegal);
        }
        if name.ends_with("ctlh") && !who.narrow {
            return Err(Denied::Illegal);
        }
        let window = name.contains("ireg") || name.contains("iselect");
        let entry = name.contains("ireg");
        if entry && (!(0x200..=0x2ff).contains(&select) || !draft && name.starts_with('m')) {
            // What else is there is not ours.
            return Err(Denied::Illegal);
        }
        if machine {
            return Ok(());
        }
        if name.starts_with('m') || who.mode == Mode::U {
            return Err(Denied::Illegal);
        }
        if window {
            if !set(m, 60) {
                return Err(Denied::Illegal);
            }
            if who.mode == Mode::VU || virtualised && (of_guest || !set(h, 60)) {
                return Err(Denied::Virtual);
            }
            if !entry {
                return Ok(());
            }
        }
        if !set(m, ctr) {
            return Err(Denied::Illegal);
        }
        let refused = virtualised && (of_guest || name == "sctrdepth" || !set(h, ctr));
        if refused || who.mode == Mode::VU {
            return Err(Denied::Virtual);
        }
        Ok(())
    }

    /// Whether SCTRCLR is allowed.
    pub(crate) fn may_clear(&self, who: &Asker) -> Result<(), Denied> {
        if self.plan.draft {
            return Err(Denied::Illegal);
        }
        let set = |register: Option<u64>| register.is_none_or(|r| r >> 54 & 1 != 0);
        match who.mode {
            Mode::M | Mode::D => Ok(()),
            Mode::U => Err(Denied::Illegal),
            _ if !set(who.mstateen0) => Err(Denied::Illegal),
            Mode::S => Ok(()),
            Mode::VU => Err(Denied::Virtual),
            Mode::VS if set(who.hstateen0) => Ok(()),
            Mode::VS => Err(Denied::Virtual),
        }
    }

    /// The names of 1.0 where both have a register, else the draft's.
    fn name(&self, number: u16) -> Option<&'static str> {
        Some(match (self.plan.draft, number) {
            (true, 0x181) | (false, 0x14e) => "sctrctl",
            (true, 0x182) => "sctrctlh",
            (true, 0x183) | (false, 0x14f) => "sctrstatus",
            (true, 0x281) | (false, 0x24e) => "vsctrctl",
            (true, 0x282) => "vsctrctlh",
            (true, 0x381) | (false, 0x34e) => "mctrctl",
            (true, 0x382) => "mctrctlh",
            (true, 0x383) => "mctrstatus",
            (false, 0x15f) => "sctrdepth",
            (_, 0x150) => "siselect",
            (_, 0x151..=0x153 | 0x155..=0x157) => "sireg",
            (_, 0x250) => "vsiselect",
            (_, 0x251..=0x253 | 0x255..=0x257) => "vsireg",
            (_, 0x350) => "miselect",
            (_, 0x351..=0x353 | 0x355..=0x357) => "mireg",
            _ => return None,
        })
    }

    /// The whole of a control register: the machine's, or the guest's.
    fn control(&self, guest: bool) -> u64 {
        let fields = if guest { self.guest } else { self.host };
        if self.plan.draft {
            fields | (self.depth() / 16 - 1) << 16
        } else {
            fields
        }
    }

    /// M and MTE.
    fn hidden(&self) -> u64 {
        if self.plan.draft { 0x101 } else { 0x204 }
    }

    /// What a CSR that may be read holds.
    pub(crate) fn read(&self, number: u16, who: &Asker) -> u64 {
        let virtualised = matches!(who.mode, Mode::VS | Mode::VU);
        let frozen = u64::from(self.frozen);
        let value = match self.name(number) {
            Some("mctrctl") => self.control(false),
            Some("mctrctlh") => self.control(false) >> 32,
            Some("vsctrctl") => self.control(true),
            Some("vsctrctlh") => self.control(true) >> 32,
            Some("sctrctl") if virtualised => self.control(true),
            Some("sctrctlh") if virtualised => self.control(true) >> 32,
            Some("sctrctl") => self.control(false) & !self.hidden(),
            Some("sctrctlh") => self.control(false) >> 32,
            Some("mctrstatus" | "sctrstatus") if self.plan.draft => {
                self.wrptr | u64::from(self.wrap) << 14 | frozen << 15
            }
            Some("sctrstatus") => self.wrptr | frozen << 31,
            Some("sctrdepth") => match self.depth() {
                16 => 0,
                32 => 1,
                64 => 2,
                128 => 3,
                _ => 4,
            },
            _ => 0,
        };
        if who.narrow { value & LOW } else { value }
    }

    /// Writes a CSR that may be written.
    pub(crate) fn write(&mut self, number: u16, value: u64, who: &Asker) {
        let virtualised = matches!(who.mode, Mode::VS | Mode::VU);
        let Some(name) = self.name(number) else {
            return;
        };
        if name == "sctrdepth" {
            let wish = 16 << (value & 7).min(4);
            self.choose(wish);
            return;
        }
        self.tick(Some(who.now));
        if name.ends_with("status") {
            self.set_status(value);
            return;
        }
        let guest = name.starts_with("vs") || virtualised && name.starts_with('s');
        let high = name.ends_with("ctlh");
        let old = self.control(guest);
        let mut new = match (who.narrow, high) {
            (false, _) => value,
            (true, false) => old & !LOW | value & LOW,
            (true, true) => old & LOW | value << 32,
        };
        if guest {
            self.guest = new & self.plan.writable() & !self.hidden();
        } else {
            if name.starts_with('s') {
                new = new & !self.hidden() | old & self.hidden();
            }
            self.host = new & self.plan.writable();
            if self.plan.draft {
                // A thermometer: as many as its highest bit says.
                let wish = match new >> 16 & 15 {
                    0 => 16,
                    1 => 32,
                    2 | 3 => 64,
                    4..=7 => 128,
                    _ => 256,
                };
                self.choose(wish);
            }
        }
        self.counter = 0;
        self.counter_is_valid = false;
        let clears = self.plan.draft && !high && value >> 7 & 1 != 0;
        if clears && (!guest || virtualised) {
            self.clear();
            self.set_status(0);
        }
    }

    /// WRPTR tells which physical entry is logical entry 0, so another WRPTR
    /// turns the list.
    fn set_status(&mut self, value: u64) {
        let wrptr = value & 0xff & (self.depth() - 1);
        let turn = (self.wrptr + self.depth() - wrptr) % self.depth();
        self.entries.rotate_left(turn as usize);
        self.wrptr = wrptr;
        if self.plan.draft {
            self.wrap = value >> 14 & 1 != 0;
            self.frozen = value >> 15 & 1 != 0;
        } else {
            self.frozen = value >> 31 & 1 != 0;
        }
    }

    /// The depth nearest to a wish: the largest that is not larger, or the
    /// smallest. Physical entries stay, WRPTR loses its upper bits.
    fn choose(&mut self, wish: u16) {
        let mut depth = self.plan.depths.first().copied().unwrap_or(16);
        for known in &self.plan.depths {
            if *known <= wish {
                depth = *known;
            }
        }
        // As it lies in memory: physical entry Y is logical WRPTR - Y - 1.
        let mut array = self.entries.clone();
        array.reverse();
        array.rotate_right(self.wrptr as usize);
        array.append(&mut self.behind);
        self.behind = array.split_off(usize::from(depth));
        self.wrptr %= u64::from(depth);
        array.rotate_left(self.wrptr as usize);
        array.reverse();
        self.entries = array;
    }

    /// SCTRCLR; and what CLR does to entries.
    pub(crate) fn clear(&mut self) {
        self.entries.fill((0, 0, 0));
        self.behind.fill((0, 0, 0));
        self.counter = 0;
        self.counter_is_valid = false;
    }

    // --- Entries ---------------------------------------------------------

    /// `*ireg` to `*ireg6` of an entry.
    pub(crate) fn read_entry(&self, entry: u8, register: u8, narrow: bool) -> u64 {
        let held = self.entries.get(usize::from(entry)).copied();
        let (source, target, data) = held.unwrap_or((0, 0, 0));
        let value = match register {
            1 => source,
            2 => target,
            3 => data,
            _ => 0,
        };
        if narrow { value & LOW } else { value }
    }

    pub(crate) fn write_entry(&mut self, entry: u8, register: u8, value: u64, narrow: bool) {
        let data_bits = self.data_bits();
        let (misp, draft) = (self.plan.mispredicts, self.plan.draft);
        let Some(held) = self.entries.get_mut(usize::from(entry)) else {
            return;
        };
        let put = |old: u64| match (narrow, draft) {
            (false, _) => value,
            (true, true) => old & !LOW | value & LOW,
            (true, false) => value & LOW,
        };
        match register {
            1 => held.0 = put(held.0),
            2 if misp => held.1 = put(held.1),
            2 => held.1 = put(held.1) & !1,
            3 => held.2 = put(held.2) & data_bits,
            _ => {}
        }
    }

    /// The bits of `ctrdata`: TYPE, CCV, CCM and some of CCE.
    fn data_bits(&self) -> u64 {
        let types = if self.plan.types { 0xf } else { 0 };
        let cycles = match self.plan.cycles {
            None => 0,
            Some(0) => 0x0fff_8000,
            Some(1) => 0x1fff_8000,
            Some(2) => 0x3fff_8000,
            Some(3) => 0x7fff_8000,
            Some(_) => 0xffff_8000,
        };
        types | cycles
    }
}
