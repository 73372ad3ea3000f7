//! Packets to instructions (chapter 11 of the draft, "Decoder" in 2.0 and
//! 2.05), with the rules of `docs/etrace-implicit-return.md`.

use std::collections::{BTreeMap, VecDeque};

use super::insn::{Insn, Kind, Role, extend, insn};
use super::modes::{Cache, Predictor, Stack};
use super::packet::{Options, Packet, packets};
use super::{Item, Mode, PlainError, Settings, Trap, Version};

/// More instructions than this without a branch outcome are an endless loop.
const LONGEST_PATH: usize = 1 << 20;

/// `qual_status`
const NO_CHANGE: u64 = 0;
const ENDED_REP: u64 = 1;
const ENDED_NTR: u64 = 3;

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

/// What the address of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The target of an uninferable discontinuity.
    Target,
    /// An instruction that the program reached otherwise.
    Path,
    /// Either: the first of both on the path.
    Either,
    /// As `Path`, or the target of a discontinuity: a packet of format 3.
    Sync { privilege: u64 },
    /// There is no address: the last branch.
    LastBranch,
}

/// What a packet leads to.
struct Goal {
    address: u64,
    meaning: Meaning,
    /// `irets` or `irdepth`, if `irreport` is set.
    returns: Option<u64>,
}

/// Outcomes of branches that were reported and not yet used: those of a branch
/// map, then correct predictions, then perhaps a wrong one.
#[derive(Clone, Default)]
struct Outcomes {
    known: VecDeque<bool>,
    predicted: u64,
    mispredicted: bool,
}

impl Outcomes {
    fn left(&self) -> u64 {
        self.known.len() as u64 + self.predicted + u64::from(self.mispredicted)
    }

    /// The outcome of the branch at `pc`, which is the next one.
    fn next(&self, pc: u64, predictor: &Predictor) -> Option<bool> {
        match (self.known.front(), self.predicted, self.mispredicted) {
            (Some(&taken), ..) => Some(taken),
            (None, 1.., _) => Some(predictor.predict(pc)),
            (None, 0, true) => Some(!predictor.predict(pc)),
            (None, 0, false) => None,
        }
    }

    fn drop_next(&mut self) {
        if self.known.pop_front().is_some() {
        } else if self.predicted > 0 {
            self.predicted -= 1;
        } else {
            self.mispredicted = false;
        }
    }
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

    /// 6.3: format 3, subformat 1.
    fn trap(&mut self, packet: &Packet) -> Result<(), String> {
        let draft = self.settings.version == Version::Draft;
        let interrupt = packet.get("interrupt") == 1;
        let cause = packet.get("ecause");
        let privilege = packet.get("privilege");
        let thaddr = draft || packet.get("thaddr") == 1;
        let start = matches!(self.at, At::Nowhere | At::Trap { start: true, .. });
        if self.at == At::Nowhere {
            self.items.push(Item::Start);
        }
        let mut epc = self.trap_address(packet, interrupt, thaddr)?;
        let mut tval = packet.fields.get("tval").map(|&tval| self.canonical(tval));
        if draft {
            let tvalepc = packet.get("tvalepc");
            match cause == 2 && !interrupt {
                true => epc = Some(self.canonical(tvalepc)),
                false => tval = Some(self.canonical(tvalepc)),
            }
        }
        let mut trap = Trap {
            interrupt,
            cause,
            tval,
            epc,
            handler: None,
        };
        if !thaddr {
            self.items.push(Item::Trap(trap));
            return Ok(());
        }
        if matches!(
            self.at,
            At::Trap {
                after_jump: true,
                ..
            }
        ) {
            return Err("thaddr is 1 where a packet of subformat 0 has the handler".to_owned());
        }
        let key = (privilege, interrupt, cause);
        let handler = match packet.has("address") {
            true => self.full_address(packet),
            false => self.implicit_handler(key)?,
        };
        self.handlers.insert(key, handler);
        trap.handler = Some(handler);
        self.items.push(Item::Trap(trap));
        let branch = self.insn(handler)?.is_branch();
        let taken = packet.get("branch") == 0;
        if taken && !branch {
            return Err("`branch` is 0, and the handler starts with no branch".to_owned());
        }
        self.enter(handler, branch, taken);
        // A difference is one to "the instruction reported in the previous packet that
        // contained an address" (3.2.1). That is this instruction even where the
        // packet leaves its address out: the pseudo code sets `address` here.
        self.synchronized(handler, privilege, start);
        Ok(())
    }

