//! The same signals in all formats, at every size of chunks, and files that are damaged.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice)]

use hartrace_testkit::{GhwFile, Random};
use hartrace_wave::fst::{Front, Kind, Scope, Sections, Start, Written, write_start};
use hartrace_wave::{
    Edge, Header, Reader, Sample, Value, Watch, Watched, WaveError, WaveFormat, read_header,
};
use std::fmt::Write as _;
use std::io::{Cursor, Read as _};

/// Widths of the signals of the tests, the clock first.
const WIDTHS: [u32; 6] = [1, 1, 8, 32, 64, 130];
const NAMES: [&str; 6] = ["clk", "valid", "byte", "word", "double", "wide"];

/// Characters of a signal, the highest bit first.
type Text = String;

/// Changes at increasing times.
type Changes = Vec<(u64, Vec<(usize, Text)>)>;

/// A clock with a period of 10, and signals that change after its edges.
fn random_changes(random: &mut Random, cycles: u64) -> Changes {
    let mut changes: Changes = vec![(0, vec![(0, "0".to_owned())])];
    for cycle in 0..cycles {
        let mut at_edge = vec![(0, "1".to_owned())];
        for (signal, width) in WIDTHS.iter().enumerate().skip(1) {
            if random.below(3) == 0 {
                at_edge.push((signal, random_bits(random, *width)));
            }
        }
        changes.push((10 * cycle + 5, at_edge));
        changes.push((10 * cycle + 10, vec![(0, "0".to_owned())]));
    }
    changes
}

fn random_bits(random: &mut Random, width: u32) -> Text {
    let unknown = random.below(8) == 0;
    let bit = |_| match random.below(2 + 6 * u64::from(unknown)) {
        0 | 4 | 5 => '0',
        1 | 6 | 7 => '1',
        2 => 'x',
        _ => 'z',
    };
    (0..width).map(bit).collect()
}

/// What samples at rising edges have to show: the values of the changes before.
fn expected(changes: &Changes) -> Vec<(u64, Vec<Text>)> {
    let mut values: Vec<Text> = WIDTHS.iter().map(|w| "x".repeat(*w as usize)).collect();
    let mut samples = Vec::new();
    for (time, list) in changes {
        let clock = list.iter().find(|change| change.0 == 0);
        if values[0] == "0" && clock.is_some_and(|change| change.1 == "1") {
            samples.push((*time, values.iter().skip(1).map(known).collect()));
        }
        for (signal, text) in list {
            values[*signal] = text.clone();
        }
    }
    samples
}

/// `z` is as unknown as `x`.
fn known(text: &Text) -> Text {
    text.replace('z', "x")
}

fn text_of(value: &Value) -> Text {
    let bit = |at| match value.get(at, 1) {
        Some(0) => '0',
        Some(_) => '1',
        None => 'x',
    };
    (0..value.width()).rev().map(bit).collect()
}

fn vcd(changes: &Changes) -> Vec<u8> {
    let mut text = String::from("$date today $end\n$timescale 1 ns $end\n$scope module top $end\n");
    for (at, (name, width)) in NAMES.iter().zip(WIDTHS).enumerate() {
        let range = match width {
            1 => String::new(),
            _ => format!(" [{}:0]", width - 1),
        };
        writeln!(text, "$var wire {width} {} {name}{range} $end", code(at)).unwrap();
    }
    text += "$scope module inner $end\n$var real 64 r temperature $end\n$upscope $end\n";
    text += "$upscope $end\n$enddefinitions $end\n$comment b1 is no change $end\n";
    for (time, list) in changes {
        writeln!(text, "#{time}").unwrap();
        for (signal, value) in list {
            match WIDTHS[*signal] {
                1 => writeln!(text, "{value}{}", code(*signal)).unwrap(),
                _ => writeln!(text, "b{} {}", shortened(value), code(*signal)).unwrap(),
            }
        }
        text += "r1.5 r\n";
    }
    text.into_bytes()
}

/// Leading characters that extension gives are left out.
fn shortened(value: &str) -> &str {
    let first = &value[..1];
    let rest = value.trim_start_matches(first);
    match first {
        "0" if rest.is_empty() => "0",
        "0" if rest.starts_with('1') => rest,
        _ if rest.is_empty() && first != "1" => first,
        _ => value,
    }
}

