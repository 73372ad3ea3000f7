//! Bit manipulation and scalar cryptography. Zba, Zbb, Zbs, Zbc, Zbkb, Zbkx
//! and Zkn/Zks.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands.

macro_rules! bits_ops {
    ([$then:ident $($more:ident)*] $($rows:tt)*) => {
        $then! { [$($more)*] $($rows)*
            // Zba.
            Sh1add "sh1add" any 0xfe00707f 0x20002033 [Zba] R;
            Sh2add "sh2add" any 0xfe00707f 0x20004033 [Zba] R;
            Sh3add "sh3add" any 0xfe00707f 0x20006033 [Zba] R;
            Sh1addUw "sh1add.uw" rv64 0xfe00707f 0x2000203b [Zba] R;
            Sh2addUw "sh2add.uw" rv64 0xfe00707f 0x2000403b [Zba] R;
            Sh3addUw "sh3add.uw" rv64 0xfe00707f 0x2000603b [Zba] R;
            AddUw "add.uw" rv64 0xfe00707f 0x0800003b [Zba] R;
            SlliUw "slli.uw" rv64 0xfc00707f 0x0800101b [Zba] Shift;
            // Zbb.
            Clz "clz" any 0xfff0707f 0x60001013 [Zbb] R1;
            Ctz "ctz" any 0xfff0707f 0x60101013 [Zbb] R1;
            Cpop "cpop" any 0xfff0707f 0x60201013 [Zbb] R1;
            Min "min" any 0xfe00707f 0x0a004033 [Zbb] R;
            Max "max" any 0xfe00707f 0x0a006033 [Zbb] R;
            Minu "minu" any 0xfe00707f 0x0a005033 [Zbb] R;
            Maxu "maxu" any 0xfe00707f 0x0a007033 [Zbb] R;
            SextB "sext.b" any 0xfff0707f 0x60401013 [Zbb] R1;
            SextH "sext.h" any 0xfff0707f 0x60501013 [Zbb] R1;
            OrcB "orc.b" any 0xfff0707f 0x28705013 [Zbb] R1;
            Clzw "clzw" rv64 0xfff0707f 0x6000101b [Zbb] R1;
            Ctzw "ctzw" rv64 0xfff0707f 0x6010101b [Zbb] R1;
            Cpopw "cpopw" rv64 0xfff0707f 0x6020101b [Zbb] R1;
            // Zbb or Zbkb.
            ZextH "zext.h" rv32 0xfff0707f 0x08004033 [Zbb | Zbkb] R1 also rv64 0xfff0707f 0x0800403b;
            Andn "andn" any 0xfe00707f 0x40007033 [Zbb | Zbkb] R;
            Orn "orn" any 0xfe00707f 0x40006033 [Zbb | Zbkb] R;
            Xnor "xnor" any 0xfe00707f 0x40004033 [Zbb | Zbkb] R;
            Rol "rol" any 0xfe00707f 0x60001033 [Zbb | Zbkb] R;
            Rori "rori" any 0xfc00707f 0x60005013 [Zbb | Zbkb] Shift;
            Ror "ror" any 0xfe00707f 0x60005033 [Zbb | Zbkb] R;
            Rev8 "rev8" rv32 0xfff0707f 0x69805013 [Zbb | Zbkb] R1 also rv64 0xfff0707f 0x6b805013;
            Rolw "rolw" rv64 0xfe00707f 0x6000103b [Zbb | Zbkb] R;
            Roriw "roriw" rv64 0xfe00707f 0x6000501b [Zbb | Zbkb] ShiftW;
            Rorw "rorw" rv64 0xfe00707f 0x6000503b [Zbb | Zbkb] R;
            // Zbs.
            Bclri "bclri" any 0xfc00707f 0x48001013 [Zbs] Shift;
            Bclr "bclr" any 0xfe00707f 0x48001033 [Zbs] R;
            Bseti "bseti" any 0xfc00707f 0x28001013 [Zbs] Shift;
            Bset "bset" any 0xfe00707f 0x28001033 [Zbs] R;
            Binvi "binvi" any 0xfc00707f 0x68001013 [Zbs] Shift;
            Binv "binv" any 0xfe00707f 0x68001033 [Zbs] R;
            Bexti "bexti" any 0xfc00707f 0x48005013 [Zbs] Shift;
            Bext "bext" any 0xfe00707f 0x48005033 [Zbs] R;
            // Zbc.
            Clmulr "clmulr" any 0xfe00707f 0x0a002033 [Zbc] R;
            // Zbc or Zbkc.
            Clmul "clmul" any 0xfe00707f 0x0a001033 [Zbc | Zbkc] R;
            Clmulh "clmulh" any 0xfe00707f 0x0a003033 [Zbc | Zbkc] R;
            // Zbkb.
            Brev8 "brev8" any 0xfff0707f 0x68705013 [Zbkb] R1;
            Zip "zip" rv32 0xfff0707f 0x08f01013 [Zbkb] R1;
            Unzip "unzip" rv32 0xfff0707f 0x08f05013 [Zbkb] R1;
            Pack "pack" any 0xfe00707f 0x08004033 [Zbkb] R;
            Packh "packh" any 0xfe00707f 0x08007033 [Zbkb] R;
            Packw "packw" rv64 0xfe00707f 0x0800403b [Zbkb] R;
            // Zbkx.
            Xperm4 "xperm4" any 0xfe00707f 0x28002033 [Zbkx] R;
            Xperm8 "xperm8" any 0xfe00707f 0x28004033 [Zbkx] R;
            // Zknd or Zkne.
            Aes64ks1i "aes64ks1i" rv64 0xff00707f 0x31001013 [Zknd | Zkne] Rnum;
            Aes64ks2 "aes64ks2" rv64 0xfe00707f 0x7e000033 [Zknd | Zkne] R;
            // Zkne.
            Aes32esi "aes32esi" rv32 0x3e00707f 0x22000033 [Zkne] Bs;
            Aes32esmi "aes32esmi" rv32 0x3e00707f 0x26000033 [Zkne] Bs;
            Aes64es "aes64es" rv64 0xfe00707f 0x32000033 [Zkne] R;
            Aes64esm "aes64esm" rv64 0xfe00707f 0x36000033 [Zkne] R;
            // Zknd.
            Aes32dsi "aes32dsi" rv32 0x3e00707f 0x2a000033 [Zknd] Bs;
            Aes32dsmi "aes32dsmi" rv32 0x3e00707f 0x2e000033 [Zknd] Bs;
            Aes64ds "aes64ds" rv64 0xfe00707f 0x3a000033 [Zknd] R;
            Aes64dsm "aes64dsm" rv64 0xfe00707f 0x3e000033 [Zknd] R;
            Aes64im "aes64im" rv64 0xfff0707f 0x30001013 [Zknd] R1;
            // Zknh.
            Sha256sig0 "sha256sig0" any 0xfff0707f 0x10201013 [Zknh] R1;
            Sha256sig1 "sha256sig1" any 0xfff0707f 0x10301013 [Zknh] R1;
            Sha256sum0 "sha256sum0" any 0xfff0707f 0x10001013 [Zknh] R1;
            Sha256sum1 "sha256sum1" any 0xfff0707f 0x10101013 [Zknh] R1;
            Sha512sig0h "sha512sig0h" rv32 0xfe00707f 0x5c000033 [Zknh] R;
            Sha512sig0l "sha512sig0l" rv32 0xfe00707f 0x54000033 [Zknh] R;
            Sha512sig1h "sha512sig1h" rv32 0xfe00707f 0x5e000033 [Zknh] R;
            Sha512sig1l "sha512sig1l" rv32 0xfe00707f 0x56000033 [Zknh] R;
            Sha512sum0r "sha512sum0r" rv32 0xfe00707f 0x50000033 [Zknh] R;
            Sha512sum1r "sha512sum1r" rv32 0xfe00707f 0x52000033 [Zknh] R;
            Sha512sig0 "sha512sig0" rv64 0xfff0707f 0x10601013 [Zknh] R1;
            Sha512sig1 "sha512sig1" rv64 0xfff0707f 0x10701013 [Zknh] R1;
            Sha512sum0 "sha512sum0" rv64 0xfff0707f 0x10401013 [Zknh] R1;
            Sha512sum1 "sha512sum1" rv64 0xfff0707f 0x10501013 [Zknh] R1;
            // Zksed.
            Sm4ed "sm4ed" any 0x3e00707f 0x30000033 [Zksed] Bs;
            Sm4ks "sm4ks" any 0x3e00707f 0x34000033 [Zksed] Bs;
            // Zksh.
            Sm3p0 "sm3p0" any 0xfff0707f 0x10801013 [Zksh] R1;
            Sm3p1 "sm3p1" any 0xfff0707f 0x10901013 [Zksh] R1;
        }
    };
}
