//! The build attributes of an ELF file.

/// The ISA string in the bytes of a `.riscv.attributes` section.
#[must_use]
pub fn arch(section: &[u8]) -> Option<&str> {
    let mut rest = section.strip_prefix(b"A")?;
    while !rest.is_empty() {
        let size = u32::from_le_bytes(*rest.first_chunk()?) as usize;
        let sub = rest.get(4..size)?;
        rest = rest.get(size..)?;
        let Some(mut sub) = sub.strip_prefix(b"riscv\0") else {
            continue;
        };
        while !sub.is_empty() {
            let (tag, after) = uleb(sub)?;
            let size = u32::from_le_bytes(*after.first_chunk()?) as usize;
            let body = sub.get(..size)?.get(sub.len() - after.len() + 4..)?;
            sub = sub.get(size..)?;
            if tag == 1
                && let Some(arch) = arch_of(body)
            {
                return Some(arch);
            }
        }
    }
    None
}

fn arch_of(mut body: &[u8]) -> Option<&str> {
    while !body.is_empty() {
        let (tag, after) = uleb(body)?;
        if tag % 2 == 0 {
            body = uleb(after)?.1;
        } else {
            let end = after.iter().position(|&b| b == 0)?;
            let text = after.get(..end)?;
            if tag == 5 {
                return core::str::from_utf8(text).ok();
            }
            body = after.get(end + 1..)?;
        }
    }
    None
}

fn uleb(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (i, &b) in bytes.iter().enumerate().take(9) {
        value |= u64::from(b & 0x7f) << (7 * i);
        if b & 0x80 == 0 {
            return Some((value, bytes.get(i + 1..)?));
        }
    }
    None
}
