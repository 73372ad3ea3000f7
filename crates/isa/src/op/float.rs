//! Scalar floating point. F, D, Q, Zfhmin, Zfh, Zfbfmin and Zfa. With Zfinx
//! and its companions the same encodings name integer registers.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands.

macro_rules! float_ops {
    ([$then:ident $($more:ident)*] $($rows:tt)*) => {
        $then! { [$($more)*] $($rows)*
            // F, what Zfinx leaves out.
            Flw "flw" any 0x0000707f 0x00002007 [F] FLoad;
            Fsw "fsw" any 0x0000707f 0x00002027 [F] FStore;
            FmvXW "fmv.x.w" any 0xfff0707f 0xe0000053 [F] XF;
            FmvWX "fmv.w.x" any 0xfff0707f 0xf0000053 [F] FX;
            // F and Zfinx.
            FmaddS "fmadd.s" any 0x0600007f 0x00000043 [F | Zfinx] F3Rm;
            FmsubS "fmsub.s" any 0x0600007f 0x00000047 [F | Zfinx] F3Rm;
            FnmsubS "fnmsub.s" any 0x0600007f 0x0000004b [F | Zfinx] F3Rm;
            FnmaddS "fnmadd.s" any 0x0600007f 0x0000004f [F | Zfinx] F3Rm;
            FaddS "fadd.s" any 0xfe00007f 0x00000053 [F | Zfinx] F2Rm;
            FsubS "fsub.s" any 0xfe00007f 0x08000053 [F | Zfinx] F2Rm;
            FmulS "fmul.s" any 0xfe00007f 0x10000053 [F | Zfinx] F2Rm;
            FdivS "fdiv.s" any 0xfe00007f 0x18000053 [F | Zfinx] F2Rm;
            FsqrtS "fsqrt.s" any 0xfff0007f 0x58000053 [F | Zfinx] F1Rm;
            FsgnjS "fsgnj.s" any 0xfe00707f 0x20000053 [F | Zfinx] F2;
            FsgnjnS "fsgnjn.s" any 0xfe00707f 0x20001053 [F | Zfinx] F2;
            FsgnjxS "fsgnjx.s" any 0xfe00707f 0x20002053 [F | Zfinx] F2;
            FminS "fmin.s" any 0xfe00707f 0x28000053 [F | Zfinx] F2;
            FmaxS "fmax.s" any 0xfe00707f 0x28001053 [F | Zfinx] F2;
            FeqS "feq.s" any 0xfe00707f 0xa0002053 [F | Zfinx] Xff;
            FltS "flt.s" any 0xfe00707f 0xa0001053 [F | Zfinx] Xff;
            FleS "fle.s" any 0xfe00707f 0xa0000053 [F | Zfinx] Xff;
            FclassS "fclass.s" any 0xfff0707f 0xe0001053 [F | Zfinx] XF;
            FcvtWS "fcvt.w.s" any 0xfff0007f 0xc0000053 [F | Zfinx] XFRm;
            FcvtWuS "fcvt.wu.s" any 0xfff0007f 0xc0100053 [F | Zfinx] XFRm;
            FcvtLS "fcvt.l.s" rv64 0xfff0007f 0xc0200053 [F | Zfinx] XFRm;
            FcvtLuS "fcvt.lu.s" rv64 0xfff0007f 0xc0300053 [F | Zfinx] XFRm;
            FcvtSW "fcvt.s.w" any 0xfff0007f 0xd0000053 [F | Zfinx] FXRm;
            FcvtSWu "fcvt.s.wu" any 0xfff0007f 0xd0100053 [F | Zfinx] FXRm;
            FcvtSL "fcvt.s.l" rv64 0xfff0007f 0xd0200053 [F | Zfinx] FXRm;
            FcvtSLu "fcvt.s.lu" rv64 0xfff0007f 0xd0300053 [F | Zfinx] FXRm;
            // D, what Zdinx leaves out.
            Fld "fld" any 0x0000707f 0x00003007 [D] FLoad;
            Fsd "fsd" any 0x0000707f 0x00003027 [D] FStore;
            FmvXD "fmv.x.d" rv64 0xfff0707f 0xe2000053 [D] XF;
            FmvDX "fmv.d.x" rv64 0xfff0707f 0xf2000053 [D] FX;
            // D and Zdinx.
            FmaddD "fmadd.d" any 0x0600007f 0x02000043 [D | Zdinx] F3Rm;
            FmsubD "fmsub.d" any 0x0600007f 0x02000047 [D | Zdinx] F3Rm;
            FnmsubD "fnmsub.d" any 0x0600007f 0x0200004b [D | Zdinx] F3Rm;
            FnmaddD "fnmadd.d" any 0x0600007f 0x0200004f [D | Zdinx] F3Rm;
            FaddD "fadd.d" any 0xfe00007f 0x02000053 [D | Zdinx] F2Rm;
            FsubD "fsub.d" any 0xfe00007f 0x0a000053 [D | Zdinx] F2Rm;
            FmulD "fmul.d" any 0xfe00007f 0x12000053 [D | Zdinx] F2Rm;
            FdivD "fdiv.d" any 0xfe00007f 0x1a000053 [D | Zdinx] F2Rm;
            FsqrtD "fsqrt.d" any 0xfff0007f 0x5a000053 [D | Zdinx] F1Rm;
            FsgnjD "fsgnj.d" any 0xfe00707f 0x22000053 [D | Zdinx] F2;
            FsgnjnD "fsgnjn.d" any 0xfe00707f 0x22001053 [D | Zdinx] F2;
            FsgnjxD "fsgnjx.d" any 0xfe00707f 0x22002053 [D | Zdinx] F2;
            FminD "fmin.d" any 0xfe00707f 0x2a000053 [D | Zdinx] F2;
            FmaxD "fmax.d" any 0xfe00707f 0x2a001053 [D | Zdinx] F2;
            FeqD "feq.d" any 0xfe00707f 0xa2002053 [D | Zdinx] Xff;
            FltD "flt.d" any 0xfe00707f 0xa2001053 [D | Zdinx] Xff;
            FleD "fle.d" any 0xfe00707f 0xa2000053 [D | Zdinx] Xff;
            FclassD "fclass.d" any 0xfff0707f 0xe2001053 [D | Zdinx] XF;
            FcvtSD "fcvt.s.d" any 0xfff0007f 0x40100053 [D | Zdinx] F1Rm;
            FcvtDS "fcvt.d.s" any 0xfff0007f 0x42000053 [D | Zdinx] F1Exact;
            FcvtWD "fcvt.w.d" any 0xfff0007f 0xc2000053 [D | Zdinx] XFRm;
            FcvtWuD "fcvt.wu.d" any 0xfff0007f 0xc2100053 [D | Zdinx] XFRm;
            FcvtLD "fcvt.l.d" rv64 0xfff0007f 0xc2200053 [D | Zdinx] XFRm;
            FcvtLuD "fcvt.lu.d" rv64 0xfff0007f 0xc2300053 [D | Zdinx] XFRm;
            FcvtDW "fcvt.d.w" any 0xfff0007f 0xd2000053 [D | Zdinx] FXExact;
            FcvtDWu "fcvt.d.wu" any 0xfff0007f 0xd2100053 [D | Zdinx] FXExact;
            FcvtDL "fcvt.d.l" rv64 0xfff0007f 0xd2200053 [D | Zdinx] FXRm;
            FcvtDLu "fcvt.d.lu" rv64 0xfff0007f 0xd2300053 [D | Zdinx] FXRm;
            // Q: loads and stores.
            Flq "flq" any 0x0000707f 0x00004007 [Q] FLoad;
            Fsq "fsq" any 0x0000707f 0x00004027 [Q] FStore;
            // Q.
            FmaddQ "fmadd.q" any 0x0600007f 0x06000043 [Q] F3Rm;
            FmsubQ "fmsub.q" any 0x0600007f 0x06000047 [Q] F3Rm;
            FnmsubQ "fnmsub.q" any 0x0600007f 0x0600004b [Q] F3Rm;
            FnmaddQ "fnmadd.q" any 0x0600007f 0x0600004f [Q] F3Rm;
            FaddQ "fadd.q" any 0xfe00007f 0x06000053 [Q] F2Rm;
            FsubQ "fsub.q" any 0xfe00007f 0x0e000053 [Q] F2Rm;
            FmulQ "fmul.q" any 0xfe00007f 0x16000053 [Q] F2Rm;
            FdivQ "fdiv.q" any 0xfe00007f 0x1e000053 [Q] F2Rm;
            FsqrtQ "fsqrt.q" any 0xfff0007f 0x5e000053 [Q] F1Rm;
            FsgnjQ "fsgnj.q" any 0xfe00707f 0x26000053 [Q] F2;
            FsgnjnQ "fsgnjn.q" any 0xfe00707f 0x26001053 [Q] F2;
            FsgnjxQ "fsgnjx.q" any 0xfe00707f 0x26002053 [Q] F2;
            FminQ "fmin.q" any 0xfe00707f 0x2e000053 [Q] F2;
            FmaxQ "fmax.q" any 0xfe00707f 0x2e001053 [Q] F2;
            FeqQ "feq.q" any 0xfe00707f 0xa6002053 [Q] Xff;
            FltQ "flt.q" any 0xfe00707f 0xa6001053 [Q] Xff;
            FleQ "fle.q" any 0xfe00707f 0xa6000053 [Q] Xff;
            FclassQ "fclass.q" any 0xfff0707f 0xe6001053 [Q] XF;
            FcvtSQ "fcvt.s.q" any 0xfff0007f 0x40300053 [Q] F1Rm;
            FcvtDQ "fcvt.d.q" any 0xfff0007f 0x42300053 [Q] F1Rm;
            FcvtQS "fcvt.q.s" any 0xfff0007f 0x46000053 [Q] F1Exact;
            FcvtQD "fcvt.q.d" any 0xfff0007f 0x46100053 [Q] F1Exact;
            FcvtWQ "fcvt.w.q" any 0xfff0007f 0xc6000053 [Q] XFRm;
            FcvtWuQ "fcvt.wu.q" any 0xfff0007f 0xc6100053 [Q] XFRm;
            FcvtLQ "fcvt.l.q" rv64 0xfff0007f 0xc6200053 [Q] XFRm;
            FcvtLuQ "fcvt.lu.q" rv64 0xfff0007f 0xc6300053 [Q] XFRm;
            FcvtQW "fcvt.q.w" any 0xfff0007f 0xd6000053 [Q] FXExact;
            FcvtQWu "fcvt.q.wu" any 0xfff0007f 0xd6100053 [Q] FXExact;
            FcvtQL "fcvt.q.l" rv64 0xfff0007f 0xd6200053 [Q] FXExact;
            FcvtQLu "fcvt.q.lu" rv64 0xfff0007f 0xd6300053 [Q] FXExact;
            // Zfhmin.
            Flh "flh" any 0x0000707f 0x00001007 [Zfhmin] FLoad;
            Fsh "fsh" any 0x0000707f 0x00001027 [Zfhmin] FStore;
            FmvXH "fmv.x.h" any 0xfff0707f 0xe4000053 [Zfhmin] XF;
            FmvHX "fmv.h.x" any 0xfff0707f 0xf4000053 [Zfhmin] FX;
            // Zfhmin or Zhinxmin.
            FcvtSH "fcvt.s.h" any 0xfff0007f 0x40200053 [Zfhmin | Zhinxmin] F1Exact;
            FcvtHS "fcvt.h.s" any 0xfff0007f 0x44000053 [Zfhmin | Zhinxmin] F1Rm;
            // Zfhmin D or Zhinxmin Zdinx.
            FcvtDH "fcvt.d.h" any 0xfff0007f 0x42200053 [Zfhmin D | Zhinxmin Zdinx] F1Exact;
            FcvtHD "fcvt.h.d" any 0xfff0007f 0x44100053 [Zfhmin D | Zhinxmin Zdinx] F1Rm;
            // Zfhmin Q.
            FcvtHQ "fcvt.h.q" any 0xfff0007f 0x44300053 [Zfhmin Q] F1Rm;
            FcvtQH "fcvt.q.h" any 0xfff0007f 0x46200053 [Zfhmin Q] F1Exact;
            // Zfh or Zhinx.
            FmaddH "fmadd.h" any 0x0600007f 0x04000043 [Zfh | Zhinx] F3Rm;
            FmsubH "fmsub.h" any 0x0600007f 0x04000047 [Zfh | Zhinx] F3Rm;
            FnmsubH "fnmsub.h" any 0x0600007f 0x0400004b [Zfh | Zhinx] F3Rm;
            FnmaddH "fnmadd.h" any 0x0600007f 0x0400004f [Zfh | Zhinx] F3Rm;
            FaddH "fadd.h" any 0xfe00007f 0x04000053 [Zfh | Zhinx] F2Rm;
            FsubH "fsub.h" any 0xfe00007f 0x0c000053 [Zfh | Zhinx] F2Rm;
            FmulH "fmul.h" any 0xfe00007f 0x14000053 [Zfh | Zhinx] F2Rm;
            FdivH "fdiv.h" any 0xfe00007f 0x1c000053 [Zfh | Zhinx] F2Rm;
            FsqrtH "fsqrt.h" any 0xfff0007f 0x5c000053 [Zfh | Zhinx] F1Rm;
            FsgnjH "fsgnj.h" any 0xfe00707f 0x24000053 [Zfh | Zhinx] F2;
            FsgnjnH "fsgnjn.h" any 0xfe00707f 0x24001053 [Zfh | Zhinx] F2;
            FsgnjxH "fsgnjx.h" any 0xfe00707f 0x24002053 [Zfh | Zhinx] F2;
            FminH "fmin.h" any 0xfe00707f 0x2c000053 [Zfh | Zhinx] F2;
            FmaxH "fmax.h" any 0xfe00707f 0x2c001053 [Zfh | Zhinx] F2;
            FeqH "feq.h" any 0xfe00707f 0xa4002053 [Zfh | Zhinx] Xff;
            FltH "flt.h" any 0xfe00707f 0xa4001053 [Zfh | Zhinx] Xff;
            FleH "fle.h" any 0xfe00707f 0xa4000053 [Zfh | Zhinx] Xff;
            FclassH "fclass.h" any 0xfff0707f 0xe4001053 [Zfh | Zhinx] XF;
            FcvtWH "fcvt.w.h" any 0xfff0007f 0xc4000053 [Zfh | Zhinx] XFRm;
            FcvtWuH "fcvt.wu.h" any 0xfff0007f 0xc4100053 [Zfh | Zhinx] XFRm;
            FcvtLH "fcvt.l.h" rv64 0xfff0007f 0xc4200053 [Zfh | Zhinx] XFRm;
            FcvtLuH "fcvt.lu.h" rv64 0xfff0007f 0xc4300053 [Zfh | Zhinx] XFRm;
            FcvtHW "fcvt.h.w" any 0xfff0007f 0xd4000053 [Zfh | Zhinx] FXRm;
            FcvtHWu "fcvt.h.wu" any 0xfff0007f 0xd4100053 [Zfh | Zhinx] FXRm;
            FcvtHL "fcvt.h.l" rv64 0xfff0007f 0xd4200053 [Zfh | Zhinx] FXRm;
            FcvtHLu "fcvt.h.lu" rv64 0xfff0007f 0xd4300053 [Zfh | Zhinx] FXRm;
            // Zfbfmin.
            FcvtSBf16 "fcvt.s.bf16" any 0xfff0007f 0x40600053 [Zfbfmin] F1Exact;
            FcvtBf16S "fcvt.bf16.s" any 0xfff0007f 0x44800053 [Zfbfmin] F1Rm;
            // Zfa.
            FmaxmS "fmaxm.s" any 0xfe00707f 0x28003053 [Zfa] F2;
            FminmS "fminm.s" any 0xfe00707f 0x28002053 [Zfa] F2;
            FroundS "fround.s" any 0xfff0007f 0x40400053 [Zfa] F1Rm;
            FroundnxS "froundnx.s" any 0xfff0007f 0x40500053 [Zfa] F1Rm;
            FleqS "fleq.s" any 0xfe00707f 0xa0004053 [Zfa] Xff;
            FltqS "fltq.s" any 0xfe00707f 0xa0005053 [Zfa] Xff;
            FliS "fli.s" any 0xfff0707f 0xf0100053 [Zfa] Fli;
            // D Zfa.
            FmaxmD "fmaxm.d" any 0xfe00707f 0x2a003053 [D Zfa] F2;
            FminmD "fminm.d" any 0xfe00707f 0x2a002053 [D Zfa] F2;
            FroundD "fround.d" any 0xfff0007f 0x42400053 [D Zfa] F1Rm;
            FroundnxD "froundnx.d" any 0xfff0007f 0x42500053 [D Zfa] F1Rm;
            FleqD "fleq.d" any 0xfe00707f 0xa2004053 [D Zfa] Xff;
            FltqD "fltq.d" any 0xfe00707f 0xa2005053 [D Zfa] Xff;
            FmvpDX "fmvp.d.x" rv32 0xfe00707f 0xb2000053 [D Zfa] Fxx;
            FcvtmodWD "fcvtmod.w.d" any 0xfff0707f 0xc2801053 [D Zfa] XFRtz;
            FmvhXD "fmvh.x.d" rv32 0xfff0707f 0xe2100053 [D Zfa] XF;
            FliD "fli.d" any 0xfff0707f 0xf2100053 [D Zfa] Fli;
            // Q Zfa.
            FmaxmQ "fmaxm.q" any 0xfe00707f 0x2e003053 [Q Zfa] F2;
            FminmQ "fminm.q" any 0xfe00707f 0x2e002053 [Q Zfa] F2;
            FroundQ "fround.q" any 0xfff0007f 0x46400053 [Q Zfa] F1Rm;
            FroundnxQ "froundnx.q" any 0xfff0007f 0x46500053 [Q Zfa] F1Rm;
            FleqQ "fleq.q" any 0xfe00707f 0xa6004053 [Q Zfa] Xff;
            FltqQ "fltq.q" any 0xfe00707f 0xa6005053 [Q Zfa] Xff;
            FmvpQX "fmvp.q.x" rv64 0xfe00707f 0xb6000053 [Q Zfa] Fxx;
            FmvhXQ "fmvh.x.q" rv64 0xfff0707f 0xe6100053 [Q Zfa] XF;
            FliQ "fli.q" any 0xfff0707f 0xf6100053 [Q Zfa] Fli;
            // Zfh Zfa.
            FmaxmH "fmaxm.h" any 0xfe00707f 0x2c003053 [Zfh Zfa] F2;
            FminmH "fminm.h" any 0xfe00707f 0x2c002053 [Zfh Zfa] F2;
            FroundH "fround.h" any 0xfff0007f 0x44400053 [Zfh Zfa] F1Rm;
            FroundnxH "froundnx.h" any 0xfff0007f 0x44500053 [Zfh Zfa] F1Rm;
            FleqH "fleq.h" any 0xfe00707f 0xa4004053 [Zfh Zfa] Xff;
            FltqH "fltq.h" any 0xfe00707f 0xa4005053 [Zfh Zfa] Xff;
            FliH "fli.h" any 0xfff0707f 0xf4100053 [Zfh Zfa] Fli;
        }
    };
}
