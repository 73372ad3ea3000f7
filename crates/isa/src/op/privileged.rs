//! Privileged instructions. Trap returns, fences, Svinval, the hypervisor
//! extension and control transfer records.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands.

macro_rules! privileged_ops {
    ([$then:ident $($more:ident)*] $($rows:tt)*) => {
        $then! { [$($more)*] $($rows)*
            // Trap returns, fences and waiting.
            Uret "uret" any 0xffffffff 0x00200073 [I] None;
            Sret "sret" any 0xffffffff 0x10200073 [I] None;
            Mret "mret" any 0xffffffff 0x30200073 [I] None;
            Dret "dret" any 0xffffffff 0x7b200073 [I] None;
            SfenceVma "sfence.vma" any 0xfe007fff 0x12000073 [I] Fences;
            Wfi "wfi" any 0xffffffff 0x10500073 [I] None;
            // Smrnmi. ISA strings seldom name it, so the base suffices; as does Flow::of.
            Mnret "mnret" any 0xffffffff 0x70200073 [I] None;
            // Svinval.
            SinvalVma "sinval.vma" any 0xfe007fff 0x16000073 [Svinval] Fences;
            SfenceWInval "sfence.w.inval" any 0xffffffff 0x18000073 [Svinval] None;
            SfenceInvalIr "sfence.inval.ir" any 0xffffffff 0x18100073 [Svinval] None;
            HinvalVvma "hinval.vvma" any 0xfe007fff 0x26000073 [Svinval] Fences;
            HinvalGvma "hinval.gvma" any 0xfe007fff 0x66000073 [Svinval] Fences;
            // H.
            HfenceVvma "hfence.vvma" any 0xfe007fff 0x22000073 [H] Fences;
            HfenceGvma "hfence.gvma" any 0xfe007fff 0x62000073 [H] Fences;
            HlvB "hlv.b" any 0xfff0707f 0x60004073 [H] LoadReg;
            HlvBu "hlv.bu" any 0xfff0707f 0x60104073 [H] LoadReg;
            HlvH "hlv.h" any 0xfff0707f 0x64004073 [H] LoadReg;
            HlvHu "hlv.hu" any 0xfff0707f 0x64104073 [H] LoadReg;
            HlvxHu "hlvx.hu" any 0xfff0707f 0x64304073 [H] LoadReg;
            HlvW "hlv.w" any 0xfff0707f 0x68004073 [H] LoadReg;
            HlvWu "hlv.wu" rv64 0xfff0707f 0x68104073 [H] LoadReg;
            HlvxWu "hlvx.wu" any 0xfff0707f 0x68304073 [H] LoadReg;
            HlvD "hlv.d" rv64 0xfff0707f 0x6c004073 [H] LoadReg;
            HsvB "hsv.b" any 0xfe007fff 0x62004073 [H] StoreReg;
            HsvH "hsv.h" any 0xfe007fff 0x66004073 [H] StoreReg;
            HsvW "hsv.w" any 0xfe007fff 0x6a004073 [H] StoreReg;
            HsvD "hsv.d" rv64 0xfe007fff 0x6e004073 [H] StoreReg;
            // Smctr or Ssctr.
            Sctrclr "sctrclr" any 0xffffffff 0x10400073 [Smctr | Ssctr] None;
        }
    };
}
