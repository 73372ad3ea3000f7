//! A table in the Parquet files of an export, in a folder or in an object store.

use crate::provider::external;
use crate::store;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlanBuilder, col};
use datafusion::parquet::file::reader::{FileReader as _, SerializedFileReader};
use hartrace_export::Done;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::{Error, Projection, Table, VERSION, VERSION_KEY};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether a folder is an export. In an object store, what has not the name of a trace is one.
pub(crate) fn is_export(folder: &Path) -> bool {
    folder.join("_traces").is_dir() || (store::is_url(folder) && !store::is_trace(folder))
}

/// Whether an export has a table.
pub(crate) fn has(table: Table, folder: &Path) -> Result<bool> {
    match store::is_url(folder) {
        true => has_in_store(table, folder).map_err(external),
        false => Ok(folder.join(table.name()).is_dir()),
    }
}

/// A table of exports, with the columns in the same order as everywhere.
pub(crate) fn table(table: Table, folders: &[PathBuf]) -> Result<Arc<dyn TableProvider>> {
    let mut urls = Vec::new();
    for folder in folders {
        let place = folder.join(table.name());
        let path = if store::is_url(folder) {
            if !has(table, folder)? {
                return Err(external(not_exported(table, &place)));
            }
            place
        } else {
            check(table, &place).map_err(external)?;
            std::path::absolute(&place)?
        };
        // An absolute path with a slash at its end is a folder.
        urls.push(ListingTableUrl::parse(format!("{}/", path.display()))?);
    }
    let name = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut partitions = vec![("trace".to_owned(), name)];
    if !table.is_of_program() {
        partitions.push(("hart".to_owned(), DataType::UInt32));
    }
    let format = ParquetFormat::default().with_enable_pruning(true);
    let options = ListingOptions::new(Arc::new(format))
        .with_file_extension(".parquet")
        .with_table_partition_cols(partitions);
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(table.schema(Projection::ALL));
    let listing = Arc::new(ListingTable::try_new(config)?);
    let columns = table.full_schema();
    let columns = columns.fields().iter().map(|field| col(field.name()));
    let plan = LogicalPlanBuilder::scan(table.name(), provider_as_source(listing), None)?
        .project(columns)?
        .build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// A table that was not exported, or has files of another version, is refused. One without
/// files has no rows.
fn check(table: Table, folder: &Path) -> Result<(), Error> {
    let Some(file) = first_file(folder, 0) else {
        return match folder.is_dir() {
            true => Ok(()),
            false => Err(not_exported(table, folder)),
        };
    };
    let version = File::open(&file).ok().and_then(|open| {
        let reader = SerializedFileReader::new(open).ok()?;
        let metadata = reader
            .metadata()
            .file_metadata()
            .key_value_metadata()?
            .clone();
        let mut known = metadata.into_iter().filter(|pair| pair.key == VERSION_KEY);
        known.next()?.value
    });
    match version {
        Some(version) if version == VERSION => Ok(()),
        version => {
            let version = version.unwrap_or("unknown".to_owned());
            Err(wrong_version(&file.display().to_string(), &version))
        }
    }
}

fn wrong_version(file: &str, version: &str) -> Error {
    let message =
        format!("`{file}` is of version {version} of the schema; this program reads {VERSION}");
    Diagnostic::new(Code::WrongSchema, message)
        .help("export the traces again, into another folder")
        .into()
}

/// An object store has no empty folders: the file about a trace that was exported says which
/// tables there are.
fn has_in_store(table: Table, folder: &Path) -> Result<bool, Error> {
    let traces = folder.join("_traces").display().to_string();
    let first = store::first_file(&traces, ".json")?;
    let Some((name, bytes)) = first else {
        let message = format!(
            "`{}` is not an export: it has no `_traces`",
            folder.display()
        );
        return Err(Diagnostic::new(Code::NotFound, message).into());
    };
    match serde_json::from_slice::<Done>(&bytes) {
        Ok(done) if done.schema == VERSION => Ok(done.tables.contains_key(&table)),
        Ok(done) => Err(wrong_version(&name, &done.schema)),
        Err(_) => Err(wrong_version(&name, "unknown")),
    }
}

/// Some file with rows.
fn first_file(folder: &Path, depth: usize) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let found = match path.is_dir() {
            true if depth < 4 => first_file(&path, depth + 1),
            _ => Some(path).filter(|path| path.extension().is_some_and(|e| e == "parquet")),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn not_exported(table: Table, folder: &Path) -> Error {
    let folder = folder.parent().unwrap_or(folder).display();
    let message = format!("the export `{folder}` has no table `{table}`");
    Diagnostic::new(Code::NotFound, message)
        .help(format!(
            "export it with `hartrace export ... --tables {table}`"
        ))
        .into()
}
