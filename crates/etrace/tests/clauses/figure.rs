//! A second encoder, slow and plain: figure 8.1 of either text, decision by
//! decision over single instructions that are all there at once. No resync and
//! no context. What the encoder sends must be the same.
//!
//! Where the figures leave something open or cannot be meant, this one does as
//! the notes in docs/etrace-clauses.md say.

use hartrace_etrace::{
    BranchMap, Config, DataSupport, Packet, QualStatus, Report, Start, Support, Trap,
};
use hartrace_flow::Ingress;
use hartrace_isa::Itype;

use crate::common::{DRAFT, by};

/// An instruction or a trap, and whether it is traced.
#[derive(Clone, Copy)]
struct Unit {
    block: Ingress,
    trap: bool,
    qualified: bool,
}

impl Unit {
    fn itype(&self) -> Itype {
        match (self.trap, self.block.itype.is_trap()) {
            (false, true) => Itype::None,
            _ => self.block.itype,
        }
    }

    fn is_updiscon(&self) -> bool {
        matches!(self.itype().code(), 3 | 6 | 8 | 10 | 12 | 13 | 14)
    }

    fn addr(&self) -> u64 {
        match self.trap {
            true => self.block.end(),
            false => self.block.last_addr(),
        }
    }
}

/// What was sent for a unit.
#[derive(Clone, Copy, PartialEq)]
enum Sent {
    Nothing,
    /// Because of what comes next.
    ForNext,
    /// It would have been anyway.
    Anyway,
}

struct Figure<'a> {
    config: &'a Config,
    map: BranchMap,
    base: u64,
    /// The last packet told where a return from a trap went, and nothing that
    /// follows from it.
    returned: bool,
    packets: Vec<Packet>,
}

/// Blocks of one instruction each, and whether they are traced.
pub(crate) fn encode(config: &Config, blocks: &[(Ingress, bool)]) -> Vec<Packet> {
    let mut units = Vec::new();
    for &(block, qualified) in blocks {
        let unit = |trap| Unit {
            block,
            trap,
            qualified,
        };
        if block.iretire > 0 {
            units.push(unit(false));
        }
        if block.itype.is_trap() {
            units.push(unit(true));
        }
    }
    let mut figure = Figure {
        config,
        map: BranchMap::default(),
        base: 0,
        returned: false,
        packets: Vec::new(),
    };
    figure.support(true, QualStatus::NoChange);
    // The trap before was told with thaddr = 0.
    let mut trep = false;
    for (i, cur) in units.iter().enumerate().filter(|(_, u)| u.qualified) {
        let before = i.checked_sub(1).and_then(|i| units.get(i));
        let before = before.filter(|u| u.qualified);
        let next = units.get(i + 1);
        let qualified = next.filter(|u| u.qualified);
        let sent = match cur.trap {
            true => figure.trap(before, cur, qualified, &mut trep),
            false => figure.instruction(before, cur, qualified, trep),
        };
        if qualified.is_none() {
            let status = match sent {
                Sent::Anyway => QualStatus::EndedNtr,
                _ => QualStatus::EndedRep,
            };
            figure.support(next.is_some(), status);
        }
    }
    if !units.last().is_some_and(|u| u.qualified) {
        figure.support(false, QualStatus::NoChange);
    }
    figure.packets
}

