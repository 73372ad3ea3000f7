//! Data packets for display: every field with its bits, and codes in words.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hartrace_isa::csr;

use super::{DataLayout, DataPacket, Outstanding, read};
use crate::Fault;
use crate::explain::{Field, Reading};

/// The fields of a data packet, as far as they can be determined, and what is wrong
/// with it, if anything.
#[must_use]
pub fn explain_data(
    payload: &[u8],
    layout: &DataLayout,
    outstanding: &Outstanding,
) -> (Vec<Field>, Option<Fault>) {
    let Some(mut reading) = Reading::new(payload) else {
        return (Vec::new(), Some(Fault::EmptyPacket));
    };
    let fault = match read::read(&mut reading, layout, outstanding) {
        Err(fault) => Some(fault),
        Ok(_) => (!reading.is_end()).then_some(Fault::ExtraBits),
    };
    (reading.into_fields(), fault)
}

const SUBTYPES: [&str; 8] = [
    "swap",
    "add",
    "and",
    "or",
    "xor",
    "max",
    "min",
    "store-conditional failed",
];

/// What an atomic does.
fn operation(subtype: u8) -> Option<String> {
    let name = SUBTYPES.get(usize::from(subtype)).copied();
    name.map(String::from)
}

impl DataPacket {
    /// What the codes in it mean, in a few words.
    #[must_use]
    pub fn meaning(&self, layout: &DataLayout) -> Option<String> {
        let mut words = Vec::new();
        let bytes = |size: u8| match size {
            0 => String::from("1 byte"),
            size => format!("{} bytes", 1 << size),
        };
        match *self {
            DataPacket::Transfer {
                multiple,
                size,
                diff,
                ..
            } => {
                words.extend(one_of(multiple));
                words.push(bytes(size));
                words.push(content(diff, layout));
            }
            DataPacket::LoadRequest {
                multiple,
                size,
                diff,
                ..
            } => {
                words.extend(one_of(multiple));
                words.push(bytes(size));
                words.push(String::from(address(diff)));
            }
            DataPacket::LoadResponse { size, resp, .. } => {
                words.push(bytes(size));
                words.push(String::from(response(resp)));
            }
            DataPacket::SwapFailure { size, diff, .. } => {
                words.push(bytes(size));
                words.push(String::from(address(diff)));
            }
            DataPacket::AtomicResponse { resp, .. } => words.push(String::from(response(resp))),
            DataPacket::Atomic {
                subtype,
                size,
                diff,
                ..
            } => {
                words.extend(operation(subtype));
                words.push(bytes(size));
                words.push(content(diff, layout));
            }
            DataPacket::AtomicRequest {
                subtype,
                size,
                diff,
                ..
            } => {
                words.extend(operation(subtype));
                words.push(bytes(size));
                words.push(String::from(address(diff)));
            }
            DataPacket::Csr {
                subtype,
                diff,
                data,
                address: number,
                ..
            } => {
                let what = ["read-write", "read-set", "read-clear"];
                words.extend(what.get(usize::from(subtype)).copied().map(String::from));
                if data.is_some() || diff == 0 {
                    words.extend(csr::name(number).map(String::from));
                }
                if data.is_some() {
                    words.push(String::from(value(diff, layout)));
                }
            }
        }
        Some(words.join(", "))
    }
}

/// Of a multiple memory access.
fn one_of(multiple: bool) -> Option<String> {
    multiple.then(|| String::from("one of several"))
}

const fn address(diff: u8) -> &'static str {
    match diff {
        0 => "full address",
        _ => "address difference",
    }
}

const fn response(resp: u8) -> &'static str {
    match resp {
        0 => "error",
        1 => "data XOR",
        2 => "full data",
        _ => "data difference",
    }
}

/// `diff` of a packet without an address.
const fn value(diff: u8, layout: &DataLayout) -> &'static str {
    match (diff, layout.diff_width) {
        (0, _) => "full data",
        (1, 1) => "compressed data",
        (1, _) => "data XOR",
        _ => "data difference",
    }
}

fn content(diff: u8, layout: &DataLayout) -> String {
    match (layout.no_data, layout.no_address) {
        (true, _) => String::from(address(diff)),
        (_, true) => String::from(value(diff, layout)),
        _ => String::from(match diff {
            0 => "full address and data",
            1 => "address difference, data XOR",
            2 => "address difference, full data",
            _ => "address and data difference",
        }),
    }
}
