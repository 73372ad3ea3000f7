//! The features an encoder implements, which determine the register values
//! after a write.

use super::{Registers, TeControl, TeImpl, TeInstFeatures, TsControl};

/// What an encoder implements. Fields of its registers are WARL: any value may
/// be written, a legal one is read.
///
/// ```
/// use hartrace_ntrace::{Capabilities, Registers, TeControl};
///
/// let small = Capabilities { htm: false, ..Capabilities::ALL };
/// let control = TeControl(0).with_active(true).with_inst_mode(6);
/// let read = small.read_back(Registers { control, ..Registers::default() });
/// assert_eq!(read.control.inst_mode(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities {
    /// Branch trace messaging.
    pub btm: bool,
    /// Branch history messaging.
    pub htm: bool,
    /// Periodic sync by messages, by cycles, by halfwords; at least one.
    pub sync_modes: [bool; 3],
    /// Smallest and largest trTeInstSyncMax.
    pub sync_max: (u8, u8),
    /// trTeContext.
    pub context: bool,
    /// trTeInstTrigEnable.
    pub triggers: bool,
    /// trTeInstStallEna.
    pub stall: bool,
    /// trTeInhibitSrc.
    pub inhibit_src: bool,
    /// Largest trTeSrcBits, 0 to 12.
    pub src_bits: u8,
    /// trTeInstEnSequentialJump.
    pub sequential_jump: bool,
    /// trTeInstImplicitReturnMode: 1, 2, 3.
    pub implicit_return: [bool; 3],
    /// trTeInstEnRepeatedHistory.
    pub repeated_history: bool,
    /// trTeInstEnAllJumps.
    pub all_jumps: bool,
    /// trTeInstExtendAddrMSB.
    pub extend_addr_msb: bool,
    /// Timestamps, if it has any.
    pub timestamps: Option<TsCapabilities>,
    /// External trigger inputs, 0 to 8.
    pub external_triggers: u8,
}

/// What a timestamp unit implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TsCapabilities {
    /// Width of its counter, 1 to 63 bits.
    pub width: u8,
    /// trTsMode: 1 external, 2 internal system, 3 internal core, 4 shared.
    pub modes: [bool; 4],
    /// trTsPrescale.
    pub prescale: bool,
    /// trTsRunInDebug.
    pub run_in_debug: bool,
}

/// Whether the mode numbered from 1 is there.
fn has(modes: &[bool], mode: u32) -> bool {
    let index = (mode as usize).wrapping_sub(1);
    modes.get(index).copied().unwrap_or(false)
}

/// The mode if it is there, otherwise the highest that is, 0 for none.
fn legal(modes: &[bool], mode: u32) -> u32 {
    if has(modes, mode) {
        return mode;
    }
    let highest = modes.iter().rposition(|&there| there);
    highest.map_or(0, |index| index as u32 + 1)
}

impl Capabilities {
    /// Everything.
    pub const ALL: Capabilities = Capabilities {
        btm: true,
        htm: true,
        sync_modes: [true; 3],
        sync_max: (0, 15),
        context: true,
        triggers: true,
        stall: true,
        inhibit_src: true,
        src_bits: 12,
        sequential_jump: true,
        implicit_return: [true; 3],
        repeated_history: true,
        all_jumps: true,
        extend_addr_msb: true,
        timestamps: Some(TsCapabilities {
            width: 63,
            modes: [true; 4],
            prescale: true,
            run_in_debug: true,
        }),
        external_triggers: 8,
    };

    /// What the registers hold once these values are written, while no message
    /// is under way. In reset, without trTeActive, nothing is held.
    #[must_use]
    pub fn read_back(&self, written: Registers) -> Registers {
        if !written.control.active() {
            return Registers {
                control: TeControl(0).with_empty(true),
                ..Registers::default()
            };
        }
        Registers {
            control: self.control(written.control),
            impl_: TeImpl::N_TRACE,
            inst_features: self.inst_features(written.inst_features),
            ts_control: self
                .timestamps
                .map_or(TsControl(0), |ts| ts.read_back(written.ts_control)),
            trig_ext_in: self.trig_ext_in(written.trig_ext_in),
        }
    }

    fn control(&self, w: TeControl) -> TeControl {
        let mode = match w.inst_mode() {
            0 => 0,
            3 if self.btm => 3,
            6 if self.htm => 6,
            // Another mode reverts to one that is there, but never to 0.
            _ if self.htm => 6,
            _ if self.btm => 3,
            _ => 0,
        };
        let unit = match w.inst_sync_mode() {
            0 => 0,
            unit => legal(&self.sync_modes, unit),
        };
        let (least, most) = self.sync_max;
        let max = w.inst_sync_max().min(most.into()).max(least.into());
        TeControl(0)
            .with_active(true)
            .with_enable(w.enable())
            .with_inst_tracing(w.inst_tracing() && w.enable())
            .with_empty(true)
            .with_inst_mode(mode)
            .with_context(w.context() && self.context)
            .with_inst_trig_enable(w.inst_trig_enable() && self.triggers)
            .with_inst_stall_ena(w.inst_stall_ena() && self.stall)
            .with_inhibit_src(w.inhibit_src() && self.inhibit_src)
            .with_inst_sync_mode(unit)
            .with_inst_sync_max(max)
            .with_format(1)
    }

    fn inst_features(&self, w: TeInstFeatures) -> TeInstFeatures {
        let any = self.implicit_return.contains(&true);
        let enabled = w.en_implicit_return() && any;
        let mode = match w.implicit_return_mode() {
            // "Not specified" is valid only together with "not enabled".
            0 if !enabled => 0,
            mode => legal(&self.implicit_return, mode),
        };
        let src_bits = u32::from(self.src_bits.min(12));
        TeInstFeatures(0)
            .with_en_sequential_jump(w.en_sequential_jump() && self.sequential_jump)
            .with_en_implicit_return(enabled)
            .with_implicit_return_mode(mode)
            .with_en_repeated_history(w.en_repeated_history() && self.repeated_history)
            .with_en_all_jumps(w.en_all_jumps() && self.all_jumps)
            .with_extend_addr_msb(w.extend_addr_msb() && self.extend_addr_msb)
            .with_src_id(w.src_id() & ((1 << src_bits) - 1))
            .with_src_bits(w.src_bits().min(src_bits))
    }

    fn trig_ext_in(&self, written: u32) -> u32 {
        (0..u32::from(self.external_triggers.min(8)))
            .map(|input| written & 15 << (4 * input))
            .zip(0..)
            .filter(|&(bits, input)| matches!(bits >> (4 * input), 2..=4))
            .fold(0, |all, (bits, _): (u32, u32)| all | bits)
    }
}

impl TsCapabilities {
    fn read_back(&self, w: TsControl) -> TsControl {
        let width = TsControl(0).with_width(self.width.into());
        if !w.active() {
            return width;
        }
        let mode = match w.mode() {
            0 => 0,
            mode => legal(&self.modes, mode),
        };
        let internal = matches!(mode, 2 | 3);
        let prescale = if internal && self.prescale {
            w.prescale()
        } else {
            0
        };
        width
            .with_active(true)
            .with_count(w.count() && internal)
            .with_run_in_debug(w.run_in_debug() && mode == 3 && self.run_in_debug)
            .with_mode(mode)
            .with_prescale(prescale)
            .with_enable(w.enable())
    }
}
