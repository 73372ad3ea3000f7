//! Copies of traces and programs that are in an object store.
//!
//! A decoder reads from files. So a trace in an object store is copied to this machine before it
//! is opened, with its sidecar, its code history and the programs that the sidecar names; once, as
//! long as the object stays the same. The copies have the same places to each other as in the
//! bucket, so that names in a sidecar lead to the same files.

use crate::store::{self, cannot_read, is_url};
use futures::StreamExt as _;
use hartrace_capture::digest::Digest;
use hartrace_capture::{cache::Cache, code_history, sidecar};
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::{Error, Given, TraceSource};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use tempfile::NamedTempFile;
use url::Url;

/// The same trace on this machine.
pub(crate) fn local(source: &TraceSource) -> Result<TraceSource, Error> {
    let given = &source.given;
    let given = Given {
        elf: each(&given.elf, |spec| local_spec(spec.as_str()))?,
        raw: each(&given.raw, |spec| local_spec(spec.as_str()))?,
        code: each(&given.code, |path| local_file(path))?,
        debug: given.debug.clone(),
        config: each(&given.config, |path| local_file(path))?,
        isa: given.isa.clone(),
        log_format: given.log_format.clone(),
    };
    let path = match is_url(&source.path) {
        false => source.path.clone(),
        true => trace(&source.path, &given)?,
    };
    Ok(TraceSource {
        path,
        name: source.name.clone(),
        given,
    })
}

fn each<T>(all: &[T], one: impl Fn(&T) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    all.iter().map(one).collect()
}

/// The same `FILE[@BASE]` on this machine.
pub(crate) fn local_spec(spec: &str) -> Result<String, Error> {
    if !is_url(Path::new(spec)) {
        return Ok(spec.to_owned());
    }
    let is_base = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let (file, base) = match spec.rsplit_once('@') {
        Some((file, base)) if is_base(base) => (file, format!("@{base}")),
        _ => (spec, String::new()),
    };
    let file = local_file(Path::new(file))?;
    Ok(format!("{}{base}", file.display()))
}

fn local_file(path: &Path) -> Result<PathBuf, Error> {
    match is_url(path) {
        false => Ok(path.to_path_buf()),
        true => Bucket::of(path)?.need(path),
    }
}

/// A trace, with the files that it needs.
fn trace(path: &Path, given: &Given) -> Result<PathBuf, Error> {
    let bucket = Bucket::of(path)?;
    let copy = bucket.need(path)?;
    bucket.get(&sidecar::path_for(path))?;
    bucket.get(&code_history::path_for(path))?;
    let known = sidecar::find(&copy).map_err(Diagnostic::from)?;
    let Some(program) = known.map(|config| config.program) else {
        return Ok(copy);
    };
    let elf = program.elf.into_iter().flat_map(|setting| setting.value);
    let raw = program.raw.into_iter().flat_map(|setting| setting.value);
    let code = program.code.into_iter().flat_map(|setting| setting.value);
    let elf = elf.map(|elf| elf.file).filter(|_| given.elf.is_empty());
    let raw = raw.map(|raw| raw.file).filter(|_| given.raw.is_empty());
    let code = code.filter(|_| given.code.is_empty());
    for file in elf.chain(raw).chain(code) {
        let Some(place) = bucket.place_of(&file) else {
            let message = format!(
                "the sidecar of `{}` names a file outside of its bucket: `{}`",
                path.display(),
                file.display()
            );
            return Err(Diagnostic::new(Code::CannotOpen, message)
                .help("put the program beside the trace, or give it with -e")
                .into());
        };
        bucket.need(&place)?;
    }
    Ok(copy)
}

/// A bucket, and the folder with the copies.
struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// `s3://NAME`
    url: String,
    folder: PathBuf,
    /// For each copy, which object it is of.
    about: PathBuf,
}

