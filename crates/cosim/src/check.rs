//! A core checked against the built-in hart, instruction by instruction.

use crate::{Error, machine, model};
use hartrace_analyze::Symbols;
use hartrace_capture::config::Config;
use hartrace_capture::program::{Elf, read_named};
use hartrace_capture::trace::SettingsError;
use hartrace_capture::verify::{Counters, Options, Register, Reporter, Verifier, Volatile};
use hartrace_flow::{
    Cause, Context, Effects, HartId, Insn, Mode, Model as _, Observer, Place, Signal, Step,
    TrapStep, Wants,
};
use hartrace_hart::Machine;
use hartrace_isa::{Isa, MRET, SRET, csr};
use hartrace_logs::{Entry, EntryOptions, EntrySteps, LineErrorKind, Rvfi};
use hartrace_print::diagnostic::Diagnostic;
use hartrace_print::verify::{Facts, Form, Places, Report};
use hartrace_tandem::verify::{Difference, Field, Lockstep, Mismatch, Retired};
use hartrace_tandem::{Encoder, Group, Problem};
use std::ops::ControlFlow;
use std::path::Path;

/// What the port of a core shows, and what is checked besides the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// The number of the hart, which `mhartid` reads.
    pub hart: u32,
    /// The port shows what is written to integer registers.
    pub registers: bool,
    /// It shows what is written to floating-point registers.
    pub floats: bool,
    /// It shows every write to a CSR, those of traps too. Otherwise it may show some: they
    /// are compared, and the hart knows the others.
    pub csrs: bool,
    /// It shows loads and stores.
    pub memory: bool,
    /// It shows the privilege mode.
    pub modes: bool,
    /// It marks the first instruction of each trap handler. Otherwise a jump that no
    /// instruction makes is an interrupt.
    pub interrupts: bool,
}

impl Default for CheckOptions {
    /// The RISC-V Formal Interface.
    fn default() -> CheckOptions {
        CheckOptions {
            hart: 0,
            registers: true,
            floats: false,
            csrs: false,
            memory: true,
            modes: true,
            interrupts: true,
        }
    }
}

impl CheckOptions {
    /// Names of what the port does not show.
    fn absent(&self) -> Vec<&'static str> {
        // What a trap does to the status is known without being shown.
        let mut names = vec!["trap.mstatus", "trap.sstatus"];
        for (shown, absent) in [
            (self.registers, &["gpr"][..]),
            (self.floats, &["fpr"]),
            (self.csrs, &["csr", "trap.csr"]),
            (self.memory, &["store"]),
            (self.modes, &["priv"]),
        ] {
            if !shown {
                names.extend(absent);
            }
        }
        names
    }
}

/// The first difference between a core and the hart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Instructions before this one, those that trapped among them.
    pub insn: u64,
    /// Its address; of an interrupt, where it was taken.
    pub pc: u64,
    /// The instruction as the hart has it.
    pub bits: Option<u32>,
    /// All that differs.
    pub differences: Vec<Difference>,
    /// The report, as `hartrace verify` prints it.
    pub text: String,
}

/// Checks the instructions that a core retires, one by one.
///
/// Each call of [`Checker::retire`] compares one instruction. Only what the entry leaves
/// open waits for the next one: where an instruction goes that has no
/// [`Entry::next`], and the modes after traps and returns from them.
///
/// ```no_run
/// use hartrace_capture::config::Config;
/// use hartrace_cosim::{CheckOptions, Checker};
/// use hartrace_logs::{Entry, Rvfi};
///
/// let config = Config::load("core.toml".as_ref())?;
/// let mut checker = Checker::new(config, Vec::new(), CheckOptions::default(), &mut |_| {})?;
/// let mut entry = Entry::default();
/// # let retired: Vec<Rvfi> = Vec::new();
/// for rvfi in retired {
///     rvfi.fill(&mut entry);
///     if let Some(finding) = checker.retire(&mut entry)? {
///         println!("{}", finding.text);
///         break;
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Checker {
    program: Known,
    options: CheckOptions,
    steps: EntrySteps<'static>,
    encoder: Encoder,
    /// What the encoder has made of an entry.
    bytes: Vec<u8>,
    verifier: Verifier<Machine>,
    /// Where the last instruction said that it goes.
    next: Option<u64>,
    finding: Option<Finding>,
    /// Where the hart starts after a reset, if the settings say it.
    start: Option<u64>,
    /// The mode that the first instruction has to be in, if it is known where that is.
    first_mode: Option<Mode>,
}

