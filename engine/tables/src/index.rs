//! The index of a trace: the stretches between its synchronisation points, what each has,
//! and the state with which a reader starts in it.

use crate::zone::Zone;
use hartrace_flow::{Checkpoint, Packer, Unpacker};
use serde::{Deserialize, Serialize};

/// The first bytes of an index.
const MAGIC: &[u8] = b"hartrace table index 2\n";

/// A place in a trace where a reader can start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Plain", into = "Plain")]
pub struct Stop {
    /// Where a decoder starts, and where its state is right.
    pub checkpoint: Checkpoint,
    /// What rows depend on that comes before: open calls, times, modes.
    pub state: Vec<u8>,
}

/// A [`Stop`] as it is sent to another process.
#[derive(Serialize, Deserialize)]
struct Plain {
    offset: u64,
    position: u64,
    state: Vec<u8>,
}

impl From<Plain> for Stop {
    fn from(plain: Plain) -> Stop {
        Stop {
            checkpoint: Checkpoint {
                offset: plain.offset,
                position: plain.position,
            },
            state: plain.state,
        }
    }
}

impl From<Stop> for Plain {
    fn from(stop: Stop) -> Plain {
        Plain {
            offset: stop.checkpoint.offset,
            position: stop.checkpoint.position,
            state: stop.state,
        }
    }
}

/// A part of a trace between two places where a reader can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where it starts; `None` for the start of the trace.
    pub stop: Option<Stop>,
    /// The position where the next one starts, or the size of the trace.
    pub end: u64,
    /// What it has.
    pub zones: Vec<Zone>,
}

impl Stretch {
    /// The position where it starts.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.stop
            .as_ref()
            .map_or(0, |stop| stop.checkpoint.position)
    }
}

/// The stretches of a trace, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// One at least.
    pub stretches: Vec<Stretch>,
    /// The names of functions, for the keys in [`Zone::functions`].
    pub names: Vec<String>,
}

impl Index {
    /// The key of a function's name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<u32> {
        let at = self.names.iter().position(|known| known == name)?;
        u32::try_from(at).ok()
    }

    /// As bytes, for a trace with this key.
    #[must_use]
    pub fn to_bytes(&self, key: &[u8]) -> Vec<u8> {
        let mut out = Packer::new();
        out.bytes(MAGIC);
        out.bytes(key);
        out.number(self.names.len() as u64);
        self.names
            .iter()
            .for_each(|name| out.bytes(name.as_bytes()));
        out.number(self.stretches.len() as u64);
        for stretch in &self.stretches {
            out.number(stretch.stop.is_some().into());
            if let Some(Stop { checkpoint, state }) = &stretch.stop {
                out.number(checkpoint.offset);
                out.number(checkpoint.position);
                out.bytes(state);
            }
            out.number(stretch.end);
            out.number(stretch.zones.len() as u64);
            stretch.zones.iter().for_each(|zone| zone.save(&mut out));
        }
        out.finish()
    }

    /// Reads an index; `None` if it is that of another trace, or damaged.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], key: &[u8]) -> Option<Index> {
        let mut saved = Unpacker::new(bytes);
        if saved.bytes()? != MAGIC || saved.bytes()? != key {
            return None;
        }
        let mut index = Index::default();
        for _ in 0..saved.count()? {
            let name = str::from_utf8(saved.bytes()?).ok()?;
            index.names.push(name.to_owned());
        }
        for _ in 0..saved.count()? {
            let stop = match saved.number()? {
                0 => None,
                _ => Some(Stop {
                    checkpoint: Checkpoint {
                        offset: saved.number()?,
                        position: saved.number()?,
                    },
                    state: saved.bytes()?.to_vec(),
                }),
            };
            let end = saved.number()?;
            let mut zones = Vec::new();
            for _ in 0..saved.count()? {
                zones.push(Zone::restore(&mut saved)?);
            }
            index.stretches.push(Stretch { stop, end, zones });
        }
        saved.is_empty().then_some(index)
    }
}
