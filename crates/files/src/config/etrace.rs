//! `[etrace]`: settings of the E-Trace encoder, as far as a decoder needs them
//! too.

mod data;
mod encapsulation;
mod parameters;

pub use data::EtraceData;
pub use encapsulation::EtraceEncapsulation;
pub use parameters::EtraceParameters;

use super::read::{Reader, Value, integer};
use super::section::{Section as _, queue, set, some, value};
use super::value::{Named, name_of};
use super::write::{self, quote};
use hartrace_etrace::{
    Config, ConfigError, Encapsulation, Ending, IdleIrdepth, Ioption, Ioptions, NotifyBit, Padding,
    ResyncRule, ResyncUnit, ReturnRule, Shortening, UpdisconRule, Version,
};
use hartrace_isa::Xlen;

const VERSIONS: Named<Version> = &[
    ("2.0", Version::V2_0),
    ("2.05", Version::V2_05),
    ("1.1.1-draft", Version::V1_1_1),
];
const IOPTIONS: Named<Option<Ioption>> = &[
    ("sequential-jump", Some(Ioption::SequentialJump)),
    ("implicit-return", Some(Ioption::ImplicitReturn)),
    ("implicit-exception", Some(Ioption::ImplicitException)),
    ("branch-prediction", Some(Ioption::BranchPrediction)),
    ("jump-target-cache", Some(Ioption::JumpTargetCache)),
    ("full-address", Some(Ioption::FullAddress)),
    ("delta-address", Some(Ioption::DeltaAddress)),
    ("resync-disabled", Some(Ioption::ResyncDisabled)),
    (
        "implicit-return-extension",
        Some(Ioption::ImplicitReturnExtension),
    ),
    ("reserved", None),
];
const RESYNC_UNITS: Named<ResyncUnit> = &[
    ("off", ResyncUnit::Off),
    ("packets", ResyncUnit::Packets),
    ("cycles", ResyncUnit::Cycles),
    ("halfwords", ResyncUnit::Halfwords),
];
const RESYNC_RULES: Named<ResyncRule> = &[
    ("settled", ResyncRule::Settled),
    ("exceeded", ResyncRule::Exceeded),
];
const ENDINGS: Named<Ending> = &[
    ("reported", Ending::Reported),
    ("reference", Ending::Reference),
    // The name in sidecars of 0.1.
    ("told", Ending::Reported),
];
const UPDISCON: Named<UpdisconRule> = &[
    ("followed", UpdisconRule::Followed),
    ("next-row", UpdisconRule::NextRow),
];

const RETURN_RULES: Named<ReturnRule> = &[
    ("settled", ReturnRule::Settled),
    ("specification", ReturnRule::Specification),
];

const IDLE: Named<IdleIrdepth> = &[
    ("repeated", IdleIrdepth::Repeated),
    ("ones", IdleIrdepth::Ones),
];

/// Settings of a known encoder, which the other keys change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The defaults of the version.
    #[default]
    Specification,
    /// The PULP tracer, pulp-platform/rv_tracer.
    Pulp,
}

const PROFILES: Named<Profile> = &[
    ("specification", Profile::Specification),
    ("pulp-rv-tracer", Profile::Pulp),
];

const SHORTENINGS: Named<Shortening> = &[
    ("packet", Shortening::Packet),
    ("address", Shortening::Address),
];

const PADDINGS: Named<Padding> = &[("sign", Padding::Sign), ("ignored", Padding::Ignored)];

const NOTIFY_BITS: Named<NotifyBit> = &[
    ("address", NotifyBit::Address),
    ("unused", NotifyBit::Unused),
];