/// What a report has to know.
struct Known {
    elf: Vec<Elf>,
    isa: Isa,
    config: hartrace_tandem::Config,
}

/// An entry that cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// It has no instruction.
    NoInstruction,
    /// It is of another hart than the entries before.
    OtherHart,
}

impl std::fmt::Display for EntryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            EntryError::NoInstruction => "an entry without its instruction",
            EntryError::OtherHart => "an entry of another hart: each hart has its own checker",
        })
    }
}

impl std::error::Error for EntryError {}

impl Checker {
    /// A checker of a hart that has not executed anything. The settings are those that
    /// `hartrace verify` takes (docs/library-c.md); `elf` are programs in memory, before
    /// those that the settings name. What was guessed is given to `warn`.
    ///
    /// # Errors
    ///
    /// Settings that make no machine, programs that cannot be read or loaded.
    pub fn new(
        config: Config,
        elf: Vec<Elf>,
        options: CheckOptions,
        warn: &mut dyn FnMut(Diagnostic),
    ) -> Result<Checker, Error> {
        let mut config = config.over(Config::defaults());
        let mut elf = elf;
        elf.extend(read_named(&config.program.elf, Elf::read)?);
        let volatile = volatile(&config, &options);
        let (hart, isa) = model::configure(&mut config, &elf, &volatile, warn)?;
        let symbols = elf
            .first()
            .and_then(|elf| Symbols::from_elf(&elf.bytes).ok());
        let entry = machine::entry(&config.hart, symbols.as_ref())?;
        let (machine, found) = model::build(&hart, &elf, entry)?;
        let start = entry.map(|_| machine.pc());
        let settings = config.tandem.settings(isa).map_err(SettingsError::from)?;
        let settings = stream_settings(settings, &config, &options, start.is_none());
        let verify = Options {
            volatile,
            own_csrs: config
                .verify
                .check_csrs
                .as_ref()
                .is_none_or(|own| own.value),
            ..found
        };
        let steps = EntryOptions {
            isa: Some(isa),
            max_harts: 1,
            plain_jumps: options.interrupts,
        };
        let writes_all = hartrace_tandem::Config {
            absent: Default::default(),
            ..settings.clone()
        };
        Ok(Checker {
            steps: EntrySteps::new(steps, None),
            encoder: Encoder::new(writes_all).map_err(SettingsError::from)?,
            bytes: Vec::new(),
            verifier: Verifier::new(settings.clone(), verify, machine),
            program: Known {
                elf,
                isa,
                config: settings,
            },
            options,
            next: start,
            finding: None,
            start,
            first_mode: start.map(|_| Mode::M),
        })
    }

