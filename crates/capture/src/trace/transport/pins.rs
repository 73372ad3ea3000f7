//! Samples of a pin interface with E-Trace: on fewer than eight pins, a byte may start
//! at any sample.

use super::Pib;
use hartrace_etrace::Encapsulation;

/// The bytes in the samples of a port. The first sample starts a byte. After a
/// synchronisation sequence (e-trace-encap 2.3) the bit that ends it is the last of a
/// byte, whatever was before.
#[must_use]
pub fn read_pins(samples: &[u8], pib: Pib, form: &Encapsulation) -> Vec<u8> {
    let mut samples = samples.to_vec();
    pib.order.turn(&mut samples);
    let width = pib.width.bits();
    if width >= 8 {
        return samples;
    }
    for byte in &mut samples {
        *byte = pib.turn(*byte);
    }
    let zeros = form.alignment_zeros();
    let (mut out, mut byte, mut have, mut run) = (Vec::new(), 0u8, 0, 0u32);
    for bit in samples.iter().flat_map(|s| (0..8).map(move |n| s >> n & 1)) {
        byte |= bit << have;
        have += 1;
        let aligns = zeros.is_some_and(|zeros| bit == 1 && run >= zeros);
        if aligns && have != 8 {
            // The bits since the last byte are of none.
            byte = 0x80;
        }
        if have == 8 || aligns {
            out.push(byte);
            (byte, have) = (0, 0);
        }
        run = match bit {
            0 => run.saturating_add(1),
            _ => 0,
        };
    }
    out
}

/// The samples of a stream.
#[must_use]
pub fn write_pins(stream: &[u8], pib: Pib) -> Vec<u8> {
    let mut samples: Vec<u8> = stream.iter().map(|&byte| pib.turn(byte)).collect();
    pib.order.turn(&mut samples);
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Order, PibWidth};
    use hartrace_etrace::{Form, Kind, Packer};

    #[test]
    fn every_width_and_order_there_and_back() {
        let form = Encapsulation::new(Form::Riscv);
        let mut packer = Packer::new(form, 0);
        let mut stream = Vec::new();
        for n in 0..50 {
            stream.extend_from_slice(packer.pack(Kind::Instruction, &[0x1f, n], 0).bytes());
        }
        stream.resize(stream.len().next_multiple_of(4), 0);
        for width in [
            PibWidth::One,
            PibWidth::Two,
            PibWidth::Four,
            PibWidth::Eight,
            PibWidth::Sixteen,
        ] {
            for high_first in [false, true] {
                for order in [Order::Plain, Order::Swapped16, Order::Swapped32] {
                    let pib = Pib {
                        width,
                        high_first,
                        order,
                    };
                    let samples = write_pins(&stream, pib);
                    assert_eq!(read_pins(&samples, pib, &form), stream);
                }
            }
        }
    }

    /// A capture that starts with any bit is in order from the first sequence on.
    #[test]
    fn a_sequence_shows_where_bytes_start() {
        let form = Encapsulation {
            sync_bytes: 30,
            ..Encapsulation::new(Form::Riscv)
        };
        let mut packer = Packer::new(form, 0);
        let mut stream = Vec::new();
        for n in 0..40 {
            stream.extend_from_slice(packer.pack(Kind::Instruction, &[0xf3, n | 1], 0).bytes());
        }
        for lost in 1..8 {
            let bits = stream.iter().flat_map(|s| (0..8).map(move |n| s >> n & 1));
            let bits: Vec<u8> = bits.skip(45 * 8 + lost).collect();
            let samples = bits.chunks(8).map(|byte| {
                let bits = byte.iter().enumerate();
                bits.fold(0, |byte, (n, bit)| byte | bit << n)
            });
            let samples: Vec<u8> = samples.collect();
            let found = read_pins(&samples, Pib::new(PibWidth::One), &form);
            let last = &stream[stream.len() - 100..];
            assert!(
                found.ends_with(&last[..99]) || found.ends_with(last),
                "{lost}"
            );
        }
    }
}
