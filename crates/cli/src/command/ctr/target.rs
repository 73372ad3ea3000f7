//! The output of a report; a dump also gets a sidecar, as in a run.

use crate::args::{Ctr, CtrFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::settings::Program;
use crate::sink::Sink;
use crate::trace_file::TraceFile;
use hartrace_capture::records::{Version, sidecar};
use hartrace_isa::{Isa, Xlen};
use std::path::Path;

pub(super) enum Target {
    Report(Sink),
    Dump(Box<TraceFile>),
}

impl Target {
    pub(super) fn create<'a>(
        args: &Ctr,
        inputs: impl IntoIterator<Item = &'a Path> + Clone,
    ) -> Result<Target, Failure> {
        let path = &args.output.output;
        Ok(match args.format {
            CtrFormat::Dump => {
                Target::Dump(Box::new(TraceFile::create(path, inputs, args.strict)?))
            }
            _ => {
                let output = create(path, inputs)?.outlive_reader(args.strict);
                Target::Report(Sink::new(output))
            }
        })
    }

    pub(super) fn sink(&self) -> &Sink {
        match self {
            Target::Report(sink) => sink,
            Target::Dump(file) => &file.sink,
        }
    }

    /// Gives the file its name. The program is that of the first file.
    pub(super) fn finish(self, program: &Program, source: Source) -> Result<(), Failure> {
        let file = match self {
            Target::Report(sink) => return sink.finish(),
            Target::Dump(file) => file,
        };
        let config = &program.config;
        let settings = config.ctr.clone();
        let settings = match source.made {
            true => settings.completed(program.isa.map_or(Xlen::Rv64, Isa::xlen))?,
            false => settings,
        };
        let version = source.version.unwrap_or_default();
        let path = file.path();
        let sidecar = if source.one_program {
            let elf = program.elf.iter();
            let elf = elf.map(|elf| (&elf.file, &*elf.bytes));
            sidecar(path, version, settings, &config.program, elf)
        } else {
            sidecar(path, version, settings, &Default::default(), [])
        };
        file.close(config, sidecar)
    }
}

/// What snapshots are of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The version of the first.
    pub(super) version: Option<Version>,
    /// They are made as `[ctr]` says, of a trace or a log.
    pub(super) made: bool,
    /// All files are of the same program.
    pub(super) one_program: bool,
}