    /// The width of the hart and its extensions.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.program.isa
    }

    /// What was compared so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.verifier.counters()
    }

    /// The difference at which the checker stands.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// Compares the next instruction of the core the short way: whether it agrees. If not,
    /// nothing is said, and the entry of the same instruction has to be given to
    /// [`Checker::retire`] next. Nearly all instructions of a core that is right agree in
    /// this way, in a fraction of the time.
    #[inline]
    pub fn agrees(&mut self, hart: HartId, rvfi: &Rvfi) -> bool {
        let Some((retired, mode)) = self.plain(hart, rvfi) else {
            return false;
        };
        let agrees = self.verifier.lockstep(&retired) == Lockstep::Agrees;
        if agrees {
            pass(&retired, mode, &mut self.encoder, &mut self.steps);
            self.next = Some(retired.next);
        }
        agrees
    }

    /// The same for a row of instructions that the core has retired one after the other:
    /// how many of them agree, before the first that does not or is not looked at. The hart
    /// runs on meanwhile, which takes less than half the time.
    pub fn agree(&mut self, hart: HartId, row: impl IntoIterator<Item = Rvfi>) -> usize {
        let mut row = row.into_iter();
        let Some((first, mode)) = row.next().and_then(|rvfi| self.plain(hart, &rvfi)) else {
            return 0;
        };
        let (encoder, steps) = (&mut self.encoder, &mut self.steps);
        let (mut agreed, mut next) = (0, None);
        self.verifier.lockstep_row(first, u64::MAX, |retired| {
            agreed += 1;
            pass(retired, mode, encoder, steps);
            next = Some(retired.next);
            let rvfi = row.next()?;
            let same = rvfi.mode.is_none_or(|code| code == mode.code());
            let goes_on = same && rvfi.pc_rdata == retired.next;
            goes_on.then(|| retired_plainly(&rvfi))?
        });
        self.next = next.or(self.next);
        agreed
    }

    /// An instruction as the verifier takes it the short way, and its mode.
    #[inline]
    fn plain(&self, hart: HartId, rvfi: &Rvfi) -> Option<(Retired, Mode)> {
        let retired = retired_plainly(rvfi)?;
        let pc = retired.pc;
        let ready = self.next == Some(pc) && self.first_mode.is_none() && self.finding.is_none();
        let derived = self.steps.settled(hart).filter(|_| ready)?;
        let mode = match rvfi.mode {
            Some(code) => Mode::from_code(code)?,
            None => derived,
        };
        self.encoder.is_at(pc, mode).then_some((retired, mode))
    }

    /// The next instruction of the core: the first difference, if there is one now or was
    /// one before. Nothing more is compared then, unless [`Checker::go_on`] is called.
    ///
    /// # Errors
    ///
    /// An entry that cannot be checked; it does not count.
    #[inline]
    pub fn retire(&mut self, entry: &mut Entry) -> Result<Option<&Finding>, EntryError> {
        if self.finding.is_some() {
            return Ok(self.finding.as_ref());
        }
        if self.next.is_some_and(|next| next != entry.pc) && entry.handler.is_none() {
            self.jumped(entry);
        }
        if let Some(mode) = self.first_mode.take() {
            self.started(entry, mode);
        }
        if entry.trap.is_some() {
            // What could not be fetched has no bits; that the hart tried it is enough.
            entry.bits.get_or_insert(0);
        }
        if matches!(entry.bits, Some(MRET | SRET)) && entry.trap.is_none() {
            self.returns(entry);
        }
        let hart = entry.hart;
        let mut stream = Stream {
            encoder: &mut self.encoder,
            bytes: &mut self.bytes,
            verifier: &mut self.verifier,
        };
        match self.steps.entry(entry, &mut stream) {
            // There is no image that an instruction could differ from.
            Ok(()) | Err(LineErrorKind::CodeDiffers(_)) => {}
            Err(LineErrorKind::TooManyHarts) => return Err(EntryError::OtherHart),
            Err(_) => return Err(EntryError::NoInstruction),
        }
        self.steps.settle(hart, &mut stream);
        self.next = match entry.trap {
            None => entry.next,
            Some(_) => None,
        };
        self.compare();
        Ok(self.finding.as_ref())
    }

    /// The core was reset: what follows starts as at first.
    pub fn reset(&mut self) -> Option<&Finding> {
        if self.finding.is_none() {
            (self.next, self.first_mode) = (self.start, self.start.map(|_| Mode::M));
        }
        let reset = Step::Signal(Signal::Reset);
        self.flush(|encoder, bytes| encoder.step(&reset, &Effects::NONE, bytes))
    }

    /// Nothing follows: what waits for the next instruction is compared without it.
    pub fn finish(&mut self) -> Option<&Finding> {
        self.flush(|encoder, bytes| encoder.finish(bytes))
    }

    /// Goes on after a difference, with the state that the core has shown.
    pub fn go_on(&mut self) {
        self.finding = None;
    }

    /// What waits is compared, and with it what comes last.
    fn flush(&mut self, last: impl FnOnce(&mut Encoder, &mut Vec<u8>)) -> Option<&Finding> {
        if self.finding.is_none() {
            let mut stream = Stream {
                encoder: &mut self.encoder,
                bytes: &mut self.bytes,
                verifier: &mut self.verifier,
            };
            self.steps.flush(&mut stream);
            last(&mut self.encoder, &mut self.bytes);
            self.compare();
        }
        self.finding.as_ref()
    }

    /// The core is not where its last instruction went, and does not say why.
    #[cold]
    fn jumped(&mut self, entry: &mut Entry) {
        if !self.options.interrupts {
            entry.handler = Some(Cause::Interrupt(None));
            return;
        }
        let at_interrupt = matches!(entry.trap.map(|trap| trap.cause), Some(Cause::Interrupt(_)));
        if at_interrupt {
            return;
        }
        let difference = Difference {
            field: Field::Pc,
            expected: self.next,
            actual: Some(entry.pc),
        };
        self.find(entry.pc, difference);
    }

    /// A return from a trap. Some ports show the address after it as the next one; where it
    /// really leads is seen by the next instruction, which has to be where the hart goes.
    #[cold]
    fn returns(&mut self, entry: &mut Entry) {
        let epc = match entry.bits {
            Some(MRET) => csr::MEPC,
            _ => csr::SEPC,
        };
        if let Ok(epc) = self.verifier.model().read(Place::Csr(epc)) {
            entry.next = Some(epc);
        }
    }

    /// The first instruction: a hart starts in machine mode.
    #[cold]
    fn started(&mut self, entry: &Entry, expected: Mode) {
        if let Some(mode) = entry.mode.filter(|mode| *mode != expected) {
            let difference = Difference {
                field: Field::Mode,
                expected: Some(expected.code().into()),
                actual: Some(mode.code().into()),
            };
            self.find(entry.pc, difference);
        }
    }

    /// Gives the verifier what an entry has become.
    #[inline]
    fn compare(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let mut judge = Judge {
            known: &self.program,
            finding: &mut self.finding,
        };
        // The judge never breaks, so that nothing is lost for those who go on.
        let _ = self.verifier.feed(&self.bytes, &mut judge);
        self.bytes.clear();
    }

    /// A difference that the verifier has not reported.
    #[cold]
    fn find(&mut self, pc: u64, difference: Difference) {
        let counters = self.verifier.counters();
        let (insn, number) = (counters.instructions(), counters.groups);
        let group = Group {
            number,
            ..Group::default()
        };
        let mut differences = hartrace_flow::Few::default();
        // There is room for it.
        let _ = differences.push(difference);
        let mismatch = Mismatch {
            group: &group,
            insn,
            pc,
            bits: None,
            differences,
            past: &[],
        };
        let mut judge = Judge {
            known: &self.program,
            finding: &mut self.finding,
        };
        let _ = judge.mismatch(&mismatch);
    }
}

