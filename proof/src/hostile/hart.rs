//! The hart: any machine, any code, any state.

mod account;
mod calls;
mod code;
mod dice;
mod program;
mod record;
mod scene;

use hartrace_flow::{Cause, Effects, Model, Observer, Place, RegId, Step};
use hartrace_hart::{Machine, Platform, Stop};

use self::account::Account;
use self::dice::Dice;
use self::record::{Nothing, Partial, Recorder};
use self::scene::Scene;
use super::ensure;

pub(super) use calls::{calls, seeds as calls_seeds};
pub(super) use program::{program, seeds as program_seeds};

type Steps = [(Step, Effects)];
type State = Vec<(Place, u64)>;

/// A machine in any state runs a while, the same way however it is watched,
/// cut into slices or stepped; what it tells adds up to what it did.
pub(super) fn run(bytes: &[u8]) -> Result<(), String> {
    let mut dice = Dice::new(bytes);
    let scene = Scene::new(&mut dice).ok_or("no scene")?;
    let machine = || scene.machine().ok_or("no machine");

    let mut whole = machine()?;
    let mut account = Account::new(&whole, &scene);
    let mut told = Recorder::default();
    let stop = whole.run(scene.limit, &mut told);
    account.replay(&told.steps)?;
    account.compare(&whole)?;
    ensure(whole.instructions() <= scene.limit, || {
        format!("{} instructions of {}", whole.instructions(), scene.limit)
    })?;
    let state = state(&whole, &scene);

    let mut sliced = machine()?;
    let mut again = Recorder::default();
    let cut = slices(&mut sliced, scene.limit, &mut dice, &mut again);
    same_steps("in slices", &told.steps, &again.steps)?;
    ensure(cut == stop, || {
        format!("in slices {cut:x?}, else {stop:x?}")
    })?;
    same_state("in slices", &state, &self::state(&sliced, &scene))?;

    let mut alone = machine()?;
    let unseen = alone.run(scene.limit, &mut Nothing);
    ensure(unseen == stop, || {
        format!("unseen {unseen:x?}, else {stop:x?}")
    })?;
    same_state("unseen", &state, &self::state(&alone, &scene))?;

    let mut watched = machine()?;
    if dice.one_in(2) {
        partly::<0>(&mut watched, &scene, &told.steps)?;
    } else {
        partly::<1>(&mut watched, &scene, &told.steps)?;
    }
    same_state("partly watched", &state, &self::state(&watched, &scene))?;

    if can_step(&scene, &told.steps) {
        let fresh = account.keeps_tables();
        step_along(&mut machine()?, &told.steps, fresh)?;
    }
    Ok(())
}

/// Runs as many instructions, a few at a time.
fn slices(
    machine: &mut Machine,
    limit: u64,
    dice: &mut Dice<'_>,
    observer: &mut impl Observer,
) -> Stop {
    loop {
        let left = limit - machine.instructions();
        let most = if dice.one_in(4) { 100 } else { 3 };
        let slice = dice.below(most).min(left);
        let stop = machine.run(slice, observer);
        if stop != Stop::Limit || machine.instructions() >= limit {
            return stop;
        }
    }
}

/// Runs with an observer that wants less: it sees what it wants, the way the
/// one that wants everything does.
fn partly<const N: u8>(machine: &mut Machine, scene: &Scene, all: &Steps) -> Result<(), String> {
    let mut observer = Partial::<N>::default();
    machine.run(scene.limit, &mut observer);
    let mut all = all.iter();
    for (step, effects) in &observer.steps {
        let full = loop {
            let Some((whole, full)) = all.next() else {
                return Err(format!("partly watched: {step:x?} out of nowhere"));
            };
            if whole == step {
                break full;
            }
            ensure(!Partial::<N>::must_see(whole), || {
                format!("partly watched: {whole:x?} is missing before {step:x?}")
            })?;
        };
        let (want, got) = (Partial::<N>::part(full), Partial::<N>::part(effects));
        ensure(want == got, || {
            format!("partly watched: {step:x?} with {got:x?}, not {want:x?}")
        })?;
    }
    match all.find(|(step, _)| Partial::<N>::must_see(step)) {
        Some((step, _)) => Err(format!("partly watched: {step:x?} is missing at the end")),
        None => Ok(()),
    }
}

/// Whether a model that is stepped does the same: it takes no interrupts, does
/// not wait, and knows no host.
fn can_step(scene: &Scene, steps: &Steps) -> bool {
    let lonely = |(step, _): &(Step, Effects)| match step {
        Step::Insn(insn) => insn.bits != 0x1050_0073,
        Step::Trap(trap) => !matches!(trap.trap.cause, Cause::Interrupt(_)),
        Step::Signal(_) => false,
    };
    // Spike's time goes by in quanta, which a model does not have.
    scene.config.platform == Platform::Virt && scene.tohost().is_none() && steps.iter().all(lonely)
}

/// Steps a model along. A `fresh` one forgets all it has decoded and
/// translated before every step.
fn step_along(machine: &mut Machine, steps: &Steps, fresh: bool) -> Result<(), String> {
    let mut got = Vec::new();
    for _ in steps {
        if fresh && let Ok(misa) = machine.read(Place::Csr(0x301)) {
            machine
                .write(Place::Csr(0x301), misa)
                .map_err(|e| e.to_string())?;
        }
        let mut effects = Effects::default();
        let step = machine.step(&mut effects);
        got.push((step, effects));
    }
    same_steps("stepped", steps, &got)
}

fn same_steps(how: &str, all: &Steps, other: &Steps) -> Result<(), String> {
    let differs = all.iter().zip(other).position(|(a, b)| a != b);
    let at = match differs {
        Some(at) => at,
        None if all.len() == other.len() => return Ok(()),
        None => all.len().min(other.len()),
    };
    let around = |steps: &Steps| {
        let near = steps.iter().take(at + 1).skip(at.saturating_sub(3));
        let lines = near.map(|(step, effects)| format!("  {step:x?}\n    {effects:x?}\n"));
        lines.collect::<String>()
    };
    Err(format!(
        "step {at} of {} and {} differs {how}\n{}instead of\n{}",
        all.len(),
        other.len(),
        around(other),
        around(all)
    ))
}

/// Everything that can be asked.
fn state(machine: &Machine, scene: &Scene) -> State {
    let mut places = vec![Place::Pc, Place::Mode];
    places.extend((0..32).map(|n| Place::Reg(RegId::X(n))));
    places.extend((0..32).map(|n| Place::Reg(RegId::F(n))));
    places.extend((0..4096).map(Place::Csr));
    for region in &scene.config.memory {
        let words = (0..region.size / 8).map(|i| region.base.wrapping_add(8 * i));
        places.extend(words.map(|addr| Place::Memory { addr, size: 8 }));
    }
    let values = places.into_iter();
    values
        .filter_map(|place| Some((place, machine.read(place).ok()?)))
        .collect()
}

fn same_state(how: &str, all: &State, other: &State) -> Result<(), String> {
    match all.iter().zip(other).find(|(a, b)| a != b) {
        Some((a, b)) => Err(format!("{how} {b:x?}, else {a:x?}")),
        None => ensure(all.len() == other.len(), || format!("{how} other state")),
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seed = |n: u8| vec![n, n ^ 0x55, n.wrapping_mul(7), n >> 1, 3, 0, 1, 2, n];
    (0..64).map(seed).collect()
}
