//! E-Trace data trace: every access of the programs, encoded and decoded, in every
//! setting; what damage costs; how fast it is.

pub mod corruption;
pub mod speed;
pub mod threads;

use std::ops::ControlFlow;

use hartrace_etrace::{
    Compression, Config, DataConfig, Decoder, Encoder, Resync, ResyncUnit, Version,
};
use hartrace_flow::encode::Sink;
use hartrace_flow::{
    Check, Checked, Consumer, DataAccess, DataPort, Effects, Event, Gather, HartId, Inference,
    Observer, PlainAccesses, Port, PortConfig, Retirement, Run, Step, Tie, TiedRuns, Totals,
    Unreported, Wants,
};
use hartrace_isa::Isa;

use crate::generate::Random;
use crate::trace::{Recorded, programs};

/// Accesses that are compared without an argument.
const ACCESSES: u64 = 10_000_000;

/// Instructions of a program in one setting.
const STRETCH: u64 = 500_000;

/// A number as a choice of settings, digit by digit.
struct Digits(u64);

impl Digits {
    /// The one that the next digit chooses.
    fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        let index = (self.0 % N as u64) as usize;
        self.0 /= N as u64;
        #[allow(clippy::indexing_slicing)] // below N
        all[index]
    }
}

/// The settings with this number, from a matrix of all options.
#[must_use]
pub fn numbered(number: u64, isa: Isa) -> (Config, PortConfig) {
    let mut digits = Digits(number);
    let version = digits.one_of([Version::V2_0, Version::V1_1_1, Version::V2_05]);
    let xlen = isa.xlen();
    let mut data = DataConfig::new(version, xlen);
    data.compression = digits.one_of([
        Compression::Dynamic,
        Compression::Xor,
        Compression::Differential,
    ]);
    (data.no_address, data.no_data) = digits.one_of([(false, false), (false, true), (true, false)]);
    data.split = digits.one_of([false, true]) && !data.no_address;
    data.full_data = digits.one_of([false, true]);
    data.full_address = digits.one_of([false, true]);
    data.xor_addresses = digits.one_of([false, true]);
    data.csrs = digits.one_of([true, false]);
    data.lrid_width = digits.one_of([4, 1, 8]);
    if digits.one_of([false, true]) && data.compression != Compression::Dynamic {
        data.diff_width = 1;
    }
    (data.csr_subtype_width, data.csr_diff_width) = digits.one_of([(3, 0), (2, 1)]);
    data.size_width = digits.one_of([2, 3]);
    data.mmacas = version.is_standard() && digits.one_of([false, true]);
    let retirement = digits.one_of([
        Retirement::Single,
        Retirement::Block(8),
        Retirement::Block(1000),
    ]);
    let config = Config {
        data: Some(data),
        resync: Resync {
            unit: digits.one_of([
                ResyncUnit::Packets,
                ResyncUnit::Halfwords,
                ResyncUnit::Cycles,
                ResyncUnit::Off,
            ]),
            max: 6,
            ..Resync::default()
        },
        sijump: digits.one_of([false, true]),
        ..Config::new(version, xlen)
    };
    let port = PortConfig {
        retirement,
        ..config.port(isa)
    };
    (config, port)
}

/// Settings differ in as many ways.
const SETTINGS: u64 = 3 * 3 * 3 * 2 * 2 * 2 * 2 * 2 * 3 * 2 * 2 * 2 * 2 * 3 * 4 * 2;

/// What leads from one number of a setting to the next: all come, spread out.
const STEP: u64 = 104_729;

/// What a trace with these settings does not report.
fn unreported(config: &Config, port: &PortConfig) -> Unreported {
    Unreported {
        traps: config.version.is_draft(),
        rounds: Some(Inference {
            isa: port.isa,
            rules: config.rules(),
            returns: false,
        }),
        data: config
            .data
            .map(|data| data.reported(config.version, config.xlen)),
        ..Unreported::default()
    }
}

/// Encodes steps, decodes what comes of them at once, and compares.
struct Loop<'i> {
    port: Port<Encoder<Vec<u8>>>,
    decoder: Decoder<'i>,
    tie: Tie<'i>,
    check: Check,
    /// Steps until the next look.
    left: u32,
    /// Bytes that were decoded.
    done: usize,
    /// Bytes of a chunk, another each time.
    chunk: usize,
}

impl<'i> Loop<'i> {
    fn new(program: &'i Recorded, config: &Config, port: PortConfig) -> Result<Loop<'i>, String> {
        let text = |e: hartrace_etrace::ConfigError| e.to_string();
        let encoder = Encoder::new(config.clone(), Vec::new()).map_err(text)?;
        Ok(Loop {
            port: Port::new(port, encoder),
            decoder: Decoder::new(config.clone(), &program.image).map_err(text)?,
            tie: config.tie(&program.image).ok_or("no data trace")?,
            check: Check::new().without(unreported(config, &port)),
            left: 0,
            done: 0,
            chunk: 1,
        })
    }

    fn look(&mut self) {
        let bytes = self.port.sink().sink();
        while self.done < bytes.len() {
            let end = (self.done + self.chunk).min(bytes.len());
            let mut part = bytes.get(self.done..end).unwrap_or_default();
            while !part.is_empty() {
                let used = self.decoder.feed(part, &mut self.tie.to(&mut self.check));
                part = part.get(used.max(1)..).unwrap_or_default();
            }
            self.done = end;
            self.chunk = self.chunk % 4099 + 7;
        }
    }

    /// What was compared, and the trace.
    fn finish(mut self) -> Result<(Checked, Vec<u8>), String> {
        self.port.finish();
        self.look();
        let mut tied = self.tie.to(&mut self.check);
        self.decoder.finish(&mut tied);
        tied.finish();
        let checked = self.check.result().map_err(|d| d.to_string())?;
        Ok((checked, self.port.into_sink().into_sink()))
    }
}

impl Observer for Loop<'_> {
    const WANTS: Wants = Wants::STEPS.with(Wants::ACCESSES).with(Wants::CSRS);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.check.step(hart, step, effects);
        self.port.step(hart, step, effects);
        self.left += 1;
        if self.left == 1024 {
            self.left = 0;
            self.look();
        }
    }
}

