//! Tables and functions of a session.

use crate::exported;
use crate::functions::{self, Symbols};
use crate::pool::Pool;
use crate::provider::{TraceTable, external};
use crate::remote::Cluster;
use crate::store;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::execute_stream;
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
    cluster: Option<Cluster>,
}

impl Session {
    /// A session without tables, but with a table function for each: `calls('run.ntrace')`.
    /// `given` is for the traces that they name, and `threads` decode at the same time.
    #[must_use]
    pub fn new(given: &Given, threads: usize) -> Session {
        let config = SessionConfig::new()
            .with_target_partitions(threads.max(1))
            .with_information_schema(true);
        let context = SessionContext::new_with_config_rt(config, store::runtime());
        Session::with(context, given, None)
    }

    /// A session whose queries a cluster runs, each in so many partitions.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn on_cluster(given: &Given, partitions: usize, cluster: Cluster) -> Result<Session> {
        let context = SessionContext::new_with_state(Cluster::state(partitions)?);
        Ok(Session::with(context, &absolute(given), Some(cluster)))
    }

    fn with(context: SessionContext, given: &Given, cluster: Option<Cluster>) -> Session {
        let pool = Arc::<Pool>::default();
        let session = context.session_id();
        let symbols = Symbols::new(&session, Arc::clone(&pool), &given.elf);
        let symbols = Arc::new(symbols);
        for function in functions::all(&symbols) {
            context.register_udf(function);
        }
        for table in Table::ALL {
            let function = FileTable {
                table,
                given: given.clone(),
                pool: Arc::clone(&pool),
                symbols: Arc::clone(&symbols),
                sent: cluster.is_some(),
            };
            context.register_udtf(table.name(), Arc::new(function));
        }
        Session {
            context,
            pool,
            symbols,
            cluster,
        }
    }

    /// The rows of a query.
    ///
    /// # Errors
    ///
    /// A query that cannot be planned; other errors are among the rows.
    pub async fn query(&self, query: &str) -> Result<SendableRecordBatchStream> {
        let frame = self.context.sql(query).await?;
        let Some(cluster) = &self.cluster else {
            return frame.execute_stream().await;
        };
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let config = task.session_config();
        match cluster
            .run(&plan, config, &self.context.session_id())
            .await?
        {
            Some(rows) => Ok(rows),
            None => execute_stream(plan, task),
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
    pub fn add_traces(&self, mut sources: Vec<TraceSource>) -> Result<()> {
        if self.cluster.is_some() {
            sources.iter_mut().for_each(absolute_source);
        }
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
            let mut with = Vec::new();
            for folder in folders {
                if exported::has(table, folder)? {
                    with.push(folder.clone());
                }
            }
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
    /// Whether the traces are read elsewhere.
    sent: bool,
}

/// What is given, for a process that runs in another folder.
fn absolute(given: &Given) -> Given {
    let path = absolute_path;
    // An address may follow the name of a file.
    let spec = |spec: &String| path(&spec.into()).display().to_string();
    Given {
        elf: given.elf.iter().map(spec).collect(),
        raw: given.raw.iter().map(spec).collect(),
        code: given.code.iter().map(path).collect(),
        debug: given.debug.iter().map(path).collect(),
        config: given.config.iter().map(path).collect(),
        isa: given.isa.clone(),
        log_format: given.log_format.clone(),
    }
}

/// What is in an object store has one name everywhere.
fn absolute_path(path: &PathBuf) -> PathBuf {
    match store::is_url(path) {
        true => path.clone(),
        false => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
    }
}

fn absolute_source(source: &mut TraceSource) {
    source.path = absolute_path(&source.path);
    source.given = absolute(&source.given);
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
        let mut sources = traces(&[path], None, &given).map_err(external)?;
        if self.sent {
            sources.iter_mut().for_each(absolute_source);
        }
        self.symbols.add(&sources);
        let made = TraceTable::new(self.table, sources, Arc::clone(&self.pool));
        Ok(Arc::new(made))
    }
}
