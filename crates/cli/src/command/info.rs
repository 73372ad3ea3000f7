//! `hartrace info`: identifies files and summarises their contents.

use crate::args::{Info, InfoFormat};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::Session;
use crate::settings::Program;
use crate::talk::Talk;
use hartrace_capture::survey::{Content, Survey, Surveyor};
use hartrace_flow::Image;
use hartrace_print::diagnostic::{Diagnostic, file, log, records};
use hartrace_print::info;
use hartrace_print::words::count;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

pub(super) fn run(args: &Info, talk: &Talk) -> Result<(), Failure> {
    let session = Session::of_files(&args.files, false, &args.program, args.strict, talk)?;
    // Every file is looked at, whether the report is read or not.
    let output = session.output(&args.output.output)?;
    let mut output = output.outlive_reader(true);
    let program = session.load()?;
    let image = program.image()?;
    let mut writer = Writer {
        format: args.format,
        begun: false,
    };
    let mut first = None;
    for path in &args.files {
        let result = look(path, &program, image.as_ref(), talk).and_then(|survey| {
            let file = info::File::from(&survey);
            writer.write(&file, &mut output).map_err(Stop::Write)?;
            judge(args.strict, &survey, talk)
        });
        match result {
            Ok(()) => {}
            // The other files are still of interest.
            Err(Stop::Diagnostic(diagnostic)) => {
                talk.error(&diagnostic);
                first.get_or_insert(diagnostic.code);
            }
            Err(Stop::Write(error)) => {
                return Err(output.failed(error).into());
            }
        }
    }
    match first {
        // Half an answer in a file would pass for a whole one.
        Some(code) if args.output.output.as_os_str() != "-" => Err(Failure::Reported(code)),
        code => {
            output.finish()?;
            code.map_or(Ok(()), |code| Err(Failure::Reported(code)))
        }
    }
}

/// Why the facts about a file cannot be given.
enum Stop {
    Diagnostic(Box<Diagnostic>),
    Write(io::Error),
}

impl<T: Into<Diagnostic>> From<T> for Stop {
    fn from(error: T) -> Stop {
        Stop::Diagnostic(Box::new(error.into()))
    }
}

struct Writer {
    format: InfoFormat,
    begun: bool,
}

impl Writer {
    fn write(&mut self, file: &info::File, out: &mut impl Write) -> io::Result<()> {
        let begun = std::mem::replace(&mut self.begun, true);
        match self.format {
            InfoFormat::Text => {
                if begun {
                    writeln!(out)?;
                }
                file.write_text(out)
            }
            InfoFormat::Json => {
                if !begun {
                    info::write_header(out)?;
                }
                file.write_json(out)
            }
        }
    }
}

/// Whether a file may pass. Damage is among its facts, so there is no need to
/// warn of it.
fn judge(strict: bool, survey: &Survey, talk: &Talk) -> Result<(), Stop> {
    let path = &survey.path;
    let findings = match &survey.content {
        Content::Log(facts) => {
            let fit = log::judge_fit(path, facts.summary.fit(), strict);
            fit.warnings.iter().for_each(|w| talk.warning(w));
            let damage = &facts.damage;
            let judged = log::judge_damage(path, damage, facts.lines, facts.is_empty(), strict);
            fit.error.or(judged.error)
        }
        Content::Records(summary) => records::judge(path, summary, strict).error,
        _ => None,
    };
    findings.map_or(Ok(()), |error| Err(error.into()))
}

/// Reads a file.
fn look(
    path: &Path,
    program: &Program,
    image: Option<&Image>,
    talk: &Talk,
) -> Result<Survey, Stop> {
    let mut progress = None;
    let mut surveyor = Surveyor {
        program,
        image,
        remark: &mut |path, remark| talk.warning(&file::remark(path, &remark)),
        progress: &mut |size, bytes| {
            let progress = progress.get_or_insert_with(|| Progress::new(talk, size));
            progress.advance(bytes);
        },
    };
    let begin = Instant::now();
    let survey = surveyor.look(path);
    let survey = survey.map_err(|error| Stop::from(file::no_facts(path, error)))?;
    drop(progress);
    if let Content::Log(facts) = &survey.content {
        let seconds = begin.elapsed().as_secs_f64();
        let speed = facts.lines as f64 / seconds.max(1e-9) / 1e6;
        talk.detail(&format!(
            "{} in {seconds:.3} s, {speed:.1} million lines/s",
            count(facts.lines, "line")
        ));
    }
    Ok(survey)
}
