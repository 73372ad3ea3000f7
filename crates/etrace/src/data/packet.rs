//! One packet as a value.

use super::{DataLayout, read, write};
use crate::packet::bits::Reader;
use crate::{Fault, PacketName, Payload};

/// One packet of data trace. `size` is log2 of the bytes of a value; `data`,
/// `operand` and `address` are the fields as sent, extended by their sign and cut
/// to the size of a value, or to `daddress_width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPacket {
    /// A unified load, or a store (tables 7.1 to 7.3).
    Transfer {
        /// One of several accesses of an instruction; only told with
        /// [`DataLayout::mmacas`].
        multiple: bool,
        /// A store.
        store: bool,
        /// `address` is shifted right by `size`.
        aligned: bool,
        /// log2 of the size.
        size: u8,
        /// `diff`, in the codes of packets with this content.
        diff: u8,
        /// `data`; `None` in packets without.
        data: Option<u64>,
        /// `address`; `None` in packets without.
        address: Option<u64>,
    },
    /// The request of a split load (table 7.4).
    LoadRequest {
        /// As in [`DataPacket::Transfer`].
        multiple: bool,
        /// `address` is shifted right by `size`.
        aligned: bool,
        /// log2 of the size.
        size: u8,
        /// Which response belongs to it.
        lrid: u16,
        /// 0 for a full address, 1 for a difference.
        diff: u8,
        /// `address`.
        address: u64,
    },
    /// The response to a split load (table 7.5); with [`DataLayout::mmacas`] also to a
    /// split atomic.
    LoadResponse {
        /// log2 of the size.
        size: u8,
        /// Which request it answers.
        lrid: u16,
        /// 0 error, 1 exclusive or, 2 full, 3 difference.
        resp: u8,
        /// `data`; 0 for an error.
        data: u64,
    },
    /// A unified atomic (tables 7.6 to 7.8).
    Atomic {
        /// 0 to 6: swap, add, and, or, xor, max, min; 7: a store-conditional
        /// that failed.
        subtype: u8,
        /// log2 of the size.
        size: u8,
        /// `diff`, in the codes of packets with this content.
        diff: u8,
        /// `operand`; `None` in packets without data.
        operand: Option<u64>,
        /// `data`; `None` in packets without.
        data: Option<u64>,
        /// `address`, shifted right by `size`; `None` in packets without.
        address: Option<u64>,
    },
    /// A compare-and-swap that failed; only with [`DataLayout::mmacas`].
    SwapFailure {
        /// log2 of the size.
        size: u8,
        /// `diff`, in the codes of packets with this content.
        diff: u8,
        /// `operand`; `None` in packets without data.
        operand: Option<u64>,
        /// `address`, shifted right by `size`.
        address: u64,
    },
    /// The request of a split atomic (table 7.9).
    AtomicRequest {
        /// As in [`DataPacket::Atomic`].
        subtype: u8,
        /// log2 of the size.
        size: u8,
        /// Which response belongs to it.
        lrid: u16,
        /// 0 for a full address; otherwise a difference.
        diff: u8,
        /// `operand`.
        operand: u64,
        /// `address`, shifted right by `size`.
        address: u64,
    },
    /// The response to a split atomic (table 7.10).
    AtomicResponse {
        /// Which request it answers.
        lrid: u16,
        /// As in [`DataPacket::LoadResponse`].
        resp: u8,
        /// `data`; 0 for an error.
        data: u64,
    },
    /// An access to a CSR (tables 7.11 to 7.13).
    Csr {
        /// 0 read-write, 1 read-set, 2 read-clear.
        subtype: u8,
        /// `diff`, in the codes of packets with this content.
        diff: u8,
        /// `data`; `None` in packets without.
        data: Option<u64>,
        /// `operand`; `None` for read-only CSRs, and in packets without data.
        operand: Option<u64>,
        /// The number of the CSR, or a difference.
        address: u16,
    },
}

/// Sizes of the atomics that wait for their response, by id: the width of a field
/// of the response depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// log2 of the sizes, two bits each.
    sizes: [u64; 8],
}

impl Default for Outstanding {
    /// Doublewords.
    fn default() -> Outstanding {
        Outstanding {
            sizes: [u64::MAX; 8],
        }
    }
}

impl Outstanding {
    /// Takes notice of a request.
    pub fn note(&mut self, packet: &DataPacket) {
        if let DataPacket::AtomicRequest { size, lrid, .. } = *packet {
            let (word, shift) = Outstanding::place(lrid);
            if let Some(word) = self.sizes.get_mut(word) {
                *word = *word & !(3 << shift) | u64::from(size & 3) << shift;
            }
        }
    }

    /// The size of the atomic with this id.
    pub(super) fn size(&self, lrid: u16) -> u8 {
        let (word, shift) = Outstanding::place(lrid);
        let word = self.sizes.get(word).copied().unwrap_or(u64::MAX);
        (word >> shift) as u8 & 3
    }

