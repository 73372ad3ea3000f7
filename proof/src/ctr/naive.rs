//! Control Transfer Records once more, as plainly as possible: a list of
//! entries, the newest first, and registers as numbers. Written from the texts
//! alone; slow, and meant to be.

use hartrace_ctr::Denied;
use hartrace_flow::{Cause, Mode, Transfer};
use hartrace_isa::Itype;

/// An implementation, in plain words.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// 0.1.4; else 1.0.
    pub(crate) draft: bool,
    /// MXLEN is 32; else 64.
    pub(crate) narrow: bool,
    pub(crate) supervisor: bool,
    pub(crate) hypervisor: bool,
    /// In ascending order.
    pub(crate) depths: Vec<u16>,
    /// Optional fields that exist, by their names in 1.0.
    pub(crate) fields: Vec<&'static str>,
    pub(crate) types: bool,
    pub(crate) mispredicts: bool,
    pub(crate) cycles: Option<u8>,
    /// Returns add the counts they pop; else calls have no counts.
    pub(crate) accumulates: bool,
    /// A predictor gets wrong what comes from an odd sixteen.
    pub(crate) predicts: bool,
}

/// The fields of the control registers: the name in 1.0, and the bits in 0.1.4
/// and in 1.0.
pub(crate) const FIELDS: [(&str, Option<u32>, Option<u32>); 22] = [
    ("M", Some(0), Some(2)),
    ("S", Some(1), Some(1)),
    ("U", Some(2), Some(0)),
    ("RASEMU", Some(10), Some(7)),
    ("MTE", Some(8), Some(9)),
    ("STE", Some(9), Some(8)),
    ("BPFRZ", Some(11), Some(11)),
    ("LCOFIFRZ", Some(12), Some(12)),
    ("EXCINH", Some(33), Some(33)),
    ("INTRINH", Some(34), Some(34)),
    ("TRETINH", Some(35), Some(35)),
    ("NTBREN", Some(36), Some(36)),
    ("TKBRINH", Some(37), Some(37)),
    ("ETEN", Some(38), None),
    ("INDCALLINH", Some(40), Some(40)),
    ("DIRCALLINH", Some(41), Some(41)),
    ("INDJMPINH", Some(42), Some(42)),
    ("DIRJMPINH", Some(43), Some(43)),
    ("CORSWAPINH", Some(44), Some(44)),
    ("RETINH", Some(45), Some(45)),
    ("INDLJMPINH", Some(46), Some(46)),
    ("DIRLJMPINH", Some(47), Some(47)),
];

impl Plan {
    /// Whether the texts allow it.
    pub(crate) fn is_allowed(&self) -> bool {
        let has = |name: &str| self.fields.contains(&name);
        let consecutive = self.depths.windows(2).all(|pair| match pair {
            [a, b] => *b == 2 * a,
            _ => false,
        });
        let external = if self.draft {
            // With ETEN there is MTE, and STE if there is S-mode.
            !has("ETEN") || has("MTE") && (has("STE") || !self.supervisor)
        } else {
            has("MTE") == has("STE")
        };
        !self.depths.is_empty()
            && (consecutive || !self.draft)
            && external
            && (self.supervisor || self.draft && !self.hypervisor)
            && self.cycles.is_none_or(|bits| bits <= 4)
    }

    /// The bit of a field, if there is one and it is implemented.
    fn bit(&self, name: &str) -> u64 {
        let Some((_, draft, ratified)) = FIELDS.iter().find(|row| row.0 == name) else {
            return 0;
        };
        let required = match name {
            "M" | "U" => true,
            "S" => self.supervisor,
            "BPFRZ" => !self.draft,
            _ => false,
        };
        let there = required || self.fields.contains(&name);
        let gone = !self.supervisor && (name == "S" || name == "STE");
        let bit = if self.draft { draft } else { ratified };
        match bit {
            Some(bit) if there && !gone => 1 << bit,
            _ => 0,
        }
    }

    /// The writable bits of the machine's register, but CLR and DEPTH.
    fn writable(&self) -> u64 {
        FIELDS.iter().map(|row| self.bit(row.0)).sum()
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) mode: Mode,
    pub(crate) narrow: bool,
    pub(crate) mstateen0: Option<u64>,
    pub(crate) hstateen0: Option<u64>,
    pub(crate) now: u64,
}

/// `ctrsource`, `ctrtarget`, `ctrdata`.
pub(crate) type Entry = (u64, u64, u64);

/// The model.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    pub(crate) plan: Plan,
    /// The machine's control register and the guest's, without DEPTH.
    host: u64,
    guest: u64,
    wrptr: u64,
    wrap: bool,
    frozen: bool,
    /// As many as the depth says, the newest first.
    pub(crate) entries: Vec<Entry>,
    /// Physical entries behind the depth.
    behind: Vec<Entry>,
    pub(crate) mode: Mode,
    counter: u64,
    counter_is_valid: bool,
    /// The time of whatever came last, if it is known.
    last: Option<u64>,
}

const LOW: u64 = 0xffff_ffff;

