//! Bytes to packets (chapter 6).

use std::collections::BTreeMap;

use super::{Mode, PlainError, Settings, Version};

/// A packet: its fields by the names of the specification, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Where its header is in the stream.
    pub offset: usize,
    /// `format`
    pub format: u64,
    /// `subformat`; in format 0 it may be inferred.
    pub subformat: Option<u64>,
    /// All other fields.
    pub fields: BTreeMap<&'static str, u64>,
    /// `notify` differs from the bit before it.
    pub notify: bool,
    /// `updiscon` differs from the bit before it.
    pub updiscon: bool,
    /// `irreport` differs from the bit before it.
    pub irreport: bool,
    /// The options and sizes after this packet.
    pub(super) options: Options,
}

impl Packet {
    /// The value of a field; 0 for one that is not there.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.fields.get(name).copied().unwrap_or(0)
    }

    /// Whether there is such a field.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub(super) fn is(&self, format: u64, subformat: u64) -> bool {
        self.format == format && self.subformat == Some(subformat)
    }
}

/// What support packets report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) modes: Vec<Mode>,
    pub(super) resync_disabled: bool,
    pub(super) iret_ext: bool,
    pub(super) f0s_width: u32,
    pub(super) return_stack_size: u32,
    pub(super) call_counter_size: u32,
    pub(super) bpred_size: u32,
    pub(super) cache_size: u32,
}

impl Options {
    /// Those before the first support packet.
    pub(super) fn new(settings: &Settings) -> Options {
        Options {
            modes: settings.modes.clone(),
            resync_disabled: false,
            iret_ext: settings.version == Version::V2_05,
            f0s_width: settings.f0s_width,
            return_stack_size: settings.return_stack_size,
            call_counter_size: settings.call_counter_size,
            bpred_size: settings.bpred_size,
            cache_size: settings.cache_size,
        }
    }

    pub(super) fn on(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }
}

/// All packets of a stream. Each has a header byte: the length in bits 0 to 4,
/// the type in bits 5 and 6, and 0 in bit 7. A zero byte is padding.
///
/// # Errors
///
/// Bytes that are no packet.
pub fn packets(bytes: &[u8], settings: &Settings) -> Result<Vec<Packet>, PlainError> {
    let mut options = Options::new(settings);
    let mut packets: Vec<Packet> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let header = bytes[at];
        let fail = |what: &str| Err(PlainError::new(packets.len(), what));
        if header == 0 {
            at += 1;
            continue;
        }
        let len = usize::from(header & 31);
        let Some(payload) = bytes.get(at + 1..at + 1 + len) else {
            return fail("the stream ends in a packet");
        };
        match header >> 5 {
            _ if len == 0 => return fail("a packet without payload"),
            2 => {
                let packet = read(at, payload, settings, &options);
                let packet = packet.map_err(|what| PlainError::new(packets.len(), what))?;
                options = packet.options.clone();
                packets.push(packet);
            }
            3 => {}
            _ => return fail("a header that is not one of te_inst or te_data"),
        }
        at += 1 + len;
    }
    Ok(packets)
}

/// The bits of a payload, lowest first, and above them copies of the highest.
struct Bits<'b> {
    bytes: &'b [u8],
    at: usize,
    last: u64,
}

impl Bits<'_> {
    fn bit(&mut self) -> u64 {
        let len = self.bytes.len() * 8;
        let at = self.at.min(len - 1);
        self.last = u64::from(self.bytes[at / 8] >> (at % 8) & 1);
        self.at += 1;
        self.last
    }

    fn take(&mut self, width: u32) -> u64 {
        (0..width).fold(0, |value, i| value | self.bit() << i)
    }

    /// A bit, and whether it differs from the one before it.
    fn flag(&mut self) -> (u64, bool) {
        let before = self.last;
        let bit = self.bit();
        (bit, bit != before)
    }
}

struct Reader<'s, 'b> {
    bits: Bits<'b>,
    settings: &'s Settings,
    packet: Packet,
}

