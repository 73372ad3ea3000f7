//! `[ntrace]`: settings of the N-Trace encoder, as far as a decoder needs them
//! too.

use super::ingress::RETIRES;
use super::read::{Reader, Value, integer};
use super::section::{Section as _, queue, set, some, value};
use super::value::{Named, name_of};
use super::write::quote;
use hartrace_flow::Retires;
use hartrace_isa::Xlen;
use hartrace_ntrace::{
    Config, Ending, Evcode, IcntFull, ImplicitReturn, OtherTcodes, RegisterError, RepeatedHistory,
    StackKind, Sync, SyncUnit, Tcode, Tcodes, Timestamps, TraceMode, TrapTypes, TriggerAction,
    Version,
};

const VERSIONS: Named<Version> = &[("1.0", Version::V1_0), ("rc7", Version::Rc7)];
const MODES: Named<TraceMode> = &[("htm", TraceMode::Htm), ("btm", TraceMode::Btm)];
const ICNT_FULL: Named<IcntFull> = &[
    ("resource-full", IcntFull::ResourceFull),
    ("sync", IcntFull::Sync),
];
const SYNC_UNITS: Named<SyncUnit> = &[
    ("off", SyncUnit::Off),
    ("messages", SyncUnit::Messages),
    ("cycles", SyncUnit::Cycles),
    ("halfwords", SyncUnit::Halfwords),
];
const TRAP_TYPES: Named<TrapTypes> = &[
    ("one", TrapTypes::One),
    ("two", TrapTypes::Two),
    ("none", TrapTypes::None),
];
/// `partial` has its bits in a key of its own.
const RETURNS: Named<ImplicitReturn> = &[
    ("off", ImplicitReturn::Off),
    ("count", ImplicitReturn::Count),
    ("partial", PARTIAL),
    ("full", ImplicitReturn::Full),
];
const PARTIAL: ImplicitReturn = ImplicitReturn::Partial(0);
/// The default number of bits that `partial` compares.
const PARTIAL_BITS: u8 = 8;
const STACKS: Named<StackKind> = &[
    ("plain", StackKind::Plain),
    ("reference-ring", StackKind::ReferenceRing),
];
const HISTORIES: Named<RepeatedHistory> = &[
    ("off", RepeatedHistory::Off),
    ("on", RepeatedHistory::On),
    ("reference", RepeatedHistory::Reference),
];
const ENDINGS: Named<Ending> = &[
    ("correlation", Ending::Correlation),
    ("reference", Ending::Reference),
];
const OTHER_TCODES: Named<OtherTcodes> = &[
    ("report", OtherTcodes::Reported),
    ("damage", OtherTcodes::Damage),
];
const ACTIONS: Named<TriggerAction> = &[
    ("none", TriggerAction::None),
    ("on", TriggerAction::On),
    ("off", TriggerAction::Off),
    ("notify", TriggerAction::Notify),
];

