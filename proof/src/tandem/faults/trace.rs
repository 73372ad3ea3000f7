//! Faults of the trace: one group is changed, the rest stays the same.

use hartrace_isa::Xlen;
use hartrace_tandem::verify::{Options, Volatile};
use hartrace_tandem::{
    Config, Follower, Group, GroupKind, Item, Next, Reader, Register, Request, Shadow,
};

use super::{Fault, Kind};
use crate::generate::Random;
use crate::tandem::Subject;

/// Groups that are looked at for a place, and of those that suit, how many
/// closely: that takes all that was reported before.
const TRIES: u64 = 3000;
const CLOSELY: usize = 12;

/// A trace, cut into groups.
#[derive(Debug)]
pub(super) struct Tape {
    config: Config,
    options: Options,
    bytes: Vec<u8>,
    /// Where groups start, and where the last ends.
    starts: Vec<usize>,
}

/// What is known where a fault is to be put.
struct Scene<'a> {
    config: &'a Config,
    shadow: &'a Shadow,
    group: &'a Group,
    kind: GroupKind,
}

impl Tape {
    pub(super) fn new(subject: &Subject, config: &Config, limit: u64) -> Result<Tape, String> {
        let bytes = subject.trace(config, limit)?;
        let mut starts = Vec::new();
        let mut reader = Reader::new(config.clone());
        let mut rest = &bytes[..];
        loop {
            match reader.next(&mut rest) {
                Next::Group => starts.push(reader.group().at as usize),
                Next::More => break,
                other => return Err(format!("{other:?}")),
            }
        }
        starts.push(bytes.len());
        Ok(Tape {
            config: config.clone(),
            options: subject.options()?,
            bytes,
            starts,
        })
    }

    /// The bytes of a group.
    fn group(&self, number: usize) -> &[u8] {
        let bounds = self.starts.get(number).zip(self.starts.get(number + 1));
        let part = bounds.and_then(|(&from, &to)| self.bytes.get(from..to));
        part.unwrap_or_default()
    }

    /// Its items.
    fn items(&self, number: usize) -> Vec<Item> {
        let mut rest = self.group(number);
        let mut items = Vec::new();
        let mut request: Option<Request> = None;
        while let Ok(Some((item, len))) = Item::read(rest, &self.config, request.as_ref()) {
            request = match item {
                Item::Request(request) => Some(request),
                _ => None,
            };
            items.push(item);
            rest = rest.get(len..).unwrap_or_default();
        }
        items
    }

    /// A fault of a kind, if there is a place for one.
    pub(super) fn fault(&self, kind: Kind, random: &mut Random) -> Option<Fault> {
        let groups = self.starts.len() as u64 - 1;
        let mut closely = 0;
        for _ in 0..TRIES {
            // Not the first: it may be where the trace starts. Not the last:
            // nobody sees what an interrupt led to.
            let number = 1 + random.below(groups.saturating_sub(2)) as usize;
            let mut items = self.items(number);
            let mut reader = Reader::new(self.config.clone());
            if reader.next(&mut self.group(number)) != Next::Group && reader.finish() != Next::Group
            {
                continue;
            }
            let group = reader.group();
            let rough = Scene {
                config: &self.config,
                shadow: &Shadow::new(&self.config),
                kind: group.kind(self.config.xlen),
                group,
            };
            if !rough.suits(kind) || self.is_taken(group) {
                continue;
            }
            if closely == CLOSELY {
                break;
            }
            closely += 1;
            let before = items.clone();
            let scene = Scene {
                shadow: &self.shadow(number),
                ..rough
            };
            if scene.spoil(kind, &mut items, random).is_none() || items == before {
                continue;
            }
            let (from, to) = (*self.starts.get(number)?, *self.starts.get(number + 1)?);
            let mut bytes = self.bytes.get(..from)?.to_vec();
            items.iter().for_each(|i| i.write(&self.config, &mut bytes));
            bytes.extend_from_slice(self.bytes.get(to..)?);
            return Some(Fault {
                kind,
                group: number as u64,
                what: format!("{before:x?} became {items:x?}"),
                bytes,
            });
        }
        None
    }

