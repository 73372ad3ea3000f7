//! What the side-band of perf means for the code in memory: the mappings of processes as
//! they come and go, and what the kernel patched.

use super::make::{Bytes, CodeWrite, Was, Written};
use super::perf::{Mapping, PerfData, PerfEvent, PerfRecord, TimeConversion};
use crate::elf_info::ElfInfo;
use hartrace_flow::{Context, Image, Since, SpaceId, elf::Elf};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the mappings of perf are read.
#[derive(Clone, Debug, Default)]
pub struct PerfOptions {
    /// Folders in which the files of the target are looked for; none: where they are.
    pub sysroots: Vec<PathBuf>,
    /// The kernel's ELF file.
    pub vmlinux: Option<PathBuf>,
    /// In which contexts processes run.
    pub contexts: Vec<ContextOf>,
    /// Ticks of the trace's time in a second; `None`: as the file says, or nanoseconds.
    pub frequency: Option<u64>,
    /// The time of perf at which that of the trace is 0, in nanoseconds.
    pub time_zero: u64,
}

/// In which context a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextOf {
    /// The context of every process is its number.
    Pid,
    /// This process runs in this context.
    Process(u32, Context),
    /// This process is the only one, whatever the context.
    Only(u32),
}

/// A mapping whose code is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCode {
    /// The file, as the kernel names it.
    pub file: String,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    /// Why it is not known.
    pub why: Missing,
}

/// Why code is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The file was not found.
    NotFound,
    /// It is another file than the one that was mapped: the build ids differ.
    OtherBuild,
    /// No kernel is given.
    NoKernel,
    /// A module, which is relocated when it is loaded.
    Module,
    /// It is in no file.
    NoFile,
}

/// Why the mappings of perf cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfMisfit {
    /// There are several processes, and it is not said in which contexts they run.
    WhichProcess(Vec<(u32, String)>),
    /// The kernel's file is not that of the mapping, and why.
    Kernel(PathBuf, &'static str),
}

impl fmt::Display for PerfMisfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerfMisfit::WhichProcess(processes) => {
                write!(f, "there are {} processes", processes.len())
            }
            PerfMisfit::Kernel(path, why) => {
                write!(f, "`{}` is not its kernel: {why}", path.display())
            }
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::NotFound => "the file was not found",
            Missing::OtherBuild => "the file has another build id than the one that was mapped",
            Missing::NoKernel => "no kernel is given",
            Missing::Module => "it is relocated when it is loaded, so its file does not have it",
            Missing::NoFile => "it is in no file",
        })
    }
}

/// What a file gave.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// With the offset of its record.
    pub(super) writes: Vec<(u64, CodeWrite)>,
    pub(super) missing: Vec<MissingCode>,
}

/// Turns the records of a file into writes. `read` reads a file.
pub(super) fn mapped(
    data: &PerfData,
    options: &PerfOptions,
    read: &mut dyn FnMut(&Path) -> Option<Vec<u8>>,
) -> Result<Mapped, PerfMisfit> {
    let mut target = Target {
        options,
        read,
        conversion: data.time_conversion,
        files: HashMap::new(),
        processes: BTreeMap::new(),
        only: None,
        out: Mapped::default(),
    };
    target.choose(data)?;
    for record in &data.records {
        target.record(record)?;
    }
    Ok(target.out)
}

/// A process.
#[derive(Default)]
struct Process {
    threads: BTreeSet<u32>,
    /// What is mapped, without its moment.
    maps: Vec<CodeWrite>,
}

struct Target<'a> {
    options: &'a PerfOptions,
    read: &'a mut dyn FnMut(&Path) -> Option<Vec<u8>>,
    conversion: Option<TimeConversion>,
    files: HashMap<PathBuf, Option<Arc<[u8]>>>,
    processes: BTreeMap<u32, Process>,
    /// The process that is the only one.
    only: Option<u32>,
    out: Mapped,
}