    /// Where a trap was taken, as far as it is known. Leaves the instruction
    /// before it.
    fn trap_address(
        &mut self,
        packet: &Packet,
        interrupt: bool,
        thaddr: bool,
    ) -> Result<Option<u64>, String> {
        let address = (!thaddr && !interrupt).then(|| self.full_address(packet));
        let start = matches!(self.at, At::Nowhere | At::Trap { start: true, .. });
        let (epc, after_jump) = match self.at {
            // "An exception occuring on the 1st traced instruction is treated in
            // the same way", as one at the target of a jump.
            At::Nowhere => (address, !interrupt),
            // The field is undefined for a trap right after another one, though the
            // pseudo code of 2.05 reads it (`poss_next_epc`).
            At::Trap { after_jump, .. } => (None, after_jump),
            At::Instruction => match self.leave(None)? {
                Left::To(pc) => (Some(pc), false),
                Left::Stays => (Some(self.pc), false),
                Left::Unknown
                    if thaddr && !interrupt && self.settings.version != Version::Draft =>
                {
                    return Err("an exception at the target of a jump has no address".to_owned());
                }
                Left::Unknown | Left::Jumped(_) => (address, !interrupt),
            },
        };
        if !thaddr {
            self.at = At::Trap { after_jump, start };
        }
        Ok(epc)
    }

