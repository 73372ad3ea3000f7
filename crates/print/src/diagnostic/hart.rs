//! Diagnostics about the built-in hart: machines that cannot be built, programs
//! that cannot be loaded.

use super::program::damaged_elf;
use super::{Code, Diagnostic};
use hartrace_capture::memory::MemoryRange;
use hartrace_capture::program::Elf;
use hartrace_capture::{elf_info, input};
use hartrace_hart::{
    BootError, Config, ConfigError, LoadError, MemoryError, Platform, Program, ProgramError, Region,
};
use hartrace_isa::Isa;

/// Why a machine cannot be built.
#[must_use]
pub fn bad_config(config: &Config, error: &ConfigError) -> Diagnostic {
    let message = error.to_string();
    match error {
        ConfigError::Isa(_) => Diagnostic::new(Code::BadIsa, message),
        ConfigError::Unsupported(_) => Diagnostic::new(Code::UnsupportedIsa, message)
            .help("remove these extensions from --isa; a program that uses them traps"),
        ConfigError::Memory(MemoryError::TooLarge(_)) => Diagnostic::new(Code::HostMemory, message)
            .help(
                "choose a smaller size with \
                --memory BASE:SIZE",
            ),
        ConfigError::Memory(MemoryError::Overlap(one, other)) => {
            let given = |region: &Region| config.memory.contains(region);
            let diagnostic = Diagnostic::new(Code::BadMemory, message);
            match given(one) && given(other) {
                true => diagnostic,
                false => diagnostic.note(taken(config)),
            }
            .help("move the memory with --memory BASE:SIZE")
        }
        ConfigError::Memory(_) => Diagnostic::new(Code::BadMemory, message).help(
            "write --memory BASE:SIZE, such as 0x80000000:256M; hexadecimal numbers start with 0x",
        ),
        ConfigError::Harts { .. }
        | ConfigError::Quantum
        | ConfigError::Clock
        | ConfigError::CacheBlock
        | ConfigError::Cost
        | ConfigError::Slots
        | ConfigError::Triggers
        | ConfigError::Records(_) => Diagnostic::new(Code::ConfigValue, message),
    }
}

/// Why files cannot be made a system.
#[must_use]
pub fn bad_system(config: &Config, error: &BootError) -> Diagnostic {
    let message = error.to_string();
    let diagnostic = Diagnostic::new(Code::BadSystem, message.clone());
    let more = "give the machine more memory, such as --memory 0x80000000:1G";
    match error {
        BootError::Config(error) => bad_config(config, error),
        BootError::Width(..) => Diagnostic::new(Code::WidthMismatch, message)
            .help("give files of one width, and --isa rv32... or rv64... for raw binaries"),
        BootError::Compressed(..) => diagnostic.help("give the uncompressed file"),
        BootError::Outside(..) | BootError::NoRoom(..) => diagnostic.help(more),
        BootError::Overlap(..) => diagnostic
            .note("each part must have memory of its own")
            .help("give the machine more memory, or a kernel that is linked for other addresses"),
        BootError::Tree(_) => diagnostic.help(
            "give a tree made by the device tree compiler: dtc -O dtb; without --dtb the machine \
             describes itself",
        ),
        BootError::Elf(..) | BootError::NotLinked(_) => {
            diagnostic.help("give a linked RISC-V program, or a raw binary")
        }
        BootError::Nothing | BootError::Empty(_) | BootError::CommandLine => diagnostic,
    }
}

/// Where memory cannot be.
fn taken(config: &Config) -> &'static str {
    match config.platform {
        Platform::Virt => "the CLINT is at 0x2000000",
        Platform::Spike => "the boot ROM is at 0x1000 and the CLINT at 0x2000000",
    }
}