impl Target<'_> {
    /// Without contexts there must be one process only.
    fn choose(&mut self, data: &PerfData) -> Result<(), PerfMisfit> {
        let mut named = self.options.contexts.iter();
        self.only = named.find_map(|context| match context {
            ContextOf::Only(pid) => Some(*pid),
            _ => None,
        });
        if !self.options.contexts.is_empty() {
            return Ok(());
        }
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        let mut mapping: BTreeSet<u32> = BTreeSet::new();
        for record in &data.records {
            match &record.what {
                PerfEvent::Comm { pid, name, .. } => {
                    names.insert(*pid, name.clone());
                }
                PerfEvent::Map(map) if !map.is_kernel() => {
                    mapping.insert(map.pid);
                }
                _ => {}
            }
        }
        self.only = mapping.first().copied();
        if mapping.len() > 1 {
            let name = |pid: &u32| (*pid, names.get(pid).cloned().unwrap_or_default());
            return Err(PerfMisfit::WhichProcess(mapping.iter().map(name).collect()));
        }
        Ok(())
    }

    /// In which context a process runs: `None` if it is not wanted, `Some(None)` for any.
    fn context(&self, pid: u32) -> Option<Option<Context>> {
        if self.only == Some(pid) {
            return Some(None);
        }
        let mut contexts = self.options.contexts.iter();
        contexts.find_map(|context| match context {
            ContextOf::Pid => Some(Some(Context(pid.into()))),
            ContextOf::Process(own, context) if *own == pid => Some(Some(*context)),
            _ => None,
        })
    }

    /// The time of the trace at or after a time of perf.
    fn since(&self, time: u64) -> Since {
        let zero = self.options.time_zero;
        let ticks = match (self.options.frequency, self.conversion) {
            (None, Some(TimeConversion { shift, mult, zero })) if mult > 0 && shift < 64 => {
                let ns = u128::from(time.saturating_sub(zero));
                (ns << shift).div_ceil(mult.into())
            }
            (frequency, _) => {
                let frequency = frequency.unwrap_or(1_000_000_000);
                let ns = u128::from(time.saturating_sub(zero));
                (ns * u128::from(frequency)).div_ceil(1_000_000_000)
            }
        };
        match u64::try_from(ticks).unwrap_or(u64::MAX) {
            0 => Since::Start,
            ticks => Since::Time(ticks),
        }
    }

    fn push(&mut self, record: &PerfRecord, write: CodeWrite) {
        let since = self.since(record.time.unwrap_or(0));
        let write = CodeWrite { since, ..write };
        self.out.writes.push((record.offset, write));
    }

    fn record(&mut self, record: &PerfRecord) -> Result<(), PerfMisfit> {
        match &record.what {
            PerfEvent::Map(map) if map.is_kernel() => self.kernel(record, map)?,
            PerfEvent::Map(map) => self.map(record, map),
            PerfEvent::Comm { pid, tid, exec, .. } => {
                self.processes.entry(*pid).or_default().threads.insert(*tid);
                if *exec {
                    self.unmap(record, *pid);
                }
            }
            PerfEvent::Fork { pid, parent, tid } => {
                let maps = match self.processes.get(parent) {
                    Some(parent_process) if pid != parent => parent_process.maps.clone(),
                    _ => Vec::new(),
                };
                let process = self.processes.entry(*pid).or_default();
                process.threads.insert(*tid);
                if let (true, Some(context)) = (pid != parent, self.context(*pid)) {
                    for write in maps {
                        self.add(record, *pid, CodeWrite { context, ..write });
                    }
                }
            }
            PerfEvent::Exit { pid, tid } => {
                let process = self.processes.entry(*pid).or_default();
                process.threads.remove(tid);
                if process.threads.is_empty() {
                    self.unmap(record, *pid);
                }
            }
            PerfEvent::Symbol { gone: false, .. } => {}
            PerfEvent::Symbol { address, len, .. } => {
                let what = Written::Gone(*len);
                self.push(record, at(*address, what));
            }
            PerfEvent::Poke { address, old, new } => self.poke(record, *address, (old, new)),
        }
        Ok(())
    }

    fn poke(&mut self, record: &PerfRecord, address: u64, (old, new): (&[u8], &[u8])) {
        if record.time.is_none() {
            let len = old.len().max(new.len()) as u64;
            return self.push(record, at(address, Written::Unsure(len)));
        }
        let was = (!old.is_empty()).then(|| Was {
            bytes: old.to_vec().into(),
            certain: false,
        });
        let what = match new.is_empty() {
            true => Written::Gone(old.len() as u64),
            false => Written::Bytes(new.to_vec().into()),
        };
        let write = at(address, what);
        self.push(record, CodeWrite { was, ..write });
    }

    /// Adds what a process has mapped.
    fn add(&mut self, record: &PerfRecord, pid: u32, write: CodeWrite) {
        let process = self.processes.entry(pid).or_default();
        process.maps.push(write.clone());
        self.push(record, write);
    }

    /// All mappings of a process are gone.
    fn unmap(&mut self, record: &PerfRecord, pid: u32) {
        let process = self.processes.entry(pid).or_default();
        for write in std::mem::take(&mut process.maps) {
            let what = Written::Gone(write.len());
            self.push(record, CodeWrite { what, ..write });
        }
    }

    fn map(&mut self, record: &PerfRecord, map: &Mapping) {
        let Some(context) = self.context(map.pid) else {
            return;
        };
        let (address, len) = (map.address, map.len);
        let content = self.content(&map.file, map.build_id.as_deref());
        let bytes = match &content {
            Ok(content) => Bytes::part(content, map.file_offset, len),
            Err(why) => {
                self.miss(map, *why);
                Vec::new().into()
            }
        };
        if (bytes.get().len() as u64) < len {
            // Whatever was there before is not there any more.
            let gone = at(address, Written::Gone(len));
            self.push(record, CodeWrite { context, ..gone });
        }
        if !bytes.get().is_empty() {
            let write = CodeWrite::constant(address, bytes);
            self.add(record, map.pid, CodeWrite { context, ..write });
        }
    }

    /// Code that cannot be had.
    fn miss(&mut self, map: &Mapping, why: Missing) {
        self.out.missing.push(MissingCode {
            file: map.file.clone(),
            address: map.address,
            len: map.len,
            why,
        });
    }

    /// The content of a file of the target.
    fn content(&mut self, file: &str, build_id: Option<&[u8]>) -> Result<Arc<[u8]>, Missing> {
        let inside = file.strip_prefix('/').filter(|name| !name.starts_with('/'));
        let Some(inside) = inside.filter(|name| name.split('/').all(|part| part != "..")) else {
            return Err(Missing::NoFile);
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for sysroot in &self.options.sysroots {
            paths.push(sysroot.join(inside));
        }
        if paths.is_empty() {
            paths.push(PathBuf::from(file));
        }
        let mut why = Missing::NotFound;
        for path in paths {
            let read = &mut *self.read;
            let known = self.files.entry(path);
            let content = known.or_insert_with_key(|path| read(path).map(Arc::from));
            let Some(content) = content else { continue };
            match build_id {
                Some(id) if !has_build_id(content, id) => why = Missing::OtherBuild,
                _ => return Ok(Arc::clone(content)),
            }
        }
        Err(why)
    }

    /// The kernel, or a module of it.
    fn kernel(&mut self, record: &PerfRecord, map: &Mapping) -> Result<(), PerfMisfit> {
        let symbol = map.file.strip_prefix("[kernel.kallsyms]");
        let why = match (symbol, &self.options.vmlinux) {
            (Some(symbol), Some(path)) => {
                let read = (self.read)(path);
                let misfit = |why| PerfMisfit::Kernel(path.clone(), why);
                let bytes = read.ok_or_else(|| misfit("it cannot be read"))?;
                if map
                    .build_id
                    .as_ref()
                    .is_some_and(|id| !has_build_id(&bytes, id))
                {
                    return Err(misfit("it has another build id than the kernel that ran"));
                }
                let symbol = if symbol.is_empty() { "_text" } else { symbol };
                let code = kernel_code(&bytes, symbol, map.file_offset).map_err(misfit)?;
                for (address, bytes) in code {
                    self.push(record, CodeWrite::constant(address, bytes.into()));
                }
                return Ok(());
            }
            (Some(_), None) => Missing::NoKernel,
            (None, _) => Missing::Module,
        };
        self.miss(map, why);
        Ok(())
    }
}