impl Bucket {
    fn of(path: &Path) -> Result<Bucket, Error> {
        let name = path.display().to_string();
        let url = Url::parse(&name).map_err(|error| cannot_read(&name, &error))?;
        let store = store::open(&url).map_err(|error| cannot_read(&name, &error))?;
        let url = format!("s3://{}", url.host_str().unwrap_or_default());
        let endpoint = std::env::var("AWS_ENDPOINT").unwrap_or_default();
        let digest = Digest::of(format!("{endpoint} {url}").as_bytes()).to_string();
        let root = Cache::root().unwrap_or_else(|| std::env::temp_dir().join("hartrace"));
        let root = root
            .join("objects")
            .join(digest.get(..16).unwrap_or(&digest));
        Ok(Bucket {
            store,
            url,
            folder: root.join("files"),
            about: root.join("about"),
        })
    }

    /// The URL of what would have its copy here.
    fn place_of(&self, copy: &Path) -> Option<PathBuf> {
        let mut parts = Vec::new();
        for part in copy.components() {
            match part {
                Component::ParentDir => drop(parts.pop()?),
                Component::CurDir => {}
                other => parts.push(other),
            }
        }
        let plain: PathBuf = parts.into_iter().collect();
        let key = plain.strip_prefix(&self.folder).ok()?;
        Some(PathBuf::from(format!("{}/{}", self.url, key.display())))
    }

    /// The copy of an object that has to be there.
    fn need(&self, path: &Path) -> Result<PathBuf, Error> {
        self.get(path)?.ok_or_else(|| {
            let message = format!(
                "cannot open `{}`: it is not in the object store",
                path.display()
            );
            Diagnostic::new(Code::CannotOpen, message).into()
        })
    }

    /// The copy of an object; `None` if there is no such object.
    fn get(&self, path: &Path) -> Result<Option<PathBuf>, Error> {
        let name = path.display().to_string();
        let key = name.strip_prefix(&self.url).unwrap_or_default();
        let key = key.trim_start_matches('/');
        let place = object_store::path::Path::parse(key);
        let place = place.map_err(|error| cannot_read(&name, &error))?;
        let about = match alone(async { self.store.head(&place).await })? {
            Ok(about) => about,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(cannot_read(&name, &error)),
        };
        let (copy, kept) = (self.folder.join(key), self.about.join(key));
        let identity = identity(&about);
        let size = fs::metadata(&copy).map(|copy| copy.len());
        let is_same = fs::read_to_string(&kept).is_ok_and(|kept| kept == identity);
        if is_same && size.is_ok_and(|size| size == about.size) {
            return Ok(Some(copy));
        }
        let done = alone(async { self.copy(&place, &copy).await })?;
        let done = done.map_err(|error| cannot_read(&name, &error));
        // Only what is whole has a name.
        done?.map_err(|error| cannot_write(&copy, &error))?;
        write(&kept, identity.as_bytes()).map_err(|error| cannot_write(&kept, &error))?;
        Ok(Some(copy))
    }

    /// Copies an object. Others may do the same at the same time.
    async fn copy(
        &self,
        place: &object_store::path::Path,
        copy: &Path,
    ) -> object_store::Result<std::io::Result<()>> {
        let mut parts = self.store.get(place).await?.into_stream();
        let mut file = match new_file(copy) {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        while let Some(part) = parts.next().await {
            if let Err(error) = file.write_all(&part?) {
                return Ok(Err(error));
            }
        }
        Ok(file.persist(copy).map(drop).map_err(|error| error.error))
    }
}

/// What changes with an object.
fn identity(about: &ObjectMeta) -> String {
    let tag = about.e_tag.as_deref().unwrap_or_default();
    let version = about.version.as_deref().unwrap_or_default();
    format!("{tag} {version} {}", about.last_modified)
}

fn new_file(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    NamedTempFile::new_in(folder)
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = new_file(path)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    let message = format!("cannot write the copy `{}`: {error}", path.display());
    Diagnostic::new(Code::CannotWrite, message)
        .help("set XDG_CACHE_HOME to a folder with more room")
        .into()
}

/// Waits for something, on a thread of its own: the callers' may belong to any runtime or to none.
fn alone<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, Error> {
    let no_thread = |error: &dyn std::fmt::Display| -> Error {
        let message = format!("cannot start threads: {error}");
        Diagnostic::new(Code::HostMemory, message).into()
    };
    // A runtime must not end on a thread of another one.
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Ok(runtime.map_err(|error| no_thread(&error))?.block_on(work))
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, wait);
        match thread.map_err(|error| no_thread(&error))?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