/// An ELF file that holds no program for the hart.
#[must_use]
pub fn bad_program(elf: &Elf, error: &ProgramError) -> Diagnostic {
    let path = elf.file.file.as_path();
    let message = format!("{} is {error}", input::name(path));
    match error {
        ProgramError::NotElf => damaged_elf(path, "its program headers cannot be read"),
        ProgramError::Machine(_) => Diagnostic::new(Code::WrongMachine, message),
        ProgramError::BigEndian => Diagnostic::new(Code::BigEndian, message),
        ProgramError::NotExecutable => Diagnostic::new(Code::NotLinked, message),
        ProgramError::Empty => {
            let message = format!("{}: {error}", input::name(path));
            Diagnostic::new(Code::NotLinked, message).help("give the linked program")
        }
        ProgramError::Dynamic => {
            user_program(elf).unwrap_or_else(|| Diagnostic::new(Code::NotBareMetal, message))
        }
    }
}

/// A program that looks like one for an operating system.
fn user_program(elf: &Elf) -> Option<Diagnostic> {
    let why = elf_info::user_program(&elf.bytes)?;
    let name = input::name(&elf.file.file);
    let message =
        format!("{name} looks like a Linux user program, which needs an operating system");
    Some(
        Diagnostic::new(Code::NotBareMetal, message)
            .note(why)
            .note("the hart runs bare-metal programs: they set up the stack and handle traps themselves")
            .help("build it for bare metal (-nostartfiles and a linker script), or log it with a simulator that runs user programs and use `hartrace encode`"),
    )
}

/// Why a program cannot be loaded.
#[must_use]
pub fn bad_load(elf: &Elf, config: &Config, program: &Program, error: &LoadError) -> Diagnostic {
    let message = format!("{}: {error}", input::name(&elf.file.file));
    match error {
        LoadError::Width { .. } => Diagnostic::new(Code::WidthMismatch, message),
        LoadError::Outside { ram, .. } => {
            let ram: Vec<MemoryRange> = ram.iter().map(range).collect();
            let parts = program.segments.iter();
            let parts: Vec<MemoryRange> = parts
                .map(|segment| MemoryRange {
                    base: segment.addr,
                    size: segment.size,
                })
                .collect();
            let memory = MemoryRange::holding(&parts, &ram);
            let flags: Vec<String> = memory
                .iter()
                .map(|range| format!("--memory {range}"))
                .collect();
            if let Some(user) = user_program(elf) {
                let flags = flags.join(" ");
                return user.note(format!("if it is bare metal, add memory: {flags}"));
            }
            let diagnostic = Diagnostic::new(Code::OutsideMemory, message)
                .note("the whole program, and its stack, must be in memory");
            let possible = Config {
                memory: memory
                    .iter()
                    .map(|m| Region {
                        base: m.base,
                        size: m.size,
                    })
                    .collect(),
                ..config.clone()
            };
            match possible.validate() {
                Ok(_) => diagnostic.help(format!("add memory there: {}", flags.join(" "))),
                Err(_) => diagnostic.note(taken(config)).help(
                    "link it for other addresses, or choose memory that does not overlap \
                        these",
                ),
            }
        }
        LoadError::Misaligned { .. } => Diagnostic::new(Code::BadEntry, message)
            .help("give the start with --entry: an even address or a symbol"),
        LoadError::Entry { .. } => Diagnostic::new(Code::EntryOutside, message)
            .help("give the start with --entry ADDR or --entry SYMBOL"),
    }
}

fn range(region: &Region) -> MemoryRange {
    MemoryRange {
        base: region.base,
        size: region.size,
    }
}

/// Extensions that a program was built for and the hart does not have.
#[must_use]
pub fn missing_extensions(elf: &Elf, isa: Isa) -> Option<Diagnostic> {
    let built = Isa::parse_lenient(elf.info.isa.as_deref()?).ok()?;
    let lacking = built.extensions().filter(|ext| !isa.has(*ext));
    let names: Vec<&str> = lacking.map(|ext| ext.name()).collect();
    if names.is_empty() {
        return None;
    }
    let name = input::name(&elf.file.file);
    let message = format!(
        "{name} was built for extensions that the hart does not have: {}",
        names.join(", ")
    );
    Some(
        Diagnostic::new(Code::MissingExtension, message)
            .note(format!("the hart executes {isa}; other instructions trap"))
            .help("add the extensions with --isa, or build the program without them"),
    )
}
