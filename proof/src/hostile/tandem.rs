//! The tandem trace protocol: items, streams of groups, and containers.

use std::ops::ControlFlow;

use hartrace_flow::{Consumer, Event, HartId};
use hartrace_isa::Xlen;
use hartrace_tandem::container::{
    self, FrameReader, MAX_PLAIN, Method, NextFrame, Parameters, write_end, write_start,
    write_stored,
};
use hartrace_tandem::{
    Config, Decoder, EaddrWidth, Flen, Group, Item, MAX_ITEM, Mlen, Next, Nibbles, Operation,
    PcForm, PcStyle, Piece, Pieces, Problem, Reader, Register, Request, Response, Shadow,
    StoreData, Tally, explain,
};

use super::{Input, ensure};

/// Any parameters and dialects.
fn config(input: &mut Input<'_>) -> Config {
    let (xlen, mlen) = match input.below(3) {
        0 => (Xlen::Rv64, Mlen::M64),
        1 => (Xlen::Rv32, Mlen::M32),
        _ => (Xlen::Rv32, Mlen::M34),
    };
    let choices = input.byte();
    let bit = |n: u8| choices >> n & 1 != 0;
    let mut config = Config {
        xlen,
        mlen,
        flen: match input.below(3) {
            0 => Flen::F64,
            1 => Flen::F32,
            _ => Flen::None,
        },
        lenient_pc_identifier: bit(0),
        max_items: 64 + u32::from(input.byte()),
        ..Config::default()
    };
    if bit(1) {
        config.eaddr = EaddrWidth::Xlen;
    }
    if bit(2) {
        config.nibbles = Nibbles::High;
    }
    if bit(3) {
        config.pc = PcForm::Both;
        config.style.pc = PcStyle::Full;
    }
    if bit(4) {
        config.store_data = StoreData::Operand;
    }
    config.absent.insn = bit(5);
    config
}

/// Any bytes as items, one from every place: what is read is written back and
/// explained; what is cut is not read, nor does anything after it matter.
pub(super) fn item(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let config = config(&mut input);
    let stream = input.rest().get(..4096).unwrap_or(input.rest());
    let mut request = None;
    for at in 0..stream.len() {
        let rest = stream.get(at..).unwrap_or_default();
        let read = Item::read(rest, &config, request.as_ref());
        let Ok(Some((item, len))) = read else {
            continue;
        };
        ensure(len <= MAX_ITEM && len <= rest.len(), || {
            format!("{item:?} {len}")
        })?;
        let sent = rest.get(..len).unwrap_or_default();
        let mut again = Vec::new();
        item.write(&config, &mut again);
        let printed = config.lenient_pc_identifier && sent.get(1) == Some(&16);
        ensure(again == sent || printed && again.len() == len, || {
            format!("{sent:x?}, written {again:x?}")
        })?;
        for cut in 0..len {
            let cut = sent.get(..cut).unwrap_or_default();
            let read = Item::read(cut, &config, request.as_ref());
            ensure(read == Ok(None), || format!("{cut:x?} is {read:?}"))?;
        }
        let mut longer = sent.to_vec();
        longer.resize(len + MAX_ITEM, 0xff);
        let read = Item::read(&longer, &config, request.as_ref());
        ensure(read == Ok(Some((item, len))), || {
            format!("{read:?}, not {item:?}")
        })?;
        let bits: u32 = explain(&item, &config).iter().map(|f| f.bits).sum();
        ensure(bits as usize == len * 8, || {
            format!("{item:?}: {bits} bits")
        })?;
        if let Item::Request(new) = item {
            request = Some(new);
        }
    }
    Ok(())
}

/// What a reader gave.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Group(Group),
    Problem(Problem),
    Resumed(u64),
}

/// Everything in chunks.
fn read(config: &Config, stream: &[u8], chunk: usize) -> Result<Vec<Told>, String> {
    let mut reader = Reader::new(config.clone());
    let mut all = Vec::new();
    let mut take = |reader: &Reader, next: Next| match next {
        Next::Group => all.push(Told::Group(reader.group().clone())),
        Next::Problem(problem) => all.push(Told::Problem(problem)),
        Next::Resumed(bytes) => all.push(Told::Resumed(bytes)),
        Next::More => {}
    };
    for mut rest in stream.chunks(chunk) {
        loop {
            let next = reader.next(&mut rest);
            take(&reader, next);
            if next == Next::More {
                break;
            }
        }
        ensure(rest.is_empty(), || "bytes left".into())?;
    }
    loop {
        let next = reader.finish();
        take(&reader, next);
        if next == Next::More {
            break;
        }
    }
    ensure(reader.offset() == stream.len() as u64, || {
        format!("at {} of {}", reader.offset(), stream.len())
    })?;
    Ok(all)
}

/// Sums up events.
#[derive(Default, PartialEq, Eq)]
struct Sum {
    text: u64,
    events: u64,
    gap_bytes: u64,
    pause: bool,
}

