//! The short way in and out: a trace with its program, opened by name and
//! decoded; the steps of a hart, written as a trace with its sidecar.
//!
//! Everything here is done with the parts in [`trace`](crate::trace),
//! [`program`](crate::program) and [`sidecar`]; use those
//! where you need more control.

use crate::code_history::{self, CodeFile};
use crate::config::{Config, Hart, LoadError, Machine, Setting, TransportSection};
use crate::input::{Input, InputError};
use crate::output::{Output, OutputError};
use crate::program::{ElfFile, Program, ProgramError, Remark, find_symbol};
use crate::sidecar;
use crate::trace::transport;
use crate::trace::{
    self, Decoded, Format, Known, Misfit, Refusal, Settings, SettingsError, Trace, TraceError,
    TraceWriter, Transport, TransportError, WriteError, WriteOptions, Written,
};
use hartrace_flow::erase::Dyn;
use hartrace_flow::{Consumer, Effects, HartId, Image, Observer, Step, Wants};
use hartrace_isa::Isa;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Why a recording cannot be opened, read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordingError {
    /// The sidecar or a configuration.
    Config(LoadError),
    /// The program.
    Program(ProgramError),
    /// A program is needed, and neither sidecar nor configuration names one.
    NoProgram,
    /// The file is not a trace.
    Refused(PathBuf, Refusal),
    /// The trace cannot be read.
    Trace(PathBuf, TraceError),
    /// The settings of an encoder contradict each other.
    Write(WriteError),
    /// The settings contradict the program.
    Misfit(Misfit),
    /// Neither the name nor the configuration says which format to write.
    NoFormat(PathBuf),
    /// The `[filter]` section needs more comparators than there are.
    Filter(String),
    /// The trace cannot be put into the transport of the `[transport]` section.
    Transport(TransportError),
    /// A file cannot be written.
    Output(OutputError),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Config(error) => error.fmt(f),
            RecordingError::Program(error) => error.fmt(f),
            RecordingError::NoProgram => f.write_str("no program is given"),
            RecordingError::Refused(path, refusal) => match refusal {
                Refusal::NotATrace(kind) | Refusal::Unreadable(kind, _) => {
                    write!(f, "{} is not a trace: {kind}", path.display())
                }
                Refusal::Pins => write!(
                    f,
                    "{}: a tandem trace does not come from pins",
                    path.display()
                ),
                Refusal::Transport(error) => write!(f, "{}: {error}", path.display()),
            },
            RecordingError::Trace(path, error) => write!(f, "{}: {error}", path.display()),
            RecordingError::Write(error) => write!(f, "the settings of the encoder: {error}"),
            RecordingError::Misfit(misfit) => write!(f, "{}: {}", misfit.message, misfit.help),
            RecordingError::NoFormat(path) => write!(
                f,
                "which format should {} have? name it .ntrace, .etrace or .tandem",
                path.display()
            ),
            RecordingError::Filter(error) => write!(f, "[filter]: {error}"),
            RecordingError::Transport(error) => write!(f, "[transport]: {error}"),
            RecordingError::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecordingError {}

impl From<LoadError> for RecordingError {
    fn from(error: LoadError) -> RecordingError {
        RecordingError::Config(error)
    }
}

impl From<ProgramError> for RecordingError {
    fn from(error: ProgramError) -> RecordingError {
        RecordingError::Program(error)
    }
}

impl From<OutputError> for RecordingError {
    fn from(error: OutputError) -> RecordingError {
        RecordingError::Output(error)
    }
}

impl From<TransportError> for RecordingError {
    fn from(error: TransportError) -> RecordingError {
        RecordingError::Transport(error)
    }
}

impl From<WriteError> for RecordingError {
    fn from(error: WriteError) -> RecordingError {
        RecordingError::Write(error)
    }
}

/// A trace of any format and the program it is of.
///
/// ```no_run
/// use hartrace_capture::Recording;
/// use hartrace_flow::{Consumer, Event, HartId};
/// use std::ops::ControlFlow;
///
/// struct Count(u64);
/// impl Consumer for Count {
///     fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
///         if let Event::Run(run) = event {
///             self.0 += u64::from(run.insns);
///         }
///         ControlFlow::Continue(())
///     }
/// }
///
/// let mut count = Count(0);
/// Recording::open("run.ntrace")?.decode(&mut count)?;
/// println!("{} instructions", count.0);
/// # Ok::<(), hartrace_capture::RecordingError>(())
/// ```
pub struct Recording {
    /// The trace and its settings; `guess` says what had to be guessed.
    pub trace: Trace,
    /// The program, with the settings in force.
    pub program: Program,
    /// The code that decoding follows.
    pub image: Image,
    /// What should be known about how the program was read.
    pub remarks: Vec<Remark>,
    path: PathBuf,
}

impl Recording {
    /// Opens a trace by its sidecar, which names the program. Settings without
    /// a sidecar are guessed from the trace; a tandem trace needs no program.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not a trace, and a program that is
    /// missing or not the one that was traced.
    pub fn open(path: impl AsRef<Path>) -> Result<Recording, RecordingError> {
        Recording::open_with(path, Config::default())
    }

    /// The same with settings that take precedence over the sidecar's: another
    /// place of the program, the settings of a trace without a sidecar.
    ///
    /// # Errors
    ///
    /// As [`Recording::open`].
    pub fn open_with(path: impl AsRef<Path>, over: Config) -> Result<Recording, RecordingError> {
        let path = path.as_ref();
        let found = sidecar::find(path)?;
        let below = found.clone().unwrap_or_default().over(Config::defaults());
        let mut remarks = Vec::new();
        let program = Program::load(over.over(below), &mut |remark| remarks.push(remark))?;
        if let Some(sidecar) = &found {
            program.check_against(sidecar)?;
        }
        let image = program.image()?;
        let failed = |error: TraceError| RecordingError::Trace(path.to_path_buf(), error);
        let input = Input::open(path).map_err(|error| failed(error.into()))?;
        let input = Trace::accept(input, &Transport::default(), &program.config)
            .map_err(|refusal| RecordingError::Refused(path.to_path_buf(), refusal))?;
        let known = Known {
            xlen: program.isa.map(|isa| isa.xlen()),
            image: image.as_ref(),
        };
        let trace = Trace::open(input, &program.config, known).map_err(failed)?;
        if let (None, Some(isa)) = (&trace.guess, program.isa) {
            let fit = trace.settings.fit_decoder(isa);
            fit.map_err(RecordingError::Misfit)?;
        }
        let (trace, _) = trace.read_table().map_err(|error| failed(error.into()))?;
        let (image, trace) = match image {
            Some(image) => (image, trace),
            None if trace.format().has_code() => {
                let isa = program.isa.unwrap_or(trace.settings.general_isa());
                trace.code(isa).map_err(|error| failed(error.into()))?
            }
            None => return Err(RecordingError::NoProgram),
        };
        Ok(Recording {
            trace,
            program,
            image,
            remarks,
            path: path.to_path_buf(),
        })
    }

    /// Decodes the whole trace into a consumer. Damage is part of the events.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn decode(self, out: &mut dyn Consumer) -> Result<Decoded, RecordingError> {
        let failed = |error: TraceError| RecordingError::Trace(self.path.clone(), error);
        let decoded = self.trace.decode(&self.image, None, out, |_, _| Ok(()));
        decoded.map_err(failed)
    }
}

