//! Contexts and their names, debug files, and code that is missing.

use crate::{Folder, repository, run, text};
use flate2::Crc;
use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

fn program(name: &str) -> String {
    let path = repository().join("programs").join(name);
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn done(args: &[&str]) -> Output {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    output
}

/// The program without sections, but for the name of its debug file.
fn stripped(file: &[u8], link: &str) -> Vec<u8> {
    let mut data = [link.as_bytes(), &[0]].concat();
    data.resize(data.len().next_multiple_of(4), 0);
    let mut crc = Crc::new();
    crc.update(file);
    data.extend(crc.sum().to_le_bytes());
    let names = b"\0.gnu_debuglink\0.shstrtab\0";
    let mut new = file.to_vec();
    new.resize(new.len().next_multiple_of(8), 0);
    let at = new.len();
    new.extend(&data);
    new.extend(names);
    new.resize(new.len().next_multiple_of(8), 0);
    let table = new.len();
    let header = |name: u32, kind: u32, offset: usize, size: usize| {
        let mut header = Vec::new();
        header.extend(name.to_le_bytes());
        header.extend(kind.to_le_bytes());
        for word in [0, 0, offset as u64, size as u64, 0, 1, 0] {
            header.extend(u64::to_le_bytes(word));
        }
        header
    };
    new.extend([0; 64]);
    new.extend(header(1, 1, at, data.len()));
    new.extend(header(16, 3, at + data.len(), names.len()));
    new[40..48].copy_from_slice(&(table as u64).to_le_bytes());
    new[58..64].copy_from_slice(&[64, 0, 3, 0, 2, 0]);
    new
}

#[test]
fn names_and_lines_come_from_debug_files() {
    let folder = Folder::new();
    let whole = fs::read(program("sieve/sieve-rv64gc.elf")).unwrap();
    let elf = folder.file("prog.elf", stripped(&whole, "prog.debug"));
    let trace = folder.path("run.ntrace").to_str().unwrap().to_owned();
    done(&["run", "-q", &elf, "--trace", &format!("ntrace={trace}")]);
    let without = done(&["profile", &trace]);
    assert!(!text(&without.stdout).contains("insertion_sort"));
    let place = folder.path("dbg");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("prog.debug"), &whole).unwrap();
    let debug = place.to_str().unwrap();
    let with = done(&["profile", &trace, "--debug-dir", debug]);
    let line = text(&with.stdout)
        .lines()
        .find(|l| l.contains("insertion_sort"));
    assert!(line.unwrap().contains("sieve.c:"), "{}", text(&with.stdout));
    let listing = done(&["decode", &trace, "--debug-dir", debug, "--until", "20"]);
    assert!(
        text(&listing.stdout).contains("_start"),
        "{}",
        text(&listing.stdout)
    );
    // Another file of that name is not used.
    fs::write(place.join("prog.debug"), &whole[1..]).unwrap();
    let wrong = done(&["profile", &trace, "--debug-dir", debug]);
    assert_eq!(wrong.stdout, without.stdout);
    // Beside the program it is found by itself.
    fs::write(folder.path("prog.debug"), &whole).unwrap();
    assert_eq!(done(&["profile", &trace]).stdout, with.stdout);
}

