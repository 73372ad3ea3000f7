//! The columns that say where rows come from: `trace` and `hart`.

use crate::column::name_type;
use crate::table::{Projection, Table};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

impl Table {
    /// Its schema with all columns: the trace, the hart if it has one, and its own.
    #[must_use]
    pub fn full_schema(self) -> SchemaRef {
        let own = self.schema(Projection::ALL);
        let mut fields = vec![Arc::new(Field::new("trace", name_type(), false))];
        if !self.is_of_program() {
            fields.push(Arc::new(Field::new("hart", DataType::UInt32, false)));
        }
        fields.extend(own.fields().iter().cloned());
        Arc::new(Schema::new_with_metadata(fields, self.metadata()))
    }
}

/// Adds the columns of the trace and the hart to rows, and puts columns in the order of a
/// schema.
#[derive(Clone, Debug)]
pub struct Completer {
    schema: SchemaRef,
    trace: Arc<StringArray>,
}

impl Completer {
    /// For rows of a trace, with a schema of columns of the table: not necessarily all.
    #[must_use]
    pub fn new(schema: SchemaRef, trace: &str) -> Completer {
        Completer {
            schema,
            trace: Arc::new(StringArray::from(vec![trace])),
        }
    }

    /// Rows of a hart, with all columns of the schema.
    ///
    /// # Errors
    ///
    /// A batch without a column of the schema.
    pub fn complete(&self, hart: u32, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for field in self.schema.fields() {
            let own = batch.column_by_name(field.name());
            columns.push(match (field.name().as_str(), own) {
                (_, Some(own)) => Arc::clone(own),
                ("trace", None) => {
                    let keys = Int32Array::from_value(0, rows);
                    let names = Arc::clone(&self.trace) as Arc<dyn Array>;
                    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, names)?)
                }
                (_, None) => Arc::new(UInt32Array::from_value(hart, rows)),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}
