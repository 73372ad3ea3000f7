//! Writes the packets of an E-Trace in another encapsulation.

use super::{Put, Settings, SettingsError, pieces};
use crate::config::Config;
use crate::input::{Input, InputError};
use hartrace_etrace::{
    DataSupport, Encapsulated, Encapsulation, Form, Framer, Kind, Layout, Packer, Packet, Piece,
    QualStatus, Support,
};
use hartrace_flow::HartId;
use std::collections::BTreeMap;
use std::fmt;

/// Why packets cannot be written in another encapsulation.
#[derive(Debug)]
pub enum ReencapsulateError {
    /// The trace cannot be read.
    Input(InputError),
    /// Only E-Trace has encapsulations.
    Format,
    /// The new settings contradict each other.
    Settings(SettingsError),
    /// There are packets of these harts, and the new encapsulation has no sources.
    Harts(HartId, HartId),
    /// There are data packets, and the new encapsulation does not tell them from others.
    Data,
    /// A packet is too long for the new encapsulation: its bytes.
    TooLong(usize),
}

impl fmt::Display for ReencapsulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReencapsulateError::Input(error) => error.fmt(f),
            ReencapsulateError::Format => f.write_str("only E-Trace has encapsulations"),
            ReencapsulateError::Settings(error) => error.fmt(f),
            ReencapsulateError::Harts(one, other) => write!(
                f,
                "there are packets of harts {} and {}, and the new encapsulation has no sources",
                one.0, other.0
            ),
            ReencapsulateError::Data => f.write_str(
                "there are data packets, and the new encapsulation does not tell them from others",
            ),
            ReencapsulateError::TooLong(bytes) => {
                write!(
                    f,
                    "a packet of {bytes} bytes is too long for the new encapsulation"
                )
            }
        }
    }
}

impl std::error::Error for ReencapsulateError {}

impl From<InputError> for ReencapsulateError {
    fn from(error: InputError) -> ReencapsulateError {
        ReencapsulateError::Input(error)
    }
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reencapsulated {
    /// Packets.
    pub packets: u64,
    /// Bytes of the new stream.
    pub bytes: u64,
    /// Places where something of the old stream is missing or cannot be read. In the new
    /// one a support packet reports them as a loss.
    pub lost: u64,
}

/// The settings of a trace in the encapsulation that a configuration gives. What it does
/// not say of sources, times and data is as the trace needs it.
///
/// # Errors
///
/// Settings that do not make sense together.
pub fn reencapsulated(old: &Settings, to: &Config) -> Result<Settings, ReencapsulateError> {
    let Settings::Etrace(config) = old else {
        return Err(ReencapsulateError::Format);
    };
    let (from, said) = (config.encapsulation, &to.etrace.encapsulation);
    let mut form = to.etrace.form();
    let riscv = matches!(form.form, Form::Riscv | Form::Slots);
    if said.src_bits.is_none() && from.has_sources() && (riscv || form.form == Form::Smi) {
        form.src_bits = from.src_bits;
    }
    if from.time_bytes == 0 {
        form.time_bytes = 0;
    }
    if said.type_bits.is_none() && config.data.is_some() && (riscv || form.form == Form::Atb) {
        form.type_bits = 1;
    }
    let new = hartrace_etrace::Config {
        encapsulation: form,
        ..config.clone()
    };
    let valid = new.validate();
    valid.map_err(|error| ReencapsulateError::Settings(error.into()))?;
    Ok(Settings::Etrace(new))
}

/// One source of the old stream.
struct Source {
    packer: Packer,
    /// What it last said of itself.
    support: Support,
    /// Of its last packet.
    time: Option<u64>,
}

/// Packets on their way into another encapsulation.
struct Copy<'a> {
    layout: Layout,
    to: Encapsulation,
    only: Option<HartId>,
    sources: BTreeMap<u16, Source>,
    first: Support,
    copied: Reencapsulated,
    put: Put<'a>,
}

