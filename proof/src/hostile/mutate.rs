//! Changes to bytes, small and large.

use crate::generate::Random;

/// Numbers at which things break.
const SHARP: [u64; 14] = [
    0,
    1,
    2,
    4,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0xffff_fffe,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_fff0,
    u64::MAX,
];

/// A seed with one to eight changes.
pub(super) fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = any(seeds, random).to_vec();
    for _ in 0..random.between(1, 8) {
        change(&mut bytes, seeds, random);
    }
    bytes
}

fn any<'s>(seeds: &'s [Vec<u8>], random: &mut Random) -> &'s [u8] {
    let at = random.below(seeds.len() as u64) as usize;
    seeds.get(at).map_or(&[], Vec::as_slice)
}

/// A place in the bytes, more often near either end, where headers are.
fn place(len: usize, random: &mut Random) -> usize {
    let len = len as u64;
    let at = match random.below(4) {
        0 => random.below(len.min(256)),
        1 => len.saturating_sub(1 + random.below(len.min(2048))),
        _ => random.below(len),
    };
    at as usize
}

/// Where something of this length lies within the bytes.
fn part(bytes: &[u8], most: u64, random: &mut Random) -> std::ops::Range<usize> {
    let at = place(bytes.len(), random);
    let len = 1 + random.below(most) as usize;
    at..(at + len).min(bytes.len())
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(random.draw() as u8);
        return;
    }
    let at = place(bytes.len(), random);
    match random.below(10) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.draw() as u8;
            }
        }
        3 | 4 => {
            let width = 1 << random.below(4);
            let value = random.pick(&SHARP).to_le_bytes();
            let at = at & !(width - 1);
            for (to, from) in bytes.iter_mut().skip(at).take(width).zip(value) {
                *to = from;
            }
        }
        5 => {
            // A number that stands there, a little larger or smaller.
            let delta = random.below(9) as u8;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = byte.wrapping_add(delta).wrapping_sub(4);
            }
        }
        6 => {
            let cut = part(bytes, 32, random);
            bytes.drain(cut);
        }
        7 => {
            let copied = bytes.get(part(bytes, 64, random)).map(<[u8]>::to_vec);
            bytes.splice(at..at, copied.unwrap_or_default());
        }
        8 => {
            let other = any(seeds, random);
            let taken = other.get(part(other, 256, random)).unwrap_or_default();
            if random.below(2) == 0 {
                bytes.splice(at..at, taken.iter().copied());
            } else {
                for (to, from) in bytes.iter_mut().skip(at).zip(taken) {
                    *to = *from;
                }
            }
        }
        _ => {
            if random.below(4) == 0 {
                bytes.truncate(at);
            } else {
                let span = part(bytes, 32, random);
                for byte in bytes.get_mut(span).unwrap_or_default() {
                    *byte = random.draw() as u8;
                }
            }
        }
    }
}
