//! Files of perf, written byte by byte.

use super::*;
use hartrace_testkit::Random;

/// A record: its type, its bits, its body, and when it was (`PERF_SAMPLE_TID | TIME`).
fn record(kind: u32, misc: u16, body: &[&[u8]], time: u64) -> Vec<u8> {
    let mut body = body.concat();
    body.resize(body.len().next_multiple_of(8), 0);
    body.extend([0; 8]);
    body.extend(time.to_le_bytes());
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((body.len() as u16 + 8).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn attr() -> Vec<u8> {
    let mut attr = vec![0; 128];
    attr[4] = 128;
    attr[24..32].copy_from_slice(&(sample::TID | sample::TIME).to_le_bytes());
    attr[40..48].copy_from_slice(&SAMPLE_ID_ALL.to_le_bytes());
    attr
}

fn file(records: &[Vec<u8>]) -> Vec<u8> {
    let data = records.concat();
    let mut file = MAGIC.to_vec();
    for word in [104, 144, 104, 144, 248, data.len() as u64, 0, 0, 0, 0, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(attr());
    file.extend([0; 16]);
    file.extend(data);
    file
}

fn pipe(records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(16u64.to_le_bytes());
    file.extend(64u32.to_le_bytes());
    file.extend([0, 0, 136, 0]);
    file.extend(attr());
    file.extend(records.concat());
    file
}

fn words(list: &[u64]) -> Vec<u8> {
    list.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn records() -> Vec<Vec<u8>> {
    let ids = |list: &[u32]| {
        list.iter()
            .flat_map(|id| id.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let build_id = [&[20, 0, 0, 0][..], &[7; 20]].concat();
    vec![
        record(3, COMM_EXEC, &[&ids(&[12, 12]), b"prog\0"], 100),
        record(
            10,
            MMAP_BUILD_ID,
            &[
                &ids(&[12, 12]),
                &words(&[0x1000, 64, 0]),
                &build_id,
                &ids(&[5, 2]),
                b"/bin/prog\0",
            ],
            101,
        ),
        // Data: of no use here.
        record(
            1,
            MMAP_DATA,
            &[&ids(&[12, 12]), &words(&[0x9000, 64, 0]), b"/data\0"],
            102,
        ),
        record(7, 0, &[&ids(&[13, 12, 13, 12]), &words(&[103])], 103),
        record(
            20,
            0,
            &[&words(&[0x1004]), &[2, 0, 4, 0], &[1, 0], &[0x13, 0, 0, 0]],
            120,
        ),
        // Hardware trace, with bytes after it.
        [
            &record(71, 0, &[&words(&[16, 0, 0, 0, 0, 0])], 0)[..],
            &[0xff; 16],
        ]
        .concat(),
        record(
            17,
            0,
            &[&words(&[0x8000]), &[32, 0, 0, 0, 1, 0, 1, 0], b"bpf\0"],
            110,
        ),
        record(4, 0, &[&ids(&[13, 12, 13, 12]), &words(&[130])], 130),
        record(68, 0, &[], 0),
    ]
}

#[test]
fn records_are_read_in_order_of_time() {
    let data = PerfData::read(&file(&records())).unwrap();
    let times: Vec<_> = data
        .records
        .iter()
        .map(|record| record.time.unwrap())
        .collect();
    assert_eq!(times, [100, 101, 103, 110, 120, 130]);
    assert!(
        matches!(&data.records[0].what, PerfEvent::Comm { pid: 12, name, exec: true, .. } if name == "prog")
    );
    let map = PerfEvent::Map(Mapping {
        pid: 12,
        address: 0x1000,
        len: 64,
        file_offset: 0,
        file: "/bin/prog".to_owned(),
        build_id: Some(vec![7; 20]),
    });
    assert_eq!(data.records[1].what, map);
    let poke = PerfEvent::Poke {
        address: 0x1004,
        old: vec![1, 0],
        new: vec![0x13, 0, 0, 0],
    };
    assert_eq!(data.records[4].what, poke);
    let what = |data: &PerfData| -> Vec<PerfEvent> {
        data.records
            .iter()
            .map(|record| record.what.clone())
            .collect()
    };
    let piped = PerfData::read(&pipe(&records())).unwrap();
    assert_eq!(what(&piped), what(&data), "the same through a pipe");
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let whole = file(&records());
    for end in 0..whole.len() {
        assert!(PerfData::read(&whole[..end]).is_err(), "{end}");
    }
    // Through a pipe it may end after any record.
    let whole = pipe(&records());
    let read = |end: usize| PerfData::read(&whole[..end]);
    let good = (16..whole.len()).filter(|end| read(*end).is_ok()).count();
    assert_eq!(good, records().len() + 1);
    let mut unfinished = file(&records());
    unfinished[48..56].fill(0);
    assert_eq!(PerfData::read(&unfinished), Err(PerfError::CutOff(248)));
}

#[test]
fn damaged_files_do_no_harm() {
    let mut random = Random::new(3);
    for whole in [file(&records()), pipe(&records())] {
        for _ in 0..3000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            if let Ok(data) = PerfData::read(&bytes) {
                assert!(data.records.len() <= bytes.len() / 8);
            }
        }
    }
}

#[test]
fn other_files_are_named() {
    for (bytes, error) in [
        (&b"\x7fELF"[..], PerfError::NotPerf),
        (b"2ELIFREP", PerfError::BigEndian),
    ] {
        assert_eq!(PerfData::read(bytes), Err(error));
    }
    let zipped = file(&[record(81, 0, &[&[1; 16]], 0)]);
    assert_eq!(PerfData::read(&zipped), Err(PerfError::Compressed(248)));
}
