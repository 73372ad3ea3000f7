//! Boots a Linux kernel with firmware, a shell and a disk: on one, two and four harts,
//! each twice. What is typed is done, the output is whole up to the last line, and the
//! second run is the first. If traces are wanted, too, what is decoded from each on one and
//! on two threads is what the harts did.
//!
//! The files are given: firmware, a kernel, a static busybox, the modules that a kernel
//! needs for its disk, and further programs to run, such as one that writes code. Without
//! them there is nothing to prove.

mod traced;

use std::cell::RefCell;
use std::io::{self, Cursor, Write};
use std::rc::Rc;
use std::time::Instant;

use hartrace_flow::erase::Dyn;
use hartrace_flow::{Effects, HartId, Observer, Step, Wants};
use hartrace_hart::host::{Disk, Host, Writes};
use hartrace_hart::{BootFiles, Config, Machine, Platform, Region, Stop, System, Virtio};
use hartrace_isa::Xlen;

const USAGE: &str = "give --bios FILE --kernel FILE --busybox FILE [--module FILE]... \
                     [--program FILE]... [--harts N]... [--trace ntrace|etrace]...; modules, \
                     uncompressed, are loaded and static programs run in their order";

/// Instructions after which a boot that has not ended is no good.
const LIMIT: u64 = 50_000_000_000;

/// The first bytes of the disk.
const LINE: &str = "a line on the disk";

/// Commands of busybox that are used.
const APPLETS: &[&str] = &[
    "sh", "mount", "insmod", "echo", "cat", "head", "dd", "poweroff", "sync", "tr",
];

/// The files that are given.
#[derive(Default)]
struct Given {
    bios: Option<Vec<u8>>,
    kernel: Option<Vec<u8>>,
    busybox: Option<Vec<u8>>,
    modules: Vec<Vec<u8>>,
    programs: Vec<Vec<u8>>,
    harts: Vec<u32>,
    /// Formats, as sections of a configuration.
    traces: Vec<String>,
}

impl Given {
    fn read(args: &[String]) -> Result<Given, String> {
        let mut given = Given::default();
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let value = args.next().ok_or(USAGE)?;
            let file = || std::fs::read(value).map_err(|error| format!("{value}: {error}"));
            match flag.as_str() {
                "--bios" => given.bios = Some(file()?),
                "--kernel" => given.kernel = Some(file()?),
                "--busybox" => given.busybox = Some(file()?),
                "--module" => given.modules.push(file()?),
                "--program" => given.programs.push(file()?),
                "--harts" => given.harts.push(value.parse().map_err(|_| USAGE)?),
                "--trace" if ["ntrace", "etrace"].contains(&value.as_str()) => {
                    given.traces.push(format!("[{value}]"));
                }
                _ => return Err(USAGE.to_owned()),
            }
        }
        if given.harts.is_empty() {
            given.harts = vec![1, 2, 4];
        }
        Ok(given)
    }
}

