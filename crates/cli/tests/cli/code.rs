//! `hartrace code`: code histories made of what other tools know.

use crate::tiny::{BASE, elf_at};
use crate::{Folder, repository, run, text};
use hartrace_testkit::assemble;
use std::fs;

#[track_caller]
fn success(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// A store of a run: when, where, and what.
pub(crate) struct Store {
    pub(crate) time: u64,
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The value of a field of a line of JSON, in hexadecimal digits.
fn field(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    let digits = rest.trim_start_matches('"');
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex.split('"').next()?, 16).ok(),
        None => digits.split([',', '}']).next()?.parse().ok(),
    }
}

/// What a program writes to code that it executes, in order.
pub(crate) fn stores(folder: &Folder, elf: &str) -> Vec<Store> {
    let (log, pcs) = (folder.name("stores.json"), folder.name("stores.pc"));
    let (json, pc) = (format!("json={log}"), format!("pc={pcs}"));
    success(&["run", "-q", elf, "--log", &json, "--log", &pc]);
    let pcs = fs::read_to_string(pcs).unwrap();
    let executed = |address: u64, len: u64| {
        let at = |pc: &str| u64::from_str_radix(pc, 16).unwrap();
        pcs.lines()
            .any(|pc| (address..address + len).contains(&at(pc)))
    };
    let log = fs::read_to_string(log).unwrap();
    let stores = log.lines().filter(|line| line.contains("\"store\""));
    let one = |line: &str| Store {
        time: field(line, "time").unwrap(),
        address: field(line, "address").unwrap(),
        bytes: {
            let data = field(line, "data").unwrap().to_le_bytes();
            data[..field(line, "bytes").unwrap() as usize].to_vec()
        },
    };
    let stores = stores.map(one);
    stores
        .filter(|store| executed(store.address, store.bytes.len() as u64))
        .collect()
}

