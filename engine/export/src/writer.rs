//! The files of one trace, while they are written.

use crate::column::Press;
use crate::file::TableFile;
use arrow_array::RecordBatch;
use hartrace_tables::{Table, Take};
use parquet::errors::{ParquetError, Result};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Writes each table and hart to a file.
pub(crate) struct Writer<'a> {
    folder: &'a Path,
    files: BTreeMap<(Table, u32), TableFile>,
    press: Press,
    failed: Option<ParquetError>,
    ended: &'a dyn Fn() -> bool,
}

/// A file that is complete.
pub(crate) struct Written {
    pub(crate) table: Table,
    pub(crate) hart: u32,
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl<'a> Writer<'a> {
    /// Writes to a folder; `ended` says that no more is wanted.
    ///
    /// # Errors
    ///
    /// Too little memory.
    pub(crate) fn new(folder: &'a Path, ended: &'a dyn Fn() -> bool) -> Result<Writer<'a>> {
        Ok(Writer {
            folder,
            files: BTreeMap::new(),
            press: Press::new()?,
            failed: None,
            ended,
        })
    }

    fn path(&self, table: Table, hart: u32) -> PathBuf {
        self.folder.join(format!("{table}-{hart}.parquet"))
    }

    fn write(&mut self, table: Table, hart: u32, batch: &RecordBatch) -> Result<()> {
        let path = self.path(table, hart);
        let file = match self.files.entry((table, hart)) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(place) => place.insert(TableFile::create(table, &path)?),
        };
        file.write(batch, &mut self.press)
    }

    fn flush(&mut self) -> Result<()> {
        for file in self.files.values_mut().filter(|file| file.is_ready()) {
            file.end_group(&mut self.press)?;
        }
        Ok(())
    }

    fn note(&mut self, result: Result<()>) -> ControlFlow<()> {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
        match self.failed.is_some() || (self.ended)() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Completes all files.
    pub(crate) fn finish(mut self) -> Result<Vec<Written>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut all = Vec::new();
        for ((table, hart), file) in std::mem::take(&mut self.files) {
            let path = self.path(table, hart);
            let rows = file.close(&mut self.press)?;
            let bytes = fs::metadata(&path)?.len();
            all.push(Written {
                table,
                hart,
                path,
                rows,
                bytes,
            });
        }
        Ok(all)
    }
}

impl Take for Writer<'_> {
    fn batch(&mut self, table: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()> {
        let written = self.write(table, hart, &batch);
        self.note(written)
    }

    fn sync(&mut self) -> ControlFlow<(), bool> {
        match (self.ended)() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(self.files.values().any(TableFile::is_ready)),
        }
    }

    fn cut(&mut self) -> ControlFlow<()> {
        let flushed = self.flush();
        self.note(flushed)
    }
}