section! {
    /// `[etrace]`. What is `None` is not said.
    Etrace = "[etrace]" {
        /// Settings of a known encoder, which the other keys change.
        profile: Profile = (named PROFILES);
        /// Which text.
        version: Version = (named VERSIONS);
        /// Bits of an address that are traced; without it all of them.
        iaddress_width: u8 = (number 8 64);
        /// Low bits of an address that are not.
        iaddress_lsb: u8 = (number 0 2);
        /// Width of `privilege`.
        privilege_width: u8 = (number 2 4);
        /// Width of `context`; 0 for no such field.
        context_width: u8 = (number 0 64);
        /// Width of `time`; 0 for no such field.
        time_width: u8 = (number 0 64);
        /// Width of `ecause`.
        ecause_width: u8 = (number 1 64);
        /// Width of `subformat` in format 0.
        f0s_width: u8 = (number 0 2);
        /// log2 of the entries of the branch predictor; 0 for none.
        bpred_size: u8 = (number 0 15);
        /// log2 of the entries of the jump target cache; 0 for none.
        cache_size: u8 = (number 0 15);
        /// Bits of the call counter; 0 for none.
        call_counter_size: u8 = (number 0 15);
        /// log2 of the entries of the return stack; 0 for none.
        return_stack_size: u8 = (number 0 15);
        /// Width of `encoder_mode`.
        encoder_mode_width: u8 = (number 0 8);
        /// The meaning of the bits of `ioptions`, lowest first.
        ioptions: Ioptions = (ioptions);
        /// Width of `doptions`, if support packets report data trace.
        doptions_width: Option<u8> = (doptions);
        /// What compression leaves out of a packet.
        shortening: Shortening = (named SHORTENINGS);
        /// What the bits after the last field are.
        padding: Padding = (named PADDINGS);
        /// What `notify` is compared with.
        notify_bit: NotifyBit = (named NOTIFY_BITS);
        /// Trap packets of interrupts have `tval` too.
        interrupt_tval: bool = (boolean);
        /// A start packet may repeat the instruction of the packet before it.
        resync_repeats: bool = (boolean);
        /// Addresses are full, not differences.
        full_address: bool = (boolean);
        /// Targets of sequentially inferable jumps are left out.
        sijump: bool = (boolean);
        /// Those of returns too; by default as `[ingress]` says.
        sijump_returns: bool = (boolean);
        /// Targets of returns are left out where they are those of the calls.
        implicit_return: bool = (boolean);
        /// Packets have `irets`, not `irdepth`.
        iret_ext: bool = (boolean);
        /// How an encoder of `irdepth` avoids ambiguous packets.
        return_rule: ReturnRule = (named RETURN_RULES);
        /// Handler addresses are left out where they are known.
        implicit_exception: bool = (boolean);
        /// Trap vector of machine mode, as in the register.
        mtvec: u64 = (address);
        /// That of supervisor mode.
        stvec: u64 = (address);
        /// That of virtual supervisor mode.
        vstvec: u64 = (address);
        /// Branches that were predicted are counted.
        branch_prediction: bool = (boolean);
        /// A packet with a greater `branch_count` is damaged.
        max_branch_count: u32 = (number 0 0xffff_ffff);
        /// Jump targets may be reported by their index in the cache.
        jump_target_cache: bool = (boolean);
        /// What the resync counter counts.
        resync: ResyncUnit = (named RESYNC_UNITS);
        /// One synchronisation every 2^(n+4).
        resync_max: u8 = (number 0 27);
        /// Where it comes.
        resync_rule: ResyncRule = (named RESYNC_RULES);
        /// Debug triggers control tracing.
        triggers: bool = (boolean);
        /// Tracing waits for a trigger.
        starts_disabled: bool = (boolean);
        /// What the trace ends with.
        ending: Ending = (named ENDINGS);
        /// What `irdepth` holds while it says nothing.
        idle_irdepth: IdleIrdepth = (named IDLE);
        /// When `updiscon` is reported.
        updiscon: UpdisconRule = (named UPDISCON);
        /// Bytes the output queue holds; without it the queue is never full.
        queue_bytes: u32 = (number 64 0xffff_ffff);
        /// Bytes that leave the queue in 1024 cycles.
        queue_drain: u32 = (number 1 0xffff_ffff);
        /// The hart waits when the queue is full.
        queue_stall: bool = (boolean);
    }
    sections {
        /// `[etrace.data]`: data trace.
        data: EtraceData;
        /// `[etrace.encapsulation]`: how packets are encapsulated.
        encapsulation: EtraceEncapsulation;
        /// `[etrace.parameters]`: parameters that no other key holds.
        parameters: EtraceParameters;
    }
}

