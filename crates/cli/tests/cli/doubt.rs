//! Traces that decode without a gap and may still be incomplete: messages that
//! may be damaged ones, and traces without their end.

use crate::{Folder, RV64, repository, run, text};
use std::fs;
use std::process::Output;

/// The trace of a whole run of `recursion`, in this format.
fn recursion(folder: &Folder, format: &str) -> (String, Vec<u8>) {
    let program = repository().join("programs/recursion/recursion-rv64gc.elf");
    let trace = folder.name(&format!("run.{format}"));
    let to = format!("{format}={trace}");
    let output = run(&["run", "-q", program.to_str().unwrap(), "--trace", &to]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let bytes = fs::read(&trace).unwrap();
    (trace, bytes)
}

/// The code is reported once, on stderr, and the exit code is this.
#[track_caller]
fn reports(output: &Output, code: &str, exit: i32) {
    let message = text(&output.stderr);
    assert_eq!(
        message.matches(&format!("[{code}]")).count(),
        1,
        "{message}"
    );
    assert_eq!(output.status.code(), Some(exit), "{message}");
}

/// Every command that reads a trace reports `code`. With `--strict` it is an
/// error, as `strict`.
#[track_caller]
fn everywhere(folder: &Folder, trace: &str, code: &str, strict: &str) {
    let new = folder.name("new");
    let to = match trace.ends_with("ntrace") {
        true => "etrace",
        false => "ntrace",
    };
    let commands: [&[&str]; 4] = [
        &["decode", trace, "-f", "pc"],
        &["stats", trace],
        &["convert", trace, "--to", to, "-o", &new],
        &["ctr", trace, "--every", "1K"],
    ];
    for command in commands {
        reports(&run(command), code, 0);
        let output = run(&[command, &["--strict"]].concat());
        reports(&output, code, 3);
        reports(&output, strict, 3);
        let quiet = run(&[command, &["--strict", "-q"]].concat());
        assert_eq!(quiet.status.code(), Some(3), "{command:?}");
    }
    for command in ["stats", "info"] {
        let output = run(&[command, trace, "-f", "json"]);
        let json = text(&output.stdout);
        assert!(json.contains("\"warnings\":["), "{json}");
        let is_gap = strict == "HT0111";
        assert!(
            json.contains(code) || command == "stats" && is_gap,
            "{json}"
        );
    }
    let info = run(&["info", trace]);
    assert!(text(&info.stdout).contains(code), "{}", text(&info.stdout));
    reports(&run(&["dump", trace]), code, 0);
}

/// `[ntrace]` of a sidecar with another value for a key.
fn with_setting(trace: &str, key: &str, value: &str) {
    let path = format!("{trace}.toml");
    let sidecar = fs::read_to_string(&path).unwrap();
    let lines = sidecar.lines().map(|line| match line.starts_with(key) {
        true => format!("{key} = {value}\n"),
        false => format!("{line}\n"),
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
}

#[test]
fn a_reserved_tcode_is_reported() {
    let folder = Folder::new();
    let (trace, mut bytes) = recursion(&folder, "ntrace");
    let pcs = run(&["decode", &trace, "-f", "pc", "--strict"]).stdout;
    bytes[719] = 0x60;
    fs::write(&trace, &bytes).unwrap();
    // Our own encoder sends no such message: it is damage.
    everywhere(&folder, &trace, "NT0212", "HT0111");
    // Another may.
    with_setting(&trace, "other_tcodes", "\"report\"");
    everywhere(&folder, &trace, "NT0212", "HT0119");
    let output = run(&["decode", &trace, "-f", "json"]);
    let json = text(&output.stdout);
    assert!(json.contains(r#""type":"warning","hart":0,"code":"NT0212""#));
    assert!(json.contains(r#""value":"0x18","offset":719,"loss":true"#));
    let output = run(&["stats", &trace, "-f", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["warnings"][0]["offset"], 719);
    assert_eq!(json["warnings"][0]["count"], 1);
    assert_eq!(json["sources"][0]["ended"], true);
    // Or it is known to.
    let vendor = [&[56 << 2, 0x03][..], &[7 << 2, 0x03]].concat();
    let (trace, bytes) = recursion(&folder, "ntrace");
    fs::write(&trace, [&bytes[..719], &vendor, &bytes[719..]].concat()).unwrap();
    let output = run(&["decode", &trace, "-f", "pc"]);
    reports(&output, "NT0213", 0);
    with_setting(&trace, "ignore_tcodes", "[7, 56]");
    for command in ["decode", "stats", "info", "dump"] {
        let output = run(&[command, &trace]);
        assert_eq!(text(&output.stderr), "", "{command}");
        assert!(!text(&output.stdout).contains("NT0213"));
    }
    let output = run(&["decode", &trace, "-f", "pc", "--strict"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == pcs);
}

#[test]
fn only_other_tcodes_can_be_ignored() {
    let folder = Folder::new();
    let trace = folder.file("t", [0x24, 0x0f]);
    for (value, code) in [
        ("[28]", "IndirectBranchHist"),
        ("[0]", "1 to 63"),
        ("[64]", "1 to 63"),
    ] {
        let text = format!("[ntrace]\nignore_tcodes = {value}\n");
        let config = folder.file("c.toml", text);
        let message = crate::fails(&["dump", &trace, "-c", &config], 1, "HT0204");
        assert!(message.contains(code), "{message}");
    }
}

#[test]
fn a_data_packet_without_data_trace_is_reported() {
    let folder = Folder::new();
    let (trace, mut bytes) = recursion(&folder, "etrace");
    assert_eq!(bytes[36], 0x41);
    bytes[36] = 0x61;
    fs::write(&trace, &bytes).unwrap();
    everywhere(&folder, &trace, "ET0208", "HT0111");
}

/// Cut at each of its messages, a trace is never taken for a whole one.
#[test]
fn a_trace_cut_between_messages_is_reported() {
    let folder = Folder::new();
    for (format, code) in [("ntrace", "NT0402"), ("etrace", "ET0402")] {
        let to = format!("{format}={}", folder.name(format));
        run(&["run", "-q", RV64, "--max-insns", "20K", "--trace", &to]);
        let trace = folder.name(format);
        let bytes = fs::read(&trace).unwrap();
        let dump = run(&["dump", &trace]);
        let offsets = text(&dump.stdout).lines().skip(1);
        let offsets = offsets.map(|line| usize::from_str_radix(&line[..8], 16).unwrap());
        // Before the first address there is nothing that could end.
        let offsets: Vec<usize> = offsets.filter(|&at| at > 16).collect();
        assert!(offsets.len() > 20, "{}", offsets.len());
        for &at in offsets.iter().step_by(offsets.len() / 10) {
            fs::write(&trace, &bytes[..at]).unwrap();
            let output = run(&["decode", &trace, "-f", "pc", "--strict"]);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{at}: {message}");
            assert!(message.contains("HT0119") || message.contains("HT0111"));
        }
        let at = offsets[offsets.len() / 2];
        fs::write(folder.name(&format!("cut.{format}")), &bytes[..at]).unwrap();
        let sidecar = fs::read(format!("{trace}.toml")).unwrap();
        let cut = folder.name(&format!("cut.{format}"));
        fs::write(format!("{cut}.toml"), sidecar).unwrap();
        everywhere(&folder, &cut, code, "HT0119");
        let output = run(&["stats", &cut, "-f", "json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["sources"][0]["ended"], false);
        // Without the program too.
        fs::write(format!("{cut}.toml"), format!("[{format}]\n")).unwrap();
        reports(&run(&["stats", &cut, "--strict"]), code, 3);
    }
}

/// A trace of the reference encoder may end without the message.
#[test]
fn the_reference_ending_has_no_end_message() {
    let folder = Folder::new();
    let (trace, bytes) = recursion(&folder, "ntrace");
    fs::write(&trace, &bytes[..bytes.len() - 4]).unwrap();
    reports(&run(&["decode", &trace, "-f", "pc"]), "NT0402", 0);
    with_setting(&trace, "ending", "\"reference\"");
    let output = run(&["decode", &trace, "-f", "pc", "--strict"]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
