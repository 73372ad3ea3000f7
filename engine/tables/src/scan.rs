//! Reads traces and parts of traces into tables.

use crate::collect::{Feed, Finished, Purpose, Take, Wanted};
use crate::error::Error;
use crate::index::{Index, Stop};
use crate::recorded::Recorded;
use crate::source::{Opened, TraceSource};
use crate::table::Table;
use crate::{messages, program};
use hartrace_capture::cache::Cache;
use hartrace_capture::digest::Digest;
use hartrace_capture::output::Output;
use hartrace_capture::trace::Decoded;
use hartrace_print::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};
use std::fs;

/// Bytes of all indexes in the cache directory.
const CACHE: u64 = 1 << 30;

/// A part of a trace: from a synchronisation point, or the start, to another, or the end.
/// It can be sent to another process, which needs nothing else to read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The trace.
    pub source: TraceSource,
    /// Where it starts.
    pub from: Option<Stop>,
    /// The position where it ends.
    pub until: Option<u64>,
}

/// What was read of a whole trace.
#[derive(Clone, Debug)]
pub struct Read {
    /// What was decoded, for a verdict.
    pub decoded: Decoded,
    /// Its index, if it is wanted and the trace was read to the end.
    pub index: Option<Index>,
}

impl Opened {
    /// Gives rows of a whole trace, of all tables that are wanted, and makes its index, if it
    /// is wanted.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn read(
        &self,
        wanted: &Wanted,
        out: &mut dyn Take,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Read, Error> {
        let wanted = &self.possible(wanted);
        if let Some(projection) = wanted.of(Table::Functions)
            && program::functions(self, projection, out).is_break()
        {
            return Ok(Read::nothing());
        }
        if let Some(projection) = wanted.of(Table::Lines)
            && program::lines(self, projection, out).is_break()
        {
            return Ok(Read::nothing());
        }
        if let Some(projection) = wanted.of(Table::Messages) {
            messages::messages(self, projection, out);
        }
        let is_flow = |table: &Table| table.is_of_flow() && wanted.of(*table).is_some();
        if !Table::ALL.iter().any(is_flow) {
            if let Some(projection) = wanted.of(Table::Branches) {
                let counts = program::count_runs(self)?;
                let _ = program::branches(self, &counts, projection, out);
            }
            return Ok(Read::nothing());
        }
        let purpose = Purpose {
            timed: wanted.has_time() && self.has_time(),
            indexed: wanted.has_index(),
            counted: wanted.of(Table::Branches).is_some(),
        };
        let mut feed = Feed::new((&self.image, &self.functions), wanted, purpose, &mut *out);
        let decoded = self.decode(&mut feed, progress)?;
        let Finished {
            profile,
            stretches,
            names,
            ended,
        } = feed.finish(self.replay.size());
        if let (Some(profile), Some(projection)) = (profile, wanted.of(Table::Branches)) {
            let _ = program::branches(self, &profile.runs, projection, out);
        }
        Ok(Read {
            decoded,
            index: (!ended && wanted.has_index()).then_some(Index { stretches, names }),
        })
    }

    /// What is wanted, but for rows that such a trace cannot have: who waits for accesses
    /// looks at each run.
    fn possible(&self, wanted: &Wanted) -> Wanted {
        match self.replay.may_have_accesses() {
            true => wanted.clone(),
            false => wanted.without(Table::Accesses),
        }
    }

    fn decode(
        &self,
        feed: &mut Feed<'_, '_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Decoded, Error> {
        match &self.replay {
            Recorded::Trace(replay) if self.can_start_anywhere() => {
                let after = &mut |_: &Decoded, done| progress(done);
                let decoded = replay.decode(&self.image, None, feed, None, after);
                Ok(decoded.map_err(Diagnostic::from)?)
            }
            _ => self.events(None, feed, progress),
        }
    }

    /// Gives rows of a part of the trace, of tables that are made of events.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other; a state that cannot be read.
    pub fn read_part(
        &self,
        (from, until): (Option<&Stop>, Option<u64>),
        wanted: &Wanted,
        out: &mut dyn Take,
    ) -> Result<Decoded, Error> {
        let wanted = &self.possible(wanted);
        let purpose = Purpose {
            timed: wanted.has_time() && self.has_time(),
            ..Purpose::default()
        };
        let mut feed = Feed::new((&self.image, &self.functions), wanted, purpose, out);
        if let Some(stop) = from {
            feed.restore(stop)
                .ok_or_else(|| damaged_state(&self.name))?;
        }
        let checkpoint = from.map(|stop| stop.checkpoint);
        let decoded = match &self.replay {
            Recorded::Trace(replay) => {
                let part = replay.part(&self.image, None, (checkpoint, until), &mut feed);
                part.map_err(Diagnostic::from)?
            }
            // It has no parts.
            Recorded::Log(_) => self.events(None, &mut feed, &mut |_| ())?,
        };
        match until {
            Some(_) => feed.leave(),
            None => drop(feed.finish(self.replay.size())),
        }
        Ok(decoded)
    }

    /// The index of the trace, if it was made before. One with times serves readers that want
    /// none.
    #[must_use]
    pub fn known_index(&self, timed: bool) -> Option<Index> {
        let timed = timed && self.has_time();
        let exact = self.index_with(timed);
        exact.or_else(|| self.index_with(true).filter(|_| !timed && self.has_time()))
    }

    fn index_with(&self, timed: bool) -> Option<Index> {
        let (cache, key) = self.cache(timed)?;
        let path = cache.file(&key);
        let bytes = fs::read(&path).ok()?;
        let index = Index::from_bytes(&bytes, key.to_string().as_bytes())?;
        Cache::note_use(&path);
        Some(index)
    }

    /// Keeps the index of the trace for the next time. A cache that cannot be written is
    /// none.
    pub fn keep_index(&self, index: &Index, timed: bool) {
        let Some((cache, key)) = self.cache(timed && self.has_time()) else {
            return;
        };
        cache.prepare();
        let path = cache.file(&key);
        let bytes = index.to_bytes(key.to_string().as_bytes());
        let written =
            Output::create(&path).and_then(|out| out.write_with(|out| out.write_all(&bytes)));
        if written.is_ok() {
            cache.trim(&path);
        }
    }

    fn cache(&self, timed: bool) -> Option<(Cache, Digest)> {
        let cache = Cache::of_user(".tables", CACHE)?;
        let key = Digest::of(format!("{} {timed}", self.digest()).as_bytes());
        Some((cache, key))
    }
}

impl Read {
    fn nothing() -> Read {
        Read {
            decoded: Decoded::default(),
            index: None,
        }
    }
}

fn damaged_state(name: &str) -> Error {
    let message = format!("the index of `{name}` is damaged");
    let code = hartrace_print::diagnostic::Code::CannotRead;
    Diagnostic::new(code, message)
        .help("delete the files *.tables in the cache directory, such as ~/.cache/hartrace")
        .into()
}
