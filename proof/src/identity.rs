//! Checks the flow engine against itself: random steps pass through the port,
//! are reduced to the least a trace must report, and the walk must turn that
//! into events that equal the steps.
//!
//! The "trace" here is not a protocol, only what every protocol carries in one
//! form or another: halfword counts or addresses, branch outcomes, targets,
//! traps. The protocol crates can rely on what is checked here.

use std::ops::ControlFlow;

use hartrace_flow::{
    Blocks, Cause, Check, Checked, Consumer, Effects, Event, Evidence, Goal, HartId, History,
    Image, Ingress, Observer, Port, PortConfig, Remember, Retirement, ReturnStack, Rules, Run,
    SpaceId, Step, Stop, Swaps, Trap, UNCOUNTED, Walk, Wants,
};
use hartrace_isa::{Isa, Itype, ItypeTable};
use hartrace_logs::{SpikeOptions, SpikeReader};

use crate::generate::{Driver, Program, Random, Spec};

const HART: HartId = HartId(0);

/// One way of telling: what the port shows and what the walk may follow.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    table: ItypeTable,
    retirement: Retirement,
    sequential_jumps: bool,
    all_jumps: bool,
    stack: Option<(Remember, Swaps, usize)>,
    by_address: bool,
    /// One row in so many is followed by a cut: a sync point, say.
    cut_every: u64,
}

impl Setting {
    /// The setting with this number; every combination has one.
    #[must_use]
    pub fn numbered(n: u64) -> Setting {
        Setting {
            table: if n & 1 == 0 {
                ItypeTable::ETrace20
            } else {
                ItypeTable::NTrace10
            },
            retirement: if n & 2 == 0 {
                Retirement::Single
            } else {
                Retirement::Block(7)
            },
            sequential_jumps: n & 4 != 0,
            all_jumps: n & 8 != 0,
            stack: match n >> 4 & 3 {
                0 => None,
                1 => Some((Remember::Address, Swaps::PopAndPush, 32)),
                2 => Some((Remember::Address, Swaps::Ignored, 3)),
                _ => Some((Remember::LowBits(40), Swaps::PopAndPush, 8)),
            },
            by_address: n & 64 != 0,
            cut_every: if n & 128 == 0 { 5 } else { 1000 },
        }
    }

    /// How many there are.
    pub const COUNT: u64 = 256;

    fn rules(&self) -> Rules {
        Rules {
            sequential_jumps: self.sequential_jumps,
            sequential_returns: self.sequential_jumps,
            absolute_jumps: self.table == ItypeTable::ETrace20,
            all_jumps: self.all_jumps,
            nexrv_links: false,
        }
    }
}

/// Everything since the message before, and what came then.
struct Message {
    halfwords: u64,
    outcomes: Vec<bool>,
    then: Then,
}

enum Then {
    /// The last instruction jumped there.
    Target(u64),
    /// A trap, with nothing but its kind told.
    Trap(Trap),
    /// Nothing; execution goes on at this address.
    Cut(u64),
}

/// Tells the least: an encoder without a wire format.
struct Teller {
    setting: Setting,
    stack: Option<ReturnStack>,
    random: Random,
    halfwords: u64,
    outcomes: Vec<bool>,
    messages: Vec<Message>,
}

impl Teller {
    fn message(&mut self, then: Then) {
        self.messages.push(Message {
            halfwords: std::mem::take(&mut self.halfwords),
            outcomes: std::mem::take(&mut self.outcomes),
            then,
        });
    }

    /// Whether the decoder can follow this row's end by itself.
    fn is_known(&mut self, row: &Ingress, next: u64) -> bool {
        let inferred = !row.itype.is_uninferable() || (row.sijump && self.setting.sequential_jumps);
        let swaps = self.setting.stack.is_some_and(|s| s.1 == Swaps::PopAndPush);
        let swap = swaps && row.itype == Itype::Swap;
        let returns = swap || row.itype == Itype::Return;
        let calls = swap || matches!(row.itype, Itype::DirectCall | Itype::IndirectCall);
        let mut implied = false;
        if let Some(stack) = &mut self.stack {
            implied = returns && stack.returns(next);
            if calls {
                stack.push(row.end());
            }
        }
        inferred || implied
    }

