//! The tables that all threads share: stacks, frames, functions and strings.

use super::super::Shown;
use super::super::folded::what_name;
use super::super::threads::frame_line;
use super::TRAP;
use hartrace_analyze::{Module, NodeId, What};
use serde::Serialize;
use std::collections::HashMap;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared {
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FuncTable,
    resource_table: ResourceTable,
    native_symbols: NativeSymbols,
    string_array: Vec<String>,
    sources: Sources,
    source_location_table: SourceLocations,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct StackTable {
    frame: Vec<usize>,
    /// How far back the stack of the caller is; 0 if there is none.
    prefix_offset: Vec<usize>,
    length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameTable {
    address: Vec<i64>,
    lib: Vec<i64>,
    inline_depth: Vec<u32>,
    category: Vec<Option<usize>>,
    subcategory: Vec<Option<usize>>,
    func: Vec<usize>,
    native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    inner_window: Vec<Option<u32>>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
    original_location: Vec<Option<usize>>,
    length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FuncTable {
    name: Vec<usize>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    resource: Vec<i64>,
    source: Vec<Option<usize>>,
    line_number: Vec<Option<u32>>,
    column_number: Vec<Option<u32>>,
    original_location: Vec<Option<usize>>,
    length: usize,
}

#[derive(Default, Serialize)]
struct ResourceTable {
    length: usize,
    name: Vec<usize>,
    host: Vec<Option<usize>>,
    r#type: Vec<u8>,
}

/// A resource that is a library.
const LIBRARY: u8 = 1;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeSymbols {
    lib_index: Vec<usize>,
    address: Vec<u64>,
    name: Vec<usize>,
    function_size: Vec<Option<u64>>,
    length: usize,
}

#[derive(Default, Serialize)]
struct Sources {
    length: usize,
    id: Vec<Option<String>>,
    filename: Vec<usize>,
    #[serde(rename = "startLine")]
    start_line: Vec<u32>,
    #[serde(rename = "startColumn")]
    start_column: Vec<u32>,
    #[serde(rename = "sourceMapURL")]
    source_map: Vec<Option<usize>>,
    content: Vec<Option<String>>,
}

#[derive(Default, Serialize)]
struct SourceLocations {
    source: Vec<usize>,
    line: Vec<u32>,
    column: Vec<u32>,
    length: usize,
}

/// The tables, filled while threads are made.
pub(super) struct Tables<'w, 'a> {
    shown: &'w Shown<'a>,
    modules: &'w [Module],
    shared: Shared,
    strings: HashMap<String, usize>,
    sources: HashMap<String, usize>,
    frames: HashMap<What, usize>,
    /// Of call paths.
    stacks: HashMap<NodeId, usize>,
}

impl<'w, 'a> Tables<'w, 'a> {
    pub(super) fn new(shown: &'w Shown<'a>, modules: &'w [Module]) -> Tables<'w, 'a> {
        let mut tables = Tables {
            shown,
            modules,
            shared: Shared::default(),
            strings: HashMap::new(),
            sources: HashMap::new(),
            frames: HashMap::new(),
            stacks: HashMap::new(),
        };
        for module in modules {
            let name = tables.string(super::super::short(&module.name));
            let table = &mut tables.shared.resource_table;
            table.name.push(name);
            table.host.push(None);
            table.r#type.push(LIBRARY);
            table.length += 1;
        }
        tables
    }

    pub(super) fn finish(self) -> Shared {
        self.shared
    }

    /// The number of a string.
    pub(super) fn string(&mut self, text: &str) -> usize {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = self.shared.string_array.len();
        self.shared.string_array.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    /// The number of the stack of a call path. Callers come before what they call.
    pub(super) fn stack(&mut self, node: NodeId) -> usize {
        let mut missing = Vec::new();
        let mut below = None;
        let mut at = node;
        while let Some(known) = self.shown.profile.tree.node(at) {
            below = self.stacks.get(&at).copied();
            if below.is_some() || at == NodeId::ROOT {
                break;
            }
            if matches!(known.what, What::Function(_) | What::Trap(_)) {
                missing.push((at, known.what));
            }
            at = known.parent;
        }
        if missing.is_empty() && below.is_none() {
            missing.push((node, What::Unknown));
        }
        for (node, what) in missing.into_iter().rev() {
            let frame = self.frame(what);
            let table = &mut self.shared.stack_table;
            let number = table.length;
            table.frame.push(frame);
            table
                .prefix_offset
                .push(below.map_or(0, |below| number - below));
            table.length += 1;
            self.stacks.insert(node, number);
            below = Some(number);
        }
        below.unwrap_or(0)
    }

    /// The file that has a function, and where the function is in it.
    fn place(&self, what: What) -> Option<(usize, u64)> {
        let What::Function(id) = what else {
            return None;
        };
        let start = self.shown.profile.functions.get(id).start;
        let has = |module: &Module| module.segments.offset(start).is_some();
        let lib = self.modules.iter().position(has)?;
        let segments = self.modules.get(lib)?.segments.iter();
        let base = segments.map(|segment| segment.address).min()?;
        Some((lib, start.wrapping_sub(base)))
    }

    /// The number of the frame of a function or a trap.
    fn frame(&mut self, what: What) -> usize {
        if let Some(number) = self.frames.get(&what) {
            return *number;
        }
        let line = frame_line(what, self.shown);
        let source = line.map(|line| self.source(line.file));
        let line = line.map(|line| line.line);
        let place = self.place(what);
        let name = self.string(&what_name(what, &self.shown.profile.functions));
        let symbol = place.map(|place| self.symbol(what, name, place));
        let number = self.shared.frame_table.length;
        let category = match what {
            What::Trap(_) => Some(TRAP),
            // That of its caller: a function that handles a trap belongs to it.
            _ => None,
        };
        let frames = &mut self.shared.frame_table;
        let missing = -1;
        frames
            .address
            .push(place.map_or(missing, |(_, at)| at as i64));
        frames
            .lib
            .push(place.map_or(missing, |(lib, _)| lib as i64));
        frames.inline_depth.push(0);
        frames.category.push(category);
        frames.subcategory.push(category.map(|_| 0));
        frames.func.push(number);
        frames.native_symbol.push(symbol);
        frames.inner_window.push(Some(0));
        frames.line.push(line);
        frames.column.push(None);
        frames.original_location.push(None);
        frames.length += 1;
        let functions = &mut self.shared.func_table;
        functions.name.push(name);
        functions.is_js.push(false);
        functions.relevant_for_js.push(false);
        functions
            .resource
            .push(place.map_or(missing, |(lib, _)| lib as i64));
        functions.source.push(source);
        functions.line_number.push(line);
        functions.column_number.push(None);
        functions.original_location.push(None);
        functions.length += 1;
        self.frames.insert(what, number);
        number
    }

    fn symbol(&mut self, what: What, name: usize, (lib, address): (usize, u64)) -> usize {
        let size = match what {
            What::Function(id) => {
                let function = self.shown.profile.functions.get(id);
                Some(function.end - function.start).filter(|size| *size > 0)
            }
            _ => None,
        };
        let symbols = &mut self.shared.native_symbols;
        symbols.lib_index.push(lib);
        symbols.address.push(address);
        symbols.name.push(name);
        symbols.function_size.push(size);
        symbols.length += 1;
        symbols.length - 1
    }

    fn source(&mut self, file: &str) -> usize {
        if let Some(number) = self.sources.get(file) {
            return *number;
        }
        let name = self.string(file);
        let sources = &mut self.shared.sources;
        let number = sources.length;
        sources.id.push(None);
        sources.filename.push(name);
        sources.start_line.push(1);
        sources.start_column.push(1);
        sources.source_map.push(None);
        sources.content.push(None);
        sources.length += 1;
        self.sources.insert(file.to_owned(), number);
        number
    }
}
