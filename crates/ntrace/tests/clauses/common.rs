//! What the clause tests share: small programs, ways through them, and the
//! round trip from steps to bytes to events.

use hartrace_flow::decode::Framing as _;
use std::ops::ControlFlow;

use hartrace_flow::{
    Cause, Check, Checked, Consumer, Effects, Event, Gap, HartId, Image, Mark, Observer, Port,
    PortConfig, Run, Signal, SpaceId, Step, Trap, Warning,
};
use hartrace_isa::{Isa, ItypeTable, Xlen};
use hartrace_ntrace::{
    Body, Btype, Config, Decoder, Encoder, Evcode, Fault, Framer, Message, Piece, Sync, TraceMode,
    Version,
};

#[path = "../../../flow/tests/shared/paths.rs"]
mod paths;
pub(crate) use paths::*;

pub(crate) const VERSIONS: [Version; 2] = [Version::Rc7, Version::V1_0];

/// The program of 8.4.1.
pub(crate) fn three_runs() -> Image {
    use asm::*;
    image(
        Isa::RV64GC,
        &[
            (
                0x100,
                &[C_ADD, b(0xfe), ADD, b(0x1f6), C_ADD, ADD, C_EBREAK],
            ),
            (0x200, &[C_ADD, C_EBREAK]),
            (0x300, &[ADD, C_EBREAK]),
            (0x800, &[C_ADD, ADD, MRET]),
        ],
    )
}

/// The pcs of its three runs.
pub(crate) const THREE: [&[u64]; 3] = [
    &[0x100, 0x102, 0x200],
    &[0x100, 0x102, 0x106, 0x10a, 0x300],
    &[0x100, 0x102, 0x106, 0x10a, 0x10e, 0x110],
];

pub(crate) const EXCEPTION: Cause = Cause::Exception(None);
pub(crate) const INTERRUPT: Cause = Cause::Interrupt(None);

/// The instructions at these addresses, and the hart halts.
pub(crate) fn run_and_halt(pcs: &[u64]) -> Vec<Do> {
    let mut way = go(pcs);
    way.push(Do::Signal(Signal::Halted));
    way
}

pub(crate) fn port(config: &Config, isa: Isa) -> PortConfig {
    PortConfig {
        table: match config.version {
            Version::Rc7 => ItypeTable::NTraceRc7,
            Version::V1_0 => ItypeTable::NTrace10,
        },
        retires: config.retires,
        all_jumps: config.all_jumps,
        ..PortConfig::new(isa)
    }
}

pub(crate) fn encode_steps(config: &Config, isa: Isa, steps: &[(HartId, Step)]) -> Vec<u8> {
    encode_at(port(config, isa), config, steps)
}

/// The same behind another port.
pub(crate) fn encode_at(port: PortConfig, config: &Config, steps: &[(HartId, Step)]) -> Vec<u8> {
    let encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    let mut port = Port::new(port, encoder);
    for (hart, step) in steps {
        port.step(*hart, step, &Effects::default());
    }
    port.finish();
    port.into_sink().into_sink()
}

pub(crate) fn encode(config: &Config, image: &Image, way: &[Do]) -> Vec<u8> {
    let isa = image.isa().unwrap();
    encode_steps(config, isa, &steps(image, way))
}

/// Everything a decoder gives.
#[derive(Default)]
pub(crate) struct Events(pub(crate) Vec<(HartId, Event)>);

impl Consumer for Events {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.push((hart, *event));
        ControlFlow::Continue(())
    }
}

pub(crate) fn decode(config: &Config, image: &Image, bytes: &[u8]) -> Events {
    let mut events = Events::default();
    let mut decoder = Decoder::new(config.clone(), image).unwrap();
    assert_eq!(decoder.feed(bytes, &mut events), bytes.len());
    decoder.finish(&mut events);
    events
}

