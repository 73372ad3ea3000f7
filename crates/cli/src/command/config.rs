//! `hartrace config convert`: the parameters of an E-Trace encoder in another form.

use crate::args::ConvertConfig;
use crate::failure::Failure;
use crate::files::{create, one_stdin};
use crate::talk::Talk;
use hartrace_capture::config::{Config, Setting};
use hartrace_isa::{Isa, Xlen};
use hartrace_print::diagnostic::file::{bad_registers, no_place};
use hartrace_print::diagnostic::program::bad_isa;
use std::path::PathBuf;

pub(super) fn convert(args: &ConvertConfig, talk: &Talk) -> Result<(), Failure> {
    let files = || args.files.iter().map(PathBuf::as_path);
    one_stdin(files())?;
    let output = create(&args.output.output, files())?;
    let mut config = Config::default();
    let mut described = false;
    for path in files() {
        let (layer, is_description) = Config::load_described(path, args.registers)?;
        described |= is_description;
        config = layer.over(config);
    }
    if let Some(registers) = args.registers.filter(|_| !described) {
        let layer = Config::from_registers(registers, None);
        config = layer.map_err(|error| bad_registers(&error))?.over(config);
    }
    if let Some(text) = &args.isa {
        Isa::parse(text).map_err(|error| bad_isa(text, &error))?;
        config.program.isa = Some(Setting::flag(text.clone(), "--isa"));
    }
    let isa = config.program.isa.as_ref();
    let isa = isa.and_then(|isa| Isa::parse_lenient(&isa.value).ok());
    let xlen = isa.map_or(Xlen::Rv64, |isa| isa.xlen());
    let (form, name) = args.to.form();
    let (text, omitted) = config.to_form(form, xlen)?;
    if !omitted.is_empty() {
        talk.warning(&no_place(name, &omitted));
    }
    output.write_with(|out| out.write_all(text.as_bytes()))?;
    Ok(())
}
