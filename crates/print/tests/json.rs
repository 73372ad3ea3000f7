//! The JSON and the text that a library user gets for small traces: valid, with
//! the fields of docs/json.md, and both with the same facts.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use hartrace_analyze::{Functions, ListingStyle, Places};
use hartrace_capture::config;
use hartrace_capture::trace::{Decoder, Format, Settings, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{Decode as _, Effects, HartId, Image, Insn, Observer, SpaceId, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program};
use hartrace_isa::{Isa, Xlen};
use hartrace_print::events::{self, JsonEvents, PcList, TraceListing};
use hartrace_print::{JsonSteps, words};
use serde_json::Value;

const ELF: &[u8] = include_bytes!("../../../programs/recursion/recursion-rv64gc.elf");
const INSNS: u64 = 3000;

/// Runs the program.
fn run(observer: &mut impl Observer) {
    let program = Program::from_elf(ELF).unwrap();
    let config = Config::new(Platform::Virt, program.xlen);
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    machine.load(program, None).unwrap();
    machine.run(INSNS, observer);
    observer.finish();
}

/// Keeps instructions.
#[derive(Default)]
struct Kept(Vec<Insn>);

impl Observer for Kept {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        if let Step::Insn(insn) = step {
            self.0.push(*insn);
        }
    }
}

fn lines(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).unwrap();
    let parse = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
}

fn number(value: &Value) -> u64 {
    let digits = value.as_str().unwrap().strip_prefix("0x").unwrap();
    u64::from_str_radix(digits, 16).unwrap()
}

/// N-Trace and E-Trace of the program, with the settings that were used.
fn traces() -> Vec<(Vec<u8>, Settings)> {
    let config = config::Config::default();
    let formats = [Format::Ntrace, Format::Etrace].into_iter();
    let traced = formats.map(|format| {
        let settings = format.settings(&config, Xlen::Rv64).unwrap();
        let port = settings.port(config.ingress.clone()).port(Isa::RV64GC);
        let mut bytes = Vec::new();
        let filter = FilterConfig::default();
        let put = Box::new(|message: &[u8]| bytes.extend_from_slice(message));
        let options = WriteOptions::default();
        run(&mut TraceWriter::new(&settings, port, &filter, options, put).unwrap());
        (bytes, settings)
    });
    traced.collect()
}

#[test]
fn events_are_those_of_the_text() {
    let mut kept = Kept::default();
    run(&mut kept);
    let mut image = Image::new();
    image.add_elf(SpaceId::FIRST, ELF, None, None).unwrap();
    let mut places = Places::new();
    places.add_elf(ELF, None).unwrap();
    let names = places.names();
    for (bytes, settings) in traces() {
        let keep = |_: &mut Vec<u8>| ();
        let mut json = JsonEvents::new(&image, Some(names), keep);
        let about = (&places, Functions::new());
        let mut text = TraceListing::new(&image, about, ListingStyle::default(), keep);
        let mut pcs = PcList::new(&image, Isa::RV64GC.xlen(), keep);
        macro_rules! decode {
            ($out:expr) => {
                let mut decoder = Decoder::new(&settings, &image).unwrap();
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let used = decoder.feed(rest, &mut $out);
                    rest = &rest[used..];
                }
                let _ = decoder.finish(&mut $out);
            };
        }
        decode!(json);
        decode!(text);
        decode!(pcs);
        let mut whole = Vec::new();
        events::write_header(Isa::RV64GC, &mut whole).unwrap();
        whole.append(json.out.text());
        check(&lines(&whole), text.out().text(), pcs.out.text(), &kept.0);
    }
}

