//! The handle of an encoder, in safe Rust.

use crate::handle::Handle;
use crate::types::*;
use crate::{describe, settings};
use hartrace_capture::trace::{BlockEncoder, Format};
use hartrace_cosim::encoder;
use hartrace_flow::{Context, Ctype, HartId, Ingress, Mode, Trigger};
use hartrace_isa::Itype;

/// Harts that one encoder takes.
const MOST_HARTS: u32 = 1024;

/// A trace being encoded.
pub struct Encode {
    /// The encoder, or why there is none.
    pub handle: Handle<BlockEncoder>,
    /// Bytes that have been taken, from the first that wait.
    taken: usize,
}

/// What an encoder is made of, with its pointers read.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodeSetup<'a> {
    /// As in the header.
    pub format: u32,
    /// Settings.
    pub config: Option<&'a str>,
    /// A file with settings.
    pub config_file: Option<&'a str>,
}

impl EncodeSetup<'_> {
    fn build(&self) -> Result<BlockEncoder, String> {
        let format = match self.format {
            HARTRACE_FORMAT_CONFIG => None,
            HARTRACE_FORMAT_ETRACE => Some(Format::Etrace),
            HARTRACE_FORMAT_NTRACE => Some(Format::Ntrace),
            other => return Err(format!("there is no format {other}")),
        };
        encoder(settings(self.config_file, self.config)?, format).map_err(describe)
    }
}

impl Encode {
    /// An encoder, or one that only knows why it cannot encode anything.
    #[must_use]
    pub fn new(setup: &EncodeSetup<'_>) -> Encode {
        Encode {
            handle: Handle::new(setup.build()),
            taken: 0,
        }
    }

    /// A handle that is used no more, because of a fault in the library.
    #[must_use]
    pub fn poisoned() -> Encode {
        Encode {
            handle: Handle::poisoned(),
            taken: 0,
        }
    }

    /// A block of the port.
    pub fn block(&mut self, block: &Block) -> Status {
        let encoder = match self.handle.get_mut() {
            Ok(encoder) => encoder,
            Err(status) => return status,
        };
        let Some(ingress) = ingress(block) else {
            let why = "a block with an itype, priv, ctype or hart that there is not";
            return self.handle.say(HARTRACE_ARGUMENT, why);
        };
        encoder.block(HartId(block.hart), &ingress);
        HARTRACE_OK
    }

    /// No block follows.
    pub fn finish(&mut self) -> Status {
        if let Ok(encoder) = self.handle.get_mut() {
            encoder.finish();
        }
        self.handle.status()
    }

    /// How many bytes wait.
    #[must_use]
    pub fn pending(&mut self) -> usize {
        let taken = self.taken;
        let encoder = self.handle.get_mut();
        encoder.map_or(0, |encoder| encoder.bytes().len() - taken)
    }

    /// Takes as many bytes as there is room for.
    pub fn take(&mut self, room: &mut [u8]) -> usize {
        let Ok(encoder) = self.handle.get_mut() else {
            return 0;
        };
        let bytes = encoder.bytes();
        let waiting = bytes.get(self.taken..).unwrap_or_default();
        let count = waiting.len().min(room.len());
        for (to, from) in room.iter_mut().zip(waiting) {
            *to = *from;
        }
        self.taken += count;
        if self.taken == bytes.len() {
            bytes.clear();
            self.taken = 0;
        }
        count
    }
}

/// The block as the encoder knows it.
fn ingress(block: &Block) -> Option<Ingress> {
    if block.hart >= MOST_HARTS {
        return None;
    }
    Some(Ingress {
        itype: Itype::from_code(block.itype)?,
        iretire: block.iretire,
        ilastsize: Some(block.ilastsize).filter(|&size| size < 3)?,
        iaddr: block.iaddr,
        cause: block.cause,
        tval: block.tval,
        mode: Mode::from_code(block.r#priv)?,
        context: Context(block.context),
        ctype: Ctype::from_code(block.ctype)?,
        sijump: block.sijump != 0,
        time: block.time,
        trigger: Trigger::from_bits(block.trigger),
        halted: block.halted != 0,
        reset: block.reset != 0,
        power_down: block.power_down != 0,
        impdef: block.impdef,
        external: block.external,
        ..Ingress::default()
    })
}
