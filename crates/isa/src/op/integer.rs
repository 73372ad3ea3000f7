//! Base integer instructions and their small companions. RV32I, RV64I, M,
//! Zicsr, Zifencei, Zicond, the hints, cache-block operations,
//! may-be-operations and control-flow integrity.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands.

macro_rules! integer_ops {
    ([$then:ident $($more:ident)*] $($rows:tt)*) => {
        $then! { [$($more)*] $($rows)*
            // Base integer instructions.
            Lui "lui" any 0x0000007f 0x00000037 [I] U;
            Auipc "auipc" any 0x0000007f 0x00000017 [I] U;
            Jal "jal" any 0x0000007f 0x0000006f [I] J;
            Jalr "jalr" any 0x0000707f 0x00000067 [I] Jalr;
            Beq "beq" any 0x0000707f 0x00000063 [I] B;
            Bne "bne" any 0x0000707f 0x00001063 [I] B;
            Blt "blt" any 0x0000707f 0x00004063 [I] B;
            Bge "bge" any 0x0000707f 0x00005063 [I] B;
            Bltu "bltu" any 0x0000707f 0x00006063 [I] B;
            Bgeu "bgeu" any 0x0000707f 0x00007063 [I] B;
            Lb "lb" any 0x0000707f 0x00000003 [I] Load;
            Lh "lh" any 0x0000707f 0x00001003 [I] Load;
            Lw "lw" any 0x0000707f 0x00002003 [I] Load;
            Lbu "lbu" any 0x0000707f 0x00004003 [I] Load;
            Lhu "lhu" any 0x0000707f 0x00005003 [I] Load;
            Sb "sb" any 0x0000707f 0x00000023 [I] Store;
            Sh "sh" any 0x0000707f 0x00001023 [I] Store;
            Sw "sw" any 0x0000707f 0x00002023 [I] Store;
            Addi "addi" any 0x0000707f 0x00000013 [I] I;
            Slti "slti" any 0x0000707f 0x00002013 [I] I;
            Sltiu "sltiu" any 0x0000707f 0x00003013 [I] I;
            Xori "xori" any 0x0000707f 0x00004013 [I] I;
            Ori "ori" any 0x0000707f 0x00006013 [I] I;
            Andi "andi" any 0x0000707f 0x00007013 [I] I;
            Slli "slli" any 0xfc00707f 0x00001013 [I] Shift;
            Srli "srli" any 0xfc00707f 0x00005013 [I] Shift;
            Srai "srai" any 0xfc00707f 0x40005013 [I] Shift;
            Add "add" any 0xfe00707f 0x00000033 [I] R;
            Sub "sub" any 0xfe00707f 0x40000033 [I] R;
            Sll "sll" any 0xfe00707f 0x00001033 [I] R;
            Slt "slt" any 0xfe00707f 0x00002033 [I] R;
            Sltu "sltu" any 0xfe00707f 0x00003033 [I] R;
            Xor "xor" any 0xfe00707f 0x00004033 [I] R;
            Srl "srl" any 0xfe00707f 0x00005033 [I] R;
            Sra "sra" any 0xfe00707f 0x40005033 [I] R;
            Or "or" any 0xfe00707f 0x00006033 [I] R;
            And "and" any 0xfe00707f 0x00007033 [I] R;
            Fence "fence" any 0x0000707f 0x0000000f [I] Fence;
            FenceTso "fence.tso" any 0xffffffff 0x8330000f [I] None;
            Ecall "ecall" any 0xffffffff 0x00000073 [I] None;
            Ebreak "ebreak" any 0xffffffff 0x00100073 [I] None;
            Lwu "lwu" rv64 0x0000707f 0x00006003 [I] Load;
            Ld "ld" rv64 0x0000707f 0x00003003 [I] Load;
            Sd "sd" rv64 0x0000707f 0x00003023 [I] Store;
            Addiw "addiw" rv64 0x0000707f 0x0000001b [I] I;
            Slliw "slliw" rv64 0xfe00707f 0x0000101b [I] ShiftW;
            Srliw "srliw" rv64 0xfe00707f 0x0000501b [I] ShiftW;
            Sraiw "sraiw" rv64 0xfe00707f 0x4000501b [I] ShiftW;
            Addw "addw" rv64 0xfe00707f 0x0000003b [I] R;
            Subw "subw" rv64 0xfe00707f 0x4000003b [I] R;
            Sllw "sllw" rv64 0xfe00707f 0x0000103b [I] R;
            Srlw "srlw" rv64 0xfe00707f 0x0000503b [I] R;
            Sraw "sraw" rv64 0xfe00707f 0x4000503b [I] R;
            // Zifencei.
            FenceI "fence.i" any 0x0000707f 0x0000100f [Zifencei] None;
            // Zicsr.
            Csrrw "csrrw" any 0x0000707f 0x00001073 [Zicsr] Csr;
            Csrrs "csrrs" any 0x0000707f 0x00002073 [Zicsr] Csr;
            Csrrc "csrrc" any 0x0000707f 0x00003073 [Zicsr] Csr;
            Csrrwi "csrrwi" any 0x0000707f 0x00005073 [Zicsr] CsrI;
            Csrrsi "csrrsi" any 0x0000707f 0x00006073 [Zicsr] CsrI;
            Csrrci "csrrci" any 0x0000707f 0x00007073 [Zicsr] CsrI;
            // M, the part that is Zmmul.
            Mul "mul" any 0xfe00707f 0x02000033 [Zmmul] R;
            Mulh "mulh" any 0xfe00707f 0x02001033 [Zmmul] R;
            Mulhsu "mulhsu" any 0xfe00707f 0x02002033 [Zmmul] R;
            Mulhu "mulhu" any 0xfe00707f 0x02003033 [Zmmul] R;
            Mulw "mulw" rv64 0xfe00707f 0x0200003b [Zmmul] R;
            // M.
            Div "div" any 0xfe00707f 0x02004033 [M] R;
            Divu "divu" any 0xfe00707f 0x02005033 [M] R;
            Rem "rem" any 0xfe00707f 0x02006033 [M] R;
            Remu "remu" any 0xfe00707f 0x02007033 [M] R;
            Divw "divw" rv64 0xfe00707f 0x0200403b [M] R;
            Divuw "divuw" rv64 0xfe00707f 0x0200503b [M] R;
            Remw "remw" rv64 0xfe00707f 0x0200603b [M] R;
            Remuw "remuw" rv64 0xfe00707f 0x0200703b [M] R;
            // Zicond.
            CzeroEqz "czero.eqz" any 0xfe00707f 0x0e005033 [Zicond] R;
            CzeroNez "czero.nez" any 0xfe00707f 0x0e007033 [Zicond] R;
            // Zihintpause.
            Pause "pause" any 0xffffffff 0x0100000f [Zihintpause] None;
            // Zihintntl.
            NtlP1 "ntl.p1" any 0xffffffff 0x00200033 [Zihintntl] None;
            NtlPall "ntl.pall" any 0xffffffff 0x00300033 [Zihintntl] None;
            NtlS1 "ntl.s1" any 0xffffffff 0x00400033 [Zihintntl] None;
            NtlAll "ntl.all" any 0xffffffff 0x00500033 [Zihintntl] None;
            // Zicbom.
            CboInval "cbo.inval" any 0xfff07fff 0x0000200f [Zicbom] Block;
            CboClean "cbo.clean" any 0xfff07fff 0x0010200f [Zicbom] Block;
            CboFlush "cbo.flush" any 0xfff07fff 0x0020200f [Zicbom] Block;
            // Zicboz.
            CboZero "cbo.zero" any 0xfff07fff 0x0040200f [Zicboz] Block;
            // Zicbop.
            PrefetchI "prefetch.i" any 0x01f07fff 0x00006013 [Zicbop] Prefetch;
            PrefetchR "prefetch.r" any 0x01f07fff 0x00106013 [Zicbop] Prefetch;
            PrefetchW "prefetch.w" any 0x01f07fff 0x00306013 [Zicbop] Prefetch;
            // Zimop.
            MopR "mop.r" any 0xb3c0707f 0x81c04073 [Zimop] MopR;
            MopRr "mop.rr" any 0xb200707f 0x82004073 [Zimop] MopRr;
            // Zicfilp.
            Lpad "lpad" any 0x00000fff 0x00000017 [Zicfilp] Lpad;
            // Zicfiss.
            Sspopchk "sspopchk" any 0xfff07fff 0xcdc04073 [Zicfiss] Rs1;
            Ssrdp "ssrdp" any 0xfffff07f 0xcdc04073 [Zicfiss] Rd;
            Sspush "sspush" any 0xfe0fffff 0xce004073 [Zicfiss] Rs2;
        }
    };
}
