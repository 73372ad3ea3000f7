//! CRC-32, the one of zlib and Ethernet.

/// The polynomial, lowest bit first.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// For each byte what it does to the checksum, and what it does with one to
/// seven bytes after it.
static TABLES: [[u32; 256]; 8] = tables();

#[allow(clippy::indexing_slicing)] // constant indices, checked at compile time
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[behind - 1][byte];
            tables[behind][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        behind += 1;
    }
    tables
}

/// The CRC-32 of some bytes.
///
/// ```
/// assert_eq!(hartrace_tandem::container::crc32(b"123456789"), 0xcbf4_3926);
/// ```
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word) ^ u64::from(crc);
        // The first byte has seven after it.
        let bytes = word.to_le_bytes().into_iter();
        crc = bytes
            .zip(TABLES.iter().rev())
            .fold(0, |crc, (byte, table)| crc ^ look(table, byte));
    }
    let [table, ..] = &TABLES;
    for byte in rest {
        crc = crc >> 8 ^ look(table, crc as u8 ^ byte);
    }
    !crc
}

#[inline(always)]
fn look(table: &[u32; 256], byte: u8) -> u32 {
    // A byte cannot miss.
    #[allow(clippy::indexing_slicing)]
    table[usize::from(byte)]
}
