//! Systems on the built-in machine: firmware, kernels, devices, disks, consoles. The
//! programs are ours; a Linux kernel is booted by `hartrace-proof linux`.

use crate::{Folder, hartrace, repository, run, text};
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

/// A program that uses every device by interrupt.
fn devices(width: u32) -> String {
    let name = format!("programs/devices/devices-rv{width}gc.elf");
    repository().join(name).to_str().unwrap().to_owned()
}

/// The same, as it is in memory.
fn raw(width: u32) -> Vec<u8> {
    let elf = fs::read(devices(width)).unwrap();
    let elf = hartrace_flow::elf::Elf::parse(&elf).unwrap();
    let mut memory = Vec::new();
    for load in elf.loads().unwrap() {
        memory.resize((load.physical - 0x8000_0000) as usize, 0);
        memory.extend(load.data.unwrap());
    }
    memory
}

/// An image of eight sectors, the first of them a line.
fn image(folder: &Folder) -> String {
    let mut bytes = b"a line on the disk\n".to_vec();
    bytes.resize(8 * 512, 0);
    folder.file("disk.img", bytes)
}

/// Runs with standard input from a file.
fn typing(folder: &Folder, input: &str, args: &[&str]) -> Output {
    let input = folder.file("typed", input);
    let input = fs::File::open(input).unwrap();
    hartrace().args(args).stdin(input).output().unwrap()
}

