//! The registers, field by field (Trace Control Interface, chapters 7 and 8).

/// A field of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterField {
    /// Its name in the Trace Control Interface.
    pub name: &'static str,
    /// Its lowest bit.
    pub low: u8,
    /// Its width in bits.
    pub width: u8,
}

impl RegisterField {
    /// The bits of the register that are its.
    #[must_use]
    pub const fn mask(self) -> u32 {
        ((1 << self.width) - 1) << self.low
    }

    /// Its value.
    #[must_use]
    pub const fn get(self, register: u32) -> u32 {
        (register & self.mask()) >> self.low
    }

    /// The register with another value in it; bits that do not fit are
    /// dropped.
    #[must_use]
    pub const fn set(self, register: u32, value: u32) -> u32 {
        register & !self.mask() | value << self.low & self.mask()
    }
}

macro_rules! register {
    (
        $(#[$doc:meta])* $name:ident = $text:literal, $offset:literal;
        flags { $($(#[$flag_doc:meta])* $flag:ident $with_flag:ident $flag_text:literal $bit:literal;)* }
        fields { $($(#[$field_doc:meta])* $field:ident $with_field:ident $field_text:literal $low:literal $width:literal;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub u32);

        impl $name {
            #[doc = concat!("`", $text, "`.")]
            pub const NAME: &'static str = $text;
            /// Its place in the component's block of registers.
            pub const OFFSET: u32 = $offset;
            /// All its fields that are not reserved.
            pub const FIELDS: &'static [RegisterField] = &[
                $(RegisterField { name: $flag_text, low: $bit, width: 1 },)*
                $(RegisterField { name: $field_text, low: $low, width: $width },)*
            ];

            /// Its reserved bits.
            #[must_use]
            pub const fn reserved(self) -> u32 {
                self.0 & !(0 $(| 1 << $bit)* $(| ((1 << $width) - 1) << $low)*)
            }

            $(
                #[doc = concat!("`", $flag_text, "`:")]
                $(#[$flag_doc])*
                #[must_use]
                pub const fn $flag(self) -> bool {
                    self.0 >> $bit & 1 != 0
                }

                #[doc = concat!("With `", $flag_text, "` set or cleared.")]
                #[must_use]
                pub const fn $with_flag(self, value: bool) -> $name {
                    $name(self.0 & !(1 << $bit) | (value as u32) << $bit)
                }
            )*
            $(
                #[doc = concat!("`", $field_text, "`:")]
                $(#[$field_doc])*
                #[must_use]
                pub const fn $field(self) -> u32 {
                    RegisterField { name: $field_text, low: $low, width: $width }.get(self.0)
                }

                #[doc = concat!("With another `", $field_text, "`.")]
                #[must_use]
                pub const fn $with_field(self, value: u32) -> $name {
                    $name(RegisterField { name: $field_text, low: $low, width: $width }.set(self.0, value))
                }
            )*
        }
    };
}

register! {
    /// What the encoder does.
    TeControl = "trTeControl", 0x000;
    flags {
        /// out of reset.
        active with_active "trTeActive" 0;
        /// tracing can be turned on; 0 flushes what is queued.
        enable with_enable "trTeEnable" 1;
        /// instructions are traced; triggers change it too.
        inst_tracing with_inst_tracing "trTeInstTracing" 2;
        /// all messages have left; read only.
        empty with_empty "trTeEmpty" 3;
        /// Ownership messages.
        context with_context "trTeContext" 9;
        /// debug triggers start and stop tracing.
        inst_trig_enable with_inst_trig_enable "trTeInstTrigEnable" 11;
        /// the queue was full; written 1 to clear.
        inst_stall_or_overflow with_inst_stall_or_overflow "trTeInstStallOrOverflow" 12;
        /// the hart waits when the queue is full.
        inst_stall_ena with_inst_stall_ena "trTeInstStallEna" 13;
        /// messages have no `SRC`.
        inhibit_src with_inhibit_src "trTeInhibitSrc" 15;
    }
    fields {
        /// 0 off, 3 BTM, 6 HTM, 7 a vendor's.
        inst_mode with_inst_mode "trTeInstMode" 4 3;
        /// periodic sync: 0 off, 1 messages, 2 cycles, 3 halfwords.
        inst_sync_mode with_inst_sync_mode "trTeInstSyncMode" 16 2;
        /// one sync every 2^(n+4) of them.
        inst_sync_max with_inst_sync_max "trTeInstSyncMax" 20 4;
        /// 0 E-Trace, 1 N-Trace, 7 a vendor's.
        format with_format "trTeFormat" 24 3;
    }
}

register! {
    /// What the encoder is; read only.
    TeImpl = "trTeImpl", 0x004;
    flags {}
    fields {
        /// version of the control interface, 1; 0 before it was ratified.
        ver_major with_ver_major "trTeVerMajor" 0 4;
        /// its minor version.
        ver_minor with_ver_minor "trTeVerMinor" 4 4;
        /// 1, an encoder.
        comp_type with_comp_type "trTeCompType" 8 4;
        /// version of N-Trace, 1.
        protocol_major with_protocol_major "trTeProtocolMajor" 16 4;
        /// its minor version.
        protocol_minor with_protocol_minor "trTeProtocolMinor" 20 4;
        /// a vendor's own bits.
        vendor with_vendor "vendor" 24 8;
    }
}

register! {
    /// What the encoder leaves out, and who it is.
    TeInstFeatures = "trTeInstFeatures", 0x008;
    flags {
        /// full addresses always; not in N-Trace.
        no_addr_diff with_no_addr_diff "trTeInstNoAddrDiff" 0;
        /// traps without address; not in N-Trace.
        no_trap_addr with_no_trap_addr "trTeInstNoTrapAddr" 1;
        /// jumps whose target is loaded just before are left out.
        en_sequential_jump with_en_sequential_jump "trTeInstEnSequentialJump" 2;
        /// returns to their call are left out.
        en_implicit_return with_en_implicit_return "trTeInstEnImplicitReturn" 3;
        /// branch prediction; not in N-Trace.
        en_branch_prediction with_en_branch_prediction "trTeInstEnBranchPrediction" 4;
        /// jump target cache; not in N-Trace.
        en_jump_target_cache with_en_jump_target_cache "trTeInstEnJumpTargetCache" 5;
        /// repetitions in the history are counted.
        en_repeated_history with_en_repeated_history "trTeInstEnRepeatedHistory" 8;
        /// direct jumps and calls count as taken branches.
        en_all_jumps with_en_all_jumps "trTeInstEnAllJumps" 9;
        /// equal upper bits of addresses are left out.
        extend_addr_msb with_extend_addr_msb "trTeInstExtendAddrMSB" 10;
    }
    fields {
        /// 0 not specified, 1 count, 2 part of the address, 3 full address.
        implicit_return_mode with_implicit_return_mode "trTeInstImplicitReturnMode" 6 2;
        /// value of `SRC`.
        src_id with_src_id "trTeSrcID" 16 12;
        /// width of `SRC`, 0 to 12.
        src_bits with_src_bits "trTeSrcBits" 28 4;
    }
}

register! {
    /// Timestamps.
    TsControl = "trTsControl", 0x040;
    flags {
        /// out of reset.
        active with_active "trTsActive" 0;
        /// an internal counter runs.
        count with_count "trTsCount" 1;
        /// written 1 to set the counter to 0.
        reset with_reset "trTsReset" 2;
        /// the counter runs in debug mode too.
        run_in_debug with_run_in_debug "trTsRunInDebug" 3;
        /// messages have `TSTAMP`.
        enable with_enable "trTsEnable" 15;
    }
    fields {
        /// 0 none, 1 external, 2 internal with the system's clock, 3 internal
        /// with the hart's, 4 shared, 5 to 7 a vendor's.
        mode with_mode "trTsMode" 4 3;
        /// one tick every 4^n clocks.
        prescale with_prescale "trTsPrescale" 8 2;
        /// a vendor's choice of messages with `TSTAMP`.
        vendor with_vendor "vendor" 16 8;
        /// bits of the counter, at most 63; read only.
        width with_width "trTsWidth" 24 6;
    }
}