/// Copies the packets of a stream with the settings `old` into one with the encapsulation
/// of `new`; those of one hart, or of all.
///
/// # Errors
///
/// A failing read, and packets that the new encapsulation has no room for.
pub fn reencapsulate(
    input: Input,
    (old, new): (&Settings, &Settings),
    only: Option<HartId>,
    put: Put<'_>,
) -> Result<Reencapsulated, ReencapsulateError> {
    let (Settings::Etrace(old), Settings::Etrace(new)) = (old, new) else {
        return Err(ReencapsulateError::Format);
    };
    let data = old.doptions_width.map(|_| DataSupport::default());
    let mut copy = Copy {
        layout: old.layout(),
        to: new.encapsulation,
        only,
        sources: BTreeMap::new(),
        first: Support {
            ienable: true,
            ioptions: old.ioptions_field(),
            data,
            ..Support::default()
        },
        copied: Reencapsulated::default(),
        put,
    };
    pieces(
        input,
        Framer::of(old.encapsulation),
        |_, _, piece: &Piece<'_>| match *piece {
            Piece::Packet(packet) => copy.packet(&packet),
            Piece::Idle(_) => Ok(()),
            Piece::Bad(..) => copy.lose(None),
            Piece::Lost(src, ..) => copy.lose(Some(src)),
        },
    )?;
    Ok(copy.copied)
}

impl Copy<'_> {
    fn skips(&self, src: u16) -> bool {
        self.only.is_some_and(|only| only.0 != u32::from(src))
    }

    fn source(&mut self, src: u16) -> Result<&mut Source, ReencapsulateError> {
        let other = self.sources.keys().copied().find(|known| *known != src);
        if let (Some(other), false) = (other, self.to.has_sources()) {
            let harts = [other, src].map(|src| HartId(src.into()));
            let [one, other] = harts;
            return Err(ReencapsulateError::Harts(one, other));
        }
        let (to, support) = (self.to, self.first);
        Ok(self.sources.entry(src).or_insert_with(|| Source {
            packer: Packer::new(to, src),
            support,
            time: None,
        }))
    }

    fn packet(&mut self, packet: &Encapsulated<'_>) -> Result<(), ReencapsulateError> {
        if self.skips(packet.src) {
            return Ok(());
        }
        if packet.kind == Kind::Data && !self.to.has_kinds() {
            return Err(ReencapsulateError::Data);
        }
        let payload = match self.layout.is_plain() {
            true => shortest(packet.payload),
            false => packet.payload,
        };
        if payload.len() * 8 > self.to.room() {
            return Err(ReencapsulateError::TooLong(payload.len()));
        }
        let is_support = packet.kind == Kind::Instruction
            && payload.first().is_some_and(|first| first & 0xf == 0xf);
        let support = match is_support.then(|| Packet::read(payload, &self.layout)) {
            Some(Ok(Packet::Support(support))) => Some(support),
            _ => None,
        };
        let source = self.source(packet.src)?;
        if let Some(support) = support {
            source.support = support;
        }
        source.time = packet.time;
        let packed = source.packer.pack_timed(packet.kind, payload, packet.time);
        self.copied.packets += 1;
        self.copied.bytes += packed.bytes().len() as u64;
        (self.put)(packed.bytes());
        Ok(())
    }

    /// Packets of one source are missing, or of any.
    fn lose(&mut self, src: Option<u16>) -> Result<(), ReencapsulateError> {
        self.copied.lost += 1;
        let all: Vec<u16> = match src {
            Some(src) if self.skips(src) => return Ok(()),
            Some(src) => vec![src],
            None => self.sources.keys().copied().collect(),
        };
        for src in all {
            let layout = self.layout;
            let source = self.source(src)?;
            let lost = Packet::Support(Support {
                qual_status: QualStatus::TraceLost,
                ..source.support
            });
            let payload = lost.write(&layout);
            let (kind, time) = (Kind::Instruction, source.time);
            let packed = source.packer.pack_timed(kind, payload.bytes(), time);
            self.copied.bytes += packed.bytes().len() as u64;
            (self.put)(packed.bytes());
        }
        Ok(())
    }
}

/// A payload without the bytes that only repeat its last bit. Where a payload does not
/// start with a byte, there may be one.
fn shortest(payload: &[u8]) -> &[u8] {
    let mut payload = payload;
    while let [rest @ .., before, last] = payload
        && *last == if before & 0x80 != 0 { 0xff } else { 0 }
    {
        payload = payload.get(..=rest.len()).unwrap_or_default();
    }
    payload
}

#[cfg(test)]
mod tests;
