//! What a program did: `decode` as text, `profile`, `calls`, `coverage`, `diff`.

use crate::{Folder, RV32, RV64, fails, repository, run, succeeds, text};
use std::collections::BTreeMap;
use std::fs;

fn program(name: &str) -> String {
    let path = repository().join("programs").join(name);
    path.to_str().unwrap().to_owned()
}

/// Every format, and the logs that are read.
const ALL: [&str; 5] = ["ntrace", "etrace", "tandem", "pc", "spike"];

/// The program `recursion`, recorded in these formats and logs.
fn recorded_as(folder: &Folder, kinds: &[&str], insns: &str) -> Vec<String> {
    let elf = program("recursion/recursion-rv64gc.elf");
    let mut args: Vec<String> = ["run", "-q", &elf, "--max-insns", insns]
        .map(str::to_owned)
        .to_vec();
    let mut files = Vec::new();
    for kind in kinds {
        let flag = match *kind {
            "pc" | "spike" => "--log",
            _ => "--trace",
        };
        let file = folder.name(&format!("run.{kind}"));
        args.extend([flag.to_owned(), format!("{kind}={file}")]);
        files.push(file);
    }
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    files
}

/// The whole run as N-Trace and E-Trace.
fn recorded(folder: &Folder) -> Vec<String> {
    recorded_as(folder, &["ntrace", "etrace"], "1M")
}

/// One answer, whatever the trace is.
#[test]
fn every_format_and_log_gives_the_same() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    // A list of pcs does not say where its last instruction went: it is no branch.
    let files = recorded_as(&folder, &ALL, "30002");
    for view in [
        &["profile", "-f", "json"][..],
        &["profile", "-f", "callgrind"],
        &["profile", "-f", "folded"],
        &["calls", "-f", "json"],
        &["branches", "-f", "json"],
        &["coverage", "-f", "json"],
        &["coverage", "-f", "lcov"],
        &["coverage", "-f", "cobertura"],
    ] {
        let of = |file: &String| {
            let output = run(&[view, &[file, "-e", &elf]].concat());
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            text(&output.stdout).to_owned()
        };
        let first = of(&files[0]);
        assert!(first.lines().count() > 20, "{first}");
        for file in &files[1..] {
            assert!(of(file) == first, "{view:?} of {file}");
        }
    }
}

/// The program counts the calls of one of its functions itself.
#[test]
fn a_profile_has_what_the_program_counts() {
    let folder = Folder::new();
    let files = recorded(&folder);
    let table = succeeds(&["profile", &files[0]]);
    assert!(
        table.starts_with("296 735 instructions\n\n self %"),
        "{table}"
    );
    let row = table
        .lines()
        .find(|line| line.contains("  ackermann  "))
        .unwrap();
    assert_eq!(row.split_whitespace().nth(4), Some("2584"), "{row}");
    let rows = |args: &[&str]| succeeds(&[&["profile", &files[0]], args].concat());
    assert!(rows(&["--top", "1"]).ends_with("recursion.c:81\n(16 more functions)\n"));
    assert!(rows(&["--of", "calls"]).contains("         2582  ackermann -> ackermann\n"));
    let loops = rows(&["--of", "loops", "--top", "1"]);
    assert!(
        loops.contains("0x800007e4..0x8000081c  queens  recursion.c:87"),
        "{loops}"
    );
    let source = program("recursion");
    let lines = rows(&["--of", "lines", "--source-dir", &source]);
    assert!(lines.contains("recursion.c:40  return n < 2 ?"), "{lines}");
    let old = format!("programs/recursion={source}");
    let code = rows(&[
        "--of",
        "instructions",
        "--function",
        "hanoi",
        "--source-dir",
        &old,
    ]);
    assert!(code.starts_with("hanoi\n"), "{code}");
    assert!(
        code.contains("; recursion.c:66      if (discs == 0)\n"),
        "{code}"
    );
    assert!(
        code.contains("  512  80000706:  beqz    a0,800007a4 <hanoi+0x9e>\n"),
        "{code}"
    );
    let text = rows(&["--of", "source", "--source-dir", &source, "--top", "1"]);
    assert!(
        text.contains("\n   5.63         16719          1597     40  "),
        "{text}"
    );
}

