//! Moves tandem streams, unchanged, into a container or out of one.

use super::{
    ContainerFault, ContainerWriter, Groups, Put, Settings, StreamPiece, Streams, WriteError,
};
use crate::input::{Input, InputError};
use hartrace_flow::HartId;
use hartrace_isa::Isa;
use hartrace_tandem::Config;
use hartrace_tandem::container::Parameters;

/// It does not fail.
enum Never {}

/// The harts whose tandem streams are in a file, in the order of their
/// appearance.
///
/// # Errors
///
/// A failing read.
pub fn harts_in(input: Input) -> Result<Vec<HartId>, InputError> {
    let mut harts = Vec::new();
    let mut streams = Streams::default();
    input.chunks(|chunk| {
        streams.feed(chunk, |piece| {
            if let StreamPiece::Bytes(hart, _) = piece
                && !harts.contains(&hart)
            {
                harts.push(hart);
            }
            Ok::<(), InputError>(())
        })
    })?;
    Ok(harts)
}

/// What was copied.
#[derive(Clone, Debug, Default)]
pub struct Copied {
    /// Bytes of the streams.
    pub bytes: u64,
    /// Harts that appeared.
    pub harts: Vec<HartId>,
    /// Places where the old container cannot be used.
    pub lost: u64,
    /// The first of them: its offset, and what is wrong.
    pub first: Option<(u64, ContainerFault)>,
}

/// Copies the streams of tandem traces; the groups stay as they are.
pub struct Repack<'a> {
    streams: Streams,
    only: Option<HartId>,
    /// There is room for one hart.
    single: bool,
    out: Out<'a>,
    /// What was copied so far.
    pub copied: Copied,
}

/// What takes the bytes of each hart.
type PutOf<'a> = Box<dyn FnMut(HartId, &[u8]) + 'a>;

enum Out<'a> {
    Plain(PutOf<'a>),
    Container {
        writer: ContainerWriter<Put<'a>>,
        config: Box<Config>,
        harts: Vec<(HartId, Groups)>,
    },
}

impl<'a> Repack<'a> {
    /// The plain stream of each hart, or of `only` one, to `put`. With `single`
    /// nothing more comes when a second hart appears.
    pub fn plain(
        only: Option<HartId>,
        single: bool,
        put: impl FnMut(HartId, &[u8]) + 'a,
    ) -> Repack<'a> {
        Repack::new(only, single, Out::Plain(Box::new(put)))
    }

    /// All streams, or that of `only` one hart, to a container; `put` takes its
    /// bytes. `None` for settings of another format.
    ///
    /// # Errors
    ///
    /// Settings that are too long for a container.
    pub fn container(
        settings: &Settings,
        isa: Option<Isa>,
        compress: bool,
        only: Option<HartId>,
        put: Put<'a>,
    ) -> Result<Option<Repack<'a>>, WriteError> {
        let Settings::Tandem(config) = settings else {
            return Ok(None);
        };
        let parameters = Parameters {
            config: config.as_ref().clone(),
            isa: isa.map(|isa| isa.to_string()),
        };
        let writer = ContainerWriter::new(&parameters, compress, put);
        let out = Out::Container {
            writer: writer.map_err(WriteError::Parameters)?,
            config: config.clone(),
            harts: Vec::new(),
        };
        Ok(Some(Repack::new(only, false, out)))
    }

    fn new(only: Option<HartId>, single: bool, out: Out<'a>) -> Repack<'a> {
        Repack {
            streams: Streams::default(),
            only,
            single: single && only.is_none(),
            out,
            copied: Copied::default(),
        }
    }

    /// Whether there are several harts, and room for one.
    #[must_use]
    pub fn clashes(&self) -> bool {
        self.single && self.copied.harts.len() > 1
    }

    /// The next bytes of the file.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut streams = std::mem::take(&mut self.streams);
        let _ = streams.feed(chunk, |piece| {
            self.piece(piece);
            Ok::<(), Never>(())
        });
        self.streams = streams;
    }

    /// The file ends; gives what was copied.
    pub fn finish(mut self) -> Copied {
        let mut streams = std::mem::take(&mut self.streams);
        let _ = streams.finish(|piece| {
            self.piece(piece);
            Ok::<(), Never>(())
        });
        if let Out::Container { writer, harts, .. } = &mut self.out {
            for (hart, groups) in harts {
                let _ = groups.finish(|_, bytes, _| {
                    writer.put(*hart, bytes);
                    Ok::<(), Never>(())
                });
            }
            writer.finish();
        }
        self.copied
    }

    fn piece(&mut self, piece: StreamPiece<'_>) {
        let (hart, bytes) = match piece {
            StreamPiece::Lost(problem) => {
                self.copied.lost += 1;
                let first = (problem.at, problem.fault);
                self.copied.first.get_or_insert(first);
                return;
            }
            StreamPiece::Bytes(hart, bytes) => (hart, bytes),
        };
        if !self.copied.harts.contains(&hart) {
            self.copied.harts.push(hart);
        }
        if self.only.is_some_and(|only| only != hart) || self.clashes() {
            return;
        }
        self.copied.bytes += bytes.len() as u64;
        match &mut self.out {
            Out::Plain(put) => put(hart, bytes),
            Out::Container {
                writer,
                config,
                harts,
            } => {
                // A frame begins with a group.
                if let Some(groups) = groups_of(harts, hart, config) {
                    let _ = groups.feed(bytes, |_, bytes, _| {
                        writer.put(hart, bytes);
                        Ok::<(), Never>(())
                    });
                }
            }
        }
    }
}

fn groups_of<'h>(
    harts: &'h mut Vec<(HartId, Groups)>,
    hart: HartId,
    config: &Config,
) -> Option<&'h mut Groups> {
    if !harts.iter().any(|(id, _)| *id == hart) {
        harts.push((hart, Groups::new(config.clone())));
    }
    let found = harts.iter_mut().find(|(id, _)| *id == hart);
    found.map(|(_, groups)| groups)
}