impl Reader {
    fn ioptions(&mut self, name: &'static str, value: &Value<'_>) -> Option<Ioptions> {
        let bits = self.list(name, value, "options", |r, n, v| r.one_of(n, v, IOPTIONS))?;
        let most = Ioptions::MOST;
        Ioptions::new(&bits)
            .or_else(|| self.refuse(name, value, &format!("at most {most} options")))
    }

    /// Bits of `doptions`, or that there is nothing about data trace.
    fn doptions(&mut self, name: &'static str, value: &Value<'_>) -> Option<Option<u8>> {
        if value.get_ref().as_str() == Some(NO_DATA) {
            return Some(None);
        }
        let width = integer(value).filter(|&n| n <= 16);
        match width.and_then(|n| u8::try_from(n).ok()) {
            Some(width) => Some(Some(width)),
            None => self.refuse(name, value, "a number from 0 to 16, or \"none\""),
        }
    }
}

const NO_DATA: &str = "none";

fn address(value: &u64) -> String {
    write::address(*value)
}

fn ioptions(ioptions: &Ioptions) -> String {
    let name = |bit| quote(name_of(IOPTIONS, bit));
    let names: Vec<String> = ioptions.order().iter().map(name).collect();
    format!("[{}]", names.join(", "))
}

fn doptions(width: &Option<u8>) -> String {
    width.map_or(quote(NO_DATA), |width| width.to_string())
}