    const fn place(lrid: u16) -> (usize, u32) {
        let id = (lrid & 255) as u32;
        ((id / 32) as usize, id % 32 * 2)
    }
}

impl DataPacket {
    /// `format` and `subformat` with [`DataLayout::mmacas`]. Loads and stores have two
    /// bits of it, atomics and CSRs four, responses none.
    pub(super) const fn class(&self) -> (u8, u8) {
        match *self {
            DataPacket::Transfer { multiple, .. } | DataPacket::LoadRequest { multiple, .. } => {
                (multiple as u8, self.format())
            }
            DataPacket::Atomic { subtype, .. } | DataPacket::AtomicRequest { subtype, .. } => {
                (2, 8 | subtype)
            }
            DataPacket::SwapFailure { .. } => (2, 7),
            DataPacket::Csr { subtype, .. } => (2, 4 | subtype),
            DataPacket::LoadResponse { .. } | DataPacket::AtomicResponse { .. } => (3, 0),
        }
    }

    /// `format`, of packets without [`DataLayout::mmacas`].
    #[must_use]
    pub const fn format(&self) -> u8 {
        match *self {
            DataPacket::Transfer { store, aligned, .. } => (store as u8) << 1 | !aligned as u8,
            DataPacket::LoadRequest { aligned, .. } => !aligned as u8,
            DataPacket::LoadResponse { .. } => 4,
            DataPacket::Csr { .. } => 5,
            DataPacket::Atomic { .. }
            | DataPacket::AtomicRequest { .. }
            | DataPacket::SwapFailure { .. } => 6,
            DataPacket::AtomicResponse { .. } => 7,
        }
    }

    /// The same as one of several accesses of an instruction.
    pub(super) fn of_several(mut self) -> DataPacket {
        if let DataPacket::Transfer { multiple, .. } | DataPacket::LoadRequest { multiple, .. } =
            &mut self
        {
            *multiple = true;
        }
        self
    }

    /// What it is.
    #[must_use]
    pub const fn name(&self) -> PacketName {
        match *self {
            DataPacket::Transfer { .. } => PacketName::of_transfer(self.format()),
            DataPacket::LoadRequest { aligned: true, .. } => PacketName::LoadRequest,
            DataPacket::LoadRequest { .. } => PacketName::LoadRequestUnaligned,
            DataPacket::LoadResponse { .. } => PacketName::LoadResponse,
            DataPacket::Csr { .. } => PacketName::Csr,
            DataPacket::Atomic { .. } => PacketName::Atomic,
            DataPacket::AtomicRequest { .. } => PacketName::AtomicRequest,
            DataPacket::SwapFailure { .. } => PacketName::SwapFailure,
            DataPacket::AtomicResponse { .. } => PacketName::AtomicResponse,
        }
    }

    /// Reads a packet from its payload, whole or compressed as far as it may be.
    ///
    /// ```
    /// use hartrace_etrace::{DataConfig, DataPacket, Version};
    /// use hartrace_isa::Xlen;
    ///
    /// let config = DataConfig::new(Version::V2_0, Xlen::Rv64);
    /// let layout = config.layout(Version::V2_0, Xlen::Rv64);
    /// // A store of the byte 0x2a to 0x1000.
    /// let packet = DataPacket::Transfer {
    ///     multiple: false,
    ///     store: true,
    ///     aligned: true,
    ///     size: 0,
    ///     diff: 0,
    ///     data: Some(0x2a),
    ///     address: Some(0x1000),
    /// };
    /// let payload = packet.write(&layout, &Default::default());
    /// assert_eq!(payload.bytes(), [0x02, 0x15, 0x00, 0x08]);
    /// assert_eq!(DataPacket::read(payload.bytes(), &layout, &Default::default()), Ok(packet));
    /// ```
    ///
    /// # Errors
    ///
    /// Bytes that cannot be such a packet.
    pub fn read(
        payload: &[u8],
        layout: &DataLayout,
        outstanding: &Outstanding,
    ) -> Result<DataPacket, Fault> {
        let mut fields = Reader::new(payload).ok_or(Fault::EmptyPacket)?;
        let packet = read::read(&mut fields, layout, outstanding)?;
        match fields.is_end() {
            true => Ok(packet),
            false => Err(Fault::ExtraBits),
        }
    }

    /// The payload of the packet, as short as it can be. Fields that the layout has
    /// and the packet does not are 0.
    #[must_use]
    #[inline]
    pub fn write(&self, layout: &DataLayout, outstanding: &Outstanding) -> Payload {
        write::write(self, layout, outstanding).compressed()
    }

    /// Bits of all its fields, before anything is compressed away at its end.
    #[must_use]
    pub fn bits(&self, layout: &DataLayout, outstanding: &Outstanding) -> u32 {
        write::write(self, layout, outstanding).len()
    }
}
