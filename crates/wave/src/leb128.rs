//! Numbers of any length, seven bits in a byte, the lowest first: LEB128, as FST, CTF and
//! Protocol Buffers have it.
//!
//! ```
//! use hartrace_wave::leb128;
//!
//! let mut bytes = Vec::new();
//! leb128::unsigned(&mut bytes, 300);
//! leb128::signed(&mut bytes, -2);
//! assert_eq!(bytes, [0xac, 0x02, 0x7e]);
//! ```

/// Appends an unsigned number.
pub fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number, in two's complement.
pub fn signed(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        let is_sign = byte & 0x40 != 0;
        if (value == 0 && !is_sign) || (value == -1 && is_sign) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}