    fn row(&mut self, row: &Ingress, next: u64) {
        self.halfwords += u64::from(row.iretire);
        if row.itype.is_branch() {
            self.outcomes.push(row.itype == Itype::Taken);
        }
        if row.itype.is_trap() {
            self.message(Then::Trap(Trap {
                epc: Some(row.end()),
                handler: Some(next),
                cause: Cause::Unknown,
                tval: None,
                pending: None,
            }));
        } else if !self.is_known(row, next) {
            self.message(Then::Target(next));
        } else if self.random.below(self.setting.cut_every) == 0 {
            self.message(Then::Cut(next));
        }
    }

    /// All rows; each needs the address of the one after it.
    fn tell(&mut self, rows: &[Ingress], end: u64) {
        let shown = |r: &&Ingress| r.iretire > 0 || r.itype.is_trap();
        let mut rows = rows.iter().filter(shown).peekable();
        while let Some(row) = rows.next() {
            let next = rows.peek().map_or(end, |r| r.iaddr);
            self.row(row, next);
        }
        self.message(Then::Cut(end));
    }
}

/// Counts what goes by on its way to the check.
struct Meter<'a> {
    check: &'a mut Check,
    halfwords: u64,
}

impl Consumer for Meter<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.check.event(hart, event)
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.halfwords += run.end.wrapping_sub(run.start) / 2;
        }
        self.check.runs(hart, runs)
    }
}

/// Outcomes in words of 64 for counts, all at once for addresses.
struct Outcomes<'a>(&'a [bool]);

impl Evidence for Outcomes<'_> {
    fn branch(&mut self, _: u64, _: bool) -> Option<bool> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn left(&self) -> u64 {
        self.0.len() as u64
    }

    fn implied_return(&mut self, _: u64, _: usize, last: bool) -> bool {
        !last
    }
}

struct Listener<'i, 'c> {
    blocks: Blocks<'i>,
    walk: Walk,
    out: Meter<'c>,
}

impl Listener<'_, '_> {
    fn message(&mut self, message: &Message, setting: &Setting) -> Result<(), String> {
        if setting.by_address {
            self.by_address(message)?;
        } else {
            self.by_count(message)?;
        }
        match message.then {
            Then::Target(to) => {
                if !self.walk.target(&mut self.blocks, to, &mut self.out) {
                    return Err("no jump to answer".into());
                }
            }
            Then::Trap(trap) => {
                self.expect_at(trap.epc.ok_or("a trap without an epc")?)?;
                let _ = self.out.event(HART, &Event::Trap(trap));
                let handler = trap.handler.ok_or("a trap without a handler")?;
                self.walk.restart(&mut self.blocks, handler);
            }
            Then::Cut(at) => self.expect_at(at)?,
        }
        Ok(())
    }

    fn expect_at(&self, at: u64) -> Result<(), String> {
        let pc = self.walk.pc(&self.blocks);
        (pc == at)
            .then_some(())
            .ok_or_else(|| format!("stands at {pc:#x}, not {at:#x}"))
    }

    /// As N-Trace does: history words and a count.
    fn by_count(&mut self, message: &Message) -> Result<(), String> {
        let target = matches!(message.then, Then::Target(_));
        let mut left = message.halfwords;
        let mut words = message.outcomes.chunks(64).map(word);
        let mut history = words.next().unwrap_or_default();
        loop {
            let stop = self
                .walk
                .advance(&mut self.blocks, &mut history, &mut left, &mut self.out);
            match stop {
                Stop::Arrived if history.is_empty() && !target => return Ok(()),
                Stop::Branch if history.is_empty() => match words.next() {
                    Some(word) => history = word,
                    None => return Err("a branch without an outcome".into()),
                },
                Stop::Target(_) if u64::from(self.walk.to_decision(&self.blocks)) == left => {
                    if target {
                        return Ok(());
                    }
                    // An implied return that happens to end the count.
                    let top = self.walk.stack().and_then(|s| s.top());
                    let to = top.ok_or("a jump that was not told")?;
                    let _ = self.walk.target(&mut self.blocks, to, &mut self.out);
                    return Ok(());
                }
                other => return Err(format!("stopped with {other:?}, {left} halfwords left")),
            }
        }
    }