impl Naive {
    pub(crate) fn new(plan: Plan) -> Naive {
        let depth = plan.depths.first().copied().map_or(16, usize::from);
        Naive {
            plan,
            host: 0,
            guest: 0,
            wrptr: 0,
            wrap: false,
            frozen: false,
            entries: vec![(0, 0, 0); depth],
            behind: vec![(0, 0, 0); 256 - depth],
            mode: Mode::M,
            counter: 0,
            counter_is_valid: false,
            last: None,
        }
    }

    fn depth(&self) -> u64 {
        self.entries.len() as u64
    }

    // --- Registers -------------------------------------------------------

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

    // --- Cycles ----------------------------------------------------------

    /// Time goes on up to now; cycles count while it records.
    fn tick(&mut self, now: Option<u64>) {
        if self.is_active() {
            match (self.last, now) {
                (Some(last), Some(now)) => {
                    let elapsed = now.saturating_sub(last);
                    self.counter = self.counter.saturating_add(elapsed);
                }
                _ => self.counter_is_valid = false,
            }
        }
        self.last = now;
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.frozen && self.enables(self.mode)
    }

    /// CC and CCV for a record, which starts the counter anew.
    fn count(&mut self, told: bool) -> u64 {
        let cycles = core::mem::take(&mut self.counter);
        let valid = core::mem::replace(&mut self.counter_is_valid, true);
        let Some(bits) = self.plan.cycles.filter(|_| valid && told) else {
            return 0;
        };
        let most = match bits {
            0 => 4095,
            1 => 8191,
            2 => 32764,
            3 => 524_224,
            _ => 134_201_344,
        };
        let (mut cce, mut rest) = (0, cycles.min(most));
        if rest >= 4096 {
            // Halved until it is below 2^13; the top bit is not told.
            cce = 1;
            while rest >= 8192 {
                rest /= 2;
                cce += 1;
            }
            rest -= 4096;
        }
        1 << 15 | rest << 16 | cce << 28
    }

    /// The cycles that a `ctrdata` tells, if they are valid.
    fn told(data: u64) -> Option<u64> {
        if data >> 15 & 1 == 0 {
            return None;
        }
        let (cce, ccm) = (data >> 28 & 15, data >> 16 & 0xfff);
        Some(if cce == 0 {
            ccm
        } else {
            (4096 + ccm) << (cce - 1)
        })
    }

    // --- Recording -------------------------------------------------------

    /// The register that has the enable of a mode.
    fn register(&self, mode: Mode) -> u64 {
        match mode {
            Mode::VS | Mode::VU => self.guest,
            _ => self.host,
        }
    }

    fn enables(&self, mode: Mode) -> bool {
        let field = match mode {
            Mode::M => "M",
            Mode::S | Mode::VS => "S",
            Mode::U | Mode::VU => "U",
            Mode::D => return false,
        };
        self.register(mode) & self.plan.bit(field) != 0
    }

    /// The hart is in this mode now.
    pub(crate) fn enter(&mut self, mode: Mode, now: Option<u64>) {
        if mode != self.mode {
            self.tick(now);
            self.mode = mode;
        }
    }

    /// A transfer that retires.
    pub(crate) fn transfer(&mut self, t: &Transfer) {
        let trap = matches!(t.kind, Itype::Exception | Itype::Interrupt);
        let from = t.from.unwrap_or(self.mode);
        let to = t.to.unwrap_or(if trap { Mode::M } else { from });
        self.enter(from, t.time);
        self.tick(t.time);
        if trap && self.freezes(t.cause, from, to) {
            self.frozen = true;
        }
        if !self.frozen && from != Mode::D && to != Mode::D {
            self.qualify(t, trap, from, to);
        }
        self.mode = to;
    }

    fn freezes(&self, cause: Option<Cause>, from: Mode, to: Mode) -> bool {
        let field = match cause {
            Some(Cause::Exception(Some(3))) => "BPFRZ",
            Some(Cause::Interrupt(Some(13))) => "LCOFIFRZ",
            _ => return false,
        };
        let decides = if self.plan.draft { from } else { to };
        to != Mode::D && self.register(decides) & self.plan.bit(field) != 0
    }

    /// What becomes of a transfer while nothing is frozen.
    fn qualify(&mut self, t: &Transfer, trap: bool, from: Mode, to: Mode) {
        let virtualised = |mode| matches!(mode, Mode::VS | Mode::VU);
        let guests = virtualised(from) || !self.plan.draft && virtualised(to);
        let register = if guests { self.guest } else { self.host };
        if register & self.plan.bit("RASEMU") != 0 {
            if from == to && self.enables(from) {
                self.stack(t);
            }
            return;
        }
        let passes = self.passes(register, t.kind);
        match (self.enables(from), self.enables(to)) {
            (true, true) if passes => self.push(t, t.source, t.target),
            (true, false) if trap => {
                if self.shows_external(from, to) {
                    self.push(t, t.source, 0);
                }
            }
            (true, false) if passes => self.push(t, t.source, 0),
            (false, true) if passes && trap => self.push(t, 0, t.target),
            _ => {}
        }
    }