/// A retirement as the verifier takes it the short way.
#[inline]
fn retired_plainly(rvfi: &Rvfi) -> Option<Retired> {
    let plain = rvfi.plain()?;
    Some(Retired {
        pc: rvfi.pc_rdata,
        next: plain.next,
        bits: plain.bits,
        reg: plain.reg,
        access: plain.access,
    })
}

/// Passes over an instruction that has been compared.
#[inline]
fn pass(retired: &Retired, mode: Mode, encoder: &mut Encoder, steps: &mut EntrySteps<'_>) {
    let insn = Insn {
        pc: retired.pc,
        next: retired.next,
        time: 0,
        context: Context(0),
        bits: retired.bits,
        mode,
    };
    encoder.pass(retired.next, retired.reg.as_ref());
    steps.pass(&insn, retired.reg.as_ref());
}

/// What comes from the core.
fn volatile(config: &Config, options: &CheckOptions) -> Volatile {
    let mut volatile = model::volatile(config);
    if options.hart != 0 {
        // The built-in hart is hart 0.
        volatile.add_bits(Register::csr(csr::MHARTID), u64::MAX);
    }
    volatile
}

/// The settings of the stream between core and verifier.
fn stream_settings(
    mut settings: hartrace_tandem::Config,
    config: &Config,
    options: &CheckOptions,
    start: bool,
) -> hartrace_tandem::Config {
    settings.style.start = start;
    for name in options.absent() {
        // They are names of elements.
        let _ = settings.absent.add(name);
    }
    model::add_absent(config, &mut settings);
    settings
}

