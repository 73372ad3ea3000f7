//! A whole protocol on the shells of `encode` and `decode`: its settings, its
//! messages, an encoder and a decoder. The rest is the shells'.

#![allow(clippy::unwrap_used)] // in functions that tests share

use core::ops::ControlFlow;

use hartrace_flow::decode::{
    self, Ctx, Decoder, Framing, Phase, Protocol, Read, Track, TrackState,
};
use hartrace_flow::encode::{Counters, Encode, Encoder, Outlet, ProtocolConfig, Sink};
use hartrace_flow::filter::Filter;
use hartrace_flow::{
    Blocks, Check, Consumer, Context, Effects, Event, Gap, HartId, History, Image, Ingress, Insn,
    Mark, Mode, Observer, Port, PortConfig, Reason, Rules, SpaceId, Step, Stop, faults,
};
use hartrace_isa::{Isa, Itype};

faults! {
    //! What is wrong with a toy trace.

    /// Two bytes that are no message.
    NoMessage = "TY0101", "bytes that are no message";
    /// The bytes end inside a message.
    Truncated = "TY0102", "the trace ends inside a message";
    /// Messages before the first address.
    NotSynchronised = "TY0103", "no address yet";
    /// The messages and the code do not agree.
    WrongWay = "TY0301", "the code leads elsewhere";
}

/// An address is sent after so many branches.
#[derive(Clone, Debug, PartialEq)]
struct Config {
    sync: u32,
}

impl ProtocolConfig for Config {
    type Error = &'static str;

    fn validate(&self) -> Result<(), &'static str> {
        (self.sync > 0).then_some(()).ok_or("sync is at least 1")
    }
}

/// A message is two bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Message {
    /// The hart is at this address, which is even and below 0x200.
    Start(u64),
    /// The next branch, and whether it was taken.
    Branch(bool),
    /// Tracing ends so many halfwords after that.
    End(u8),
}

impl Message {
    fn bytes(self) -> [u8; 2] {
        match self {
            Message::Start(address) => [0xa0, (address / 2) as u8],
            Message::Branch(taken) => [0xb0, taken.into()],
            Message::End(halfwords) => [0xc0, halfwords],
        }
    }

    fn read(bytes: &[u8]) -> Result<Message, Fault> {
        match *bytes {
            [0xa0, half] => Ok(Message::Start(u64::from(half) * 2)),
            [0xb0, taken @ 0..2] => Ok(Message::Branch(taken == 1)),
            [0xc0, halfwords] => Ok(Message::End(halfwords)),
            [_, _] => Err(Fault::NoMessage),
            _ => Err(Fault::Truncated),
        }
    }
}

/// The encoder of one hart.
#[derive(Debug)]
struct Hart {
    outlet: Outlet,
    halfwords: u32,
    until_sync: u32,
}

impl Hart {
    fn send(&mut self, message: Message, sink: &mut impl Sink) {
        self.outlet.send(&message.bytes(), 0, 0, sink);
    }
}

impl Encode for Hart {
    type Config = Config;

    fn new(_: &Config, _: Filter, _: HartId) -> Hart {
        Hart {
            outlet: Outlet::new(None, 0),
            halfwords: 0,
            until_sync: 0,
        }
    }

    fn block<S: Sink>(&mut self, config: &Config, block: &Ingress, sink: &mut S) {
        if self.until_sync == 0 {
            self.send(Message::Start(block.iaddr), sink);
            self.until_sync = config.sync;
        }
        self.halfwords += block.iretire;
        if let Itype::Taken | Itype::NotTaken = block.itype {
            self.send(Message::Branch(block.itype == Itype::Taken), sink);
            self.halfwords = 0;
            self.until_sync -= 1;
        }
    }

    fn finish<S: Sink>(&mut self, _: &Config, sink: &mut S) {
        self.send(Message::End(self.halfwords as u8), sink);
    }

    fn counters(&self) -> Counters {
        self.outlet.counters()
    }
}

