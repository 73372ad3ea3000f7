//! Coverage: a summary for people, JSON, and the formats of other tools.

mod cobertura;
mod lcov;
mod object;
mod text;

pub use cobertura::cobertura;
pub use lcov::lcov;
pub use object::json;
pub use text::text;

use hartrace_analyze::{Coverage, FunctionCoverage, Functions, Places};
use hartrace_flow::Context;
use hartrace_flow::order;

/// The coverage of a program, and what is needed to show it.
#[derive(Clone, Copy)]
pub struct Covered<'a> {
    /// The coverage.
    pub coverage: &'a Coverage,
    /// The functions of the program.
    pub functions: &'a Functions,
    /// Names and source lines.
    pub places: &'a Places<'a>,
    /// The context it is of, if contexts are told apart.
    pub group: Option<Group<'a>>,
}

/// One of several contexts.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// Its number; `None` for what ran before one was reported.
    pub context: Option<Context>,
    /// Its name, if it has one.
    pub name: Option<&'a str>,
}

impl Group<'_> {
    /// What it is called.
    fn label(&self) -> String {
        match (self.context, self.name) {
            (None, _) => "no context".to_owned(),
            (Some(context), None) => format!("context {:#x}", context.0),
            (Some(context), Some(name)) => format!("context {:#x} {name}", context.0),
        }
    }
}

impl Covered<'_> {
    /// The functions whose first line is in a file, by that line.
    fn functions_of(&self, file: &str) -> Vec<(u32, &FunctionCoverage)> {
        let mut found: Vec<(u32, &FunctionCoverage)> = self
            .coverage
            .functions
            .iter()
            .filter_map(|function| {
                let start = self.functions.get(function.function).start;
                let line = self.places.line(start).filter(|line| line.file == file)?;
                Some((line.line, function))
            })
            .collect();
        order::sort_by_key(&mut found, |(line, function)| (*line, function.function));
        found
    }

    fn name(&self, function: &FunctionCoverage) -> &str {
        &self.functions.get(function.function).name
    }
}
