use alloc::vec;

use hartrace_testkit::Random;

use super::*;

fn full() -> Snapshot {
    let entry = |n: u64| Record {
        ctrsource: 0x8000_0000 + n * 4 + 1,
        ctrtarget: u64::MAX - n,
        ctrdata: n << 16 | 0x8009,
    };
    Snapshot {
        hart: HartId(7),
        pc: Some(0x8000_1234),
        mode: Some(Mode::VS),
        instructions: Some(1 << 40),
        cycles: Some(u64::MAX),
        version: Version::V0_1_4,
        xlen: Xlen::Rv64,
        control: 0x0000_ff7e_000f_1f87,
        guest_control: 0x1234_5678_9abc_def0,
        status: 0xdead_beef,
        depth: 256,
        entries: (0..256).map(entry).collect(),
    }
}

fn bare() -> Snapshot {
    Snapshot {
        xlen: Xlen::Rv32,
        entries: vec![Record::default(); 16],
        ..Snapshot::default()
    }
}

/// With an invalid entry that still holds something, as RAS emulation leaves.
fn gaps() -> Snapshot {
    let mut snapshot = bare();
    snapshot.depth = 32;
    snapshot.mode = Some(Mode::U);
    snapshot.entries.resize(32, Record::default());
    snapshot.entries[3].ctrsource = 0x1001;
    snapshot.entries[9].ctrsource = 0x2000;
    snapshot
}

fn dump(snapshots: &[Snapshot]) -> Vec<u8> {
    let mut file = Vec::new();
    write_start(&mut file);
    for snapshot in snapshots {
        write_snapshot(snapshot, &mut file);
    }
    file
}

/// Everything a reader says, the bytes given in chunks.
fn read_all(file: &[u8], chunk: usize) -> (Vec<Snapshot>, Vec<Problem>) {
    let mut reader = DumpReader::new();
    let (mut snapshots, mut problems) = (Vec::new(), Vec::new());
    for mut rest in file.chunks(chunk.max(1)) {
        loop {
            match reader.next(&mut rest) {
                NextSnapshot::Snapshot => snapshots.push(reader.snapshot().clone()),
                NextSnapshot::Problem(problem) => problems.push(problem),
                NextSnapshot::More => break,
            }
        }
        assert!(rest.is_empty() && reader.kept.len() <= MOST);
    }
    problems.extend(reader.finish());
    (snapshots, problems)
}

#[test]
fn what_is_written_is_read() {
    let snapshots = [full(), bare(), gaps(), full()];
    let file = dump(&snapshots);
    assert_eq!(file.len(), 12 + 2 * (56 + 256 * 24) + 56 + (56 + 10 * 24));
    for chunk in [1, 2, 3, 55, 57, 1000, file.len()] {
        let (found, problems) = read_all(&file, chunk);
        assert!(problems.is_empty());
        assert_eq!(found, snapshots);
    }
    assert_eq!(read_all(&dump(&[]), 5), (Vec::new(), Vec::new()));
}

