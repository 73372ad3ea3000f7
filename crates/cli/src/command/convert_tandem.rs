//! `hartrace convert` of tandem traces to tandem traces: into a container and
//! out of it. The groups stay as they are.

use super::trace_write::{TraceFile, too_long};
use crate::args::Convert;
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::logs::which_hart;
use crate::progress::Progress;
use crate::settings::Elf;
use crate::talk::Talk;
use crate::traces::{Named, Settings};
use hartrace_capture::input::{self, Input, is_stdin};
use hartrace_capture::trace::{self, ContainerWriter, Groups, StreamPiece, Streams};
use hartrace_flow::HartId;
use hartrace_tandem::container::Parameters;
use hartrace_tandem::{Config, Problem};
use std::path::{Path, PathBuf};

pub(super) fn run(
    args: &Convert,
    read: &Settings,
    input: Input,
    files: &[&Path],
    talk: &Talk,
) -> Result<(), Failure> {
    let (settings, input) = read.of_trace(input, None, None, args.strict, talk)?;
    let trace::Settings::Tandem(config) = &settings else {
        return Ok(()); // nobody else comes here
    };
    let elf = programs(read, talk)?;
    let job = Job {
        args,
        talk,
        only: args.hart.map(HartId),
    };
    let mut outputs: Vec<TraceFile> = Vec::new();
    let done = if let Some(compress) = args.container.get() {
        let file = TraceFile::create(&args.output.output, files.iter().copied())?;
        let parameters = Parameters {
            config: config.as_ref().clone(),
            isa: read.isa().map(|isa| isa.to_string()),
        };
        let done = job.pack(input, &parameters, compress, &file)?;
        outputs.push(file);
        done
    } else {
        let (harts, names) = job.names(&args.output.output)?;
        for name in names {
            outputs.push(TraceFile::create(&name, files.iter().copied())?);
        }
        job.strip(input, &harts, &outputs)?
    };
    job.judge(&done)?;
    let names: Vec<String> = outputs
        .iter()
        .map(|file| file.path().display().to_string())
        .collect();
    for file in outputs {
        file.finish(&read.config, &settings, &elf)?;
    }
    talk.summary(&format!(
        "{}: {} of trace",
        names.join(", "),
        count(done.bytes, "byte")
    ));
    Ok(())
}

/// The programs that the sidecar names, as far as they are there.
fn programs(read: &Settings, talk: &Talk) -> Result<Vec<Elf>, Failure> {
    if read.program() == Named::Nowhere {
        return Ok(Vec::new());
    }
    match read.load(talk) {
        Ok(program) => Ok(program.elf),
        Err(Failure::Diagnostic(diagnostic))
            if read.program() == Named::InFile && diagnostic.code == Code::CannotOpen =>
        {
            talk.warning(&diagnostic);
            Ok(Vec::new())
        }
        Err(failure) => Err(failure),
    }
}

/// What was copied.
#[derive(Default)]
struct Copied {
    bytes: u64,
    harts: Vec<HartId>,
    lost: u64,
    first: Option<Problem>,
}

struct Job<'a> {
    args: &'a Convert,
    talk: &'a Talk,
    /// The hart that was asked for.
    only: Option<HartId>,
}

