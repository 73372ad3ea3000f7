//! Turns bytes into a CTR implementation and a sequence of operations on it.

use core::fmt;
use core::ops::AddAssign;

use hartrace_ctr::{Csr, Ctr, Predictor, Raw};
use hartrace_flow::{Cause, HartId, Mode, Transfer};
use hartrace_isa::Itype;

use super::naive::{Asker, Naive};
use super::plan::{config, plan, repair};
use crate::hostile::Input;

use accesses::caller;

mod accesses;

/// How much was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Accesses and transfers.
    pub steps: u64,
    /// Implementations.
    pub runs: u64,
    /// Transfers that were recorded, or popped a record.
    pub records: u64,
    /// Accesses that raised an exception.
    pub denied: u64,
    /// Comparisons of everything.
    pub compared: u64,
}

impl AddAssign for Done {
    fn add_assign(&mut self, other: Done) {
        self.steps += other.steps;
        self.runs += other.runs;
        self.records += other.records;
        self.denied += other.denied;
        self.compared += other.compared;
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} steps on {} implementations, {} records, {} exceptions, \
             everything compared {} times: no difference",
            self.steps, self.runs, self.records, self.denied, self.compared
        )
    }
}

/// Gets wrong what comes from an odd sixteen.
#[derive(Clone, Debug)]
struct Odd;

impl Predictor for Odd {
    fn mispredicts(&mut self, transfer: &Transfer) -> bool {
        transfer.source >> 4 & 1 != 0
    }

    fn boxed(&self) -> Box<dyn Predictor> {
        Box::new(self.clone())
    }
}

/// Both models, and the hart around them.
struct Pair {
    ctr: Ctr,
    naive: Naive,
    now: u64,
    mstateen0: Option<u64>,
    hstateen0: Option<u64>,
    /// XLEN below M-mode is 32.
    narrow_below: bool,
    /// `miselect`, `siselect`, `vsiselect`.
    selects: [u64; 3],
    done: Done,
}

/// A difference.
fn same<T: PartialEq + fmt::Debug>(what: &str, ours: T, plain: T) -> Result<(), String> {
    if ours == plain {
        return Ok(());
    }
    Err(format!("{what}: {ours:x?}, plainly {plain:x?}"))
}

const NUMBERS_0_1_4: [u16; 8] = [0x381, 0x382, 0x383, 0x181, 0x182, 0x183, 0x281, 0x282];
const NUMBERS_1_0: [u16; 5] = [0x34e, 0x14e, 0x14f, 0x15f, 0x24e];
const WINDOWS: [u16; 21] = [
    0x150, 0x151, 0x152, 0x153, 0x155, 0x156, 0x157, 0x250, 0x251, 0x252, 0x253, 0x255, 0x256,
    0x257, 0x350, 0x351, 0x352, 0x353, 0x355, 0x356, 0x357,
];

/// Ways from mode to mode: traps.
const TRAPS: [(Mode, Mode); 16] = [
    (Mode::M, Mode::M),
    (Mode::S, Mode::M),
    (Mode::S, Mode::S),
    (Mode::U, Mode::M),
    (Mode::U, Mode::S),
    (Mode::VS, Mode::M),
    (Mode::VS, Mode::S),
    (Mode::VS, Mode::VS),
    (Mode::VU, Mode::M),
    (Mode::VU, Mode::S),
    (Mode::VU, Mode::VS),
    (Mode::M, Mode::D),
    (Mode::S, Mode::D),
    (Mode::U, Mode::D),
    (Mode::VS, Mode::D),
    (Mode::VU, Mode::D),
];

/// Ways back.
const RETURNS: [(Mode, Mode); 16] = [
    (Mode::M, Mode::M),
    (Mode::M, Mode::S),
    (Mode::M, Mode::U),
    (Mode::M, Mode::VS),
    (Mode::M, Mode::VU),
    (Mode::S, Mode::S),
    (Mode::S, Mode::U),
    (Mode::S, Mode::VS),
    (Mode::S, Mode::VU),
    (Mode::VS, Mode::VS),
    (Mode::VS, Mode::VU),
    (Mode::D, Mode::M),
    (Mode::D, Mode::S),
    (Mode::D, Mode::U),
    (Mode::D, Mode::VS),
    (Mode::D, Mode::VU),
];

const MODES: [Mode; 6] = [Mode::M, Mode::S, Mode::U, Mode::VS, Mode::VU, Mode::D];

/// Whether both models do the same for this script.
///
/// # Errors
///
/// The first difference.
pub fn agree(bytes: &[u8]) -> Result<Done, String> {
    let mut input = Input::new(bytes);
    let mut plan = plan(&mut input);
    let ours = config(&plan).validate();
    same("allowed", ours.is_ok(), plan.is_allowed())?;
    repair(&mut plan);
    same("repaired", plan.is_allowed(), true)?;
    let mut ctr = Ctr::new(config(&plan)).map_err(|e| e.to_string())?;
    if plan.predicts {
        ctr = ctr.with_predictor(Some(Box::new(Odd)));
    }
    let mut pair = Pair {
        ctr,
        naive: Naive::new(plan),
        now: 0,
        mstateen0: None,
        hstateen0: None,
        narrow_below: false,
        selects: [0x200; 3],
        done: Done::default(),
    };
    pair.done.runs = 1;
    while !input.is_empty() {
        pair.done.steps += 1;
        let step = pair.done.steps;
        let blame = |what| format!("step {step}: {what}");
        pair.step(&mut input).map_err(blame)?;
        pair.compare(step.is_multiple_of(16)).map_err(blame)?;
    }
    pair.compare(true)?;
    Ok(pair.done)
}

