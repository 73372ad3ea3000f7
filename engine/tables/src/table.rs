//! The tables: their names, their columns and the version of both.

use crate::rows;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The version of the schema. It changes when a column changes its meaning or its type, or
/// goes away; a new column does not change it.
pub const VERSION: &str = "1";

/// The key of the version in the metadata of a schema and of a Parquet file.
pub const VERSION_KEY: &str = "hartrace.schema";

/// The key of the name of the table.
pub const TABLE_KEY: &str = "hartrace.table";

/// A table.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    /// Stretches of instructions at consecutive addresses.
    Runs,
    /// Calls of functions.
    Calls,
    /// Traps.
    Traps,
    /// Data accesses.
    Accesses,
    /// What is missing in a trace, or in doubt.
    Gaps,
    /// The messages of a trace.
    Messages,
    /// The functions of the program.
    Functions,
    /// The source lines of the program.
    Lines,
    /// The conditional branches of the program, with their outcomes.
    Branches,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// What it means, with its unit.
    pub about: &'static str,
    /// Whether it may have nulls.
    pub nullable: bool,
    /// Its type.
    pub data_type: fn() -> DataType,
}

/// Which columns of a table are wanted, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection(pub(crate) u32);

impl Projection {
    /// All columns.
    pub const ALL: Projection = Projection(u32::MAX);

    /// No column: only how many rows there are.
    pub const NONE: Projection = Projection(0);

    /// With this column.
    #[must_use]
    pub const fn with(self, column: usize) -> Projection {
        Projection(self.0 | 1 << (column & 31))
    }

    /// Whether a column is wanted.
    #[must_use]
    pub const fn has(self, column: usize) -> bool {
        self.0 >> (column & 31) & 1 != 0
    }
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 9] = [
        Table::Runs,
        Table::Calls,
        Table::Traps,
        Table::Accesses,
        Table::Gaps,
        Table::Messages,
        Table::Functions,
        Table::Lines,
        Table::Branches,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Table::Runs => "runs",
            Table::Calls => "calls",
            Table::Traps => "traps",
            Table::Accesses => "accesses",
            Table::Gaps => "gaps",
            Table::Messages => "messages",
            Table::Functions => "functions",
            Table::Lines => "lines",
            Table::Branches => "branches",
        }
    }

    /// The table with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Whether it is about the program: it has no harts.
    #[must_use]
    pub const fn is_of_program(self) -> bool {
        matches!(self, Table::Functions | Table::Lines | Table::Branches)
    }

    /// Whether it is made of the events of a trace, in their order.
    #[must_use]
    pub const fn is_of_flow(self) -> bool {
        matches!(
            self,
            Table::Runs | Table::Calls | Table::Traps | Table::Accesses | Table::Gaps
        )
    }

    /// Its columns, but for `trace` and `hart`.
    #[must_use]
    pub const fn columns(self) -> &'static [ColumnInfo] {
        match self {
            Table::Runs => rows::Runs::COLUMNS,
            Table::Calls => rows::Calls::COLUMNS,
            Table::Traps => rows::Traps::COLUMNS,
            Table::Accesses => rows::Accesses::COLUMNS,
            Table::Gaps => rows::Gaps::COLUMNS,
            Table::Messages => rows::Messages::COLUMNS,
            Table::Functions => rows::Functions::COLUMNS,
            Table::Lines => rows::Lines::COLUMNS,
            Table::Branches => rows::Branches::COLUMNS,
        }
    }

    /// The place of a column.
    #[must_use]
    pub fn column(self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.name == name)
    }

    /// Whether a projection has a column with a time, which takes longer to make.
    #[must_use]
    pub fn has_time(self, projection: Projection) -> bool {
        let timed = |name: &str| name.ends_with("time") || name == "cycles";
        let columns = self.columns().iter().enumerate();
        let mut times = columns.filter(|(_, column)| timed(column.name));
        self.is_of_flow() && times.any(|(at, _)| projection.has(at))
    }

    /// Whether several stretches may be read as one part: there, runs have the position of its
    /// start.
    #[must_use]
    pub fn can_join(self, projection: Projection) -> bool {
        let position = self.column("position");
        self != Table::Runs || !position.is_some_and(|at| projection.has(at))
    }

    /// The schema of the wanted columns, without `trace` and `hart`: that of its files.
    #[must_use]
    pub fn schema(self, projection: Projection) -> SchemaRef {
        let columns = self.columns().iter().enumerate();
        let wanted = columns.filter(|(at, _)| projection.has(*at));
        let fields: Vec<Field> = wanted
            .map(|(_, column)| Field::new(column.name, (column.data_type)(), column.nullable))
            .collect();
        Arc::new(Schema::new_with_metadata(fields, self.metadata()))
    }

    /// What files say about themselves.
    #[must_use]
    pub fn metadata(self) -> HashMap<String, String> {
        HashMap::from([
            (VERSION_KEY.to_owned(), VERSION.to_owned()),
            (TABLE_KEY.to_owned(), self.name().to_owned()),
        ])
    }

    /// Rows as a batch.
    pub(crate) fn batch(
        self,
        projection: Projection,
        columns: Vec<ArrayRef>,
        rows: usize,
    ) -> Option<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        // Columns and schema come from the same list.
        RecordBatch::try_new_with_options(self.schema(projection), columns, &options).ok()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
