//! A second decoder, slow and plain: the one that chapter 11 describes, one
//! instruction at a time, without anything this crate's decoder has of its own.
//! What the encoder sends must be clear to it too.

use std::collections::VecDeque;

use hartrace_etrace::{Config, Ioption, Packet, QualStatus, Report};
use hartrace_flow::{Image, SpaceId};
use hartrace_isa::{Flow, length};

/// Steps of one way, at most: chapter 11 would go on for ever.
const ENDLESS: usize = 100_000;

struct Book<'a> {
    config: &'a Config,
    image: &'a Image,
    full_address: bool,
    pc: u64,
    last_pc: u64,
    /// Outcomes not used yet, true for taken.
    outcomes: VecDeque<bool>,
    inferred_address: bool,
    start_of_trace: bool,
    address: u64,
    privilege: u8,
    pcs: Vec<u64>,
}

/// The addresses of all instructions.
pub(crate) fn decode(
    config: &Config,
    image: &Image,
    packets: &[Packet],
) -> Result<Vec<u64>, String> {
    let mut book = Book {
        config,
        image,
        full_address: config.full_address,
        pc: 0,
        last_pc: 0,
        outcomes: VecDeque::new(),
        inferred_address: false,
        start_of_trace: true,
        address: 0,
        privilege: 0,
        pcs: Vec::new(),
    };
    for packet in packets {
        book.packet(packet)?;
    }
    Ok(book.pcs)
}

/// Where a way ends.
#[derive(Clone, Copy)]
enum Until {
    /// At the last outcome.
    LastBranch,
    /// At an address, with what a packet of format 1 or 2 says of it.
    Report(Report),
    /// At the address of a synchronisation, in this mode.
    Sync(u8),
}

