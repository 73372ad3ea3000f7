//! Runs the cases of `proof/cases`: code, settings and trace bytes must decode
//! to the flow that the file expects, with the bytes cut in every way and on
//! two threads. `crates/cli/tests/cli/cases.rs` compares the dumps.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use hartrace_capture::config::Config;
use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::{Decoder, Format, Settings};
use hartrace_flow::{Cause, Consumer, Decode as _, Event, Exit, Gather, HartId, Image, SpaceId};
use hartrace_isa::Isa;
use hartrace_testkit::{Case, assert_any_cut, difference};

/// Events, a line each.
#[derive(Clone, Debug, Default, PartialEq)]
struct Flow(String);

impl Consumer for Flow {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if hart != HartId(0) {
            write!(self.0, "hart {}: ", hart.0).unwrap();
        }
        self.0 += &line(event);
        self.0.push('\n');
        ControlFlow::Continue(())
    }
}

impl Gather for Flow {}

fn line(event: &Event) -> String {
    let address = |a: Option<u64>| a.map_or("?".to_owned(), |a| format!("{a:#x}"));
    match event {
        Event::Run(run) => {
            let insns = match run.insns {
                1 => "1 insn".to_owned(),
                n => format!("{n} insns"),
            };
            let text = format!("run {:#x}..{:#x} {insns}", run.start, run.end);
            match run.exit {
                Exit::Stop => text,
                exit => format!("{text}, {} to {:#x}", words(exit), run.next),
            }
        }
        Event::Trap(trap) => {
            let code = |c: Option<u32>| c.map_or("?".to_owned(), |c| c.to_string());
            let cause = match trap.cause {
                Cause::Exception(c) => format!("exception {}", code(c)),
                Cause::Interrupt(c) => format!("interrupt {}", code(c)),
                Cause::Unknown => "unknown".to_owned(),
            };
            let tval = trap
                .tval
                .map_or(String::new(), |t| format!(", tval {t:#x}"));
            let (epc, handler) = (address(trap.epc), address(trap.handler));
            format!("trap {cause} at {epc}, handler {handler}{tval}")
        }
        Event::Context(owner) => {
            let mode = owner.mode.map_or(String::new(), |m| format!(" mode {m:?}"));
            let context = owner.context;
            let context = context.map_or(String::new(), |c| format!(" context {:#x}", c.0));
            format!("owner{mode}{context}")
        }
        Event::Code(space) => format!("code in space {}", space.index()),
        Event::Time(time) => format!("time {time}"),
        Event::Mark(mark) => format!("mark {}", format!("{mark:?}").to_lowercase()),
        Event::Gap(gap) => format!(
            "gap {} ({:#x}) at byte {}, {} bytes, {} unconfirmed: {}",
            gap.reason.code, gap.reason.value, gap.at, gap.bytes, gap.unconfirmed, gap.reason.text,
        ),
        Event::DataGap(gap) => format!(
            "data gap {} ({:#x}) at byte {}: {}",
            gap.reason.code, gap.reason.value, gap.at, gap.reason.text,
        ),
        Event::Warning(warning) => format!(
            "warning {} ({:#x}) at byte {}: {}",
            warning.reason.code, warning.reason.value, warning.at, warning.reason.text,
        ),
        Event::Unconfirmed(what) => {
            format!("{} unconfirmed, code at {:#x}", what.insns, what.address)
        }
        Event::Access(access) => {
            let a = &access.access;
            let data = a.data.map_or(String::new(), |d| format!(" = {d:#x}"));
            let kind = words(a.kind);
            let size = 1 << a.size;
            let insn = access.insn.map_or("none".to_owned(), |i| i.to_string());
            format!(
                "access by insn {insn}: {kind} {size} at {:#x}{data}",
                a.addr
            )
        }
    }
}

/// `NotTaken` as `not taken`.
fn words(name: impl std::fmt::Debug) -> String {
    let mut out = String::new();
    for letter in format!("{name:?}").chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// A case ready to be decoded.
struct Bench {
    settings: Settings,
    image: Image,
    trace: Vec<u8>,
}

impl Bench {
    fn new(case: &Case, format: Format) -> Bench {
        let config = Config::parse(case.section("config"), &case.path);
        let config = config.unwrap_or_else(|e| panic!("{}: {e:?}", case.path.display()));
        let isa = config.program.isa.as_ref();
        let isa = isa.map_or(Isa::RV64GC, |isa| Isa::parse(&isa.value).unwrap());
        let mut image = Image::new();
        for (base, bytes) in case.code() {
            image.add_raw(SpaceId::FIRST, base, &bytes, isa);
        }
        let config = config.over(Config::defaults());
        Bench {
            settings: format.settings(&config, isa.xlen()).unwrap(),
            image,
            trace: case.trace(),
        }
    }

    fn decoder(&self) -> Decoder<'_> {
        Decoder::new(&self.settings, &self.image).unwrap()
    }

    fn decode(&self, pieces: &[&[u8]]) -> Flow {
        let (mut decoder, mut flow) = (self.decoder(), Flow::default());
        for piece in pieces {
            assert_eq!(decoder.feed(piece, &mut flow), piece.len());
        }
        decoder.finish(&mut flow);
        flow
    }

    /// In pieces of at least so many bytes, on two threads.
    fn decode_sharded(&self, piece: usize) -> Flow {
        let all = Mutex::new(Flow::default());
        let sharding = Sharding { threads: 2, piece };
        sharding
            .decode(
                &self.trace,
                || self.decoder(),
                Flow::default,
                |part, _| {
                    all.lock().unwrap().0 += &std::mem::take(&mut part.0);
                    Ok(())
                },
            )
            .unwrap();
        all.into_inner().unwrap()
    }
}

fn check(format: Format) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut wrong = String::new();
    let cases = Case::all(&folder.join(format.name()));
    assert!(cases.len() >= 12, "{format}: {} cases", cases.len());
    for mut case in cases {
        let bench = Bench::new(&case, format);
        let flow = assert_any_cut(&bench.trace, |pieces| bench.decode(pieces));
        // A tandem trace is decoded in one piece.
        let pieces: &[usize] = match format {
            Format::Tandem => &[],
            _ => &[1, 5, 16, 64],
        };
        for &piece in pieces {
            let sharded = bench.decode_sharded(piece);
            let changes = difference(&flow.0, &sharded.0);
            let path = case.path.display();
            assert_eq!(sharded, flow, "{path}: pieces of {piece}\n{changes}");
        }
        if let Err(changes) = case.expect("flow", &flow.0) {
            wrong += &changes;
            wrong.push('\n');
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn ntrace() {
    check(Format::Ntrace);
}

#[test]
fn etrace() {
    check(Format::Etrace);
}

#[test]
fn tandem() {
    check(Format::Tandem);
}
