//! The names of functions, as the dictionary of columns.

use arrow_array::StringArray;
use hartrace_analyze::{FunctionId, Functions};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The names of the functions of a program, and of those that are found in a trace.
///
/// Functions are numbered as [`Functions`] does. Names have keys of their own, since several
/// functions may have the same name.
pub(crate) struct FunctionNames {
    /// The key of each function.
    keys: Vec<i32>,
    names: Vec<String>,
    known: HashMap<String, i32>,
    /// Addresses of code without symbols that was found.
    unnamed: HashSet<u64>,
    array: Arc<StringArray>,
}

impl FunctionNames {
    pub(crate) fn new(functions: &Functions) -> FunctionNames {
        let mut names = FunctionNames {
            keys: Vec::with_capacity(functions.len()),
            names: Vec::new(),
            known: HashMap::new(),
            unnamed: HashSet::new(),
            array: Arc::new(StringArray::from(Vec::<&str>::new())),
        };
        for (_, function) in functions.iter() {
            names.add(&function.name);
        }
        names
    }

    fn add(&mut self, name: &str) {
        let key = match self.known.get(name) {
            Some(key) => *key,
            None => {
                let key = self.names.len() as i32;
                self.known.insert(name.to_owned(), key);
                self.names.push(name.to_owned());
                key
            }
        };
        self.keys.push(key);
    }

    /// Code at this address gets a number, if it has none: as in [`Functions::unnamed`].
    pub(crate) fn unnamed(&mut self, address: u64) {
        if self.unnamed.insert(address) {
            self.add(&format!("{address:#x}"));
        }
    }

    /// The key of the name of a function.
    #[inline]
    pub(crate) fn key(&self, function: FunctionId) -> Option<i32> {
        self.keys.get(function.index()).copied()
    }

    /// All names, by their keys.
    pub(crate) fn all(&self) -> &[String] {
        &self.names
    }

    /// The same as an array.
    pub(crate) fn array(&mut self) -> &Arc<StringArray> {
        use arrow_array::Array as _;
        if self.array.len() != self.names.len() {
            self.array = Arc::new(StringArray::from_iter_values(&self.names));
        }
        &self.array
    }
}