/// Two bytes each, fewer at the end of a stream that was cut.
#[derive(Clone, Debug, Default, PartialEq)]
struct Framer {
    at: u64,
    held: Vec<u8>,
}

impl Framing for Framer {
    type Piece<'p> = Vec<u8>;

    fn position(&self) -> u64 {
        self.at
    }

    fn at(self, at: u64) -> Framer {
        Framer { at, ..self }
    }

    fn is_inside(&self) -> bool {
        !self.held.is_empty()
    }

    fn pass(&mut self, len: usize) {
        self.at += len as u64;
    }

    fn next_piece<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<(u64, Vec<u8>)> {
        while let Some(byte) = bytes.split_off_first() {
            self.at += 1;
            self.held.push(*byte);
            if self.held.len() == 2 {
                return self.finish();
            }
        }
        None
    }

    fn finish(&mut self) -> Option<(u64, Vec<u8>)> {
        let piece = core::mem::take(&mut self.held);
        (!piece.is_empty()).then(|| (self.at - piece.len() as u64, piece))
    }

    fn length(piece: &Vec<u8>) -> usize {
        piece.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Toy;

impl Protocol for Toy {
    type Config = Config;
    type Settings = Config;
    type Framer = Framer;
    type Message<'m> = Message;
    type Glance = ();
    type Source = Source;

    fn settings(config: &Config) -> Config {
        config.clone()
    }

    fn rules(_: &Config) -> Rules {
        Rules::default()
    }

    fn read(_: &Config, piece: &Vec<u8>) -> Read<Message> {
        match Message::read(piece) {
            Ok(message) => Read::Message(0, message),
            Err(fault) => Read::Damage(None, fault.reason(0)),
        }
    }

    fn boundary(_: &Self::Config, bytes: &[u8], from: usize) -> Option<usize> {
        Some(from.next_multiple_of(2)).filter(|&at| at <= bytes.len())
    }
}

#[derive(Debug)]
struct Source {
    track: Track,
    anchored: bool,
}

impl decode::Source<Toy> for Source {
    type State = TrackState;

    fn new(_: &Config, number: u16) -> Source {
        Source {
            track: Track::new(HartId(number.into()), None),
            anchored: false,
        }
    }

    fn track(&mut self) -> &mut Track {
        &mut self.track
    }

    fn message<C: Consumer>(
        &mut self,
        message: &Message,
        cx: &mut Ctx<'_, '_, Config, C>,
    ) -> Result<(), Reason> {
        let walk = &mut self.track.walk;
        let stop = match (*message, &mut self.track.phase) {
            (Message::Start(address), phase) => {
                let pc = walk.pc(cx.blocks);
                if *phase == Phase::Running && pc != address {
                    self.lose(Fault::WrongWay.reason(pc), cx.place.at, 0);
                }
                self.finish(cx);
                self.track.walk.restart(cx.blocks, address);
                self.track.phase = Phase::Running;
                self.anchored = true;
                Stop::Arrived
            }
            (Message::Branch(taken), Phase::Running) => {
                let mut outcome = History::new(taken.into(), 1);
                walk.use_up(cx.blocks, &mut outcome, cx.out).0
            }
            (Message::End(halfwords), phase @ Phase::Running) => {
                *phase = Phase::Stopped;
                let mut left = halfwords.into();
                walk.advance(cx.blocks, &mut History::default(), &mut left, cx.out)
            }
            (_, Phase::Lost(gap)) => {
                gap.bytes += cx.place.len;
                return Ok(());
            }
            _ => return Err(Fault::NotSynchronised.reason(0)),
        };
        if stop != Stop::Arrived {
            return Err(Fault::WrongWay.reason(self.track.walk.pc(cx.blocks)));
        }
        self.track.confirm();
        if self.track.phase == Phase::Stopped {
            self.track.event(&Event::Mark(Mark::Off), cx.out);
        }
        Ok(())
    }

    fn is_placed(&mut self, _: &Message) -> bool {
        false
    }

    fn lose(&mut self, reason: Reason, at: u64, bytes: u64) {
        self.track.lose(reason, at, bytes);
    }

    fn finish<C: Consumer>(&mut self, cx: &mut Ctx<'_, '_, Config, C>) {
        if let Phase::Lost(gap) = self.track.phase {
            self.track.event(&Event::Gap(gap), cx.out);
            self.track.phase = Phase::Start;
        }
    }

    fn state(&self, blocks: &Blocks<'_>) -> TrackState {
        self.track.state(blocks)
    }

    fn set_state(&mut self, state: &TrackState, blocks: &mut Blocks<'_>) {
        self.track.set_state(state, blocks);
    }

    fn is_anchored(&self) -> bool {
        self.anchored
    }
}

/// loop: c.nop; c.bnez a0, loop; c.nop
fn image() -> Image {
    let code = [0x01, 0x00, 0x7d, 0xfd, 0x01, 0x00];
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x100, &code, Isa::RV64GC);
    image
}

/// Ten times round the loop and out of it.
fn steps() -> Vec<Step> {
    let insn = |pc, bits, next| {
        Step::Insn(Insn {
            pc,
            bits,
            next,
            mode: Mode::M,
            context: Context(0),
            time: 0,
        })
    };
    let mut steps = Vec::new();
    for round in 0..10 {
        let next = if round < 9 { 0x100 } else { 0x104 };
        steps.push(insn(0x100, 0x0001, 0x102));
        steps.push(insn(0x102, 0xfd7d, next));
    }
    steps.push(insn(0x104, 0x0001, 0x106));
    steps
}

fn encode() -> Vec<u8> {
    let encoder = Encoder::<Hart, _>::new(Config { sync: 4 }, Vec::new()).unwrap();
    let mut port = Port::new(PortConfig::new(Isa::RV64GC), encoder);
    for step in steps() {
        port.step(HartId(0), &step, &Effects::default());
    }
    port.finish();
    port.into_sink().into_sink()
}

/// Compares events with the steps, and keeps the gaps.
struct Found(Check, Vec<Gap>);

impl Consumer for Found {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Gap(gap) = event {
            self.1.push(*gap);
        }
        // It asks for a pause where they differ; there is more to see.
        let _ = self.0.event(hart, event);
        ControlFlow::Continue(())
    }
}

