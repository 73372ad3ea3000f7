//! A block device (Virtual I/O Device 1.2, 5.2). Its sectors are the host's.

use super::queue::{Broken, Chain};
use crate::devices::Outside;
use crate::host::GuestMemory;

/// Bytes in a sector.
pub(super) const SECTOR: u64 = 512;

/// Feature bits (5.2.3).
const SIZE_MAX: u64 = 1 << 1;
const SEG_MAX: u64 = 1 << 2;
const READ_ONLY: u64 = 1 << 5;
const BLOCK_SIZE: u64 = 1 << 6;
const FLUSH: u64 = 1 << 9;

/// Most bytes in a buffer, and most buffers of a request besides its header and its
/// status: 1 MiB together.
const SEGMENT_SIZE: u32 = 4096;
const SEGMENTS: u32 = 254;

/// Types of requests (5.2.6).
const IN: u32 = 0;
const OUT: u32 = 1;
const SYNC: u32 = 4;
const GET_ID: u32 = 8;

/// What came of a request.
const OK: u8 = 0;
const IO_ERROR: u8 = 1;
const UNSUPPORTED: u8 = 2;

/// Which of the host's disks, and what it is like.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) disk: usize,
    pub(super) sectors: u64,
    pub(super) read_only: bool,
}

impl Block {
    pub(super) fn features(&self) -> u64 {
        let read_only = if self.read_only { READ_ONLY } else { 0 };
        SIZE_MAX | SEG_MAX | BLOCK_SIZE | FLUSH | read_only
    }

    /// The configuration space (5.2.4).
    pub(super) fn config(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        let fields = [
            self.sectors as u32,
            (self.sectors >> 32) as u32,
            SEGMENT_SIZE,
            SEGMENTS,
            // No geometry.
            0,
            SECTOR as u32,
        ];
        for (place, field) in bytes.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Serves one request: a header, data, and a byte for what came of it.
    pub(super) fn serve(
        &self,
        chain: &mut Chain,
        memory: &mut dyn GuestMemory,
        outside: &mut dyn Outside,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let mut header = [0; 16];
        chain.read(memory, &mut header)?;
        let header = u128::from_le_bytes(header);
        let (kind, sector) = (header as u32, (header >> 64) as u64);
        // Without a place for it nobody learns of the outcome.
        let room = chain.writable().checked_sub(1).ok_or(Broken)?;
        let status = match kind {
            IN => {
                let done = self.range(sector, room).is_some_and(|from| {
                    buffer.clear();
                    buffer.resize(room as usize, 0);
                    outside.read_disk(self.disk, from, buffer)
                });
                match done {
                    true => {
                        chain.write(memory, buffer)?;
                        OK
                    }
                    false => IO_ERROR,
                }
            }
            OUT => {
                let len = chain.readable();
                buffer.clear();
                buffer.resize(len as usize, 0);
                chain.read(memory, buffer)?;
                let range = self.range(sector, len).filter(|_| !self.read_only);
                match range.is_some_and(|to| outside.write_disk(self.disk, to, buffer)) {
                    true => OK,
                    false => IO_ERROR,
                }
            }
            SYNC => match outside.flush_disk(self.disk) {
                true => OK,
                false => IO_ERROR,
            },
            GET_ID => {
                let name = format!("hartrace{}", self.disk);
                let mut id = [0; 20];
                id.iter_mut()
                    .zip(name.bytes())
                    .for_each(|(to, byte)| *to = byte);
                let len = room.min(20) as usize;
                chain.write(memory, id.get(..len).unwrap_or_default())?;
                OK
            }
            _ => UNSUPPORTED,
        };
        // The status is the last byte.
        chain.skip_writable(chain.writable() - 1)?;
        chain.write(memory, &[status])
    }

    /// The offset of sectors, if there are so many.
    fn range(&self, sector: u64, len: u64) -> Option<u64> {
        let count = len / SECTOR;
        let end = sector.checked_add(count)?;
        let whole = len.is_multiple_of(SECTOR);
        (whole && end <= self.sectors).then(|| sector * SECTOR)
    }
}
