//! Compressed parts of a file. Every function takes the length that the file claims, and
//! gives `None` if what it unpacks has another one. A claim that the packed bytes cannot
//! fulfil takes no memory.

use crate::bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};

/// A byte of zlib, or of lz4, gives no more bytes than this.
const MOST: usize = 1100;

/// Makes room for so many bytes, if the packed ones can give them.
fn reserve(packed: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    let most = packed.len().saturating_mul(MOST).saturating_add(64);
    out.clear();
    // One more, so that the end of what is packed is seen.
    (length <= most).then(|| out.reserve(length + 1))
}

pub(super) fn zlib(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    zlib_into(packed, length, &mut out)?;
    Some(out)
}

/// As [`zlib`], into memory that is there.
pub(super) fn zlib_into(packed: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    reserve(packed, length, out)?;
    inflate(packed, true, length, out)
}

pub(super) fn gzip(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    // Without any of the optional fields, which no writer has.
    let [0x1f, 0x8b, 8, 0, _, _, _, _, _, _, packed @ ..] = packed else {
        return None;
    };
    let mut out = Vec::new();
    reserve(packed, length, &mut out)?;
    inflate(packed, false, length, &mut out)?;
    Some(out)
}

/// Unpacks into a vector that has room for all of it, and does not grow.
fn inflate(packed: &[u8], zlib: bool, length: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut inflater = Decompress::new(zlib);
    let status = inflater
        .decompress_vec(packed, out, FlushDecompress::Finish)
        .ok()?;
    (status == Status::StreamEnd && out.len() == length).then_some(())
}

/// A block of lz4.
pub(super) fn lz4(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    lz4_into(packed, length, &mut out)?;
    Some(out)
}

pub(super) fn lz4_into(packed: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    reserve(packed, length, out)?;
    let mut rest = packed;
    let extended = |rest: &mut &[u8], nibble: u8| -> Option<usize> {
        let mut count = usize::from(nibble);
        if nibble == 15 {
            loop {
                let (byte, after) = rest.split_first()?;
                *rest = after;
                count += usize::from(*byte);
                if *byte < 255 {
                    break;
                }
            }
        }
        Some(count)
    };
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let literals = extended(&mut rest, token >> 4)?;
        let (copied, after) = rest.split_at_checked(literals)?;
        rest = after;
        if out.len() + literals > length {
            return None;
        }
        out.extend_from_slice(copied);
        if rest.is_empty() {
            break;
        }
        let (distance, after) = rest.split_at_checked(2)?;
        rest = after;
        let distance = usize::from(u16::from_le_bytes(distance.try_into().ok()?));
        let count = extended(&mut rest, token & 15)? + 4;
        repeat(out, distance, count, length)?;
    }
    (out.len() == length).then_some(())
}

/// Appends what stands `distance` bytes before the end, which may overlap what is appended.
#[inline]
fn repeat(out: &mut Vec<u8>, distance: usize, count: usize, length: usize) -> Option<()> {
    let start = out.len().checked_sub(distance).filter(|_| distance > 0)?;
    if out.len() + count > length {
        return None;
    }
    if distance >= count {
        out.extend_from_within(start..start + count);
        return Some(());
    }
    let mut left = count;
    while left > 0 {
        // What has been appended repeats as well.
        let part = left.min(out.len() - start);
        out.extend_from_within(start..start + part);
        left -= part;
    }
    Some(())
}

/// FastLZ, level 1 or 2.
pub(super) fn fastlz_into(packed: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    reserve(packed, length, out)?;
    let level_2 = match packed.first()? >> 5 {
        0 => false,
        1 => true,
        _ => return None,
    };
    let mut bytes = Bytes::new(packed);
    let mut code = bytes.byte()? & 31;
    loop {
        if code < 32 {
            let count = usize::from(code) + 1;
            let literals = bytes.take(count)?;
            if out.len() + count > length {
                return None;
            }
            out.extend_from_slice(literals);
        } else {
            let mut count = usize::from(code >> 5) + 2;
            if code >> 5 == 7 {
                loop {
                    let more = bytes.byte()?;
                    count += usize::from(more);
                    if !level_2 || more < 255 {
                        break;
                    }
                }
            }
            let low = bytes.byte()?;
            let mut distance = usize::from(code & 31) << 8 | usize::from(low);
            if level_2 && low == 255 && code & 31 == 31 {
                let far = usize::from(bytes.byte()?) << 8;
                distance = 8191 + (far | usize::from(bytes.byte()?));
            }
            repeat(out, distance + 1, count, length)?;
        }
        match bytes.byte() {
            Some(next) => code = next,
            None => break,
        }
    }
    (out.len() == length).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_zlib_packs_is_unpacked() {
        let text: Vec<u8> = (0..10_000u32).flat_map(|n| (n * n).to_be_bytes()).collect();
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
        packer.write_all(&text).unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(zlib(&packed, text.len()), Some(text.clone()));
        assert_eq!(zlib(&packed, text.len() - 1), None);
        assert_eq!(zlib(&packed, text.len() + 1), None);
        assert_eq!(zlib(&packed[..packed.len() / 2], text.len()), None);
        // A claim that cannot be takes no memory.
        assert_eq!(zlib(&packed, usize::MAX), None);
    }

    /// Examples by hand from the description of the format.
    #[test]
    fn blocks_of_lz4() {
        // Five literals, then 8 bytes from 4 back, then one literal.
        let packed = [0x54, b'a', b'b', b'c', b'd', b'e', 4, 0, 0x10, b'!'];
        assert_eq!(lz4(&packed, 14), Some(b"abcdebcdebcde!".to_vec()));
        // A run of one byte: the distance is shorter than the count.
        let packed = [0x1f, b'x', 1, 0, 5, 0x00];
        assert_eq!(lz4(&packed, 25), Some(vec![b'x'; 25]));
        for bad in [
            &[0x10, b'a', 2, 0][..],
            &[0x10],
            &[0xf0, 255],
            &[0x10, b'a', 0, 0],
        ] {
            assert_eq!(lz4(bad, 5), None, "{bad:?}");
        }
    }

    #[test]
    fn blocks_of_fastlz() {
        let mut out = Vec::new();
        // Three literals, then five from three back.
        let packed = [2, b'a', b'b', b'c', 3 << 5, 2];
        assert_eq!(fastlz_into(&packed, 8, &mut out), Some(()));
        assert_eq!(out, b"abcabcab");
        assert_eq!(fastlz_into(&[2, b'a'], 3, &mut out), None);
        assert_eq!(fastlz_into(&[0, b'a', 3 << 5, 9], 6, &mut out), None);
        // Level 2 has longer runs.
        let packed = [1 << 5, b'z', 7 << 5, 255, 1, 0];
        assert_eq!(fastlz_into(&packed, 1 + 9 + 256, &mut out), Some(()));
        assert_eq!(out, [b'z'; 266]);
    }
}