/// The steps of the core on their way to the verifier.
struct Stream<'c> {
    encoder: &'c mut Encoder,
    bytes: &'c mut Vec<u8>,
    verifier: &'c mut Verifier<Machine>,
}

impl Observer for Stream<'_> {
    const WANTS: Wants = Wants::ALL;

    #[inline]
    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        match step {
            Step::Insn(insn) if self.bytes.is_empty() && self.encoder.is_at(insn.pc, insn.mode) => {
                match Retired::new(insn, effects) {
                    Some(retired) if self.verifier.lockstep(&retired) == Lockstep::Agrees => {
                        self.encoder.pass(insn.next, retired.reg.as_ref());
                    }
                    _ => self.encoder.step(step, effects, self.bytes),
                }
            }
            Step::Trap(trap) if trap.trap.tval.is_none() => self.exception(trap, effects),
            _ => self.encoder.step(step, effects, self.bytes),
        }
    }
}

impl Stream<'_> {
    /// A trap without its value. The encoder would take it for one that writes zero, if it
    /// knew the cause; so the hart says both.
    #[cold]
    fn exception(&mut self, trap: &TrapStep, effects: &Effects) {
        let mut trap = *trap;
        if let Cause::Exception(code) = &mut trap.trap.cause {
            *code = None;
        }
        self.encoder.step(&Step::Trap(trap), effects, self.bytes);
    }
}

/// Keeps the first mismatch.
struct Judge<'c> {
    known: &'c Known,
    finding: &'c mut Option<Finding>,
}

impl Known {
    /// The text of a report.
    fn report(&self, report: impl FnOnce(&mut Report<'_>)) -> String {
        let Known { elf, isa, config } = self;
        let mut places = Places::new(*isa);
        elf.iter().for_each(|elf| places.add_elf(&elf.bytes));
        let facts = Facts {
            trace: Path::new("core"),
            config,
            isa: *isa,
            places: &places,
        };
        let mut text = Report::new(Form::Text, None, true, facts);
        report(&mut text);
        text.take()
    }
}

impl Reporter for Judge<'_> {
    #[cold]
    fn mismatch(&mut self, mismatch: &Mismatch<'_>) -> ControlFlow<()> {
        if self.finding.is_none() {
            let text = self.known.report(|report| {
                let _ = report.mismatch(mismatch);
            });
            *self.finding = Some(Finding {
                insn: mismatch.insn,
                pc: mismatch.pc,
                bits: mismatch.bits,
                differences: mismatch.differences.to_vec(),
                text,
            });
        }
        ControlFlow::Continue(())
    }

    #[cold]
    fn problem(&mut self, problem: &Problem) -> ControlFlow<()> {
        if self.finding.is_none() {
            let text = self.known.report(|report| {
                let _ = report.problem(problem);
            });
            *self.finding = Some(Finding {
                insn: problem.group,
                pc: 0,
                bits: None,
                differences: Vec::new(),
                text,
            });
        }
        ControlFlow::Continue(())
    }
}