/// Writes the steps of a hart as a trace, with its sidecar. An [`Observer`] for
/// a simulator to run with.
///
/// ```no_run
/// use hartrace_capture::Recorder;
/// use hartrace_capture::config::Config;
/// use hartrace_flow::Observer;
///
/// // The format by the ending; `[ntrace]` and the like of the settings apply.
/// let mut recorder = Recorder::create("run.etrace", "prog.elf", Config::default())?;
/// // A simulator runs with `&mut recorder` as its observer.
/// recorder.finish();
/// let written = recorder.close()?;
/// println!("{} instructions in {} bytes", written.instructions, written.bytes);
/// # Ok::<(), hartrace_capture::RecordingError>(())
/// ```
pub struct Recorder {
    writer: TraceWriter<'static>,
    settings: Settings,
    program: Program,
    output: Rc<RefCell<Kept>>,
    sidecar: Option<Output>,
    path: PathBuf,
    /// What the stream is put into.
    transport: Transport,
}

/// An output and the first error in writing to it.
struct Kept {
    output: Output,
    failed: Option<io::Error>,
    /// The whole stream, if there is a transport: it is put into it at the end.
    gathered: Option<Vec<u8>>,
}

impl Kept {
    fn put(&mut self, bytes: &[u8]) {
        match &mut self.gathered {
            Some(gathered) => gathered.extend_from_slice(bytes),
            None if self.failed.is_none() => self.failed = self.output.write_all(bytes).err(),
            None => {}
        }
    }
}

