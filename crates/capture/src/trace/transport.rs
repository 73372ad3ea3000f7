//! Turns the contents of a trace buffer or probe into the stream that was sent.

use super::Format;
use crate::input::{Input, InputError};
use hartrace_ntrace::{PibReader, RamError};
use std::fmt;

pub use hartrace_ntrace::{Order, Pib, PibWidth, RamSink};

/// A dump of more is another file given by mistake.
const MAX_DUMP: u64 = 8 << 30;

/// How the bytes of a trace came into the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// Order of the bytes.
    pub order: Order,
    /// A circular buffer, from its start to its limit.
    pub ram: Option<RamSink>,
    /// Samples of pins; their order is part of it.
    pub pib: Option<Pib>,
}

/// Why a dump is no stream.
#[derive(Debug)]
pub enum TransportError {
    /// It could not be read.
    Input(InputError),
    /// It does not fit the registers of the buffer.
    Ram(RamError),
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportError::Input(error) => error.fmt(f),
            TransportError::Ram(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TransportError {}

impl From<InputError> for TransportError {
    fn from(error: InputError) -> TransportError {
        TransportError::Input(error)
    }
}

impl Transport {
    /// The stream in a file. A plain one is not touched; another is read at
    /// once. In a buffer that wrapped, N-Trace begins with a whole message; so
    /// does what may be N-Trace.
    ///
    /// # Errors
    ///
    /// A failing read, and a dump that is not as the registers say.
    pub fn open(&self, input: Input, format: Option<Format>) -> Result<Input, TransportError> {
        if *self == Transport::default() {
            return Ok(input);
        }
        let path = input.path().to_path_buf();
        let mut bytes = input.read_all(MAX_DUMP)?;
        if let Some(pib) = self.pib {
            let pib = Pib {
                order: self.order,
                ..pib
            };
            let mut reader = PibReader::new(pib);
            let mut found = Vec::new();
            reader.feed(&bytes, &mut |byte| found.push(byte));
            reader.finish(&mut |byte| found.push(byte));
            return Ok(Input::of(&path, found));
        }
        self.order.turn(&mut bytes);
        if let Some(ram) = self.ram {
            // The rest of a message at the start is no damage.
            let buffer = ram.unwrap(&bytes).map_err(TransportError::Ram)?;
            bytes = match format {
                None | Some(Format::Ntrace) => buffer.whole().concat(),
                // Only N-Trace shows where a message starts.
                Some(_) => [buffer.older, buffer.newer].concat(),
            };
        }
        Ok(Input::of(&path, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const MESSAGES: [u8; 8] = [0x0c, 0x07, 0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff];

    fn opened(transport: &Transport, bytes: &[u8]) -> Result<Vec<u8>, TransportError> {
        let input = Input::of(Path::new("t"), bytes.to_vec());
        Ok(transport.open(input, None)?.read_all(1 << 20)?)
    }

    #[test]
    fn plain_and_turned() {
        let mut transport = Transport::default();
        assert_eq!(opened(&transport, &MESSAGES).unwrap(), MESSAGES);
        transport.order = Order::Swapped32;
        let mut turned = MESSAGES;
        Order::Swapped32.turn(&mut turned);
        assert_eq!(opened(&transport, &turned).unwrap(), MESSAGES);
    }

    #[test]
    fn a_buffer_that_wrapped_starts_with_a_whole_message() {
        let ram = Some(RamSink::from_registers(0x100, 0x104, 0x105));
        let transport = Transport {
            ram,
            ..Transport::default()
        };
        let dump = [0x0c, 0x07, 0x10, 0x05, 0x07, 0x0c, 0x0c, 0x07];
        let stream = [0x0c, 0x0c, 0x07, 0x0c, 0x07, 0x10, 0x05];
        assert_eq!(opened(&transport, &dump).unwrap(), stream);
        let error = opened(&transport, &dump[1..]).unwrap_err();
        assert!(error.to_string().contains("8 bytes"), "{error}");
    }

    #[test]
    fn pins_of_eight_bits_are_bytes() {
        let transport = Transport {
            pib: Some(Pib::new(PibWidth::Eight)),
            ..Transport::default()
        };
        assert_eq!(opened(&transport, &MESSAGES).unwrap(), MESSAGES);
    }
}
