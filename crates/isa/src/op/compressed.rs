//! Compressed instructions: Zca, Zcf, Zcd, Zcb, Zcmop, Zcmp, Zcmt and the
//! compressed forms of Zihintntl and Zicfiss.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands, and
//! the op it expands to. Where two rows share encodings the narrower one stands
//! first: the first match counts.

macro_rules! short_rows {
    ($then:ident) => {
        $then! {
            // Quadrant 0.
            CUnimp "c.unimp" any 0xffff 0x0000 [Zca] None Unimp;
            CAddi4spn "c.addi4spn" any 0xe003 0x0000 [Zca] Addi4spn Addi;
            CFld "c.fld" any 0xe003 0x2000 [Zcd] LoadD Fld;
            CLw "c.lw" any 0xe003 0x4000 [Zca] LoadW Lw;
            CFlw "c.flw" rv32 0xe003 0x6000 [Zcf] LoadW Flw;
            CLd "c.ld" rv64 0xe003 0x6000 [Zca] LoadD Ld;
            CLbu "c.lbu" any 0xfc03 0x8000 [Zcb] LoadB Lbu;
            CLhu "c.lhu" any 0xfc43 0x8400 [Zcb] LoadH Lhu;
            CLh "c.lh" any 0xfc43 0x8440 [Zcb] LoadH Lh;
            CSb "c.sb" any 0xfc03 0x8800 [Zcb] StoreB Sb;
            CSh "c.sh" any 0xfc43 0x8c00 [Zcb] StoreH Sh;
            CFsd "c.fsd" any 0xe003 0xa000 [Zcd] StoreD Fsd;
            CSw "c.sw" any 0xe003 0xc000 [Zca] StoreW Sw;
            CFsw "c.fsw" rv32 0xe003 0xe000 [Zcf] StoreW Fsw;
            CSd "c.sd" rv64 0xe003 0xe000 [Zca] StoreD Sd;
            // Quadrant 1.
            CNop "c.nop" any 0xef83 0x0001 [Zca] Nop Addi;
            CAddi "c.addi" any 0xe003 0x0001 [Zca] AddImm Addi;
            CJal "c.jal" rv32 0xe003 0x2001 [Zca] JumpLink Jal;
            CAddiw "c.addiw" rv64 0xe003 0x2001 [Zca] AddImmW Addiw;
            CLi "c.li" any 0xe003 0x4001 [Zca] LoadImm Addi;
            CAddi16sp "c.addi16sp" any 0xef83 0x6101 [Zca] Addi16sp Addi;
            CSspush "c.sspush" any 0xffff 0x6081 [Zcmop Zicfiss] Sspush Sspush;
            CSspopchk "c.sspopchk" any 0xffff 0x6281 [Zcmop Zicfiss] Sspopchk Sspopchk;
            CMop "c.mop" any 0xf8ff 0x6081 [Zcmop] Mop CMop;
            CLui "c.lui" any 0xe003 0x6001 [Zca] LoadUpper Lui;
            CSrli "c.srli" any 0xec03 0x8001 [Zca] ShiftS Srli;
            CSrai "c.srai" any 0xec03 0x8401 [Zca] ShiftS Srai;
            CAndi "c.andi" any 0xec03 0x8801 [Zca] ImmS Andi;
            CSub "c.sub" any 0xfc63 0x8c01 [Zca] Arith Sub;
            CXor "c.xor" any 0xfc63 0x8c21 [Zca] Arith Xor;
            COr "c.or" any 0xfc63 0x8c41 [Zca] Arith Or;
            CAnd "c.and" any 0xfc63 0x8c61 [Zca] Arith And;
            CSubw "c.subw" rv64 0xfc63 0x9c01 [Zca] Arith Subw;
            CAddw "c.addw" rv64 0xfc63 0x9c21 [Zca] Arith Addw;
            CMul "c.mul" any 0xfc63 0x9c41 [Zcb Zmmul] Arith Mul;
            CZextB "c.zext.b" any 0xfc7f 0x9c61 [Zcb] ZextB Andi;
            CSextB "c.sext.b" any 0xfc7f 0x9c65 [Zcb Zbb] Unary SextB;
            CZextH "c.zext.h" any 0xfc7f 0x9c69 [Zcb Zbb] Unary ZextH;
            CSextH "c.sext.h" any 0xfc7f 0x9c6d [Zcb Zbb] Unary SextH;
            CZextW "c.zext.w" rv64 0xfc7f 0x9c71 [Zcb Zba] Unary AddUw;
            CNot "c.not" any 0xfc7f 0x9c75 [Zcb] Not Xori;
            CJ "c.j" any 0xe003 0xa001 [Zca] Jump Jal;
            CBeqz "c.beqz" any 0xe003 0xc001 [Zca] Branch Beq;
            CBnez "c.bnez" any 0xe003 0xe001 [Zca] Branch Bne;
            // Quadrant 2.
            CSlli "c.slli" any 0xe003 0x0002 [Zca] Shift Slli;
            CFldsp "c.fldsp" any 0xe003 0x2002 [Zcd] LoadSpD Fld;
            CLwsp "c.lwsp" any 0xe003 0x4002 [Zca] LoadSpWNz Lw;
            CFlwsp "c.flwsp" rv32 0xe003 0x6002 [Zcf] LoadSpW Flw;
            CLdsp "c.ldsp" rv64 0xe003 0x6002 [Zca] LoadSpDNz Ld;
            CJr "c.jr" any 0xf07f 0x8002 [Zca] Jr Jalr;
            CMv "c.mv" any 0xf003 0x8002 [Zca] Move Add;
            CEbreak "c.ebreak" any 0xffff 0x9002 [Zca] None Ebreak;
            CJalr "c.jalr" any 0xf07f 0x9002 [Zca] JalrLink Jalr;
            CNtlP1 "c.ntl.p1" any 0xffff 0x900a [Zihintntl Zca] None NtlP1;
            CNtlPall "c.ntl.pall" any 0xffff 0x900e [Zihintntl Zca] None NtlPall;
            CNtlS1 "c.ntl.s1" any 0xffff 0x9012 [Zihintntl Zca] None NtlS1;
            CNtlAll "c.ntl.all" any 0xffff 0x9016 [Zihintntl Zca] None NtlAll;
            CAdd "c.add" any 0xf003 0x9002 [Zca] Add Add;
            CmJt "cm.jt" any 0xff83 0xa002 [Zcmt] Table CmJt;
            CmJalt "cm.jalt" any 0xfc03 0xa002 [Zcmt] Table CmJalt;
            CmMvsa01 "cm.mvsa01" any 0xfc63 0xac22 [Zcmp] MovePair CmMvsa01;
            CmMva01s "cm.mva01s" any 0xfc63 0xac62 [Zcmp] MovePair CmMva01s;
            CmPush "cm.push" any 0xff03 0xb802 [Zcmp] Stack CmPush;
            CmPop "cm.pop" any 0xff03 0xba02 [Zcmp] Stack CmPop;
            CmPopretz "cm.popretz" any 0xff03 0xbc02 [Zcmp] Stack CmPopretz;
            CmPopret "cm.popret" any 0xff03 0xbe02 [Zcmp] Stack CmPopret;
            CFsdsp "c.fsdsp" any 0xe003 0xa002 [Zcd] StoreSpD Fsd;
            CSwsp "c.swsp" any 0xe003 0xc002 [Zca] StoreSpW Sw;
            CFswsp "c.fswsp" rv32 0xe003 0xe002 [Zcf] StoreSpW Fsw;
            CSdsp "c.sdsp" rv64 0xe003 0xe002 [Zca] StoreSpD Sd;
        }
    };
}
