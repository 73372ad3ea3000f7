//! Writes GHW files as GHDL does, for tests: `std_logic` and vectors of it in one instance.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // for tests only

/// A GHW file that is being written.
#[derive(Debug)]
pub struct GhwFile {
    texts: Vec<String>,
    types: Vec<Vec<u8>>,
    hierarchy: Vec<u8>,
    /// The first signal of each variable, and its width.
    vars: Vec<(u64, u32)>,
    signals: u64,
}

/// Numbers of the first types: the index of vectors, `std_ulogic`, vectors of it.
const LOGIC: u64 = 2;
const VECTOR: u64 = 3;

const LEVELS: &str = "ux01zwlh-";

impl GhwFile {
    /// A file with one instance.
    #[must_use]
    pub fn new(instance: &str) -> GhwFile {
        let mut file = GhwFile {
            texts: Vec::new(),
            types: Vec::new(),
            hierarchy: Vec::new(),
            vars: Vec::new(),
            signals: 0,
        };
        let mut integer = vec![25];
        integer.extend(file.text("integer"));
        let mut logic = vec![23];
        logic.extend(file.text("std_ulogic"));
        logic.push(9);
        for level in LEVELS.chars() {
            logic.extend(file.text(&format!("'{}'", level.to_ascii_uppercase())));
        }
        let mut vector = vec![31];
        vector.extend(file.text("std_ulogic_vector"));
        vector.extend([LOGIC as u8, 1, 1]);
        file.types = vec![integer, logic, vector];
        let name = file.text(instance);
        file.hierarchy.push(6);
        file.hierarchy.extend(name);
        file
    }

    /// The number of a text, as it stands in the file.
    fn text(&mut self, text: &str) -> Vec<u8> {
        let at = self.texts.iter().position(|known| known == text);
        let at = at.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        });
        unsigned(at as u64 + 1)
    }

    /// Adds a variable.
    pub fn signal(&mut self, name: &str, width: u32) {
        let kind = match width {
            1 => LOGIC,
            _ => {
                let mut subtype = vec![35, 0, VECTOR as u8, 25 | 0x80];
                subtype.extend(signed(i64::from(width) - 1));
                subtype.extend(signed(0));
                self.types.push(subtype);
                self.types.len() as u64
            }
        };
        let name = self.text(name);
        self.hierarchy.push(16);
        self.hierarchy.extend(name);
        self.hierarchy.extend(unsigned(kind));
        self.vars.push((self.signals, width));
        for _ in 0..width {
            self.signals += 1;
            self.hierarchy.extend(unsigned(self.signals));
        }
    }

    fn header(&self) -> Vec<u8> {
        let mut file = b"GHDLwave\n".to_vec();
        file.extend([16, 0, 1, 1, 4, 1, 0]);
        file.extend(b"STR\0\0\0\0\0");
        file.extend((self.texts.len() as u32 - 1).to_le_bytes());
        file.extend(0u32.to_le_bytes());
        for (at, text) in self.texts.iter().enumerate() {
            // How much of it the next one starts with.
            let next = self.texts.get(at + 1).map_or("", String::as_str);
            let same = text
                .bytes()
                .zip(next.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            let own = match at {
                0 => 0,
                _ => {
                    let before = &self.texts[at - 1];
                    before
                        .bytes()
                        .zip(text.bytes())
                        .take_while(|(a, b)| a == b)
                        .count()
                }
            };
            file.extend(&text.as_bytes()[own.min(31)..]);
            file.push(same.min(31) as u8);
        }
        file.extend(b"TYP\0\0\0\0\0");
        file.extend((self.types.len() as u32).to_le_bytes());
        file.extend(self.types.iter().flatten());
        file.push(0);
        file.extend(b"WKT\0\0\0\0\0");
        file.extend([3, LOGIC as u8, 0]);
        file.extend(b"HIE\0\0\0\0\0");
        for number in [1, self.vars.len() as u32, self.signals as u32] {
            file.extend(number.to_le_bytes());
        }
        file.extend(&self.hierarchy);
        file.extend([15, 0]);
        file.extend(b"EOH\0");
        file
    }

    /// The whole file, with changes of variables, by their numbers, at increasing times.
    ///
    /// # Panics
    ///
    /// A value with a character that is no level of `std_ulogic`, or of a variable that
    /// there is not.
    #[must_use]
    pub fn body(self, changes: &[(u64, Vec<(usize, String)>)]) -> Vec<u8> {
        let mut file = self.header();
        file.extend(b"SNP\0\0\0\0\0");
        file.extend(0u64.to_le_bytes());
        file.extend((0..self.signals).map(|_| 1));
        file.extend(b"ESN\0CYC\0");
        let start = changes.first().map_or(0, |change| change.0);
        file.extend(start.to_le_bytes());
        let mut now = start;
        for (at, (time, list)) in changes.iter().enumerate() {
            if at > 0 {
                file.extend(signed((time - now) as i64));
            }
            now = *time;
            let mut values: Vec<(u64, u8)> = Vec::new();
            for (var, text) in list {
                let (first, _) = self.vars[*var];
                let levels = text.chars().map(|c| LEVELS.find(c).unwrap() as u8);
                values.extend((first + 1..).zip(levels));
            }
            values.sort_unstable();
            let mut last = 0;
            for (signal, level) in values {
                file.extend(unsigned(signal - last));
                file.push(level);
                last = signal;
            }
            file.push(0);
        }
        file.extend(signed(-1));
        file.extend(b"ECY\0DIR\0\0\0\0\0\0\0\0\0EOD\0TAI\0\0\0\0\0\0\0\0\0");
        file
    }
}

fn unsigned(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn signed(mut value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}