    /// What the trace has reported before a group.
    fn shadow(&self, number: usize) -> Shadow {
        let mut shadow = Shadow::new(&self.config);
        let mut reader = Reader::new(self.config.clone());
        let end = self.starts.get(number).copied().unwrap_or_default();
        let mut rest = self.bytes.get(..end).unwrap_or_default();
        while reader.next(&mut rest) == Next::Group {
            // What is not known stays so.
            let _ = shadow.apply(reader.group(), &mut |_| {});
        }
        if reader.finish() == Next::Group {
            let _ = shadow.apply(reader.group(), &mut |_| {});
        }
        shadow
    }

    /// Whether a verifier takes the value of the instruction from the trace: a
    /// load from a device, a counter, the result of a store-conditional.
    fn is_taken(&self, group: &Group) -> bool {
        let bits = group.insn.map_or(0, |insn| insn.bits);
        let outside = |addr: u64| {
            let near = |at: Option<u64>| at.is_some_and(|at| addr.wrapping_sub(at) < 64);
            self.options.volatile.touches(addr, 8)
                || near(self.options.tohost)
                || near(self.options.fromhost)
        };
        let mut data = group.data.iter().filter_map(|d| d.paddr.or(d.eaddr));
        let conditional = bits & 0x7f == 0x2f && matches!(bits >> 27, 2 | 3);
        let reads = bits & 0x7f == 0x73 && is_volatile((bits >> 20) as u16);
        conditional || reads || data.any(outside)
    }
}

/// Whether a CSR is volatile, under any of its names.
fn is_volatile(csr: u16) -> bool {
    let volatile = Volatile::default();
    let bits = |csr| volatile.bits(Register::csr(csr)) != 0;
    csr == 0x144 || bits(csr) || csr & 0xf00 == 0xc00 && bits(csr - 0x100)
}

