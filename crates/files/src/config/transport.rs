//! `[transport]`: what the file of a trace holds besides the stream itself: the contents
//! of a circular buffer, samples of pins, CoreSight frames.

use super::read::{Problem, Reader, Value};
use super::section::{some, value};
use super::value::Named;
use super::write::quote;
use crate::transport::{CoreSight, Order, Pib, PibWidth, RamSink, Transport};

const ORDERS: Named<Order> = &[
    ("plain", Order::Plain),
    ("swap16", Order::Swapped16),
    ("swap32", Order::Swapped32),
];

section! {
    /// `[transport]`. What is `None` is not said.
    TransportSection = "[transport]" {
        /// The order of the bytes.
        order: Order = (named ORDERS);
        /// A circular buffer: its registers, `START:LIMIT[:WP[:wrap]]`.
        ram: RamSink = (ram);
        /// Samples of so many pins.
        pib: PibWidth = (pins);
        /// The first sample is in the high bits of a byte.
        high_first: bool = (boolean);
        /// Frames of the CoreSight formatter.
        coresight: bool = (boolean);
        /// E-Trace in frames: how much higher the ids of data packets are.
        coresight_data: u8 = (number 1 110);
    }
}

impl Reader {
    fn ram(&mut self, name: &'static str, value: &Value<'_>) -> Option<RamSink> {
        let text = self.string(name, value)?;
        match RamSink::parse(&text) {
            Ok(ram) => Some(ram),
            Err(None) => {
                let expected = "START:LIMIT[:WP[:wrap]], such as \"0x1000:0x1ffc\"";
                self.refuse(name, value, expected)
            }
            Err(Some(error)) => {
                let problem = Problem::Invalid(format!("`{name}`: {error}"));
                self.fail(problem, value.span());
                None
            }
        }
    }

    fn pins(&mut self, name: &'static str, value: &Value<'_>) -> Option<PibWidth> {
        let pins: u32 = self.number(name, value, 1..=16)?;
        match PibWidth::from_pins(pins) {
            Some(width) => Some(width),
            None => self.refuse(name, value, "1, 2, 4, 8 or 16"),
        }
    }
}

fn ram(ram: &RamSink) -> String {
    quote(ram.to_string())
}

fn pins(width: &PibWidth) -> String {
    width.bits().to_string()
}

impl TransportSection {
    /// The transport.
    #[must_use]
    pub fn transport(&self) -> Transport {
        let data_offset = self.coresight_data.as_ref().map(|s| s.value);
        let coresight = value(&self.coresight, data_offset.is_some());
        Transport {
            order: value(&self.order, Order::Plain),
            ram: self.ram.as_ref().map(|s| s.value),
            pib: self.pib.as_ref().map(|width| Pib {
                high_first: value(&self.high_first, false),
                ..Pib::new(width.value)
            }),
            coresight: coresight.then_some(CoreSight { data_offset }),
        }
    }

    /// A section that says so; without anything if the stream is as it is.
    #[must_use]
    pub fn of(transport: &Transport) -> TransportSection {
        let Transport {
            order,
            ram,
            pib,
            coresight,
        } = *transport;
        TransportSection {
            order: Some(order).filter(|o| *o != Order::Plain).and_then(some),
            ram: ram.and_then(some),
            pib: pib.and_then(|pib| some(pib.width)),
            high_first: pib.filter(|pib| pib.high_first).and_then(|_| some(true)),
            coresight: coresight.and_then(|_| some(true)),
            coresight_data: coresight.and_then(|c| c.data_offset).and_then(some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("t.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn read_and_written() {
        let text = "[transport]
order = \"swap32\"
ram = \"0x1000:0x1ffc:0x1234:wrap\"
coresight = true
coresight_data = 32
";
        let config = parse(text).unwrap();
        assert_eq!(config.to_toml(false), text);
        let transport = config.transport.transport();
        let ram = transport.ram.unwrap();
        assert!(ram.wrapped);
        assert_eq!((ram.limit, ram.write_pointer), (0x1ffc, 0x1234));
        let coresight = transport.coresight.unwrap();
        assert_eq!(coresight.data_offset, Some(32));
        assert_eq!(TransportSection::of(&transport).transport(), transport);
        let pins = parse("[transport]\npib = 4\nhigh_first = true\n").unwrap();
        let transport = pins.transport.transport();
        assert!(transport.pib.unwrap().high_first);
        assert_eq!(TransportSection::of(&transport).transport(), transport);
        // An empty buffer.
        let empty = parse("[transport]\nram = \"0x1000:0x1ffc\"\n").unwrap();
        let ram = empty.transport.transport().ram.unwrap();
        assert_eq!((ram.write_pointer, ram.wrapped), (0x1000, false));
        assert!(!TransportSection::of(&Transport::default()).is_said());
    }

    #[test]
    fn mistakes() {
        for (line, words) in [
            ("pib = 3", "1, 2, 4, 8 or 16"),
            ("ram = \"0x1000\"", "START:LIMIT"),
            ("ram = \"0x1000:0x10\"", "limit"),
            ("coresight_data = 111", "1 to 110"),
            ("order = \"swap64\"", "swap32"),
        ] {
            let error = parse(&format!("[transport]\n{line}\n")).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
