//! N-Trace: the bytes of messages and what carries them.

use hartrace_capture::trace::{Order, Pib, PibReader, PibWidth, PibWriter, RamSink};
use hartrace_flow::decode::Framing as _;
use hartrace_isa::Xlen;
use hartrace_ntrace::{
    Body, Btype, Evcode, Fault, Framer, Layout, Message, Piece, Process, Sink, Sync, guess,
};

use super::{Input, ensure};

/// A stretch of a stream that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stretch {
    Message(Vec<u8>),
    Idle(u64),
    Bad(Fault, u64),
}

/// Any bytes: they are divided the same way in any chunks, every byte is in one
/// piece, what a message says is written and read back; samples, circular
/// buffers and the guess at the settings take anything.
pub(super) fn message(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let layout = Layout {
        src_bits: input.byte(),
        xlen: if input.flag() { Xlen::Rv32 } else { Xlen::Rv64 },
        extend_addr_msb: input.flag(),
    };
    let chunk = 1 + usize::from(input.byte());
    let pib = Pib {
        width: input
            .pick(&[
                PibWidth::One,
                PibWidth::Two,
                PibWidth::Four,
                PibWidth::Eight,
                PibWidth::Sixteen,
            ])
            .unwrap_or(PibWidth::Four),
        high_first: input.flag(),
        order: input
            .pick(&[Order::Plain, Order::Swapped16, Order::Swapped32])
            .unwrap_or_default(),
    };
    let gap = u32::from(input.below(40));
    let pointer = input.number(2);
    let stream = input.rest();

    let pieces = divide([stream])?;
    let again = divide(stream.chunks(chunk))?;
    ensure(pieces == again, || {
        format!("{pieces:?}, in chunks {again:?}")
    })?;
    for piece in &pieces {
        if let Stretch::Message(bytes) = piece {
            says(bytes, &layout)?;
        }
    }
    samples(pib, gap, stream, &pieces, chunk)?;
    ring(stream, pointer)?;
    if let Some(found) = guess(stream) {
        ensure(found.score <= 100 && found.messages > 0, || {
            format!("{found}")
        })?;
    }
    Ok(())
}

/// All pieces of a stream in chunks; idle stretches are put together.
fn divide<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Stretch>, String> {
    let mut framer = Framer::new();
    let mut all = Vec::new();
    let (mut next, mut total) = (0, 0);
    let mut take = |at: u64, piece: Piece<'_>| {
        ensure(at == next, || format!("{at}, not {next}"))?;
        match (piece, all.last_mut()) {
            (Piece::Idle(n), Some(Stretch::Idle(sum))) => *sum += n,
            (Piece::Idle(n), _) => all.push(Stretch::Idle(n)),
            (Piece::Message(bytes), _) => all.push(Stretch::Message(bytes.to_vec())),
            (Piece::Bad(fault, n), _) => all.push(Stretch::Bad(fault, n)),
        }
        next += match piece {
            Piece::Message(bytes) => bytes.len() as u64,
            Piece::Idle(n) | Piece::Bad(_, n) => n,
        };
        Ok::<(), String>(())
    };
    for mut chunk in chunks {
        total += chunk.len() as u64;
        while let Some((at, piece)) = framer.next_piece(&mut chunk) {
            take(at, piece)?;
        }
    }
    if let Some((at, piece)) = framer.finish() {
        take(at, piece)?;
    }
    ensure(next == total, || format!("{next} of {total} bytes"))?;
    Ok(all)
}

/// What a message says is written and read back.
fn says(bytes: &[u8], layout: &Layout) -> Result<(), String> {
    let Ok(message) = Message::read(bytes, layout) else {
        return Ok(());
    };
    let head = Message::head(bytes, layout);
    ensure(head == Some((message.body.tcode(), message.src)), || {
        format!("{head:?} {message:?}")
    })?;
    let mut written = Vec::new();
    message.write(layout, &mut written);
    let again = Message::read(&written, layout);
    ensure(again == Ok(message), || {
        format!("{message:?}, again {again:?}")
    })?;
    ensure(written.len() <= bytes.len(), || {
        format!("{message:?} grows")
    })?;
    let whole = divide([&written[..]])?;
    ensure(whole == [Stretch::Message(written)], || {
        format!("{whole:?}")
    })?;
    if let Body::Ownership { process } = message.body
        && let Ok(owner) = Process::from_field(process)
    {
        ensure(owner.field() == process, || format!("{owner:?}"))?;
    }
    Ok(())
}

