//! Faults of the core: it does something wrong once, the trace records it, and
//! everything after it follows from it.

use hartrace_flow::{
    Access, AccessKind, CsrWrite, Effects, Few, Mode, Model, Place, RegId, RegWrite, Step,
};
use hartrace_hart::Machine;
use hartrace_tandem::Encoder;

use super::{Fault, Kind, Trial};
use crate::generate::Random;
use crate::tandem::Watch;

/// Steps that are looked at for a place.
const TRIES: u64 = 3000;

/// The core's own encoder.
struct Core {
    encoder: Encoder,
    bytes: Vec<u8>,
}

impl Core {
    fn step(&mut self, step: &Step, effects: &Effects) {
        self.encoder.step(step, effects, &mut self.bytes);
    }

    fn run(&mut self, machine: &mut Machine, limit: u64) {
        machine.run(
            limit,
            &mut Watch(&mut |step, effects| self.step(step, effects)),
        );
    }
}

/// What a fault makes of a step, and what has to be set for it in the core.
struct Spoilt {
    step: Step,
    effects: Effects,
    places: Vec<(Place, u64)>,
}

/// A fault of a kind, if there is a place for one.
pub(super) fn fault(
    trial: &Trial<'_>,
    kind: Kind,
    random: &mut Random,
) -> Result<Option<Fault>, String> {
    let mut machine = trial.subject.machine()?;
    let mut core = Core {
        encoder: Encoder::new(trial.config.clone()).map_err(|e| e.to_string())?,
        bytes: Vec::new(),
    };
    core.run(&mut machine, random.below(trial.limit));
    let mut effects = Effects::default();
    for _ in 0..TRIES {
        let before = Before::new(&machine);
        let step = machine.step(&mut effects);
        let Some(spoilt) = spoil(kind, &step, &effects, &before, &machine, random) else {
            core.step(&step, &effects);
            continue;
        };
        let set = |(place, value): &(Place, u64)| {
            machine.write(*place, *value).is_ok() && machine.read(*place) == Ok(*value)
        };
        if !spoilt.places.iter().all(set) {
            // Half of it may have been done.
            return Ok(None);
        }
        core.step(&spoilt.step, &spoilt.effects);
        // A return before it may have waited for it: count after it.
        let group = core.encoder.counters().groups - 1;
        core.run(&mut machine, trial.limit / 2);
        core.encoder.finish(&mut core.bytes);
        return Ok(Some(Fault {
            kind,
            group,
            what: format!(
                "{step:x?} {:x?} {:x?} {:x?}, set {:x?}",
                &effects.regs[..],
                &effects.csrs[..],
                &effects.accesses[..],
                spoilt.places
            ),
            bytes: core.bytes,
        }));
    }
    Ok(None)
}

/// State before a step, for what it should not have done.
struct Before {
    x: [u64; 32],
    mode: u64,
    /// Where a plain store goes, and what is there.
    store: Option<(u64, u64)>,
}

impl Before {
    fn new(machine: &Machine) -> Before {
        let read = |place| machine.read(place).unwrap_or(0);
        let x = ::core::array::from_fn(|n| read(Place::Reg(RegId::X(n as u8))));
        let pc = read(Place::Pc);
        let bits = read(Place::Memory { addr: pc, size: 4 }) as u32;
        // sb, sh, sw, sd
        let store = (bits & 0x7f == 0x23).then(|| {
            let offset = (bits & 0xfe00_0000).cast_signed() >> 20 | (bits >> 7 & 31) as i32;
            let base = x.get((bits >> 15 & 31) as usize).copied().unwrap_or(0);
            let addr = base.wrapping_add_signed(offset.into());
            (addr, read(Place::Memory { addr, size: 8 }))
        });
        Before {
            x,
            mode: read(Place::Mode),
            store,
        }
    }
}