fn at(address: u64, what: Written) -> CodeWrite {
    CodeWrite {
        what,
        ..CodeWrite::constant(address, Vec::new().into())
    }
}

/// Whether a file has a build id; perf's may be longer, filled up with zeros.
fn has_build_id(file: &[u8], id: &[u8]) -> bool {
    let known = ElfInfo::read(file).ok().and_then(|info| info.build_id);
    known.is_some_and(|known| {
        let rest = id.strip_prefix(known.as_slice());
        rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
    })
}

/// The segments of the kernel, moved so that a symbol is at an address.
fn kernel_code(
    bytes: &[u8],
    symbol: &str,
    address: u64,
) -> Result<Vec<(u64, Vec<u8>)>, &'static str> {
    let elf = Elf::parse(bytes).map_err(|_| "it is not an ELF file for RISC-V")?;
    let symbols = elf.symbols(false);
    let mut linked = symbols
        .iter()
        .filter(|known| known.name.is(symbol.as_bytes()));
    let linked = linked
        .next()
        .ok_or("it does not have the first symbol of the mapping")?
        .value;
    let image = Image::from_elf(bytes).map_err(|_| "it has no code")?;
    let code = image.segments(SpaceId::FIRST);
    let moved = address.wrapping_sub(linked);
    Ok(code
        .map(|(at, bytes)| (at.wrapping_add(moved), bytes.to_vec()))
        .collect())
}
