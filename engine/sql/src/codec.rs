//! Plans of ours as bytes, for schedulers and executors.

use crate::functions::{self, OfAddress, Origin, Place, Symbols};
use crate::pool::Pool;
use crate::provider::external;
use crate::wire::{self, Header, SentExec};
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use hartrace_print::diagnostic::{Code, Diagnostic};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The first bytes of a plan of ours.
const MAGIC: &[u8] = b"hartrace plan ";

/// The version of plans: that of the program, and a number that changes with the bytes.
pub const PLAN_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// Encodes and decodes scans of traces and the functions about addresses. Everything else is
/// left to Ballista.
#[derive(Debug, Default)]
pub struct PlanCodec {
    ballista: BallistaPhysicalExtensionCodec,
    sessions: Sessions,
}

/// A function about addresses.
#[derive(Debug, Serialize, Deserialize)]
struct Function {
    session: String,
    origin: Origin,
}

impl PlanCodec {
    /// A codec for a process.
    #[must_use]
    pub fn new() -> PlanCodec {
        PlanCodec::default()
    }

    /// Functions that an executor knows by their names.
    #[must_use]
    pub fn functions() -> [ScalarUDF; 3] {
        functions::by_name()
    }
}

/// The version, and a value.
fn to_bytes(value: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(PLAN_VERSION.as_bytes());
    out.push(b'\n');
    serde_json::to_writer(out, value).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// A value in bytes of ours; `None` for other bytes.
fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Option<Result<T>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let (version, value) = (parts.next().unwrap_or_default(), parts.next());
    if version != PLAN_VERSION.as_bytes() {
        return Some(Err(wrong_version(&String::from_utf8_lossy(version))));
    }
    let value = value.map(serde_json::from_slice);
    Some(value.and_then(Result::ok).ok_or_else(wire::damaged))
}

fn wrong_version(version: &str) -> DataFusionError {
    let version = version.escape_debug();
    let message =
        format!("a plan of version {version} was received; this program has {PLAN_VERSION}");
    let diagnostic = Diagnostic::new(Code::WrongPlan, message)
        .note("`hartrace sql`, the scheduler and the executors must have the same version")
        .help("install the same version of hartrace on all machines");
    wire::carry(external(diagnostic.into()))
}

impl PhysicalExtensionCodec for PlanCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match from_bytes::<Header>(bytes) {
            Some(header) => {
                let works = inputs.first().ok_or_else(wire::damaged)?;
                let sent = SentExec::new(header?, Arc::clone(works), &self.sessions)?;
                Ok(Arc::new(sent))
            }
            None => self.ballista.try_decode(bytes, inputs, context, converter),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        out: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<SentExec>() {
            Some(sent) => to_bytes(sent.header(), out),
            None => self.ballista.try_encode(node, out, converter),
        }
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        let Some(function) = from_bytes::<Function>(bytes) else {
            return self.ballista.try_decode_udf(name, bytes);
        };
        let function = function?;
        let place = Place::of(name).ok_or_else(wire::damaged)?;
        let symbols = self.sessions.symbols(&function.session, &function.origin);
        let made = OfAddress::new(place, &symbols);
        Ok(Arc::new(ScalarUDF::new_from_impl(made)))
    }

    fn try_encode_udf(&self, function: &ScalarUDF, out: &mut Vec<u8>) -> Result<()> {
        let inner: &dyn std::any::Any = function.inner().as_ref();
        match inner.downcast_ref::<OfAddress>() {
            Some(ours) => {
                let function = Function {
                    session: ours.symbols.session().to_owned(),
                    origin: ours.symbols.origin(),
                };
                to_bytes(&function, out)
            }
            None => self.ballista.try_encode_udf(function, out),
        }
    }
}

/// Sessions whose files are kept open.
const SESSIONS: usize = 8;

/// What the tasks of a session share in a process that runs them. Files that have changed are
/// opened again by the next session.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    last: Mutex<VecDeque<Shared>>,
}

#[derive(Debug)]
struct Shared {
    session: String,
    pool: Arc<Pool>,
    symbols: Vec<(Origin, Arc<Symbols>)>,
}

impl Sessions {
    /// The open traces of a session.
    pub(crate) fn pool(&self, session: &str) -> Arc<Pool> {
        self.with(session, |shared| Arc::clone(&shared.pool))
    }

    fn symbols(&self, session: &str, origin: &Origin) -> Arc<Symbols> {
        self.with(session, |shared| {
            let mut known = shared.symbols.iter();
            if let Some((_, symbols)) = known.find(|(known, _)| known == origin) {
                return Arc::clone(symbols);
            }
            let symbols = Symbols::new(session, Arc::clone(&shared.pool), &origin.given);
            symbols.add(&origin.sources);
            let symbols = Arc::new(symbols);
            // A session adds traces with each table function that it calls.
            shared.symbols.truncate(SESSIONS);
            shared
                .symbols
                .insert(0, (origin.clone(), Arc::clone(&symbols)));
            symbols
        })
    }

    fn with<T>(&self, session: &str, act: impl FnOnce(&mut Shared) -> T) -> T {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.iter().position(|shared| shared.session == session);
        let mut shared = match known.and_then(|at| last.remove(at)) {
            Some(shared) => shared,
            None => Shared {
                session: session.to_owned(),
                pool: Arc::default(),
                symbols: Vec::new(),
            },
        };
        let result = act(&mut shared);
        last.truncate(SESSIONS - 1);
        last.push_front(shared);
        result
    }
}