impl Recorder {
    /// A trace of the runs of an ELF program. The format is the one that
    /// `config` has a section of, or else that of the file name's ending.
    ///
    /// # Errors
    ///
    /// A program that cannot be read, settings that contradict each other, and
    /// a file that cannot be created.
    pub fn create(
        path: impl AsRef<Path>,
        elf: impl AsRef<Path>,
        config: Config,
    ) -> Result<Recorder, RecordingError> {
        let path = path.as_ref();
        let format = Format::said(&config).or_else(|| Format::from_extension(path));
        let format = format.ok_or_else(|| RecordingError::NoFormat(path.to_path_buf()))?;
        Recorder::create_as(path, format, elf, config)
    }

    /// The same in this format, whatever the configuration has sections of.
    ///
    /// # Errors
    ///
    /// As [`Recorder::create`].
    pub fn create_as(
        path: &Path,
        format: Format,
        elf: impl AsRef<Path>,
        config: Config,
    ) -> Result<Recorder, RecordingError> {
        let mut config = config.over(Config::defaults());
        if config.program.elf.is_none() {
            let file = ElfFile {
                file: elf.as_ref().to_path_buf(),
                base: None,
                identity: None,
            };
            config.program.elf = Some(Setting::default(vec![file]));
        }
        let program = Program::load(config, &mut |_| {})?;
        let isa = program.isa.unwrap_or(Isa::RV64GC);
        let config = &program.config;
        let settings = format
            .settings(config, isa.xlen())
            .map_err(|error: SettingsError| RecordingError::Write(error.into()))?;
        let port = settings.port(config.ingress.clone()).port(isa);
        let find = |name: &str| find_symbol(&program.elf, name);
        let filter = config.filter.config(isa.xlen(), &find);
        let filter = filter.map_err(|error| RecordingError::Filter(error.to_string()))?;
        let transport = config.transport.transport();
        transport::check(&transport, &settings)?;
        let output = Output::create(path)?;
        let sidecar = match output.is_file() {
            true => Some(Output::create(&sidecar::path_for(path))?),
            false => None,
        };
        let output = Rc::new(RefCell::new(Kept {
            output,
            failed: None,
            gathered: (transport != Transport::default()).then(Vec::new),
        }));
        let to = Rc::clone(&output);
        let put = Box::new(move |bytes: &[u8]| to.borrow_mut().put(bytes));
        let encoder = transport::encoder(&transport, &settings);
        // In a transport, the offsets of messages are not those that the encoder knows.
        let options = WriteOptions {
            code: sidecar.is_some() && transport == Transport::default(),
            ..WriteOptions::default()
        };
        let writer = TraceWriter::new(&encoder, port, &filter, options, put)?;
        Ok(Recorder {
            writer,
            settings,
            program,
            output,
            sidecar,
            path: path.to_path_buf(),
            transport,
        })
    }

    /// What the format of the trace needs to know of steps.
    #[must_use]
    pub fn wants(&self) -> Wants {
        self.writer.wants()
    }

