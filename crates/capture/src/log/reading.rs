//! How a log is read: by the settings, the program and its first bytes.

use super::{LogError, LogOptions, LogReader, first_pc, has_modes, ingress_layout, spike_isa};
use crate::config::{Config, Machine, Origin, Setting};
use crate::detect::{HEAD, Kind};
use crate::input::{Input, InputError};
use crate::program::{Program, add_boot_code};
use crate::wave;
use crate::wave::{MapError, Plan};
use hartrace_flow::{Image, SpaceId, boot};
use hartrace_isa::{Isa, Xlen};
use hartrace_logs::{Iretire, LogFormat};
use hartrace_wave::WaveFormat;
use std::fmt;
use std::sync::Arc;

/// Something about a log that neither the settings nor the program say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogGuess {
    /// The instruction set that is assumed.
    Isa(Isa),
    /// `iretire` counts halfwords.
    Halfwords,
}

impl fmt::Display for LogGuess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogGuess::Isa(isa) => write!(f, "no instruction set is given; assuming {isa}"),
            LogGuess::Halfwords => f.write_str(
                "rows retire more than one instruction; assuming that iretire counts halfwords",
            ),
        }
    }
}

impl<'a> LogOptions<'a> {
    /// What the settings, the program and the first bytes of a log say about
    /// reading it. `guessed` gets every guess.
    pub fn of(
        kind: Kind,
        head: &[u8],
        program: &Program,
        image: Option<&'a Image>,
        guessed: &mut dyn FnMut(LogGuess),
    ) -> LogOptions<'a> {
        let wave = plan_of(kind, head, &program.config);
        let isa = program.isa.unwrap_or_else(|| match kind {
            Kind::SpikeLog => spike_isa(head),
            Kind::SpikeCsv => {
                guessed(LogGuess::Isa(Isa::RV64GC));
                Isa::RV64GC
            }
            Kind::Log(format) => match format.xlen(head) {
                Some(Xlen::Rv32) => Isa::RV32GC,
                Some(Xlen::Rv64) => Isa::RV64GC,
                None => {
                    guessed(LogGuess::Isa(Isa::RV64GC));
                    Isa::RV64GC
                }
            },
            Kind::Wave(_) => match &wave {
                Some(Ok(plan)) if plan.xlen == Xlen::Rv32 => Isa::RV32GC,
                _ => Isa::RV64GC,
            },
            _ => Isa::RV64GC,
        });
        LogOptions {
            wave,
            columns: program.config.log.columns.columns().and_then(Result::ok),
            image,
            isa: Some(isa),
            iretire: iretire(kind, head, program, guessed),
            plain_jumps: false,
        }
    }
}

/// What `iretire` counts: what the settings say, or else what the rows show.
fn iretire(
    kind: Kind,
    head: &[u8],
    program: &Program,
    guessed: &mut dyn FnMut(LogGuess),
) -> Iretire {
    let ingress = &program.config.ingress;
    let given = ingress.retirement.as_ref();
    let given = given.is_some_and(|s| s.origin != Origin::Default);
    if given || kind != Kind::IngressCsv {
        return ingress.iretire();
    }
    let (_, counted) = ingress_layout(head);
    if counted != ingress.iretire() {
        guessed(LogGuess::Halfwords);
    }
    counted
}

/// A log with everything needed to read it.
pub struct Reading<'a> {
    /// Its reader.
    pub reader: LogReader<'a>,
    /// The instruction set.
    pub isa: Isa,
    /// Whether the log has modes.
    pub modes: bool,
}

impl<'a> Reading<'a> {
    /// Finds out how a log is read. With `plain_jumps`, jumps that nothing
    /// explains stay jumps. `guessed` gets every guess.
    ///
    /// # Errors
    ///
    /// A kind that is no log, or one that cannot be read without an image;
    /// nothing is guessed about it.
    pub fn new(
        kind: Kind,
        head: &[u8],
        program: &Program,
        image: Option<&'a Image>,
        plain_jumps: bool,
        guessed: &mut dyn FnMut(LogGuess),
    ) -> Result<Reading<'a>, LogError> {
        let columns = program.config.log.columns.columns().transpose();
        let bare = LogOptions {
            image,
            columns: columns.map_err(LogError::Columns)?,
            ..LogOptions::default()
        };
        // Of a waveform nothing is guessed.
        if !matches!(kind, Kind::Wave(_)) {
            LogReader::new(kind, &bare)?;
        }
        let options = LogOptions {
            plain_jumps,
            ..LogOptions::of(kind, head, program, image, guessed)
        };
        Ok(Reading {
            reader: LogReader::new(kind, &options)?,
            isa: options.isa.unwrap_or(Isa::RV64GC),
            modes: matches!(kind, Kind::Wave(_)) || has_modes(kind, &options, head),
        })
    }
}

/// The kind of a file that looks like `kind`: the settings may choose the format of a log. What
/// is not a log is not read as one.
#[must_use]
pub fn chosen(kind: Kind, config: &Config) -> Kind {
    match &config.log.format {
        Some(format) if kind == Kind::Unknown || kind.is_log() => format.value,
        _ => kind,
    }
}

/// Where the port of a waveform is that starts with `head`; `None` for other kinds.
#[must_use]
pub fn plan_of(kind: Kind, head: &[u8], config: &Config) -> Option<Result<Arc<Plan>, MapError>> {
    match (kind, WaveFormat::detect(head)) {
        (Kind::Wave(port), Some(format)) => {
            let plan = Plan::new(format, head, port, &config.wave);
            Some(plan.map(Arc::new))
        }
        _ => None,
    }
}

/// As many of the first bytes of a log of this kind as say how it is read.
///
/// # Errors
///
/// A failing read.
pub fn head(kind: Kind, input: &mut Input) -> Result<&[u8], InputError> {
    match kind {
        Kind::Wave(_) => wave::head(input),
        _ => input.peek(HEAD),
    }
}

/// A log may start in Spike's boot code, which is in no program: then it was
/// Spike's machine, and the image gets that code.
pub fn recognise_boot(kind: Kind, head: &[u8], program: &mut Program, image: Option<&mut Image>) {
    let known = |image: &Image| image.fetch(SpaceId::FIRST, boot::ROM).is_some();
    // QEMU has other code there.
    if kind == Kind::Log(LogFormat::QemuBlocks) {
        return;
    }
    if first_pc(kind, head) != Some(boot::ROM) || image.as_deref().is_some_and(known) {
        return;
    }
    let config = &mut program.config;
    config.hart.machine = Some(Setting::default(Machine::Spike));
    if let Some(image) = image {
        add_boot_code(image, config, program.isa.unwrap_or(Isa::RV64GC));
    }
}