#[test]
fn contexts_have_names_in_all_views() {
    let folder = Folder::new();
    let trace = folder.path("run.etrace").to_str().unwrap().to_owned();
    let settings = folder.file("c.toml", "[etrace]\ncontext_width = 32\n");
    let elf = program("contexts/contexts-rv64gc.elf");
    let kind = format!("etrace={trace}");
    done(&["run", "-q", &elf, "-c", &settings, "--trace", &kind]);
    let names = folder.file("n.toml", "[contexts]\n0x1001 = \"the second\"\n");
    let show = |args: &[&str]| {
        let args = [args, &[trace.as_str(), "-c", names.as_str()]].concat();
        text(&done(&args).stdout).to_owned()
    };
    let profile = show(&["profile", "--by", "context", "--top", "1"]);
    let table: Vec<&str> = profile
        .lines()
        .skip(3)
        .take_while(|l| !l.is_empty())
        .collect();
    let named = |line: &&&str| line.ends_with("[context 0x1001 the second]");
    assert_eq!(table.iter().filter(named).count(), 1, "{profile}");
    assert!(profile.contains("\n[context 0x1000]\n"), "{profile}");
    // The parts are the whole.
    let cost = |line: &&str| {
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let whole = profile.lines().next().unwrap().replace(' ', "");
    let sum: u64 = table.iter().map(cost).sum();
    assert_eq!(whole, format!("{sum}instructions"));
    assert!(show(&["decode"]).contains("context 0x1001 the second"));
    assert!(show(&["calls", "--by", "context"]).contains("[context 0x1001 the second]"));
    let folded = show(&["profile", "-f", "folded", "--by", "context"]);
    assert!(folded.contains("[context 0x1001 the second];"), "{folded}");
}

/// Where a function is.
fn function(name: &str, elf: &hartrace_flow::elf::Elf<'_>) -> u64 {
    let symbols = elf.symbols(false);
    let named = |s: &&hartrace_flow::elf::Symbol<'_>| s.name.is(name.as_bytes());
    symbols.iter().find(named).unwrap().value
}

#[test]
fn missing_code_says_whose_it_probably_is() {
    let folder = Folder::new();
    let trace = folder.path("run.etrace").to_str().unwrap().to_owned();
    let settings = folder.file("c.toml", "[etrace]\ncontext_width = 32\n");
    let kind = format!("etrace={trace}");
    let elf = program("contexts/contexts-rv64gc.elf");
    done(&["run", "-q", &elf, "-c", &settings, "--trace", &kind]);
    fs::remove_file(folder.path("run.etrace.toml")).unwrap();
    // One function is missing.
    let file = fs::read(&elf).unwrap();
    let file = hartrace_flow::elf::Elf::parse(&file).unwrap();
    let load = file.loads().unwrap().remove(0);
    let (data, base) = (load.data.unwrap(), load.address);
    let (from, to) = (function("hashes", &file), function("work", &file));
    let before = folder.file("before.bin", &data[..(from - base) as usize]);
    let after = folder.file("after.bin", &data[(to - base) as usize..]);
    let (before, after) = (format!("{before}@{base}"), format!("{after}@{to}"));
    let config = folder.file("d.toml", "[etrace]\ncontext_width = 32\n");
    let args = [
        "stats", &trace, "--raw", &before, "--raw", &after, "--isa", "rv64gc", "-c", &config,
    ];
    let output = run(&args);
    let message = text(&output.stderr);
    assert!(message.contains("no code at this address (0x"), "{message}");
    let whose = "-mode: probably ";
    assert!(
        message.contains("in context 0x") && message.contains(whose),
        "{message}"
    );
    // Whatever the number of threads.
    for threads in ["1", "2", "5"] {
        let again = run(&[&args[..], &["--threads", threads]].concat());
        assert_eq!(text(&again.stderr), message);
    }
}

/// What ran in each context adds up to what ran.
#[test]
fn coverage_of_each_context() {
    let folder = Folder::new();
    let config = folder.file(
        "c.toml",
        "[ntrace]\ncontext = true\n[etrace]\ncontext_width = 8\n[contexts]\n0 = \"idle\"\n",
    );
    let elf = program("contexts/contexts-rv64gc.elf");
    for format in ["ntrace", "etrace"] {
        let trace = folder.path(format).to_str().unwrap().to_owned();
        let spec = format!("{format}={trace}");
        done(&["run", "-q", &elf, "-c", &config, "--trace", &spec]);
        // Functions with their counts; a header of each context before them.
        let counts = |args: &[&str]| {
            let all = [&["coverage", &trace, "-f", "json"], args].concat();
            let output = done(&all);
            let lines = text(&output.stdout).lines().map(|line| {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                value
            });
            lines.collect::<Vec<_>>()
        };
        let function = |value: &serde_json::Value| {
            let function = (value["type"] == "function").then_some(value)?;
            Some((
                function["name"].as_str()?.to_owned(),
                function["count"].as_u64()?,
            ))
        };
        let whole: BTreeMap<String, u64> = counts(&[]).iter().filter_map(function).collect();
        let apart = counts(&["--by", "context"]);
        let mut sum = BTreeMap::new();
        for (name, count) in apart.iter().filter_map(function) {
            *sum.entry(name).or_insert(0) += count;
        }
        assert_eq!(sum, whole, "{format}");
        let headers: Vec<_> = apart.iter().filter(|v| v["type"] == "header").collect();
        assert!(headers.len() > 2, "{format}: {headers:?}");
        let idle = headers
            .iter()
            .find(|header| header["context"] == 0)
            .unwrap();
        assert_eq!(idle["name"], "idle");
        let shown = done(&["coverage", &trace, "--by", "context"]);
        assert!(text(&shown.stdout).contains("context 0x0 idle\ninstructions "));
        let lcov = done(&["coverage", &trace, "--by", "context", "-f", "lcov"]);
        assert!(text(&lcov.stdout).contains("TN:context_0x0_idle\nSF:"));
        let refused = run(&["coverage", &trace, "--by", "context", "-f", "cobertura"]);
        assert_eq!(refused.status.code(), Some(2));
    }
}
