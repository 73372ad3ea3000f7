//! Diagnostics about programs.

use super::{Code, Diagnostic};
use crate::words::count;
use hartrace_capture::code_history::{
    CodeFileError, CodeSourceError, MakeError, Missing, MissingCode, PerfError, PerfMisfit,
};
use hartrace_capture::config::Origin;
use hartrace_capture::detect::{self, Kind};
use hartrace_capture::elf_info::ElfError;
use hartrace_capture::input;
use hartrace_capture::program::{ProgramError, Remark};
use hartrace_flow::ImageError;
use hartrace_isa::{Isa, IsaError};
use std::path::Path;

/// An ELF file that cannot be used. `bytes` are its content, to say what it is
/// instead.
#[must_use]
pub fn bad_elf(path: &Path, bytes: &[u8], error: &ElfError) -> Diagnostic {
    let name = input::name(path);
    let head = bytes.get(..detect::HEAD).unwrap_or(bytes);
    if let Some(program) = detect::unpacker(head) {
        return Diagnostic::new(Code::NotElf, format!("{name} is compressed"))
            .help(format!("unpack it first: `{program} -d FILE`"));
    }
    match error {
        ElfError::NotElf => match detect::detect(head) {
            Kind::Empty => Diagnostic::new(Code::NotElf, format!("{name} is empty"))
                .note("the command that should have written it may have failed"),
            Kind::Unknown => Diagnostic::new(Code::NotElf, format!("{name} is not an ELF file"))
                .help(
                    "give the linked program in its place; disasm and log take raw binaries with \
                     --raw FILE@BASE",
                ),
            kind => Diagnostic::new(Code::NotElf, format!("{name} is not an ELF file"))
                .note(format!("detected kind of file: {kind}"))
                .help("give the linked program in its place"),
        },
        ElfError::BigEndian => Diagnostic::new(Code::BigEndian, format!("{name} is {error}"))
            .note("only little-endian RISC-V programs are supported"),
        ElfError::Machine(_) => Diagnostic::new(Code::WrongMachine, format!("{name} is {error}"))
            .help("give the program built for the RISC-V target"),
        ElfError::Truncated | ElfError::Class(_) => {
            damaged_elf(path, &error.to_string()).note(cut_off(bytes))
        }
        ElfError::Damaged { part, reason } => {
            damaged_elf(path, &format!("{part} {reason}")).note(cut_off(bytes))
        }
    }
}

fn cut_off(bytes: &[u8]) -> String {
    let size = count(bytes.len() as u64, "byte");
    format!("the file has {size}; it may be truncated")
}

/// An ELF file that contradicts itself.
#[must_use]
pub fn damaged_elf(path: &Path, what: &str) -> Diagnostic {
    let name = input::name(path);
    Diagnostic::new(Code::DamagedElf, format!("{name} is damaged: {what}"))
        .help("copy or build the file again")
}

/// An ELF file that is no image of a program.
#[must_use]
pub fn bad_image(path: &Path, error: &ImageError) -> Diagnostic {
    let name = input::name(path);
    match error {
        ImageError::NoCode => Diagnostic::new(Code::NotLinked, format!("{name} is {error}"))
            .help("give the linked program"),
        ImageError::Damaged(part) => damaged_elf(path, &format!("its {part} is unreadable")),
        _ => damaged_elf(path, &error.to_string()),
    }
}

/// A file that is not a code history, or damaged.
#[must_use]
pub fn bad_code_history(path: &Path, error: &CodeFileError) -> Diagnostic {
    let message = format!("{}: {error}", input::name(path));
    let diagnostic = Diagnostic::new(Code::BadCodeHistory, message);
    match error {
        CodeFileError::NotCode => {
            diagnostic.help("give an ELF file with -e, and a raw binary with --raw")
        }
        CodeFileError::Version(_) => diagnostic.help("update hartrace, or make the trace again"),
        _ => diagnostic.help("copy the file again, or make the trace again"),
    }
}

/// Names in a message at most.
const SHOWN: usize = 8;

/// Mappings whose code is not known.
#[must_use]
pub fn missing_code(path: &Path, missing: &[MissingCode]) -> Vec<Diagnostic> {
    let mut seen: Vec<(&str, Missing, u64)> = Vec::new();
    for code in missing {
        let known = seen.iter_mut();
        match known
            .into_iter()
            .find(|(file, why, _)| (*file, *why) == (&code.file, code.why))
        {
            Some((_, _, count)) => *count += 1,
            None => seen.push((&code.file, code.why, 1)),
        }
    }
    let name = input::name(path);
    let one = |(file, why, mappings): &(&str, Missing, u64)| {
        let message = format!("{name}: the code of `{file}` is missing: {why}");
        let diagnostic = Diagnostic::new(Code::BadCodeSource, message);
        let diagnostic = match mappings {
            1 => diagnostic,
            _ => diagnostic.note(format!("it is mapped {mappings} times")),
        };
        match why {
            Missing::NotFound | Missing::OtherBuild => {
                diagnostic.help("give the folder with the files of the target with --sysroot")
            }
            Missing::NoKernel => diagnostic.help("give the kernel's ELF file with --vmlinux"),
            Missing::Module => {
                diagnostic.help("give the kernel's memory with --core, as /proc/kcore has it")
            }
            Missing::NoFile => diagnostic,
        }
    };
    seen.iter().take(SHOWN).map(one).collect()
}

