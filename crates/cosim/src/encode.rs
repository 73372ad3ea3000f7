//! The trace of an ingress port.

use crate::Error;
use hartrace_capture::config::Config;
use hartrace_capture::trace::{BlockEncoder, Format};
use hartrace_isa::{Isa, Xlen};
use hartrace_print::diagnostic::program::bad_isa;
use hartrace_print::diagnostic::trace::bad_filter;
use hartrace_print::diagnostic::{Code, Diagnostic};

/// The encoder that the settings describe: E-Trace or N-Trace, by `[trace]`, or by the
/// section that there is.
///
/// # Errors
///
/// Settings of neither format, or that contradict each other.
pub fn encoder(config: Config, format: Option<Format>) -> Result<BlockEncoder, Error> {
    let config = config.over(Config::defaults());
    let xlen = match &config.program.isa {
        None => Xlen::Rv64,
        Some(isa) => Isa::parse(&isa.value)
            .map_err(|error| bad_isa(&isa.value, &error))?
            .xlen(),
    };
    let Some(format) = format.or_else(|| Format::said(&config)) else {
        let message = "the settings do not say which trace is encoded";
        return Err(Diagnostic::new(Code::UnknownFormat, message)
            .help("add a section [etrace] or [ntrace], even an empty one with its version")
            .into());
    };
    let settings = format.settings(&config, xlen)?;
    let filter = config.filter.config(xlen, &|_| None);
    let filter = filter.map_err(|error| bad_filter(&error, &[]))?;
    BlockEncoder::new(&settings, &filter)?.ok_or_else(|| {
        let message = "a tandem trace cannot be made of the blocks of an ingress port";
        Diagnostic::new(Code::Contradiction, message)
            .note("blocks do not have what instructions write")
            .help("choose etrace or ntrace")
            .into()
    })
}