/// Twice the same trace is twice the count; a trace beside itself has no difference.
#[test]
fn traces_are_added_and_compared() {
    let folder = Folder::new();
    let files = recorded(&folder);
    let sum = succeeds(&["profile", &files[0], &files[1], "--top", "1"]);
    assert!(sum.starts_with("593 470 instructions\n"), "{sum}");
    let change = succeeds(&["profile", &files[0], "--baseline", &files[1], "--top", "1"]);
    assert!(change.starts_with("instructions: 296735 before, 296735 now, +0 (+0.00 %)"));
    let short = folder.name("short.ntrace");
    let elf = program("recursion/recursion-rv64gc.elf");
    let to = format!("ntrace={short}");
    run(&["run", "-q", &elf, "--max-insns", "100K", "--trace", &to]);
    let change = succeeds(&["profile", &files[0], "--baseline", &short]);
    assert!(change.contains("        +121690       new"), "{change}");
    let folded = succeeds(&["profile", &files[0], "--baseline", &short, "-f", "folded"]);
    let path = folded
        .lines()
        .find(|l| l.starts_with("_start;main;queens "))
        .unwrap();
    assert_eq!(path, "_start;main;queens 0 328");
    let json = succeeds(&["profile", &files[0], "--baseline", &short, "-f", "json"]);
    assert!(json.starts_with("{\"type\":\"header\",\"schema\":\"hartrace-profile-difference\""));
    // Another program cannot be added.
    let other = folder.name("other.ntrace");
    run(&["run", "-q", RV64, "--trace", &format!("ntrace={other}")]);
    let message = fails(&["profile", &files[0], &other], 1, "HT0122");
    assert!(
        message.contains("come from different programs"),
        "{message}"
    );
    fails(&["coverage", &files[0], &other], 1, "HT0122");
    // It can be compared.
    succeeds(&["profile", &files[0], "--baseline", &other]);
}

#[test]
fn calls_and_latencies() {
    let folder = Folder::new();
    let files = recorded(&folder);
    let tree = succeeds(&["calls", &files[0], "--depth", "3", "--least", "5"]);
    let lines: Vec<&str> = tree.lines().collect();
    assert_eq!(lines[0], "296 735 instructions");
    assert_eq!(
        lines[3],
        " 100.00         296735            459            1  _start"
    );
    assert_eq!(
        lines[4],
        "  99.77         296045            178            1    main"
    );
    assert!(tree.contains(" paths left out)\n"), "{tree}");
    let row = lines
        .iter()
        .find(|line| line.ends_with("  fibonacci"))
        .unwrap();
    let latency = lines
        .iter()
        .rev()
        .find(|line| line.ends_with("  fibonacci"))
        .unwrap();
    assert_ne!(row, latency);
    assert_eq!(latency.split_whitespace().next(), Some("1597"));
}

/// Interrupts are trees of their own, and modes can be told apart.
#[test]
fn traps_and_modes() {
    let folder = Folder::new();
    let timer = program("timer/timer-rv64gc.elf");
    let trace = folder.name("t.etrace");
    run(&["run", "-q", &timer, "--trace", &format!("etrace={trace}")]);
    let tree = succeeds(&["calls", &trace, "--depth", "1"]);
    assert!(tree.contains("  [machine timer interrupt]\n"), "{tree}");
    let modes = program("modes/modes-rv64gc.elf");
    let trace = folder.name("m.etrace");
    run(&["run", "-q", &modes, "--trace", &format!("etrace={trace}")]);
    let table = text(&run(&["profile", &trace, "--by", "mode", "--top", "1"]).stdout).to_owned();
    for mode in ["[M-mode]", "[S-mode]", "[U-mode]"] {
        assert!(table.contains(&format!("\n{mode}\n")), "{table}");
    }
}