fn code(signal: usize) -> &'static str {
    ["!", "\"", "ab", "~~~~", "$$", "q"][signal]
}

/// Sections end at every so many times.
fn fst(changes: &Changes, every: usize) -> Vec<u8> {
    let kinds = NAMES.iter().zip(WIDTHS);
    let scopes = [Scope {
        name: "top".to_owned(),
        signals: kinds
            .map(|(name, width)| (*name, Kind::Bits(width)))
            .collect(),
    }];
    let mut file = Vec::new();
    let start = Start {
        begin: 0,
        end: changes.last().map_or(0, |change| change.0),
        exponent: -9,
        sections: changes.chunks(every).len() as u64,
    };
    write_start(&mut file, &start, &scopes).unwrap();
    let mut sections = Sections::new(&scopes, 0);
    for chunk in changes.chunks(every) {
        for (time, list) in chunk {
            sections.time(*time);
            for (signal, text) in list {
                write_value(&mut sections, *signal, text);
            }
        }
        sections.write(&mut file).unwrap();
    }
    file
}

fn write_value(sections: &mut Sections, signal: usize, text: &str) {
    if text.contains(['x', 'z']) {
        // The writer has only signals that are unknown as a whole.
        return sections.change(signal, Written::Unknown);
    }
    let words: Vec<u64> = text
        .as_bytes()
        .rchunks(64)
        .map(|chunk| u64::from_str_radix(std::str::from_utf8(chunk).unwrap(), 2).unwrap())
        .collect();
    match words[..] {
        [word] => sections.change(signal, Written::Bits(word)),
        _ => sections.change(signal, Written::Wide(&words)),
    }
}

fn ghw(changes: &Changes) -> Vec<u8> {
    let mut file = GhwFile::new("top");
    for (name, width) in NAMES.iter().zip(WIDTHS) {
        file.signal(name, width);
    }
    file.body(changes)
}

/// The file, its header and a list of all that is watched.
fn open(format: WaveFormat, file: &[u8]) -> Result<(Header, Vec<Watched>), WaveError> {
    let mut watched = Vec::new();
    let header = read_header(format, file, &mut |var| {
        if var.scope == "top" {
            assert_eq!(
                Some(&var.width),
                NAMES
                    .iter()
                    .position(|n| *n == var.name)
                    .map(|at| &WIDTHS[at])
            );
            watched.push(Watched::of(var));
        }
    })?;
    Ok((header.ok_or(WaveError::Truncated)?, watched))
}

fn samples(
    format: WaveFormat,
    file: &[u8],
    chunk: usize,
) -> Result<Vec<(u64, Vec<Text>)>, WaveError> {
    let (header, watched) = open(format, file)?;
    let count = watched.len();
    let watch = Watch {
        watched,
        clock: 0,
        edge: Edge::Rising,
    };
    let mut reader = Reader::new(&header, watch)?;
    let mut samples = Vec::new();
    let mut take = |sample: &mut Sample<'_>| {
        let mut values = Vec::new();
        assert_eq!(
            sample.value(0)?.get(0, 1),
            Some(0),
            "the clock before its edge"
        );
        for signal in 1..count {
            values.push(text_of(sample.value(signal)?));
        }
        samples.push((sample.time(), values));
        Ok(())
    };
    for chunk in file.chunks(chunk) {
        reader.feed(chunk, &mut take)?;
    }
    reader.finish(&mut take)?;
    Ok(samples)
}

/// Unknown as a whole where a bit of it is, as the writer of FST has it.
fn coarse(samples: Vec<(u64, Vec<Text>)>) -> Vec<(u64, Vec<Text>)> {
    let coarse = |text: Text| match text.contains('x') {
        true => "x".repeat(text.len()),
        false => text,
    };
    let one = |(time, values): (u64, Vec<Text>)| (time, values.into_iter().map(coarse).collect());
    samples.into_iter().map(one).collect()
}

