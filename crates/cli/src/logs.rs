//! Reads logs and the programs they need.

use crate::args::ModeName;
use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::session::Session;
use crate::settings::{Program, add_boot_code};
use crate::talk::Talk;
use hartrace_capture::config::{Machine, Origin, Setting};
use hartrace_capture::detect::Kind;
use hartrace_capture::input::{self, Input};
use hartrace_capture::log::{
    Chosen, Copied, Damage, Fit, LogError, LogOptions, LogReader, SpikeParts, first_pc, has_modes,
    ingress_layout, spike_isa, spike_parts,
};
use hartrace_flow::{HartId, Image, Mode, Observer, SpaceId, boot};
use hartrace_isa::Isa;
use hartrace_logs::Iretire;
use hartrace_print::info::line_note;
use std::path::Path;

/// What the settings, the program and the first bytes of a log say about
/// reading it. Guesses are reported.
pub(crate) fn options<'a>(
    kind: Kind,
    head: &[u8],
    program: &Program,
    image: Option<&'a Image>,
    talk: &Talk,
) -> LogOptions<'a> {
    let isa = program.isa.unwrap_or_else(|| match kind {
        Kind::SpikeLog => spike_isa(head),
        Kind::SpikeCsv => {
            let message = format!("no instruction set is given; assuming {}", Isa::RV64GC);
            talk.warning(&Diagnostic::new(Code::Guessed, message).help(
                "give the instruction set with \
                    --isa",
            ));
            Isa::RV64GC
        }
        _ => Isa::RV64GC,
    });
    LogOptions {
        image,
        isa: Some(isa),
        iretire: iretire(kind, head, program, talk),
        plain_jumps: false,
    }
}

/// A log may start in Spike's boot code, which is in no program: then it was
/// Spike's machine, and the image gets that code.
pub(crate) fn recognise_boot(
    kind: Kind,
    head: &[u8],
    program: &mut Program,
    image: Option<&mut Image>,
) {
    let known = |image: &Image| image.fetch(SpaceId::FIRST, boot::ROM).is_some();
    if first_pc(kind, head) != Some(boot::ROM) || image.as_deref().is_some_and(known) {
        return;
    }
    let config = &mut program.config;
    config.hart.machine = Some(Setting::default(Machine::Spike));
    if let Some(image) = image {
        add_boot_code(image, config, program.isa.unwrap_or(Isa::RV64GC));
    }
}

/// What `iretire` counts: what the settings say, or else what the rows show.
fn iretire(kind: Kind, head: &[u8], program: &Program, talk: &Talk) -> Iretire {
    let ingress = &program.config.ingress;
    let said = ingress.retirement.as_ref();
    let said = said.is_some_and(|s| s.origin != Origin::Default);
    if said || kind != Kind::IngressCsv {
        return ingress.iretire();
    }
    let (_, counted) = ingress_layout(head);
    if counted != ingress.iretire() {
        let message =
            "rows retire more than one instruction; assuming that iretire counts halfwords";
        let help = "set retirement = \"block\" in section [ingress] of a configuration";
        talk.warning(&Diagnostic::new(Code::Guessed, message).help(help));
    }
    counted
}

/// A file that is not read as steps.
pub(crate) fn not_readable(path: &Path, head: &[u8], error: LogError) -> Diagnostic {
    let name = input::name(path);
    match error {
        LogError::NotALog(kind @ (Kind::Empty | Kind::Unknown)) => {
            unknown_format(path, kind, head, "log")
        }
        LogError::NotALog(kind) => {
            let diagnostic = Diagnostic::new(Code::NotALog, format!("{name} is not a log"))
                .note(format!("detected kind of file: {kind}"));
            match kind {
                Kind::Elf => diagnostic.help("give the program with -e, and the log as INPUT"),
                _ => diagnostic.help("give the log of a simulator as INPUT"),
            }
        }
        LogError::NeedsProgram(kind) => Diagnostic::new(Code::NoProgram, "no program is given")
            .note(format!("{name} has addresses but no instructions: {kind}"))
            .help(
                "give the program with -e, --raw FILE@BASE, or a configuration with a \
                    [program] section",
            ),
    }
}