    /// As E-Trace does: outcomes and the address arrived at. An address met
    /// before the right time is left again.
    fn by_address(&mut self, message: &Message) -> Result<(), String> {
        let before = self.out.halfwords;
        let mut outcomes = Outcomes(&message.outcomes);
        let (address, target) = match message.then {
            Then::Target(_) => (None, true),
            Then::Trap(trap) => (trap.epc, false),
            Then::Cut(at) => (Some(at), false),
        };
        let Some(address) = address else {
            let mut left = UNCOUNTED;
            let stop = self
                .walk
                .advance(&mut self.blocks, &mut outcomes, &mut left, &mut self.out);
            let way = u64::from(self.walk.to_decision(&self.blocks));
            let walked = self.out.halfwords - before + way;
            return match stop {
                Stop::Target(_) if target && walked == message.halfwords => Ok(()),
                // The stack holds an answer, but the trace says another one.
                other => Err(format!("{other:?} after {walked} of {}", message.halfwords)),
            };
        };
        let mut leave_first = false;
        loop {
            let goal = Goal {
                leave_first,
                ..Goal::new(address)
            };
            let walked = self.out.halfwords - before;
            if walked == message.halfwords && self.walk.pc(&self.blocks) == address {
                return Ok(());
            }
            let stop = self
                .walk
                .advance_to(&mut self.blocks, &mut outcomes, goal, &mut self.out);
            let walked = self.out.halfwords - before;
            if stop != Stop::Arrived || walked > message.halfwords {
                return Err(format!("{stop:?} after {walked} of {}", message.halfwords));
            }
            leave_first = true;
        }
    }
}

fn word(outcomes: &[bool]) -> History {
    let bits = outcomes.iter().rev().fold(0, |w, &o| w << 1 | u64::from(o));
    History::new(bits, outcomes.len() as u8)
}

/// One generated program, one setting, so many steps.
///
/// # Errors
///
/// What differed, with the seed and the setting.
pub fn identity(seed: u64, number: u64, steps: u64) -> Result<Checked, String> {
    let mut spec = Spec::arbitrary(seed);
    spec.surprises.signal = 0;
    let program = Program::new(&spec, seed);
    let steps = Driver::new(&program, seed).steps(steps);
    told_and_walked(program.image(), program.isa(), &steps, number)
        .map_err(|what| format!("seed {seed}: {what}"))
}

/// Steps of one hart, told as the setting with this number says, and walked.
fn told_and_walked(
    image: &Image,
    isa: Isa,
    steps: &[Step],
    number: u64,
) -> Result<Checked, String> {
    let mut setting = Setting::numbered(number);
    if setting.by_address || setting.all_jumps {
        // A return told by address against the stack needs E-Trace's irreport;
        // without it only counts can say which return is meant. And a port that
        // shows calls as branches leaves the encoder without calls to stack.
        setting.stack = None;
    }
    let blame = |what: String| format!("setting {number} {setting:?}: {what}");
    let mut check = Check::new();
    let rows = shown(&setting, isa, steps, &mut check);
    let end = steps.iter().rev().find_map(|s| match s {
        Step::Insn(insn) => Some(insn.next),
        Step::Trap(t) => t.trap.handler,
        Step::Signal(_) => None,
    });
    let stack = setting
        .stack
        .map(|(r, swaps, depth)| ReturnStack::new(r, swaps, depth));
    let mut teller = Teller {
        setting,
        stack: stack.clone(),
        random: Random::new(number),
        halfwords: 0,
        outcomes: Vec::new(),
        messages: Vec::new(),
    };
    teller.tell(&rows, end.unwrap_or(0));
    let messages = teller.messages;

    let mut blocks = Blocks::new(image, setting.rules());
    let mut walk = Walk::new(HART);
    walk.set_stack(stack);
    walk.restart(&mut blocks, rows.first().map_or(0, |r| r.iaddr));
    let out = Meter {
        check: &mut check,
        halfwords: 0,
    };
    let mut listener = Listener { blocks, walk, out };
    for (i, message) in messages.iter().enumerate() {
        let said = listener.message(message, &setting);
        said.map_err(|e| blame(format!("message {i} of {}: {e}", messages.len())))?;
    }
    check.result().map_err(|d| blame(d.to_string()))
}