impl Events {
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.0.iter().filter_map(|(_, e)| match e {
            Event::Run(run) => Some(*run),
            _ => None,
        })
    }

    /// Address by address, of all harts.
    pub(crate) fn pcs(&self, image: &Image) -> Vec<u64> {
        self.pcs_in(image, SpaceId::FIRST)
    }

    pub(crate) fn pcs_in(&self, image: &Image, space: SpaceId) -> Vec<u64> {
        let mut pcs = Vec::new();
        for run in self.runs() {
            let mut pc = run.start;
            for _ in 0..run.insns {
                pcs.push(pc);
                pc = pc.wrapping_add(u64::from(image.fetch(space, pc).unwrap().len));
            }
            assert_eq!(pc, run.end);
        }
        pcs
    }

    pub(crate) fn gaps(&self) -> Vec<Gap> {
        let gaps = self.0.iter().filter_map(|(_, e)| match e {
            Event::Gap(gap) => Some(*gap),
            _ => None,
        });
        gaps.collect()
    }

    pub(crate) fn codes(&self) -> Vec<&'static str> {
        self.gaps().iter().map(|gap| gap.reason.code).collect()
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warnings = self.0.iter().filter_map(|(_, e)| match e {
            Event::Warning(warning) => Some(*warning),
            _ => None,
        });
        warnings.collect()
    }

    pub(crate) fn traps(&self) -> Vec<Trap> {
        let traps = self.0.iter().filter_map(|(_, e)| match e {
            Event::Trap(trap) => Some(*trap),
            _ => None,
        });
        traps.collect()
    }

    pub(crate) fn marks(&self) -> Vec<Mark> {
        let marks = self.0.iter().filter_map(|(_, e)| match e {
            Event::Mark(mark) => Some(*mark),
            _ => None,
        });
        marks.collect()
    }

    pub(crate) fn times(&self) -> Vec<u64> {
        let times = self.0.iter().filter_map(|(_, e)| match e {
            Event::Time(time) => Some(*time),
            _ => None,
        });
        times.collect()
    }

    /// Those of one hart.
    pub(crate) fn of(&self, hart: u32) -> Events {
        let own = self.0.iter().filter(|(h, _)| *h == HartId(hart));
        Events(own.copied().collect())
    }

    /// Everything fits.
    #[track_caller]
    pub(crate) fn whole(self) -> Events {
        assert_eq!(self.gaps(), []);
        self
    }
}

/// Encodes a way, decodes it and compares. Gives the bytes.
#[track_caller]
pub(crate) fn round_trip(config: &Config, image: &Image, way: &[Do]) -> Vec<u8> {
    let steps = steps(image, way);
    let bytes = encode_steps(config, image.isa().unwrap(), &steps);
    check(config, image, &steps, &bytes);
    bytes
}

/// Whether these bytes tell these steps.
#[track_caller]
pub(crate) fn check(
    config: &Config,
    image: &Image,
    steps: &[(HartId, Step)],
    bytes: &[u8],
) -> Checked {
    let mut check = Check::new();
    for (hart, step) in steps {
        check.step(*hart, step, &Effects::default());
    }
    let mut decoder = Decoder::new(config.clone(), image).unwrap();
    let mut at = 0;
    while at < bytes.len() && check.difference().is_none() {
        at += decoder.feed(&bytes[at..], &mut check);
    }
    decoder.finish(&mut check);
    match check.result() {
        Ok(checked) => checked,
        Err(difference) => panic!("{difference}\n{:#?}", bodies(config, bytes)),
    }
}

/// The messages in a stream.
pub(crate) fn messages<'b>(config: &Config, bytes: &'b [u8]) -> Vec<Message<'b>> {
    let layout = config.layout();
    let mut framer = Framer::new();
    let mut rest = bytes;
    let mut all = Vec::new();
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        if let Piece::Message(m) = piece {
            let at = at as usize;
            all.push(Message::read(&bytes[at..at + m.len()], &layout).unwrap());
        }
    }
    all
}

pub(crate) fn bodies<'b>(config: &Config, bytes: &'b [u8]) -> Vec<Body<'b>> {
    messages(config, bytes).iter().map(|m| m.body).collect()
}

