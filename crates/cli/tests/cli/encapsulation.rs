//! E-Trace in its encapsulations: written, recognised, shown, counted, decoded; from
//! circular buffers, pins and CoreSight frames.

use crate::{Folder, RV64, fails, run, succeeds, text};
use hartrace_capture::trace::{Formatter, Pib, PibWidth, RamBuffer, RamSink, write_pins};
use std::fs;

/// Settings of each form, and whether the bytes alone show what it is.
const FORMS: [(&str, bool); 8] = [
    ("form = \"riscv\"", true),
    (
        "form = \"riscv\"\nsrc_bits = 8\ntime_bytes = 8\ntype_bits = 1",
        true,
    ),
    (
        "form = \"riscv\"\nsrc_bits = 5\ntime_bytes = 2\nflow = 3\nsync_bytes = 100",
        false,
    ),
    ("form = \"smi\"\nsrc_bits = 8\ntime_bytes = 2", true),
    ("form = \"atb\"\ntime_bytes = 2", true),
    ("form = \"esp32\"\nsync_bytes = 1000", true),
    ("form = \"slots\"", false),
    ("form = \"reference\"", true),
];

/// A short run in a form: the trace, its pcs, the configuration.
fn traced(folder: &Folder, text: &str) -> (String, String, String) {
    let resync = "[etrace]\nresync_max = 0\n";
    let config = format!("{resync}[etrace.encapsulation]\n{text}\n");
    let config = folder.file("form.toml", config);
    let trace = folder.name("run.etrace");
    let pcs = folder.name("run.pc");
    let (to, log) = (format!("etrace={trace}"), format!("pc={pcs}"));
    succeeds(&[
        "run",
        "-q",
        RV64,
        "--max-insns",
        "5K",
        "-c",
        &config,
        "--trace",
        &to,
        "--log",
        &log,
        "--check",
    ]);
    (trace, fs::read_to_string(pcs).unwrap(), config)
}

#[test]
fn every_form_from_run_to_decode() {
    for (form, known) in FORMS {
        let folder = Folder::new();
        let (trace, pcs, config) = traced(&folder, form);
        // With the sidecar.
        assert_eq!(
            succeeds(&["decode", "-q", &trace, "-f", "pc"]),
            pcs,
            "{form}"
        );
        let dump = succeeds(&["dump", &trace]);
        assert!(
            dump.contains("3.3 support") && dump.contains("3.0 start"),
            "{dump}"
        );
        let stats = succeeds(&["stats", &trace]);
        assert!(
            stats.contains("3.0 start") && !stats.contains("ET0"),
            "{stats}"
        );
        // Without it: by the configuration, or by the bytes.
        let bare = folder.file("bare.bin", fs::read(&trace).unwrap());
        let given = ["decode", "-q", &bare, "-e", RV64, "-c", &config, "-f", "pc"];
        assert_eq!(succeeds(&given), pcs, "{form}");
        if known {
            let guessed = run(&["decode", &bare, "-e", RV64, "-f", "pc"]);
            assert_eq!(text(&guessed.stdout), pcs, "{form}");
            assert!(text(&guessed.stderr).contains("HT0401"), "{form}");
        }
    }
}

/// What was guessed about the encapsulation is said, in `info` too.
#[test]
fn the_encapsulation_is_named() {
    let folder = Folder::new();
    let (trace, _, _) = traced(&folder, FORMS[1].0);
    let bare = folder.file("bare.bin", fs::read(&trace).unwrap());
    let words = "RISC-V packet encapsulation";
    let guessed = run(&["decode", &bare, "-e", RV64, "-f", "pc"]);
    assert!(text(&guessed.stderr).contains(words));
    let info = run(&["info", &bare]);
    assert!(text(&info.stdout).contains("E-Trace"));
    assert!(text(&info.stderr).contains(words));
    // Sources and times are shown and counted.
    let dump = succeeds(&["dump", &trace]);
    assert!(dump.contains("timestamp="), "{dump}");
    let events = succeeds(&["decode", "-q", &trace, "-f", "json"]);
    assert!(events.contains("\"time\""), "{events}");
}

