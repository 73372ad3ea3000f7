//! Puts the stream of an encoder into what a buffer, pins or frames hold.

use super::write_pins;
use super::{CoreSight, Formatter, Pib, PibWriter, RamBuffer, Transport, TransportError};
use crate::trace::Settings;
use hartrace_etrace as etrace;
use hartrace_flow::decode::Framing as _;
use hartrace_flow::encode::Sink as _;
use hartrace_ntrace as ntrace;
use std::collections::BTreeMap;

/// Frames between two full synchronisation packets.
const FRAMES: u32 = 16;

/// Messages of N-Trace between two idle bytes, where a byte may start at any sample.
const MESSAGES: u32 = 32;

/// The id of N-Trace, whose messages have their source in them.
const NTRACE_ID: u8 = 1;

/// The ids of sources; those above are reserved.
const IDS: std::ops::RangeInclusive<u16> = 1..=111;

/// The settings of the encoder whose stream [`wrap`] takes: frames keep
/// sources apart, so that its packets need not say whose they are.
#[must_use]
pub fn encoder(transport: &Transport, settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if transport.coresight.is_some() {
        settings.merge();
    }
    settings
}

/// Whether a trace with these settings can be put into it.
///
/// # Errors
///
/// Why it cannot.
pub fn check(transport: &Transport, settings: &Settings) -> Result<(), TransportError> {
    if transport.ram.is_some() && transport.pib.is_some() {
        return Err(TransportError::Both);
    }
    let Settings::Etrace(config) = settings else {
        let tandem = matches!(settings, Settings::Tandem(_)) && *transport != Transport::default();
        return if tandem {
            Err(TransportError::Tandem)
        } else {
            Ok(())
        };
    };
    let Some(CoreSight { data_offset }) = transport.coresight else {
        return Ok(());
    };
    let form = &config.encapsulation;
    if !IDS.contains(&form.src_id) {
        return Err(TransportError::Ids);
    }
    match config.data.is_some() && data_offset.is_none() && !form.has_kinds() {
        true => Err(TransportError::NoKinds),
        false => Ok(()),
    }
}

/// What a file holds of a stream, and the transport with the registers that its
/// buffer then has.
///
/// # Errors
///
/// As [`check`]; registers that make no sense, and ids of harts that are
/// not those of sources.
pub fn wrap(
    transport: &Transport,
    stream: Vec<u8>,
    settings: &Settings,
) -> Result<(Vec<u8>, Transport), TransportError> {
    check(transport, settings)?;
    let mut bytes = match (transport.coresight, settings) {
        (None, _) => stream,
        (Some(coresight), Settings::Etrace(config)) => {
            frames(&stream, config.encapsulation, coresight)?
        }
        (Some(_), _) => {
            let mut formatter = Formatter::new(FRAMES);
            formatter.put(NTRACE_ID, &stream);
            formatter.finish()
        }
    };
    let is_ntrace = matches!(settings, Settings::Ntrace(_)) && transport.coresight.is_none();
    let mut put = *transport;
    if let Some(pib) = transport.pib {
        let order = transport.order;
        let pib = Pib { order, ..pib };
        let samples = match is_ntrace {
            true => messages(&bytes, pib),
            false => write_pins(&bytes, pib),
        };
        return Ok((samples, put));
    }
    if let Some(ram) = transport.ram {
        let idle = if is_ntrace { ntrace::IDLE } else { 0 };
        let mut buffer = RamBuffer::new(ram, idle).map_err(TransportError::Ram)?;
        buffer.write(&bytes);
        buffer.flush();
        put.ram = Some(buffer.registers());
        bytes = buffer.dump().to_vec();
    }
    transport.order.turn(&mut bytes);
    Ok((bytes, put))
}

/// Packets of the merged form in frames, each source with its id.
fn frames(
    stream: &[u8],
    form: etrace::Encapsulation,
    coresight: CoreSight,
) -> Result<Vec<u8>, TransportError> {
    let form = etrace::Encapsulation { src_id: 0, ..form };
    let mut packers = BTreeMap::new();
    let mut formatter = Formatter::new(FRAMES);
    let mut framer = etrace::Framer::of(etrace::Encapsulation::MERGED);
    let mut rest = stream;
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        let etrace::Piece::Packet(packet) = piece else {
            continue; // an encoder sends nothing else
        };
        let data = match packet.kind {
            etrace::Kind::Data => coresight.data_offset.unwrap_or(0),
            etrace::Kind::Instruction => 0,
        };
        let id = packet.src.saturating_add(data.into());
        let id = u8::try_from(id).ok().filter(|&id| IDS.contains(&id.into()));
        let id = id.ok_or(TransportError::Ids)?;
        let new = || etrace::Packer::new(form, packet.src);
        let packer = packers.entry(id).or_insert_with(new);
        let packed = packer.pack_timed(packet.kind, packet.payload, packet.time);
        formatter.put(id, packed.bytes());
    }
    Ok(formatter.finish())
}

/// The samples of messages of N-Trace, with idle samples now and then by which a reader
/// finds where bytes start.
fn messages(stream: &[u8], pib: Pib) -> Vec<u8> {
    let every = if pib.width.bits() < 8 { MESSAGES } else { 0 };
    let mut writer = PibWriter::new(pib, 0, every);
    let (mut framer, mut rest) = (ntrace::Framer::new(), stream);
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        if let ntrace::Piece::Message(message) = piece {
            writer.message(message);
        }
    }
    writer.finish()
}

#[cfg(test)]
mod tests;