    /// Whether the filters of a register let a type through.
    fn passes(&self, register: u64, kind: Itype) -> bool {
        let inhibit = match kind {
            Itype::Exception => "EXCINH",
            Itype::Interrupt => "INTRINH",
            Itype::TrapReturn => "TRETINH",
            Itype::NotTaken => "NTBREN",
            Itype::Taken => "TKBRINH",
            Itype::IndirectCall => "INDCALLINH",
            Itype::DirectCall => "DIRCALLINH",
            Itype::IndirectJump => "INDJMPINH",
            Itype::DirectJump => "DIRJMPINH",
            Itype::Swap => "CORSWAPINH",
            Itype::Return => "RETINH",
            Itype::OtherIndirect => "INDLJMPINH",
            Itype::OtherDirect => "DIRLJMPINH",
            Itype::None | Itype::Uninferable | Itype::Reserved => return false,
        };
        let set = register & self.plan.bit(inhibit) != 0;
        set == (kind == Itype::NotTaken)
    }

    /// Whether a trap from an enabled to a disabled mode is recorded.
    fn shows_external(&self, from: Mode, to: Mode) -> bool {
        let mte = self.host & self.plan.bit("MTE") != 0;
        let ste = self.host & self.plan.bit("STE") != 0;
        let vste = self.guest & self.plan.bit("STE") != 0;
        if self.plan.draft {
            let eten = self.register(from) & self.plan.bit("ETEN") != 0;
            let agrees = match to {
                Mode::M => mte,
                Mode::S => ste,
                Mode::VS => vste,
                _ => false,
            };
            return eten && agrees;
        }
        match (from, to) {
            (Mode::U, Mode::S) | (Mode::VS, Mode::S) => ste,
            (Mode::U, Mode::M) | (Mode::VS, Mode::M) => mte && ste,
            (Mode::S, Mode::M) => mte,
            (Mode::VU, Mode::VS) => vste,
            (Mode::VU, Mode::S) => ste && vste,
            (Mode::VU, Mode::M) => mte && ste && vste,
            _ => false,
        }
    }

    /// RAS emulation, within an enabled mode.
    fn stack(&mut self, t: &Transfer) {
        let newest = self.entries.first().copied().unwrap_or_default();
        match t.kind {
            Itype::IndirectCall | Itype::DirectCall => self.push(t, t.source, t.target),
            Itype::Return => {
                self.take_over(newest);
                self.wrap &= self.wrptr != 0;
                self.wrptr = (self.wrptr + self.depth() - 1) % self.depth();
                self.entries.rotate_left(1);
                if let Some(last) = self.entries.last_mut() {
                    last.0 &= !1;
                }
            }
            Itype::Swap => {
                self.take_over(newest);
                let entry = self.entry(t, t.source, t.target, true);
                if let Some(first) = self.entries.first_mut() {
                    *first = entry;
                }
            }
            _ => {}
        }
    }

    /// A call that is gone: its cycles are those of the next record.
    fn take_over(&mut self, (source, _, data): Entry) {
        if source & 1 == 0 || self.plan.cycles.is_none() {
            return;
        }
        match Naive::told(data) {
            Some(cycles) => self.counter = self.counter.saturating_add(cycles),
            None => self.counter_is_valid = false,
        }
    }

    fn push(&mut self, t: &Transfer, source: u64, target: u64) {
        let calls = matches!(t.kind, Itype::IndirectCall | Itype::DirectCall);
        let stack = self.register(self.mode) & self.plan.bit("RASEMU") != 0 && calls;
        let entry = self.entry(t, source, target, stack);
        self.entries.pop();
        self.entries.insert(0, entry);
        self.wrap |= self.wrptr == self.depth() - 1;
        self.wrptr = (self.wrptr + 1) % self.depth();
    }

    /// A record of it.
    fn entry(&mut self, t: &Transfer, source: u64, target: u64, stack: bool) -> Entry {
        let wrong = t.mispredicted || self.plan.predicts && t.source >> 4 & 1 != 0;
        // Traps are no instructions; the predictor sees branches and jumps.
        let misp = match t.kind {
            Itype::Exception | Itype::Interrupt => false,
            Itype::TrapReturn => t.mispredicted,
            _ => wrong,
        };
        let bits = if self.plan.narrow { LOW } else { u64::MAX };
        let mut data = self.count(!stack || self.plan.accumulates);
        if self.plan.types {
            data |= u64::from(t.kind.code());
        }
        let misp = u64::from(misp && self.plan.mispredicts);
        ((source | 1) & bits, target & bits & !1 | misp, data)
    }

    /// Whether a type is recorded within the mode.
    pub(crate) fn records(&self, kind: Itype) -> bool {
        let register = self.register(self.mode);
        let stack = register & self.plan.bit("RASEMU") != 0;
        let stacked = matches!(kind.code(), 8 | 9 | 12 | 13);
        self.is_active()
            && if stack {
                stacked
            } else {
                self.passes(register, kind)
            }
    }
}