/// The profile of the PULP tracer: a capture of our own making has its form, and is
/// recognised.
#[test]
fn the_pulp_tracer() {
    let folder = Folder::new();
    let config = folder.file("pulp.toml", "[etrace]\nprofile = \"pulp-rv-tracer\"\n");
    let (trace, pcs) = (folder.name("t.etrace"), folder.name("t.pc"));
    let (to, log) = (format!("etrace={trace}"), format!("pc={pcs}"));
    succeeds(&[
        "run",
        "-q",
        RV64,
        "--max-insns",
        "5K",
        "-c",
        &config,
        "--trace",
        &to,
        "--log",
        &log,
    ]);
    let bytes = fs::read(&trace).unwrap();
    assert_eq!(bytes.len() % 40, 0);
    let bare = folder.file("packets.bin", bytes);
    let pcs = fs::read_to_string(pcs).unwrap();
    let by_profile = ["decode", "-q", &bare, "-e", RV64, "-c", &config, "-f", "pc"];
    assert_eq!(succeeds(&by_profile), pcs);
    let guessed = run(&["decode", &bare, "-e", RV64, "-f", "pc"]);
    assert_eq!(text(&guessed.stdout), pcs);
    assert!(text(&guessed.stderr).contains("PULP tracer slots of 40 bytes"));
}

