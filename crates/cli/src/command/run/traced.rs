//! The traces of a run.

use super::files;
use super::guest::Guest;
use crate::args::Run;
use crate::failure::Failure;
use crate::files::inputs;
use crate::settings::{Elf, add_boot_code};
use crate::sink::Sink;
use crate::talk::Talk;
use crate::trace_file::{self, TraceFile};
use hartrace_capture::code_history::{CodeFile, path_for};
use hartrace_capture::config::Config;
use hartrace_capture::shard::cores;
use hartrace_capture::trace::{Format, Settings, TraceWriter, WriteOptions, Written};
use hartrace_flow::{Image, SpaceId};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::program::bad_image;
use hartrace_print::diagnostic::trace::{difference, unchecked};
use hartrace_print::summary::{code_written, trace_written};
use std::path::{Path, PathBuf};

/// The traces that are asked for.
pub(super) struct Traced {
    files: Vec<(TraceFile, Settings)>,
    /// For the data packets of an E-Trace.
    data: Option<TraceFile>,
    /// The program, for a check and to find out which code was not in it.
    image: Image,
    check: bool,
    isa: Isa,
    /// What is in memory before the first step.
    load: Vec<(u64, Vec<u8>)>,
    /// A container, and whether it is compressed.
    container: Option<bool>,
}

impl Traced {
    pub(super) fn new(
        args: &Run,
        config: &Config,
        guest: &Guest,
        isa: Isa,
        talk: &Talk,
    ) -> Result<Traced, Failure> {
        let (elf, raw) = (guest.elf.as_slice(), guest.raw.as_slice());
        let one = |(format, path): (Format, &Path)| {
            let settings = format.settings(config, isa.xlen())?;
            trace_file::fit(&settings, config, isa, (elf, raw), talk)?;
            let read: Vec<_> = files(args, config).chain(inputs(config)).collect();
            let file = TraceFile::create(path, read, args.check)?;
            let file = file.carried(config, &settings)?;
            Ok((file, settings))
        };
        let mut image = Image::new();
        for elf in elf {
            image
                .add_elf(SpaceId::FIRST, &elf.bytes, elf.file.base, Some(isa))
                .map_err(|error| bad_image(&elf.file.file, &error))?;
        }
        for raw in raw {
            image.add_raw(SpaceId::FIRST, raw.file.base, &raw.bytes, isa);
        }
        add_boot_code(&mut image, config, isa);
        let load = match args.load {
            true => guest.contents(),
            false => Vec::new(),
        };
        let data = args.data().map(|path| {
            let settings = Format::Etrace.settings(config, isa.xlen())?;
            let read: Vec<_> = files(args, config).chain(inputs(config)).collect();
            TraceFile::create(path, read, args.check)?.carried(config, &settings)
        });
        Ok(Traced {
            data: data.last().transpose()?,
            files: args.streams().map(one).collect::<Result<_, Failure>>()?,
            image,
            check: args.check,
            isa,
            load,
            container: args.container.get(),
        })
    }

    pub(super) fn sinks(&self) -> impl Iterator<Item = &Sink> {
        let data = self.data.iter().map(|file| &file.sink);
        self.files.iter().map(|(file, _)| &file.sink).chain(data)
    }

    /// An encoder for each.
    pub(super) fn writers<'w>(
        &'w self,
        config: &Config,
        isa: Isa,
        elf: &[Elf],
    ) -> Result<Vec<TraceWriter<'w>>, Failure> {
        let one = |(file, settings): &'w (TraceFile, Settings)| {
            let options = WriteOptions {
                check: self.check.then_some(&self.image),
                beside: cores() > 1,
                code: file.takes_code() && self.data.is_none(),
                load: self.load.clone(),
                container: self.container,
                ..WriteOptions::default()
            };
            let data = self.data.as_ref().map(|file| &file.sink);
            let data = data.filter(|_| settings.format() == Format::Etrace);
            let sinks = (&file.sink, data);
            let encoder = file.encoder(settings);
            trace_file::writer(config, &encoder, (isa, elf), sinks, options)
        };
        self.files.iter().map(one).collect()
    }

    /// Gives the traces and their sidecars their names. A reader that went
    /// away has what it wanted.
    pub(super) fn finish(
        self,
        config: &Config,
        elf: &[Elf],
        written: Vec<Written>,
    ) -> Result<Finished, Failure> {
        let mut traces = Vec::new();
        let mut data = self.data;
        for ((mut file, mut settings), mut done) in self.files.into_iter().zip(written) {
            settings.add_absent(&done.absent);
            let history = done.code.take().filter(|code| !code.is_in(&self.image));
            let isa = self.isa;
            let code = history.map(|history| CodeFile { isa, history });
            let code = code.map(|code| file.write_code(&code)).transpose()?;
            if settings.format() == Format::Etrace
                && let Some(data) = data.take()
            {
                settings.separate_data();
                data.finish(config, &settings, elf)?;
            }
            traces.push(Trace {
                path: file.path().to_path_buf(),
                format: settings.format(),
                leaves_out: settings.leaves_out(),
                code,
                done,
            });
            match file.finish(config, &settings, elf) {
                Ok(()) | Err(Failure::ClosedPipe) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(Finished(traces))
    }
}

/// Traces that are in their files.
pub(super) struct Finished(Vec<Trace>);

struct Trace {
    path: PathBuf,
    format: Format,
    done: Written,
    leaves_out: Option<&'static str>,
    /// Bytes of its code history.
    code: Option<u64>,
}

impl Finished {
    /// How large they became, and whether they say what was done.
    pub(super) fn report(&self, talk: &Talk) -> Result<(), Failure> {
        // All are reported, and one is enough to fail.
        let mut result = Ok(());
        for one in &self.0 {
            let (done, leaves_out) = (&one.done, one.leaves_out);
            let (path, code) = (&one.path, one.code);
            talk.summary(&trace_written(path, one.format, done, 0));
            match (code, &done.check) {
                (Some(_), Some(Err(found))) => talk.warning(&unchecked(path, found)),
                _ => {
                    let found = difference(done, leaves_out);
                    result = result.and(found.map_or(Ok(()), |found| Err(found.into())));
                }
            }
            if let Some(bytes) = code {
                talk.summary(&code_written(&path_for(path), bytes));
            }
        }
        result
    }
}
