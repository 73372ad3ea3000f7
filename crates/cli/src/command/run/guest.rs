//! What runs: a program, or a system of firmware, a kernel and what they need.

use crate::args::{Console, DiskWrites, Run, System as Typed};
use crate::failure::Failure;
use crate::machine;
use crate::settings::{Elf, Raw};
use hartrace_capture::config::{Config, Setting};
use hartrace_capture::input::{Input, is_stdin};
use hartrace_capture::program::{ElfFile, RawFile};
use hartrace_hart::host::{Disk, Writes};
use hartrace_hart::{BootFiles, BootPart, Config as HartConfig, Machine, Program, System, Virtio};
use hartrace_isa::{Isa, Xlen};
use hartrace_print::diagnostic::hart::{bad_load, bad_system};
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The largest file of a system that is read.
const MAX_FILE: u64 = 4 << 30;

/// Where Linux runs on RV64, whatever memory it is in.
const LINUX_ON_RV64: u64 = 0xffff_ffff_8000_0000;

/// What the numbers of the entropy device follow from.
const SEED: u64 = 1;

/// The program or the system.
pub(super) struct Guest {
    /// ELF files, for symbols and traces.
    pub(super) elf: Vec<Elf>,
    /// Other files that hold code.
    pub(super) raw: Vec<Raw>,
    boot: Option<Boot>,
    program: Program,
    system: Option<System>,
}

/// The files of a system.
struct Boot {
    bios: Option<CodeFile>,
    kernel: Option<CodeFile>,
    initrd: Option<Vec<u8>>,
    append: Option<String>,
    dtb: Option<Vec<u8>>,
}

/// Firmware or a kernel.
enum CodeFile {
    Elf(Box<Elf>),
    Raw(PathBuf, Vec<u8>),
}

impl CodeFile {
    fn read(path: &Path) -> Result<CodeFile, Failure> {
        let mut input = Input::open(path)?;
        if input.peek(4)?.starts_with(b"\x7fELF") && !is_stdin(path) {
            let file = ElfFile {
                file: path.to_path_buf(),
                base: None,
                identity: None,
            };
            return Ok(CodeFile::Elf(Box::new(Elf::read(&file)?)));
        }
        Ok(CodeFile::Raw(path.to_path_buf(), input.read_all(MAX_FILE)?))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            CodeFile::Elf(elf) => &elf.bytes,
            CodeFile::Raw(_, bytes) => bytes,
        }
    }
}

impl Boot {
    fn read(typed: &Typed) -> Result<Boot, Failure> {
        let whole = |path: &PathBuf| -> Result<Vec<u8>, Failure> {
            Ok(Input::open(path)?.read_all(MAX_FILE)?)
        };
        Ok(Boot {
            bios: typed.bios().map(CodeFile::read).transpose()?,
            kernel: typed.kernel.as_deref().map(CodeFile::read).transpose()?,
            initrd: typed.initrd.as_ref().map(whole).transpose()?,
            append: typed.append.clone(),
            dtb: typed.dtb.as_ref().map(whole).transpose()?,
        })
    }

    /// The width of the first file that says it; raw binaries do not.
    fn width(&self) -> Option<Xlen> {
        let codes = self.bios.iter().chain(&self.kernel);
        let mut widths = codes.filter_map(|code| match code {
            CodeFile::Elf(elf) => Some(machine::width(elf)),
            CodeFile::Raw(..) => None,
        });
        widths.next()
    }

    fn files(&self) -> BootFiles<'_> {
        BootFiles {
            bios: self.bios.as_ref().map(CodeFile::bytes),
            kernel: self.kernel.as_ref().map(CodeFile::bytes),
            initrd: self.initrd.as_deref(),
            append: self.append.as_deref(),
            dtb: self.dtb.as_deref(),
        }
    }
}