section! {
    /// `[ntrace]`. What is `None` is not said.
    Ntrace = "[ntrace]" {
        /// Which text.
        version: Version = (named VERSIONS);
        /// Branch history or branch trace messaging.
        mode: TraceMode = (named MODES);
        /// Width of `SRC`.
        src_bits: u8 = (number 0 12);
        /// `SRC` of hart 0.
        src_id: u16 = (number 0 4095);
        /// Width of the instruction counter.
        icnt_bits: u8 = (width 22);
        /// What is sent when it is full.
        icnt_full: IcntFull = (named ICNT_FULL);
        /// Width of the history, with its stop bit.
        hist_bits: u8 = (number 2 32);
        /// IndirectBranch instead of IndirectBranchHist where there is no history.
        short_indirect: bool = (boolean);
        /// What the periodic sync counts.
        sync: SyncUnit = (named SYNC_UNITS);
        /// trTeInstSyncMax: a sync every 2^(n+4).
        sync_max: u8 = (number 0 15);
        /// The periodic sync takes the place of the next branch message.
        sync_delayed: bool = (boolean);
        /// `B-TYPE` of traps.
        trap_types: TrapTypes = (named TRAP_TYPES);
        /// Ownership messages.
        context: bool = (boolean);
        /// The hart has hcontext.
        hcontext: bool = (boolean);
        /// Messages have timestamps.
        timestamps: bool = (boolean);
        /// Width of the timestamp counter.
        timestamp_width: u8 = (number 1 64);
        /// trTsPrescale: one tick every 4^n units.
        timestamp_prescale: u8 = (number 0 3);
        /// Only sync messages have timestamps.
        timestamp_sync_only: bool = (boolean);
        /// trTeInstExtendAddrMSB.
        extend_addr_msb: bool = (boolean);
        /// trTeInstEnSequentialJump.
        sequential_jump: bool = (boolean);
        /// trTeInstImplicitReturnMode.
        implicit_return: ImplicitReturn = (named RETURNS);
        /// Bits that `partial` compares.
        implicit_return_bits: u8 = (number 1 63);
        /// Depth of the return stack.
        stack_depth: u8 = (number 1 32);
        /// Kind of the return stack.
        stack_kind: StackKind = (named STACKS);
        /// rc7: `SYNC` 0, 4 and 6 do not clear the return stack.
        markers_keep_stack: bool = (boolean);
        /// trTeInstEnRepeatedHistory, and how repetitions are found.
        repeated_history: RepeatedHistory = (named HISTORIES);
        /// Width of `HREPEAT`.
        hrepeat_bits: u8 = (width 63);
        /// RepeatBranch messages.
        repeat_branch: bool = (boolean);
        /// Width of `B-CNT`.
        bcnt_bits: u8 = (width 63);
        /// trTeInstEnAllJumps.
        all_jumps: bool = (boolean);
        /// Which instructions that trap count as retired.
        retires: Retires = (named RETIRES);
        /// Debug triggers control tracing.
        triggers: bool = (boolean);
        /// What the eight external triggers do.
        external: [TriggerAction; 8] = (actions);
        /// Tracing waits for a trigger.
        starts_disabled: bool = (boolean);
        /// `SYNC` of the first message.
        first_sync: u8 = (number 0 15);
        /// `EVCODE` of the last message.
        last_event: u8 = (number 0 15);
        /// What the trace ends with.
        ending: Ending = (named ENDINGS);
        /// Bytes the output queue holds; without it the queue is never full.
        queue_bytes: u32 = (number 76 0xffff_ffff);
        /// Bytes that leave the queue in 1024 cycles.
        queue_drain: u32 = (number 1 0xffff_ffff);
        /// The hart waits when the queue is full.
        queue_stall: bool = (boolean);
        /// What messages with a reserved or vendor-defined `TCODE` are to a
        /// decoder.
        other_tcodes: OtherTcodes = (named OTHER_TCODES);
        /// Those that the encoder is known to send.
        ignore_tcodes: Tcodes = (tcodes);
        /// The most halfwords or branches of one message that a decoder believes.
        max_expansion: u64 = (count);
    }
    sections {
        /// `[ntrace.registers]`: what the registers of the trace control
        /// interface hold. The other keys win.
        registers: Registers;
    }
}

section! {
    /// `[ntrace.registers]`. What is `None` is not said.
    #[allow(non_snake_case)] // the names are the specification's
    #[allow(missing_docs)]
    Registers = "[ntrace.registers]" {
        trTeControl: u32 = (register);
        trTeImpl: u32 = (register);
        trTeInstFeatures: u32 = (register);
        trTsControl: u32 = (register);
        trTeTrigExtInControl: u32 = (register);
    }
}

impl Registers {
    /// Puts what the registers say into `config`; those that are not given
    /// are as `config` has them.
    fn apply(&self, config: &mut Config) -> Result<(), RegisterError> {
        if *self == Registers::default() {
            return Ok(());
        }
        let mut all = hartrace_ntrace::Registers::of(config);
        set(&mut all.control.0, &self.trTeControl);
        set(&mut all.impl_.0, &self.trTeImpl);
        set(&mut all.inst_features.0, &self.trTeInstFeatures);
        set(&mut all.ts_control.0, &self.trTsControl);
        set(&mut all.trig_ext_in, &self.trTeTrigExtInControl);
        all.apply(config)
    }
}

impl Reader {
    fn register(&mut self, name: &'static str, value: &Value<'_>) -> Option<u32> {
        self.number(name, value, 0..=0xffff_ffff)
    }