/// Traces with times that say when every jump was.
pub(crate) fn timed(folder: &Folder) -> [(&'static str, String); 2] {
    let ntrace = "[ntrace]\ntimestamps = true\n[etrace.encapsulation]\nform = \"riscv\"\n\
        src_bits = 8\ntime_bytes = 8\n";
    let config = folder.file("timed.toml", ntrace);
    [("ntrace", config.clone()), ("etrace", config)]
}

/// Decodes a trace with its own history and with another one, on one thread and on two.
#[track_caller]
pub(crate) fn same(trace: &str, code: &str) {
    for threads in ["1", "2"] {
        for format in ["json", "text", "pc"] {
            let args = ["decode", "-q", "--threads", threads, "-f", format, trace];
            let own = success(&args);
            let other = success(&[&args[..], &["--code", code, "--strict"]].concat());
            assert!(own == other, "{trace}, {format}, {threads} threads");
        }
    }
}

#[test]
fn a_list_of_patches_is_as_good_as_the_history_of_the_run() {
    let folder = Folder::new();
    let elf = repository().join("programs/selfmod/selfmod-rv64gc.elf");
    let elf = elf.to_str().unwrap();
    let mut list = String::from("# What the program wrote.\n");
    for store in stores(&folder, elf) {
        let hex: String = store.bytes.iter().map(|b| format!("{b:02x}")).collect();
        list += &format!("{:#x} {hex} time {}\n", store.address, store.time);
    }
    assert!(list.lines().count() > 100, "{list}");
    let list = folder.file("selfmod.patches", list);
    let code = folder.name("selfmod.code");
    let output = run(&["code", "-e", elf, "--patches", &list, "-o", &code]);
    let made = text(&output.stderr).to_owned();
    assert!(
        made.contains("code history: 2598 bytes of constant code"),
        "{made}"
    );
    let info = success(&["info", "-q", &code]);
    assert!(
        info.contains("code history") && info.contains(" versions at "),
        "{info}"
    );
    for (format, config) in timed(&folder) {
        let trace = folder.name(format);
        let flag = format!("{format}={trace}");
        success(&["run", "-q", elf, "-c", &config, "--trace", &flag]);
        same(&trace, &code);
    }
}

/// A record of perf: its type, its bits, its body, and when it was.
fn record(kind: u32, misc: u16, body: &[&[u8]], time: u64) -> Vec<u8> {
    let mut body = body.concat();
    body.resize(body.len().next_multiple_of(8), 0);
    body.extend([0; 8]);
    body.extend(time.to_le_bytes());
    let head = u64::from(kind) | u64::from(misc) << 32 | (body.len() as u64 + 8) << 48;
    [&head.to_le_bytes()[..], &body].concat()
}

/// A file of perf whose records have a thread and a time at their end.
fn perf(records: &[Vec<u8>]) -> Vec<u8> {
    let data = records.concat();
    let mut file = b"PERFILE2".to_vec();
    for word in [104, 144, 104, 144, 248, data.len() as u64, 0, 0, 0, 0, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    let mut attr = [0u64; 18];
    (attr[0], attr[3], attr[5]) = (128 << 32, 1 << 1 | 1 << 2, 1 << 18);
    file.extend(attr.iter().flat_map(|word| word.to_le_bytes()));
    file.extend(data);
    file
}

/// A mapping of a process, executable.
fn mmap(pid: u32, place: [u64; 3], name: &str, time: u64) -> Vec<u8> {
    let ids = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
    let place: Vec<u8> = place.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rights = [5, 0, 0, 0, 2, 0, 0, 0];
    let name = format!("{name}\0");
    record(
        10,
        0,
        &[&ids, &place, &[0; 24], &rights, name.as_bytes()],
        time,
    )
}

/// Code that was changed.
fn poke(address: u64, old: &[u8], new: &[u8], time: u64) -> Vec<u8> {
    let sizes = [old.len() as u16, new.len() as u16]
        .map(u16::to_le_bytes)
        .concat();
    record(20, 0, &[&address.to_le_bytes(), &sizes, old, new], time)
}

/// Half a microsecond for each tick of the trace, which starts after a second.
fn nanoseconds(ticks: u64) -> u64 {
    1_000_000_000 + 500 * ticks
}

const CLOCK: [&str; 4] = ["--time-frequency", "2000000", "--time-zero", "1000000000"];

/// Makes a code history of perf's records.
fn from_perf<'a>(data: &'a str, root: &'a str, code: &'a str) -> [&'a str; 9] {
    let [perf, sysroot, isa] = ["--perf", "--sysroot", "--isa"];
    ["code", perf, data, sysroot, root, isa, "rv64gc", "-o", code]
}

#[test]
fn the_side_band_of_perf_is_as_good_as_the_history_of_the_run() {
    let folder = Folder::new();
    let elf = repository().join("programs/selfmod/selfmod-rv64gc.elf");
    let bytes = fs::read(&elf).unwrap();
    let elf = elf.to_str().unwrap();
    let root = folder.name("root");
    fs::create_dir(&root).unwrap();
    fs::write(format!("{root}/selfmod"), &bytes).unwrap();
    // As a kernel maps it: one mapping for each segment.
    let mut records: Vec<Vec<u8>> = segments(&bytes)
        .map(|(offset, address, size)| mmap(7, [address, size, offset], "/selfmod", 0))
        .collect();
    for store in stores(&folder, elf) {
        let time = nanoseconds(store.time);
        records.push(poke(store.address, &[], &store.bytes, time));
    }
    // perf writes what several cpus did, in no order.
    records.reverse();
    let data = folder.file("perf.data", perf(&records));
    let code = folder.name("perf.code");
    let args = from_perf(&data, &root, &code);
    success(&[&args[..], &CLOCK].concat());
    for (format, config) in timed(&folder) {
        let trace = folder.name(format);
        let flag = format!("{format}={trace}");
        success(&["run", "-q", elf, "-c", &config, "--trace", &flag]);
        same(&trace, &code);
    }
}

/// The segments of an ELF file for RV64: offset, address and size.
fn segments(elf: &[u8]) -> impl Iterator<Item = (u64, u64, u64)> {
    let word = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap());
    let (headers, count) = (word(32) as usize, u64::from(elf[56]));
    let all = (0..count as usize).map(move |n| headers + 56 * n);
    let loads = all.filter(|at| elf[*at..*at + 4] == [1, 0, 0, 0]);
    loads.map(move |at| (word(at + 8), word(at + 16), word(at + 32)))
}

