//! `hartrace code`: makes a code history of what other tools know.

use crate::args::Code;
use crate::failure::Failure;
use crate::files::{configs, create, inputs, one_stdin};
use crate::settings;
use crate::talk::Talk;
use hartrace_capture::code_history::{CodeFile, CodeSources, PerfOptions};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::program::missing_code;
use hartrace_print::info;
use std::path::PathBuf;

pub(super) fn run(args: &Code, talk: &Talk) -> Result<(), Failure> {
    if !args.program.code.is_empty() {
        return Err(Failure::Usage(
            "`hartrace code` makes a code history and reads none; give several with --code to the \
             commands that decode",
        ));
    }
    let config = settings::resolve(&[], &args.program, talk)?;
    let typed = || {
        let lists = args.patches.iter().chain(&args.perf).chain(&args.vmlinux);
        let dumps = args.core.iter().map(|(file, _)| file);
        lists.chain(dumps).map(PathBuf::as_path)
    };
    let all = || inputs(&config).chain(typed());
    if all().next().is_none() {
        return Err(Failure::Usage(
            "nothing is given to make a code history of: give -e, --raw, --core, --perf or --patches",
        ));
    }
    one_stdin(all().chain(configs(&args.program)))?;
    let output = create(&args.output, all())?;
    let program = settings::load(config.clone(), talk)?;
    let mut sources = CodeSources::new();
    sources.add_program(&program)?;
    for (dump, context) in &args.core {
        sources.add_core(dump, *context)?;
    }
    let options = PerfOptions {
        sysroots: args.sysroot.clone(),
        vmlinux: args.vmlinux.clone(),
        contexts: args.context.clone(),
        frequency: args.time_frequency,
        time_zero: args.time_zero,
    };
    for perf in &args.perf {
        let missing = sources.add_perf(perf, &options)?;
        missing_code(perf, &missing)
            .iter()
            .for_each(|missing| talk.warning(missing));
    }
    for list in &args.patches {
        sources.add_patches(list)?;
    }
    let file = CodeFile {
        isa: program.isa.unwrap_or(Isa::RV64GC),
        history: sources.make(args.time_slack)?,
    };
    let bytes = file.to_bytes();
    output.write_with(|out| out.write_all(&bytes))?;
    talk.summary(&info::made(&file, bytes.len() as u64));
    Ok(())
}
