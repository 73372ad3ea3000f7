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

/// The coverage of a program, and what is needed to show it.
#[derive(Clone, Copy)]
pub struct Covered<'a> {
    /// The coverage.
    pub coverage: &'a Coverage,
    /// The functions of the program.
    pub functions: &'a Functions,
    /// Names and source lines.
    pub places: &'a Places<'a>,
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
        found.sort_by_key(|(line, function)| (*line, function.function));
        found
    }

    fn name(&self, function: &FunctionCoverage) -> &str {
        &self.functions.get(function.function).name
    }
}
