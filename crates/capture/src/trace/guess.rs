//! Guesses the settings of a trace from its bytes, if no sidecar and no
//! configuration gives them.

use super::{Settings, TraceError, given_isa};
use crate::config::Config;
use crate::detect::{Kind, detect};
use crate::input::Input;
use hartrace_etrace as etrace;
use hartrace_flow::{Image, SpaceId};
use hartrace_isa::Xlen;
use hartrace_ntrace as ntrace;
use hartrace_tandem as tandem;

/// Bytes that are looked at for a guess.
const GUESS: usize = 1 << 20;

/// What is known of the hart besides its trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The width of its registers, if it is given.
    pub xlen: Option<Xlen>,
    /// The program, if it is there.
    pub image: Option<&'a Image>,
}

impl<'a> Known<'a> {
    /// With the width of the instruction set in a configuration, unless another
    /// is known.
    pub(super) fn or_given(self, config: &Config) -> Known<'a> {
        let given = || given_isa(config).map(|isa| isa.xlen());
        Known {
            xlen: self.xlen.or_else(given),
            ..self
        }
    }
}

/// What was guessed about a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Whose settings were guessed: `N-Trace 1.0`.
    pub of: &'static str,
    /// The settings in words.
    pub text: String,
    /// Other settings that fit as well, in words.
    pub also: Vec<String>,
    /// What would make the guess better.
    pub hints: Vec<Hint>,
}

/// What would make a guess better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The program decides between the settings that fit.
    Program,
    /// The width of the registers decides between the settings that fit.
    Width,
    /// Addresses of 64 bits are assumed.
    AssumedWidth,
}

impl Settings {
    /// Changes the settings to ones that fit the bytes of `input`.
    ///
    /// # Errors
    ///
    /// A failing read, and bytes that do not look like this format.
    pub fn guess(&mut self, input: &mut Input, known: Known<'_>) -> Result<Guess, TraceError> {
        let merged = input.is_merged();
        let head = input.peek(GUESS)?;
        match self {
            Settings::Ntrace(config) => guess_ntrace(config, head),
            Settings::Etrace(config) => guess_etrace(config, (head, merged), known),
            Settings::Tandem(config) => guess_tandem(config, head, known),
        }
    }
}

fn guess_ntrace(config: &mut ntrace::Config, head: &[u8]) -> Result<Guess, TraceError> {
    let guess = ntrace::guess(head).ok_or(TraceError::NotRecognised("N-Trace"))?;
    config.src_bits = guess.src_bits;
    config.mode = guess.mode.unwrap_or(config.mode);
    config.timestamps = guess.timestamps.then(ntrace::Timestamps::default);
    Ok(Guess {
        of: "N-Trace 1.0",
        text: guess.to_string(),
        also: Vec::new(),
        hints: Vec::new(),
    })
}

fn guess_etrace(
    config: &mut etrace::Config,
    (head, merged): (&[u8], bool),
    Known { xlen, image }: Known<'_>,
) -> Result<Guess, TraceError> {
    let is_code = image.map(|image| |pc| image.fetch(SpaceId::FIRST, pc).is_some());
    let is_code = is_code.as_ref().map(|f| f as &dyn Fn(u64) -> bool);
    let guess = match detect(head) {
        Kind::EtraceCsv => etrace::guess_table(head, config.xlen, is_code),
        _ if merged => etrace::guess_in(&config.encapsulation, head, config.xlen, is_code),
        _ => etrace::guess(head, config.xlen, is_code),
    };
    let guess = guess.ok_or(TraceError::NotRecognised("E-Trace"))?;
    let mut hints = Vec::new();
    if !guess.also.is_empty() && image.is_none() {
        hints.push(Hint::Program);
    }
    if xlen.is_none() {
        hints.push(Hint::AssumedWidth);
    }
    let text = guess.to_string();
    *config = guess.config;
    Ok(Guess {
        of: "E-Trace",
        text,
        also: guess.also.into_iter().map(str::to_owned).collect(),
        hints,
    })
}

fn guess_tandem(
    config: &mut tandem::Config,
    head: &[u8],
    known: Known<'_>,
) -> Result<Guess, TraceError> {
    let guess = tandem::guess(head, config, known.xlen);
    let guess = guess.ok_or(TraceError::NotRecognised("a tandem trace"))?;
    let open = !guess.also.is_empty() && known.xlen.is_none();
    let text = guess.to_string();
    *config = guess.config;
    Ok(Guess {
        of: "the tandem trace",
        text,
        also: guess.also,
        hints: open.then_some(Hint::Width).into_iter().collect(),
    })
}
