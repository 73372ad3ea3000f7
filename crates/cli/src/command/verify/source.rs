//! Where a trace comes from, and whose it is.

use crate::args::Verify;
use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::talk::{Talk, interrupted};
use crate::traces::bad_container;
use hartrace_capture::detect::HEAD;
use hartrace_capture::input::{self, Address, Arrival, Input, Live};
use hartrace_capture::trace::Streams;
use hartrace_flow::HartId;
use hartrace_tandem::container::{MAGIC, MAX_PARAMETERS, Parameters};
use std::path::Path;
use std::time::Duration;

/// How often waiting looks for Ctrl-C.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// Bytes in front of the parameters of a container, with their length at the
/// end of the first sixteen.
const START: usize = 20;

/// Where the trace comes from.
pub(super) enum Source {
    File(Input),
    /// Nobody knows when it comes, and it cannot be read twice. The first
    /// bytes have come.
    Live(Live, Vec<u8>),
}

impl Source {
    /// Opens the trace; waits for the first bytes of one that is on its way.
    pub(super) fn open(path: &Path, talk: &Talk) -> Result<Source, Failure> {
        let input = match Address::parse(path) {
            Some(address) if !address.is_place() => {
                return Err(Failure::Usage(
                    "a socket is tcp:HOST:PORT, tcp-listen:[HOST:]PORT, unix:PATH or \
                     unix-listen:PATH, with a PORT up to 65535",
                ));
            }
            Some(address) => Input::connect(path, &address)?,
            None => Input::open(path)?,
        };
        if input.is_file() {
            return Ok(Source::File(input));
        }
        if let Some(place) = input.place() {
            talk.summary(&format!("waiting for a trace at {place}"));
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
            Source::Live(_, head) => head,
        };
        let parameters = Streams::parameters(head).transpose();
        Ok(parameters.map_err(|fault| bad_container(path, fault))?)
    }
}

/// Whether these bytes say how those behind them are read.
fn is_enough(head: &[u8]) -> bool {
    if head.len() < MAGIC.len() && MAGIC.starts_with(head) {
        return false;
    }
    let Some(Err(_)) = Streams::parameters(head) else {
        return true;
    };
    let length = head.get(12..16).and_then(|bytes| bytes.try_into().ok());
    length.is_some_and(|length| {
        let length = u32::from_le_bytes(length) as usize;
        length > MAX_PARAMETERS || head.len() >= START + length
    })
}

/// The hart whose stream is taken: the one that was asked for, or the only
/// one.
pub(super) struct Choice {
    wanted: Option<u32>,
    /// Streams have hart ids.
    contained: bool,
    seen: Vec<u32>,
}

impl Choice {
    pub(super) fn new(args: &Verify, contained: bool) -> Choice {
        Choice {
            wanted: args.hart,
            contained,
            seen: Vec::new(),
        }
    }

    /// Whether the bytes of a hart are wanted.
    pub(super) fn takes(&mut self, hart: HartId, path: &Path) -> Result<bool, Failure> {
        if !self.contained {
            return Ok(true);
        }
        if !self.seen.contains(&hart.0) {
            self.seen.push(hart.0);
        }
        match self.wanted {
            Some(wanted) => Ok(wanted == hart.0),
            None if self.seen.len() > 1 => Err(self.which(path)),
            None => Ok(true),
        }
    }

    /// Whether the hart that was asked for was there.
    pub(super) fn check(&self, path: &Path) -> Result<(), Failure> {
        match self.wanted {
            Some(wanted) if self.contained && !self.seen.contains(&wanted) => Err(self.which(path)),
            _ => Ok(()),
        }
    }

    fn which(&self, path: &Path) -> Failure {
        let mut seen = self.seen.clone();
        seen.sort_unstable();
        let seen: Vec<String> = seen.iter().map(u32::to_string).collect();
        let name = input::name(path);
        let message = match self.wanted {
            Some(hart) => format!("{name} has no hart {hart}"),
            None => format!("{name} has several harts, and one can be verified"),
        };
        Diagnostic::new(Code::WhichHart, message)
            .note(format!("it has: {}", seen.join(", ")))
            .help("choose one with --hart")
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_tandem::container::write_start;

    #[test]
    fn enough_is_known_as_soon_as_it_can_be() {
        assert!(!is_enough(&[]));
        assert!(is_enough(&[1]));
        let mut container = Vec::new();
        write_start(&Parameters::default(), &mut container).unwrap();
        for length in 1..container.len() {
            assert!(!is_enough(&container[..length]), "{length}");
        }
        assert!(is_enough(&container));
        // Wrong parameters do not get better.
        *container.last_mut().unwrap() ^= 1;
        assert!(is_enough(&container));
    }
}
