//! Doing it.

mod convert;
mod convert_tandem;
mod ctr;
mod decode;
mod decode_json;
mod dump;
mod encode;
mod info;
mod info_json;
mod info_text;
mod log;
mod log_json;
mod log_write;
mod run;
mod state;
mod state_json;
mod state_text;
mod stats;
mod trace_write;
mod verify;

use crate::args::{self, Args, Command};
use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::talk::{Talk, clean_up_on_signal};
use crate::{listing, settings};
use clap::CommandFactory as _;
use hartrace_capture::config::Config;
use hartrace_capture::input::is_stdin;
use hartrace_capture::output::{Output, OutputError, OutputProblem};
use hartrace_capture::trace::Format;
use hartrace_isa::Xlen;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs a command.
pub(crate) fn run(command: &Command, talk: &Talk) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args, talk),
        Command::Disasm(args) => disasm(args, talk),
        Command::Info(args) => info::run(args, talk),
        Command::Log(args) => log::run(args, talk),
        Command::Encode(args) => encode::run(args, talk),
        Command::Dump(args) => dump::run(args, talk),
        Command::Decode(args) => decode::run(args, talk),
        Command::Stats(args) => stats::run(args, talk),
        Command::Convert(args) => convert::run(args, talk),
        Command::Verify(args) => verify::run(args, talk),
        Command::State(args) => state::run(args, talk),
        Command::Ctr(args) => ctr::run(args, talk),
        Command::Config(args::Config::Show(args)) => show(args, talk),
        Command::Completions(args) => completions(args),
        Command::Man(args) => man(&args.folder),
    }
}

/// Opens an output before the work starts; none of `inputs` may be the same
/// file.
pub(crate) fn create<'a>(
    path: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<Output, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Output::create(path)?);
    }
    if let Ok(target) = fs::canonicalize(path) {
        // A device may well be read and written.
        let same =
            |input: &&Path| fs::canonicalize(input).is_ok_and(|p| p == target && p.is_file());
        if let Some(input) = inputs.into_iter().find(same) {
            let message = format!("the output would replace the input `{}`", input.display());
            return Err(Diagnostic::new(Code::OutputIsInput, message)
                .help("give the output another name")
                .into());
        }
    }
    clean_up_on_signal();
    Ok(Output::create(path)?)
}

/// Standard input can be read once only.
pub(crate) fn one_stdin<'a>(names: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    match names.into_iter().filter(|n| is_stdin(n)).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::Usage(
            "`-` is given more than once, and standard input can be read only once",
        )),
    }
}

/// The files a configuration names.
pub(crate) fn inputs(config: &Config) -> impl Iterator<Item = &Path> + Clone {
    let program = &config.program;
    let elf = program.elf.iter().flat_map(|s| &s.value);
    let raw = program.raw.iter().flat_map(|s| &s.value);
    elf.map(|f| f.file.as_path())
        .chain(raw.map(|f| f.file.as_path()))
}

/// The configuration files that were typed.
pub(crate) fn configs(program: &args::Program) -> impl Iterator<Item = &Path> {
    program.config.iter().map(PathBuf::as_path)
}

fn disasm(args: &args::Disasm, talk: &Talk) -> Result<(), Failure> {
    let config = settings::resolve(&args.files, &args.program, talk)?;
    if inputs(&config).next().is_none() {
        return Err(Diagnostic::new(Code::NoProgram, "no program is given")
            .help("name an ELF file, or use --raw FILE@BASE or a configuration with [program]")
            .into());
    }
    one_stdin(inputs(&config).chain(configs(&args.program)))?;
    let output = create(&args.output.output, inputs(&config))?;
    let program = settings::load(config, talk)?;
    listing::warn_of_undecoded(&program, talk);
    listing::write(args, &program, output)
}

fn show(args: &args::Show, talk: &Talk) -> Result<(), Failure> {
    if let Some(args::ShowOf::Run(args)) = &args.of {
        return run::show(args, talk);
    }
    let config = settings::resolve(&[], &args.program, talk)?;
    one_stdin(inputs(&config).chain(configs(&args.program)))?;
    let output = create(&args.output.output, inputs(&config))?;
    let program = settings::load(config, talk)?;
    let xlen = program.isa.map_or(Xlen::Rv64, |isa| isa.xlen());
    let mut config = program.config;
    run::complete(&mut config.hart, xlen);
    for format in Format::ALL {
        format.settings(&config, xlen)?.complete(&mut config);
    }
    config.ctr = config.ctr.completed(xlen)?;
    let text = config.to_toml(true);
    output.write_with(|out| out.write_all(text.as_bytes()))?;
    Ok(())
}

fn completions(args: &args::Completions) -> Result<(), Failure> {
    let output = create(&args.output.output, [])?;
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "hartrace", &mut text);
    output.write_with(|out| out.write_all(&text))?;
    Ok(())
}

fn man(folder: &Path) -> Result<(), Failure> {
    if fs::metadata(folder).is_ok_and(|m| !m.is_dir()) {
        let message = format!("cannot write to `{}`: it is not a folder", folder.display());
        return Err(Diagnostic::new(Code::CannotCreate, message)
            .help("name a folder, or one that is to be created")
            .into());
    }
    fs::create_dir_all(folder).map_err(|error| OutputError {
        path: folder.to_path_buf(),
        problem: OutputProblem::Open(error),
    })?;
    let mut root = Args::command();
    root.build();
    let mut pages = Vec::new();
    collect_pages(&root, &mut pages);
    clean_up_on_signal();
    for (name, page) in pages {
        let path = folder.join(name);
        Output::create(&path)?.write_with(|out| out.write_all(&page))?;
    }
    Ok(())
}

/// The page of a command and those of its subcommands.
fn collect_pages(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    // Writing to memory does not fail.
    if page.render(&mut text).is_ok() {
        pages.push((page.get_filename(), text));
    }
    for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
        collect_pages(sub, pages);
    }
}
