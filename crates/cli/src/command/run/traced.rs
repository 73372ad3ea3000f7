//! The traces of a run.

use super::super::inputs;
use super::super::log_write::Sink;
use super::super::trace_write::{self, TraceFile, Writer};
use super::files;
use crate::args::Run;
use crate::diagnostic::{Failure, bad_image};
use crate::settings::{Elf, add_boot_code};
use crate::talk::Talk;
use hartrace_capture::config::Config;
use hartrace_capture::trace::Written;
use hartrace_flow::{Image, SpaceId};
use hartrace_isa::Isa;
use hartrace_ntrace as ntrace;
use std::path::PathBuf;

/// The traces that are asked for.
pub(super) struct Traced {
    files: Vec<TraceFile>,
    config: ntrace::Config,
    /// Only for a check.
    image: Option<Image>,
}

impl Traced {
    pub(super) fn new(args: &Run, config: &Config, elf: &Elf, isa: Isa) -> Result<Traced, Failure> {
        let one = |spec: &crate::args::TraceSpec| {
            let read: Vec<_> = files(args, config).chain(inputs(config)).collect();
            TraceFile::create(&spec.file, read)
        };
        // What nobody traces may be wrong.
        let settings = match args.trace.is_empty() {
            true => ntrace::Config::new(ntrace::Version::default(), isa.xlen()),
            false => config.ntrace.settings(isa.xlen())?,
        };
        let image = match args.check {
            false => None,
            true => {
                let mut image = Image::new();
                image
                    .add_elf(SpaceId::FIRST, &elf.bytes, elf.file.base, Some(isa))
                    .map_err(|error| bad_image(&elf.file.file, &error))?;
                add_boot_code(&mut image, config, isa);
                Some(image)
            }
        };
        Ok(Traced {
            files: args.trace.iter().map(one).collect::<Result<_, _>>()?,
            config: settings,
            image,
        })
    }

    pub(super) fn sinks(&self) -> impl Iterator<Item = &Sink> {
        self.files.iter().map(|file| &file.sink)
    }

    /// An encoder for each.
    pub(super) fn writers(&self, config: &Config, isa: Isa) -> Result<Vec<Writer<'_>>, Failure> {
        let image = self.image.as_ref();
        let one = |sink| trace_write::writer(config, &self.config, isa, image, sink);
        self.sinks().map(one).collect()
    }

    /// Gives the traces and their sidecars their names. A reader that went
    /// away has what it wanted.
    pub(super) fn finish(
        self,
        config: &Config,
        elf: &Elf,
        written: Vec<Written>,
    ) -> Result<Finished, Failure> {
        let mut traces = Vec::new();
        for (file, written) in self.files.into_iter().zip(written) {
            traces.push((file.path().to_path_buf(), written));
            match file.finish(config, &self.config, std::slice::from_ref(elf)) {
                Ok(()) | Err(Failure::ClosedPipe) => {}
                Err(failure) => return Err(failure),
            }
        }
        let leaves_out = trace_write::leaves_out(config, &self.config);
        Ok(Finished { traces, leaves_out })
    }
}

/// Traces that are in their files.
pub(super) struct Finished {
    traces: Vec<(PathBuf, Written)>,
    leaves_out: Option<&'static str>,
}

impl Finished {
    /// How large they became, and whether they say what was done.
    pub(super) fn report(&self, talk: &Talk) -> Result<(), Failure> {
        // All are told, and one is enough to fail.
        let mut result = Ok(());
        for (path, written) in &self.traces {
            let one = trace_write::report(path, written, self.leaves_out, talk);
            result = result.and(one);
        }
        result
    }
}
