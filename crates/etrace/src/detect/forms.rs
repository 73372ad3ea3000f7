//! Which encapsulation the bytes of a stream may have, other than that of the
//! reference models.

use super::{Candidate, Guess, LOOK, best, usual};
use crate::{Config, Encapsulation, Form, Framer, Framing as _, Kind, Packet, Piece};
use alloc::vec::Vec;
use hartrace_isa::Xlen;

/// Packets that are needed for a guess.
const LEAST: u64 = 8;

/// Packets that are looked at.
const ENOUGH: u64 = 2000;

/// Those that are tried, the most certain first.
fn forms() -> Vec<Encapsulation> {
    let mut forms = Vec::from([
        Encapsulation::new(Form::Slots),
        Encapsulation::new(Form::Esp32),
    ]);
    // An SMI message without data trace is a packet of the RISC-V encapsulation, too, with
    // flow = 2.
    let smi = combinations(&[8, 0, 16], &[2, 0]);
    // With neither it is the form of the reference models.
    for (src_bits, time_bytes, _) in smi.filter(|all| all.0 + all.1 > 0) {
        forms.push(Encapsulation {
            src_bits,
            time_bytes,
            ..Encapsulation::new(Form::Smi)
        });
    }
    // Without a time it is a packet of the RISC-V encapsulation, too.
    forms.push(Encapsulation {
        time_bytes: 2,
        ..Encapsulation::new(Form::Atb)
    });
    for (src_bits, time_bytes, type_bits) in combinations(&[0, 8, 4, 16], &[0, 8, 4, 2]) {
        forms.push(Encapsulation {
            src_bits,
            time_bytes,
            type_bits,
            ..Encapsulation::new(Form::Riscv)
        });
    }
    forms
}

/// All combinations of bits of the source, bytes of the time, and bits of the type.
fn combinations<'a>(src: &'a [u8], time: &'a [u8]) -> impl Iterator<Item = (u8, u8, u8)> + 'a {
    let pairs = src.iter().flat_map(|&s| time.iter().map(move |&t| (s, t)));
    pairs.flat_map(|(s, t)| [0, 1].map(|kind| (s, t, kind)))
}

/// What was seen of a stream in one form.
struct Seen {
    packets: u64,
    /// Bits 5 to 7 of the headers, which hardly change.
    headers: Option<u8>,
    steady: bool,
    damaged: u64,
    starts: u64,
    /// The first packet says where the hart is, or about the encoder.
    opens: bool,
}

/// Whether the bytes are packets of a form, all of them, with some of the usual
/// widths; and with which.
pub(super) fn fits(
    bytes: &[u8],
    form: &Encapsulation,
    xlen: Xlen,
    is_code: Option<&dyn Fn(u64) -> bool>,
) -> Option<Guess> {
    let bytes = bytes.get(..LOOK).unwrap_or(bytes);
    let mut candidates = match form.form {
        Form::Slots => usual(xlen).map(|_| Candidate::new(("the PULP tracer", Config::pulp(xlen)))),
        _ => usual(xlen).map(Candidate::new),
    };
    let mut seen = Seen {
        packets: 0,
        headers: None,
        steady: true,
        damaged: 0,
        starts: 0,
        opens: false,
    };
    let (mut framer, mut rest) = (Framer::of(*form), bytes);
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        match piece {
            Piece::Packet(packet) => {
                let first = match form.form {
                    Form::Slots => bytes.get(at as usize + packet.len - 1),
                    _ => bytes.get(at as usize),
                };
                seen.header(*first?, form);
                if packet.kind == Kind::Instruction {
                    seen.packet(packet.payload, &mut candidates, is_code);
                }
            }
            Piece::Idle(_) => {}
            Piece::Bad(..) | Piece::Lost(..) => seen.damaged += 1,
        }
        if seen.packets >= ENOUGH {
            break;
        }
        if !seen.steady || seen.damaged > 0 {
            return None;
        }
    }
    let found = best(candidates, seen.packets, seen.damaged, seen.starts);
    let sensible = found.sensible == seen.starts && seen.starts > 0;
    // Slots are evidence enough if most packets can be read.
    let readable = match form.form {
        Form::Slots => found.bad * 4 <= seen.packets,
        _ => found.bad == 0,
    };
    if !seen.opens || seen.packets < LEAST || !sensible || !readable {
        return None;
    }
    let encapsulation = *form;
    Some(Guess {
        config: Config {
            encapsulation,
            ..found.config.clone()
        },
        ..found
    })
}