impl Consumer for Sum {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        self.events += 1;
        if let Event::Gap(gap) = event {
            self.gap_bytes += gap.bytes;
        }
        for byte in format!("{event:?}").bytes() {
            self.text = (self.text.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x0100_0193);
        }
        match self.pause {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn decode(config: &Config, stream: &[u8], chunk: usize, pause: bool) -> Result<(u64, u64), String> {
    let mut decoder = Decoder::new(config.clone(), HartId(0)).map_err(|error| error.to_string())?;
    let mut sum = Sum {
        pause,
        ..Sum::default()
    };
    for mut rest in stream.chunks(chunk) {
        while !rest.is_empty() {
            let events = sum.events;
            let used = decoder.feed(rest, &mut sum);
            ensure(used > 0 || sum.events > events, || "no progress".into())?;
            rest = rest.get(used..).unwrap_or_default();
        }
    }
    decoder.finish(&mut sum);
    ensure(decoder.position() == stream.len() as u64, || {
        format!("at {} of {}", decoder.position(), stream.len())
    })?;
    ensure(sum.gap_bytes <= stream.len() as u64, || {
        format!("{} bytes in gaps of {}", sum.gap_bytes, stream.len())
    })?;
    Ok((sum.text, sum.events))
}

/// Any bytes as a stream: the same groups, problems and events in any chunks
/// and with pauses; every byte is in one piece; the shadow state takes all
/// groups.
pub(super) fn stream(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let config = config(&mut input);
    let chunk = 1 + usize::from(input.byte());
    let stream = input.rest();
    let whole = read(&config, stream, stream.len().max(1))?;
    let again = read(&config, stream, chunk)?;
    ensure(whole == again, || {
        format!("{whole:x?}, in chunks {again:x?}")
    })?;
    ensure(whole.len() <= stream.len() + 1, || "too many".into())?;

    let events = decode(&config, stream, stream.len().max(1), false)?;
    for pause in [false, true] {
        let again = decode(&config, stream, chunk, pause)?;
        ensure(events == again, || format!("events in chunks of {chunk}"))?;
    }
    let (mut at, mut groups, mut tally) = (0, 0, Tally::default());
    for piece in Pieces::new(stream, &config) {
        tally.piece(&piece);
        match piece {
            Piece::Item(_, offset, len) => {
                ensure(offset == at, || format!("item at {offset}, not {at}"))?;
                at += len as u64;
            }
            Piece::Bad(offset, len) => {
                ensure(offset == at, || format!("bad at {offset}, not {at}"))?;
                at += len;
            }
            Piece::Group(_, _, offset, len) => {
                ensure(offset + len == at, || format!("group at {offset}"))?;
                groups += 1;
            }
            Piece::Problem(_) => {}
        }
    }
    ensure(at == stream.len() as u64 && tally.bytes() == at, || {
        format!("pieces of {at} bytes")
    })?;
    let told = whole.iter().filter(|t| matches!(t, Told::Group(_))).count();
    ensure(told == groups, || format!("{groups} groups of {told}"))?;
    let mut shadow = Shadow::new(&config);
    for told in &whole {
        match told {
            // What it cannot know is said, and the rest is taken.
            Told::Group(group) => {
                let _ = shadow.apply(group, &mut |_| {});
            }
            _ => shadow.forget(),
        }
    }
    Ok(())
}

/// What a reader of frames gave.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Framed {
    Start(Box<Parameters>),
    Frame(container::Frame, Vec<u8>),
    Problem(Problem),
}

fn read_frames(file: &[u8], chunk: usize) -> Result<Vec<Framed>, String> {
    let mut reader = FrameReader::new();
    let mut all = Vec::new();
    let mut take = |reader: &FrameReader, next: NextFrame| {
        all.push(match next {
            NextFrame::Start(parameters) => Framed::Start(parameters),
            NextFrame::Frame(frame) => Framed::Frame(frame, reader.payload().to_vec()),
            NextFrame::Problem(problem) => Framed::Problem(problem),
            NextFrame::More | NextFrame::End => return false,
        });
        true
    };
    for mut rest in file.chunks(chunk) {
        loop {
            let next = reader.next(&mut rest);
            if !take(&reader, next) {
                break;
            }
        }
        ensure(rest.is_empty(), || "bytes left".into())?;
    }
    loop {
        let next = reader.finish();
        if !take(&reader, next) {
            break;
        }
    }
    ensure(reader.offset() == file.len() as u64, || {
        format!("at {} of {}", reader.offset(), file.len())
    })?;
    Ok(all)
}

/// Any bytes as a container, and as the text of parameters; any bytes in a
/// container come back.
pub(super) fn frames(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let chunk = 1 + usize::from(input.byte());
    let file = input.rest();
    let whole = read_frames(file, file.len().max(1))?;
    let again = read_frames(file, chunk)?;
    ensure(whole == again, || {
        format!("{whole:x?}, in chunks {again:x?}")
    })?;
    for framed in &whole {
        match framed {
            Framed::Start(parameters) => round_trip(parameters)?,
            Framed::Frame(frame, payload) => {
                let fits = frame.plain as usize <= MAX_PLAIN && frame.payload <= frame.plain;
                ensure(fits && payload.len() == frame.payload as usize, || {
                    format!("{frame:?}")
                })?;
                if frame.method == Method::Stored {
                    frame.check(payload).map_err(|f| f.text().to_owned())?;
                }
            }
            Framed::Problem(problem) => {
                ensure(problem.at <= file.len() as u64, || format!("{problem:?}"))?;
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(file)
        && let Ok(parameters) = text.parse::<Parameters>()
    {
        round_trip(&parameters)?;
    }
    let mut made = Vec::new();
    write_start(&Parameters::default(), &mut made).map_err(|error| error.to_string())?;
    write_stored(HartId(1), file, &mut made);
    write_end(&mut made);
    let told = read_frames(&made, chunk)?;
    let plain: Vec<u8> = told
        .iter()
        .flat_map(|framed| match framed {
            Framed::Frame(_, payload) => payload.clone(),
            _ => Vec::new(),
        })
        .collect();
    let problems = told.iter().any(|f| matches!(f, Framed::Problem(_)));
    ensure(plain == file && !problems, || "lost in a container".into())
}

fn round_trip(parameters: &Parameters) -> Result<(), String> {
    let again = parameters.to_string().parse::<Parameters>();
    ensure(again.as_ref() == Ok(parameters), || {
        format!("{parameters:?}, again {again:?}")
    })
}

/// Choices of a seed.
fn choices(number: u8) -> Vec<u8> {
    vec![number, number.wrapping_mul(37), number / 3, 0]
}

/// A trace of groups with everything in them.
fn trace(config: &Config) -> Vec<u8> {
    let csr = |number, value| Item::Full(Register::csr(number), value);
    let load = Request {
        addr: 0x8000_0010,
        op: Operation::Load,
        size: 2,
        data: 0,
    };
    let answer = Response {
        op: Operation::Load,
        size: 2,
        failure: false,
        data: 5,
    };
    let pc = |pc| match config.pc {
        PcForm::New => Item::Pc(pc),
        PcForm::Both => Item::TwoPcs(0x8000_0000, pc),
    };
    let groups: [&[Item]; 9] = [
        &[Item::StateInit, pc(0x8000_0000), Item::Mode(3)],
        &[
            Item::IncrementPc,
            Item::Insn32(0x0062_81b3),
            Item::Full(Register::x(3), 0x1234),
        ],
        &[
            Item::IncrementPc,
            Item::Insn16(0x4108),
            Item::Offset(Register::x(10), -1),
            Item::EffectiveAddress(0x8000_0010),
            Item::PhysicalAddress(0x8000_0010),
            Item::Request(load),
            Item::Response(answer),
        ],
        &[
            Item::IncrementPc,
            Item::Insn32(0x00b5_2423),
            Item::EffectiveAddress(0x8000_0018),
            Item::StoreData(2, 7),
        ],
        &[pc(0x8000_0100), Item::Insn32(0xfeb5_1ce3)],
        &[
            pc(0x8000_0200),
            Item::Insn32(0x73),
            csr(0x341, 0x8000_0100),
            csr(0x342, 11),
            csr(0x343, 0),
            csr(0x300, 0x1800),
            Item::Mode(3),
        ],
        &[
            Item::IncrementPc,
            Item::Insn32(0x0016_f3d3),
            Item::Mask(Register::csr(3), 1),
        ],
        &[Item::Mtime(77), Item::PcPhysical(0x8000_0204)],
        &[Item::Reset],
    ];
    let mut bytes = Vec::new();
    for group in groups.iter().chain(&groups) {
        for item in [&[Item::BeginGroup], *group, &[Item::EndGroup]].concat() {
            item.write(config, &mut bytes);
        }
    }
    bytes
}

/// Choices and a trace that goes with them, and a byte for the chunks.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seed = |number: u8| {
        let choices = choices(number);
        let config = config(&mut Input::new(&choices));
        let chunk = vec![number];
        [choices, chunk, trace(&config)].concat()
    };
    (0..36).map(seed).collect()
}

pub(super) fn container_seeds() -> Vec<Vec<u8>> {
    let seed = |number: u8| {
        let config = config(&mut Input::new(&choices(number)));
        let trace = trace(&config);
        let parameters = Parameters {
            isa: number.is_multiple_of(2).then(|| "rv64gc".to_owned()),
            config,
        };
        let mut file = vec![number];
        let _ = write_start(&parameters, &mut file);
        for (hart, part) in (0..).zip(trace.chunks(60)) {
            write_stored(HartId(hart % 3), part, &mut file);
        }
        if let Some(frame) = container::Frame::of(HartId(4), Method::Deflate, &trace, 9) {
            frame.write(&mut file);
            file.extend([7; 9]);
        }
        write_end(&mut file);
        file
    };
    let text = Parameters::default().to_string().into_bytes();
    let mut all: Vec<_> = (0..12).map(seed).collect();
    all.push([vec![3], text].concat());
    all
}