/// What the program prints, with the lines that may differ taken out.
#[track_caller]
fn printed(output: &Output) -> String {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    let lines = text(&output.stdout).lines().filter(|l| !l.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

fn expected() -> String {
    fs::read_to_string(repository().join("programs/devices/devices.expected")).unwrap()
}

const TYPED: &str = "hello\nworld\nend\n";

#[test]
fn a_program_uses_the_devices_by_interrupt() {
    let folder = Folder::new();
    let disk = image(&folder);
    let before = fs::read(&disk).unwrap();
    for width in [64, 32] {
        let run = |extra: &[&str]| {
            let program = devices(width);
            let args = [&["run", program.as_str(), "--disk", disk.as_str()], extra].concat();
            typing(&folder, TYPED, &args)
        };
        let first = run(&[]);
        assert_eq!(printed(&first), expected());
        // To the byte, and to the instruction.
        let again = run(&[]);
        assert_eq!(first.stdout, again.stdout);
        let count = |output: &Output| {
            let words = text(&output.stderr).to_owned();
            words.split(" cycles").next().unwrap().to_owned()
        };
        assert_eq!(count(&first), count(&again));
        // Several harts, of which one runs it.
        assert_eq!(printed(&run(&["--harts", "2"])), expected());
    }
    assert_eq!(fs::read(&disk).unwrap(), before, "the image is not changed");
}

#[test]
fn writes_change_an_image_only_if_asked_to() {
    let folder = Folder::new();
    let disk = image(&folder);
    let program = devices(64);
    let spec = format!("rw:{disk}");
    let output = typing(&folder, TYPED, &["run", &program, "--disk", &spec]);
    assert_eq!(printed(&output), expected());
    let after = fs::read(&disk).unwrap();
    assert_eq!(after.len(), 8 * 512);
    let sector: Vec<u8> = (0..512u32).map(|i| (i * 7) as u8).collect();
    assert_eq!(after[7 * 512..], sector);
    // Read-only, the write fails and so does the check of it.
    let spec = format!("ro:{disk}");
    let output = typing(&folder, TYPED, &["run", &program, "--disk", &spec]);
    assert_eq!(output.status.code(), Some(10));
    assert!(text(&output.stdout).contains("write                                 1  FAILED"));
}

#[test]
fn kernels_start_as_on_qemu() {
    let folder = Folder::new();
    let disk = image(&folder);
    let kernel = folder.file("kernel", raw(64));
    let elf = devices(64);
    // Without firmware, a kernel starts in machine mode; raw or not; as firmware, too.
    for args in [
        ["--kernel", kernel.as_str()],
        ["--kernel", elf.as_str()],
        ["--bios", kernel.as_str()],
        ["--bios", elf.as_str()],
    ] {
        let args = [&["run", "--disk", disk.as_str()], args.as_slice()].concat();
        let output = typing(&folder, TYPED, &args);
        assert_eq!(printed(&output), expected(), "{args:?}");
    }
    // A width that nothing else says.
    let kernel = folder.file("kernel32", raw(32));
    let args = [
        "run", "--kernel", &kernel, "--isa", "rv32gc", "--disk", &disk,
    ];
    assert_eq!(printed(&typing(&folder, TYPED, &args)), expected());
}

#[test]
fn traces_of_systems_name_their_files() {
    let folder = Folder::new();
    let disk = image(&folder);
    let kernel = folder.file("kernel", raw(64));
    let elf = devices(64);
    for part in [&kernel, &elf] {
        let trace = folder.path("run.ntrace").to_str().unwrap().to_owned();
        let kind = format!("ntrace={trace}");
        let args = [
            "run", "--kernel", part, "--disk", &disk, "--check", "--trace", &kind,
        ];
        let output = typing(&folder, TYPED, &args);
        assert_eq!(printed(&output), expected());
        assert!(
            text(&output.stderr).contains("decoded and equal"),
            "{}",
            text(&output.stderr)
        );
        // The sidecar names the program, so that nothing has to be given again.
        let decoded = run(&["stats", "-q", &trace]);
        assert_eq!(decoded.status.code(), Some(0), "{}", text(&decoded.stderr));
    }
}

#[test]
fn pipes_are_typed_when_they_are_written() {
    let folder = Folder::new();
    let disk = image(&folder);
    let mut child = hartrace()
        .args(["run", &devices(64), "--disk", &disk])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write as _;
    let mut input = child.stdin.take().unwrap();
    for line in ["hello\n", "world\n", "end\n"] {
        input.write_all(line.as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(printed(&output), expected());
}

#[test]
fn input_that_ends_leaves_the_guest_waiting() {
    let folder = Folder::new();
    let disk = image(&folder);
    let output = typing(&folder, "hello\n", &["run", &devices(64), "--disk", &disk]);
    assert_eq!(output.status.code(), Some(10));
    assert!(text(&output.stdout).ends_with("olleh\n"));
    assert!(text(&output.stderr).contains("HT0503"));
}

/// The command fails with this code; what it said.
#[track_caller]
fn fails(args: &[&str], exit: i32) -> String {
    let output = run(args);
    let message = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(exit), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

#[test]
fn files_that_are_no_system() {
    let folder = Folder::new();
    let small = folder.file("small", [0x6f, 0, 0, 0]);
    let empty = folder.file("empty", "");
    let gzip = folder.file("gzip", b"\x1f\x8b\x08\0aaaa");
    let big = folder.file("big", vec![0; 3 << 20]);
    let mut x86 = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0".to_vec();
    x86.resize(64, 0);
    let x86 = folder.file("x86", x86);
    let memory = "0x80000000:4M";
    let kernel = ["run", "--kernel", &small];
    for (args, exit, words) in [
        (vec!["--kernel", "absent"], 1, "cannot open `absent`"),
        (vec!["--bios", "absent", "--kernel", &small], 1, "absent"),
        (vec!["--kernel", &empty], 1, "HT0508"),
        (vec!["--kernel", &gzip], 1, "compressed with gzip"),
        (vec!["--kernel", &x86], 5, "RISC-V"),
        (
            vec!["--kernel", &big, "--memory", "0x80000000:2M"],
            1,
            "not in memory",
        ),
        (
            vec!["--kernel", &small, "--initrd", &big, "--memory", memory],
            1,
            "no room",
        ),
        (vec!["--kernel", &small, "--initrd", &empty], 1, "empty"),
        (vec!["--kernel", &small, "--dtb", &small], 1, "device tree"),
        (
            vec!["--kernel", &small, "--disk", "absent"],
            1,
            "disk image `absent`",
        ),
        (vec!["--kernel", &small, "--disk", &empty], 1, "is empty"),
        (vec!["--kernel", &small, "--disk", "/"], 1, "directory"),
        (vec!["--kernel", &small, "--disk", "ro:"], 2, "ro:FILE"),
        (
            vec!["--kernel", &small, "--rtc", "noon"],
            2,
            "seconds since 1970",
        ),
        (
            vec!["--kernel", &small, "--machine", "spike"],
            2,
            "--machine virt",
        ),
        (vec!["--kernel", &small, "--entry", "0"], 2, "--entry"),
        (vec!["--kernel", &small, &devices(64)], 2, "PROG"),
        (
            vec!["--bios", &small, "--initrd", &small],
            2,
            "require --kernel",
        ),
        (vec![&devices(64), "--dtb", &small], 2, "--dtb requires"),
        (
            vec![&devices(64), "--append", "quiet"],
            2,
            "require --kernel",
        ),
        (vec!["--bios", "none"], 2, "no program"),
    ] {
        let args = [&["run"], args.as_slice()].concat();
        let message = fails(&args, exit);
        assert!(message.contains(words), "{args:?}: {message}");
    }
    // Nine devices for eight slots.
    let disks = ["--disk", &big].repeat(8);
    let args = [kernel.as_slice(), &disks].concat();
    assert!(fails(&args, 2).contains("too many disks"));
    // A log that would replace what is read.
    let log = format!("pc={big}");
    for flag in ["--initrd", "--disk", "--dtb"] {
        let args = [kernel.as_slice(), &[flag, &big, "--log", &log]].concat();
        let message = fails(&args, if flag == "--dtb" { 1 } else { 2 });
        assert!(message.contains("replace") || flag == "--dtb", "{message}");
    }
    assert_eq!(fs::metadata(Path::new(&big)).unwrap().len(), 3 << 20);
}

/// The context of a system is its address space, and traces report it.
#[test]
fn contexts_of_systems_are_address_spaces() {
    let folder = Folder::new();
    let kernel = devices(64);
    let show = |extra: &[&str]| {
        let traces = ["--trace", "ntrace=a", "--trace", "etrace=b"];
        let args = [&["config", "show", "run"], traces.as_slice(), extra].concat();
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let lines = text(&output.stdout).lines().map(|line| {
            let setting = line.split('#').next().unwrap_or_default();
            setting.trim().to_owned()
        });
        let is_context = |line: &String| line.contains("context");
        lines.filter(is_context).collect::<Vec<String>>()
    };
    let reported = |source: &str, ntrace: bool, width: u32| {
        let ntrace = [format!("context = {ntrace}"), "hcontext = false".to_owned()];
        let etrace = format!("context_width = {width}");
        let mut all = vec![format!("context = \"{source}\"")];
        all.extend(ntrace);
        all.push(etrace);
        all
    };
    assert_eq!(show(&["--kernel", &kernel]), reported("asid", true, 16));
    let narrow = devices(32);
    assert_eq!(show(&["--kernel", &narrow]), reported("asid", true, 9));
    // A program has contexts if it says so.
    assert_eq!(show(&[&kernel]), reported("scontext", false, 0));
    let settings = "[hart]\ncontext = \"root\"\n[etrace]\ncontext_width = 12\n";
    let settings = folder.file("root.toml", settings);
    let given = show(&["--kernel", &kernel, "-c", &settings]);
    assert_eq!(given, reported("root", true, 12));
}