#[test]
fn every_format_gives_the_values_before_each_edge() {
    let mut random = Random::new(7);
    for cycles in [0, 1, 2, 60] {
        let changes = random_changes(&mut random, cycles);
        let expected = expected(&changes);
        assert_eq!(expected.len() as u64, cycles);
        for chunk in [1, 7, 1 << 20] {
            assert_eq!(
                samples(WaveFormat::Vcd, &vcd(&changes), chunk).as_ref(),
                Ok(&expected)
            );
            assert_eq!(
                samples(WaveFormat::Ghw, &ghw(&changes), chunk).as_ref(),
                Ok(&expected)
            );
            for every in [1, 5, 1000] {
                let file = fst(&changes, every);
                let expected = coarse(expected.clone());
                let read = samples(WaveFormat::Fst, &file, chunk);
                assert_eq!(read.as_ref(), Ok(&expected), "{cycles} {chunk} {every}");
            }
        }
    }
}

/// What a file of GHDL has at each edge of a clock: the time, and every variable by its name.
fn named_samples(format: WaveFormat, file: &[u8], clock: &str) -> Vec<(u64, Named)> {
    let (mut names, mut watched) = (Vec::new(), Vec::new());
    let header = read_header(format, file, &mut |var| {
        names.push(format!("{}.{}", var.scope, var.name));
        watched.push(Watched::of(var));
    });
    let header = header.unwrap().unwrap();
    let clock = names.iter().position(|name| name == clock).unwrap();
    let watch = Watch {
        watched,
        clock,
        edge: Edge::Rising,
    };
    let mut reader = Reader::new(&header, watch).unwrap();
    let mut samples = Vec::new();
    let mut take = |sample: &mut Sample<'_>| {
        let mut values = Named::new();
        for (at, name) in names.iter().enumerate() {
            values.insert(name.clone(), text_of(sample.value(at)?));
        }
        samples.push((sample.time(), values));
        Ok(())
    };
    for chunk in file.chunks(100) {
        reader.feed(chunk, &mut take).unwrap();
    }
    reader.finish(&mut take).unwrap();
    samples
}

type Named = std::collections::BTreeMap<String, Text>;

const CORE_GHW: &[u8] = include_bytes!("ghdl/core.ghw");
const CORE_VCD: &[u8] = include_bytes!("ghdl/core.vcd");

/// Two files that GHDL wrote of the same run. Its VCD has no records, enumerations and arrays
/// but vectors.
#[test]
fn ghdl_writes_the_same_values_as_ghw_and_as_vcd() {
    for (clock, edges) in [("tb.clk", 74), ("tb.gated", 71)] {
        let ghw = named_samples(WaveFormat::Ghw, CORE_GHW, clock);
        let vcd = named_samples(WaveFormat::Vcd, CORE_VCD, clock);
        assert_eq!((ghw.len(), vcd.len()), (edges, edges));
        for ((time, all), (same_time, some)) in ghw.iter().zip(&vcd) {
            assert_eq!(time, same_time);
            assert_eq!(some.len(), 16);
            for (name, value) in some {
                assert_eq!(all.get(name), Some(value), "{name} at {time}");
            }
        }
    }
}

/// Values of the types that only GHW has, as the design computes them from its cycles.
#[test]
fn ghw_of_ghdl_has_every_type() {
    let samples = named_samples(WaveFormat::Ghw, CORE_GHW, "tb.clk");
    assert_eq!(samples[0].1.len(), 79);
    let bits = |value: i64, width: u32| {
        let bit = |at| if value >> at & 1 == 1 { '1' } else { '0' };
        (0..width).rev().map(bit).collect::<Text>()
    };
    // The signals are set at an edge, and so are seen at the next one.
    for (at, (time, values)) in (-3i64..).zip(&samples).skip(8) {
        let one = |name: &str, value: i64, width: u32| {
            let value = bits(value, width);
            assert_eq!(values.get(name), Some(&value), "{name} at {time}");
        };
        one("tb.cycle", at, 32);
        one("tb.colour", at.rem_euclid(5), 3);
        one("tb.letter", 97 + at.rem_euclid(26), 8);
        one("tb.name.[3]", 97 + (at - 2).rem_euclid(26), 8);
        // A time, in femtoseconds: that of the edge before.
        one("tb.passed", (*time as i64) - 10_000_000, 64);
        // An array of two dimensions.
        one(
            &format!("tb.numbers.[{}].[{}]", 1 + at % 2, at / 2 % 2),
            at * 1000,
            32,
        );
        one(&format!("tb.accesses.[{}].addr", at % 2), at, 32);
        one("tb.loose.first", at % 32, 5);
        one("tb.core.state", at % 2, 2);
    }
    // Bits of an array of two dimensions: each changes every sixth cycle.
    let grid = |at: usize, row: u32| samples[at].1.get(&format!("tb.grid.[{row}]")).cloned();
    for at in 8..60 {
        for row in 0..2 {
            let (before, after) = (grid(at, row).unwrap(), grid(at + 6, row).unwrap());
            let flipped = |bit| if bit == '0' { '1' } else { '0' };
            assert_eq!(after, before.chars().map(flipped).collect::<Text>());
        }
    }
}

