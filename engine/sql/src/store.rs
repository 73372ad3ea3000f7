//! Where files are: this machine, or an object store.

use datafusion::error::Result;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use futures::StreamExt as _;
use hartrace_capture::trace::Format;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::Error;
use object_store::aws::AmazonS3Builder;
use object_store::{ObjectStore, ObjectStoreExt as _};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use url::Url;

/// Whether a path names something in an object store.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with("s3://"))
}

/// Whether a path has the name of a trace.
pub(crate) fn is_trace(path: &Path) -> bool {
    Format::from_extension(path).is_some()
}

/// Some file in a folder of an object store whose name has this end, and its bytes. Only on a
/// thread of a runtime that has several.
pub(crate) fn first_file(folder: &str, end: &str) -> Result<Option<(String, Vec<u8>)>, Error> {
    let cannot_read = |error: &dyn std::fmt::Display| cannot_read(folder, error);
    let url = Url::parse(folder).map_err(|error| cannot_read(&error))?;
    let store = open(&url).map_err(|error| cannot_read(&error))?;
    let prefix = object_store::path::Path::from_url_path(url.path());
    let prefix = prefix.map_err(|error| cannot_read(&error))?;
    let find = async {
        let mut files = store.list(Some(&prefix));
        while let Some(file) = files.next().await {
            let place = file?.location;
            if place.as_ref().ends_with(end) {
                let bytes = store.get(&place).await?.bytes().await?;
                return Ok(Some((place.to_string(), bytes.to_vec())));
            }
        }
        Ok(None)
    };
    let found: Result<_, object_store::Error> = block_in_place(|| Handle::current().block_on(find));
    found.map_err(|error| cannot_read(&error))
}

/// What an object store says.
pub(crate) fn cannot_read(name: &str, error: &dyn std::fmt::Display) -> Error {
    let message = format!("cannot read `{name}`: {error}");
    Diagnostic::new(Code::CannotRead, message)
        .note("the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for a store that is not of AWS, AWS_ENDPOINT and AWS_ALLOW_HTTP are used")
        .into()
}

pub(crate) fn open(url: &Url) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = AmazonS3Builder::from_env().with_url(url.as_str());
    Ok(Arc::new(builder.build()?))
}

/// An environment of queries that opens `s3://BUCKET/...` with the settings in the environment
/// variables `AWS_*`, besides the files of this machine.
#[must_use]
pub fn runtime() -> Arc<RuntimeEnv> {
    let builder = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Stores::default()));
    // Only a disk manager or a memory pool could fail.
    Arc::new(builder.build().unwrap_or_default())
}

/// Object stores that are made when they are first needed.
#[derive(Debug, Default)]
struct Stores {
    known: DefaultObjectStoreRegistry,
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.known.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if url.scheme() != "s3" {
            return self.known.get_store(url);
        }
        self.known.get_store(url).or_else(|_| {
            let store = open(url)?;
            self.known.register_store(url, Arc::clone(&store));
            Ok(store)
        })
    }
}