impl Job<'_> {
    /// Whose streams there are, and the file of each. Only a file can be looked
    /// at before it is read.
    fn names(&self, output: &Path) -> Result<(Vec<HartId>, Vec<PathBuf>), Failure> {
        let path = &self.args.trace;
        if self.only.is_some() || is_stdin(path) || output.as_os_str() == "-" {
            return Ok((Vec::new(), vec![output.to_path_buf()]));
        }
        let mut harts = Vec::new();
        let mut streams = Streams::default();
        Input::open(path)?.chunks(|chunk| {
            streams.feed(chunk, |piece| {
                if let StreamPiece::Bytes(hart, _) = piece
                    && !harts.contains(&hart)
                {
                    harts.push(hart);
                }
                Ok::<(), Failure>(())
            })
        })?;
        if harts.len() < 2 {
            return Ok((Vec::new(), vec![output.to_path_buf()]));
        }
        let name = |hart: &HartId| {
            let mut name = output.as_os_str().to_owned();
            name.push(format!(".{}", hart.0));
            PathBuf::from(name)
        };
        let names = harts.iter().map(name).collect();
        Ok((harts, names))
    }

    /// The streams, each into its file; without a list, into one.
    fn strip(
        &self,
        input: Input,
        harts: &[HartId],
        outputs: &[TraceFile],
    ) -> Result<Copied, Failure> {
        self.copy(input, harts.is_empty(), |hart, bytes| {
            let at = harts.iter().position(|id| *id == hart).unwrap_or(0);
            match outputs.get(at) {
                Some(file) => {
                    file.sink.put(bytes);
                    file.sink.check()
                }
                None => Ok(()),
            }
        })
    }

    /// The streams, all into a container.
    fn pack(
        &self,
        input: Input,
        parameters: &Parameters,
        compress: bool,
        file: &TraceFile,
    ) -> Result<Copied, Failure> {
        let put = |bytes: &[u8]| file.sink.put(bytes);
        let mut writer =
            ContainerWriter::new(parameters, compress, put).map_err(|error| too_long(&error))?;
        let mut harts: Vec<(HartId, Groups)> = Vec::new();
        let copied = self.copy(input, false, |hart, bytes| {
            // A frame begins with a group.
            if let Some(groups) = groups_of(&mut harts, hart, &parameters.config) {
                groups.feed(bytes, |_, bytes, _| {
                    writer.put(hart, bytes);
                    Ok::<(), Failure>(())
                })?;
            }
            file.sink.check()
        })?;
        for (hart, groups) in &mut harts {
            groups.finish(|_, bytes, _| {
                writer.put(*hart, bytes);
                Ok::<(), Failure>(())
            })?;
        }
        writer.finish();
        file.sink.check()?;
        Ok(copied)
    }

    fn copy(
        &self,
        input: Input,
        single: bool,
        mut put: impl FnMut(HartId, &[u8]) -> Result<(), Failure>,
    ) -> Result<Copied, Failure> {
        let mut copied = Copied::default();
        let mut progress = Progress::new(self.talk, input.size());
        let mut streams = Streams::default();
        let mut take = |piece: StreamPiece<'_>| match piece {
            StreamPiece::Lost(problem) => {
                copied.lost += 1;
                copied.first.get_or_insert(problem);
                Ok(())
            }
            StreamPiece::Bytes(hart, bytes) => {
                if !copied.harts.contains(&hart) {
                    copied.harts.push(hart);
                    let clash = single && self.only.is_none() && copied.harts.len() > 1;
                    which_hart(&self.args.trace, &copied.harts, clash)?;
                }
                if self.only.is_some_and(|only| only != hart) {
                    return Ok(());
                }
                copied.bytes += bytes.len() as u64;
                put(hart, bytes)
            }
        };
        input.chunks(|chunk| {
            progress.advance(chunk.len());
            streams.feed(chunk, &mut take)
        })?;
        streams.finish(take)?;
        Ok(copied)
    }

    /// What is missing is an error with `--strict`.
    fn judge(&self, copied: &Copied) -> Result<(), Failure> {
        let path = &self.args.trace;
        let missing = self.only.is_some_and(|only| !copied.harts.contains(&only));
        which_hart(path, &copied.harts, missing)?;
        let Some(problem) = copied.first else {
            return Ok(());
        };
        let name = input::name(path);
        let (code, text) = (problem.fault.code(), problem.fault.text());
        let message = format!("{name} has {} in its container", count(copied.lost, "gap"));
        let diagnostic = Diagnostic::new(Code::Gaps, message)
            .note(format!(
                "the first, at byte {:#x}: {code}: {text}",
                problem.at
            ))
            .note("groups are missing there in the plain stream, and nothing in it tells");
        match self.args.strict {
            true => Err(diagnostic.help("leave out --strict to let it pass").into()),
            false => {
                self.talk.warning(&diagnostic);
                Ok(())
            }
        }
    }
}

fn groups_of<'h>(
    harts: &'h mut Vec<(HartId, Groups)>,
    hart: HartId,
    config: &Config,
) -> Option<&'h mut Groups> {
    if !harts.iter().any(|(id, _)| *id == hart) {
        harts.push((hart, Groups::new(config.clone())));
    }
    let found = harts.iter_mut().find(|(id, _)| *id == hart);
    found.map(|(_, groups)| groups)
}