/// Refuses a log without register and memory writes; what else is in it.
pub(crate) fn need_effects(path: &Path, kind: Kind, head: &[u8]) -> Result<SpikeParts, Failure> {
    let parts = spike_parts(head);
    let note = match kind {
        Kind::SpikeLog if parts.commits => return Ok(parts),
        Kind::SpikeLog => "it was written by `spike -l` without `--log-commits`".to_owned(),
        kind => format!("kind of log: {kind}"),
    };
    let message = format!(
        "{} does not record register and memory writes",
        input::name(path)
    );
    Err(Diagnostic::new(Code::NoEffects, message)
        .note(note)
        .help("write the log with `spike -l --log-commits`, or use `hartrace run`")
        .into())
}

/// What damaged lines mean for a command.
pub(crate) enum Verdict {
    Clean,
    Warning(Diagnostic),
    Error(Diagnostic),
}

/// Damaged lines are an error with `--strict`, or when there is nothing else.
pub(crate) fn judge(
    path: &Path,
    damage: &Damage,
    lines: u64,
    nothing: bool,
    strict: bool,
) -> Verdict {
    if damage.lines == 0 {
        return Verdict::Clean;
    }
    let diagnostic = damaged(path, damage, lines);
    if nothing {
        let help = "check the program and the kind of log";
        return Verdict::Error(diagnostic.with_code(Code::NothingRead).help(help));
    }
    if strict {
        let help = "remove the lines that are not part of the log, or leave out --strict";
        return Verdict::Error(diagnostic.help(help));
    }
    Verdict::Warning(diagnostic)
}

/// A log that goes where its program does not lead; an error with `--strict`.
pub(crate) fn judge_fit(path: &Path, fit: Fit, strict: bool) -> Verdict {
    if !fit.is_doubtful() {
        return Verdict::Clean;
    }
    let name = input::name(path);
    let message = format!("{name} does not match this program");
    let diagnostic = Diagnostic::new(Code::DoubtfulProgram, message)
        .note(format!(
            "{} of {} steps are traps of unknown cause",
            fit.unexplained, fit.steps
        ))
        .help("check the ELF file and its load base");
    if strict {
        Verdict::Error(diagnostic)
    } else {
        Verdict::Warning(diagnostic)
    }
}

/// Traps whose cause the log does not record; an error with `--strict`.
fn judge_causes(path: &Path, fit: Fit, instead: Option<&str>, strict: bool) -> Verdict {
    let (Some(instead), Some(first)) = (instead, fit.first) else {
        return Verdict::Clean;
    };
    let name = input::name(path);
    let traps = count(fit.causeless, "trap");
    let message = format!("{name} does not record the cause of {traps}");
    let mut diagnostic = Diagnostic::new(Code::UnknownCauses, message);
    if let (Some(epc), Some(handler)) = (first.trap.epc, first.trap.handler) {
        diagnostic = diagnostic.note(format!(
            "first, at step {}: no jump leads to {handler:#x}; {epc:#x} was expected",
            first.step
        ));
    }
    let diagnostic = diagnostic
        .note(format!("{instead} is written for each of them"))
        .help(
            "use a log that records traps: `spike -l --log-commits`, `run --log spike-traps=FILE`",
        );
    match strict {
        true => Verdict::Error(diagnostic),
        false => Verdict::Warning(diagnostic),
    }
}

/// Lines that could not be read, as an error or a warning.
fn damaged(path: &Path, damage: &Damage, lines: u64) -> Diagnostic {
    let name = input::name(path);
    let lines = count(lines, "line");
    let message = format!("{name}: {} of {lines} cannot be read", damage.lines);
    let mut diagnostic = Diagnostic::new(Code::DamagedLines, message);
    for error in &damage.first {
        diagnostic = diagnostic.note(line_note(error));
    }
    if damage.more() > 0 {
        diagnostic = diagnostic.note(format!("and {} more", damage.more()));
    }
    diagnostic
}