#[test]
fn coverage_of_one_and_several() {
    let folder = Folder::new();
    let files = recorded(&folder);
    let report = succeeds(&["coverage", &files[0]]);
    assert!(report.starts_with("instructions"), "{report}");
    assert!(report.contains("\n    0.00          - "), "{report}");
    assert!(report.contains("  never taken   0x"), "{report}");
    let one = succeeds(&["coverage", &files[0], "-f", "lcov"]);
    for kind in [
        "TN:",
        "SF:",
        "FN:",
        "FNDA:",
        "BRDA:",
        "DA:",
        "LF:",
        "LH:",
        "end_of_record",
    ] {
        assert!(one.lines().any(|line| line.starts_with(kind)), "{kind}");
    }
    let many: Vec<&str> = [&["coverage", "-f", "lcov"][..], &[files[0].as_str(); 10]].concat();
    let sum = succeeds(&many);
    let counts = |text: &str| -> u64 {
        let lines = text.lines().filter_map(|line| line.strip_prefix("DA:"));
        lines
            .map(|line| line.split_once(',').unwrap().1.parse::<u64>().unwrap())
            .sum()
    };
    assert_eq!(counts(&sum), 10 * counts(&one));
    // The number of threads makes no difference.
    for threads in ["1", "3"] {
        assert_eq!(
            succeeds(&["coverage", &files[0], "-f", "lcov", "--threads", threads]),
            one
        );
    }
}

