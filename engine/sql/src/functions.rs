//! Functions about addresses and names.

use crate::copies;
use crate::pool::Pool;
use crate::provider::external;
use crate::wire::carry;
use datafusion::arrow::array::cast::AsArray as _;
use datafusion::arrow::array::{ArrayRef, StringArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, create_udf,
};
use hartrace_analyze::{Names, Places, demangle};
use hartrace_capture::program::{Elf, ElfFile};
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::TraceSource;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, RwLock};

/// Symbols and lines of the programs of a session, looked up when they are first needed.
#[derive(Default)]
pub(crate) struct Symbols {
    session: String,
    sources: RwLock<Vec<TraceSource>>,
    pool: Arc<Pool>,
    given: Vec<String>,
    programs: OnceLock<Vec<Known>>,
}

/// Where symbols come from: it can be sent to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Programs that were given, each `FILE[@BASE]`.
    pub(crate) given: Vec<String>,
    /// The traces whose programs are looked at.
    pub(crate) sources: Vec<TraceSource>,
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Symbols")
    }
}

/// What is known of a program.
struct Known {
    names: Names,
    /// Start and end of code, and its line, by address.
    lines: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// Symbols of programs that are given, each `FILE[@BASE]`, come first.
    pub(crate) fn new(session: &str, pool: Arc<Pool>, given: &[String]) -> Symbols {
        Symbols {
            session: session.to_owned(),
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

    /// The session to which they belong.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Where they come from.
    pub(crate) fn origin(&self) -> Origin {
        let sources = self.sources.read();
        let sources = sources.map(|known| known.iter().take(MOST).cloned().collect());
        Origin {
            given: self.given.clone(),
            sources: sources.unwrap_or_default(),
        }
    }

    /// The programs of the first traces: mostly they are the same.
    fn programs(&self) -> &[Known] {
        self.programs.get_or_init(|| {
            let mut files = Vec::new();
            let mut programs = Vec::new();
            let Origin { given, sources } = self.origin();
            for elf in &given {
                // As a trace that cannot be opened.
                let elf = copies::local_spec(elf).ok();
                programs.extend(elf.and_then(|elf| Known::of_file(&elf)));
            }
            for source in &sources {
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

/// What a function finds for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Symbol,
    Line,
}

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Place::Symbol => "symbol",
            Place::Line => "source_line",
        }
    }

    /// The one whose function has this name.
    pub(crate) fn of(name: &str) -> Option<Place> {
        let mut all = [Place::Symbol, Place::Line].into_iter();
        all.find(|place| place.name() == name)
    }
}

/// `symbol(pc)` or `source_line(pc)`.
#[derive(Debug)]
pub(crate) struct OfAddress {
    place: Place,
    pub(crate) symbols: Arc<Symbols>,
    signature: Signature,
}

impl OfAddress {
    pub(crate) fn new(place: Place, symbols: &Arc<Symbols>) -> OfAddress {
        OfAddress {
            place,
            symbols: Arc::clone(symbols),
            signature: Signature::exact(vec![DataType::UInt64], Volatility::Stable),
        }
    }
}

impl PartialEq for OfAddress {
    fn eq(&self, other: &OfAddress) -> bool {
        self.place == other.place && Arc::ptr_eq(&self.symbols, &other.symbols)
    }
}

impl Eq for OfAddress {}

impl Hash for OfAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place.hash(state);
    }
}

impl ScalarUDFImpl for OfAddress {
    fn name(&self) -> &str {
        self.place.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_addresses(&args.args, |address| match self.place {
            Place::Symbol => self.symbols.symbol(address),
            Place::Line => self.symbols.line(address),
        })
    }
}

/// `demangle(name)`.
fn demangling() -> ScalarUDF {
    create_udf(
        "demangle",
        vec![DataType::Utf8],
        DataType::Utf8,
        Volatility::Immutable,
        Arc::new(demangled),
    )
}

/// Functions for where only their names arrive: Ballista does so for what rows are divided by.
pub(crate) fn by_name() -> [ScalarUDF; 3] {
    let of = |place: Place| {
        let without = move |_: &[ColumnarValue]| {
            let name = place.name();
            let message = format!("a cluster cannot divide rows by `{name}`");
            let diagnostic = Diagnostic::new(Code::BadQuery, message).help(format!(
                "name its result in a subquery: FROM (SELECT {name}(pc) AS place, ... FROM ...)"
            ));
            Err(carry(external(diagnostic.into())))
        };
        let (name, argument) = (place.name(), vec![DataType::UInt64]);
        let volatility = Volatility::Stable;
        create_udf(
            name,
            argument,
            DataType::Utf8,
            volatility,
            Arc::new(without),
        )
    };
    [of(Place::Symbol), of(Place::Line), demangling()]
}

/// `symbol(pc)`, `source_line(pc)` and `demangle(name)`.
pub(crate) fn all(symbols: &Arc<Symbols>) -> [ScalarUDF; 3] {
    let of = |place| ScalarUDF::new_from_impl(OfAddress::new(place, symbols));
    [of(Place::Symbol), of(Place::Line), demangling()]
}
