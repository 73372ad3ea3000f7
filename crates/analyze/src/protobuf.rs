//! Messages of Protocol Buffers, written field by field.

use hartrace_wave::leb128;

/// A message that is being written.
///
/// ```
/// use hartrace_analyze::protobuf::Message;
///
/// let mut inner = Message::default();
/// inner.number(1, 300);
/// let mut outer = Message::default();
/// outer.bytes(2, inner.as_bytes());
/// assert_eq!(outer.as_bytes(), [0x12, 3, 0x08, 0xac, 0x02]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Message(pub(crate) Vec<u8>);

impl Message {
    /// What was written.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Starts again.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, value: u64) {
        leb128::unsigned(&mut self.0, value);
    }

    /// A field with a number of variable length.
    pub fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// A field with a number of 64 bits.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    /// A field with bytes, text or a message.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// A repeated field of numbers, packed.
    pub fn numbers(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}
