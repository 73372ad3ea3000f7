//! One stream out of several that were kept apart by their ids.

use hartrace_etrace as etrace;
use hartrace_flow::decode::Framing as _;
use hartrace_ntrace as ntrace;
use std::collections::BTreeMap;

/// What stands for damage in N-Trace: a damaged message.
const NTRACE_LOST: [u8; 2] = [0x02, 0xff];

/// Puts whole packets of E-Trace one after the other, each with its source, as they end.
pub(super) struct MergeEtrace {
    form: etrace::Encapsulation,
    /// By id: what finds packets, and what writes them.
    sources: BTreeMap<u8, (etrace::Framer, etrace::Packer)>,
    /// Sources of data packets have ids so much higher, where packets do not tell.
    data_offset: Option<u8>,
    out: Vec<u8>,
}

impl MergeEtrace {
    pub(super) fn new(form: etrace::Encapsulation, data_offset: Option<u8>) -> MergeEtrace {
        MergeEtrace {
            form,
            sources: BTreeMap::new(),
            data_offset,
            out: Vec::new(),
        }
    }

    pub(super) fn byte(&mut self, id: u8, byte: u8) {
        let data = self.data_offset.filter(|offset| id >= *offset);
        let src = u16::from(id - data.unwrap_or(0));
        let form = self.form;
        let source = self.sources.entry(id).or_insert_with(|| {
            let packer = etrace::Packer::new(etrace::Encapsulation::MERGED, src);
            // A capture may begin with the rest of a packet.
            (etrace::Framer::of(form), packer)
        });
        let (framer, packer) = source;
        let mut rest: &[u8] = &[byte];
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            put(&piece, data.is_some(), packer, &mut self.out);
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        for (framer, packer) in self.sources.values_mut() {
            if let Some((_, piece)) = framer.finish() {
                put(&piece, false, packer, &mut self.out);
            }
        }
        self.out
    }
}

fn put(piece: &etrace::Piece<'_>, data: bool, packer: &mut etrace::Packer, out: &mut Vec<u8>) {
    let packed = match *piece {
        etrace::Piece::Idle(_) => return,
        etrace::Piece::Packet(packet) => {
            let kind = match data {
                true => etrace::Kind::Data,
                false => packet.kind,
            };
            packer.pack_timed(kind, packet.payload, packet.time)
        }
        etrace::Piece::Bad(fault, bytes) => packer.mark(fault, bytes),
        etrace::Piece::Lost(_, fault, value, _) => packer.mark(fault, value),
    };
    out.extend_from_slice(packed.bytes());
}

/// Puts whole messages of N-Trace one after the other, as they end. Their source is in
/// them.
#[derive(Default)]
pub(super) struct MergeNtrace {
    sources: BTreeMap<u8, ntrace::Framer>,
    out: Vec<u8>,
}

impl MergeNtrace {
    pub(super) fn byte(&mut self, id: u8, byte: u8) {
        let framer = self.sources.entry(id).or_default();
        let mut rest: &[u8] = &[byte];
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            match piece {
                ntrace::Piece::Message(message) => self.out.extend_from_slice(message),
                ntrace::Piece::Idle(_) => {}
                ntrace::Piece::Bad(..) => self.out.extend_from_slice(&NTRACE_LOST),
            }
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.out
    }
}
