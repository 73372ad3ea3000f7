//! The encoder model: ingress blocks in, messages out.

use alloc::vec::Vec;

use hartrace_flow::{HartId, Ingress, IngressSink};

use crate::{Config, ConfigError};

/// Takes the messages of an encoder, whole ones, in order.
pub trait Sink {
    /// The bytes of one message.
    fn message(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn message(&mut self, bytes: &[u8]) {
        (**self).message(bytes);
    }
}

/// The encoders of any number of harts, their messages in one stream.
#[derive(Debug)]
pub struct Encoder<S> {
    config: Config,
    sink: S,
}

impl<S: Sink> Encoder<S> {
    /// Encoders with these settings in front of the sink.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn new(config: Config, sink: S) -> Result<Encoder<S>, ConfigError> {
        config.validate()?;
        Ok(Encoder { config, sink })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The sink.
    pub fn into_sink(self) -> S {
        self.sink
    }
}

impl<S: Sink> IngressSink for Encoder<S> {
    fn ingress(&mut self, _hart: HartId, _block: &Ingress) {}
}
