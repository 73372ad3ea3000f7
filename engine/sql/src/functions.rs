//! Functions about addresses and names.

use crate::pool::Pool;
use datafusion::arrow::array::cast::AsArray as _;
use datafusion::arrow::array::{ArrayRef, StringArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use hartrace_analyze::{Names, Places, demangle};
use hartrace_capture::program::{Elf, ElfFile};
use hartrace_tables::TraceSource;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, RwLock};

/// Symbols and lines of the programs of a session, looked up when they are first needed.
#[derive(Default)]
pub(crate) struct Symbols {
    sources: RwLock<Vec<TraceSource>>,
    pool: Arc<Pool>,
    given: Vec<String>,
    programs: OnceLock<Vec<Known>>,
}

/// What is known of a program.
struct Known {
    names: Names,
    /// Start and end of code, and its line, by address.
    lines: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// Symbols of programs that are given, each `FILE[@BASE]`, come first.
    pub(crate) fn new(pool: Arc<Pool>, given: &[String]) -> Symbols {
        Symbols {
            pool,
            given: given.to_vec(),
            ..Symbols::default()
        }
    }

    /// Symbols come from the programs of these traces.
    pub(crate) fn add(&self, sources: &[TraceSource]) {
        if let Ok(mut known) = self.sources.write() {
            known.extend_from_slice(sources);
        }
    }

    /// The programs of the first traces: mostly they are the same.
    fn programs(&self) -> &[Known] {
        self.programs.get_or_init(|| {
            let sources = self.sources.read().map(|known| known.clone());
            let mut files = Vec::new();
            let mut programs = Vec::new();
            for elf in &self.given {
                programs.extend(Known::of_file(elf));
            }
            for source in sources.unwrap_or_default().iter().take(MOST) {
                // A trace that cannot be opened has no symbols; reading it says why.
                let Ok(opened) = self.pool.open(source) else {
                    continue;
                };
                let own = opened.program.elf.iter();
                let own: Vec<PathBuf> = own.map(|elf| elf.file.file.clone()).collect();
                if !files.contains(&own) {
                    programs.push(Known::of(&opened.program.elf));
                    files.push(own);
                }
            }
            programs
        })
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let mut programs = self.programs().iter();
        programs.find_map(|known| {
            let (_, offset) = known.names.lookup(address)?;
            (offset < FAR).then(|| known.names.label(address).to_string())
        })
    }

    fn line(&self, address: u64) -> Option<String> {
        let mut programs = self.programs().iter();
        programs.find_map(|known| {
            let after = known.lines.partition_point(|(start, ..)| *start <= address);
            let (_, end, line) = known.lines.get(after.checked_sub(1)?)?;
            (address < *end).then(|| line.clone())
        })
    }
}

/// Traces whose programs are looked at.
const MOST: usize = 64;

/// The distance after a symbol up to which it names an address, in bytes.
const FAR: u64 = 16 << 20;

impl Known {
    /// Of a program that was given, if it can be read.
    fn of_file(spec: &str) -> Option<Known> {
        let elf = Elf::read(&ElfFile::parse(spec).ok()?).ok()?;
        Some(Known::of(&[elf]))
    }

    fn of(elf: &[Elf]) -> Known {
        let (mut names, mut places) = (Names::new(), Places::new());
        for elf in elf {
            // What has no symbols has no names.
            for bias in elf.biases() {
                let _ = names.add_symbols(elf.symbols(), bias);
                let _ = places.add_program((elf.symbols(), &elf.bytes), elf.lines(), bias);
            }
        }
        let lines = places.line_ranges(0, u64::MAX);
        let lines = lines
            .iter()
            .map(|(start, end, line)| (*start, *end, format!("{}:{}", line.file, line.line)));
        Known {
            lines: lines.collect(),
            names,
        }
    }
}

/// Applies a function to each address.
fn of_addresses(
    args: &[ColumnarValue],
    each: impl Fn(u64) -> Option<String>,
) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let Some(addresses) = arrays.first() else {
        return Ok(ColumnarValue::Array(Arc::new(StringArray::from(
            Vec::<&str>::new(),
        ))));
    };
    let mut out = StringBuilder::new();
    // The same addresses come again and again.
    let mut known: HashMap<u64, Option<String>> = HashMap::new();
    for address in addresses.as_primitive::<UInt64Type>() {
        let text = address.and_then(|address| {
            known
                .entry(address)
                .or_insert_with(|| each(address))
                .clone()
        });
        out.append_option(text);
    }
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn demangled(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let mut out = StringBuilder::new();
    if let Some(names) = arrays.first() {
        let names: ArrayRef = cast(names, &DataType::Utf8)?;
        for name in names.as_string::<i32>() {
            out.append_option(name.map(demangle));
        }
    }
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

/// `symbol(pc)`, `source_line(pc)` and `demangle(name)`.
pub(crate) fn all(symbols: &Arc<Symbols>) -> [ScalarUDF; 3] {
    let (names, lines) = (Arc::clone(symbols), Arc::clone(symbols));
    let address = || vec![DataType::UInt64];
    [
        create_udf(
            "symbol",
            address(),
            DataType::Utf8,
            Volatility::Stable,
            Arc::new(move |args: &[ColumnarValue]| of_addresses(args, |at| names.symbol(at))),
        ),
        create_udf(
            "source_line",
            address(),
            DataType::Utf8,
            Volatility::Stable,
            Arc::new(move |args: &[ColumnarValue]| of_addresses(args, |at| lines.line(at))),
        ),
        create_udf(
            "demangle",
            vec![DataType::Utf8],
            DataType::Utf8,
            Volatility::Immutable,
            Arc::new(demangled),
        ),
    ]
}
