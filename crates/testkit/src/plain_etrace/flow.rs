//! Packets to instructions (chapter 11 of the draft, "Decoder" in 2.0 and
//! 2.05), with the rules of `docs/etrace-implicit-return.md`.

mod goal;
mod trap;
mod walk;

use std::collections::BTreeMap;

use super::insn::{Insn, extend, insn};
use super::modes::{Cache, Predictor, Stack};
use super::packet::{Options, Packet, packets};
use super::{Item, Mode, PlainError, Settings, Trap, Version};
use goal::{Goal, Meaning, NO_CHANGE, Outcomes, meaning, says_nothing};

/// The packets of a stream and what they report. `code` is the program: pieces
/// of memory, each with its address.
///
/// # Errors
///
/// The first packet that contradicts the code, the packets before it, or the
/// specification.
pub fn decode(
    bytes: &[u8],
    settings: &Settings,
    code: &[(u64, Vec<u8>)],
) -> Result<(Vec<Packet>, Vec<Item>), PlainError> {
    let packets = packets(bytes, settings)?;
    let mut decoder = Decoder {
        settings,
        code,
        options: Options::new(settings),
        items: Vec::new(),
        at: At::Nowhere,
        pc: 0,
        last_pc: None,
        privilege: 0,
        context: 0,
        address: 0,
        closed: false,
        outcomes: Outcomes::default(),
        implicit_returns: 0,
        stack: Stack::default(),
        predictor: Predictor::new(0, 1),
        cache: Cache::new(0, 1),
        handlers: BTreeMap::new(),
    };
    for (i, packet) in packets.iter().enumerate() {
        let done = decoder.packet(packet, &packets[i + 1..]);
        done.map_err(|what| PlainError::new(i, what))?;
    }
    let items = decoder.items;
    Ok((packets, items))
}

/// Where the decoder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before a start of the trace.
    Nowhere,
    /// At the last instruction that retired.
    Instruction,
    /// After a trap that was reported without an instruction of its handler.
    Trap {
        /// The first trap is an exception at the target of an uninferable jump.
        after_jump: bool,
        /// Nothing was traced before the trap.
        start: bool,
    },
}

#[derive(Clone)]
struct Decoder<'s> {
    settings: &'s Settings,
    code: &'s [(u64, Vec<u8>)],
    /// Those of the last support packet.
    options: Options,
    items: Vec<Item>,
    at: At,
    /// The last instruction that retired. Its effect on predictor and return
    /// stack comes when it is left, so after any packet that reports it.
    pc: u64,
    /// The one before it, if both were traced one after the other.
    last_pc: Option<u64>,
    privilege: u64,
    context: u64,
    /// The last address that a packet reported: the base of differences.
    address: u64,
    /// The last packet says that one of format 3 follows at once.
    closed: bool,
    outcomes: Outcomes,
    /// Returns whose target no packet had, since the last branch or packet.
    implicit_returns: u64,
    stack: Stack,
    predictor: Predictor,
    cache: Cache,
    /// Handlers by privilege, interrupt and cause.
    handlers: BTreeMap<(u64, bool, u64), u64>,
}

