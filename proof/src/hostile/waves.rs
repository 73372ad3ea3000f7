//! Waveforms: any bytes as a VCD, FST or GHW file.

use std::path::Path;

use hartrace_capture::config::Config;
use hartrace_capture::detect::Kind;
use hartrace_capture::log::{Damage, LogOptions, LogReader, plan_of};
use hartrace_capture::wave::WavePort;
use hartrace_flow::{Effects, HartId, Image, Observer, Step, Wants};
use hartrace_testkit::GhwFile;
use hartrace_wave::fst::{Front, Kind as Signal, Scope, Sections, Start, Written, write_start};
use std::io::{Cursor, Read as _};

use super::elf::random_of;
use super::{Input, ensure};

/// Everything that came out of a reader: the steps, up to a limit, and their number.
#[derive(Default, PartialEq)]
struct Record {
    steps: Vec<(Step, Effects)>,
    count: u64,
}

impl Observer for Record {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.count += 1;
        if self.steps.len() < 1024 {
            self.steps.push((*step, *effects));
        }
    }
}

/// Read in one piece or in many, a file gives the same steps and errors; there are no more
/// of them than its bytes and lanes allow.
pub(super) fn ports(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let choices = input.byte();
    let port = match choices & 3 {
        0 => None,
        1 => Some(WavePort::Rvfi),
        2 => Some(WavePort::Ingress),
        _ => Some(WavePort::Cva6),
    };
    let file = input.rest();
    // An FST file is read with its names first.
    let mut front = Vec::new();
    let file = match Front::new(Cursor::new(file)) {
        Ok(mut reader) if choices & 4 != 0 => {
            reader.read_to_end(&mut front).map_err(|e| e.to_string())?;
            ensure(front.len() == file.len(), || "another length".into())?;
            &front
        }
        _ => file,
    };
    let kind = Kind::Wave(port);
    let settings = match choices & 8 {
        0 => "",
        _ => "[wave]\nclock = \"clk\"\n[wave.signals]\norder = \"none\"\n",
    };
    let config = Config::parse(settings, Path::new("a.toml")).map_err(|e| e.to_string())?;
    let image = Image::new();
    let options = LogOptions {
        image: Some(&image),
        wave: plan_of(kind, file, &config),
        ..LogOptions::default()
    };
    if let Some(Err(error)) = &options.wave {
        let _ = error.to_string();
    }
    if LogReader::new(kind, &options).is_err() {
        return Ok(());
    }
    let mut random = random_of(file);
    let mut records = Vec::new();
    for way in 0..2 {
        let Ok(mut reader) = LogReader::new(kind, &options) else {
            return Ok(());
        };
        let (mut record, mut damage) = (Record::default(), Damage::default());
        let mut rest = file;
        while !rest.is_empty() {
            let most = match way {
                0 => rest.len(),
                _ => 1 + random.below(200) as usize,
            };
            let (chunk, more) = rest.split_at(most.min(rest.len()));
            reader.feed(chunk, &mut record, &mut |error| damage.add(error));
            rest = more;
        }
        reader.finish(&mut record, &mut |error| damage.add(error));
        for error in &damage.first {
            let _ = error.to_string();
        }
        records.push((record, damage));
    }
    // A byte of a compressed chain may be a thousand changes, and each has up to 64 lanes.
    let most = 64 * 3 * 1100 * (file.len() as u64 + 1);
    let same = records.windows(2).all(|pair| pair.first() == pair.last());
    ensure(same, || "differs with the chunks".into())?;
    let fits = records.iter().all(|(record, _)| record.count <= most);
    ensure(fits, || "more steps than the file has".into())
}

/// Names and widths of a small port.
const SIGNALS: [(&str, u32); 6] = [
    ("clk", 1),
    ("rvfi_valid", 1),
    ("rvfi_order", 8),
    ("rvfi_insn", 32),
    ("rvfi_pc_rdata", 32),
    ("rvfi_rd_addr", 5),
];

pub(super) fn ports_seeds() -> Vec<Vec<u8>> {
    let mut changes: Vec<(u64, Vec<(usize, String)>)> = Vec::new();
    for cycle in 0..6u64 {
        changes.push((10 * cycle, vec![(0, "0".to_owned())]));
        let pc = format!("{:032b}", 0x8000_0000 + 4 * cycle);
        changes.push((
            10 * cycle + 5,
            vec![
                (0, "1".to_owned()),
                (1, if cycle == 4 { "x" } else { "1" }.to_owned()),
                (2, format!("{cycle:08b}")),
                (3, format!("{:032b}", 0x13)),
                (4, pc),
                (5, "01010".to_owned()),
            ],
        ));
    }
    let mut seeds = vec![vcd(&changes), fst(&changes), ghw(&changes)];
    seeds.push(
        b"$timescale 1ps $end $scope module te $end $var wire 1 c clk $end \
        $var wire 4 t itype_0 $end $var wire 64 a iaddr_0 $end $var wire 2 r iretire_0 $end \
        $var wire 1 s ilastsize_0 $end $var wire 2 p priv $end $upscope $end \
        $enddefinitions $end #0 0c b0 t b1000 a b1 r 1s b11 p #5 1c #10 0c b1 t #15 1c\n"
            .to_vec(),
    );
    let with = |(choices, seed): (u8, Vec<u8>)| [vec![choices], seed].concat();
    [0, 4, 0, 2].into_iter().zip(seeds).map(with).collect()
}

type Changes = [(u64, Vec<(usize, String)>)];

fn vcd(changes: &Changes) -> Vec<u8> {
    let mut text = "$timescale 1ns $end\n$scope module tb $end\n".to_owned();
    for (at, (name, width)) in SIGNALS.iter().enumerate() {
        text += &format!("$var wire {width} {at} {name} $end\n");
    }
    text += "$upscope $end\n$enddefinitions $end\n";
    for (time, list) in changes {
        text += &format!("#{time}\n");
        for (signal, value) in list {
            text += &format!("b{value} {signal}\n");
        }
    }
    text.into_bytes()
}

fn fst(changes: &Changes) -> Vec<u8> {
    let kinds = SIGNALS
        .iter()
        .map(|(name, width)| (*name, Signal::Bits(*width)));
    let scopes = [Scope {
        name: "tb".to_owned(),
        signals: kinds.collect(),
    }];
    let start = Start {
        begin: 0,
        end: 60,
        exponent: -9,
        sections: 2,
    };
    let mut file = Vec::new();
    let mut sections = Sections::new(&scopes, 0);
    // Memory takes everything.
    let _ = write_start(&mut file, &start, &scopes);
    for chunk in changes.chunks(7) {
        for (time, list) in chunk {
            sections.time(*time);
            for (signal, value) in list {
                let number = u64::from_str_radix(value, 2).map(Written::Bits);
                sections.change(*signal, number.unwrap_or(Written::Unknown));
            }
        }
        let _ = sections.write(&mut file);
    }
    file
}

fn ghw(changes: &Changes) -> Vec<u8> {
    let mut file = GhwFile::new("tb");
    for (name, width) in SIGNALS {
        file.signal(name, width);
    }
    file.body(changes)
}