    /// The observer of the format, which wants no more than that: a hart runs faster with it
    /// than with the recorder itself.
    pub fn observer(&mut self) -> &mut Dyn<'_> {
        self.writer.observer()
    }

    /// Gives trace and sidecar their names, after [`Observer::finish`]. Without
    /// this, no file appears.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn close(self) -> Result<Written, RecordingError> {
        let mut written = self.writer.done();
        let mut settings = self.settings;
        settings.add_absent(&written.absent);
        let Some(mut kept) = Rc::into_inner(self.output).map(RefCell::into_inner) else {
            return Ok(written); // the writer held the only other reference
        };
        let mut transport = self.transport;
        if let Some(stream) = kept.gathered.take() {
            let (bytes, carried) = transport::wrap(&transport, stream, &settings)?;
            kept.put(&bytes);
            transport = carried;
        }
        if let Some(error) = kept.failed {
            return Err(kept.output.failed(error).into());
        }
        if let Some(output) = self.sidecar {
            let elf = self.program.elf.iter();
            let elf = elf.map(|elf| (&elf.file, &*elf.bytes));
            let program = &self.program.config.program;
            let mut sidecar = trace::sidecar(&self.path, &settings, program, elf);
            sidecar.transport = TransportSection::of(&transport);
            let hart = &self.program.config.hart;
            match settings.format() {
                Format::Tandem => sidecar.hart = hart.for_replay(),
                // Its boot code is needed to read the trace.
                _ => sidecar.hart.machine = only_spike(hart),
            }
            let code = self.program.image()?;
            let code = written.code.take().zip(code);
            let code = code.filter(|(history, image)| !history.is_in(image));
            if let Some((history, _)) = code {
                let isa = self.program.isa.unwrap_or(Isa::RV64GC);
                let path = code_history::path_for(&self.path);
                let bytes = CodeFile { isa, history }.to_bytes();
                Output::create(&path)?.write_with(|out| out.write_all(&bytes))?;
                let name = path.file_name().map(PathBuf::from);
                sidecar.program.code = name.map(|name| Setting::default(vec![name]));
            }
            let text = sidecar.to_toml(false);
            output.write_with(|out| out.write_all(text.as_bytes()))?;
        }
        kept.output.finish()?;
        Ok(written)
    }
}

/// The machine, if it is Spike's.
fn only_spike(hart: &Hart) -> Option<Setting<Machine>> {
    let machine = hart.machine.clone();
    machine.filter(|machine| machine.value == Machine::Spike)
}

impl Observer for Recorder {
    const WANTS: Wants = Wants::ALL;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.writer.step(hart, step, effects);
    }

    fn finish(&mut self) {
        self.writer.finish();
    }
}

impl From<InputError> for RecordingError {
    fn from(error: InputError) -> RecordingError {
        RecordingError::Trace(error.path.clone(), error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_flow::{Event, Fetched, Insn, SpaceId};
    use hartrace_isa::Flow;
    use std::fs;
    use std::ops::ControlFlow;

    #[derive(Default)]
    struct Count(u64, u64);

    impl Consumer for Count {
        fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
            match event {
                Event::Run(run) => self.0 += u64::from(run.insns),
                Event::Gap(_) => self.1 += 1,
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }

    /// A trace is written in the transport of the configuration, and read by its sidecar.
    #[test]
    fn a_trace_in_a_transport() {
        let folder = std::env::temp_dir().join(format!("hartrace-recorder-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../programs/sort/sort-rv64gc.elf"
        );
        let image = Image::from_elf(&fs::read(program).unwrap()).unwrap();
        // The first instructions, as long as they follow each other in memory.
        let plain =
            |insn: &(u64, Fetched)| Flow::of_retired(insn.1.bits, insn.1.isa).is_sequential();
        let insns = image.insns(SpaceId::FIRST, 0x8000_0000, 8);
        let insns: Vec<_> = insns.take_while(plain).collect();
        assert!(!insns.is_empty());
        for (name, keys) in [
            ("plain", ""),
            ("ram", "[transport]\nram = \"0x1000:0x2000\""),
            ("pins", "[transport]\npib = 4"),
        ] {
            let path = folder.join(format!("{name}.etrace"));
            let config = Config::parse(keys, &path).unwrap();
            let mut recorder = Recorder::create(&path, program, config).unwrap();
            for (pc, fetched) in &insns {
                let step = Step::Insn(Insn {
                    pc: *pc,
                    bits: fetched.bits,
                    next: pc + u64::from(fetched.len),
                    ..Insn::default()
                });
                recorder.step(HartId(0), &step, &Effects::default());
            }
            recorder.finish();
            let written = recorder.close().unwrap();
            assert_eq!(written.instructions, insns.len() as u64, "{name}");
            let mut count = Count::default();
            Recording::open(&path).unwrap().decode(&mut count).unwrap();
            assert_eq!((count.0, count.1), (written.instructions, 0), "{name}");
        }
        let tandem = Config::parse("[transport]\npib = 4", &folder).unwrap();
        let refused = Recorder::create(folder.join("a.tandem"), program, tandem);
        assert!(matches!(refused, Err(RecordingError::Transport(_))));
        fs::remove_dir_all(&folder).unwrap();
    }
}