/// The form, byte by byte: it must not change under the same number.
#[test]
fn the_bytes_of_a_snapshot() {
    let mut snapshot = bare();
    snapshot.hart = HartId(0x0403_0201);
    snapshot.pc = Some(0x8877_6655_4433_2211);
    snapshot.mode = Some(Mode::M);
    snapshot.status = 0x14;
    snapshot.control = 7;
    snapshot.guest_control = 3;
    snapshot.cycles = Some(9);
    snapshot.entries[0] = Record {
        ctrsource: 0x11,
        ctrtarget: 0x20,
        ctrdata: 9,
    };
    let file = dump(&[snapshot]);
    let mut expected = Vec::from(*b"\x89CTR\r\n\x1a\n\x01\0\0\0");
    expected.extend([80, 0, 0b1011, 3, 1, 32, 16, 0, 1, 2, 3, 4, 0x14, 0, 0, 0]);
    expected.extend([7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    expected.extend([0; 8]);
    expected.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([0x11, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(file, expected);
}

#[test]
fn every_cut_is_told() {
    let file = dump(&[gaps(), bare()]);
    let second = 12 + 56 + 10 * 24;
    for size in 0..file.len() {
        let (found, problems) = read_all(&file[..size], 7);
        if size == 12 || size == second {
            assert!(problems.is_empty());
            continue;
        }
        assert_eq!(found.len(), usize::from(size > second));
        let at = match size {
            0..12 => 0,
            size if size < second => 12,
            _ => second as u64,
        };
        let expected = Problem {
            at,
            fault: Fault::Truncated,
            value: size as u64 - at,
        };
        assert_eq!(problems, [expected], "{size}");
    }
}

#[test]
fn each_fault_has_its_place() {
    let first = 12;
    let second = first + 56 + 10 * 24;
    let with = |at: usize, value: &[u8]| {
        let mut file = dump(&[gaps(), bare()]);
        file[at..at + value.len()].copy_from_slice(value);
        read_all(&file, 13)
    };
    let cases = [
        (0, &b"x"[..], Fault::NotADump, 0, 0, 0),
        (8, &[2, 1], Fault::Form, 8, 0x102, 0),
        (10, &[0, 7], Fault::Reserved, 10, 0x700, 2),
        (first, &[55, 0], Fault::Size, first, 55, 0),
        (first, &[57, 0], Fault::Size, first, 57, 0),
        (first, &[0xff, 0xff], Fault::Size, first, 0xffff, 0),
        (first + 2, &[16], Fault::Reserved, first + 2, 16, 1),
        (first + 3, &[2], Fault::Mode, first + 3, 2, 1),
        (first + 4, &[2], Fault::Version, first + 4, 2, 1),
        (first + 5, &[128], Fault::Width, first + 5, 128, 1),
        (first + 6, &[8, 0], Fault::Depth, first + 6, 8, 1),
        (second + 6, &[0, 0], Fault::Depth, second + 6, 0, 1),
    ];
    for (at, bytes, fault, place, value, left) in cases {
        let (found, problems) = with(at, bytes);
        let at = place as u64;
        assert_eq!(problems, [Problem { at, fault, value }]);
        assert_eq!(found.len(), left, "{fault:?}");
    }
    let mut deep = dump(&[full(), bare()]);
    deep[first + 6..first + 8].copy_from_slice(&128u16.to_le_bytes());
    let (found, problems) = read_all(&deep, 999);
    assert_eq!((found.len(), problems[0].fault), (1, Fault::Entries));
}

/// Any bytes behind a sound start: no panic, no growth, an end.
#[test]
fn hostile_bytes() {
    let mut random = Random::new(1);
    for _ in 0..2000 {
        let mut file = dump(&[gaps(), full(), bare()]);
        for _ in 0..=random.below(8) {
            let at = random.index(file.len());
            file[at] = random.draw() as u8;
        }
        file.truncate(random.index(file.len() + 1));
        let chunk = random.index(5000);
        let (found, problems) = read_all(&file, chunk);
        assert_eq!(read_all(&file, 1), (found, problems));
    }
}

#[test]
fn all_faults_are_of_this_crate() {
    assert!(
        Fault::ALL
            .iter()
            .all(|fault| fault.code().starts_with("CT"))
    );
}

/// More entries than the depth has are no part of a snapshot, and are not
/// written.
#[test]
fn entries_behind_the_depth_are_left_out() {
    let mut deep = full();
    deep.depth = 128;
    let (found, problems) = read_all(&dump(&[deep.clone()]), 999);
    assert_eq!((found.len(), problems.len()), (1, 0));
    assert_eq!(found[0].entries, deep.entries[..128]);
}

/// As `cat a.ctr b.ctr` makes it.
#[test]
fn dumps_behind_each_other() {
    let one = |hart| {
        let mut out = Vec::new();
        write_start(&mut out);
        let snapshot = Snapshot {
            hart: HartId(hart),
            ..Snapshot::default()
        };
        write_snapshot(&snapshot, &mut out);
        out
    };
    let mut start = Vec::new();
    write_start(&mut start);
    let all = [one(1), start.clone(), one(2), start].concat();
    for chunk in [1, 5, all.len()] {
        let mut reader = DumpReader::new();
        let mut harts = Vec::new();
        for mut rest in all.chunks(chunk) {
            loop {
                match reader.next(&mut rest) {
                    NextSnapshot::Snapshot => harts.push(reader.snapshot().hart.0),
                    NextSnapshot::Problem(problem) => panic!("{problem:?}"),
                    NextSnapshot::More => break,
                }
            }
        }
        assert_eq!(harts, [1, 2]);
        assert_eq!(reader.finish(), None);
    }
    // The form of the second counts, and where it is.
    let first = one(1);
    let mut second = one(2);
    second[8] = 9;
    let all = [first.clone(), second].concat();
    let (mut reader, mut rest) = (DumpReader::new(), &all[..]);
    assert_eq!(reader.next(&mut rest), NextSnapshot::Snapshot);
    let at = first.len() as u64 + 8;
    let (fault, value) = (Fault::Form, 9);
    let problem = Problem { at, fault, value };
    assert_eq!(reader.next(&mut rest), NextSnapshot::Problem(problem));
    // What only begins like one is none.
    let all = [&first[..], &MAGIC[..2], &[0; 20]].concat();
    let (mut reader, mut rest) = (DumpReader::new(), &all[..]);
    assert_eq!(reader.next(&mut rest), NextSnapshot::Snapshot);
    let (at, fault, value) = (first.len() as u64, Fault::NotADump, 0);
    let problem = Problem { at, fault, value };
    assert_eq!(reader.next(&mut rest), NextSnapshot::Problem(problem));
}
