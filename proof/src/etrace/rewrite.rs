//! Writes the same packets as other bytes: longer than necessary, with padding
//! and data packets between them.

use hartrace_etrace::{Config, Encapsulated, Framer, Kind, Layout, MAX_PAYLOAD, Packet, Piece};
use hartrace_flow::decode::Framing as _;

use crate::generate::Random;

/// A support packet says that there is data trace, if it has room for that.
fn with_data(payload: &[u8], layout: &Layout) -> Vec<u8> {
    match Packet::read(payload, layout) {
        Ok(Packet::Support(mut support)) => {
            if let Some(data) = &mut support.data {
                data.denable = true;
            }
            let payload = Packet::Support(support).write(layout);
            payload.bytes().to_vec()
        }
        _ => payload.to_vec(),
    }
}

/// Payloads are as long as they were or longer: whole packets, and what
/// encoders send that compress less than they might.
pub(super) fn rewrite(config: &Config, bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut r = Random::new(seed);
    let always = r.chance(300);
    let mut out = Vec::new();
    let layout = config.layout();
    let mut framer = Framer::new();
    let mut rest = bytes;
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        let Piece::Packet(Encapsulated {
            kind: Kind::Instruction,
            payload,
            ..
        }) = piece
        else {
            continue;
        };
        let payload = &with_data(payload, &layout);
        let more = match r.below(4) {
            _ if always => MAX_PAYLOAD,
            0 => MAX_PAYLOAD,
            1 | 2 => payload.len() + r.below(9) as usize,
            _ => payload.len(),
        };
        let len = more.min(MAX_PAYLOAD);
        out.push(0x40 | len as u8);
        out.extend_from_slice(payload);
        let sign = payload.last().is_some_and(|b| b & 0x80 != 0);
        let fill = if sign { 0xff } else { 0 };
        out.extend(std::iter::repeat_n(fill, len.saturating_sub(payload.len())));
        if r.chance(50) {
            out.extend(std::iter::repeat_n(0, r.below(40) as usize));
        }
        if config.doptions_width.is_some() && r.chance(20) {
            let len = 1 + r.below(MAX_PAYLOAD as u64) as u8;
            out.push(0x60 | len);
            out.extend((0..len).map(|_| r.draw() as u8));
        }
    }
    out
}