fn decode(bytes: &[u8]) -> Found {
    let mut found = Found(Check::new(), Vec::new());
    for step in steps() {
        found.0.step(HartId(0), &step, &Effects::default());
    }
    found.0.finish();
    let image = image();
    let mut decoder = Decoder::<Toy>::new(Config { sync: 4 }, &image).unwrap();
    // In chunks, and each by another decoder.
    for chunk in bytes.chunks(5) {
        let mut next = decoder.another();
        next.resume(&decoder.seam());
        decoder = next;
        decoder.feed(chunk, &mut found);
    }
    decoder.finish(&mut found);
    found
}

#[test]
fn events_are_the_steps() {
    let bytes = encode();
    assert_eq!(bytes.len(), 2 * (3 + 10 + 1));
    let Found(check, gaps) = decode(&bytes);
    assert_eq!((check.result().unwrap().insns, gaps), (21, vec![]));
}

#[test]
fn a_damaged_byte_is_a_gap() {
    let mut bytes = encode();
    // The second of the four branches before the next address.
    bytes[4] ^= 0x40;
    let Found(check, gaps) = decode(&bytes);
    let gap = Gap {
        at: 4,
        reason: Fault::NoMessage.reason(0),
        bytes: 6,
        unconfirmed: 0,
    };
    assert_eq!(gaps, [gap]);
    assert!(check.result().is_err());
}

#[test]
fn settings_are_checked() {
    assert!(Encoder::<Hart, _>::new(Config { sync: 0 }, Vec::new()).is_err());
}