    /// Bits of a counter; 0 or "unlimited" for one that is never full.
    fn width(&mut self, name: &'static str, value: &Value<'_>, most: u64) -> Option<u8> {
        if value.get_ref().as_str() == Some("unlimited") {
            return Some(0);
        }
        let width = integer(value).filter(|&n| n <= most && (n != 1 || most > 22));
        match width.and_then(|n| u8::try_from(n).ok()) {
            Some(width) => Some(width),
            None => {
                let least = if most > 22 { 1 } else { 2 };
                let expected = format!("a number from {least} to {most}, or \"unlimited\"");
                self.refuse(name, value, &expected)
            }
        }
    }

    fn actions(&mut self, name: &'static str, value: &Value<'_>) -> Option<[TriggerAction; 8]> {
        let given = self.list(name, value, "actions", |r, n, v| r.one_of(n, v, ACTIONS))?;
        if given.len() > 8 {
            return self.refuse(name, value, "at most eight actions, one for each input");
        }
        let mut actions = [TriggerAction::None; 8];
        for (action, given) in actions.iter_mut().zip(given) {
            *action = given;
        }
        Some(actions)
    }

    /// Types of messages that the specification does not define.
    fn tcodes(&mut self, name: &'static str, value: &Value<'_>) -> Option<Tcodes> {
        let codes = self.list(name, value, "numbers from 1 to 63", |r, n, v| {
            r.number::<u8>(n, v, 1..=63).map(Tcode)
        })?;
        if let Some(known) = codes.iter().find(|tcode| tcode.name().is_some()) {
            let expected = format!("reserved or vendor-defined TCODEs; {} is {known}", known.0);
            return self.refuse(name, value, &expected);
        }
        Some(codes.into_iter().collect())
    }
}

impl Ntrace {
    /// The settings for a hart of this width, defaults included.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together, and registers that are not
    /// those of an N-Trace encoder.
    pub fn settings(&self, xlen: Xlen) -> Result<Config, RegisterError> {
        let mut config = Config::new(value(&self.version, Version::default()), xlen);
        self.registers.apply(&mut config)?;
        self.apply_flow(&mut config);
        self.apply_encoder(&mut config);
        config.validate().map_err(RegisterError::Config)?;
        Ok(config)
    }

    /// What decoders need too.
    fn apply_flow(&self, config: &mut Config) {
        set(&mut config.mode, &self.mode);
        set(&mut config.src_bits, &self.src_bits);
        set(&mut config.src_id, &self.src_id);
        set(&mut config.context, &self.context);
        set(&mut config.hcontext, &self.hcontext);
        set(&mut config.extend_addr_msb, &self.extend_addr_msb);
        set(&mut config.sequential_jump, &self.sequential_jump);
        set(&mut config.implicit_return, &self.implicit_return);
        if let ImplicitReturn::Partial(bits) = &mut config.implicit_return {
            *bits = value(&self.implicit_return_bits, PARTIAL_BITS);
        }
        set(&mut config.markers_keep_stack, &self.markers_keep_stack);
        set(&mut config.all_jumps, &self.all_jumps);
        set(&mut config.retires, &self.retires);
        set(&mut config.max_expansion, &self.max_expansion);
        set(&mut config.other_tcodes, &self.other_tcodes);
        set(&mut config.ignore_tcodes, &self.ignore_tcodes);
        let stamps = config.timestamps.unwrap_or_default();
        config.timestamps =
            value(&self.timestamps, config.timestamps.is_some()).then(|| Timestamps {
                width: value(&self.timestamp_width, stamps.width),
                prescale: value(&self.timestamp_prescale, stamps.prescale),
                sync_only: value(&self.timestamp_sync_only, stamps.sync_only),
            });
    }