impl Book<'_> {
    fn flow(&self, pc: u64) -> Result<(Flow, u64), String> {
        let f = self.image.fetch(SpaceId::FIRST, pc);
        let f = f.ok_or_else(|| format!("no code at {pc:x}"))?;
        Ok((Flow::of(f.bits, f.isa), length(f.bits as u16).into()))
    }

    fn is_branch(&self, pc: u64) -> bool {
        matches!(self.flow(pc), Ok((Flow::Branch { .. }, _)))
    }

    fn is_updiscon(&self, pc: u64) -> bool {
        match self.flow(pc) {
            Ok((Flow::Indirect { rs1, .. }, _)) => rs1.number() != 0,
            Ok((flow, _)) => matches!(flow, Flow::TrapReturn | Flow::PopReturn),
            Err(_) => false,
        }
    }

    fn is_trap_return(&self, pc: u64) -> bool {
        matches!(self.flow(pc), Ok((Flow::TrapReturn, _)))
    }

    /// None left but the one of the instruction itself.
    fn is_due(&self) -> bool {
        self.outcomes.len() == usize::from(self.is_branch(self.pc))
    }

    fn wrap(&self, address: u64) -> u64 {
        let unused = 64 - u32::from(self.config.iaddress_width);
        let extended = ((address << unused) as i64 >> unused) as u64;
        self.config.xlen.wrap(extended)
    }

    fn packet(&mut self, packet: &Packet) -> Result<(), String> {
        let lsb = self.config.iaddress_lsb;
        match packet {
            Packet::Support(s) => {
                let known = &self.config.ioptions;
                if let Some(full) = known.get(s.ioptions, Ioption::FullAddress) {
                    self.full_address = full;
                }
                self.start_of_trace |= s.qual_status != QualStatus::NoChange;
                if s.qual_status == QualStatus::EndedNtr && self.inferred_address {
                    self.second_time()?;
                }
                Ok(())
            }
            Packet::Context(_) => Ok(()),
            Packet::Trap(t) if !t.thaddr => Ok(()),
            Packet::Trap(t) => {
                let address = t.address.ok_or("implicit exception")?;
                self.outcomes.clear();
                self.sync(address << lsb, !t.branch, t.privilege, true)
            }
            Packet::Start(s) => {
                let fresh = self.start_of_trace;
                if fresh {
                    self.outcomes.clear();
                }
                self.sync(s.address << lsb, !s.branch, s.privilege, fresh)
            }
            _ if self.start_of_trace => Err("the trace starts without a format 3".into()),
            Packet::Address(r) => self.report(r),
            Packet::Branches { map, address } => {
                let taken = (0..map.count).map(|i| map.bits >> i & 1 == 0);
                self.outcomes.extend(taken);
                match address {
                    Some(r) => self.report(r),
                    None => self.follow(Until::LastBranch),
                }
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn report(&mut self, report: &Report) -> Result<(), String> {
        let lsb = self.config.iaddress_lsb;
        let unused = 64 - u32::from(self.config.iaddress_width - lsb);
        let field = ((report.address << unused) as i64 >> unused) as u64;
        let from = if self.full_address { 0 } else { self.address };
        let to = self.wrap(from.wrapping_add(field << lsb));
        // "Previously reported" is where the walk is, so this may change now.
        self.address = to;
        self.follow(Until::Report(*report))
    }

    fn sync(&mut self, address: u64, taken: bool, mode: u8, fresh: bool) -> Result<(), String> {
        self.inferred_address = false;
        self.address = self.wrap(address);
        if self.is_branch(self.address) {
            self.outcomes.push_back(taken);
        }
        if fresh {
            self.pc = self.address;
            // No jump is inferred from what was before.
            self.last_pc = self.pc;
            self.pcs.push(self.pc);
        } else {
            self.follow(Until::Sync(mode))?;
        }
        self.privilege = mode;
        self.start_of_trace = false;
        Ok(())
    }

    /// On to the second time the hart comes by where it is now.
    fn second_time(&mut self) -> Result<(), String> {
        self.inferred_address = false;
        let here = self.pc;
        for _ in 0..ENDLESS {
            if self.next_pc(here)? {
                return Ok(());
            }
        }
        Err("no second time".into())
    }

    fn follow(&mut self, until: Until) -> Result<(), String> {
        if self.inferred_address {
            self.second_time()?;
        }
        let to = self.address;
        for _ in 0..ENDLESS {
            let jumped = self.next_pc(to)?;
            let here = self.pc == to;
            match until {
                Until::LastBranch if jumped => return Err("a jump before the last branch".into()),
                Until::LastBranch if self.outcomes.len() == 1 && self.is_branch(self.pc) => {
                    return Ok(());
                }
                _ if jumped => {
                    return match self.is_due() {
                        true => Ok(()),
                        false => Err(format!("unprocessed branches at {:x}", self.pc)),
                    };
                }
                Until::LastBranch => {}
                Until::Report(r) if here && r.notify && self.is_due() => return Ok(()),
                Until::Report(r) if here && !r.updiscon && self.is_due() => {
                    self.inferred_address = true;
                    return Ok(());
                }
                Until::Report(_) => {}
                Until::Sync(mode) => {
                    let allowed = mode == self.privilege || self.is_trap_return(self.last_pc);
                    if here && self.is_due() && allowed {
                        return Ok(());
                    }
                }
            }
        }
        Err(format!("endless on the way to {to:x}"))
    }

    /// One instruction on; true if that took a jump to `address`.
    fn next_pc(&mut self, address: u64) -> Result<bool, String> {
        let this = self.pc;
        let xlen = self.config.xlen;
        let (flow, len) = self.flow(this)?;
        let mut jumped = false;
        let mut next = xlen.wrap(this.wrapping_add(len));
        let constant = self.flow(self.last_pc).ok().filter(|_| self.config.sijump);
        let sequential =
            constant.and_then(|(before, _)| flow.sequential_target(before, self.last_pc, xlen));
        if let Flow::Branch { .. } = flow {
            let taken = self.outcomes.pop_front();
            if taken.ok_or_else(|| format!("cannot resolve the branch at {this:x}"))? {
                next = flow.target(this, xlen).ok_or("no target")?;
            }
        } else if let Some(target) = sequential {
            next = target;
        } else if self.is_updiscon(this) {
            (next, jumped) = (address, true);
        } else if let Some(target) = flow.target(this, xlen) {
            next = target;
        }
        self.last_pc = this;
        self.pc = next;
        self.pcs.push(next);
        Ok(jumped)
    }
}
