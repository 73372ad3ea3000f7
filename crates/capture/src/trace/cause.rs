//! Fault codes of the protocols: which protocol each belongs to, and its most
//! likely cause.

use super::Format;

impl Format {
    /// The format whose decoder reports this code.
    #[must_use]
    pub(crate) fn from_fault(code: &str) -> Option<Format> {
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
        "NT0105" => "the trace was cut off inside a message",
        "NT0106" => "the buffer wrapped, or the start is missing: this is common",
        "NT0201" | "NT0202" | "NT0203" | "NT0204" => {
            "damaged bytes, or wrong src_bits or extend_addr_msb in [ntrace]"
        }
        "NT0205" | "NT0206" | "NT0207" | "NT0208" => {
            "damaged bytes, wrong src_bits, or a later version of the specification"
        }
        "NT0211" => "erased memory: part of the buffer was never written",
        "NT0212" => "a damaged message, or one to list in ignore_tcodes in [ntrace]",
        "NT0213" => "a vendor's message to list in ignore_tcodes in [ntrace], or a damaged one",
        "NT0209" | "NT0210" => "damaged bytes or lost messages; see max_expansion in [ntrace]",
        "NT0302" => "wrong program or load base, or code that was loaded later",
        "NT0301" | "NT0303" | "NT0304" | "NT0308" | "NT0312" => {
            "wrong program, code that changed, or lost messages"
        }
        "NT0305" => "wrong implicit_return or sequential_jump in [ntrace], or wrong program",
        "NT0306" | "NT0307" | "NT0309" | "NT0311" => {
            "wrong mode, all_jumps or implicit_return in [ntrace], or wrong program"
        }
        "NT0310" => "wrong retires in [ntrace]: whether ecall and ebreak count",
        "NT0401" | "ET0401" => "the encoder's queue was full: trace less, or use a faster port",
        "NT0402" | "ET0402" => {
            "the capture stopped before the encoder did, or the end of the file is missing"
        }
        "ET0208" => "a damaged packet, or wrong widths in [etrace]",
        "ET0212" | "ET0213" | "ET0214" | "ET0215" | "ET0216" => {
            "a damaged packet, or wrong widths in [etrace.data]"
        }
        "ET0403" => "the encoder's queue was full: trace fewer accesses",
        "ET0404" => "missing packets, another program, or wrong settings in [etrace.data]",
        "ET0405" => "the trace unit or the capture lost packets",
        "ET0101" => "damaged bytes, or not E-Trace at all",
        "ET0102" => "the trace was cut off inside a packet",
        "ET0103" => "the buffer wrapped, or the start is missing: this is common",
        "ET0201" | "ET0202" | "ET0203" | "ET0204" | "ET0205" | "ET0207" => {
            "damaged bytes, or wrong widths or version in [etrace]"
        }
        "ET0206" => "a mode that is not supported yet, or a wrong order of ioptions in [etrace]",
        "ET0301" => {
            "wrong program or load base, code that was loaded later, or wrong widths in [etrace]"
        }
        "ET0302" | "ET0303" | "ET0306" | "ET0308" => {
            "wrong program, code that changed, or lost packets"
        }
        "ET0304" => "wrong sijump in [etrace], or wrong program",
        "ET0305" => "wrong program, or lost packets",
        "ET0307" => "lost packets, or code that changed",
        "TP0101" | "TP0103" | "TP0104" | "TP0106" | "TP0107" | "TP0108" | "TP0111" => {
            "damaged bytes, or wrong widths or dialect in [tandem]"
        }
        "TP0102" | "TP0201" => "the trace was cut off inside a group",
        "TP0105" => "wrong flen in [tandem], or damaged bytes",
        "TP0109" | "TP0110" => "damaged bytes, or a wrong order of nibbles in [tandem]",
        "TP0112" => "damaged bytes, or too small a max_items in [tandem]",
        "TP0301" => "the start is missing: the address of the first instructions is unknown",
        "TP0404" | "TP0405" | "TP0407" => "the container is damaged",
        "TP0408" | "TP0409" => "the container was cut off, or is still being written",
        "TP0302" => "the start is missing, or damaged bytes before it",
        _ => return None,
    })
}