#[test]
fn what_perf_does_not_know_is_named() {
    let folder = Folder::new();
    let root = folder.name("root");
    fs::create_dir(&root).unwrap();
    fs::write(format!("{root}/prog"), [0x13, 0, 0, 0].repeat(16)).unwrap();
    let kernel = mmap(
        u32::MAX,
        [0xffff_ffff_8000_0000, 64, 0],
        "[kernel.kallsyms]_text",
        0,
    );
    let module = mmap(
        u32::MAX,
        [0xffff_ffff_0000_0000, 64, 0],
        "/lib/modules/a.ko",
        0,
    );
    let prog = mmap(3, [0x1000, 64, 0], "/prog", 0);
    let libc = mmap(3, [0x8000, 64, 0], "/libc.so", 0);
    let jit = mmap(3, [0x9000, 64, 0], "//anon", 5);
    let comm = record(3, 0, &[&[3, 0, 0, 0, 3, 0, 0, 0], b"first\0"], 0);
    let other = mmap(4, [0x1000, 64, 0], "/prog", 9);
    let code = folder.name("c");
    let made = |records: &[Vec<u8>], more: &[&str]| {
        let data = folder.file("perf.data", perf(records));
        let args = from_perf(&data, &root, &code);
        let output = run(&[&args[..], more].concat());
        (
            output.status.code().unwrap(),
            text(&output.stderr).to_owned(),
        )
    };
    let (exit, message) = made(&[kernel, module, prog.clone(), libc, jit], &[]);
    assert_eq!(exit, 0, "{message}");
    for words in [
        "`[kernel.kallsyms]_text` is missing: no kernel is given",
        "`/lib/modules/a.ko` is missing: it is relocated",
        "`/libc.so` is missing: the file was not found",
        "`//anon` is missing: it is in no file",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let both = [comm, prog.clone(), other];
    let (exit, message) = made(&both, &[]);
    assert_eq!(exit, 1);
    assert!(
        message.contains("there are 2 processes") && message.contains("3 first"),
        "{message}"
    );
    for (contexts, count) in [(&["pid"][..], "2"), (&["3=9", "4=8"], "2"), (&["3=9"], "1")] {
        let flags: Vec<&str> = contexts.iter().flat_map(|of| ["--context", of]).collect();
        let (exit, message) = made(&both, &flags);
        assert_eq!(exit, 0, "{message}");
        let info = success(&["info", "-q", &code]);
        assert!(info.contains(&format!("contexts    {count}")), "{info}");
    }
    // What was there before a patch was something else: it is in doubt.
    let patch = poke(0x1004, &[0x93, 0, 0, 0], &[0x13, 1, 0, 0], 70);
    let (exit, message) = made(&[prog, patch], &[]);
    assert_eq!(exit, 0);
    assert!(message.contains("in doubt"), "{message}");
    // Damaged files.
    let whole = perf(&both);
    for (bytes, words) in [
        (&whole[..whole.len() - 3], "is cut off"),
        (b"PERFILE1", "not a perf.data file"),
    ] {
        let data = folder.file("bad.data", bytes);
        let output = run(&["code", "--perf", &data, "-o", &code]);
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(
            message.contains("HT0128") && message.contains(words),
            "{message}"
        );
    }
}

#[test]
fn a_core_file_is_a_memory_dump() {
    let folder = Folder::new();
    let mut core = patching();
    core[16] = 4;
    let file = folder.file("core", core);
    let code = folder.name("c");
    success(&[
        "code", "-q", "--core", &file, "--isa", "rv64gc", "-o", &code,
    ]);
    assert!(success(&["info", "-q", &code]).contains("48 bytes in 1 piece"));
    let of_one = format!("{file}=5");
    success(&[
        "code", "-q", "--core", &of_one, "--isa", "rv64gc", "-o", &code,
    ]);
    assert!(success(&["info", "-q", &code]).contains("contexts    1"));
    let bad = folder.file("bad", b"no core");
    let output = run(&["code", "--core", &bad, "-o", &code]);
    assert!(text(&output.stderr).contains("HT0101"));
}

/// The code of tasks is given for each of their contexts alone.
#[test]
fn code_of_contexts_is_found_by_context() {
    let folder = Folder::new();
    let elf = repository().join("programs/contexts/contexts-rv64gc.elf");
    let elf = elf.to_str().unwrap();
    let config = folder.file(
        "c.toml",
        "[ntrace]\ncontext = true\n[etrace]\ncontext_width = 16\n",
    );
    let bytes = fs::read(elf).unwrap();
    // All of it, in each context; before the first of them the context is 0.
    let list: String = [0, 0x1000, 0x1001, 0x1002, 0x1003]
        .map(|context| format!("0x80000000 file code.bin context {context:#x}\n"))
        .concat();
    let (offset, size) = loaded(&bytes);
    folder.file("code.bin", &bytes[offset..offset + size]);
    let list = folder.file("contexts.patches", list);
    let code = folder.name("contexts.code");
    success(&[
        "code",
        "-q",
        "--patches",
        &list,
        "--isa",
        "rv64gc",
        "-o",
        &code,
    ]);
    assert!(success(&["info", "-q", &code]).contains("contexts    5"));
    for format in ["ntrace", "etrace"] {
        let trace = folder.name(format);
        let flag = format!("{format}={trace}");
        success(&["run", "-q", elf, "-c", &config, "--trace", &flag]);
        for threads in ["1", "2"] {
            let args = ["decode", "-q", "-f", "pc", "--threads", threads, &trace];
            let truth = success(&args);
            // Without the program: the sidecar names it.
            let sidecar = format!("{trace}.toml");
            let settings = fs::read_to_string(&sidecar).unwrap();
            let kept = settings.lines().filter(|line| !line.contains("elf"));
            let kept: String = kept.map(|line| format!("{line}\n")).collect();
            fs::write(&sidecar, kept).unwrap();
            let found = success(&[&args[..], &["--code", &code]].concat());
            fs::write(&sidecar, settings).unwrap();
            assert!(found == truth, "{format}, {threads} threads");
        }
    }
}

/// Where the first segment of an ELF file for RV64 is in it.
fn loaded(elf: &[u8]) -> (usize, usize) {
    let word = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap()) as usize;
    let headers = word(32);
    let load = (0..8).map(|n| headers + 56 * n);
    let mut load = load.filter(|at| elf[*at..*at + 4] == [1, 0, 0, 0]);
    let at = load.next().unwrap();
    (word(at + 8), word(at + 32))
}