/// The mode by what was typed.
pub(crate) const fn mode_of(name: ModeName) -> Mode {
    match name {
        ModeName::U => Mode::U,
        ModeName::S => Mode::S,
        ModeName::M => Mode::M,
    }
}

/// The harts of a log, where the chosen one is `wrong`.
pub(crate) fn which_hart(path: &Path, harts: &[HartId], wrong: bool) -> Result<(), Failure> {
    if !wrong {
        return Ok(());
    }
    let list: Vec<String> = harts.iter().map(|h| h.0.to_string()).collect();
    let name = input::name(path);
    let message = match list.as_slice() {
        [] => format!("{name} has no steps of that hart"),
        [one] => format!("{name} has only hart {one}"),
        more => format!("{name} has several harts: {}", more.join(", ")),
    };
    Err(Diagnostic::new(Code::WhichHart, message)
        .help("choose one of them with --hart N")
        .into())
}

/// How a log is read.
pub(crate) struct Reading<'a> {
    pub(crate) reader: LogReader<'a>,
    pub(crate) isa: Isa,
    /// Whether the log has modes.
    pub(crate) modes: bool,
}

/// Finds out how a log is read. With `plain_jumps`, jumps that nothing explains
/// stay jumps.
pub(crate) fn reading<'a>(
    kind: Kind,
    head: &[u8],
    program: &Program,
    image: Option<&'a Image>,
    plain_jumps: bool,
    session: &Session<'_>,
) -> Result<Reading<'a>, Failure> {
    let not_readable = |error| not_readable(session.path, head, error);
    let bare = LogOptions {
        image,
        ..LogOptions::default()
    };
    // Refused before anything is guessed about it.
    LogReader::new(kind, &bare).map_err(not_readable)?;
    let options = LogOptions {
        plain_jumps,
        ..options(kind, head, program, image, session.talk)
    };
    Ok(Reading {
        reader: LogReader::new(kind, &options).map_err(not_readable)?,
        isa: options.isa.unwrap_or(Isa::RV64GC),
        modes: has_modes(kind, &options, head),
    })
}

impl Reading<'_> {
    /// Gives the steps of the hart `only`, or of all, to `out`; a `single` one
    /// has no room for two harts. `check` fails when the output does.
    pub(crate) fn copy<O: Observer>(
        self,
        input: Input,
        out: O,
        (only, single): (Option<u32>, bool),
        session: &Session<'_>,
        check: impl Fn() -> Result<(), Failure>,
    ) -> Result<Copied<O>, Failure> {
        let chosen = Chosen::new(out, only.map(HartId), single);
        let mut progress = session.progress(&input);
        let copied = self.reader.copy(input, chosen, |chosen, done| {
            progress.reach(done);
            check()?;
            which_hart(session.path, chosen.harts(), chosen.clash())
        })?;
        drop(progress);
        check()?;
        let chosen = &copied.chosen;
        if !chosen.harts().is_empty() || copied.damage.lines == 0 {
            let wrong = chosen.clash() || chosen.missing();
            which_hart(session.path, chosen.harts(), wrong)?;
        }
        Ok(copied)
    }
}

/// What was wrong with a log, and what took its steps. `instead` is what the output
/// has for a trap whose cause the log does not record; `None` if the output has no
/// causes, or says which are unknown.
pub(crate) fn judged<O>(
    copied: Copied<O>,
    instead: Option<&str>,
    session: &Session<'_>,
) -> Result<O, Failure> {
    let (path, strict) = (session.path, session.strict);
    let nothing = copied.chosen.harts().is_empty();
    // The wrong program is a reason for damage, not the other way round.
    let fit = judge_fit(path, copied.chosen.fit(), strict);
    let damage = judge(path, &copied.damage, copied.lines, nothing, strict);
    let causes = judge_causes(path, copied.chosen.fit(), instead, strict);
    for verdict in [fit, damage, causes] {
        match verdict {
            Verdict::Error(diagnostic) => return Err(diagnostic.into()),
            Verdict::Warning(diagnostic) => session.talk.warning(&diagnostic),
            Verdict::Clean => {}
        }
    }
    Ok(copied.chosen.into_inner())
}
