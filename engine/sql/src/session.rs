//! Tables and functions of a session.

use crate::exported;
use crate::functions::{self, Symbols};
use crate::pool::Pool;
use crate::provider::{TraceTable, external};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionConfig;
use hartrace_export::traces;
use hartrace_tables::{Given, Table, TraceSource};
use std::path::PathBuf;
use std::sync::Arc;

/// A session with traces as tables.
pub struct Session {
    context: SessionContext,
    pool: Arc<Pool>,
    symbols: Arc<Symbols>,
}

impl Session {
    /// A session without tables, but with a table function for each: `calls('run.ntrace')`.
    /// `given` is for the traces that they name, and `threads` decode at the same time.
    #[must_use]
    pub fn new(given: &Given, threads: usize) -> Session {
        let config = SessionConfig::new()
            .with_target_partitions(threads.max(1))
            .with_information_schema(true);
        let context = SessionContext::new_with_config(config);
        let pool = Arc::<Pool>::default();
        let symbols = Arc::new(Symbols::new(Arc::clone(&pool), &given.elf));
        for function in functions::all(&symbols) {
            context.register_udf(function);
        }
        for table in Table::ALL {
            let function = FileTable {
                table,
                given: given.clone(),
                pool: Arc::clone(&pool),
                symbols: Arc::clone(&symbols),
            };
            context.register_udtf(table.name(), Arc::new(function));
        }
        Session {
            context,
            pool,
            symbols,
        }
    }

    /// What runs queries.
    #[must_use]
    pub const fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Makes traces the tables of the session.
    ///
    /// # Errors
    ///
    /// Tables that are there already.
    pub fn add_traces(&self, sources: Vec<TraceSource>) -> Result<()> {
        self.symbols.add(&sources);
        for table in Table::ALL {
            let made = TraceTable::new(table, sources.clone(), Arc::clone(&self.pool));
            self.context.register_table(table.name(), Arc::new(made))?;
        }
        Ok(())
    }

    /// Makes exports the tables of the session. A table that was not exported is none.
    ///
    /// # Errors
    ///
    /// Files of another version.
    pub fn add_exports(&self, folders: &[PathBuf]) -> Result<()> {
        for table in Table::ALL {
            let with = folders
                .iter()
                .filter(|folder| folder.join(table.name()).is_dir());
            let with: Vec<PathBuf> = with.cloned().collect();
            if !with.is_empty() {
                let made = exported::table(table, &with)?;
                self.context.register_table(table.name(), made)?;
            }
        }
        Ok(())
    }

    /// Whether a folder is an export.
    #[must_use]
    pub fn is_export(folder: &std::path::Path) -> bool {
        exported::is_export(folder)
    }
}

/// A table of the traces or of the export that its argument names.
struct FileTable {
    table: Table,
    given: Given,
    pool: Arc<Pool>,
    symbols: Arc<Symbols>,
}

impl std::fmt::Debug for FileTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileTable({})", self.table)
    }
}

impl TableFunctionImpl for FileTable {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let text = |expr: &Expr| match expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text.clone()),
            _ => None,
        };
        let texts: Option<Vec<String>> = args.exprs().iter().map(text).collect();
        let (path, elf) = match texts.as_deref() {
            Some([path]) => (PathBuf::from(path), None),
            Some([path, elf]) => (PathBuf::from(path), Some(elf.clone())),
            _ => {
                let name = self.table;
                return plan_err!(
                    "{name} takes the name of a trace, a folder or an export as text, and perhaps its program: {name}('run.ntrace', 'prog.elf')"
                );
            }
        };
        if exported::is_export(&path) {
            return exported::table(self.table, &[path]);
        }
        let mut given = self.given.clone();
        given.elf.extend(elf);
        let sources = traces(&[path], None, &given).map_err(external)?;
        self.symbols.add(&sources);
        let made = TraceTable::new(self.table, sources, Arc::clone(&self.pool));
        Ok(Arc::new(made))
    }
}