/// The fault, if the step has a place for it.
fn spoil(
    kind: Kind,
    step: &Step,
    effects: &Effects,
    before: &Before,
    machine: &Machine,
    random: &mut Random,
) -> Option<Spoilt> {
    let mut spoilt = Spoilt {
        step: *step,
        effects: *effects,
        places: Vec::new(),
    };
    let insn = match step {
        Step::Insn(insn) => Some(*insn),
        _ => None,
    };
    let xlen = machine.config().validate().ok()?.xlen().bits();
    let wide = u64::MAX >> (64 - xlen);
    // Values that a verifier takes from the trace.
    let bits = insn.map_or(0, |insn| insn.bits);
    let conditional = bits & 0x7f == 0x2f && matches!(bits >> 27, 2 | 3);
    let device = effects.accesses.iter().any(|a| a.addr < 0x8000_0000);
    if conditional || device || bits & 0x7f == 0x73 && !matches!(kind, Kind::Csr | Kind::Mode) {
        return None;
    }
    let is_float = |w: &RegWrite| matches!(w.reg, RegId::F(_));
    let effects = &mut spoilt.effects;
    match kind {
        Kind::Integer | Kind::Float => {
            insn?;
            let float = kind == Kind::Float;
            let bits = if float { 32 } else { xlen };
            let write = change(
                &mut effects.regs,
                |w| is_float(w) == float,
                |w| {
                    w.value ^= 1 << random.below(bits.into());
                },
            )?;
            spoilt.places.push((Place::Reg(write.reg), write.value));
        }
        Kind::LostWrite => {
            insn?;
            let [write] = effects.regs[..] else {
                return None;
            };
            let RegId::X(number) = write.reg else {
                return None;
            };
            let old = *before.x.get(usize::from(number))?;
            effects.regs.clear();
            spoilt.places.push((Place::Reg(write.reg), old));
            (old != write.value).then_some(())?;
        }
        Kind::ExtraWrite => {
            insn?;
            let reg = RegId::X(1 + random.below(31) as u8);
            let value = random.draw() & wide;
            let there = effects.regs.iter().any(|w| w.reg == reg);
            (!there).then_some(())?;
            effects.regs.push(RegWrite { reg, value }).ok()?;
            spoilt.places.push((Place::Reg(reg), value));
        }
        Kind::OtherRegister => {
            insn?;
            let [write] = effects.regs[..] else {
                return None;
            };
            let RegId::X(number) = write.reg else {
                return None;
            };
            let other = 1 + random.below(31) as u8;
            let (old, there) = (
                *before.x.get(usize::from(number))?,
                *before.x.get(usize::from(other))?,
            );
            (other != number && old != write.value && there != write.value).then_some(())?;
            spoilt.places.push((Place::Reg(write.reg), old));
            let write = change(&mut effects.regs, |_| true, |w| w.reg = RegId::X(other))?;
            spoilt.places.push((Place::Reg(write.reg), write.value));
        }
        Kind::Pc => {
            let mut insn = insn?;
            insn.next = match random.below(3) {
                0 => insn.next.wrapping_add(4),
                1 => insn.pc,
                _ => insn.next ^ 4 << random.below(8),
            } & wide;
            spoilt.places.push((Place::Pc, insn.next));
            (spoilt.step != Step::Insn(insn)).then_some(())?;
            spoilt.step = Step::Insn(insn);
        }
        Kind::Mode => {
            insn?;
            let mode = random.one_of([Mode::U, Mode::S, Mode::M]);
            let now = effects.mode.map_or(before.mode, |m| m.code().into());
            (u64::from(mode.code()) != now).then_some(())?;
            effects.mode = Some(mode);
            spoilt.places.push((Place::Mode, mode.code().into()));
        }
        Kind::Csr | Kind::TrapCsr => {
            (insn.is_some() == (kind == Kind::Csr)).then_some(())?;
            let known = [
                0x001, 0x140, 0x141, 0x142, 0x143, 0x340, 0x341, 0x342, 0x343,
            ];
            let write = change(
                &mut effects.csrs,
                |w| known.contains(&w.csr),
                |w| {
                    w.value ^= 4 << random.below(3);
                },
            )?;
            spoilt.places.push((Place::Csr(write.csr), write.value));
        }
        Kind::ExtraCsr => {
            insn?;
            let (csr, value) = (0x340, random.draw() & wide);
            effects.csrs.push(CsrWrite { csr, value }).ok()?;
            spoilt.places.push((Place::Csr(csr), value));
        }
        _ => {
            insn?;
            stores(kind, &mut spoilt, before, random)?;
        }
    }
    Some(spoilt)
}

/// Changes the first that is meant, and gives what it is then.
fn change<T: Copy + Default, const N: usize>(
    few: &mut Few<T, N>,
    meant: impl Fn(&T) -> bool,
    with: impl FnOnce(&mut T),
) -> Option<T> {
    let mut all: Vec<T> = few.iter().copied().collect();
    let one = all.iter_mut().find(|item| meant(item))?;
    with(one);
    let changed = *one;
    few.clear();
    all.into_iter().try_for_each(|item| few.push(item)).ok()?;
    Some(changed)
}

/// Faults of stores.
fn stores(kind: Kind, spoilt: &mut Spoilt, before: &Before, random: &mut Random) -> Option<()> {
    let accesses = &mut spoilt.effects.accesses;
    let memory = |access: &Access| {
        let addr = access.paddr.unwrap_or(access.addr);
        let size = 1 << access.size;
        (Place::Memory { addr, size }, access.data.unwrap_or(0))
    };
    let all = |_: &Access| true;
    match (kind, &accesses[..]) {
        (Kind::StoreData, [access]) if access.kind == AccessKind::Store => {
            let data = access.data? ^ 1 << random.below(8 << access.size);
            let access = change(accesses, all, |a| a.data = Some(data))?;
            spoilt.places.push(memory(&access));
        }
        (Kind::LostStore | Kind::StoreAddress, [access]) if access.kind == AccessKind::Store => {
            let (addr, old) = before.store.filter(|s| s.0 == access.addr)?;
            (access.paddr == Some(addr) && addr % 8 == 0).then_some(())?;
            let mask = u64::MAX >> (64 - (8 << access.size));
            (old & mask != access.data?).then_some(())?;
            spoilt.places.push((Place::Memory { addr, size: 8 }, old));
            if kind == Kind::LostStore {
                accesses.clear();
            } else {
                let addr = access.addr ^ 8 << random.below(6);
                let access = change(accesses, all, |a| {
                    (a.addr, a.paddr) = (addr, Some(addr));
                })?;
                spoilt.places.push(memory(&access));
            }
        }
        (Kind::ExtraStore, []) => {
            let addr = 0x8000_8000 + 8 * random.below(512);
            let access = Access {
                kind: AccessKind::Store,
                size: 2,
                addr,
                paddr: Some(addr),
                data: Some(random.draw() & 0xffff_ffff),
                operand: None,
            };
            spoilt.places.push(memory(&access));
            accesses.push(access).ok()?;
        }
        _ => return None,
    }
    Some(())
}