    /// 3.2.3: the handler of a trap whose packet has no address.
    fn implicit_handler(&self, key: (u64, bool, u64)) -> Result<u64, String> {
        let (privilege, interrupt, cause) = key;
        let [mtvec, stvec, vstvec] = self.settings.vectors;
        let vector = match privilege {
            3 => mtvec,
            1 => stvec,
            6 => vstvec,
            _ => None,
        };
        let vectored = |tvec: u64| {
            let base = tvec & !3;
            match tvec & 3 == 1 && interrupt {
                true => self.wrap(base.wrapping_add(4 * cause)),
                false => base,
            }
        };
        let known = vector.map(vectored);
        let known = known.or_else(|| self.handlers.get(&key).copied());
        known.ok_or_else(|| format!("the handler of cause {cause} is not known"))
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

    /// A copy without what was decoded so far.
    fn trial(&mut self) -> Self {
        let items = std::mem::take(&mut self.items);
        let trial = self.clone();
        self.items = items;
        trial
    }

    /// Retires instructions up to the goal. Gives whether a jump led there.
    fn follow(&mut self, goal: &Goal) -> Result<bool, String> {
        let mut longest = LONGEST_PATH;
        loop {
            let before = self.pc;
            let left = self.outcomes.left();
            let jumped = match self.leave(Some(goal))? {
                Left::To(pc) => {
                    self.retire(pc);
                    false
                }
                Left::Jumped(pc) => {
                    self.retire(pc);
                    true
                }
                Left::Stays | Left::Unknown => {
                    return Err(format!("nothing says what follows {before:#x}"));
                }
            };
            self.last_pc = Some(before);
            match goal.meaning {
                Meaning::Path if jumped => {
                    return Err("the target of a jump is reported as if it was not one".to_owned());
                }
                Meaning::Sync { privilege } if jumped && !self.may_change_to(privilege)? => {
                    return Err("a jump leads to another privilege".to_owned());
                }
                _ => {}
            }
            if jumped || self.is_place(goal)? {
                self.arrive()?;
                return Ok(jumped);
            }
            longest = match self.outcomes.left() == left {
                true => longest - 1,
                false => LONGEST_PATH,
            };
            if longest == 0 {
                return Err(format!("the path does not reach {:#x}", goal.address));
            }
        }
    }

    /// Whether the instruction just retired is the one that a packet means, if
    /// that does not follow from a jump.
    fn is_place(&self, goal: &Goal) -> Result<bool, String> {
        let branch = self.insn(self.pc)?.is_branch();
        let all_used = self.outcomes.left() == u64::from(branch);
        let here = self.pc == goal.address && all_used;
        Ok(match goal.meaning {
            Meaning::LastBranch => branch && all_used,
            Meaning::Target => false,
            Meaning::Path | Meaning::Either => here && self.returns_match(goal),
            Meaning::Sync { privilege } => here && self.may_change_to(privilege)?,
        })
    }

    /// Whether the hart may have this privilege now: only a return from a trap changes
    /// it on the way.
    fn may_change_to(&self, privilege: u64) -> Result<bool, String> {
        let last = self.last_pc.map(|pc| self.insn(pc)).transpose()?;
        let returned = last.is_some_and(|last| last.kind == Kind::TrapReturn);
        Ok(privilege == self.privilege || returned)
    }

    /// Whether an instruction on the path comes after as many returns as its
    /// packet says.
    fn returns_match(&self, goal: &Goal) -> bool {
        let Some(reported) = goal.returns else {
            return self.implicit_returns == 0;
        };
        match self.counts_returns() {
            true => self.implicit_returns == reported,
            false => self.implicit_returns > 0 && self.stack.depth() == reported,
        }
    }

    fn counts_returns(&self) -> bool {
        self.options.iret_ext
    }

    /// The end of a packet: at most the outcome of this branch is left.
    fn arrive(&mut self) -> Result<(), String> {
        let branch = self.insn(self.pc)?.is_branch();
        if self.outcomes.left() != u64::from(branch) {
            return Err(format!("{} outcomes are left", self.outcomes.left()));
        }
        let next = self.outcomes.next(self.pc, &self.predictor);
        self.outcomes = Outcomes::default();
        self.outcomes.known.extend(next.filter(|_| branch));
        Ok(())
    }

    /// What follows the current instruction, with the effect that it has on
    /// predictor, return stack and cache. Without a goal a trap follows.
    fn leave(&mut self, goal: Option<&Goal>) -> Result<Left, String> {
        let pc = self.pc;
        let insn = self.insn(pc)?;
        let next = self.wrap(pc.wrapping_add(insn.len));
        let left = match insn.kind {
            Kind::Plain | Kind::Constant { .. } => Left::To(next),
            Kind::Trap => Left::Stays,
            Kind::Branch { to } => {
                let outcome = self.outcomes.next(pc, &self.predictor);
                let taken = outcome.ok_or_else(|| format!("no outcome for {pc:#x}"))?;
                self.outcomes.drop_next();
                if self.on(Mode::BranchPrediction) {
                    self.predictor.update(pc, taken);
                }
                self.implicit_returns = 0;
                Left::To(if taken { self.wrap(to) } else { next })
            }
            Kind::Direct { to, .. } => Left::To(self.wrap(to)),
            Kind::TrapReturn => self.jump(insn, goal)?,
            Kind::Indirect { rs1, offset, role } => match self.constant(rs1, role)? {
                Some(base) => Left::To(self.wrap(base.wrapping_add(offset) & !1)),
                None => self.jump(insn, goal)?,
            },
        };
        if self.on(Mode::ImplicitReturn) {
            match insn.kind {
                Kind::Direct { role, .. } | Kind::Indirect { role, .. } => match role {
                    Role::Call => self.stack.push(next),
                    Role::Return => self.stack.pop(),
                    Role::Neither => {}
                },
                _ => {}
            }
        }
        Ok(left)
    }

    /// 3.2.4: the register of a jump, if the instruction before put a constant
    /// in it.
    fn constant(&self, rs1: u32, role: Role) -> Result<Option<u64>, String> {
        let counts = rs1 != 0 && (role != Role::Return || self.settings.sijump_returns);
        let Some(last_pc) = self
            .last_pc
            .filter(|_| counts && self.on(Mode::SequentialJump))
        else {
            return Ok(None);
        };
        Ok(match self.insn(last_pc)?.kind {
            Kind::Constant { rd, value } if rd == rs1 => Some(value),
            _ => None,
        })
    }

    /// An uninferable discontinuity, or a return that the stack makes
    /// inferable.
    fn jump(&mut self, insn: Insn, goal: Option<&Goal>) -> Result<Left, String> {
        let Some(goal) = goal else {
            return Ok(Left::Unknown);
        };
        let implicit = insn.is_return() && self.on(Mode::ImplicitReturn);
        let entry = self.stack.top().filter(|_| implicit);
        if let Some(entry) = entry {
            if !self.is_reported_return(goal)? {
                self.implicit_returns += 1;
                return Ok(Left::To(entry));
            }
        } else if goal.returns.is_some() && implicit {
            // Nothing is on the stack: a count is given all the same.
            if self.counts_returns() && !self.is_reported_return(goal)? {
                return Err("a return with an empty stack, and another count".to_owned());
            }
        }
        if goal.meaning == Meaning::LastBranch {
            return Err(format!(
                "an uninferable jump at {:#x} before the last branch",
                self.pc
            ));
        }
        // 3.2.7: the target of a return that was predicted is not stored.
        if self.on(Mode::JumpTargetCache) && entry != Some(goal.address) {
            self.cache.store(goal.address);
        }
        Ok(Left::Jumped(goal.address))
    }

    /// Whether a packet means the target of this return: it comes after all
    /// branches but perhaps one at the target.
    fn is_reported_return(&self, goal: &Goal) -> Result<bool, String> {
        let target = matches!(goal.meaning, Meaning::Target | Meaning::Either);
        let Some(reported) = goal.returns.filter(|_| target) else {
            return Ok(false);
        };
        let branch = self.insn(goal.address)?.is_branch();
        let in_tail = self.outcomes.left() == u64::from(branch);
        let count = match self.counts_returns() {
            true => self.implicit_returns,
            false => self.stack.depth(),
        };
        Ok(in_tail && count == reported)
    }
}

/// How an instruction is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// The code, an outcome or the return stack says where to.
    To(u64),
    /// The packet says where to.
    Jumped(u64),
    /// A jump to an address that no packet has.
    Unknown,
    /// `ecall` or `ebreak`: a trap has to follow.
    Stays,
}

