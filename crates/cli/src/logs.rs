//! Logs and the programs they need; what `info` and `log` share.

use crate::args::ModeName;
use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::settings::{Program, add_boot_code};
use crate::talk::Talk;
use hartrace_capture::config::{Machine, Origin, Setting};
use hartrace_capture::detect::Kind;
use hartrace_capture::input;
use hartrace_capture::log::{
    Damage, Fit, LogError, LogOptions, first_pc, ingress_layout, spike_isa,
};
use hartrace_flow::{HartId, Image, Mode, SpaceId, boot};
use hartrace_isa::Isa;
use hartrace_logs::Iretire;
use hartrace_print::info::line_note;
use std::path::Path;

/// What the settings, the program and the first bytes of a log say about
/// reading it. What is guessed is told.
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
            talk.warning(
                &Diagnostic::new(Code::Guessed, message).help("say which one it is with --isa"),
            );
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
        let help = "say so with retirement = \"block\" in section [ingress] of a configuration";
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
                .note(format!("it looks like this kind of file: {kind}"));
            match kind {
                Kind::Elf => diagnostic.help("give the program with -e, and the log as INPUT"),
                _ => diagnostic.help("give a log of a simulator as INPUT"),
            }
        }
        LogError::NeedsProgram(kind) => {
            Diagnostic::new(Code::NoProgram, "no program is given")
                .note(format!("{name} has no instructions in it, only addresses: {kind}"))
                .help("name the program with -e, or use --raw FILE@BASE or a configuration with [program]")
        }
    }
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
        let help = "is it the right program, and the right kind of log?";
        return Verdict::Error(diagnostic.with_code(Code::NothingRead).help(help));
    }
    if strict {
        let help = "remove what is not part of the log, or leave out --strict";
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
    let message = format!("{name} does not seem to follow this program");
    let diagnostic = Diagnostic::new(Code::DoubtfulProgram, message)
        .note(format!(
            "{} of {} steps are traps of unknown cause",
            fit.unexplained, fit.steps
        ))
        .help("is it the right ELF file, and the right load base?");
    if strict {
        Verdict::Error(diagnostic)
    } else {
        Verdict::Warning(diagnostic)
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
        .help("choose one that is there with --hart N")
        .into())
}
