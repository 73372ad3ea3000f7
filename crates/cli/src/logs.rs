//! Reads logs and the programs they need.

use crate::args::ModeName;
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Program;
use hartrace_capture::config::Config;
use hartrace_capture::detect::Kind;
use hartrace_capture::input::Input;
use hartrace_capture::log::{Copied, CycleReader, LogGuess, LogOptions, LogSource, Reading};
use hartrace_capture::trace::TraceWriter;
use hartrace_capture::wave::ingress_in;
use hartrace_flow::erase;
use hartrace_flow::{HartId, Image, Mode, Observer};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::log;
use std::ops::ControlFlow;
use std::path::Path;

/// Refuses a log without register and memory writes.
pub(crate) fn need_effects(
    path: &Path,
    kind: Kind,
    head: &[u8],
    config: &Config,
) -> Result<(), Failure> {
    let refused = log::no_effects(path, kind, head, config);
    refused.map_or(Ok(()), |diagnostic| Err(diagnostic.into()))
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
    match wrong {
        true => Err(log::which_hart(path, harts).into()),
        false => Ok(()),
    }
}

/// Finds out how a log is read; guesses are reported. With `plain_jumps`, jumps
/// that nothing explains stay jumps.
pub(crate) fn reading<'a>(
    kind: Kind,
    head: &[u8],
    program: &Program,
    image: Option<&'a Image>,
    plain_jumps: bool,
    session: &Session<'_>,
) -> Result<Reading<'a>, Failure> {
    let mut guessed = |guess| session.talk.warning(&log::guessed(guess));
    Reading::new(kind, head, program, image, plain_jumps, &mut guessed)
        .map_err(|error| log::not_readable(session.path, head, error).into())
}

/// A reader of the ingress port in a log of this kind, and the instruction set; `None` for
/// one without such a port. Guesses are reported.
pub(crate) fn cycles(
    kind: Kind,
    head: &[u8],
    program: &Program,
    session: &Session<'_>,
) -> Option<(CycleReader, Isa)> {
    // Of a waveform with several ports, the ingress port is the one for an encoder.
    let kind = match kind {
        Kind::IngressCsv | Kind::Wave(Some(_)) => kind,
        Kind::Wave(None) => Kind::Wave(ingress_in(head, &program.config.wave)),
        _ => return None,
    };
    let mut guessed = |guess| session.talk.warning(&log::guessed(guess));
    if kind == Kind::IngressCsv && program.isa.is_none() {
        // Nothing says how wide the hart is.
        guessed(LogGuess::Isa(Isa::RV64GC));
    }
    let options = LogOptions::of(kind, head, program, None, &mut guessed);
    let reader = CycleReader::new(kind, &options)?;
    Some((reader, options.isa.unwrap_or(Isa::RV64GC)))
}

/// Goes on unless something failed, which is kept.
fn go_on(fine: Result<(), Failure>, failed: &mut Option<Failure>) -> ControlFlow<()> {
    match fine {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            *failed = Some(error);
            ControlFlow::Break(())
        }
    }
}

/// Gives the cycles of the hart `only`, or of all, to an encoder.
pub(crate) fn copy_cycles(
    reader: CycleReader,
    input: Input,
    writer: &mut TraceWriter<'_>,
    (only, single): (Option<u32>, bool),
    session: &Session<'_>,
    check: impl Fn() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut progress = session.progress(&input);
    let mut failed = None;
    let mut after = |harts: &[HartId], clash: bool, done: u64| {
        progress.reach(done);
        let fine = check().and_then(|()| which_hart(session.path, harts, clash));
        go_on(fine, &mut failed)
    };
    let only = only.map(HartId);
    let copied = reader.copy(input, (only, single), writer, &mut after)?;
    drop(progress);
    failed.map_or(Ok(()), Err)?;
    check()?;
    let nothing = copied.harts.is_empty();
    if !nothing || copied.damage.lines == 0 {
        let missing = only.is_some_and(|only| !copied.harts.contains(&only));
        which_hart(session.path, &copied.harts, copied.clash || missing)?;
    }
    let (damage, lines) = (&copied.damage, copied.lines);
    let damage = log::judge_damage(session.path, damage, lines, nothing, session.strict);
    session.talk.report(damage)
}

/// Gives the steps of the hart `only`, or of all, to `out`; a `single` one
/// has no room for two harts. `check` fails when the output does.
pub(crate) fn copy<O: Observer>(
    reading: Reading<'_>,
    input: Input,
    mut out: O,
    (only, single): (Option<u32>, bool),
    session: &Session<'_>,
    check: impl Fn() -> Result<(), Failure>,
) -> Result<Copied<O>, Failure> {
    let mut progress = session.progress(&input);
    let mut failed = None;
    let mut after = |harts: &[HartId], clash: bool, done: u64| {
        progress.reach(done);
        let fine = check().and_then(|()| which_hart(session.path, harts, clash));
        go_on(fine, &mut failed)
    };
    let harts = (only.map(HartId), single);
    let log = LogSource::new(reading.reader, input, harts, &mut after);
    let copied = erase::run(log, &mut out)?;
    drop(progress);
    failed.map_or(Ok(()), Err)?;
    check()?;
    let chosen = &copied.chosen;
    if !chosen.harts().is_empty() || copied.damage.lines == 0 {
        let wrong = chosen.clash() || chosen.missing();
        which_hart(session.path, chosen.harts(), wrong)?;
    }
    Ok(copied.seen_by(out))
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
    let fit = log::judge_fit(path, copied.chosen.fit(), strict);
    let damage = log::judge_damage(path, &copied.damage, copied.lines, nothing, strict);
    let causes = log::judge_causes(path, copied.chosen.fit(), instead, strict);
    for findings in [fit, damage, causes] {
        session.talk.report(findings)?;
    }
    Ok(copied.chosen.into_inner())
}
