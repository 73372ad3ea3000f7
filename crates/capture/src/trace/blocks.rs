//! Blocks of an ingress port to a trace: no program is needed, and no step is made of
//! them.

use super::{Settings, SettingsError};
use hartrace_etrace as etrace;
use hartrace_flow::encode::Counters;
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{DataIngress, HartId, Ingress, IngressSink};
use hartrace_ntrace as ntrace;

/// Encodes the blocks of an ingress port, of one hart or several. The bytes wait until
/// they are taken.
#[derive(Debug)]
pub struct BlockEncoder(Inner);

#[derive(Debug)]
enum Inner {
    Ntrace(Box<ntrace::Encoder<Vec<u8>>>),
    Etrace(Box<etrace::Encoder<Vec<u8>>>),
}

impl BlockEncoder {
    /// An encoder with these settings, which traces what the filters let through; `None`
    /// for a tandem trace, which blocks say too little for.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(
        settings: &Settings,
        filter: &FilterConfig,
    ) -> Result<Option<BlockEncoder>, SettingsError> {
        Ok(Some(BlockEncoder(match settings {
            Settings::Ntrace(config) => {
                let encoder = ntrace::Encoder::new(config.clone(), Vec::new())?;
                Inner::Ntrace(Box::new(encoder.with_filter(filter)))
            }
            Settings::Etrace(config) => {
                let encoder = etrace::Encoder::new(config.clone(), Vec::new())?;
                Inner::Etrace(Box::new(encoder.with_filter(filter)))
            }
            Settings::Tandem(_) => return Ok(None),
        })))
    }

    /// The next block of a hart.
    pub fn block(&mut self, hart: HartId, block: &Ingress) {
        match &mut self.0 {
            Inner::Ntrace(encoder) => encoder.ingress(hart, block),
            Inner::Etrace(encoder) => encoder.ingress(hart, block),
        }
    }

    /// A data access of a hart, after the block its instruction retired in.
    pub fn data(&mut self, hart: HartId, access: &DataIngress) {
        match &mut self.0 {
            Inner::Ntrace(encoder) => encoder.data(hart, access),
            Inner::Etrace(encoder) => encoder.data(hart, access),
        }
    }

    /// No block follows.
    pub fn finish(&mut self) {
        match &mut self.0 {
            Inner::Ntrace(encoder) => encoder.finish(),
            Inner::Etrace(encoder) => encoder.finish(),
        }
    }

    /// The bytes that wait; a caller takes those that it wants out.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        match &mut self.0 {
            Inner::Ntrace(encoder) => encoder.sink_mut(),
            Inner::Etrace(encoder) => encoder.sink_mut(),
        }
    }

    /// What all harts have sent and lost.
    #[must_use]
    pub fn counters(&self) -> Counters {
        match &self.0 {
            Inner::Ntrace(encoder) => encoder.total(),
            Inner::Etrace(encoder) => encoder.total(),
        }
    }
}
