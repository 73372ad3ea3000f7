//! `[etrace.parameters]`: the parameters of an E-Trace encoder (chapter 9) that no
//! other key holds.

section! {
    /// `[etrace.parameters]`. What is `None` is not said. The parameters that packets
    /// depend on are keys of `[etrace]`, `[etrace.data]` and `[ingress]`.
    EtraceParameters = "[etrace.parameters]" {
        /// Version of the architecture specification.
        arch: u8 = (number 0 15);
        /// Width of the context bus where packets have no context.
        context_bus: u8 = (number 1 64);
        /// Width of the time bus where packets have no time.
        time_bus: u8 = (number 1 64);
        /// Number of comparators.
        comparators: u8 = (number 1 8);
        /// Number of filters.
        filters: u8 = (number 1 16);
        /// Bits of the exception cause that are matched by multiple choice.
        ecause_choice: u8 = (number 0 7);
        /// Filters can match the context.
        filter_context: bool = (boolean);
        /// Filters can match the time.
        filter_time: bool = (boolean);
        /// log2 of the nested exceptions that filters can match; 0 for none.
        filter_excint: u8 = (number 0 15);
        /// Filters can match the privilege mode.
        filter_privilege: bool = (boolean);
        /// Filters can match the trap value.
        filter_tval: bool = (boolean);
        /// Filters can match `impdef`.
        filter_impdef: bool = (boolean);
        /// Width of `ctype`.
        ctype_width: u8 = (number 1 32);
        /// Width of `ilastsize`.
        ilastsize_width: u8 = (number 1 128);
        /// Width of `itype` where it is not 3 or 4.
        itype_bus: u8 = (number 5 128);
        /// Width of `iretire`.
        iretire_width: u8 = (number 1 128);
        /// Largest number of instructions in a block.
        retires: u8 = (number 1 255);
        /// How often `iretire`, `itype` and the like are replicated.
        taken_branches: u8 = (number 1 255);
        /// Width of `impdef`.
        impdef_width: u8 = (number 1 255);
        /// Width of `dblock`.
        dblock_width: u8 = (number 1 255);
        /// Width of `dsize`.
        dsize_width: u8 = (number 1 255);
        /// Width of `dtype`.
        dtype_width: u8 = (number 1 255);
        /// Width of `iaddr_lsbs`.
        iaddr_lsbs_width: u8 = (number 1 255);
        /// Width of `lresp`.
        lresp_width: u8 = (number 1 255);
        /// Width of `ldata`.
        ldata_width: u8 = (number 1 255);
        /// Width of `sdata`.
        sdata_width: u8 = (number 1 255);
        /// Version of the discovery registers.
        version: u8 = (number 0 15);
        /// Minor revision of the discovery registers.
        minor_revision: u8 = (number 0 15);
    }
}