/// `etrace-data [ACCESSES] [SEED]`: all accesses of all programs come back, in every
/// setting; on several threads as on one.
///
/// # Errors
///
/// The first difference.
pub fn command(args: &[String]) -> Result<(), String> {
    let number = |i: usize, default: u64| match args.get(i) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number")),
    };
    let (wanted, seed) = (number(0, ACCESSES)?, number(1, 0)?);
    let programs = programs()?;
    let programs: Vec<Recorded> = programs
        .iter()
        .map(|path| Recorded::read(path))
        .collect::<Result<_, _>>()?;
    let (mut accesses, mut insns, mut bytes, mut settings) = (0, 0, 0, 0);
    let mut setting = seed;
    while accesses < wanted {
        for program in &programs {
            setting = (setting + STEP) % SETTINGS;
            let (checked, size) = compare(program, setting, STRETCH)?;
            accesses += checked.accesses;
            insns += checked.insns;
            bytes += size;
            settings += 1;
        }
        println!("{insns} instructions, {accesses} accesses, {settings} settings, {bytes} bytes");
    }
    Ok(())
}

/// Runs a program in a setting and compares.
fn compare(program: &Recorded, setting: u64, insns: u64) -> Result<(Checked, u64), String> {
    let (config, port) = numbered(setting, program.isa);
    let blame = |what: String| format!("{} in setting {setting}: {what}", program.name);
    let mut both = Loop::new(program, &config, port).map_err(blame)?;
    program.run(insns, &mut both, |both| both.check.difference().is_some())?;
    let (checked, bytes) = both.finish().map_err(blame)?;
    if config.data.is_some_and(|data| !data.split) {
        let mut random = Random::new(setting);
        threads::compare(&config, program, &bytes, &mut random).map_err(blame)?;
    }
    Ok((checked, bytes.len() as u64))
}

/// Counts instructions and accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Instructions.
    pub insns: u64,
    /// Accesses.
    pub accesses: u64,
    /// Their addresses and data are decoded too.
    pub values: bool,
}

impl Consumer for Count {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.insns += u64::from(run.insns),
            Event::Access(_) => self.accesses += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn runs(&mut self, _: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.insns += runs.iter().map(|run| u64::from(run.insns)).sum::<u64>();
        ControlFlow::Continue(())
    }

    #[inline]
    fn accesses(&mut self, _: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        self.accesses += accesses.len() as u64;
        ControlFlow::Continue(())
    }

    #[inline]
    fn plain_accesses(&mut self, _: HartId, accesses: PlainAccesses<'_>) -> ControlFlow<()> {
        self.accesses += accesses.len() as u64;
        ControlFlow::Continue(())
    }

    fn looks_at_values(&self) -> bool {
        self.values
    }

    fn only_counts(&self) -> bool {
        !self.values
    }

    #[inline]
    fn counted(&mut self, _: HartId, counted: Totals) -> ControlFlow<()> {
        self.insns += counted.insns;
        self.accesses += counted.accesses;
        ControlFlow::Continue(())
    }

    #[inline]
    fn tied_runs(&mut self, _: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        self.accesses += tied.accesses() as u64;
        self.insns += tied.insns();
        ControlFlow::Continue(())
    }
}

impl Gather for Count {}

/// Counts bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes(u64);

impl Sink for Bytes {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

/// Decodes a trace, with accesses assigned to instructions.
///
/// # Errors
///
/// Settings that do not make sense.
pub fn decode(
    config: &Config,
    program: &Recorded,
    bytes: &[u8],
    out: &mut impl Consumer,
) -> Result<(), String> {
    let mut decoder = Decoder::new(config.clone(), &program.image).map_err(|e| e.to_string())?;
    let mut tie = config.tie(&program.image).ok_or("no data trace")?;
    let mut tied = tie.to(out);
    decoder.feed(bytes, &mut tied);
    decoder.finish(&mut tied);
    tied.finish();
    Ok(())
}

/// Whether a port shows accesses.
#[must_use]
pub fn has_data(port: &PortConfig) -> bool {
    port.data != DataPort::None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A little of `etrace-data`: programs of both widths, settings of every kind.
    #[test]
    fn accesses_come_back() {
        for (i, name) in [
            "sort-rv64gc",
            "strings-rv32gc",
            "modes-rv64gc",
            "dense-rv32",
        ]
        .iter()
        .enumerate()
        {
            let Ok(program) = Recorded::named(name) else {
                continue;
            };
            for round in 0..6 {
                let setting = (STEP * (6 * i as u64 + round) + 17) % SETTINGS;
                let (checked, _) = compare(&program, setting, 3000).unwrap();
                assert!(checked.insns >= 2900, "{name}: {checked:?}");
            }
        }
    }

    #[test]
    fn every_setting_is_valid() {
        for number in 0..SETTINGS / 7 {
            let (config, port) = numbered(number * 7, Isa::RV64GC);
            assert_eq!(config.validate(), Ok(()));
            assert!(has_data(&port));
        }
    }
}
