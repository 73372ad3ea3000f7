//! The one configuration schema: read from TOML, merged, written back. The
//! parameters of an E-Trace encoder are read and written in other forms, too
//! ([`Form`]).
//!
//! Every value has its origin, so that the effective settings can be shown with
//! their origins. Layers are merged with [`Config::over`]: defaults, sidecar,
//! configuration files, command line.
//!
//! ```toml
//! [program]
//! isa = "rv64gc"
//! elf = ["prog.elf", "lib.so@0x40000000"]
//! raw = ["boot.bin@0x1000"]
//!
//! [ingress]
//! itype_width = 4              # 3 or 4
//! table = "etrace-2.0"         # etrace-1.1.1, etrace-2.0, etrace-reference,
//!                              # ntrace-rc7, ntrace-1.0, nexrv
//! retirement = "block"         # single or block
//! max_halfwords = 32           # per block
//! sijump = true
//! all_jumps = false
//! retires = "none"
//! ctype = 2                    # 0 to 3
//! tval_bits = 64               # 0 to 64
//!
//! [filter]                     # which instructions are traced
//! address = ["0x80000000..0x80001000"]
//! modes = ["M", "S", "U"]      # and VU, VS, D
//! context = [5, "7..=9"]
//!
//! [[filter.any]]               # or what matches one of these
//! from = 0x80002000            # or address; modes, context, tval
//! until = 0x80002040
//! causes = [2, 8]              # in the handlers of these traps
//! trap = "exception"           # or interrupt
//! impdef = 0x10                # compared under impdef_mask
//!
//! [hart]
//! machine = "virt"             # virt or spike
//! memory = ["0x80000000:256M"]
//! max_insns = "10M"
//!
//! [hart.cost]                  # cycles per class of instruction
//! load = 2
//!
//! [ntrace]                     # the N-Trace encoder
//! version = "1.0"              # 1.0 or rc7
//! mode = "htm"                 # htm or btm
//!
//! [etrace]                     # the E-Trace encoder
//! version = "2.0"              # 2.0 or 1.1.1-draft
//! full_address = false
//!
//! [tandem]                     # the tandem-verification trace
//! style = "full"               # full, compact or bluespec
//! absent = ["trap.mstatus"]    # what it does not record
//!
//! [log]                        # a log that is not recognised by itself
//! format = "columns"           # or the name of a format
//!
//! [log.columns]                # a table, or a pattern
//! pc = "address"               # the name of a column, or its number
//!
//! [verify]                     # what is compared
//! volatile = ["0x10000000:0x1000"] # state that comes from the core
//! absent = ["trap.mtval"]      # what the core does not report
//!
//! [wave]                       # the port in a waveform
//! port = "rvfi"                # rvfi, ingress or cva6
//! scope = "tb.core0"
//! clock = "tb.clk"
//!
//! [wave.signals]               # single signals of it
//! valid = "tb.core0.retired"
//!
//! [ctr]                        # control transfer records
//! version = "1.0"              # 1.0 or 0.1.4
//! depth = 32                   # 16, 32, 64, 128 or 256
//! control = ["M", "S", "U"]    # fields of the control register that are set
//! ```

#[macro_use]
mod section;

mod contexts;
mod ctr;
mod discovery;
mod document;
mod etrace;
mod file;
mod filter;
mod hart;
mod ingress;
mod log;
mod ntrace;
mod program;
mod read;
mod tandem;
mod transport;
mod value;
mod verify;
mod wave;
mod write;

pub use contexts::Contexts;
pub use ctr::{CtrError, Records};
pub use discovery::Form;
pub use document::Config;
pub use etrace::{Etrace, EtraceData, EtraceEncapsulation, EtraceParameters};
pub use file::LoadError;
pub use filter::data::DataFilter;
pub use filter::{Code, Filter, FilterError, FindSymbol, Span};
pub use hart::{COSTS, ContextSource, Hart, Machine, Modes};
pub use hartrace_etrace::ParameterError;
pub use ingress::{DataForm, Ingress};
pub(crate) use log::FORMATS;
pub use log::{Log, LogColumns};
pub use ntrace::{Ntrace, Registers};
pub use program::{Program, Trace};
pub use read::nearest;
pub use read::{ConfigError, Problem};
pub use tandem::{Tandem, TandemStyle, TandemVersion};
pub use transport::TransportSection;
pub use value::{Origin, Setting};
pub use verify::Verify;
pub use wave::{Wave, WaveSignals};

#[cfg(test)]
mod tests;
