//! Turns the contents of a trace buffer or probe into the stream that was sent.

mod coresight;
mod merge;
mod pib;
mod pins;
mod ram;
#[cfg(test)]
mod testing;
mod wrap;

use super::Format;
use crate::config::Config;
use crate::detect::detect;
use crate::input::{Input, InputError};
use hartrace_etrace::{Encapsulation, boundary};
use merge::{MergeEtrace, MergeNtrace};
use std::fmt;

pub use coresight::{Deformatter, Formatter};
pub use hartrace_files::transport::{
    CoreSight, Order, Pib, PibWidth, RamError, RamSink, Transport, Unwrapped,
};
pub use pib::{PibReader, PibWriter};
pub use pins::{read_pins, write_pins};
pub use ram::RamBuffer;
pub use wrap::{check, encoder, wrap};

/// A dump of more is another file given by mistake.
const MAX_DUMP: u64 = 8 << 30;

/// Why a dump is no stream.
#[derive(Debug)]
pub enum TransportError {
    /// It could not be read.
    Input(InputError),
    /// It does not fit the registers of the buffer.
    Ram(RamError),
    /// A tandem trace, which has no transport.
    Tandem,
    /// A buffer and pins.
    Both,
    /// E-Trace in CoreSight frames: ids that are not those of sources.
    Ids,
    /// E-Trace in CoreSight frames: nothing tells data packets from others.
    NoKinds,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportError::Input(error) => error.fmt(f),
            TransportError::Ram(error) => error.fmt(f),
            TransportError::Tandem => f.write_str("a tandem trace has no transport"),
            TransportError::Both => {
                f.write_str("a trace is in a buffer or on pins, not both: `ram` and `pib`")
            }
            TransportError::Ids => f.write_str(
                "the ids of sources in CoreSight frames are 1 to 111; that of hart 0 is `src_id` \
                 in [etrace.encapsulation]",
            ),
            TransportError::NoKinds => f.write_str(
                "nothing tells data packets from others: set `coresight_data` in [transport], or \
                 `type_bits` in [etrace.encapsulation]",
            ),
        }
    }
}

impl std::error::Error for TransportError {}

impl From<InputError> for TransportError {
    fn from(error: InputError) -> TransportError {
        TransportError::Input(error)
    }
}

/// The stream in a file. A plain one is not touched; another is read at
/// once. In a buffer that wrapped, N-Trace begins with a whole message, and so
/// does what may be N-Trace; E-Trace begins where a packet must start.
///
/// # Errors
///
/// A failing read, and a dump that is not as the registers say.
pub fn unwrap(
    transport: &Transport,
    input: Input,
    config: &Config,
) -> Result<Input, TransportError> {
    if *transport == Transport::default() {
        return Ok(input);
    }
    if transport.ram.is_some() && transport.pib.is_some() {
        return Err(TransportError::Both);
    }
    let format = Format::said(config);
    let form = config.etrace.form();
    let path = input.path().to_path_buf();
    let mut bytes = input.read_all(MAX_DUMP)?;
    // Frames hide what is inside.
    let inner = format.filter(|_| transport.coresight.is_none());
    if let Some(pib) = transport.pib {
        bytes = pins(transport, &bytes, pib, inner, &form);
    } else {
        transport.order.turn(&mut bytes);
    }
    if let Some(ram) = transport.ram {
        bytes = unwrapped(ram, &bytes, inner, &form, transport.coresight.is_some())?;
    }
    let Some(coresight) = transport.coresight else {
        return Ok(Input::of(&path, bytes));
    };
    Ok(match merged(&bytes, format, form, coresight) {
        (stream, true) => Input::of(&path, stream).merged(),
        (stream, false) => Input::of(&path, stream),
    })
}

/// The bytes that were sent over pins.
fn pins(
    transport: &Transport,
    bytes: &[u8],
    pib: Pib,
    format: Option<Format>,
    form: &Encapsulation,
) -> Vec<u8> {
    let pib = Pib {
        order: transport.order,
        ..pib
    };
    if format == Some(Format::Etrace) || transport.coresight.is_some() {
        return read_pins(bytes, pib, form);
    }
    let mut reader = PibReader::new(pib);
    let mut found = Vec::new();
    reader.feed(bytes, &mut |byte| found.push(byte));
    reader.finish(&mut |byte| found.push(byte));
    found
}