fn read(
    offset: usize,
    payload: &[u8],
    settings: &Settings,
    options: &Options,
) -> Result<Packet, String> {
    let bits = Bits {
        bytes: payload,
        at: 0,
        last: 0,
    };
    let packet = Packet {
        offset,
        format: 0,
        subformat: None,
        fields: BTreeMap::new(),
        notify: false,
        updiscon: false,
        irreport: false,
        options: options.clone(),
    };
    let mut reader = Reader {
        bits,
        settings,
        packet,
    };
    reader.body()?;
    // "the payload must be sign-extended to the nearest byte boundary"
    let Reader {
        mut bits, packet, ..
    } = reader;
    let last = bits.last;
    if bits.at + 8 <= payload.len() * 8 {
        return Err("a packet is longer than its fields".to_owned());
    }
    while bits.at < payload.len() * 8 {
        if bits.bit() != last {
            return Err("the padding of a packet is no sign extension".to_owned());
        }
    }
    Ok(packet)
}

impl Reader<'_, '_> {
    fn field(&mut self, name: &'static str, width: u32) -> u64 {
        let value = self.bits.take(width);
        if width > 0 {
            self.packet.fields.insert(name, value);
        }
        value
    }

    fn body(&mut self) -> Result<(), String> {
        self.packet.format = self.bits.take(2);
        match self.packet.format {
            0 => self.format0(),
            1 => self.format1(),
            2 => self.address_and_flags(),
            _ => self.format3(),
        }
    }

    fn address(&mut self) {
        let width = self.settings.iaddress_width - self.settings.iaddress_lsb;
        self.field("address", width);
    }

    fn address_and_flags(&mut self) -> Result<(), String> {
        self.address();
        let (notify, differs) = self.bits.flag();
        self.packet.fields.insert("notify", notify);
        self.packet.notify = differs;
        let (updiscon, differs) = self.bits.flag();
        self.packet.fields.insert("updiscon", updiscon);
        self.packet.updiscon = differs;
        self.returns()
    }

    /// `irreport` and `irdepth` or `irets`.
    fn returns(&mut self) -> Result<(), String> {
        let (irreport, differs) = self.bits.flag();
        self.packet.fields.insert("irreport", irreport);
        self.packet.irreport = differs;
        let options = &self.packet.options;
        let stack = match options.return_stack_size {
            0 => 0,
            size => size + 1,
        };
        let (name, width) = match options.iret_ext {
            true => ("irets", 8),
            false => ("irdepth", stack + options.call_counter_size),
        };
        let value = self.field(name, width);
        let ones = (1 << width) - 1;
        // Irreport equals the bit before it here, so it repeats that bit.
        if self.settings.repeats_irdepth && !differs && value != irreport * ones {
            return Err(format!("{name} does not repeat the bit before it"));
        }
        Ok(())
    }

    fn branch_map(&mut self, branches: u64) {
        let width = match branches {
            0 => 0,
            1 => 1,
            2..=3 => 3,
            4..=7 => 7,
            8..=15 => 15,
            _ => 31,
        };
        self.field("branch_map", width);
    }

    fn format0(&mut self) -> Result<(), String> {
        let options = &self.packet.options;
        let counts = options.on(Mode::BranchPrediction);
        let caches = options.on(Mode::JumpTargetCache);
        let (width, cache_size) = (options.f0s_width, options.cache_size);
        let subformat = match width {
            0 if counts && caches => return Err("format 0 without a subformat".to_owned()),
            0 => u64::from(caches),
            _ => self.bits.take(width),
        };
        self.packet.subformat = Some(subformat);
        match subformat {
            0 if counts => {
                self.field("branch_count", 32);
                match self.field("branch_fmt", 2) {
                    0 => Ok(()),
                    1 => Err("branch_fmt is 1".to_owned()),
                    _ => self.address_and_flags(),
                }
            }
            1 if caches => {
                self.field("index", cache_size);
                let branches = self.field("branches", 5);
                self.branch_map(branches);
                self.returns()
            }
            _ => Err("format 0 in a mode that is off".to_owned()),
        }
    }

