//! What code histories are made of, and the histories themselves.

use std::path::Path;

use hartrace_capture::code_history::{CodeFile, CodeSources, ContextOf, PerfOptions};
use hartrace_flow::{CodeHistory, Context, HartId, Image, SpaceId, Spot};
use hartrace_isa::Isa;

use super::ensure;

/// A history that was made can be written, read again and used.
fn usable(sources: &CodeSources, slack: u64) -> Result<(), String> {
    let history = match sources.make(slack) {
        Ok(history) => history,
        Err(error) => return ensure(!error.to_string().is_empty(), || "no words".into()),
    };
    let isa = Isa::RV64GC;
    let file = CodeFile { isa, history };
    let again = CodeFile::read(&file.to_bytes()).map_err(|error| error.to_string())?;
    ensure(again == file, || "another one is read".into())?;
    look(&file.history);
    Ok(())
}

/// Looks at the code of a history from several moments.
fn look(history: &CodeHistory) {
    let mut image = Image::new();
    history.add_to(&mut image, Isa::RV64GC);
    for code in history.varying.iter().take(100) {
        for (time, context) in [(None, None), (Some(5), Some(1)), (Some(u64::MAX), None)] {
            let spot = Spot {
                hart: HartId(0),
                context: context.map(Context),
                sync: time.map(|time| (time, 0)),
                time,
            };
            let sighting = image.sight(SpaceId::FIRST, code.address, &spot);
            if let Some(space) = sighting.space {
                let _ = image.fetch(space, code.address);
            }
        }
    }
}

/// Any text is a list of patches or is refused with its line.
pub(super) fn patches(bytes: &[u8]) -> Result<(), String> {
    let mut sources = CodeSources::new();
    let added = sources.add_patch_bytes(Path::new("list"), bytes, &mut |_| Ok(vec![1; 40]));
    match added {
        Ok(()) => usable(&sources, bytes.len() as u64 % 3),
        Err(error) => {
            let words = error.to_string();
            ensure(words.starts_with("list:"), || words)
        }
    }
}

pub(super) fn patches_seeds() -> Vec<Vec<u8>> {
    [
        "0x1000 130000001300000013000000\n0x1004 6f008000 was 13000000 time 5120\n",
        "0x1000 file a.bin context 1\n0x1008 0100 message 0x1a4+12 hart 0 # a comment\n",
        "0x2000 file b\n8196 unsure 8\n0x2008 gone 0xffffffffff time 9\n0x2000 0100 time 10",
        "0xfffffffffffffff0 0100010001000100\n0 01 was 02",
        // A change of no bytes in the middle of a terabyte without code.
        "0x2008196 unsure 0 time 108\n0x2008 gone 0xffffffffff time 9\n0x2000 0100 time 10",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect()
}

/// Any bytes are a file of perf or are refused with words.
pub(super) fn perf(bytes: &[u8]) -> Result<(), String> {
    let contexts = [
        ContextOf::Pid,
        ContextOf::Only(7),
        ContextOf::Process(7, Context(1)),
    ];
    let number = bytes.len() % 4;
    let options = PerfOptions {
        contexts: contexts.get(..number).unwrap_or_default().to_vec(),
        vmlinux: Some("vmlinux".into()),
        ..PerfOptions::default()
    };
    let mut sources = CodeSources::new();
    let mut read = |_: &Path| Some(vec![1; 4000]);
    match sources.add_perf_bytes(Path::new("perf"), bytes, &options, &mut read) {
        Ok(_) => usable(&sources, 0),
        Err(error) => ensure(!error.to_string().is_empty(), || "no words".into()),
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A record of perf.
fn record(kind: u64, body: &[u64]) -> Vec<u8> {
    let head = kind | (body.len() as u64 * 8 + 8) << 48;
    [words(&[head]), words(body)].concat()
}

/// A small file, and one from a pipe: a program that is mapped, forks, is patched and ends.
pub(super) fn perf_seeds() -> Vec<Vec<u8>> {
    let attr = words(&[
        128 << 32,
        0,
        0,
        1 << 1 | 1 << 2,
        0,
        1 << 18,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ]);
    let text = |text: &[u8; 8]| u64::from_le_bytes(*text);
    let (id, rights) = (7 | 7 << 32, 5 | 2 << 32);
    let child = 8 | 7 << 32;
    let records = [
        record(3 | 1 << 45, &[id, text(b"prog\0\0\0\0"), id, 1]),
        record(
            10,
            &[
                id,
                0x1000,
                4000,
                0,
                0,
                0,
                0,
                rights,
                text(b"/prog\0\0\0"),
                id,
                2,
            ],
        ),
        record(7, &[child, child, 3, id, 3]),
        record(20, &[0x1010, 2 | 4 << 16 | 1 << 32, 0x13, id, 4]),
        record(
            17,
            &[
                0x1100,
                64 | 1 << 32 | 1 << 48,
                text(b"bpf\0\0\0\0\0"),
                id,
                5,
            ],
        ),
        record(4, &[id, id, 6, id, 6]),
        record(79, &[10, 1024, 5, 0, 0]),
    ]
    .concat();
    let size = records.len() as u64;
    let header = [104, 144, 104, 144, 248, size, 0, 0, 0, 0, 0, 0];
    let magic = b"PERFILE2".to_vec();
    let file = [
        &magic[..],
        &words(&header),
        &attr,
        &words(&[0, 0]),
        &records,
    ]
    .concat();
    let pipe = [&magic[..], &words(&[16, 64 | 136 << 48]), &attr, &records].concat();
    vec![file, pipe]
}

/// Any content of a code history is one or is refused; a decoder can use it.
pub(super) fn file(bytes: &[u8]) -> Result<(), String> {
    let magic = b"\x89HTCODE\n\x01".to_vec();
    // Packed here: a checksum would not survive a mutation.
    match CodeFile::read(&[magic, stored(bytes)].concat()) {
        Ok(file) => {
            let again = CodeFile::read(&file.to_bytes()).map_err(|error| error.to_string())?;
            ensure(again == file, || "another one is read".into())?;
            look(&file.history);
            Ok(())
        }
        Err(error) => ensure(!error.to_string().is_empty(), || "no words".into()),
    }
}

/// Bytes as a gzip member (RFC 1952) without compression.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for chunk in bytes.chunks(0xffff) {
        let len = chunk.len() as u16;
        out.push(0);
        out.extend(len.to_le_bytes());
        out.extend((!len).to_le_bytes());
        out.extend(chunk);
    }
    // The last one is empty.
    out.extend([1, 0, 0, 0xff, 0xff]);
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    out.extend((!crc).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

pub(super) fn file_seeds() -> Vec<Vec<u8>> {
    let history = "0x1000 130000001300000013000000\n0x1004 6f008000 time 5120\n\
        0x1008 0100 message 0x1a4+12 hart 0\n0x1000 unsure 2 context 3\n";
    let mut sources = CodeSources::new();
    let list = Path::new("list");
    let added = sources.add_patch_bytes(list, history.as_bytes(), &mut |_| Ok(Vec::new()));
    let made = added.ok().and_then(|()| sources.make(0).ok());
    let isa = Isa::RV64GC;
    let file = made.map(|history| CodeFile { isa, history }.to_bytes());
    let unpacked = file.and_then(|file| CodeFile::unpack(&file).ok());
    unpacked.into_iter().collect()
}
