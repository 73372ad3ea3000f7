//! A boot that is traced: what is decoded from the trace and its code history is what the
//! harts did, instruction for instruction.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use hartrace_capture::code_history::CodeFile;
use hartrace_capture::config::{Config, Setting};
use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::{Decoder, Format, Settings, TraceWriter, WriteOptions};
use hartrace_flow::erase::Dyn;
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Consumer, Decode as _, Effects, Event, Gather, HartId, Image, Observer, Run, Step, Straights,
    Wants,
};
use hartrace_isa::{Isa, Xlen};

/// Runs that a thread keeps until it is their turn.
const KEPT: usize = 1 << 20;

/// A trace, the code that ran, and where the harts went.
pub(super) struct Traced {
    settings: Settings,
    bytes: Vec<u8>,
    code: CodeFile,
    paths: Paths,
}

/// Where each hart went: every jump with what came before it, as one number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Paths(Vec<(HartId, Way)>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    /// Where it would go on without a jump.
    at: u64,
    insns: u64,
    jumps: u64,
    sum: u64,
}

impl Paths {
    /// So many instructions one after the other, from one address to another.
    fn pass(&mut self, id: HartId, from: u64, to: u64, insns: u64) {
        let known = self.0.iter().position(|(hart, _)| *hart == id);
        let known = known.unwrap_or_else(|| {
            self.0.push((id, Way::default()));
            self.0.len() - 1
        });
        let Some((_, way)) = self.0.get_mut(known) else {
            return;
        };
        if from != way.at {
            way.jumps += 1;
            for value in [way.at, from, way.insns] {
                way.sum = (way.sum ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                way.sum ^= way.sum >> 29;
            }
        }
        way.at = to;
        way.insns += insns;
    }

    /// In the order of the harts.
    fn sorted(mut self) -> Paths {
        self.0.sort_unstable_by_key(|(hart, _)| *hart);
        self
    }
}

impl Observer for Paths {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        if let Step::Insn(insn) = step {
            self.pass(hart, insn.pc, insn.end(), 1);
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        for piece in code.list {
            if let Some(last) = code.insns(piece).last() {
                let end = piece.pc.wrapping_add(last.end.into());
                self.pass(hart, piece.pc, end, piece.count.into());
            }
        }
    }
}

/// What was decoded of a part of a trace.
#[derive(Default)]
struct Part {
    runs: Vec<(HartId, Run)>,
    gaps: u64,
}

impl Consumer for Part {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.runs.push((hart, *run)),
            Event::Gap(_) => self.gaps += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Gather for Part {
    fn is_full(&self) -> bool {
        self.runs.len() >= KEPT
    }
}

/// Runs something with a writer of such a trace as its observer.
pub(super) fn trace<T>(
    text: &str,
    harts: u32,
    run: impl FnOnce(&mut Dyn<'_>) -> Result<T, String>,
) -> Result<(T, Traced), String> {
    let config = Config::parse(text, Path::new("proof.toml")).map_err(|e| format!("{e:?}"))?;
    let mut config = config.over(Config::defaults());
    config.hart.harts = Some(Setting::default(harts));
    config.make_room_for_harts();
    let format = match text.contains("[etrace]") {
        true => Format::Etrace,
        false => Format::Ntrace,
    };
    let settings = format.settings(&config, Xlen::Rv64);
    let settings = settings.map_err(|e| format!("{e:?}"))?;
    let isa = Isa::RV64GC;
    let port = settings.port(config.ingress.clone()).port(isa);
    let mut bytes = Vec::new();
    let put = Box::new(|part: &[u8]| bytes.extend_from_slice(part));
    let options = WriteOptions {
        code: true,
        ..WriteOptions::default()
    };
    let filter = FilterConfig::default();
    let writer = TraceWriter::new(&settings, port, &filter, options, put);
    let mut writer = writer.map_err(|e| format!("{e:?}"))?;
    let mut paths = Paths::default();
    let done = run(&mut (&mut writer, &mut paths))?;
    writer.finish();
    let history = writer.done().code.ok_or("no code was recorded")?;
    let traced = Traced {
        settings,
        bytes,
        code: CodeFile { isa, history },
        paths: paths.sorted(),
    };
    Ok((done, traced))
}

impl Traced {
    /// Decodes the trace on so many threads, with its code as it would be in a file.
    pub(super) fn check(&self, threads: usize) -> Result<(), String> {
        let file = self.code.to_bytes();
        let code = CodeFile::read(&file).map_err(|e| format!("{e:?}"))?;
        let mut image = Image::new();
        code.history.add_to(&mut image, code.isa);
        let decoder = Decoder::new(&self.settings, &image).map_err(|e| format!("{e:?}"))?;
        let (mut paths, mut gaps) = (Paths::default(), 0);
        let begin = Instant::now();
        let give = |part: &mut Part, _| {
            for (hart, run) in part.runs.drain(..) {
                paths.pass(hart, run.start, run.end, run.insns.into());
            }
            gaps += std::mem::take(&mut part.gaps);
            Ok::<(), io::Error>(())
        };
        let sharding = Sharding::new(threads);
        let decoded = sharding.decode(&self.bytes, || decoder.another(), Part::default, give);
        decoded.map_err(|e| e.to_string())?;
        let (decoded, paths) = (paths.0.len(), paths.sorted());
        let insns: u64 = paths.0.iter().map(|(_, way)| way.insns).sum();
        println!(
            "    {threads} threads: {insns} instructions of {decoded} harts in {:.1} s, {gaps} gaps; \
             trace {} bytes, code {} bytes",
            begin.elapsed().as_secs_f64(),
            self.bytes.len(),
            file.len()
        );
        match gaps == 0 && paths == self.paths {
            true => Ok(()),
            false => Err(format!(
                "decoded is not what ran, with {gaps} gaps:\n{paths:x?}\n{:x?}",
                self.paths
            )),
        }
    }
}