/// A program that patches itself once, after a while.
fn patching() -> Vec<u8> {
    let program = assemble(
        BASE,
        "       auipc s0, 0
                lw s1, 44(s0)
                jal ra, patched
                sw s1, 36(s0)
                fence.i
                jal ra, patched
                jal ra, patched
        end:    j end
                nop
        patched:
                addi a0, a0, 1
                ret
                .word 0x00250513",
    );
    elf_at(BASE, &program.unwrap().bytes)
}

#[test]
fn code_that_may_have_changed_is_unconfirmed() {
    let folder = Folder::new();
    let elf = folder.file("patching.elf", patching());
    let trace = folder.name("t.ntrace");
    success(&["run", "-q", &elf, "--trace", &format!("ntrace={trace}")]);
    let list = folder.file("unsure", "0x80000024 unsure 4\n");
    let code = folder.name("unsure.code");
    let output = run(&["code", "-e", &elf, "--patches", &list, "-o", &code]);
    let made = text(&output.stderr).to_owned();
    assert!(made.contains("in doubt"), "{made}");
    let info = success(&["info", "-q", &code]);
    assert!(info.contains("in doubt    "), "{info}");
    let output = run(&["decode", &trace, "--code", &code]);
    assert_eq!(output.status.code(), Some(0));
    let (listing, message) = (text(&output.stdout), text(&output.stderr));
    assert!(
        listing.contains("unconfirmed: the ") && listing.contains("at 0x80000024"),
        "{listing}"
    );
    assert!(
        message.contains("HT0127") && message.contains("0x80000024"),
        "{message}"
    );
    let json = success(&["decode", "-q", &trace, "--code", &code, "-f", "json"]);
    assert!(json.contains("\"type\":\"unconfirmed\""), "{json}");
    let stats = success(&["stats", "-q", &trace, "--code", &code]);
    assert!(stats.contains(" unconfirmed"), "{stats}");
    let strict = run(&["decode", "-q", "--strict", &trace, "--code", &code]);
    assert_eq!(strict.status.code(), Some(3));
    // The history of the run has no doubt.
    let stats = success(&["stats", "-q", &trace, "--strict"]);
    assert!(!stats.contains("unconfirmed"), "{stats}");
}

#[test]
fn what_is_wrong_with_a_list_is_named() {
    let folder = Folder::new();
    let elf = folder.file("patching.elf", patching());
    let code = folder.name("c");
    for (list, words) in [
        ("\n0x80000024 1300000", "l:2: `1300000` are no bytes"),
        (
            "0x80000024 13000000 was 13010000 time 3",
            "l:1: the code at 0x80000025 was 05",
        ),
        (
            "0x90000000 13000000 was 13010000",
            "l:1: the code at 0x90000000 was not known",
        ),
        ("0x80000024 file none.bin", "none.bin"),
        (
            "0x80000024 13 time 5\n0x80000024 14 message 9",
            ": the same code is changed",
        ),
    ] {
        let list = folder.file("l", list);
        let output = run(&["code", "-e", &elf, "--patches", &list, "-o", &code]);
        assert_eq!(output.status.code(), Some(1), "{words}");
        let message = text(&output.stderr);
        assert!(
            message.contains("HT0128") && message.contains(words),
            "{message}"
        );
        assert!(fs::metadata(&code).is_err(), "no output");
    }
    let output = run(&["code", "-o", &code]);
    assert_eq!(output.status.code(), Some(2));
    let output = run(&["code", "-e", &elf, "--code", &code, "-o", &code]);
    assert_eq!(output.status.code(), Some(2));
}