    fn format1(&mut self) -> Result<(), String> {
        match self.field("branches", 5) {
            0 => {
                self.field("branch_map", 31);
                Ok(())
            }
            branches => {
                self.branch_map(branches);
                self.address_and_flags()
            }
        }
    }

    fn format3(&mut self) -> Result<(), String> {
        let subformat = self.bits.take(2);
        self.packet.subformat = Some(subformat);
        match subformat {
            0 => {
                self.field("branch", 1);
                self.state();
                self.address();
            }
            1 => self.trap(),
            2 => self.state(),
            _ => self.support(),
        }
        Ok(())
    }

    /// Privilege, time and context.
    fn state(&mut self) {
        self.field("privilege", self.settings.privilege_width);
        self.field("time", self.settings.time_width);
        self.field("context", self.settings.context_width);
    }

    fn trap(&mut self) {
        self.field("branch", 1);
        self.state();
        self.field("ecause", self.settings.ecause_width);
        let interrupt = self.field("interrupt", 1) == 1;
        let implicit = self.packet.options.on(Mode::ImplicitException);
        if self.settings.version == Version::Draft {
            if !implicit {
                self.address();
            }
            self.field("tvalepc", self.settings.iaddress_width);
            return;
        }
        let thaddr = self.field("thaddr", 1) == 1;
        if !(implicit && thaddr) {
            self.address();
        }
        if !interrupt {
            self.field("tval", self.settings.iaddress_width);
        }
    }

    fn support(&mut self) {
        self.field("ienable", 1);
        self.field("encoder_mode", self.settings.encoder_mode_width);
        self.field("qual_status", 2);
        if self.settings.version == Version::V2_05 {
            return self.standard_support();
        }
        let names = &self.settings.ioptions;
        // Those that no bit reports stay as they were.
        let mut modes = self.packet.options.modes.clone();
        modes.retain(|mode| !names.contains(mode));
        let value = self.field("ioptions", names.len() as u32);
        for (bit, &mode) in names.iter().enumerate() {
            if value >> bit & 1 == 1 {
                modes.push(mode);
            }
        }
        self.packet.options.modes = modes;
        if let Some(width) = self.settings.doptions_width {
            self.field("denable", 1);
            self.field("dloss", 1);
            self.field("doptions", width);
        }
    }

    /// "Standard Support Packet format" of 2.05.
    fn standard_support(&mut self) {
        let mut options = self.packet.options.clone();
        options.modes.clear();
        let modes = [
            ("sijump", Mode::SequentialJump),
            ("implicit_return", Mode::ImplicitReturn),
            ("branch_predictor", Mode::BranchPrediction),
            ("jump_target_cache", Mode::JumpTargetCache),
            ("implicit_except", Mode::ImplicitException),
            ("full_iaddress", Mode::FullAddress),
        ];
        for (name, mode) in modes {
            if self.field(name, 1) == 1 {
                options.modes.push(mode);
            }
        }
        options.resync_disabled = self.field("resync_disabled", 1) == 1;
        options.iret_ext = self.field("iret_ext", 1) == 1;
        self.field("time_width", 2);
        options.f0s_width = self.field("f0s_width", 2) as u32;
        options.return_stack_size = self.field("return_stack_size", 3) as u32;
        options.call_counter_size = self.field("call_counter_size", 4) as u32;
        options.bpred_size = self.field("bpred_size", 3) as u32;
        options.cache_size = self.field("cache_size", 3) as u32;
        let rest = [
            "denable",
            "dloss",
            "mmacas_ext",
            "noaddr",
            "nodata",
            "full_daddress",
            "full_data",
        ];
        for name in rest {
            self.field(name, 1);
        }
        self.packet.options = options;
    }
}