/// The bytes of messages, without timestamps and from `SRC` 0.
pub(crate) fn stream(config: &Config, bodies: &[Body<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &body in bodies {
        Message::new(0, body).write(&config.layout(), &mut bytes);
    }
    bytes
}

/// The bytes of messages with timestamps.
pub(crate) fn stamped(config: &Config, bodies: &[(Body<'_>, Option<u64>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(body, tstamp) in bodies {
        let src = 0;
        Message { src, body, tstamp }.write(&config.layout(), &mut bytes);
    }
    bytes
}

pub(crate) fn htm(version: Version) -> Config {
    Config::new(version, Xlen::Rv64)
}

pub(crate) fn btm(version: Version) -> Config {
    Config {
        mode: TraceMode::Btm,
        ..htm(version)
    }
}

/// Both versions, both modes.
pub(crate) fn all_kinds() -> impl Iterator<Item = Config> {
    VERSIONS.into_iter().flat_map(|v| [htm(v), btm(v)])
}

pub(crate) fn sync(sync: Sync, icnt: u64, addr: u64) -> Body<'static> {
    let faddr = addr >> 1;
    Body::ProgTraceSync { sync, icnt, faddr }
}

pub(crate) fn start(addr: u64) -> Body<'static> {
    sync(Sync::DEBUG_EXIT, 0, addr)
}

pub(crate) fn direct(icnt: u64) -> Body<'static> {
    Body::DirectBranch { icnt }
}

/// A jump by U-ADDR, given as the two addresses.
pub(crate) fn jump(icnt: u64, reference: u64, to: u64) -> Body<'static> {
    indirect(Btype::Indirect, icnt, reference, to)
}

pub(crate) fn indirect(btype: Btype, icnt: u64, reference: u64, to: u64) -> Body<'static> {
    let uaddr = (reference ^ to) >> 1;
    Body::IndirectBranch { btype, icnt, uaddr }
}

pub(crate) fn hist_jump(icnt: u64, reference: u64, to: u64, hist: u64) -> Body<'static> {
    Body::IndirectBranchHist {
        btype: Btype::Indirect,
        icnt,
        uaddr: (reference ^ to) >> 1,
        hist,
    }
}

pub(crate) fn hist_sync(reason: Sync, icnt: u64, addr: u64, hist: u64) -> Body<'static> {
    Body::IndirectBranchHistSync {
        sync: reason,
        btype: Btype::Indirect,
        icnt,
        faddr: addr >> 1,
        hist,
    }
}

pub(crate) fn stop(evcode: Evcode, icnt: u64, hist: Option<u64>) -> Body<'static> {
    Body::ProgTraceCorrelation { evcode, icnt, hist }
}

/// The last message before debug mode, with `HIST` in HTM.
pub(crate) fn halt(config: &Config, icnt: u64, hist: u64) -> Body<'static> {
    let hist = (config.mode == TraceMode::Htm).then_some(hist);
    stop(Evcode::DEBUG, icnt, hist)
}

/// The last message of a trace that ends while it runs.
pub(crate) fn end(config: &Config, icnt: u64, hist: u64) -> Body<'static> {
    let hist = (config.mode == TraceMode::Htm).then_some(hist);
    stop(Evcode::DISABLED, icnt, hist)
}

pub(crate) fn full(icnt: u64) -> Body<'static> {
    Body::IcntFull { icnt }
}

pub(crate) fn hist_full(hist: u64) -> Body<'static> {
    Body::HistFull { hist }
}

/// Decodes messages that must not fit: one gap with this fault.
#[track_caller]
pub(crate) fn refused(config: &Config, image: &Image, bodies: &[Body<'_>], fault: Fault) {
    let events = decode(config, image, &stream(config, bodies));
    assert_eq!(events.codes(), [fault.code()], "{bodies:?}");
}

/// Decodes messages that must fit: these addresses.
#[track_caller]
pub(crate) fn gives(config: &Config, image: &Image, bodies: &[Body<'_>], pcs: &[u64]) {
    let events = decode(config, image, &stream(config, bodies));
    assert_eq!(events.gaps(), [], "{bodies:?}");
    assert_eq!(events.pcs(image), pcs, "{bodies:?}");
}
