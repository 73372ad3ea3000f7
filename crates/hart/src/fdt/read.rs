//! Reads device trees that others have made (Devicetree Specification 0.4, chapter
//! 5), and puts our own `chosen` into them. The bytes may be anything.

use core::fmt;

use super::virt::Chosen;
use super::{BEGIN_NODE, END, END_NODE, HEADER_SIZE, MAGIC, PROPERTY, Tree, VERSION};

/// A token that has no meaning.
const NOP: u32 = 4;

/// The largest tree: what kernels map of it.
const LARGEST: usize = 2 << 20;

/// The deepest tree.
const DEEPEST: usize = 64;

/// Why bytes are not a device tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// Not the magic number.
    NotTree,
    /// A version that cannot be read.
    Version(u32),
    /// Larger than 2 MiB.
    TooLarge,
    /// A part ends after the file does.
    Truncated,
    /// What is at this offset into the file has no meaning.
    Damaged(usize),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeError::NotTree => f.write_str("not a flattened device tree"),
            TreeError::Version(version) => {
                write!(
                    f,
                    "a device tree of version {version}, which cannot be read"
                )
            }
            TreeError::TooLarge => f.write_str("larger than 2 MiB, too large for a device tree"),
            TreeError::Truncated => f.write_str("a truncated device tree"),
            TreeError::Damaged(at) => write!(f, "a damaged device tree, at offset {at:#x}"),
        }
    }
}

impl core::error::Error for TreeError {}

/// The parts of a flattened tree.
struct Reader<'a> {
    structure: &'a [u8],
    strings: &'a [u8],
    /// Where the structure is in the file.
    base: usize,
    at: usize,
}

/// A tree with the properties of `chosen` in place of its own.
pub(crate) fn with_chosen(blob: &[u8], chosen: &Chosen<'_>) -> Result<Vec<u8>, TreeError> {
    let (mut reader, reserved) = Reader::new(blob)?;
    let mut tree = Tree::new();
    tree.reserved = reserved.to_vec();
    // Properties that are copied keep their names where they are.
    tree.strings = reader.strings.to_vec();
    // Nodes that are open, and whether one of them is ours to change.
    let (mut depth, mut inside) = (0usize, false);
    let (mut met, mut roots) = (false, 0);
    loop {
        let token = reader.word()?;
        match token {
            NOP => {}
            BEGIN_NODE => {
                let name = reader.name()?;
                roots += usize::from(depth == 0);
                if roots > 1 || depth >= DEEPEST {
                    return Err(reader.damaged());
                }
                tree.begin_bytes(name);
                depth += 1;
                inside = depth == 2 && name == b"chosen" && !met;
                if inside {
                    met = true;
                    chosen.write(&mut tree);
                }
            }
            END_NODE if depth > 0 => {
                if depth == 1 && !met && !chosen.is_empty() {
                    tree.begin("chosen");
                    chosen.write(&mut tree);
                    tree.end();
                }
                tree.end();
                depth -= 1;
                inside = false;
            }
            PROPERTY if depth > 0 => {
                let (offset, name, value) = reader.property()?;
                if !(inside && chosen.replaces(name)) {
                    tree.property_at(offset, value);
                }
            }
            END if depth == 0 && roots == 1 => return Ok(tree.finish()),
            _ => return Err(reader.damaged()),
        }
    }
}

impl<'a> Reader<'a> {
    /// The reader, and the list of reserved regions with its end.
    fn new(blob: &'a [u8]) -> Result<(Reader<'a>, &'a [u8]), TreeError> {
        let mut header = [0u32; 10];
        for (word, bytes) in header.iter_mut().zip(blob.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |sum, b| sum << 8 | u32::from(*b));
        }
        let [
            magic,
            size,
            structure,
            strings,
            reserved,
            version,
            oldest,
            _,
            strings_size,
            structure_size,
        ] = header;
        if magic != MAGIC {
            return Err(TreeError::NotTree);
        }
        if blob.len() < HEADER_SIZE as usize || blob.len() < size as usize {
            return Err(TreeError::Truncated);
        }
        // Version 17 says how large the structure is.
        if version < VERSION || oldest > VERSION {
            return Err(TreeError::Version(version));
        }
        if size as usize > LARGEST {
            return Err(TreeError::TooLarge);
        }
        let part = |from: u32, len: u32| {
            let end = (from as usize).checked_add(len as usize);
            let part = end.and_then(|end| blob.get(from as usize..end));
            part.ok_or(TreeError::Truncated)
        };
        let list = part(reserved, size.saturating_sub(reserved))?;
        let mut entries = list.chunks_exact(16);
        let last = entries.position(|entry| entry.iter().all(|byte| *byte == 0));
        let count = last.ok_or(TreeError::Truncated)? + 1;
        let reader = Reader {
            structure: part(structure, structure_size)?,
            strings: part(strings, strings_size)?,
            base: structure as usize,
            at: 0,
        };
        Ok((reader, list.get(..16 * count).unwrap_or_default()))
    }

    fn damaged(&self) -> TreeError {
        TreeError::Damaged(self.base + self.at.saturating_sub(4))
    }

    fn word(&mut self) -> Result<u32, TreeError> {
        let bytes = self.bytes(4)?;
        Ok(bytes.iter().fold(0, |sum, b| sum << 8 | u32::from(*b)))
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], TreeError> {
        let end = self.at.checked_add(len).ok_or(TreeError::Truncated)?;
        let bytes = self.structure.get(self.at..end);
        self.at = end;
        bytes.ok_or(TreeError::Truncated)
    }

    /// The name of a node.
    fn name(&mut self) -> Result<&'a [u8], TreeError> {
        let rest = self.structure.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|byte| *byte == 0);
        let name = self.bytes(len.ok_or(TreeError::Truncated)?)?;
        self.at = (self.at + 1).next_multiple_of(4);
        Ok(name)
    }

    /// A property: where its name is, its name, its value.
    fn property(&mut self) -> Result<(u32, &'a [u8], &'a [u8]), TreeError> {
        let (len, offset) = (self.word()?, self.word()?);
        let value = self.bytes(len as usize)?;
        self.at = self.at.next_multiple_of(4);
        let text = self.strings.get(offset as usize..).unwrap_or_default();
        // No name is longer than 31 characters; those of vendors may be.
        let text = text.get(..256).unwrap_or(text);
        let end = text.iter().position(|byte| *byte == 0);
        let name = end
            .and_then(|end| text.get(..end))
            .ok_or_else(|| self.damaged())?;
        Ok((offset, name, value))
    }
}