#[test]
fn formats_are_recognised() {
    let changes = random_changes(&mut Random::new(1), 3);
    assert_eq!(WaveFormat::detect(&vcd(&changes)), Some(WaveFormat::Vcd));
    assert_eq!(WaveFormat::detect(&fst(&changes, 2)), Some(WaveFormat::Fst));
    assert_eq!(WaveFormat::detect(&ghw(&changes)), Some(WaveFormat::Ghw));
    for other in [&b""[..], b"$dated", b"core   0: 3 0x80000000", &[0; 64]] {
        assert_eq!(WaveFormat::detect(other), None);
    }
}

#[test]
fn falling_edges() {
    let file = b"$timescale 10ps $end $var wire 1 ! clk $end $var reg 2 # n $end \
        $enddefinitions $end #0 0! b01 # #5 1! b10 # #10 0! b11 # #15 1! #20 0!";
    let (header, watched) = {
        let mut watched = Vec::new();
        let header = read_header(WaveFormat::Vcd, file, &mut |var| {
            watched.push(Watched::of(var))
        });
        (header.unwrap().unwrap(), watched)
    };
    assert_eq!(header.exponent, -11);
    let watch = Watch {
        watched,
        clock: 0,
        edge: Edge::Falling,
    };
    let mut reader = Reader::new(&header, watch).unwrap();
    let mut seen = Vec::new();
    let mut take = |sample: &mut Sample<'_>| {
        seen.push((sample.time(), sample.value(1)?.get(0, 2)));
        Ok(())
    };
    reader.feed(file, &mut take).unwrap();
    reader.finish(&mut take).unwrap();
    assert_eq!(seen, [(10, Some(2)), (20, Some(3))]);
}

/// The clock itself may change twice at a time, or from an unknown level, which is no edge.
#[test]
fn nothing_but_a_change_from_0_to_1_is_a_rising_edge() {
    let file = b"$timescale 1ns $end $var wire 1 ! clk $end $enddefinitions $end \
        #0 x! #1 1! #2 z! #3 1! #4 0! #5 1! 0! #6 x! #7 0! #8 1!";
    let mut watched = Vec::new();
    let header = read_header(WaveFormat::Vcd, file, &mut |var| {
        watched.push(Watched::of(var))
    });
    let watch = Watch {
        watched,
        clock: 0,
        edge: Edge::Rising,
    };
    let mut reader = Reader::new(&header.unwrap().unwrap(), watch).unwrap();
    let mut times = Vec::new();
    let mut take = |sample: &mut Sample<'_>| {
        times.push(sample.time());
        Ok(())
    };
    reader.feed(file, &mut take).unwrap();
    reader.finish(&mut take).unwrap();
    assert_eq!(times, [5, 8]);
}

