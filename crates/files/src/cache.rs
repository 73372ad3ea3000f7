//! Files in the cache directory of the user: made again when they are missing, and deleted
//! when there are too many.

use crate::digest::Digest;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files of one kind in a cache directory, named after what they were made from.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// The end of the names.
    ending: &'static str,
    /// Bytes of all files together.
    limit: u64,
}

impl Cache {
    /// In this folder, with `ending` as the end of the names and room for so many bytes.
    #[must_use]
    pub const fn new(folder: PathBuf, ending: &'static str, limit: u64) -> Cache {
        Cache {
            folder,
            ending,
            limit,
        }
    }

    /// The folder of hartrace in the cache directory of the user; `None` without one.
    #[must_use]
    pub fn root() -> Option<PathBuf> {
        let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
        let given = folder("XDG_CACHE_HOME").map(PathBuf::from);
        let given = given.filter(|path| path.is_absolute());
        let cache = given.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".cache")))?;
        Some(cache.join("hartrace"))
    }

    /// In the cache directory of the user; `None` without one.
    #[must_use]
    pub fn of_user(ending: &'static str, limit: u64) -> Option<Cache> {
        Some(Cache::new(Cache::root()?, ending, limit))
    }

    /// The file of what has this digest.
    #[must_use]
    pub fn file(&self, key: &Digest) -> PathBuf {
        self.folder.join(format!("{key}{}", self.ending))
    }

    /// Makes the folder, if there is none. Whether that failed, writing a file tells.
    pub fn prepare(&self) {
        let _ = fs::create_dir_all(&self.folder);
    }

    /// A file is in use: it counts as new.
    pub fn note_use(path: &Path) {
        let file = fs::File::options().append(true).open(path);
        // A file that cannot be changed is deleted earlier than it could be.
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Deletes the files whose last use is longest ago, until the others fit; not `kept`.
    pub fn trim(&self, kept: &Path) {
        let mut files = self.files();
        files.sort_unstable();
        let mut bytes: u64 = files.iter().map(|file| file.2).sum();
        for (_, path, size) in files {
            if bytes <= self.limit {
                return;
            }
            // Another process may have deleted it.
            if path != kept && fs::remove_file(&path).is_ok() {
                bytes -= size;
            }
        }
    }

    /// Last use, name and size of all files. Those with other names are not ours.
    fn files(&self) -> Vec<(SystemTime, PathBuf, u64)> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let files = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            let key = name.to_str()?.strip_suffix(self.ending)?;
            let is_digest = key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let used = about.modified().ok().filter(|_| is_digest)?;
            Some((used, entry.path(), about.len()))
        });
        files.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Four files of 100 bytes, and room for 250: the two whose last use is longest ago
    /// go. What is named otherwise, and the file that was just written, stay.
    #[test]
    fn the_oldest_files_are_deleted_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("hartrace"), ".index", 250);
        cache.prepare();
        let age = |path: &Path, hours: u64| {
            let then = SystemTime::now() - Duration::from_secs(3600 * hours);
            let file = fs::File::options().append(true).open(path).unwrap();
            file.set_modified(then).unwrap();
        };
        let files: Vec<PathBuf> = (0..4u8).map(|n| cache.file(&Digest::of(&[n]))).collect();
        for (hours, path) in (1..).zip(&files) {
            fs::write(path, [0; 100]).unwrap();
            age(path, hours);
        }
        let others =
            ["notes.index", "notes.txt"].map(|name| folder.path().join("hartrace").join(name));
        for path in &others {
            fs::write(path, [0; 1000]).unwrap();
            age(path, 100);
        }
        // The oldest was just used, the next one was just written.
        Cache::note_use(&files[3]);
        cache.trim(&files[2]);
        let exist: Vec<bool> = files.iter().map(|path| path.exists()).collect();
        assert_eq!(exist, [false, false, true, true]);
        assert!(others.iter().all(|path| path.exists()));
        cache.trim(&files[2]);
        assert!(files[3].exists());
    }

    #[test]
    fn no_folder_is_an_empty_cache() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("none"), ".index", 0);
        cache.trim(Path::new("x"));
        assert!(!folder.path().join("none").exists());
    }
}
