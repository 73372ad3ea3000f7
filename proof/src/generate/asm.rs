//! Instructions as bytes; their encoders are those of `hartrace-testkit`.

use hartrace_isa::length;
pub use hartrace_testkit::asm::*;

/// An instruction as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    bytes: [u8; 22],
    len: u8,
}

impl Code {
    /// A 16- or 32-bit instruction, as its low bits say.
    #[must_use]
    pub fn new(bits: u32) -> Code {
        let mut bytes = [0; 22];
        for (to, from) in bytes.iter_mut().zip(bits.to_le_bytes()) {
            *to = from;
        }
        Code {
            bytes,
            len: length(bits as u16).min(4),
        }
    }

    /// An instruction of 48 bits or more: `parcel` gives the length, `fill`
    /// the rest.
    #[must_use]
    pub fn long(parcel: u16, mut fill: impl FnMut() -> u8) -> Code {
        let [a, b] = parcel.to_le_bytes();
        let mut code = Code {
            bytes: [0; 22],
            len: length(parcel),
        };
        for (at, to) in code.bytes.iter_mut().enumerate() {
            *to = match at {
                0 => a,
                1 => b,
                _ if at < usize::from(code.len) => fill(),
                _ => 0,
            };
        }
        code
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The bits a trace step shows: the first 32 at most.
    #[must_use]
    pub fn bits(&self) -> u32 {
        let [a, b, c, d, ..] = self.bytes;
        u32::from_le_bytes([a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::{Const, Flow, Isa, Link, Reg};

    fn random_offsets(bits: u32) -> impl Iterator<Item = i64> {
        let mut r = super::super::Random::new(u64::from(bits));
        (0..500).map(move |_| ((r.draw() as i64) >> (64 - bits)) & !1)
    }

    #[test]
    fn offsets_survive_the_classification() {
        for offset in random_offsets(13) {
            let flow = Flow::of(branch(1, 3, 4, offset), Isa::RV64GC);
            assert_eq!(
                flow,
                Flow::Branch {
                    offset: offset as i32
                }
            );
        }
        for offset in random_offsets(21) {
            let flow = Flow::of(jal(1, offset), Isa::RV64GC);
            let link = Link::Call;
            assert_eq!(
                flow,
                Flow::Jump {
                    offset: offset as i32,
                    link
                }
            );
        }
        for offset in random_offsets(12) {
            let link = Link::None;
            let flow = Flow::of(c_j(false, offset), Isa::RV64GC);
            assert_eq!(
                flow,
                Flow::Jump {
                    offset: offset as i32,
                    link
                }
            );
            let link = Link::Call;
            let flow = Flow::of(c_j(true, offset), Isa::RV32GC);
            assert_eq!(
                flow,
                Flow::Jump {
                    offset: offset as i32,
                    link
                }
            );
        }
        for offset in random_offsets(9) {
            let flow = Flow::of(c_branch(true, 9, offset), Isa::RV64GC);
            assert_eq!(
                flow,
                Flow::Branch {
                    offset: offset as i32
                }
            );
        }
    }

    #[test]
    fn constants_survive_the_classification() {
        for high in [0x1000, 0x1_f000, 0xfffe_0000, 0xffff_f000] {
            for bits in [lui(9, high >> 12), c_lui(9, high >> 12)] {
                let value = Const::Absolute(high as i32);
                let rd = Reg::new(9);
                assert_eq!(Flow::of(bits, Isa::RV64GC), Flow::Const { rd, value });
            }
        }
    }

    #[test]
    fn long_instructions_have_their_length() {
        for (parcel, len) in [(0x1f, 6), (0x3f, 8), (0x7f, 10), (0x607f, 22)] {
            let code = Code::long(parcel, || 0xaa);
            assert_eq!(code.bytes().len(), len);
            assert_eq!(code.bits() & 0xffff, u32::from(parcel));
        }
        assert_eq!(Code::new(0x8082).bytes(), [0x82, 0x80]);
    }
}