/// What the port shows of these steps; the check sees them too.
fn shown(setting: &Setting, isa: Isa, steps: &[Step], check: &mut Check) -> Vec<Ingress> {
    let mut rows = Vec::new();
    let config = PortConfig {
        table: setting.table,
        retirement: setting.retirement,
        sijump: setting.sequential_jumps,
        all_jumps: setting.all_jumps,
        ..PortConfig::new(isa)
    };
    let mut port = Port::new(config, |_: HartId, row: &Ingress| rows.push(*row));
    for step in steps {
        check.step(HART, step, &Effects::default());
        port.step(HART, step, &Effects::default());
    }
    port.finish();
    drop(port);
    rows
}

/// `identity [SEEDS] [STEPS]`: every setting over so many programs.
/// `identity --log SPIKE.log ELF`: every setting over a recorded run.
///
/// # Errors
///
/// The first difference.
pub fn command(args: &[String]) -> Result<(), String> {
    if let [flag, log, elf] = args
        && flag == "--log"
    {
        return recorded(log, elf);
    }
    let number = |i: usize, default: u64| -> Result<u64, String> {
        args.get(i).map_or(Ok(default), |a| {
            a.parse().map_err(|_| format!("not a number: {a}"))
        })
    };
    let (seeds, steps) = (number(0, 1000)?, number(1, 10_000)?);
    let (mut insns, mut traps) = (0, 0);
    for seed in 0..seeds {
        for setting in 0..Setting::COUNT {
            // Each seed meets every sixteenth setting; all meet over the seeds.
            if (setting + seed) % 16 == 0 {
                let checked = identity(seed, setting, steps)?;
                insns += checked.insns;
                traps += checked.traps;
            }
        }
    }
    println!("{seeds} programs, {insns} instructions and {traps} traps equal");
    Ok(())
}

/// A recorded run of hart 0. Code that is in no ELF file, a boot ROM say, is
/// taken from the log.
fn recorded(log: &str, elf: &str) -> Result<(), String> {
    let read = |name: &str| std::fs::read(name).map_err(|e| format!("{name}: {e}"));
    let mut image = Image::from_elf(&read(elf)?).map_err(|e| format!("{elf}: {e}"))?;
    let isa = image.isa().ok_or("no code")?;
    let mut steps = Steps(Vec::new());
    let mut damaged = 0;
    let mut reader = SpikeReader::new(SpikeOptions::default(), None);
    reader.feed(&read(log)?, &mut steps, &mut |_| damaged += 1);
    reader.finish(&mut steps, &mut |_| damaged += 1);
    for step in &steps.0 {
        if let Step::Insn(insn) = step
            && image.fetch(SpaceId::FIRST, insn.pc).is_none()
        {
            let bytes = insn.bits.to_le_bytes();
            let bytes = bytes
                .get(..usize::from(insn.len().min(4)))
                .unwrap_or(&bytes);
            image.add_raw(SpaceId::FIRST, insn.pc, bytes, isa);
        }
    }
    let mut checked = Checked::default();
    for number in 0..Setting::COUNT {
        checked = told_and_walked(&image, isa, &steps.0, number)?;
    }
    let Checked { insns, traps, .. } = checked;
    println!(
        "{log}: {insns} instructions and {traps} traps equal in every setting, {damaged} damaged lines"
    );
    Ok(())
}

/// Keeps the steps of hart 0.
struct Steps(Vec<Step>);

impl Observer for Steps {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        if hart == HART {
            self.0.push(*step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_gives_the_steps_back() {
        for setting in 0..Setting::COUNT {
            for seed in 0..3 {
                identity(seed * 256 + setting, setting, 400).unwrap();
            }
        }
    }
}