#[test]
fn coverage_below_a_limit() {
    let folder = Folder::new();
    let files = recorded(&folder);
    succeeds(&[
        "coverage",
        &files[0],
        "--fail-under",
        "10",
        "-o",
        &folder.name("a"),
    ]);
    let out = folder.name("b");
    let args = [
        "coverage",
        &files[0],
        "--fail-under",
        "branches=99.5%",
        "-o",
        &out,
    ];
    let message = fails(&args, 4, "HT0603");
    assert!(message.contains("coverage of branches is "), "{message}");
    // The report is there all the same.
    assert!(fs::metadata(&out).is_ok());
    for wrong in ["many", "lines=101", "words=10", "-1"] {
        let output = run(&["coverage", &files[0], &format!("--fail-under={wrong}")]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

/// What cannot be done is said before anything is written.
#[test]
fn wrong_usage() {
    let folder = Folder::new();
    let files = recorded(&folder);
    let trace = &files[0];
    fails(&["profile", trace, "--cost", "time"], 1, "HT0121");
    for args in [
        &["profile", trace, "--of", "lines", "-f", "json"][..],
        &["profile", trace, "--function", "main"],
        &["profile", trace, "--baseline", trace, "--of", "lines"],
        &["profile", trace, "--baseline", trace, "-f", "callgrind"],
        &["profile"],
        &["coverage"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
    fails(&["profile", RV32], 5, "HT0113");
    let pcs = recorded_as(&folder, &["pc"], "1K");
    fails(&["profile", &pcs[0]], 2, "HT0304");
    // The output is not an input.
    fails(&["profile", trace, "-o", trace], 2, "HT0007");
}

/// A trace with timestamps has times, and they add up.
#[test]
fn time_is_shared_out() {
    let folder = Folder::new();
    let config = folder.file("c.toml", "[ntrace]\ntimestamps = true\n");
    let trace = folder.name("t.ntrace");
    let elf = program("timer/timer-rv64gc.elf");
    let to = format!("ntrace={trace}");
    let output = run(&["run", "-q", &elf, "-c", &config, "--trace", &to]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = succeeds(&["profile", &trace, "--cost", "time"]);
    let first = table.lines().next().unwrap();
    assert!(first.contains(" units of time"), "{first}");
    let whole: u64 = {
        let (_, time) = first.split_once(", ").unwrap();
        let digits: String = time.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let rows = table.lines().skip(3);
    let sum: u64 = rows
        .map(|row| {
            row.split_whitespace()
                .nth(1)
                .unwrap()
                .parse::<u64>()
                .unwrap()
        })
        .sum();
    assert_eq!(sum, whole);
    assert!(whole > 10_000);
}

/// The loops of a program, with their rounds, and where its pointers lead.
#[test]
fn branches_jumps_and_loops() {
    let folder = Folder::new();
    let elf = program("callbacks/callbacks-rv64gc.elf");
    let trace = folder.name("c.ntrace");
    run(&["run", "-q", &elf, "--trace", &format!("ntrace={trace}")]);
    let tables = succeeds(&["branches", &trace, "--top", "3"]);
    assert!(
        tables.starts_with("  executions        taken  taken %  branch\n"),
        "{tables}"
    );
    assert!(tables.contains("  indirect jump -> targets\n"), "{tables}");
    assert!(tables.contains(" -> 0x"), "{tables}");
    assert!(tables.contains("      max  loop\n"), "{tables}");
    let json = succeeds(&["branches", &trace, "-f", "json"]);
    let call =
        |line: &&str| line.contains("\"kind\":\"call\"") && line.matches("\"pc\"").count() > 3;
    assert!(
        json.lines().any(|line| call(&line)),
        "a call through a table of functions"
    );
}

/// Two runs that are the same, whatever their formats.
#[test]
fn equal_runs() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let files = recorded_as(&folder, &ALL, "30K");
    for other in &files[1..] {
        let output = run(&["diff", &files[0], other, "-e", &elf]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "no difference: 30 000 instructions\n");
    }
}

/// A run that leaves instructions out: where, what, and where both go on.
#[test]
fn runs_that_differ() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let files = recorded_as(&folder, &["ntrace", "pc"], "30K");
    let pcs = fs::read_to_string(&files[1]).unwrap();
    let lines = pcs.lines().enumerate();
    let lines = lines.filter(|(at, _)| !(5000..5003).contains(at) && *at != 9000);
    let shorter: String = lines.map(|(_, line)| format!("{line}\n")).collect();
    let other = folder.file("other.pc", shorter);
    let output = run(&["diff", &files[0], &other, "-e", &elf, "--context", "3"]);
    assert_eq!(output.status.code(), Some(4));
    let words = text(&output.stdout);
    // Source lines are found around the program.
    assert!(words.contains("    ; while (*end != '\\0')\n"), "{words}");
    let plain = words.lines().filter(|line| !line.starts_with("    ; "));
    let report: Vec<&str> = plain.collect();
    assert_eq!(
        report[0],
        "difference 1: after instruction 5000 of A, 5000 of B"
    );
    assert_eq!(report[1], "  both");
    assert!(report[5].starts_with("  only A, "), "{words}");
    assert!(report[5].ends_with(": 3 instructions"), "{words}");
    assert!(report[9].ends_with(": 0 instructions"), "{words}");
    assert!(report[10].starts_with("  both again from 0x"), "{words}");
    assert!(
        words.contains("\ndifference 2: after instruction 9000 of A, 8997 of B\n"),
        "{words}"
    );
    assert!(
        words.ends_with("\n2 differences; 29 996 instructions in both\n"),
        "{words}"
    );
    assert!(text(&output.stderr).contains("error[HT0604]: "));
    let output = run(&[
        "diff", &files[0], &other, "-e", &elf, "-f", "json", "--max", "1",
    ]);
    assert_eq!(output.status.code(), Some(4));
    let words = text(&output.stdout);
    assert_eq!(words.lines().count(), 3, "{words}");
    assert!(
        words.contains("\"alone_a\":3,\"alone_b\":0,\"meet\":\"0x"),
        "{words}"
    );
    let source = program("recursion");
    let args = [
        "diff",
        &files[0],
        &other,
        "-e",
        &elf,
        "--source-dir",
        &source,
    ];
    assert!(text(&run(&args).stdout).contains("    ; "));
}

/// Packets and messages of two traces: the same, one changed, one left out.
#[test]
fn messages_that_differ() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    for kind in ["ntrace", "etrace"] {
        let trace = folder.name(&format!("t.{kind}"));
        let to = format!("{kind}={trace}");
        run(&["run", "-q", &elf, "--max-insns", "5000", "--trace", &to]);
        let sidecar = fs::read(format!("{trace}.toml")).unwrap();
        let dump = succeeds(&["dump", &trace]);
        let offset = |line: &str| usize::from_str_radix(&line[..8], 16).unwrap();
        let places: Vec<usize> = dump.lines().map(offset).collect();
        let bytes = fs::read(&trace).unwrap();
        let changed = |name: &str, bytes: Vec<u8>| {
            folder.file(&format!("{name}.{kind}.toml"), sidecar.clone());
            folder.file(&format!("{name}.{kind}"), bytes)
        };
        let same = changed("same", bytes.clone());
        let equal = succeeds(&["diff", &trace, &same, "--messages"]);
        assert!(equal.starts_with("no difference: "), "{equal}");
        // The twentieth message is gone.
        let mut less = bytes.clone();
        less.drain(places[20]..places[21]);
        let less = changed("less", less);
        let output = run(&["diff", &trace, &less, "--messages", "--context", "2"]);
        assert_eq!(output.status.code(), Some(4));
        let words = text(&output.stdout);
        let lines: Vec<&str> = words.lines().collect();
        assert_eq!(lines[0], "difference 1: after message 20 of A, 20 of B");
        let shown = |line: &str, at: usize| line.trim_start().starts_with(&format!("{at:08x}  "));
        assert!(
            shown(lines[2], places[18]) && shown(lines[3], places[19]),
            "{words}"
        );
        assert!(lines[4].starts_with("  only A, ") && lines[4].ends_with(": 1 message"));
        assert!(shown(lines[5], places[20]), "{words}");
        assert!(lines[6].ends_with(": 0 messages"), "{words}");
        assert_eq!(lines[7], "  both again after message 21 of A");
        // As objects.
        let args = ["diff", &trace, &less, "--messages", "-f", "json"];
        let output = run(&args);
        let words = text(&output.stdout);
        let objects: Vec<serde_json::Value> = words
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(objects[1]["at_a"], 20);
        assert_eq!(objects[1]["a"][0]["offset"], places[20]);
        assert_eq!(
            (&objects[1]["alone_a"], &objects[1]["alone_b"]),
            (&1.into(), &0.into())
        );
        assert_eq!(objects[2]["differences"], 1);
    }
    let traces = ["ntrace", "etrace"].map(|kind| folder.name(&format!("t.{kind}")));
    let output = run(&["diff", &traces[0], &traces[1], "--messages"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("traces of one format"));
    let output = run(&["diff", &traces[0], &traces[1], "--ignore", "TSTAMP"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Times differ, and are left out.
#[test]
fn messages_but_for_their_times() {
    let folder = Folder::new();
    let elf = program("sieve/sieve-rv64gc.elf");
    let files = ["1", "2"].map(|cost| {
        let config = format!("[ntrace]\ntimestamps = true\n[hart.cost]\nload = {cost}\n");
        let config = folder.file(&format!("{cost}.toml"), config);
        let trace = folder.name(&format!("{cost}.ntrace"));
        let to = format!("ntrace={trace}");
        let args = [
            "run",
            "-q",
            &elf,
            "--max-insns",
            "3000",
            "-c",
            &config,
            "--trace",
            &to,
        ];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        trace
    });
    let [a, b] = &files;
    let output = run(&["diff", a, b, "--messages"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let equal = succeeds(&["diff", a, b, "--messages", "--ignore", "TSTAMP"]);
    assert!(equal.starts_with("no difference: "), "{equal}");
    // A name that no field has would leave nothing out.
    let output = run(&["diff", a, b, "--messages", "--ignore", "tstmp"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("no field `tstmp`")
            && message.contains("did you mean `TSTAMP`?")
            && message.contains("ICNT, BTYPE"),
        "{message}"
    );
}

/// The listing of a part: by instruction, symbol, trap and time, in every format.
#[test]
fn parts_of_a_listing() {
    let folder = Folder::new();
    let timer = program("timer/timer-rv64gc.elf");
    let mut texts = Vec::new();
    for kind in ["ntrace", "etrace", "tandem"] {
        let trace = folder.name(&format!("t.{kind}"));
        let to = format!("{kind}={trace}");
        run(&["run", "-q", &timer, "--max-insns", "6000", "--trace", &to]);
        let args = ["decode", &trace, "-e", &timer];
        let list = |more: &[&str]| succeeds(&[&args, more].concat());
        let whole = list(&["-f", "pc"]);
        let pcs: Vec<&str> = whole.lines().collect();
        let part = list(&["-f", "pc", "--from", "100", "--until", "250"]);
        assert_eq!(part.lines().collect::<Vec<_>>(), pcs[100..250]);
        let part = list(&["-f", "json", "--around", "4000", "--context", "3"]);
        assert!(
            part.contains("\"insns\":") && part.lines().count() < 10,
            "{part}"
        );
        // A handler is indented, and returns to where it was called.
        let text = list(&["--around", "timer_entry", "--context", "100"]);
        assert!(text.starts_with("-- instruction "), "{text}");
        // N-Trace does not report causes.
        let (point, trap) = match kind {
            "ntrace" => ("interrupt#2", "-- interrupt at 0x"),
            _ => (
                "interrupt=7",
                "-- interrupt 7, machine timer interrupt, at 0x",
            ),
        };
        assert!(list(&["--around", point]).contains(trap));
        let trap = text.find(trap).unwrap();
        let after = text[trap..].lines().nth(1).unwrap();
        assert!(
            after.contains("    j       ") && after.contains("vectors+"),
            "{after}"
        );
        let back = text[trap..].lines().find(|l| l.contains("mret")).unwrap();
        assert!(back.contains("[to 8000"), "{back}");
        let found = list(&["--find", "run_ticks"]);
        let lines: Vec<&str> = found.lines().filter(|l| !l.starts_with("--")).collect();
        assert!(lines.iter().all(|l| l.ends_with("  run_ticks")), "{found}");
        assert_eq!(
            lines.len(),
            pcs.iter().filter(|pc| lines[0].starts_with(**pc)).count()
        );
        texts.push(text);
    }
    let instructions = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|l| !l.starts_with("--"));
        lines.map(str::to_owned).collect()
    };
    for other in &texts[1..] {
        assert_eq!(instructions(other), instructions(&texts[0]));
    }
}

/// Source lines, and the functions that were inlined there.
#[test]
fn source_between_instructions() {
    let folder = Folder::new();
    let trace = &recorded_as(&folder, &["ntrace"], "200000")[0];
    let sources = repository().to_str().unwrap().to_owned();
    let args = ["decode", trace, "-f", "source", "--source-dir", &sources];
    let text = succeeds(&[&args[..], &["--around", "queens#2", "--context", "8"]].concat());
    assert!(text.contains("; recursion.c:89 queens\n;     "), "{text}");
    assert!(text.contains("ways += queens("), "{text}");
    let inlined = succeeds(&[&args[..], &["--until", "150000"]].concat());
    let line = inlined.lines().find(|l| l.contains(", inlined into "));
    let line = line.expect("inlined functions");
    assert!(
        line.starts_with("; ") && line.contains(" at recursion.c:"),
        "{line}"
    );
    let coloured = succeeds(&[&args[..], &["--until", "20", "--color", "always"]].concat());
    assert!(coloured.contains("\x1b["));
}

#[test]
fn points_that_are_not_there() {
    let folder = Folder::new();
    let trace = &recorded_as(&folder, &["etrace"], "5000")[0];
    let list =
        |more: &[&str], exit, code| fails(&[&["decode", trace][..], more].concat(), exit, code);
    list(&["--from", "5000"], 2, "HT0310");
    list(&["--around", "gap"], 1, "HT0124");
    list(&["--find", "trap#900"], 1, "HT0124");
    let message = list(&["--until", "ackerman"], 2, "HT0309");
    assert!(message.contains("ackermann"), "{message}");
    list(&["--from", "main#0"], 2, "HT0309");
    let message = list(&["--from", "#20"], 2, "HT0309");
    assert!(message.contains("before `#`"), "{message}");
    list(&["--from", "time=soon"], 2, "HT0309");
    list(&["--from", "exception=x"], 2, "HT0309");
    assert_eq!(
        run(&["decode", trace, "--context", "3"]).status.code(),
        Some(2)
    );
    let output = run(&["decode", trace, "-f", "pc", "--find", "doubt"]);
    assert_eq!(output.status.code(), Some(2));
}

/// An end that is not after the start is said, not an empty listing.
#[test]
fn an_end_before_the_start() {
    let folder = Folder::new();
    let trace = &recorded_as(&folder, &["ntrace"], "5000")[0];
    for (from, until, at) in [
        ("500", "100", 500),
        ("500", "500", 500),
        ("main", "100", 458),
    ] {
        for format in ["text", "pc"] {
            let part = ["--from", from, "--until", until, "-f", format];
            let message = fails(&[&["decode", trace][..], &part].concat(), 1, "HT0124");
            let reason = format!("`--until {until}` is not after `--from {from}`");
            assert!(message.contains(&reason), "{message}");
            assert!(
                message.contains(&format!("at instruction {at}\n")),
                "{message}"
            );
        }
    }
}

/// Logs are listed as traces are.
#[test]
fn logs_are_listed() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let files = recorded_as(&folder, &["ntrace", "pc", "spike"], "5000");
    let part = ["--from", "main", "--until", "3000"];
    for more in [
        &["-f", "text"][..],
        &["-f", "source"],
        &["-f", "pc"],
        &["-f", "text", "--around", "ackermann#3"],
    ] {
        let of = |file: &String| {
            let whole = [&["decode", file, "-e", &elf][..], more].concat();
            let listing = succeeds(&whole);
            // A log does not report that tracing ends, nor where its last jump goes.
            let lines = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| !line.starts_with("-- "));
                lines.map(str::to_owned).take(4999).collect()
            };
            let cut = succeeds(&[&whole[..], &part].concat());
            (lines(&listing), lines(&cut))
        };
        let first = of(&files[0]);
        for file in &files[1..] {
            assert!(of(file) == first, "{more:?} of {file}");
        }
    }
    for log in &files[1..] {
        let events = succeeds(&["decode", log, "-e", &elf, "-f", "json"]);
        assert!(events.lines().next().unwrap().contains("\"schema\""));
        assert!(
            events.lines().any(|l| l.contains("\"type\":\"run\"")),
            "{events}"
        );
        fails(&["decode", log, "-e", &elf, "--data", log], 1, "HT0206");
    }
}

/// Two harts in a log: one has to be chosen, in a listing and in a comparison.
#[test]
fn harts_of_a_log() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let files = recorded_as(&folder, &["spike", "pc"], "3000");
    let one = fs::read_to_string(&files[0]).unwrap();
    let both: String = one
        .lines()
        .map(|l| format!("{l}\n{}\n", l.replace("core   0", "core   1")))
        .collect();
    let both = folder.file("both.log", both);
    let message = fails(&["decode", &both, "-e", &elf], 2, "HT0305");
    assert!(message.contains("several harts: 0, 1"), "{message}");
    let chosen = succeeds(&["decode", &both, "-e", &elf, "-f", "pc", "--hart", "1"]);
    assert!(chosen == fs::read_to_string(&files[1]).unwrap());
    let events = succeeds(&["decode", &both, "-e", &elf, "-f", "json"]);
    assert!(events.contains("\"hart\":1"), "{events}");
    // The comparison gives up at once, since nothing meets again.
    for more in [&[][..], &["--window", "10", "--max", "1"]] {
        let args = ["diff", &files[1], &both, "-e", &elf];
        let output = run(&[&args[..], more].concat());
        assert_eq!(output.status.code(), Some(2));
        let message = text(&output.stderr);
        assert!(message.contains("several harts: 0, 1"), "{message}");
    }
}

/// What is asked for and cannot be given is said.
#[test]
fn profiles_that_cannot_be() {
    let folder = Folder::new();
    let files = recorded_as(&folder, &["tandem", "ntrace"], "20000");
    let (tandem, ntrace) = (files[0].as_str(), files[1].as_str());
    for args in [
        &["--by", "hart", "--of", "lines"][..],
        &["--by", "mode", "--baseline", ntrace],
        &["--by", "hart", "-f", "callgrind"],
    ] {
        let output = run(&[&["profile", ntrace][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    let args = ["profile", ntrace, "--of", "instructions", "--function"];
    let only = |name: &str| fails(&[&args[..], &[name]].concat(), 1, "HT0124");
    assert!(only("ackerman").contains("similar: ackermann"));
    assert!(only("report_unexpected_trap").contains("was not executed"));
    // Without a program, nothing says that the code is the same.
    let bare = folder.name("bare.tandem");
    fs::copy(tandem, &bare).unwrap();
    for command in ["profile", "coverage"] {
        succeeds(&[command, "-q", &bare]);
        fails(&[command, "-q", &bare, &bare], 2, "HT0304");
    }
}

/// A flipped bit, and what the call stack says about it.
#[test]
fn doubtful_jumps_are_reported() {
    let folder = Folder::new();
    let elf = program("interpreter/interpreter-rv64gc.elf");
    let trace = folder.name("t.etrace");
    let to = format!("etrace={trace}");
    run(&["run", "-q", &elf, "--max-insns", "40000", "--trace", &to]);
    assert!(succeeds(&["stats", "--doubt", &trace]).contains("\ndoubts     0\n"));
    let sound = fs::read(&trace).unwrap();
    let doubtful = (2000..sound.len()).step_by(23).find(|&at| {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x40;
        fs::write(&trace, &bytes).unwrap();
        let stats = run(&["stats", "--doubt", "-f", "json", &trace]);
        let stats = text(&stats.stdout);
        stats.contains("\"doubts\":") && !stats.contains("\"doubts\":0,")
    });
    assert!(doubtful.is_some(), "no flip is noticed");
    let output = run(&["profile", &trace]);
    let message = text(&output.stderr);
    assert!(message.contains("warning[HT0125]"), "{message}");
    let strict = run(&["profile", &trace, "--strict"]);
    assert_eq!(strict.status.code(), Some(3));
    let listing = run(&["decode", &trace, "--find", "doubt", "--context", "2"]);
    let listing = text(&listing.stdout);
    assert!(
        listing.contains("-- doubtful: the jump from 0x8000"),
        "{listing}"
    );
}

/// Shares of the time of firmware that mostly waits for its timer: those of its log, to
/// 0.05 % where the time of every instruction is known. A trace with a timestamp
/// at every taken branch does not say which instruction between two of them took how
/// long: docs/views.md, Time.
#[test]
fn shares_of_time_are_those_of_the_run() {
    let folder = Folder::new();
    let timer = program("timer/timer-rv64gc.elf");
    let config = folder.file("c.toml", "[ntrace]\ntimestamps = true\nmode = \"btm\"\n");
    let [rows, log, trace] = ["t.csv", "t.json", "t.ntrace"].map(|name| folder.name(name));
    let logs = [format!("ingress={rows}"), format!("json={log}")];
    let to = format!("ntrace={trace}");
    run(&[
        "run", "-q", &timer, "-c", &config, "--log", &logs[0], "--log", &logs[1], "--trace", &to,
    ]);
    for (file, most) in [(&rows, 0.05), (&trace, 0.55)] {
        let args = [
            "profile", file, "-e", &timer, "--cost", "time", "-f", "json",
        ];
        let profile = run(&args);
        let functions: BTreeMap<u64, u64> = text(&profile.stdout)
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|value| value["type"] == "function")
            .map(|f| (hex(&f["address"]), f["self"]["time"].as_u64().unwrap()))
            .collect();
        let truth = times(&log, &functions);
        let all: u64 = truth.values().sum();
        let found: u64 = functions.values().sum();
        assert!(functions.len() > 15 && all > 100_000);
        for (function, time) in &functions {
            let share = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
            let truth = truth.get(function).copied().unwrap_or(0);
            let (is, should) = (share(*time, found), share(truth, all));
            assert!(
                (is - should).abs() < most,
                "{function:#x}: {is} % of {should} %"
            );
        }
    }
}

fn hex(value: &serde_json::Value) -> u64 {
    let digits = value.as_str().unwrap().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).unwrap()
}

/// The time of each function in a JSON log, by its first address.
fn times(log: &str, functions: &BTreeMap<u64, u64>) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    let mut last: Option<(u64, u64)> = None;
    for line in fs::read_to_string(log).unwrap().lines().skip(1) {
        let step: serde_json::Value = serde_json::from_str(line).unwrap();
        if step["time"].is_null() {
            continue;
        }
        let time = hex(&step["time"]);
        if let Some((function, since)) = last {
            *all.entry(function).or_default() += time - since;
        }
        let function = match step["type"] == "insn" {
            true => *functions.range(..=hex(&step["pc"])).next_back().unwrap().0,
            false => last.unwrap().0,
        };
        last = Some((function, time));
    }
    all
}
