//! `hartrace convert` from tandem to tandem: moves groups, unchanged, into a
//! container and out of it.

use crate::args::Convert;
use crate::failure::Failure;
use crate::logs::which_hart;
use crate::session::Session;
use crate::trace_file::TraceFile;
use hartrace_capture::input::{self, Input, is_stdin};
use hartrace_capture::trace::{Copied, Known, Repack, harts_in};
use hartrace_flow::HartId;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::words::count;
use std::path::{Path, PathBuf};

pub(super) fn run(args: &Convert, session: &Session<'_>, input: Input) -> Result<(), Failure> {
    let trace = session.trace(input, Known::default())?;
    // The programs that the sidecar names, as far as they are there.
    let elf = session.program()?.map(|program| program.elf);
    let elf = elf.unwrap_or_default();
    let job = Job { args, session };
    let only = args.hart.map(HartId);
    let mut outputs: Vec<TraceFile> = Vec::new();
    let copied = if let Some(compress) = args.container.get() {
        let file = TraceFile::create(&args.output.output, session.inputs(), args.strict)?;
        let put = Box::new(|bytes: &[u8]| file.sink.put(bytes));
        let copied = match Repack::container(&trace.settings, session.isa(), compress, only, put)? {
            Some(repack) => job.copy(trace.input, repack, std::slice::from_ref(&file))?,
            None => return Ok(()), // only tandem traces come here
        };
        outputs.push(file);
        copied
    } else {
        let (harts, names) = job.names(&args.output.output)?;
        for name in names {
            outputs.push(TraceFile::create(&name, session.inputs(), args.strict)?);
        }
        let repack = Repack::plain(only, harts.is_empty(), |hart, bytes| {
            let at = harts.iter().position(|id| *id == hart).unwrap_or(0);
            if let Some(file) = outputs.get(at) {
                file.sink.put(bytes);
            }
        });
        job.copy(trace.input, repack, &outputs)?
    };
    job.judge(&copied)?;
    let names: Vec<String> = outputs
        .iter()
        .map(|file| file.path().display().to_string())
        .collect();
    for file in outputs {
        file.finish(&session.config, &trace.settings, &elf)?;
    }
    session.talk.summary(&format!(
        "{}: {} of trace",
        names.join(", "),
        count(copied.bytes, "byte")
    ));
    Ok(())
}

struct Job<'a> {
    args: &'a Convert,
    session: &'a Session<'a>,
}

impl Job<'_> {
    /// Whose streams there are, and the file of each. Only a file can be looked
    /// at before it is read.
    fn names(&self, output: &Path) -> Result<(Vec<HartId>, Vec<PathBuf>), Failure> {
        let path = &self.args.trace;
        let one = || (Vec::new(), vec![output.to_path_buf()]);
        if self.args.hart.is_some() || is_stdin(path) || output.as_os_str() == "-" {
            return Ok(one());
        }
        let harts = harts_in(Input::open(path)?)?;
        if harts.len() < 2 {
            return Ok(one());
        }
        let name = |hart: &HartId| {
            let mut name = output.as_os_str().to_owned();
            name.push(format!(".{}", hart.0));
            PathBuf::from(name)
        };
        let names = harts.iter().map(name).collect();
        Ok((harts, names))
    }

    fn copy(
        &self,
        input: Input,
        mut repack: Repack<'_>,
        outputs: &[TraceFile],
    ) -> Result<Copied, Failure> {
        let mut progress = self.session.progress(&input);
        let check = || outputs.iter().try_for_each(|file| file.sink.check());
        input.chunks(|chunk| {
            progress.advance(chunk.len());
            repack.feed(chunk);
            which_hart(&self.args.trace, &repack.copied.harts, repack.clashes())?;
            check()
        })?;
        let copied = repack.finish();
        check()?;
        Ok(copied)
    }

    /// What is missing is an error with `--strict`.
    fn judge(&self, copied: &Copied) -> Result<(), Failure> {
        let path = &self.args.trace;
        let only = self.args.hart.map(HartId);
        let missing = only.is_some_and(|only| !copied.harts.contains(&only));
        which_hart(path, &copied.harts, missing)?;
        let Some((at, fault)) = copied.first else {
            return Ok(());
        };
        let name = input::name(path);
        let (code, text) = (fault.code(), fault.text());
        let message = format!("{name}: the container has {}", count(copied.lost, "gap"));
        let diagnostic = Diagnostic::new(Code::Gaps, message)
            .note(format!("the first, at byte {at:#x}: {code}: {text}"))
            .note("groups are missing there, and the plain stream cannot mark the place");
        match self.args.strict {
            true => Err(diagnostic
                .help("leave out --strict to continue anyway")
                .into()),
            false => {
                self.session.talk.warning(&diagnostic);
                Ok(())
            }
        }
    }
}
