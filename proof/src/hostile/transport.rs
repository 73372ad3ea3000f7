//! Encapsulations and transports: any bytes as what a probe or a memory held.

use std::path::Path;

use hartrace_capture::config::{Config as Settings, Etrace};
use hartrace_capture::input::Input as File;
use hartrace_capture::trace::{CoreSight, Formatter, Pib, PibWidth, RamSink, Transport, transport};
use hartrace_etrace::{Config, Encapsulation, Framer, Kind, Packer, Piece, Version};
use hartrace_flow::decode::Framing as _;
use hartrace_isa::Xlen;

use super::etrace::form;
use super::{Input, ensure};

/// Any bytes in any form from any transport: reading ends, and what comes out has no more
/// bytes than packets of one byte would make; packets are written and read back.
pub(super) fn open(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let form = form(&mut input);
    let way = input.byte();
    let config = Config {
        encapsulation: form,
        ..Config::new(Version::V2_0, Xlen::Rv64)
    };
    let mut contents = input.rest().to_vec();
    contents.truncate(contents.len() & !3);
    let size = contents.len() as u64;
    let widths = [PibWidth::One, PibWidth::Two, PibWidth::Four];
    let transport = Transport {
        coresight: (way & 1 != 0).then_some(CoreSight {
            data_offset: (way & 2 != 0).then_some(20),
        }),
        ram: (way & 4 != 0 && size > 0).then(|| {
            let pointer = 4 * (u64::from(way) % (size / 4).max(1));
            RamSink::from_registers(0, size.saturating_sub(4), pointer | u64::from(way >> 7))
        }),
        pib: (way & 12 == 8).then(|| {
            let width = widths.get(usize::from(way >> 4) % 3);
            Pib::new(width.copied().unwrap_or(PibWidth::One))
        }),
        ..Transport::default()
    };
    let settings = Settings {
        etrace: Etrace::of(&config),
        ..Settings::default()
    };
    let opened = transport::unwrap(
        &transport,
        File::of(Path::new("hostile"), contents),
        &settings,
    );
    let stream = opened.map_err(|e| e.to_string())?;
    let stream = stream.read_all(1 << 30).map_err(|e| e.to_string())?;
    ensure(stream.len() as u64 <= 20 * size + 64, || {
        format!("{} bytes of {size}", stream.len())
    })?;
    let merged = transport.coresight.is_some();
    let form = if merged { Encapsulation::MERGED } else { form };
    again(form, &stream)
}

/// The packets of a stream, written once more, are the same.
fn again(form: Encapsulation, stream: &[u8]) -> Result<(), String> {
    let (mut framer, mut rest) = (Framer::of(form), stream);
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        let Piece::Packet(packet) = piece else {
            continue;
        };
        // What has no room beside the source and the type was not written by us.
        if packet.payload.len() * 8 > form.room() {
            continue;
        }
        let mut packer = Packer::new(form, packet.src);
        let packed = packer.pack_timed(packet.kind, packet.payload, packet.time);
        let (mut framer, mut rest) = (Framer::of(form), packed.bytes());
        let mut same = false;
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            if let Piece::Packet(copy) = piece {
                let short = copy.payload.len().min(packet.payload.len());
                same = (copy.src, copy.kind) == (packet.src, packet.kind)
                    && copy.payload.get(..short) == packet.payload.get(..short);
            }
        }
        ensure(same, || format!("{form:?}: {packet:x?}"))?;
    }
    Ok(())
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seed = |number: u8| {
        let mut bytes = vec![number, number.wrapping_mul(37), number.wrapping_mul(11)];
        let form = form(&mut Input::new(&bytes));
        let mut formatter = Formatter::new(2);
        let mut plain = Vec::new();
        for src in [0, 1, 0, 2, 1] {
            let mut packer = Packer::new(form, src);
            let packed = packer.pack(Kind::Instruction, &[0x73, 0x40, 0x21], 99);
            formatter.put(1 + src as u8, packed.bytes());
            plain.extend_from_slice(packed.bytes());
        }
        match bytes.last().is_some_and(|way| way & 1 != 0) {
            true => bytes.extend(formatter.finish()),
            false => bytes.extend(plain),
        }
        bytes
    };
    (0..48).map(seed).collect()
}