impl Scene<'_> {
    /// Whether a group is of the sort that a fault is put in.
    fn suits(&self, kind: Kind) -> bool {
        let insn = self.kind == GroupKind::Instruction;
        let told = |with: &dyn Fn(Register) -> bool| {
            let mut registers = self.group.changes.iter().map(|c| c.register);
            registers.any(with)
        };
        let stores = self.group.data.iter().any(|d| d.store.is_some());
        match kind {
            Kind::Integer | Kind::LostWrite | Kind::OtherRegister => {
                insn && told(&|r| r.as_csr().is_none() && !r.is_float())
            }
            Kind::Float => insn && told(&Register::is_float),
            Kind::StoreData | Kind::StoreAddress | Kind::StoreSize | Kind::LostStore => stores,
            Kind::ExtraStore => insn && self.group.data.is_empty(),
            Kind::LoadAddress => insn && !stores && !self.group.data.is_empty(),
            Kind::Csr | Kind::LostCsr => {
                insn && told(&|r| r.as_csr().is_some_and(|csr| !is_volatile(csr)))
            }
            Kind::TrapCsr => {
                matches!(self.kind, GroupKind::Exception | GroupKind::Interrupt)
                    && !self.group.changes.is_empty()
            }
            Kind::LostInterrupt => self.kind == GroupKind::Interrupt,
            Kind::ExtraWrite | Kind::ExtraCsr | Kind::Pc | Kind::Mode => {
                insn || self.kind == GroupKind::Exception
            }
            Kind::Insn => insn,
        }
    }

    /// Makes the fault; `None` where it would change nothing.
    fn spoil(&self, kind: Kind, items: &mut Vec<Item>, random: &mut Random) -> Option<()> {
        let end = items.iter().rposition(|i| *i != Item::EndGroup)? + 1;
        match kind {
            Kind::Integer => self.flip(items, random, |r| r.as_csr().is_none() && !r.is_float()),
            Kind::Float => self.flip(items, random, Register::is_float),
            Kind::Csr => self.flip(items, random, |r| {
                r.as_csr().is_some_and(|csr| !is_volatile(csr))
            }),
            Kind::TrapCsr => self.trap_csr(items, random),
            Kind::LostWrite => self.lose(items, |r| r.as_csr().is_none()),
            Kind::LostCsr => self.lose(items, |r| r.as_csr().is_some_and(|csr| !is_volatile(csr))),
            Kind::ExtraWrite => self.extra(items, end, any_register(self.config, random), random),
            Kind::ExtraCsr => {
                let csr = random.one_of([0x340, 0x305, 0x140, 0x341, 0x105]);
                self.extra(items, end, Register::csr(csr), random)
            }
            Kind::OtherRegister => self.other_register(items, random),
            Kind::Pc => self.pc(items, random),
            Kind::Mode => self.mode(items, end, random),
            Kind::Insn => insn(items, random),
            Kind::LostInterrupt => {
                items.clear();
                Some(())
            }
            _ => self.access(kind, items, end, random),
        }
    }

    fn xlen_bits(&self) -> u64 {
        u64::MAX >> (64 - self.config.xlen.bits())
    }

    /// A bit of a register's new value.
    fn flip(
        &self,
        items: &mut [Item],
        random: &mut Random,
        of: impl Fn(Register) -> bool,
    ) -> Option<()> {
        let value = items.iter_mut().find_map(|item| match item {
            Item::Full(register, value) if of(*register) && !register.is_zero() => {
                Some((*register, value))
            }
            _ => None,
        });
        let (register, value) = value?;
        let bits = match register.is_float() {
            true => self.config.flen.bits(),
            false => self.config.xlen.bits(),
        };
        *value ^= 1 << random.below(bits.into());
        Some(())
    }

    /// A bit of what a trap writes. Which interrupt was taken only the trace
    /// knows.
    fn trap_csr(&self, items: &mut [Item], random: &mut Random) -> Option<()> {
        let number = random.below(4) as u16;
        let csrs = [[0x300, 0x341, 0x342, 0x343], [0x300, 0x141, 0x142, 0x143]];
        let csr = csrs.map(|c| c.get(usize::from(number)).copied());
        let mut full = items.iter_mut().filter_map(|item| match item {
            Item::Full(register, value) => Some((*register, value)),
            _ => None,
        });
        let (register, value) =
            full.find(|(register, _)| csr.contains(&Some(register.number())))?;
        let cause = matches!(register.number(), 0x142 | 0x342);
        if cause && self.kind == GroupKind::Interrupt {
            return None;
        }
        *value ^= 1 << random.below(u64::from(self.config.xlen.bits()) - 1);
        Some(())
    }

    /// A register that was reported is not, and had another value before.
    fn lose(&self, items: &mut Vec<Item>, of: impl Fn(Register) -> bool) -> Option<()> {
        let at = items.iter().position(|item| match item {
            Item::Full(register, value) => {
                of(*register) && self.shadow.get(*register).is_some_and(|old| old != *value)
            }
            _ => false,
        })?;
        items.remove(at);
        Some(())
    }

    /// A register more.
    fn extra(
        &self,
        items: &mut Vec<Item>,
        at: usize,
        register: Register,
        random: &mut Random,
    ) -> Option<()> {
        let there = self.group.changes.iter().any(|c| c.register == register);
        let mut value = random.draw() >> random.below(64) & self.xlen_bits();
        if register.is_float() && self.config.flen.bits() == 32 {
            value &= 0xffff_ffff;
        }
        let old = self.shadow.get(register)?;
        if there || old == value {
            return None;
        }
        items.insert(at, Item::Full(register, value));
        Some(())
    }

    /// A value goes to another register.
    fn other_register(&self, items: &mut [Item], random: &mut Random) -> Option<()> {
        let (register, value) = items.iter_mut().find_map(|item| match item {
            Item::Full(register, value) if register.as_csr().is_none() && !register.is_float() => {
                Some((register, *value))
            }
            _ => None,
        })?;
        let other = Register::x(1 + random.below(31) as u8);
        let changes = |r: Register| self.shadow.get(r).is_some_and(|old| old != value);
        if other == *register || !changes(other) || !changes(*register) {
            return None;
        }
        *register = other;
        Some(())
    }

    /// Execution goes on elsewhere: an instruction more or less, a branch the
    /// other way, anywhere.
    fn pc(&self, items: &mut [Item], random: &mut Random) -> Option<()> {
        let old = self.shadow.pc?;
        let len = self.group.insn.map_or(4, |insn| u64::from(insn.len));
        let here = Follower::at(self.config.xlen, Some(old));
        let next = self.group.pc.and(here.moves(self.group).to)?;
        let wrong = match random.below(4) {
            0 => next.wrapping_add(4),
            1 => old.wrapping_add(len),
            2 => old,
            _ => next ^ 2 << random.below(20),
        };
        let wrong = wrong & self.xlen_bits() & !1;
        let item = items
            .iter_mut()
            .find(|item| matches!(item, Item::IncrementPc | Item::Pc(_) | Item::TwoPcs(..)))?;
        *item = match *item {
            Item::TwoPcs(from, _) => Item::TwoPcs(from, wrong),
            _ => Item::Pc(wrong),
        };
        (wrong != next).then_some(())
    }

    fn mode(&self, items: &mut Vec<Item>, end: usize, random: &mut Random) -> Option<()> {
        let wrong = random.one_of([0, 1, 3]);
        if let Some(Item::Mode(mode)) = items.iter_mut().find(|i| matches!(i, Item::Mode(_))) {
            *mode = wrong;
            return Some(());
        }
        let now = self.shadow.mode?.code();
        items.insert(end, Item::Mode(wrong));
        (now != wrong).then_some(())
    }

    /// Faults of loads and stores.
    fn access(
        &self,
        kind: Kind,
        items: &mut Vec<Item>,
        end: usize,
        random: &mut Random,
    ) -> Option<()> {
        let xlen = self.config.xlen == Xlen::Rv64;
        match kind {
            Kind::StoreData => items.iter_mut().find_map(|item| match item {
                Item::StoreData(size, value) => {
                    *value ^= 1 << random.below(8 << *size);
                    Some(())
                }
                _ => None,
            }),
            Kind::StoreSize => items.iter_mut().find_map(|item| match item {
                Item::StoreData(size, value) => {
                    *size = random.below(4) as u8;
                    *value &= u64::MAX >> (64 - (8 << *size));
                    Some(())
                }
                _ => None,
            }),
            Kind::StoreAddress | Kind::LoadAddress => {
                let wrong = 1 << random.below(if xlen { 20 } else { 12 });
                let mut found = None;
                for item in items {
                    if let Item::EffectiveAddress(addr) | Item::PhysicalAddress(addr) = item {
                        *addr ^= wrong;
                        found = Some(());
                    }
                }
                found
            }
            Kind::LostStore => {
                let before = items.len();
                items.retain(|item| {
                    !matches!(
                        item,
                        Item::StoreData(..) | Item::EffectiveAddress(_) | Item::PhysicalAddress(_)
                    )
                });
                (items.len() < before).then_some(())
            }
            _ => {
                let addr = 0x8000_8000 + 8 * random.below(512);
                items.insert(end, Item::StoreData(2, random.draw() & 0xffff_ffff));
                items.insert(end, Item::PhysicalAddress(addr));
                items.insert(end, Item::EffectiveAddress(addr));
                Some(())
            }
        }
    }
}

/// An integer register, or one of the others where there are some.
fn any_register(config: &Config, random: &mut Random) -> Register {
    let number = 1 + random.below(31) as u8;
    match config.flen.bits() > 0 && random.chance(300) {
        true => Register::f(number),
        false => Register::x(number),
    }
}

/// A bit of the instruction that leaves its length alone.
fn insn(items: &mut [Item], random: &mut Random) -> Option<()> {
    items.iter_mut().find_map(|item| match item {
        Item::Insn16(bits) => {
            *bits ^= 1 << (2 + random.below(14));
            Some(())
        }
        Item::Insn32(bits) => {
            *bits ^= 1 << (2 + random.below(30));
            Some(())
        }
        _ => None,
    })
}