/// Whether the address of a packet is the target of a jump (6.6.2): its own
/// flags say so, or the next packet.
fn meaning(packet: &Packet, later: &[Packet]) -> Result<Meaning, String> {
    if packet.notify && packet.updiscon {
        return Err("notify and updiscon are both set".to_owned());
    }
    // The counter was full: "the reported address will always be for a branch".
    if packet.notify || packet.get("branch_count") == 0xffff_ffff {
        return Ok(Meaning::Path);
    }
    let next = later.iter().find(|p| !says_nothing(p));
    let Some(next) = next else {
        let meaning = [Meaning::Either, Meaning::Target];
        return Ok(meaning[usize::from(packet.updiscon)]);
    };
    if packet.updiscon && next.format != 3 {
        return Err("updiscon is set, and no packet of format 3 follows".to_owned());
    }
    if packet.updiscon || next.format != 3 {
        return Ok(Meaning::Target);
    }
    // A trap follows the instruction that was reported last, a synchronization need
    // not. ended_ntr: it would have been sent anyway.
    Ok(match (next.subformat, next.get("qual_status")) {
        (Some(1), _) | (Some(3), ENDED_REP) => Meaning::Path,
        (Some(3), ENDED_NTR) => Meaning::Target,
        _ => Meaning::Either,
    })
}

/// Whether a packet does not tell whether the hart went on.
fn says_nothing(packet: &Packet) -> bool {
    packet.is(3, 2) || packet.is(3, 3) && packet.get("qual_status") == NO_CHANGE
}
