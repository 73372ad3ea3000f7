//! E-Trace in its encapsulations: written, recognised, shown, counted, decoded; from
//! circular buffers, pins and CoreSight frames.

use crate::{Folder, RV64, fails, run, succeeds, text};
use hartrace_capture::trace::{Formatter, Pib, PibWidth, RamSink, write_pins};
use hartrace_ntrace::RamBuffer;
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
    let mut buffer = RamBuffer::new(sink).unwrap();
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
