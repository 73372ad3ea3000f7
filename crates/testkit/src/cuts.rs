//! Bytes cut at any position, and damaged bytes.

use std::fmt::Debug;

use crate::Random;

/// Every division of the bytes into two pieces, then single bytes.
pub fn cuts(bytes: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let halves = (0..=bytes.len()).map(|at| {
        let (a, b) = bytes.split_at(at);
        vec![a, b]
    });
    halves.chain(std::iter::once_with(|| bytes.chunks(1).collect()))
}

/// Asserts that the bytes give the same wherever they are cut, and gives it.
///
/// # Panics
///
/// If a division gives something else.
pub fn assert_any_cut<T: PartialEq + Debug>(bytes: &[u8], read: impl Fn(&[&[u8]]) -> T) -> T {
    let whole = read(&[bytes]);
    for pieces in cuts(bytes) {
        let (count, first) = (pieces.len(), pieces.first().map_or(0, |p| p.len()));
        assert_eq!(
            read(&pieces),
            whole,
            "in {count} pieces, the first of {first}"
        );
    }
    whole
}

/// The bytes in pieces of random size, some of them empty.
pub fn pieces<'b>(bytes: &'b [u8], random: &mut Random) -> Vec<&'b [u8]> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let most = random.one_of([3, 40, 700]);
        let (head, tail) = rest.split_at(rest.len().min(random.index(most)));
        out.push(head);
        rest = tail;
    }
    out
}

/// Inverts so many bits, each anywhere.
pub fn flip_bits(bytes: &mut [u8], count: usize, random: &mut Random) {
    for _ in 0..count {
        let at = random.index(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << random.below(8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole() {
        let bytes: Vec<u8> = (0..200).collect();
        assert_eq!(cuts(&bytes).count(), 202);
        assert!(cuts(&bytes).all(|pieces| pieces.concat() == bytes));
        let random = &mut Random::new(1);
        assert_eq!(pieces(&bytes, random).concat(), bytes);
        assert_eq!(assert_any_cut(&bytes, |pieces| pieces.concat()), bytes);
    }

    #[test]
    fn one_flip_is_one_bit() {
        let mut bytes = [0u8; 9];
        flip_bits(&mut bytes, 1, &mut Random::new(1));
        let ones: u32 = bytes.iter().map(|b| b.count_ones()).sum();
        assert_eq!(ones, 1);
        flip_bits(&mut [], 3, &mut Random::new(1));
    }
}