impl Guest {
    /// Reads the files.
    pub(super) fn read(args: &Run, config: &Config) -> Result<Guest, Failure> {
        let system = args.system.is_given();
        let empty = Program {
            xlen: Xlen::Rv64,
            entry: 0,
            segments: Vec::new(),
            tohost: None,
            fromhost: None,
        };
        Ok(Guest {
            elf: match system {
                true => Vec::new(),
                false => vec![machine::read(config)?],
            },
            raw: Vec::new(),
            boot: system.then(|| Boot::read(&args.system)).transpose()?,
            program: empty,
            system: None,
        })
    }

    /// Whether it is a system.
    pub(super) fn is_system(&self) -> bool {
        self.boot.is_some()
    }

    /// What is in memory.
    pub(super) fn program(&self) -> &Program {
        match &self.system {
            Some(system) => system.program(),
            None => &self.program,
        }
    }

    /// The machine it runs on, with these disks.
    pub(super) fn configure(
        &self,
        args: &Run,
        config: &mut Config,
        disks: &[Disk],
    ) -> Result<(HartConfig, Isa), Failure> {
        let told = config.program.isa.as_ref();
        let told = told.and_then(|isa| Isa::parse(&isa.value).ok());
        let xlen = match (&self.boot, self.elf.first()) {
            (Some(boot), _) => boot.width().or(told.map(|isa| isa.xlen())),
            (None, elf) => elf.map(machine::width),
        };
        if self.is_system() {
            // The calls of a guest's programs are not for us.
            let semihosting = &mut config.hart.semihosting;
            semihosting.get_or_insert(Setting::default(false));
        }
        let xlen = xlen.unwrap_or(Xlen::Rv64);
        let (mut hart, isa) = machine::configure_for(config, xlen, &self.elf)?;
        hart.virtio = virtio(args, disks, self.is_system());
        hart.epoch = args.system.rtc.unwrap_or(0);
        hart.reboot = !args.system.no_reboot;
        let spike = hart.platform == hartrace_hart::Platform::Spike;
        if spike && (self.is_system() || !hart.virtio.is_empty()) {
            return Err(Failure::Usage(
                "--bios, --kernel, --disk and --console require --machine virt",
            ));
        }
        if hart.validate().is_err() {
            return Err(Failure::Usage(
                "too many disks: the machine has eight slots for disks, entropy and console",
            ));
        }
        Ok((hart, isa))
    }

    /// Puts it together for a machine. The settings name its files then, for traces.
    pub(super) fn place(&mut self, hart: &HartConfig, config: &mut Config) -> Result<(), Failure> {
        let Some(boot) = &mut self.boot else {
            for elf in &self.elf {
                self.program = machine::program(elf)?;
            }
            return Ok(());
        };
        let system = System::new(hart, &boot.files()).map_err(|e| bad_system(hart, &e))?;
        for (part, code) in [
            (BootPart::Bios, &mut boot.bios),
            (BootPart::Kernel, &mut boot.kernel),
        ] {
            let Some((code, base)) = code.take().zip(system.place(part)) else {
                continue;
            };
            match code {
                CodeFile::Elf(mut elf) => {
                    let linked = elf.info.segments.iter().map(|s| s.address).min();
                    // A kernel that was linked for virtual memory runs there.
                    let high = linked.is_some_and(|at| at >> 63 != 0);
                    elf.file.base = Some(base).filter(|_| linked != Some(base) && !high);
                    self.elf.push(*elf);
                }
                CodeFile::Raw(file, bytes) => {
                    self.raw.extend(raw(file, bytes, base, part));
                }
            }
        }
        let elf: Vec<ElfFile> = self.elf.iter().map(|elf| elf.file.clone()).collect();
        let raw: Vec<RawFile> = self.raw.iter().map(|raw| raw.file.clone()).collect();
        config.program.elf = (!elf.is_empty()).then(|| Setting::flag(elf, "--bios, --kernel"));
        config.program.raw = (!raw.is_empty()).then(|| Setting::flag(raw, "--bios, --kernel"));
        self.system = Some(system);
        Ok(())
    }