impl From<CodeSourceError> for Diagnostic {
    fn from(error: CodeSourceError) -> Diagnostic {
        let message = error.to_string();
        let bad = || Diagnostic::new(Code::BadCodeSource, message);
        match error {
            CodeSourceError::Input(error) => error.into(),
            CodeSourceError::Program(error) => error.into(),
            CodeSourceError::Make(_, MakeError::Mismatch { .. }) => bad()
                .note("the bytes after `was` are those that a patch replaces")
                .help("check that the list belongs to this program, and the order of its times"),
            CodeSourceError::Make(_, MakeError::Mixed { .. }) => {
                bad().help("use `time` or `message` for all changes of the same code")
            }
            CodeSourceError::Nothing => {
                bad().help("give a program with -e, memory with --raw, or patches with bytes")
            }
            CodeSourceError::Perf(_, PerfError::Compressed(_)) => {
                bad().help("record without -z, or decompress the file with `perf inject`")
            }
            CodeSourceError::Perf(_, PerfError::NotPerf) => {
                bad().help("give a file that `perf record` wrote")
            }
            CodeSourceError::Perf(_, PerfError::CutOff(_)) => bad()
                .note("patches that are missing would make wrong code of the rest")
                .help("copy the file again, or let perf end in good order"),
            CodeSourceError::Perf(..) => bad().help("copy the file again"),
            CodeSourceError::Misfit(_, PerfMisfit::WhichProcess(processes)) => {
                let shown = processes.iter().take(SHOWN);
                let shown: Vec<String> = shown.map(|(pid, name)| format!("{pid} {name}")).collect();
                let more = if processes.len() > SHOWN { ", ..." } else { "" };
                bad()
                    .note(format!("processes: {}{more}", shown.join(", ")))
                    .help(
                        "choose one with --context PID, say in which contexts they run with \
                     --context PID=CONTEXT, or that the context is the process with --context pid",
                    )
            }
            CodeSourceError::Misfit(..) => bad().help("give the kernel that ran with --vmlinux"),
            CodeSourceError::Core(path, error) => bad_elf(&path, &[], &error),
            CodeSourceError::Patch(..) | CodeSourceError::Make(..) => bad(),
        }
    }
}

/// An ISA string that cannot be read.
#[must_use]
pub fn bad_isa(text: &str, error: &IsaError<'_>) -> Diagnostic {
    let message = format!("--isa `{text}`: {error}");
    let diagnostic = Diagnostic::new(Code::BadIsa, message);
    match hartrace_capture::isa_hint::nearest(text) {
        Some(nearest) => diagnostic.help(format!("did you mean --isa {nearest}?")),
        None => diagnostic.help("write an ISA string such as rv64gc or rv32imac_zicsr_zba"),
    }
}

impl From<ProgramError> for Diagnostic {
    fn from(error: ProgramError) -> Diagnostic {
        match error {
            ProgramError::Input(error, Some(origin)) => named_in(&origin, error.into()),
            ProgramError::Input(error, None) => error.into(),
            ProgramError::Elf(path, head, error) => bad_elf(&path, &head, &error),
            ProgramError::Image(path, error) => bad_image(&path, &error),
            ProgramError::Code(path, error) => bad_code_history(&path, &error),
            ProgramError::Isa(text) => match Isa::parse_lenient(&text) {
                Err(error) => bad_isa(&text, &error),
                Ok(_) => Diagnostic::new(Code::BadIsa, "the instruction set cannot be read"),
            },
            ProgramError::Wrong(wrong) => {
                let name = wrong.given.display();
                let message = format!("`{name}` is not the program that was traced");
                let diagnostic = Diagnostic::new(Code::WrongProgram, message);
                let diagnostic = match &wrong.differs_at {
                    Some((at, name)) => {
                        let name = name.as_deref().map_or(String::new(), |n| format!(" <{n}>"));
                        let old = wrong.traced.display();
                        diagnostic.note(format!(
                            "the code differs from `{old}`, first at {at:#x}{name}"
                        ))
                    }
                    None => diagnostic
                        .note(format!("this file has {}", wrong.found))
                        .note(format!("the trace has {}", wrong.expected)),
                };
                diagnostic
                    .note("it was probably rebuilt after the trace was made")
                    .help("give the file that was traced with -e, or make the trace again")
            }
            ProgramError::Width { ref origin, .. } => {
                Diagnostic::new(Code::WidthMismatch, error.to_string())
                    .note(format!("the instruction set comes from {origin}"))
                    .help("give programs of one width, and the --isa they were built for")
            }
            ProgramError::Base {
                ref path,
                base,
                size,
                bits,
                odd,
            } => {
                let problem = match odd {
                    true => "is odd, but instructions are at even addresses",
                    false => "is too high: the code would run past the end of the address space",
                };
                let message = format!("{}: the base {base:#x} {problem}", input::name(path));
                Diagnostic::new(Code::BadFileSpec, message).note(format!(
                    "the file has {size} bytes and is a {bits}-bit program"
                ))
            }
        }
    }
}

/// A file that cannot be opened, with the place that names it.
#[must_use]
pub fn named_in(origin: &Origin, diagnostic: Diagnostic) -> Diagnostic {
    match origin {
        Origin::File { .. } if diagnostic.code == Code::CannotOpen => diagnostic
            .note(format!("the name is in {origin}"))
            .help("check the name; names in a configuration file are relative to that file"),
        _ => diagnostic,
    }
}

/// What was noticed while a program was read; `None` if it is no reason to warn.
#[must_use]
pub fn remark(remark: &Remark) -> Option<Diagnostic> {
    match remark {
        Remark::IsaFrom(..) | Remark::Found(..) => None,
        Remark::IsaAssumed(_) => Some(
            Diagnostic::new(Code::Guessed, remark.to_string())
                .help("give the instruction set with --isa"),
        ),
        Remark::FixedAddresses(path) => {
            let name = input::name(path);
            let message = format!("{name} is linked to fixed addresses, but a base is given");
            let help = "leave out the base, or give the position-independent program";
            Some(Diagnostic::new(Code::DoubtfulBase, message).help(help))
        }
    }
}