/// Between `$dumpoff` and `$dumpon` all signals are unknown, and mean nothing.
#[test]
fn nothing_is_sampled_while_recording_is_off() {
    let file = b"$timescale 1ns $end $var wire 1 ! clk $end $var wire 1 # v $end \
        $enddefinitions $end #0 $dumpvars 0! 1# $end #5 1! #10 0! \
        #12 $dumpoff x! x# $end #100 $dumpon 0! 0# $end #105 1! #110 0! #115 1!";
    let mut watched = Vec::new();
    let header = read_header(WaveFormat::Vcd, file, &mut |var| {
        watched.push(Watched::of(var))
    });
    let watch = Watch {
        watched,
        clock: 0,
        edge: Edge::Rising,
    };
    let mut reader = Reader::new(&header.unwrap().unwrap(), watch).unwrap();
    let mut seen = Vec::new();
    let mut take = |sample: &mut Sample<'_>| {
        let gap = sample.after_gap();
        seen.push((sample.time(), gap, sample.value(1)?.get(0, 1)));
        Ok(())
    };
    reader.feed(file, &mut take).unwrap();
    reader.finish(&mut take).unwrap();
    assert_eq!(
        seen,
        [
            (5, false, Some(1)),
            (105, true, Some(0)),
            (115, false, Some(0))
        ]
    );
}

/// Most writers of FST put the names at the end.
#[test]
fn names_at_the_end_of_a_file_are_found() {
    let changes = random_changes(&mut Random::new(3), 50);
    let file = fst(&changes, 7);
    // The header, two blocks with names, the rest.
    let length = |at: usize| {
        let bytes: [u8; 8] = file[at + 1..at + 9].try_into().unwrap();
        1 + u64::from_be_bytes(bytes) as usize
    };
    let header = length(0);
    let names = length(header) + length(header + length(header));
    let mut late = file[..header].to_vec();
    late.extend(&file[header + names..]);
    late.extend(&file[header..header + names]);
    assert_eq!(
        samples(WaveFormat::Fst, &late, 100),
        Err(WaveError::NoHierarchy)
    );
    let mut front = Vec::new();
    Front::new(Cursor::new(&late))
        .unwrap()
        .read_to_end(&mut front)
        .unwrap();
    assert_eq!(front.len(), late.len());
    assert_eq!(
        samples(WaveFormat::Fst, &front, 100),
        Ok(coarse(expected(&changes)))
    );
    // In between, as well; and a file that is cut off stays as it is.
    let mut front = Vec::new();
    Front::new(Cursor::new(&file))
        .unwrap()
        .read_to_end(&mut front)
        .unwrap();
    assert_eq!(front, file);
    for cut in [0, 5, 100, header, header + 20, late.len() - 3] {
        let mut front = Vec::new();
        let mut reader = Front::new(Cursor::new(&late[..cut])).unwrap();
        reader.read_to_end(&mut front).unwrap();
        assert_eq!(front, late[..cut]);
    }
}

#[test]
fn damaged_files_are_errors_and_nothing_else() {
    let mut random = Random::new(11);
    let changes = random_changes(&mut random, 12);
    for (format, file) in [
        (WaveFormat::Vcd, vcd(&changes)),
        (WaveFormat::Fst, fst(&changes, 9)),
        (WaveFormat::Ghw, ghw(&changes)),
    ] {
        let whole = samples(format, &file, 64).unwrap().len();
        for length in (0..file.len()).step_by(3) {
            match samples_lenient(format, &file[..length], 64) {
                Ok(samples) => assert!(samples <= whole),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        for _ in 0..400 {
            let mut bytes = file.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            let _ = samples_lenient(format, &bytes, 1000);
        }
    }
}

/// As [`samples`], with whatever variables there are.
fn samples_lenient(format: WaveFormat, file: &[u8], chunk: usize) -> Result<usize, WaveError> {
    let mut watched = Vec::new();
    let header = read_header(format, file, &mut |var| {
        if var.width < 1000 && watched.len() < 100 {
            watched.push(Watched::of(var));
        }
    })?;
    let header = header.ok_or(WaveError::Truncated)?;
    let count = watched.len();
    let watch = Watch {
        clock: watched.iter().position(|w| w.width == 1).unwrap_or(0),
        watched,
        edge: Edge::Rising,
    };
    let mut reader = Reader::new(&header, watch)?;
    let mut samples = 0;
    let mut take = |sample: &mut Sample<'_>| {
        for signal in 0..count {
            let _ = text_of(sample.value(signal)?);
        }
        samples += 1;
        Ok(())
    };
    for chunk in file.chunks(chunk) {
        reader.feed(chunk, &mut take)?;
    }
    reader.finish(&mut take)?;
    Ok(samples)
}