impl Pair {
    fn step(&mut self, input: &mut Input<'_>) -> Result<(), String> {
        match input.byte() {
            0..=69 => self.jump(input),
            70..=104 => self.trap(input),
            105..=134 => self.trap_return(input),
            135..=149 => return self.replay(input),
            150..=179 => return self.control(input),
            180..=214 => return self.access(input),
            215..=224 => return self.window(input),
            225..=232 => return self.clear(input),
            233..=240 => self.enter(input),
            241..=246 => self.enables(input),
            _ => self.run_in(input),
        }
        Ok(())
    }

    /// Time goes on: by a little, by much, or by an unknown amount.
    fn time(&mut self, input: &mut Input<'_>) -> Option<u64> {
        let kind = input.byte();
        let step = match kind {
            0..=99 => u64::from(kind),
            100..=179 => input.number(2),
            180..=229 => input.number(4) >> (kind & 7),
            230..=239 => input.number(6),
            _ => 0,
        };
        self.now = self.now.saturating_add(step);
        (kind < 250).then_some(self.now)
    }

    /// Where a transfer is: odd addresses, and wide ones, too.
    fn address(input: &mut Input<'_>) -> u64 {
        match input.byte() {
            0..=199 => input.number(2),
            200..=239 => 0x8000_0000 | input.number(3),
            _ => input.number(8),
        }
    }

    fn record(&mut self, t: &Transfer) {
        let before = (self.naive.entries.first().copied(), self.now);
        self.ctr.record(t);
        self.naive.transfer(t);
        if (self.naive.entries.first().copied(), self.now) != before {
            self.done.records += 1;
        }
    }

    fn jump(&mut self, input: &mut Input<'_>) {
        let code = input.byte();
        // Calls, returns and swaps often.
        let code = match code >> 4 {
            0..=7 => code & 15,
            8..=10 => 9,
            11..=13 => 13,
            14 => 12,
            _ => 8,
        };
        let kind = Itype::from_code(code).unwrap_or(Itype::None);
        let kind = match kind {
            Itype::Exception | Itype::Interrupt => Itype::Taken,
            kind => kind,
        };
        let mode = Some(self.naive.mode).filter(|_| input.below(4) != 0);
        let t = Transfer {
            source: Pair::address(input),
            target: Pair::address(input),
            kind,
            from: mode,
            to: mode,
            time: self.time(input),
            mispredicted: input.below(8) == 0,
            ..Transfer::default()
        };
        self.record(&t);
    }

    /// The modes there are.
    fn modes(&self) -> Vec<Mode> {
        let there = |mode: &Mode| match mode {
            Mode::S => self.naive.plan.supervisor,
            Mode::VS | Mode::VU => self.naive.plan.hypervisor,
            _ => true,
        };
        MODES.into_iter().filter(there).collect()
    }

    /// A way out of the mode there is, mostly.
    fn way(&self, input: &mut Input<'_>, ways: &[(Mode, Mode)]) -> (Mode, Mode) {
        let at = usize::from(input.byte());
        let modes = self.modes();
        let there = ways
            .iter()
            .filter(|w| modes.contains(&w.0) && modes.contains(&w.1));
        let ways: Vec<_> = there.copied().collect();
        let here = ways.iter().filter(|way| way.0 == self.naive.mode);
        let here: Vec<_> = here.copied().collect();
        let ways = if at < 230 && !here.is_empty() {
            here
        } else {
            ways
        };
        let at = at.checked_rem(ways.len()).unwrap_or(0);
        ways.get(at).copied().unwrap_or((Mode::M, Mode::M))
    }

    fn trap(&mut self, input: &mut Input<'_>) {
        let (from, to) = self.way(input, &TRAPS);
        let kind = input.byte();
        let interrupt = kind & 1 != 0;
        let code = match kind >> 1 & 7 {
            0 if interrupt => Some(13),
            0 => Some(3),
            1 => None,
            _ => Some(input.below(64).into()),
        };
        let t = Transfer {
            source: Pair::address(input),
            target: Pair::address(input),
            kind: if interrupt {
                Itype::Interrupt
            } else {
                Itype::Exception
            },
            from: Some(from).filter(|_| kind >> 4 & 7 != 0),
            to: Some(to).filter(|to| *to != Mode::M || kind >> 4 & 7 != 1),
            cause: Some(if interrupt {
                Cause::Interrupt(code)
            } else {
                Cause::Exception(code)
            }),
            time: self.time(input),
            mispredicted: input.below(8) == 0,
            ..Transfer::default()
        };
        // What is not named is the mode there is; not every trap is one of it.
        let from = t.from.unwrap_or(self.naive.mode);
        let to = t.to.unwrap_or(Mode::M);
        if TRAPS.contains(&(from, to)) {
            self.record(&t);
        }
    }

