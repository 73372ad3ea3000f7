//! Which slices are written, and in which order.

use super::rate::Rate;
use super::*;
use std::io::Write as _;

/// Notes what it is given.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    /// Slices in a file at most.
    limit: Option<usize>,
    count: usize,
}

impl SliceWriter for Notes {
    fn track(&mut self, track: &FileTrack<'_>) -> io::Result<()> {
        let (id, hart, name) = (track.id, track.hart.0, track.name);
        self.lines.push(format!("{id} = hart {hart} {name}"));
        Ok(())
    }

    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()> {
        let (track, at, name) = (slice.track, slice.at, slice.name.1);
        self.lines.push(format!("{track} {name} {at}"));
        self.count += 1;
        Ok(())
    }

    fn end(&mut self, track: u32, at: u64, _: Arrow) -> io::Result<()> {
        self.lines.push(format!("{track} end {at}"));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.count >= limit)
    }

    fn next_file(&mut self) -> io::Result<()> {
        self.lines.push("next file".to_owned());
        self.count = 0;
        Ok(())
    }

    fn counter(&mut self, counter: &Counter<'_>) -> io::Result<()> {
        let (name, count) = (counter.name, counter.values.len());
        self.lines.push(format!("{name} {count}"));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Slices of one track: name, begin and end, in the order in which they begin.
fn export(options: ExportOptions, slices: &[(char, u64, u64)]) -> (Vec<String>, Exported) {
    export_with(options, slices, Notes::default())
}

fn export_with(
    options: ExportOptions,
    slices: &[(char, u64, u64)],
    mut notes: Notes,
) -> (Vec<String>, Exported) {
    let list = [
        (0x100, 0x200, "a"),
        (0x200, 0x300, "b"),
        (0x300, 0x400, "c"),
    ];
    let functions = Functions::testing(&list);
    let mut export = Export::new(options, functions.clone(), &mut notes);
    export.track(
        TrackId(0),
        &Track {
            hart: HartId(0),
            context: None,
            number: 0,
            is_rest: false,
        },
    );
    let place = |at| Position {
        insn: at,
        time: at.saturating_sub(10),
    };
    let slice = |&(name, begin, end): &(char, u64, u64)| {
        let address = 0x100 * (u64::from(u32::from(name)) - 0x60);
        Slice {
            begin: place(begin),
            end: place(end),
            kind: SliceKind::Call(functions.of(address).unwrap()),
            depth: 0,
            flags: 0,
            merged: 0,
        }
    };
    let mut open: Vec<Slice> = Vec::new();
    for next in slices.iter().map(slice) {
        while let Some(last) = open.pop_if(|last| last.end <= next.begin) {
            export.end(TrackId(0), &last);
        }
        export.begin(TrackId(0), &next);
        open.push(next);
    }
    while let Some(last) = open.pop() {
        export.end(TrackId(0), &last);
    }
    let exported = export.finish().unwrap();
    (notes.lines, exported)
}

const ALL: ExportOptions = ExportOptions {
    axis: Measure::Instructions,
    min_duration: 0,
    max_depth: usize::MAX,
    timescale: None,
};

const SLICES: [(char, u64, u64); 5] = [
    ('a', 0, 100),
    ('b', 5, 8),
    ('b', 20, 90),
    ('c', 30, 32),
    ('c', 40, 80),
];

#[test]
fn long_slices_are_written_in_order() {
    let options = ExportOptions {
        min_duration: 10,
        ..ALL
    };
    let (notes, exported) = export(options, &SLICES);
    let expected = [
        "0 = hart 0 thread 0",
        "0 a 0",
        "0 b 20",
        "0 c 40",
        "0 end 80",
        "0 end 90",
        "0 end 100",
    ];
    assert_eq!(notes, expected);
    assert_eq!((exported.slices, exported.too_short), (3, 2));
    // Lengths are 100, 3, 70, 2 and 40.
    let least: Vec<u64> = (0..6).map(|limit| exported.min_duration(limit)).collect();
    assert_eq!(least, [128, 128, 64, 4, 4, 0]);
}

/// With times, nothing is written before the first of them.
#[test]
fn time_starts_with_the_first_timestamp() {
    let options = ExportOptions {
        axis: Measure::Time,
        ..ALL
    };
    let (notes, exported) = export(options, &SLICES);
    assert_eq!(notes[1..4], ["0 a 10", "0 b 10", "0 c 20"]);
    assert_eq!((exported.slices, exported.too_short), (4, 1));
    let last = notes.last().unwrap();
    assert!(last.starts_with("instructions per 1000"), "{last}");
}

#[test]
fn rates_keep_all_instructions_in_bounded_memory() {
    let mut rate = Rate::default();
    for n in 0..100_000u64 {
        rate.add(Position {
            insn: 3 * n,
            time: 1000 + 7 * n,
        });
    }
    let values = rate.take(1000.0, 4096);
    assert!((2048..=4096).contains(&values.len()), "{}", values.len());
    let width = (values[1].0 - values[0].0) as f64;
    let sum: f64 = values.iter().map(|(_, rate)| rate * width / 1000.0).sum();
    assert!((sum - 3.0 * 99_999.0).abs() < 1.0, "{sum}");
}

#[test]
fn what_is_held_is_all_or_nothing() {
    let mut held = Held::new(10);
    held.write_all(b"0123456789").unwrap();
    assert_eq!((held.bytes(), held.count()), (&b"0123456789"[..], 10));
    held.write_all(b"01234").unwrap();
    assert_eq!((held.bytes(), held.count()), (&b""[..], 15));
}

/// What is open ends in one file and begins in the next, where the first slice begins that
/// was not long enough yet.
#[test]
fn files_are_whole() {
    let options = ExportOptions {
        min_duration: 10,
        ..ALL
    };
    let notes = Notes {
        limit: Some(2),
        ..Notes::default()
    };
    let (notes, exported) = export_with(options, &SLICES, notes);
    let expected = [
        "0 = hart 0 thread 0",
        "0 a 0",
        "0 b 20",
        "0 end 30",
        "0 end 30",
        "next file",
        "0 = hart 0 thread 0",
        "0 a 30",
        "0 b 30",
    ];
    assert_eq!(notes[..9], expected);
    assert_eq!(exported.slices, 3);
    let begins = notes.iter().filter(|line| line.starts_with("0 a")).count();
    let files = notes.iter().filter(|line| *line == "next file").count();
    assert_eq!(begins, files + 1);
}