/// Runs the check.
///
/// # Errors
///
/// A boot that does not end, prints something else or differs from the same boot.
pub fn command(args: &[String]) -> Result<(), String> {
    let given = Given::read(args)?;
    let (Some(bios), Some(kernel), Some(busybox)) = (&given.bios, &given.kernel, &given.busybox)
    else {
        println!("skipped: no kernel; {USAGE}");
        return Ok(());
    };
    let initrd = file_system(busybox, &given);
    for &harts in &given.harts {
        let boot = |trace: Option<&String>| {
            let typed = script(harts, !given.modules.is_empty(), given.programs.len());
            let files = BootFiles {
                bios: Some(bios),
                kernel: Some(kernel),
                initrd: Some(&initrd),
                append: Some("console=ttyS0 rdinit=/init"),
                dtb: None,
            };
            let begin = Instant::now();
            let (done, traced) = match trace {
                None => (
                    {
                        let nothing = (Wants::NOTHING, &mut NoObserver as &mut Dyn<'_>);
                        run(harts, &files, typed, nothing)?
                    },
                    None,
                ),
                Some(text) => {
                    let boot = traced::trace(text, harts, |observer| {
                        run(harts, &files, typed, (Wants::STEPS, observer))
                    })?;
                    (boot.0, Some(boot.1))
                }
            };
            let (insns, seconds) = (done.1, begin.elapsed().as_secs_f64());
            let how = trace.map_or("", String::as_str);
            println!("{harts} harts {how}: {insns} instructions in {seconds:.1} s");
            if let Some(traced) = traced {
                traced.check(1)?;
                traced.check(2)?;
            }
            Ok::<_, String>(done)
        };
        let first = boot(None)?;
        let again = std::iter::once(None).chain(given.traces.iter().map(Some));
        for trace in again {
            if boot(trace)? != first {
                return Err(format!("{harts} harts: two boots differ"));
            }
        }
    }
    Ok(())
}

/// What is typed, and the lines that are printed then.
fn script(harts: u32, disk: bool, programs: usize) -> (String, Vec<String>) {
    let mut typed = String::from("echo $((6 * 7)) is the answer\n");
    let mut printed = vec!["42 is the answer".to_owned()];
    typed += "echo harts $(cat /sys/devices/system/cpu/online)\n";
    printed.push(match harts {
        1 => "harts 0".to_owned(),
        _ => format!("harts 0-{}", harts - 1),
    });
    if disk {
        typed += "echo disk: $(head -n 1 /dev/vda)\n";
        printed.push(format!("disk: {LINE}"));
        typed += "echo changed | dd of=/dev/vda bs=512 seek=8 conv=sync 2>/dev/null; sync\n";
        typed += "echo 3 > /proc/sys/vm/drop_caches\n";
        typed += "echo disk: $(dd if=/dev/vda bs=512 skip=8 count=1 2>/dev/null | head -n 1)\n";
        printed.push("disk: changed".to_owned());
    }
    for number in 0..programs {
        typed += &format!("program{number} && echo program {number} is done\n");
        printed.push(format!("program {number} is done"));
    }
    typed += "poweroff -f\n";
    (typed, printed)
}

/// An output that can be read.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<u8>>>);

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nothing is written down.
struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// Boots, types, and checks what is printed. Gives that and the instructions.
fn run(
    harts: u32,
    files: &BootFiles<'_>,
    (typed, printed): (String, Vec<String>),
    (wants, observer): (Wants, &mut Dyn<'_>),
) -> Result<(String, u64), String> {
    let mut image = format!("{LINE}\n").into_bytes();
    image.resize(1 << 20, 0);
    let image = Disk::new(Box::new(Cursor::new(image)), Writes::Forgotten);
    let image = image.map_err(|error| error.to_string())?;
    let config = Config {
        harts,
        memory: vec![Region {
            base: 0x8000_0000,
            size: 512 << 20,
        }],
        semihosting: false,
        virtio: vec![Virtio::Disk {
            disk: 0,
            sectors: image.sectors(),
            read_only: false,
        }],
        ..Config::new(Platform::Virt, Xlen::Rv64)
    };
    let system = System::new(&config, files).map_err(|error| error.to_string())?;
    let seen = Seen::default();
    let host = Host::new(
        Box::new(Cursor::new(typed.into_bytes())),
        Box::new(seen.clone()),
        Box::new(io::sink()),
    );
    let machine = Machine::new(config, host.with_disks(vec![image]));
    let mut machine = machine.map_err(|error| error.to_string())?;
    machine.boot(system).map_err(|error| error.to_string())?;
    let stop = machine.run_any(LIMIT, wants, observer);
    let finished = machine.host().finish();
    finished.map_err(|error| error.to_string())?;
    let output = String::from_utf8_lossy(&seen.0.borrow()).into_owned();
    let end = |what: &str| {
        let tail: Vec<&str> = output.lines().rev().take(20).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        format!(
            "{harts} harts: {what}; the last lines:\n{}",
            tail.join("\n")
        )
    };
    if stop != Stop::Exit(0) {
        return Err(end(&format!("ended with {stop:?}")));
    }
    for line in printed {
        if !output.lines().any(|l| l.trim_end() == line) {
            return Err(end(&format!("`{line}` was not printed")));
        }
    }
    if !output.trim_end().ends_with("reboot: Power down") {
        return Err(end("the output is not whole"));
    }
    Ok((output, machine.instructions()))
}

/// An initial file system: busybox, the modules, the programs, and a first program that
/// loads the modules and starts a shell.
fn file_system(busybox: &[u8], given: &Given) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "lib"] {
        archive.add(folder, 0o040_755, &[], 0);
    }
    // The character device 5, 1.
    archive.add("dev/console", 0o020_600, &[], 5 << 16 | 1);
    archive.add("bin/busybox", 0o100_755, busybox, 0);
    for applet in APPLETS {
        archive.add(&format!("bin/{applet}"), 0o120_777, b"busybox", 0);
    }
    let mut init = String::from("#!/bin/sh\nmount -t proc proc /proc\nmount -t sysfs sys /sys\n");
    init += "mount -t devtmpfs dev /dev\n";
    for (number, program) in given.programs.iter().enumerate() {
        archive.add(&format!("bin/program{number}"), 0o100_755, program, 0);
    }
    for (number, module) in given.modules.iter().enumerate() {
        let name = format!("lib/{number}.ko");
        archive.add(&name, 0o100_644, module, 0);
        init += &format!("insmod /{name}\n");
    }
    init += "exec sh\n";
    archive.add("init", 0o100_755, init.as_bytes(), 0);
    archive.finish()
}

/// A cpio archive in the format that Linux reads (`newc`).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    count: u32,
}

impl Archive {
    /// Adds a file; `device` has its major number in the upper half.
    fn add(&mut self, name: &str, mode: u32, data: &[u8], device: u32) {
        self.count += 1;
        let (size, name_size) = (data.len() as u32, name.len() as u32 + 1);
        let (major, minor) = (device >> 16, device & 0xffff);
        let fields = [
            self.count, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").into_bytes());
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(data);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[], 0);
        self.bytes
    }
}