/// CoreSight frames with the id of a source, plain, from a circular buffer and from pins.
#[test]
fn coresight_frames() {
    let folder = Folder::new();
    let (trace, pcs, _) = traced(&folder, "form = \"atb\"");
    let config = "[etrace.encapsulation]\nform = \"atb\"\nsrc_id = 5\n";
    let config = folder.file("atb.toml", config);
    let mut formatter = Formatter::new(8);
    formatter.put(5, &fs::read(&trace).unwrap());
    let mut frames = formatter.finish();
    frames.resize(frames.len().next_multiple_of(16), 0);
    let file = folder.file("frames.bin", &frames);
    let args = ["-e", RV64, "-c", &config, "-f", "pc"];
    let decode = |more: &[&str]| succeeds(&[&["decode", "-q"], more, &args].concat());
    assert_eq!(decode(&[&file, "--coresight"]), pcs);
    let samples = write_pins(&frames, Pib::new(PibWidth::Eight));
    let pins = folder.file("pins.bin", samples);
    assert_eq!(decode(&[&pins, "--coresight", "--pib", "8"]), pcs);
    let wrong = run(&["decode", &file, "--coresight", "200", "-e", RV64]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// The ring buffer of an ESP32 trace unit that wrapped: the end of the run, after a gap.
#[test]
fn a_ring_buffer_of_numbered_packets() {
    let folder = Folder::new();
    let (trace, pcs, config) = traced(&folder, "form = \"esp32\"\nsync_bytes = 100");
    let mut bytes = fs::read(&trace).unwrap();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let sink = RamSink::from_registers(0x8000, 0x8000 + 0x1fc, 0x8000);
    let mut buffer = RamBuffer::new(sink, 0).unwrap();
    buffer.write(&bytes);
    let now = buffer.registers();
    assert!(now.wrapped);
    let dump = folder.file("ring.bin", buffer.dump());
    let ram = format!("0x8000:0x81fc:{:#x}:wrap", now.write_pointer);
    let shown = succeeds(&["dump", &dump, "--ram", &ram, "-c", &config]);
    assert!(!shown.contains("(bad)"), "{shown}");
    let output = run(&[
        "decode", "-q", &dump, "--ram", &ram, "-c", &config, "-e", RV64, "-f", "pc",
    ]);
    let found = text(&output.stdout);
    assert!(found.lines().count() > 500);
    assert!(pcs.ends_with(found), "the end of the run");
}

/// Transports to write to, for a form with the id 7.
const TRANSPORTS: [&str; 6] = [
    "order = \"swap32\"",
    "ram = \"0x8000:0x1fffc\"",
    "pib = 1",
    "pib = 4\nhigh_first = true\norder = \"swap16\"",
    "coresight = true",
    "coresight = true\nram = \"0x8000:0x1fffc\"\norder = \"swap32\"",
];

/// `run`, `encode` and `convert` write what a buffer, pins or frames hold, and the sidecar
/// says how to read it.
#[test]
fn every_transport_is_written() {
    let formats = [
        ("ntrace", "[ntrace]\nsrc_bits = 2\n"),
        (
            "etrace",
            "[etrace.encapsulation]\nform = \"riscv\"\nsrc_bits = 8\nsrc_id = 7\n",
        ),
    ];
    for (format, settings) in formats {
        for transport in TRANSPORTS {
            let folder = Folder::new();
            let text = format!("{settings}[transport]\n{transport}\n");
            let config = folder.file("c.toml", text);
            let plain = folder.file("plain.toml", settings);
            let names = ["first", "run", "encode", "convert", "pc"];
            let [first, ran, encoded, converted, pcs] = names.map(|name| folder.name(name));
            let (to, log) = (format!("{format}={first}"), format!("pc={pcs}"));
            let base = ["run", "-q", RV64, "--max-insns", "1K", "--check"];
            let more = ["-c", &plain, "--trace", &to, "--log", &log];
            succeeds(&[&base[..], &more].concat());
            let to = format!("{format}={ran}");
            succeeds(&[&base[..], &["-c", &config, "--trace", &to]].concat());
            let rest = ["--to", format, "-c", &config, "--check", "-q"];
            let encode = ["encode", &pcs, "-e", RV64, "-o", &encoded];
            run(&[&encode[..], &rest].concat());
            succeeds(&[&["convert", &first, "-o", &converted][..], &rest].concat());
            let expected = fs::read_to_string(&pcs).unwrap();
            for trace in [&ran, &encoded, &converted] {
                let found = succeeds(&["decode", "-q", trace, "-f", "pc"]);
                assert_eq!(found, expected, "{format}: {transport}: {trace}");
                let stats = succeeds(&["stats", "-q", trace]);
                assert!(stats.contains("gaps       0"), "{stats}");
            }
            let sidecar = fs::read_to_string(format!("{ran}.toml")).unwrap();
            assert!(sidecar.contains("[transport]"), "{sidecar}");
            // Out of it again.
            let back = folder.name("back");
            let args = [
                "convert", &ran, "--to", format, "-c", &plain, "-o", &back, "-q",
            ];
            succeeds(&args);
            assert_eq!(succeeds(&["decode", "-q", &back, "-f", "pc"]), expected);
        }
    }
}

/// Packets move from one encapsulation to another without a program, and back to the same
/// bytes.
#[test]
fn packets_move_to_another_encapsulation() {
    let folder = Folder::new();
    let (trace, pcs, _) = traced(&folder, "form = \"reference\"");
    let bytes = fs::read(&trace).unwrap();
    let bare = folder.file("bare.bin", &bytes);
    let forms = ["riscv", "smi", "atb", "esp32", "slots", "reference"];
    for form in forms {
        let there = folder.name("there");
        let to = ["--to", "etrace", "--encapsulation", form, "-q"];
        succeeds(&[&["convert", &trace, "-o", &there][..], &to].concat());
        let found = succeeds(&["decode", "-q", &there, "-f", "pc"]);
        assert_eq!(found, pcs, "{form}");
        // No program, no sidecar.
        let moved = folder.name("moved");
        succeeds(&[&["convert", &bare, "-o", &moved][..], &to].concat());
        assert_eq!(fs::read(&moved).unwrap(), fs::read(&there).unwrap());
        let back = folder.name("back");
        let to = ["--to", "etrace", "--encapsulation", "reference", "-q"];
        succeeds(&[&["convert", &there, "-o", &back][..], &to].concat());
        assert_eq!(fs::read(&back).unwrap(), bytes, "{form}");
    }
    // Into frames in a buffer.
    let config =
        "[etrace.encapsulation]\nsrc_id = 9\n[transport]\ncoresight = true\nram = \"0:0xffffc\"\n";
    let config = folder.file("frames.toml", config);
    let frames = folder.name("frames");
    succeeds(&[
        "convert",
        &trace,
        "-o",
        &frames,
        "--to",
        "etrace",
        "--encapsulation",
        "atb",
        "-c",
        &config,
        "-q",
    ]);
    assert_eq!(fs::read(&frames).unwrap().len(), 1 << 20);
    assert_eq!(succeeds(&["decode", "-q", &frames, "-f", "pc"]), pcs);
}

/// Damage in the old trace is a gap in the new one.
#[test]
fn damage_moves_along() {
    let folder = Folder::new();
    let (trace, pcs, _) = traced(&folder, "form = \"reference\"");
    let mut bytes = fs::read(&trace).unwrap();
    let at = bytes.len() / 3;
    bytes.splice(at..at, [0xff; 30]);
    fs::write(&trace, bytes).unwrap();
    let new = folder.name("new");
    let args = [
        "convert",
        &trace,
        "--to",
        "etrace",
        "--encapsulation",
        "smi",
    ];
    let output = run(&[&args[..], &["-o", &new]].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("has 1 gap"));
    let decoded = run(&["decode", &new, "-f", "pc"]);
    assert!(text(&decoded.stderr).contains("warning[ET0"));
    assert!(text(&decoded.stdout).lines().count() > pcs.lines().count() / 2);
    let strict = run(&[&args[..], &["-o", &new, "--strict"]].concat());
    assert_eq!(strict.status.code(), Some(3));
}

#[test]
fn wrong_transports() {
    let folder = Folder::new();
    let trace = format!("etrace={}", folder.name("t"));
    let tandem = format!("tandem={}", folder.name("u"));
    for (settings, to, words) in [
        ("coresight = true", &trace, "`src_id`"),
        ("pib = 4\nram = \"0:0xfc\"", &trace, "not both"),
        ("pib = 4", &tandem, "a tandem trace has no transport"),
    ] {
        let config = folder.file("c.toml", format!("[transport]\n{settings}\n"));
        let args = ["run", "-q", RV64, "-c", &config, "--trace", to];
        let message = fails(&args, 1, "HT0206");
        assert!(message.contains(words), "{message}");
    }
    let (one, _, _) = traced(&folder, "form = \"reference\"");
    let args = ["convert", &one, "--to", "ntrace", "--encapsulation", "smi"];
    let output = run(&[&args[..], &["-o", &folder.name("x")]].concat());
    assert_eq!(output.status.code(), Some(2));
    let args = ["convert", &one, "--to", "etrace", "--encapsulation", "usb"];
    let output = run(&[&args[..], &["-o", &folder.name("x")]].concat());
    assert!(text(&output.stderr).contains("reference, riscv, smi"));
}

#[test]
fn mistakes() {
    let folder = Folder::new();
    let trace = format!("etrace={}", folder.name("t"));
    for (settings, words) in [
        ("form = \"smi\"\ntime_bytes = 4", "time_bytes must be"),
        ("form = \"atb\"\nsrc_bits = 4", "src_bits must be"),
        ("form = \"slots\"\nslot_bytes = 12", "slot_bytes must be"),
        (
            "form = \"smi\"\nsync_bytes = 9",
            "no synchronisation sequence",
        ),
    ] {
        let config = format!("[etrace.encapsulation]\n{settings}\n");
        let config = folder.file("c.toml", config);
        let args = ["run", "-q", RV64, "-c", &config, "--trace", &trace];
        let message = fails(&args, 1, "HT0206");
        assert!(message.contains(words), "{message}");
    }
}