/// Any samples are read, the same in any chunks; messages with gaps come back.
fn samples(
    pib: Pib,
    gap: u32,
    stream: &[u8],
    pieces: &[Stretch],
    chunk: usize,
) -> Result<(), String> {
    let once = bytes_of(pib, [stream]);
    ensure(once.len() <= 3 * stream.len(), || "too many bytes".into())?;
    let again = bytes_of(pib, stream.chunks(chunk));
    ensure(once == again, || format!("{pib:?} in chunks"))?;
    // An idle byte and a gap long enough to be sure of the start.
    let mut writer = PibWriter::new(pib, gap, 0);
    writer.idle(16);
    let messages = pieces.iter().filter(|p| matches!(p, Stretch::Message(_)));
    for piece in messages.clone() {
        if let Stretch::Message(bytes) = piece {
            writer.message(bytes);
        }
    }
    let samples = writer.finish();
    let back = divide([&bytes_of(pib, [&samples[..]])[..]])?;
    let back: Vec<&Stretch> = back
        .iter()
        .filter(|p| !matches!(p, Stretch::Idle(_)))
        .collect();
    ensure(back.iter().copied().eq(messages), || {
        format!("{pib:?} gap {gap}: {back:?}")
    })
}

fn bytes_of<'a>(pib: Pib, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut reader = PibReader::new(pib);
    let mut out = Vec::new();
    for chunk in chunks {
        reader.feed(chunk, &mut |b| out.push(b));
    }
    reader.finish(&mut |b| out.push(b));
    out
}

/// Any dump is put in order or refused; no byte is lost.
fn ring(dump: &[u8], pointer: u64) -> Result<(), String> {
    let len = dump.len() as u64 & !3;
    let limit = len.saturating_sub(4);
    let ram = RamSink::from_registers(0, limit, pointer);
    let Ok(trace) = ram.unwrap(dump) else {
        return Ok(());
    };
    let held = trace.older.len() + trace.newer.len();
    ensure(!ram.wrapped || held == dump.len(), || {
        format!("{held} bytes held")
    })?;
    let all = trace.concat();
    let whole = trace.messages().concat();
    ensure(all.len() == held && all.ends_with(&whole), || {
        format!("{trace:?}")
    })
}

pub(super) fn message_seeds() -> Vec<Vec<u8>> {
    let sync = Sync::PERIODIC;
    let btype = Btype::Trap;
    let bodies = [
        Body::ProgTraceSync {
            sync: Sync::RESET,
            icnt: 0,
            faddr: 0x4000_0000,
        },
        Body::Ownership { process: 0x3b2 },
        Body::DirectBranch { icnt: 7 },
        Body::IndirectBranch {
            btype,
            icnt: 3,
            uaddr: 0x7b6,
        },
        Body::RepeatBranch { count: 1000 },
        Body::IcntFull { icnt: 1 << 21 },
        Body::HistFull { hist: 0x5555_5555 },
        Body::HistRepeat {
            hist: 5,
            count: 150,
        },
        Body::IndirectBranchHist {
            btype,
            icnt: 0x7d,
            uaddr: 7,
            hist: 0xffe,
        },
        Body::IndirectBranchHistSync {
            sync,
            btype,
            icnt: 9,
            faddr: 0x7fff_ffff_c000_18fa,
            hist: 9,
        },
        Body::Error { etype: 0, ecode: 4 },
        Body::IndirectBranchSync {
            sync,
            btype,
            icnt: 1,
            faddr: 0x5fff_ffff_ffff_ffff,
        },
        Body::DirectBranchSync {
            sync,
            icnt: 2,
            faddr: 0x80,
        },
        Body::ProgTraceCorrelation {
            evcode: Evcode::DEBUG,
            icnt: 4,
            hist: Some(2),
        },
    ];
    let layouts = [(0u8, 0u8, 0u8), (0, 1, 1), (4, 0, 1), (12, 0, 0)];
    let seed = |(number, &(src_bits, rv32, extend)): (usize, &(u8, u8, u8))| {
        let layout = Layout {
            src_bits,
            xlen: if rv32 == 1 { Xlen::Rv32 } else { Xlen::Rv64 },
            extend_addr_msb: extend == 1,
        };
        let mut bytes = vec![src_bits, rv32, extend, 9, number as u8, 0, 0, 3, 5, 0];
        for (i, &body) in bodies.iter().enumerate() {
            let message = Message {
                src: i as u16 & 1,
                body,
                tstamp: (number % 2 == 1).then_some(1 << (4 * i)),
            };
            message.write(&layout, &mut bytes);
            if i % 4 == 0 {
                bytes.push(0xff);
            }
        }
        bytes
    };
    layouts.iter().enumerate().map(seed).collect()
}

/// A trace for the seeds of the flow: a sync, history, jumps, the end.
pub(super) const TRACE: [u8; 29] = [
    0x24, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, 0x70, 0x1c, 0x01, 0x01, 0x3b, 0x6c, 0x14, 0x3b,
    0x10, 0x10, 0x05, 0x03, 0x0c, 0x0b, 0x78, 0x0b, 0xff, 0x84, 0x50, 0x21, 0x07,
];
