//! Atomics. A (Zalrsc, Zaamo), Zawrs, Zacas, Zabha and the shadow-stack swap.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands.

macro_rules! atomic_ops {
    ([$then:ident $($more:ident)*] $($rows:tt)*) => {
        $then! { [$($more)*] $($rows)*
            // Zalrsc.
            LrW "lr.w" any 0xf9f0707f 0x1000202f [Zalrsc] Lr;
            ScW "sc.w" any 0xf800707f 0x1800202f [Zalrsc] Amo;
            LrD "lr.d" rv64 0xf9f0707f 0x1000302f [Zalrsc] Lr;
            ScD "sc.d" rv64 0xf800707f 0x1800302f [Zalrsc] Amo;
            // Zaamo.
            AmoswapW "amoswap.w" any 0xf800707f 0x0800202f [Zaamo] Amo;
            AmoaddW "amoadd.w" any 0xf800707f 0x0000202f [Zaamo] Amo;
            AmoxorW "amoxor.w" any 0xf800707f 0x2000202f [Zaamo] Amo;
            AmoandW "amoand.w" any 0xf800707f 0x6000202f [Zaamo] Amo;
            AmoorW "amoor.w" any 0xf800707f 0x4000202f [Zaamo] Amo;
            AmominW "amomin.w" any 0xf800707f 0x8000202f [Zaamo] Amo;
            AmomaxW "amomax.w" any 0xf800707f 0xa000202f [Zaamo] Amo;
            AmominuW "amominu.w" any 0xf800707f 0xc000202f [Zaamo] Amo;
            AmomaxuW "amomaxu.w" any 0xf800707f 0xe000202f [Zaamo] Amo;
            AmoswapD "amoswap.d" rv64 0xf800707f 0x0800302f [Zaamo] Amo;
            AmoaddD "amoadd.d" rv64 0xf800707f 0x0000302f [Zaamo] Amo;
            AmoxorD "amoxor.d" rv64 0xf800707f 0x2000302f [Zaamo] Amo;
            AmoandD "amoand.d" rv64 0xf800707f 0x6000302f [Zaamo] Amo;
            AmoorD "amoor.d" rv64 0xf800707f 0x4000302f [Zaamo] Amo;
            AmominD "amomin.d" rv64 0xf800707f 0x8000302f [Zaamo] Amo;
            AmomaxD "amomax.d" rv64 0xf800707f 0xa000302f [Zaamo] Amo;
            AmominuD "amominu.d" rv64 0xf800707f 0xc000302f [Zaamo] Amo;
            AmomaxuD "amomaxu.d" rv64 0xf800707f 0xe000302f [Zaamo] Amo;
            // Zawrs.
            WrsNto "wrs.nto" any 0xffffffff 0x00d00073 [Zawrs] None;
            WrsSto "wrs.sto" any 0xffffffff 0x01d00073 [Zawrs] None;
            // Zacas.
            AmocasW "amocas.w" any 0xf800707f 0x2800202f [Zacas] Amo;
            AmocasD "amocas.d" any 0xf800707f 0x2800302f [Zacas] Amo;
            AmocasQ "amocas.q" rv64 0xf800707f 0x2800402f [Zacas] Amo;
            // Zabha.
            AmoswapB "amoswap.b" any 0xf800707f 0x0800002f [Zabha] Amo;
            AmoaddB "amoadd.b" any 0xf800707f 0x0000002f [Zabha] Amo;
            AmoxorB "amoxor.b" any 0xf800707f 0x2000002f [Zabha] Amo;
            AmoandB "amoand.b" any 0xf800707f 0x6000002f [Zabha] Amo;
            AmoorB "amoor.b" any 0xf800707f 0x4000002f [Zabha] Amo;
            AmominB "amomin.b" any 0xf800707f 0x8000002f [Zabha] Amo;
            AmomaxB "amomax.b" any 0xf800707f 0xa000002f [Zabha] Amo;
            AmominuB "amominu.b" any 0xf800707f 0xc000002f [Zabha] Amo;
            AmomaxuB "amomaxu.b" any 0xf800707f 0xe000002f [Zabha] Amo;
            AmoswapH "amoswap.h" any 0xf800707f 0x0800102f [Zabha] Amo;
            AmoaddH "amoadd.h" any 0xf800707f 0x0000102f [Zabha] Amo;
            AmoxorH "amoxor.h" any 0xf800707f 0x2000102f [Zabha] Amo;
            AmoandH "amoand.h" any 0xf800707f 0x6000102f [Zabha] Amo;
            AmoorH "amoor.h" any 0xf800707f 0x4000102f [Zabha] Amo;
            AmominH "amomin.h" any 0xf800707f 0x8000102f [Zabha] Amo;
            AmomaxH "amomax.h" any 0xf800707f 0xa000102f [Zabha] Amo;
            AmominuH "amominu.h" any 0xf800707f 0xc000102f [Zabha] Amo;
            AmomaxuH "amomaxu.h" any 0xf800707f 0xe000102f [Zabha] Amo;
            // Zabha Zacas.
            AmocasB "amocas.b" any 0xf800707f 0x2800002f [Zabha Zacas] Amo;
            AmocasH "amocas.h" any 0xf800707f 0x2800102f [Zabha Zacas] Amo;
            // Zicfiss.
            SsamoswapW "ssamoswap.w" any 0xf800707f 0x4800202f [Zicfiss] Amo;
            SsamoswapD "ssamoswap.d" rv64 0xf800707f 0x4800302f [Zicfiss] Amo;
        }
    };
}