/// Every run of the JSON against the lines of text, and against the steps.
fn check(values: &[Value], text: &[u8], pcs: &[u8], steps: &[Insn]) {
    assert_eq!(values[0]["type"], "header");
    assert_eq!(values[0]["schema"], "hartrace-events");
    assert_eq!(values[0]["version"], 1);
    let text = std::str::from_utf8(text).unwrap();
    let mut listed = text.lines().filter(|line| !line.starts_with("--"));
    let pcs = std::str::from_utf8(pcs).unwrap();
    let mut pcs = pcs.lines().map(|l| u64::from_str_radix(l, 16).unwrap());
    let mut steps = steps.iter();
    let runs = values.iter().filter(|value| value["type"] == "run");
    let mut all = 0;
    for run in runs {
        assert_eq!(run["hart"], 0);
        assert!(run["exit"].is_string());
        let insns = run["insns"].as_u64().unwrap() as usize;
        all += insns;
        let addresses: Vec<u64> = pcs.by_ref().take(insns).collect();
        assert_eq!(addresses.len(), insns);
        assert_eq!(addresses.first(), Some(&number(&run["start"])));
        assert_eq!(addresses.last(), Some(&number(&run["last"])));
        assert!(number(&run["last"]) < number(&run["end"]));
        let lines: Vec<&str> = listed.by_ref().take(insns).collect();
        for (line, pc) in lines.iter().zip(&addresses) {
            assert!(line.starts_with(&format!("{pc:016x}  ")), "{line}");
        }
        let symbol = run["symbol"].as_str().unwrap();
        // What a branch or jump did comes after it.
        let first = lines[0].split("  [").next().unwrap();
        assert!(first.ends_with(&format!("  {symbol}")), "{first}");
        for pc in addresses {
            assert_eq!(steps.next().map(|step| step.pc), Some(pc));
        }
    }
    assert!(all as u64 >= INSNS - 100, "{all}");
    assert_eq!(
        (listed.next(), pcs.next(), steps.next()),
        (None, None, None)
    );
}

#[test]
fn runs_without_names_have_no_symbol() {
    let image = Image::new();
    let mut events = JsonEvents::new(&image, None, |_: &mut Vec<u8>| ());
    let run = hartrace_flow::Run {
        start: 0x1000,
        end: 0x1006,
        next: 0x2000,
        insns: 2,
        exit: hartrace_flow::Exit::Taken,
        last: 2,
    };
    use hartrace_flow::Consumer as _;
    let _ = events.event(HartId(0), &hartrace_flow::Event::Run(run));
    let values = lines(events.out.text());
    assert_eq!(values[0]["last"], "0x1004");
    assert!(values[0].get("symbol").is_none());
}

#[test]
fn steps_are_those_of_the_hart() {
    let mut kept = Kept::default();
    run(&mut kept);
    let mut text = Vec::new();
    let mut steps = JsonSteps::new(Isa::RV64GC, true, &mut text);
    run(&mut steps);
    steps.end().unwrap();
    let values = lines(&text);
    assert_eq!(values[0]["schema"], "hartrace-log");
    let insns: Vec<&Value> = values.iter().filter(|v| v["type"] == "insn").collect();
    assert_eq!(insns.len(), kept.0.len());
    for (value, insn) in insns.iter().zip(&kept.0) {
        assert_eq!(value["hart"], 0);
        assert_eq!(number(&value["pc"]), insn.pc);
        assert_eq!(number(&value["bits"]), u64::from(insn.bits));
        assert_eq!(number(&value["next"]), insn.next);
        assert_eq!(value["mode"], insn.mode.name());
    }
    let written = insns.iter().any(|v| v["regs"][0]["name"] == "x2");
    let stored = insns.iter().any(|v| v["accesses"][0]["kind"] == "store");
    assert!(written && stored);
}

#[test]
fn a_failing_write_is_kept() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut steps = JsonSteps::new(Isa::RV64GC, true, Full);
    run(&mut steps);
    let error = steps.end().err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn counts_in_words() {
    assert_eq!(words::counted(1, "cycle"), "1 cycle");
    assert_eq!(words::counted(1_234_567, "cycle"), "1 234 567 cycles");
    assert_eq!(words::clean("a\x1b[1m"), "a\u{fffd}[1m");
    assert_eq!(words::hex(&[0, 0xab]), "00ab");
    assert_eq!(words::interrupt(7), "machine timer interrupt (7)");
}
