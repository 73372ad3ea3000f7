//! The commands, one module each.

mod branches;
mod calls;
mod code;
mod compare;
mod config;
mod convert;
mod coverage;
mod ctr;
mod decode;
mod diff;
mod dump;
mod encode;
mod explain;
mod flamegraph;
mod info;
mod installed;
mod interrupts;
mod log;
mod profile;
mod report;
mod run;
mod state;
mod stats;
mod timeline;
mod verify;
mod view;

use crate::args::{self, Args, Command};
use crate::failure::Failure;
use crate::files::{configs, create, inputs, one_stdin};
use crate::talk::{Talk, clean_up_on_signal};
use crate::{listing, machine, settings};
use clap::CommandFactory as _;
use hartrace_capture::output::{Output, OutputError, OutputProblem};
use hartrace_capture::trace::Format;
use hartrace_isa::Xlen;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::fs;
use std::path::Path;

/// Runs a command.
pub(crate) fn run(command: &Command, talk: &Talk) -> Result<(), Failure> {
    match command {
        Command::Compare(args) => compare::run(args, talk),
        Command::Run(args) => run::run(args, talk),
        Command::Disasm(args) => disasm(args, talk),
        Command::Info(args) => info::run(args, talk),
        Command::Log(args) => log::run(args, talk),
        Command::Encode(args) => encode::run(args, talk),
        Command::Code(args) => code::run(args, talk),
        Command::Dump(args) => dump::run(args, talk),
        Command::Decode(args) => decode::run(args, talk),
        Command::Stats(args) => stats::run(args, talk),
        Command::Convert(args) => convert::run(args, talk),
        Command::Profile(args) => profile::run(args, talk),
        Command::Calls(args) => calls::run(args, talk),
        Command::Coverage(args) => coverage::run(args, talk),
        Command::Branches(args) => branches::run(args, talk),
        Command::Diff(args) => diff::run(args, talk),
        Command::Interrupts(args) => interrupts::run(args, talk),
        Command::Flamegraph(args) => flamegraph::run(args, talk),
        Command::Report(args) => report::run(args, talk),
        Command::View(args) => view::run(args, talk),
        Command::Timeline(args) => timeline::run(args, talk),
        Command::Verify(args) => verify::run(args, talk),
        Command::State(args) => state::run(args, talk),
        Command::Ctr(args) => ctr::run(args, talk),
        Command::Export(args) => installed::run("export", None, &args.args),
        Command::Sql(args) => installed::run("sql", None, &args.args),
        Command::Scheduler(args) => installed::run("cluster", Some("scheduler"), &args.args),
        Command::Executor(args) => installed::run("cluster", Some("executor"), &args.args),
        Command::Config(args::Config::Show(args)) => show(args, talk),
        Command::Config(args::Config::Convert(args)) => config::convert(args, talk),
        Command::Explain(args) => explain::run(args),
        Command::Completions(args) => completions(args),
        Command::Man(args) => man(&args.folder),
    }
}

fn disasm(args: &args::Disasm, talk: &Talk) -> Result<(), Failure> {
    let config = settings::resolve(&args.files, &args.program, talk)?;
    if inputs(&config).next().is_none() {
        return Err(Diagnostic::new(Code::NoProgram, "no program is given")
            .help("give an ELF file, --raw FILE@BASE, or a configuration with a [program] section")
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
    machine::complete(&mut config.hart, xlen);
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
        let message = format!(
            "cannot write to `{}`: it is not a directory",
            folder.display()
        );
        return Err(Diagnostic::new(Code::CannotCreate, message)
            .help("give a directory; it is created if it does not exist")
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