impl Decoder<'_> {
    fn packet(&mut self, packet: &Packet, later: &[Packet]) -> Result<(), String> {
        match (packet.format, packet.subformat) {
            (3, Some(0)) => self.sync(packet)?,
            (3, Some(1)) => self.trap(packet)?,
            (3, Some(2)) => {}
            (3, _) => return self.support(packet),
            _ => return self.follow_packet(packet, later),
        }
        self.context = packet.get("context");
        Ok(())
    }

    fn on(&self, mode: Mode) -> bool {
        self.options.on(mode)
    }

    fn support(&mut self, packet: &Packet) -> Result<(), String> {
        if packet.get("encoder_mode") != 0 {
            return Err("encoder_mode is not branch trace".to_owned());
        }
        self.options = packet.options.clone();
        if packet.get("qual_status") != NO_CHANGE {
            self.at = At::Nowhere;
        }
        Ok(())
    }

    /// Clears what encoder and decoder both learn.
    fn forget(&mut self) {
        let options = &self.options;
        let lsb = self.settings.iaddress_lsb;
        let (stack, counter) = (options.return_stack_size, options.call_counter_size);
        self.stack = Stack::new(self.settings, stack, counter);
        self.predictor = Predictor::new(options.bpred_size, lsb);
        self.cache = Cache::new(options.cache_size, lsb);
    }

    /// The address of a field, as an address of the hart.
    fn canonical(&self, address: u64) -> u64 {
        let address = extend(address, self.settings.iaddress_width);
        self.wrap(address)
    }

    fn wrap(&self, address: u64) -> u64 {
        match self.settings.rv32 {
            true => address & 0xffff_ffff,
            false => address,
        }
    }

    fn full_address(&self, packet: &Packet) -> u64 {
        self.canonical(packet.get("address") << self.settings.iaddress_lsb)
    }

    fn insn(&self, pc: u64) -> Result<Insn, String> {
        let missing = || format!("there is no code at {pc:#x}");
        // Pieces may end inside an instruction.
        let byte = |at: u64| {
            self.code.iter().find_map(|(base, bytes)| {
                let offset = usize::try_from(at.checked_sub(*base)?).ok()?;
                bytes.get(offset).map(|&byte| u32::from(byte))
            })
        };
        let parcel = |at: u64| Some(byte(at)? | byte(self.wrap(at.wrapping_add(1)))? << 8);
        let low = parcel(pc).ok_or_else(missing)?;
        let high = match low & 3 {
            3 => parcel(self.wrap(pc.wrapping_add(2))).ok_or_else(missing)?,
            _ => 0,
        };
        Ok(insn(low | high << 16, pc, self.settings))
    }

    fn retire(&mut self, pc: u64) {
        self.pc = pc;
        self.items.push(Item::Insn(pc));
    }

    /// 6.2: format 3, subformat 0.
    fn sync(&mut self, packet: &Packet) -> Result<(), String> {
        let address = self.full_address(packet);
        let privilege = packet.get("privilege");
        let branch = self.insn(address)?.is_branch();
        let taken = packet.get("branch") == 0;
        if taken && !branch {
            return Err("`branch` is 0, and the address has no branch".to_owned());
        }
        self.implicit_returns = 0;
        let start = matches!(self.at, At::Nowhere | At::Trap { start: true, .. });
        match self.at {
            At::Instruction => {
                if branch {
                    self.outcomes.known.push_back(taken);
                }
                let goal = Goal {
                    address,
                    meaning: Meaning::Sync { privilege },
                    returns: None,
                };
                // A change of context may be a discontinuity (table 4.4).
                let changed = packet.get("context") != self.context;
                match changed && !self.leads_to(&goal) {
                    true => self.enter(address, branch, taken),
                    false => drop(self.follow(&goal)?),
                }
            }
            At::Trap { .. } => {
                if let Some(Item::Trap(trap)) = self.items.last_mut() {
                    trap.handler = Some(address);
                }
                self.enter(address, branch, taken);
            }
            At::Nowhere => {
                self.items.push(Item::Start);
                self.enter(address, branch, taken);
            }
        }
        self.synchronized(address, privilege, start);
        Ok(())
    }

    /// Whether the code leads to a goal. If the packet before says that a packet of
    /// format 3 follows at once, no jump comes in between.
    fn leads_to(&mut self, goal: &Goal) -> bool {
        let mut trial = self.trial();
        match trial.follow(goal) {
            Ok(jumped) => !self.closed || !jumped || trial.items.len() == 1,
            Err(_) => false,
        }
    }

    /// Starts at an instruction that follows no other one.
    fn enter(&mut self, address: u64, branch: bool, taken: bool) {
        self.outcomes = Outcomes::default();
        if branch {
            self.outcomes.known.push_back(taken);
        }
        self.last_pc = None;
        self.retire(address);
    }

    fn synchronized(&mut self, address: u64, privilege: u64, start: bool) {
        self.address = address;
        self.privilege = privilege;
        self.at = At::Instruction;
        self.closed = false;
        // A decoder that starts here does not know the instruction before.
        self.last_pc = None;
        if start || !self.options.resync_disabled {
            self.forget();
        }
    }

    /// Formats 0, 1 and 2.
    fn follow_packet(&mut self, packet: &Packet, later: &[Packet]) -> Result<(), String> {
        if self.at != At::Instruction {
            return Err("a packet of format 0, 1 or 2 where one of format 3 has to be".to_owned());
        }
        self.implicit_returns = 0;
        self.add_outcomes(packet);
        let address = match (packet.has("address"), packet.has("index")) {
            (true, _) if self.on(Mode::FullAddress) => Some(self.full_address(packet)),
            (true, _) => {
                let lsb = self.settings.iaddress_lsb;
                let width = self.settings.iaddress_width - lsb;
                let difference = extend(packet.get("address"), width) << lsb;
                Some(self.canonical(self.address.wrapping_add(difference)))
            }
            (_, true) => match self.cache.get(packet.get("index")) {
                Some(address) => Some(address),
                None => return Err("an entry of the jump target cache is invalid".to_owned()),
            },
            _ => None,
        };
        let count = packet.fields.get("irets").or(packet.fields.get("irdepth"));
        let mut goal = Goal {
            address: address.unwrap_or(0),
            meaning: match address {
                Some(_) => meaning(packet, later)?,
                None => Meaning::LastBranch,
            },
            returns: count.copied().filter(|_| packet.irreport),
        };
        if let Some(address) = address {
            self.address = address;
        }
        if goal.meaning == Meaning::Either && self.contradicts(&goal, later) {
            goal.meaning = Meaning::Target;
        }
        let jumped = self.follow(&goal)?;
        let place = matches!(goal.meaning, Meaning::Path | Meaning::Either) && !jumped;
        self.closed = packet.updiscon || place && !packet.notify;
        Ok(())
    }

    /// Whether an address cannot be that of the first such instruction on the path. It
    /// is reported there because a packet of format 3 follows at once, so the next
    /// instruction must be that of the packet.
    fn contradicts(&mut self, goal: &Goal, later: &[Packet]) -> bool {
        let next = later.iter().find(|p| !says_nothing(p));
        let Some(next) = next.filter(|p| p.is(3, 0)) else {
            return false;
        };
        let mut trial = self.trial();
        match trial.follow(goal) {
            Err(_) => true,
            Ok(jumped) => {
                let before = trial.items.len();
                trial.closed = !jumped;
                let lost = trial.sync(next).is_err();
                !jumped && (lost || trial.items.len() != before + 1)
            }
        }
    }

    fn add_outcomes(&mut self, packet: &Packet) {
        if packet.has("branch_count") {
            let format = packet.get("branch_fmt");
            self.outcomes.predicted = packet.get("branch_count") + 31;
            self.outcomes.mispredicted = format == 0 || format == 3;
        }
        let map = packet.get("branch_map");
        let branches = match packet.get("branches") {
            0 if packet.format == 1 => 31,
            branches => branches,
        };
        let outcomes = (0..branches).map(|i| map >> i & 1 == 0);
        self.outcomes.known.extend(outcomes);
    }
}