    /// What only encoders need.
    fn apply_encoder(&self, config: &mut Config) {
        set(&mut config.icnt_bits, &self.icnt_bits);
        set(&mut config.icnt_full, &self.icnt_full);
        set(&mut config.hist_bits, &self.hist_bits);
        set(&mut config.short_indirect, &self.short_indirect);
        set(&mut config.periodic.unit, &self.sync);
        set(&mut config.periodic.max, &self.sync_max);
        set(&mut config.periodic.delayed, &self.sync_delayed);
        set(&mut config.trap_types, &self.trap_types);
        set(&mut config.stack_depth, &self.stack_depth);
        set(&mut config.stack_kind, &self.stack_kind);
        set(&mut config.repeated_history, &self.repeated_history);
        set(&mut config.hrepeat_bits, &self.hrepeat_bits);
        set(&mut config.repeat_branch, &self.repeat_branch);
        set(&mut config.bcnt_bits, &self.bcnt_bits);
        set(&mut config.triggers, &self.triggers);
        set(&mut config.external, &self.external);
        set(&mut config.starts_disabled, &self.starts_disabled);
        config.first_sync = Sync(value(&self.first_sync, config.first_sync.0));
        config.last_event = Evcode(value(&self.last_event, config.last_event.0));
        set(&mut config.ending, &self.ending);
        config.queue = queue(&self.queue_bytes, &self.queue_drain, &self.queue_stall);
    }

    /// The same with every setting said, as in `config`, which was made of it.
    #[must_use]
    pub fn completed(self, config: &Config) -> Ntrace {
        self.over(Ntrace::of(config))
    }

    /// Every setting of a configuration, as a default.
    #[must_use]
    pub fn of(config: &Config) -> Ntrace {
        let stamps = config.timestamps;
        let (implicit_return, bits) = match config.implicit_return {
            ImplicitReturn::Partial(bits) => (PARTIAL, some(bits)),
            other => (other, None),
        };
        Ntrace {
            version: some(config.version),
            mode: some(config.mode),
            src_bits: some(config.src_bits),
            src_id: some(config.src_id),
            icnt_bits: some(config.icnt_bits),
            icnt_full: some(config.icnt_full),
            hist_bits: some(config.hist_bits),
            short_indirect: some(config.short_indirect),
            sync: some(config.periodic.unit),
            sync_max: some(config.periodic.max),
            sync_delayed: some(config.periodic.delayed),
            trap_types: some(config.trap_types),
            context: some(config.context),
            hcontext: some(config.hcontext),
            timestamps: some(stamps.is_some()),
            timestamp_width: stamps.and_then(|t| some(t.width)),
            timestamp_prescale: stamps.and_then(|t| some(t.prescale)),
            timestamp_sync_only: stamps.and_then(|t| some(t.sync_only)),
            extend_addr_msb: some(config.extend_addr_msb),
            sequential_jump: some(config.sequential_jump),
            implicit_return: some(implicit_return),
            implicit_return_bits: bits,
            stack_depth: some(config.stack_depth),
            stack_kind: some(config.stack_kind),
            markers_keep_stack: some(config.markers_keep_stack),
            repeated_history: some(config.repeated_history),
            hrepeat_bits: some(config.hrepeat_bits),
            repeat_branch: some(config.repeat_branch),
            bcnt_bits: some(config.bcnt_bits),
            all_jumps: some(config.all_jumps),
            retires: some(config.retires),
            triggers: some(config.triggers),
            external: some(config.external),
            starts_disabled: some(config.starts_disabled),
            first_sync: some(config.first_sync.0),
            last_event: some(config.last_event.0),
            ending: some(config.ending),
            queue_bytes: config.queue.and_then(|q| some(q.bytes)),
            queue_drain: config.queue.and_then(|q| some(q.drain)),
            queue_stall: config.queue.and_then(|q| some(q.stall)),
            other_tcodes: some(config.other_tcodes),
            ignore_tcodes: some(config.ignore_tcodes),
            max_expansion: some(config.max_expansion),
            registers: Registers::default(),
        }
    }
}

fn register(value: &u32) -> String {
    format!("{value:#x}")
}

fn tcodes(tcodes: &Tcodes) -> String {
    let codes: Vec<String> = tcodes.iter().map(|tcode| tcode.0.to_string()).collect();
    format!("[{}]", codes.join(", "))
}

fn actions(actions: &[TriggerAction; 8]) -> String {
    format!(
        "[{}]",
        actions.map(|a| quote(name_of(ACTIONS, &a))).join(", ")
    )
}

#[cfg(test)]
mod tests;