impl Seen {
    fn header(&mut self, first: u8, form: &Encapsulation) {
        let fixed = match form.form {
            // The kind may change.
            Form::Smi => first >> 6,
            Form::Atb => first >> 5 & 5,
            _ => first >> 5,
        };
        self.steady &= *self.headers.get_or_insert(fixed) == fixed;
    }

    fn packet(
        &mut self,
        payload: &[u8],
        candidates: &mut [Candidate],
        is_code: Option<&dyn Fn(u64) -> bool>,
    ) {
        let low = payload.first().map_or(0, |first| first & 15);
        self.opens |= self.packets == 0 && matches!(low, 3 | 15);
        self.packets += 1;
        self.starts += u64::from(low == 3);
        for candidate in candidates {
            let layout = candidate.config.layout();
            match Packet::read(payload, &layout) {
                Ok(packet) => candidate.packet(&packet, is_code),
                Err(_) => candidate.bad += 1,
            }
        }
    }
}

/// The settings of a stream in another encapsulation.
pub(super) fn guess(
    bytes: &[u8],
    xlen: Xlen,
    is_code: Option<&dyn Fn(u64) -> bool>,
) -> Option<Guess> {
    let forms = forms();
    forms
        .iter()
        .find_map(|form| fits(bytes, form, xlen, is_code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BranchMap, Packer, Report, Start, Support};

    /// A stream such as an encoder makes, of two sources where packets have one.
    fn stream(config: &Config) -> Vec<u8> {
        let form = config.encapsulation;
        let layout = config.layout();
        let sources = if form.has_sources() { 2 } else { 1 };
        let mut packers: Vec<Packer> = (0..sources).map(|src| Packer::new(form, src)).collect();
        let mut bytes = Vec::new();
        for n in 0..60u64 {
            for packer in &mut packers {
                let packet = match n % 3 {
                    0 if n == 0 => Packet::Support(Support {
                        ienable: true,
                        ioptions: config.ioptions_field(),
                        ..Support::default()
                    }),
                    1 => Packet::Start(Start {
                        branch: true,
                        privilege: 3,
                        address: (0x8000_0000 + 6 * n) >> config.iaddress_lsb,
                        ..Start::default()
                    }),
                    _ => Packet::Branches {
                        map: BranchMap { bits: 5, count: 3 },
                        address: Some(Report {
                            address: 100 + n,
                            ..Report::default()
                        }),
                    },
                };
                let payload = packet.write(&layout);
                let packed = packer.pack(Kind::Instruction, payload.bytes(), 1000 + 7 * n);
                bytes.extend_from_slice(packed.bytes());
            }
        }
        bytes
    }

    fn payloads(bytes: &[u8], form: Encapsulation) -> Vec<Vec<u8>> {
        let (mut framer, mut rest) = (Framer::of(form), bytes);
        let mut payloads = Vec::new();
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            if let Piece::Packet(packet) = piece {
                payloads.push(packet.payload.to_vec());
            }
        }
        payloads
    }

    #[test]
    fn each_form_is_recognised() {
        for form in forms() {
            let mut config = match form.form {
                Form::Slots => Config::pulp(Xlen::Rv64),
                _ => Config::new(crate::Version::V2_0, Xlen::Rv64),
            };
            config.encapsulation = form;
            let bytes = stream(&config);
            let is_code = |address: u64| (0x8000_0000..0x8000_1000).contains(&address);
            let found = super::super::guess(&bytes, Xlen::Rv64, Some(&is_code));
            let found = found.unwrap_or_else(|| panic!("{form:?}"));
            let read = found.config.encapsulation;
            // Source and time may be taken for a longer time.
            assert_eq!(payloads(&bytes, read), payloads(&bytes, form), "{read:?}");
            assert_eq!(read.form, form.form);
            assert_eq!(found.damaged, 0, "{form:?}");
        }
    }
}