    fn trap_return(&mut self, input: &mut Input<'_>) {
        let (from, to) = self.way(input, &RETURNS);
        let t = Transfer {
            source: Pair::address(input),
            target: Pair::address(input),
            kind: Itype::TrapReturn,
            from: Some(from),
            to: Some(to),
            time: self.time(input),
            mispredicted: input.below(8) == 0,
            ..Transfer::default()
        };
        self.record(&t);
    }

    /// What an interpreter notes down: jumps and branches, one after another;
    /// of a long row only what will be seen, where everything is recorded.
    fn replay(&mut self, input: &mut Input<'_>) -> Result<(), String> {
        let many = match input.byte() {
            few @ 0..=199 => u64::from(few >> 4),
            many => 2 * u64::from(many),
        };
        let mut raws = Vec::new();
        for n in 0..many {
            // Long rows need not cost as many bytes.
            let byte = if n < 20 { input.byte() } else { n as u8 };
            let kind = match Itype::from_code(byte & 15) {
                Some(kind) if byte & 15 == 4 || byte & 15 >= 8 => kind,
                _ => Itype::Taken,
            };
            self.now = self.now.saturating_add(u64::from(byte >> 3));
            raws.push(Raw {
                source: u64::from(byte) << 2 | n << 12,
                target: n << 3,
                time: self.now,
                kind,
            });
        }
        let wanted = self.ctr.wanted();
        let told: Vec<Raw> = match input.flag() {
            true => raws.clone(),
            // Those that nobody wants need not be noted.
            false => {
                let wanted = raws.iter().filter(|r| wanted >> r.kind.code() & 1 != 0);
                wanted.copied().collect()
            }
        };
        let unseen = match self.ctr.memory() {
            Some(memory) if told.iter().all(|r| self.naive.records(r.kind)) => {
                (told.len() as u64).saturating_sub(memory)
            }
            _ => 0,
        };
        let seen = told.iter().skip(unseen as usize).copied();
        self.ctr.replay(unseen, seen);
        for raw in &raws {
            self.naive.transfer(&Transfer {
                source: raw.source,
                target: raw.target,
                kind: raw.kind,
                from: Some(self.naive.mode),
                to: Some(self.naive.mode),
                time: Some(raw.time),
                ..Transfer::default()
            });
        }
        self.done.records += raws.len() as u64;
        self.compare(true)
    }

    /// What software could see now: the newest entry and the status; or
    /// everything, entries beyond the depth and all registers of all modes.
    fn compare(&mut self, everything: bool) -> Result<(), String> {
        let newest = self.ctr.entry(0);
        let newest = (newest.ctrsource, newest.ctrtarget, newest.ctrdata);
        let first = self.naive.entries.first().copied().unwrap_or_default();
        same("entry 0", newest, first)?;
        same("active", self.ctr.is_active(), self.naive.is_active())?;
        let who = Asker {
            mode: Mode::M,
            narrow: self.naive.plan.narrow,
            mstateen0: None,
            hstateen0: None,
            now: self.now,
        };
        let status = if self.naive.plan.draft { 0x383 } else { 0x14f };
        let plain = self.naive.read(status, &who);
        let ours = self.ctr.read(Csr::SupervisorStatus, &caller(&who));
        same("status", ours, plain)?;
        if everything {
            self.done.compared += 1;
            self.compare_all(&who)?;
        }
        Ok(())
    }

    fn compare_all(&mut self, machine: &Asker) -> Result<(), String> {
        let entries = (0..=255).map(|n| self.ctr.entry(n));
        let entries = entries.map(|r| (r.ctrsource, r.ctrtarget, r.ctrdata));
        for (n, ours) in entries.enumerate() {
            let plain = self.naive.entries.get(n).copied().unwrap_or_default();
            same(&format!("entry {n}"), ours, plain)?;
        }
        // What an interpreter has to note: with a predictor that has a bit to
        // write, all of it.
        for code in (4..6).chain(8..16) {
            let kind = Itype::from_code(code).unwrap_or(Itype::None);
            let ours = self.ctr.wanted() >> code & 1 != 0;
            let predicts = self.naive.plan.predicts && self.naive.plan.mispredicts;
            let plain = self.naive.records(kind) || predicts;
            same("wanted", ours, plain)?;
        }
        let snapshot = self.ctr.snapshot(HartId(0));
        same(
            "entries of a snapshot",
            snapshot.entries.len(),
            self.naive.entries.len(),
        )?;
        let own: &[u16] = if self.naive.plan.draft {
            &NUMBERS_0_1_4
        } else {
            &NUMBERS_1_0
        };
        for mode in self.modes() {
            for number in own {
                let who = Asker { mode, ..*machine };
                let denied = self.done.denied;
                self.read(*number, &who)?;
                self.done.denied = denied;
            }
        }
        Ok(())
    }
}