/// The contents of a circular buffer in their order. The rest of a message at the start
/// is no damage.
fn unwrapped(
    ram: RamSink,
    bytes: &[u8],
    format: Option<Format>,
    form: &Encapsulation,
    frames: bool,
) -> Result<Vec<u8>, TransportError> {
    let buffer = ram.unwrap(bytes).map_err(TransportError::Ram)?;
    let mut whole = buffer.concat();
    if frames {
        // A word holds whole frames, or parts that follow each other.
        return Ok(whole);
    }
    match format {
        None | Some(Format::Ntrace) => Ok(buffer.messages().concat()),
        Some(Format::Etrace) if buffer.is_cut => {
            let cut = boundary(&whole, 0, form).unwrap_or(0);
            Ok(whole.split_off(cut))
        }
        Some(_) => Ok(whole),
    }
}

/// The stream in frames, and whether it is in the merged form of E-Trace.
fn merged(
    bytes: &[u8],
    format: Option<Format>,
    form: Encapsulation,
    coresight: CoreSight,
) -> (Vec<u8>, bool) {
    let etrace = match format {
        Some(format) => format == Format::Etrace,
        None => {
            let mut head = Vec::new();
            let mut first = None;
            Deformatter::new().feed(bytes.get(..1 << 16).unwrap_or(bytes), &mut |id, byte| {
                if *first.get_or_insert(id) == id {
                    head.push(byte);
                }
            });
            Format::from_kind(detect(&head)) == Some(Format::Etrace)
        }
    };
    let mut frames = Deformatter::new();
    if etrace {
        let mut merge = MergeEtrace::new(form, coresight.data_offset);
        frames.feed(bytes, &mut |id, byte| merge.byte(id, byte));
        return (merge.finish(), true);
    }
    let mut merge = MergeNtrace::default();
    frames.feed(bytes, &mut |id, byte| merge.byte(id, byte));
    (merge.finish(), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_etrace as etrace;
    use hartrace_flow::decode::Framing as _;
    use std::path::Path;

    const MESSAGES: [u8; 8] = [0x0c, 0x07, 0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff];

    fn opened(transport: &Transport, bytes: &[u8]) -> Result<Vec<u8>, TransportError> {
        let input = Input::of(Path::new("t"), bytes.to_vec());
        Ok(unwrap(transport, input, &Config::default())?.read_all(1 << 20)?)
    }

    #[test]
    fn plain_and_turned() {
        let mut transport = Transport::default();
        assert_eq!(opened(&transport, &MESSAGES).unwrap(), MESSAGES);
        transport.order = Order::Swapped32;
        let mut turned = MESSAGES;
        Order::Swapped32.turn(&mut turned);
        assert_eq!(opened(&transport, &turned).unwrap(), MESSAGES);
    }

    #[test]
    fn a_buffer_that_wrapped_starts_with_a_whole_message() {
        let ram = Some(RamSink::from_registers(0x100, 0x104, 0x105));
        let transport = Transport {
            ram,
            ..Transport::default()
        };
        let dump = [0x0c, 0x07, 0x10, 0x05, 0x07, 0x0c, 0x0c, 0x07];
        let stream = [0x0c, 0x0c, 0x07, 0x0c, 0x07, 0x10, 0x05];
        assert_eq!(opened(&transport, &dump).unwrap(), stream);
        let error = opened(&transport, &dump[1..]).unwrap_err();
        assert!(error.to_string().contains("8 bytes"), "{error}");
    }

    /// Packets of two harts, of both traces, in a form.
    fn packets(form: Encapsulation) -> Vec<(u8, etrace::Kind, Vec<u8>)> {
        let mut packers = [0, 1].map(|_| etrace::Packer::new(form, 0));
        let mut all = Vec::new();
        for n in 0..60u8 {
            let kind = match n % 3 {
                0 => etrace::Kind::Data,
                _ => etrace::Kind::Instruction,
            };
            let hart = n % 2;
            let packer = &mut packers[usize::from(hart)];
            let packed = packer.pack(kind, &[0x1f, n | 1], n.into());
            all.push((hart, kind, packed.bytes().to_vec()));
        }
        all
    }

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("c")).unwrap()
    }

    /// What is found in a stream: hart, kind, second byte of the payload.
    fn found(form: Encapsulation, stream: &[u8]) -> Vec<(u16, etrace::Kind, u8)> {
        let (mut framer, mut rest) = (etrace::Framer::of(form), stream);
        let mut found = Vec::new();
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            if let etrace::Piece::Packet(packet) = piece {
                found.push((packet.src, packet.kind, packet.payload[1]));
            }
        }
        found
    }

    /// Frames with ids 3 and 4 for two harts; data packets say so themselves, or have
    /// ids of their own.
    #[test]
    fn frames_of_several_harts() {
        let merged = Encapsulation {
            src_id: 3,
            ..Encapsulation::MERGED
        };
        for (text, data_offset) in [
            ("form = \"riscv\"\ntype_bits = 1\ntime_bytes = 2", None),
            ("form = \"atb\"", Some(32)),
            ("form = \"reference\"", None),
        ] {
            let config = config(&format!("[etrace.encapsulation]\nsrc_id = 3\n{text}\n"));
            let form = Encapsulation {
                src_id: 0,
                ..config.etrace.form()
            };
            let mut formatter = Formatter::new(4);
            let mut sent = Vec::new();
            for (hart, kind, bytes) in packets(form) {
                let data = match kind {
                    etrace::Kind::Data => data_offset.unwrap_or(0),
                    etrace::Kind::Instruction => 0,
                };
                formatter.put(3 + hart + data, &bytes);
                sent.push((u16::from(hart), kind));
            }
            let transport = Transport {
                coresight: Some(CoreSight { data_offset }),
                ..Transport::default()
            };
            let input = Input::of(Path::new("t"), formatter.finish());
            let input = unwrap(&transport, input, &config).unwrap();
            assert!(input.is_merged());
            let stream = input.read_all(1 << 20).unwrap();
            let found = found(merged, &stream);
            // The last byte of a packet waits for the next, so the order may differ.
            assert_eq!(found.len(), sent.len(), "{text}");
            for hart in [0, 1] {
                let kinds = |all: &mut dyn Iterator<Item = (u16, etrace::Kind)>| {
                    let own = all.filter(|(src, _)| *src == hart);
                    own.map(|(_, kind)| kind).collect::<Vec<_>>()
                };
                let own = kinds(&mut found.iter().map(|&(src, kind, _)| (src, kind)));
                assert_eq!(own, kinds(&mut sent.iter().copied()), "{text}");
            }
        }
    }

    /// Damage to the packets of one id is marked for that source.
    #[test]
    fn damage_in_frames_is_of_one_source() {
        let config = config("[trace]\nformat = \"etrace\"\n");
        let mut formatter = Formatter::new(0);
        for n in 0..20 {
            formatter.put(1, &[0x42, 0x1f, n | 1]);
            let bad = [0x42, 0x1f, n | 1];
            formatter.put(2, if n == 5 { &[0xff] } else { &bad });
        }
        let transport = Transport {
            coresight: Some(CoreSight::default()),
            ..Transport::default()
        };
        let input = Input::of(Path::new("t"), formatter.finish());
        let stream = unwrap(&transport, input, &config).unwrap();
        let stream = stream.read_all(1 << 20).unwrap();
        let mut framer = etrace::Framer::of(Encapsulation::MERGED);
        let (mut rest, mut lost, mut first) = (&stream[..], Vec::new(), 0);
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            match piece {
                etrace::Piece::Lost(src, fault, _, _) => lost.push((src, fault)),
                etrace::Piece::Packet(packet) if packet.src == 1 => first += 1,
                _ => {}
            }
        }
        assert_eq!((lost, first), (vec![(2, etrace::Fault::BadHeader)], 20));
    }

    /// A buffer that wrapped starts where a packet must start.
    #[test]
    fn a_wrapped_buffer_of_each_form() {
        for text in [
            "form = \"reference\"",
            "form = \"riscv\"\nsync_bytes = 40",
            "form = \"esp32\"\nsync_bytes = 40",
            "form = \"smi\"\nsrc_bits = 8\ntime_bytes = 2",
            "form = \"atb\"",
        ] {
            let config = config(&format!("[etrace.encapsulation]\n{text}\n"));
            let form = config.etrace.form();
            let mut packer = etrace::Packer::new(form, 0);
            let mut sink = RamSink::from_registers(0x1000, 0x10fc, 0x1000);
            let mut buffer = RamBuffer::new(sink, 0).unwrap();
            for n in 0..200u8 {
                let packed = packer.pack(etrace::Kind::Instruction, &[0x1f, n | 1], 0);
                buffer.write(packed.bytes());
            }
            sink = buffer.registers();
            assert!(sink.wrapped);
            let transport = Transport {
                ram: Some(sink),
                ..Transport::default()
            };
            let input = Input::of(Path::new("t"), buffer.dump().to_vec());
            let stream = unwrap(&transport, input, &config).unwrap();
            let stream = stream.read_all(1 << 20).unwrap();
            let found = found(form, &stream);
            let numbers: Vec<u8> = found.iter().map(|packet| packet.2).collect();
            assert!(numbers.len() > 15, "{text}: {numbers:?}");
            for pair in numbers.windows(2) {
                assert!(
                    pair[1] == pair[0] || pair[1] == pair[0] + 2,
                    "{text}: {numbers:?}"
                );
            }
        }
    }

    #[test]
    fn pins_of_eight_bits_are_bytes() {
        let transport = Transport {
            pib: Some(Pib::new(PibWidth::Eight)),
            ..Transport::default()
        };
        assert_eq!(opened(&transport, &MESSAGES).unwrap(), MESSAGES);
    }
}