impl Etrace {
    /// The settings for a hart of this width, defaults included.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn settings(&self, xlen: Xlen) -> Result<Config, ConfigError> {
        let version = value(&self.version, Version::default());
        let mut config = match value(&self.profile, Profile::default()) {
            Profile::Specification => Config::new(version, xlen),
            Profile::Pulp => Config {
                version,
                ..Config::pulp(xlen)
            },
        };
        config.encapsulation = self.form();
        self.apply_layout(&mut config);
        self.apply_encoder(&mut config);
        let width = config.iaddress_width;
        config.data = self.data.settings(config.version, xlen, width);
        config.validate()?;
        Ok(config)
    }

    /// How packets are encapsulated, as far as it is given.
    #[must_use]
    pub fn form(&self) -> Encapsulation {
        let base = match value(&self.profile, Profile::default()) {
            Profile::Specification => Encapsulation::default(),
            Profile::Pulp => Config::pulp(Xlen::Rv64).encapsulation,
        };
        self.encapsulation.settings(base)
    }

    /// What decoders need too.
    fn apply_layout(&self, config: &mut Config) {
        set(&mut config.iaddress_width, &self.iaddress_width);
        set(&mut config.iaddress_lsb, &self.iaddress_lsb);
        set(&mut config.privilege_width, &self.privilege_width);
        set(&mut config.context_width, &self.context_width);
        set(&mut config.time_width, &self.time_width);
        set(&mut config.ecause_width, &self.ecause_width);
        set(&mut config.bpred_size, &self.bpred_size);
        set(&mut config.cache_size, &self.cache_size);
        // Two kinds of format 0 need the field.
        config.f0s_width = u8::from(config.bpred_size > 0 && config.cache_size > 0);
        set(&mut config.f0s_width, &self.f0s_width);
        set(&mut config.call_counter_size, &self.call_counter_size);
        set(&mut config.return_stack_size, &self.return_stack_size);
        set(&mut config.encoder_mode_width, &self.encoder_mode_width);
        set(&mut config.ioptions, &self.ioptions);
        set(&mut config.doptions_width, &self.doptions_width);
        set(&mut config.shortening, &self.shortening);
        set(&mut config.padding, &self.padding);
        set(&mut config.notify_bit, &self.notify_bit);
        set(&mut config.interrupt_tval, &self.interrupt_tval);
        set(&mut config.resync_repeats, &self.resync_repeats);
        set(&mut config.full_address, &self.full_address);
        set(&mut config.sijump, &self.sijump);
        set(&mut config.sijump_returns, &self.sijump_returns);
        set(&mut config.implicit_return, &self.implicit_return);
        set(&mut config.iret_ext, &self.iret_ext);
        set(&mut config.return_rule, &self.return_rule);
        set(&mut config.implicit_exception, &self.implicit_exception);
        set(&mut config.branch_prediction, &self.branch_prediction);
        set(&mut config.max_branch_count, &self.max_branch_count);
        set(&mut config.jump_target_cache, &self.jump_target_cache);
        let vectors = &mut config.trap_vectors;
        vectors.mtvec = self.mtvec.as_ref().map(|setting| setting.value);
        vectors.stvec = self.stvec.as_ref().map(|setting| setting.value);
        vectors.vstvec = self.vstvec.as_ref().map(|setting| setting.value);
    }

    /// What only encoders need.
    fn apply_encoder(&self, config: &mut Config) {
        set(&mut config.resync.unit, &self.resync);
        set(&mut config.resync.max, &self.resync_max);
        set(&mut config.resync.rule, &self.resync_rule);
        set(&mut config.triggers, &self.triggers);
        set(&mut config.starts_disabled, &self.starts_disabled);
        set(&mut config.ending, &self.ending);
        set(&mut config.idle_irdepth, &self.idle_irdepth);
        set(&mut config.updiscon, &self.updiscon);
        config.queue = queue(&self.queue_bytes, &self.queue_drain, &self.queue_stall);
    }

    /// The same with every setting said, as in `config`, which was made of it.
    #[must_use]
    pub fn completed(self, config: &Config) -> Etrace {
        self.over(Etrace::of(config))
    }

    /// Every setting of a configuration, as a default.
    #[must_use]
    pub fn of(config: &Config) -> Etrace {
        Etrace {
            profile: None,
            version: some(config.version),
            iaddress_width: some(config.iaddress_width),
            iaddress_lsb: some(config.iaddress_lsb),
            privilege_width: some(config.privilege_width),
            context_width: some(config.context_width),
            time_width: some(config.time_width),
            ecause_width: some(config.ecause_width),
            f0s_width: some(config.f0s_width),
            bpred_size: some(config.bpred_size),
            cache_size: some(config.cache_size),
            call_counter_size: some(config.call_counter_size),
            return_stack_size: some(config.return_stack_size),
            encoder_mode_width: some(config.encoder_mode_width),
            ioptions: some(config.ioptions),
            doptions_width: some(config.doptions_width),
            shortening: some(config.shortening),
            padding: some(config.padding),
            notify_bit: some(config.notify_bit),
            interrupt_tval: some(config.interrupt_tval),
            resync_repeats: some(config.resync_repeats),
            full_address: some(config.full_address),
            sijump: some(config.sijump),
            sijump_returns: some(config.sijump_returns),
            implicit_return: some(config.implicit_return),
            iret_ext: some(config.iret_ext),
            return_rule: some(config.return_rule),
            implicit_exception: some(config.implicit_exception),
            mtvec: config.trap_vectors.mtvec.and_then(some),
            stvec: config.trap_vectors.stvec.and_then(some),
            vstvec: config.trap_vectors.vstvec.and_then(some),
            branch_prediction: some(config.branch_prediction),
            max_branch_count: some(config.max_branch_count),
            jump_target_cache: some(config.jump_target_cache),
            resync: some(config.resync.unit),
            resync_max: some(config.resync.max),
            resync_rule: some(config.resync.rule),
            triggers: some(config.triggers),
            starts_disabled: some(config.starts_disabled),
            ending: some(config.ending),
            idle_irdepth: some(config.idle_irdepth),
            updiscon: some(config.updiscon),
            queue_bytes: config.queue.and_then(|q| some(q.bytes)),
            queue_drain: config.queue.and_then(|q| some(q.drain)),
            queue_stall: config.queue.and_then(|q| some(q.stall)),
            data: EtraceData::of(config.data.as_ref()),
            encapsulation: EtraceEncapsulation::of(&config.encapsulation),
            parameters: EtraceParameters::default(),
        }
    }
}

#[cfg(test)]
mod tests;