    /// Puts it into the memory of a machine.
    pub(super) fn load(&self, machine: &mut Machine, entry: Option<u64>) -> Result<(), Failure> {
        if let Some(system) = &self.system {
            let booted = machine.boot(system.clone());
            return booted
                .map_err(|error| Diagnostic::new(Code::BadSystem, error.to_string()).into());
        }
        for elf in &self.elf {
            let loaded = machine.load(self.program.clone(), entry);
            loaded.map_err(|e| bad_load(elf, machine.config(), &self.program, &e))?;
        }
        Ok(())
    }

    /// What is in memory before the first step.
    pub(super) fn contents(&self) -> Vec<(u64, Vec<u8>)> {
        let segments = self.program().segments.iter();
        segments.map(|s| (s.addr, s.data.clone())).collect()
    }

    /// The name of the program, as it sees it.
    pub(super) fn name(&self) -> &Path {
        match self.elf.first() {
            Some(elf) => &elf.file.file,
            None => Path::new("system"),
        }
    }
}

/// A raw binary where it is, and for Linux where it runs.
fn raw(file: PathBuf, bytes: Vec<u8>, base: u64, part: BootPart) -> Vec<Raw> {
    let linux = bytes.get(0x38..0x3c) == Some(b"RSC\x05") && part == BootPart::Kernel;
    let bases = [LINUX_ON_RV64, base];
    let bases = bases.iter().skip(usize::from(!linux));
    let one = |base: &u64| Raw {
        file: RawFile {
            file: file.clone(),
            base: *base,
        },
        bytes: bytes.clone(),
    };
    bases.map(one).collect()
}

/// The virtio devices of a machine: disks first, so that they keep their places.
fn virtio(args: &Run, disks: &[Disk], system: bool) -> Vec<Virtio> {
    let mut devices: Vec<Virtio> = disks
        .iter()
        .enumerate()
        .map(|(number, disk)| Virtio::Disk {
            disk: number,
            sectors: disk.sectors(),
            read_only: disk.is_read_only(),
        })
        .collect();
    if system || !devices.is_empty() {
        devices.push(Virtio::Entropy { seed: SEED });
    }
    if args.system.console == Some(Console::Virtio) {
        devices.push(Virtio::Console);
    }
    devices
}

/// Opens the disks.
pub(super) fn disks(args: &Run) -> Result<Vec<Disk>, Failure> {
    let mut disks = Vec::new();
    for spec in &args.system.disk {
        let name = spec.file.display();
        let (image, writes) = match &spec.writes {
            DiskWrites::Refused => (open(&spec.file, false), Writes::Refused),
            DiskWrites::Kept => (open(&spec.file, true), Writes::Kept),
            DiskWrites::Forgotten | DiskWrites::Overlay(_) => {
                (open(&spec.file, false), Writes::Forgotten)
            }
        };
        let image = image.map_err(|e| cannot_open("disk image", &spec.file, &e))?;
        let disk = match &spec.writes {
            DiskWrites::Overlay(overlay) => open_overlay(image, overlay)?,
            _ => Disk::new(Box::new(image), writes)
                .map_err(|e| cannot_open("disk image", &spec.file, &e))?,
        };
        if disk.sectors() == 0 {
            let message = format!("the disk image `{name}` is empty");
            return Err(Diagnostic::new(Code::BadSystem, message)
                .help("give an image with a file system, such as one made by mkfs.ext4 -d")
                .into());
        }
        disks.push(disk);
    }
    Ok(disks)
}

/// Opens an image.
fn open(path: &Path, write: bool) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(write).open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Ok(file),
    }
}

/// A disk with what was written to it before in another file.
fn open_overlay(image: File, path: &Path) -> Result<Disk, Failure> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    let file = file.open(path);
    let file = file.map_err(|e| cannot_open("overlay", path, &e))?;
    Disk::with_overlay(Box::new(image), Box::new(file)).map_err(|error| {
        let message = format!("cannot use `{}` as an overlay: {error}", path.display());
        let diagnostic = Diagnostic::new(Code::BadSystem, message);
        diagnostic
            .help("give the overlay of this image, or a file that does not exist yet")
            .into()
    })
}

fn cannot_open(what: &str, path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot open the {what} `{}`: {error}", path.display());
    Diagnostic::new(Code::CannotOpen, message).into()
}