impl Figure<'_> {
    fn instruction(
        &mut self,
        before: Option<&Unit>,
        cur: &Unit,
        next: Option<&Unit>,
        trep: bool,
    ) -> Sent {
        if cur.itype().is_branch() {
            self.map.bits |= u32::from(cur.itype() == Itype::NotTaken) << self.map.count;
            self.map.count += 1;
        }
        match before {
            Some(trap) if trap.trap && !trep => {
                self.trap_packet(cur, trap, true);
                return Sent::Anyway;
            }
            Some(p) if !p.trap && p.block.mode == cur.block.mode => {}
            _ => {
                self.start(cur);
                return Sent::Anyway;
            }
        }
        let trap = next.is_some_and(|n| n.trap);
        let mode = next.is_some_and(|n| !n.trap && n.block.mode != cur.block.mode);
        if let Some(jump) = before.filter(|p| p.is_updiscon()) {
            self.report(cur, false, trap || mode);
            self.returned = jump.itype() == Itype::TrapReturn && !(trap || mode);
            return Sent::Anyway;
        }
        if cur.block.trigger.notify {
            self.report(cur, true, false);
            return Sent::Anyway;
        }
        // The figures say nothing of `returned`: `readings::loop_of_trap_returns`.
        if trap || (mode && (self.map.count > 0 || self.returned)) || next.is_none() {
            self.report(cur, false, false);
            return Sent::ForNext;
        }
        if self.map.count == 31 {
            let map = std::mem::take(&mut self.map);
            self.packets.push(Packet::Branches { map, address: None });
            self.returned = false;
        }
        Sent::Nothing
    }

    fn trap(
        &mut self,
        before: Option<&Unit>,
        cur: &Unit,
        next: Option<&Unit>,
        trep: &mut bool,
    ) -> Sent {
        let told = std::mem::replace(trep, false);
        // The draft has no packet for a trap alone.
        if self.config.version == DRAFT {
            return Sent::ForNext;
        }
        match before {
            Some(trap) if trap.trap && !told => self.trap_packet(cur, trap, false),
            Some(p) if !p.trap && !p.is_updiscon() => {}
            _ => {
                self.trap_packet(cur, cur, false);
                *trep = true;
            }
        }
        if next.is_none() && !*trep {
            self.trap_packet(cur, cur, false);
        }
        Sent::ForNext
    }

    fn field(&self, address: u64) -> u64 {
        by(self.config, address as i64).address
    }

    fn report(&mut self, cur: &Unit, notify: bool, updiscon: bool) {
        let report = Report {
            notify,
            updiscon,
            ..by(self.config, cur.addr().wrapping_sub(self.base) as i64)
        };
        let map = std::mem::take(&mut self.map);
        self.packets.push(match map.count {
            0 => Packet::Address(report),
            _ => Packet::Branches {
                map,
                address: Some(report),
            },
        });
        self.base = cur.addr();
        self.returned = false;
    }

    fn start(&mut self, cur: &Unit) {
        self.packets.push(Packet::Start(Start {
            branch: cur.itype() != Itype::Taken,
            privilege: cur.block.mode.code(),
            address: self.field(cur.addr()),
            ..Start::default()
        }));
        self.synced(cur);
    }

    /// `trap` is told, and `cur` is the handler's first instruction or not.
    fn trap_packet(&mut self, cur: &Unit, trap: &Unit, thaddr: bool) {
        let interrupt = trap.itype() == Itype::Interrupt;
        let draft = self.config.version == DRAFT;
        let tval = match draft && trap.block.cause == 2 && !interrupt {
            true => trap.addr(),
            false => trap.block.tval,
        };
        let mode = if thaddr { cur } else { trap }.block.mode;
        self.packets.push(Packet::Trap(Trap {
            branch: cur.itype() != Itype::Taken,
            privilege: mode.code(),
            ecause: trap.block.cause,
            interrupt,
            thaddr,
            address: Some(self.field(cur.addr())),
            tval: (draft || !interrupt).then_some(tval),
            ..Trap::default()
        }));
        self.synced(cur);
    }

    fn synced(&mut self, cur: &Unit) {
        self.map = BranchMap::default();
        self.base = cur.addr();
        self.returned = false;
    }

    fn support(&mut self, ienable: bool, qual_status: QualStatus) {
        let data = self.config.doptions_width;
        self.packets.push(Packet::Support(Support {
            ienable,
            qual_status,
            data: data.map(|_| DataSupport::default()),
            ..Support::default()
        }));
    }
}
