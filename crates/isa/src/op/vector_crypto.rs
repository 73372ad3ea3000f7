//! Vector bit manipulation and cryptography: Zvbb, Zvbc and the Zvk extensions.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands.

macro_rules! vector_crypto_ops {
    ([$then:ident $($more:ident)*] $($rows:tt)*) => {
        $then! { [$($more)*] $($rows)*
            // Zvkb, a part of Zvbb.
            VandnVv "vandn.vv" any 0xfc00707f 0x04000057 [Zvkb] VV;
            VandnVx "vandn.vx" any 0xfc00707f 0x04004057 [Zvkb] VX;
            Vbrev8V "vbrev8.v" any 0xfc0ff07f 0x48042057 [Zvkb] V2;
            Vrev8V "vrev8.v" any 0xfc0ff07f 0x4804a057 [Zvkb] V2;
            VrorVv "vror.vv" any 0xfc00707f 0x50000057 [Zvkb] VV;
            VrorVx "vror.vx" any 0xfc00707f 0x50004057 [Zvkb] VX;
            VrorVi "vror.vi" any 0xfc00707f 0x50003057 [Zvkb] VU6
                also any 0xfc00707f 0x54003057;
            VrolVv "vrol.vv" any 0xfc00707f 0x54000057 [Zvkb] VV;
            VrolVx "vrol.vx" any 0xfc00707f 0x54004057 [Zvkb] VX;
            // The rest of Zvbb.
            VbrevV "vbrev.v" any 0xfc0ff07f 0x48052057 [Zvbb] V2;
            VclzV "vclz.v" any 0xfc0ff07f 0x48062057 [Zvbb] V2;
            VctzV "vctz.v" any 0xfc0ff07f 0x4806a057 [Zvbb] V2;
            VcpopV "vcpop.v" any 0xfc0ff07f 0x48072057 [Zvbb] V2;
            VwsllVv "vwsll.vv" any 0xfc00707f 0xd4000057 [Zvbb] VV;
            VwsllVx "vwsll.vx" any 0xfc00707f 0xd4004057 [Zvbb] VX;
            VwsllVi "vwsll.vi" any 0xfc00707f 0xd4003057 [Zvbb] VU;
            // Zvbc.
            VclmulVv "vclmul.vv" any 0xfc00707f 0x30002057 [Zvbc] VV;
            VclmulVx "vclmul.vx" any 0xfc00707f 0x30006057 [Zvbc] VX;
            VclmulhVv "vclmulh.vv" any 0xfc00707f 0x34002057 [Zvbc] VV;
            VclmulhVx "vclmulh.vx" any 0xfc00707f 0x34006057 [Zvbc] VX;
            // Zvkg.
            VghshVv "vghsh.vv" any 0xfe00707f 0xb2002077 [Zvkg] VV;
            VgmulVv "vgmul.vv" any 0xfe0ff07f 0xa208a077 [Zvkg] V2;
            // Zvkned.
            VaesdmVv "vaesdm.vv" any 0xfe0ff07f 0xa2002077 [Zvkned] V2;
            VaesdmVs "vaesdm.vs" any 0xfe0ff07f 0xa6002077 [Zvkned] V2;
            VaesdfVv "vaesdf.vv" any 0xfe0ff07f 0xa200a077 [Zvkned] V2;
            VaesdfVs "vaesdf.vs" any 0xfe0ff07f 0xa600a077 [Zvkned] V2;
            VaesemVv "vaesem.vv" any 0xfe0ff07f 0xa2012077 [Zvkned] V2;
            VaesemVs "vaesem.vs" any 0xfe0ff07f 0xa6012077 [Zvkned] V2;
            VaesefVv "vaesef.vv" any 0xfe0ff07f 0xa201a077 [Zvkned] V2;
            VaesefVs "vaesef.vs" any 0xfe0ff07f 0xa601a077 [Zvkned] V2;
            VaeszVs "vaesz.vs" any 0xfe0ff07f 0xa603a077 [Zvkned] V2;
            Vaeskf1Vi "vaeskf1.vi" any 0xfe00707f 0x8a002077 [Zvkned] VU;
            Vaeskf2Vi "vaeskf2.vi" any 0xfe00707f 0xaa002077 [Zvkned] VU;
            // Zvknha and Zvknhb.
            Vsha2msVv "vsha2ms.vv" any 0xfe00707f 0xb6002077 [Zvknha | Zvknhb] VV;
            Vsha2chVv "vsha2ch.vv" any 0xfe00707f 0xba002077 [Zvknha | Zvknhb] VV;
            Vsha2clVv "vsha2cl.vv" any 0xfe00707f 0xbe002077 [Zvknha | Zvknhb] VV;
            // Zvksed.
            Vsm4kVi "vsm4k.vi" any 0xfe00707f 0x86002077 [Zvksed] VU;
            Vsm4rVv "vsm4r.vv" any 0xfe0ff07f 0xa2082077 [Zvksed] V2;
            Vsm4rVs "vsm4r.vs" any 0xfe0ff07f 0xa6082077 [Zvksed] V2;
            // Zvksh.
            Vsm3meVv "vsm3me.vv" any 0xfe00707f 0x82002077 [Zvksh] VV;
            Vsm3cVi "vsm3c.vi" any 0xfe00707f 0xae002077 [Zvksh] VU;
        }
    };
}
