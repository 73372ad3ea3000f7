//! The source of a trace: a file, standard input or a socket.

use crate::failure::Failure;
use crate::settings::chosen;
use crate::talk::{Talk, interrupted};
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{Address, Arrival, Input, Live};
use hartrace_capture::trace::Streams;
use hartrace_capture::verify::{Parameters, is_enough};
use hartrace_print::diagnostic::trace::bad_container;
use std::path::Path;
use std::time::Duration;

/// How often waiting looks for Ctrl-C.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Where the trace comes from.
pub(super) enum Source {
    File(Input),
    /// A log, which is read as a trace.
    Log(Kind, Input),
    /// It may arrive at any time, and it cannot be read twice. The first
    /// bytes have come.
    Live(Live, Vec<u8>),
}

impl Source {
    /// Opens the trace; waits for the first bytes of one that is on its way.
    pub(super) fn open(path: &Path, config: &Config, talk: &Talk) -> Result<Source, Failure> {
        let input = match Address::parse(path) {
            Some(address) if !address.is_place() => {
                return Err(Failure::Usage(
                    "write a socket as tcp:HOST:PORT, tcp-listen:[HOST:]PORT, unix:PATH or \
                     unix-listen:PATH, with a PORT up to 65535",
                ));
            }
            Some(address) => Input::connect(path, &address)?,
            None => Input::open(path)?,
        };
        if input.is_file() {
            let mut input = input;
            let kind = chosen(detect(input.peek(HEAD)?), config);
            return Ok(match kind.is_log() {
                true => Source::Log(kind, input),
                false => Source::File(input),
            });
        }
        if let Some(place) = input.place() {
            talk.summary(&format!("waiting for a connection at {place}"));
        }
        let (mut live, mut head) = (input.live(), Vec::new());
        while !is_enough(&head) && !interrupted() {
            match live.next(LOOK)? {
                Arrival::Bytes(bytes) => head.extend_from_slice(bytes),
                Arrival::Nothing => {}
                Arrival::End => break,
            }
        }
        Ok(Source::Live(live, head))
    }

    /// What a container says; `None` of a plain stream.
    pub(super) fn parameters(&mut self, path: &Path) -> Result<Option<Parameters>, Failure> {
        let head = match self {
            Source::File(input) => input.peek(HEAD)?,
            Source::Log(..) => return Ok(None),
            Source::Live(_, head) => head,
        };
        let parameters = Streams::parameters(head).transpose();
        Ok(parameters.map_err(|fault| bad_container(path, fault))?)
    }
}
