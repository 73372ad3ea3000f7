//! The codes of the protocols' faults: whose they are, and what most likely
//! causes them.

use super::Format;

impl Format {
    /// The format whose decoder reports this code.
    #[must_use]
    pub fn from_fault(code: &str) -> Option<Format> {
        match code.get(..2)? {
            "NT" => Some(Format::Ntrace),
            "ET" => Some(Format::Etrace),
            "TP" => Some(Format::Tandem),
            _ => None,
        }
    }
}

/// The likely cause of a gap with this code.
#[must_use]
pub fn likely_cause(code: &str) -> Option<&'static str> {
    Some(match code {
        "NT0101" | "NT0102" | "NT0103" => "damaged bytes, or not N-Trace at all",
        "NT0104" => "erased or overwritten memory, or not N-Trace at all",
        "NT0105" => "the trace was cut off while a message was written",
        "NT0106" => "the buffer wrapped, or the start is missing: quite usual",
        "NT0201" | "NT0202" | "NT0203" | "NT0204" => {
            "damaged bytes, or another src_bits or extend_addr_msb in [ntrace]"
        }
        "NT0205" | "NT0206" | "NT0207" | "NT0208" => {
            "damaged bytes, another src_bits, or a later version of the specification"
        }
        "NT0211" => "erased memory: part of the buffer was never written",
        "NT0212" => "a damaged message, or one that ignore_tcodes in [ntrace] should name",
        "NT0213" => {
            "a message of the vendor's, which ignore_tcodes in [ntrace] should name, or a damaged one"
        }
        "NT0209" | "NT0210" => "damaged bytes, or lost messages; see max_expansion in [ntrace]",
        "NT0302" => "another program or load base, or code that was loaded later",
        "NT0301" | "NT0303" | "NT0304" | "NT0308" | "NT0312" => {
            "another program than the one that ran, code that changed, or lost messages"
        }
        "NT0305" => "implicit_return or sequential_jump in [ntrace], or another program",
        "NT0306" | "NT0307" | "NT0309" | "NT0311" => {
            "mode, all_jumps or implicit_return in [ntrace], or another program"
        }
        "NT0310" => "retires in [ntrace]: whether ecall and ebreak count",
        "NT0401" | "ET0401" => "the encoder's queue was full: slower code, or a faster port",
        "NT0402" | "ET0402" => {
            "the capture stopped before the encoder did, or the end of the file is missing"
        }
        "ET0208" => "a damaged packet, or other widths in [etrace]",
        "ET0101" => "damaged bytes, or not E-Trace at all",
        "ET0102" => "the trace was cut off while a packet was written",
        "ET0103" => "the buffer wrapped, or the start is missing: quite usual",
        "ET0201" | "ET0202" | "ET0203" | "ET0204" | "ET0205" | "ET0207" => {
            "damaged bytes, or other widths or another version in [etrace]"
        }
        "ET0206" => "a mode that is not supported yet, or another order of ioptions in [etrace]",
        "ET0301" => {
            "another program or load base, code that was loaded later, or other widths in [etrace]"
        }
        "ET0302" | "ET0303" | "ET0306" | "ET0308" => {
            "another program than the one that ran, code that changed, or lost packets"
        }
        "ET0304" => "sijump in [etrace], or another program",
        "ET0305" => "another program than the one that ran, or lost packets",
        "ET0307" => "lost packets, or code that changed",
        "TP0101" | "TP0103" | "TP0104" | "TP0106" | "TP0107" | "TP0108" | "TP0111" => {
            "damaged bytes, or other widths or another dialect in [tandem]"
        }
        "TP0102" | "TP0201" => "the trace was cut off while a group was written",
        "TP0105" => "another flen in [tandem], or damaged bytes",
        "TP0109" | "TP0110" => "damaged bytes, or another order of nibbles in [tandem]",
        "TP0112" => "damaged bytes, or another max_items in [tandem]",
        "TP0301" => "the start is missing: where the first instructions are, nothing tells",
        "TP0404" | "TP0405" | "TP0407" => "damaged bytes of the container",
        "TP0408" | "TP0409" => "the container was cut off, or is still being written",
        "TP0302" => "the start is missing, or damaged bytes before it",
        _ => return None,
    })
}
