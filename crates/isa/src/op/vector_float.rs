//! Vector instructions on floating-point numbers: V, Zve32f and what builds on it,
//! Zvfbfmin and Zvfbfwma. Zvfh and Zvfhmin add an element width, not
//! instructions.
//!
//! Columns: variant, name, base width, mask, match, extensions, operands.

macro_rules! vector_float_ops {
    ([$then:ident $($more:ident)*] $($rows:tt)*) => {
        $then! { [$($more)*] $($rows)*
            // Floating point: OPFVV, OPFVF.
            VfaddVv "vfadd.vv" any 0xfc00707f 0x00001057 [Zve32f] VV;
            VfaddVf "vfadd.vf" any 0xfc00707f 0x00005057 [Zve32f] VF;
            VfredusumVs "vfredusum.vs" any 0xfc00707f 0x04001057 [Zve32f] VV;
            VfsubVv "vfsub.vv" any 0xfc00707f 0x08001057 [Zve32f] VV;
            VfsubVf "vfsub.vf" any 0xfc00707f 0x08005057 [Zve32f] VF;
            VfredosumVs "vfredosum.vs" any 0xfc00707f 0x0c001057 [Zve32f] VV;
            VfminVv "vfmin.vv" any 0xfc00707f 0x10001057 [Zve32f] VV;
            VfminVf "vfmin.vf" any 0xfc00707f 0x10005057 [Zve32f] VF;
            VfredminVs "vfredmin.vs" any 0xfc00707f 0x14001057 [Zve32f] VV;
            VfmaxVv "vfmax.vv" any 0xfc00707f 0x18001057 [Zve32f] VV;
            VfmaxVf "vfmax.vf" any 0xfc00707f 0x18005057 [Zve32f] VF;
            VfredmaxVs "vfredmax.vs" any 0xfc00707f 0x1c001057 [Zve32f] VV;
            VfsgnjVv "vfsgnj.vv" any 0xfc00707f 0x20001057 [Zve32f] VV;
            VfsgnjVf "vfsgnj.vf" any 0xfc00707f 0x20005057 [Zve32f] VF;
            VfsgnjnVv "vfsgnjn.vv" any 0xfc00707f 0x24001057 [Zve32f] VV;
            VfsgnjnVf "vfsgnjn.vf" any 0xfc00707f 0x24005057 [Zve32f] VF;
            VfsgnjxVv "vfsgnjx.vv" any 0xfc00707f 0x28001057 [Zve32f] VV;
            VfsgnjxVf "vfsgnjx.vf" any 0xfc00707f 0x28005057 [Zve32f] VF;
            Vfslide1upVf "vfslide1up.vf" any 0xfc00707f 0x38005057 [Zve32f] VF;
            Vfslide1downVf "vfslide1down.vf" any 0xfc00707f 0x3c005057 [Zve32f] VF;
            VfmvFS "vfmv.f.s" any 0xfe0ff07f 0x42001057 [Zve32f] FV;
            VfmvSF "vfmv.s.f" any 0xfff0707f 0x42005057 [Zve32f] VMoveF;
            VfcvtXuFV "vfcvt.xu.f.v" any 0xfc0ff07f 0x48001057 [Zve32f] V2;
            VfcvtXFV "vfcvt.x.f.v" any 0xfc0ff07f 0x48009057 [Zve32f] V2;
            VfcvtFXuV "vfcvt.f.xu.v" any 0xfc0ff07f 0x48011057 [Zve32f] V2;
            VfcvtFXV "vfcvt.f.x.v" any 0xfc0ff07f 0x48019057 [Zve32f] V2;
            VfcvtRtzXuFV "vfcvt.rtz.xu.f.v" any 0xfc0ff07f 0x48031057 [Zve32f] V2;
            VfcvtRtzXFV "vfcvt.rtz.x.f.v" any 0xfc0ff07f 0x48039057 [Zve32f] V2;
            VfwcvtXuFV "vfwcvt.xu.f.v" any 0xfc0ff07f 0x48041057 [Zve32f] V2;
            VfwcvtXFV "vfwcvt.x.f.v" any 0xfc0ff07f 0x48049057 [Zve32f] V2;
            VfwcvtFXuV "vfwcvt.f.xu.v" any 0xfc0ff07f 0x48051057 [Zve32f] V2;
            VfwcvtFXV "vfwcvt.f.x.v" any 0xfc0ff07f 0x48059057 [Zve32f] V2;
            VfwcvtFFV "vfwcvt.f.f.v" any 0xfc0ff07f 0x48061057 [Zve32f] V2;
            VfwcvtRtzXuFV "vfwcvt.rtz.xu.f.v" any 0xfc0ff07f 0x48071057 [Zve32f] V2;
            VfwcvtRtzXFV "vfwcvt.rtz.x.f.v" any 0xfc0ff07f 0x48079057 [Zve32f] V2;
            VfncvtXuFW "vfncvt.xu.f.w" any 0xfc0ff07f 0x48081057 [Zve32f] V2;
            VfncvtXFW "vfncvt.x.f.w" any 0xfc0ff07f 0x48089057 [Zve32f] V2;
            VfncvtFXuW "vfncvt.f.xu.w" any 0xfc0ff07f 0x48091057 [Zve32f] V2;
            VfncvtFXW "vfncvt.f.x.w" any 0xfc0ff07f 0x48099057 [Zve32f] V2;
            VfncvtFFW "vfncvt.f.f.w" any 0xfc0ff07f 0x480a1057 [Zve32f] V2;
            VfncvtRodFFW "vfncvt.rod.f.f.w" any 0xfc0ff07f 0x480a9057 [Zve32f] V2;
            VfncvtRtzXuFW "vfncvt.rtz.xu.f.w" any 0xfc0ff07f 0x480b1057 [Zve32f] V2;
            VfncvtRtzXFW "vfncvt.rtz.x.f.w" any 0xfc0ff07f 0x480b9057 [Zve32f] V2;
            VfsqrtV "vfsqrt.v" any 0xfc0ff07f 0x4c001057 [Zve32f] V2;
            Vfrsqrt7V "vfrsqrt7.v" any 0xfc0ff07f 0x4c021057 [Zve32f] V2;
            Vfrec7V "vfrec7.v" any 0xfc0ff07f 0x4c029057 [Zve32f] V2;
            VfclassV "vfclass.v" any 0xfc0ff07f 0x4c081057 [Zve32f] V2;
            VfmergeVfm "vfmerge.vfm" any 0xfe00707f 0x5c005057 [Zve32f] VCarryF;
            VfmvVF "vfmv.v.f" any 0xfff0707f 0x5e005057 [Zve32f] VMoveF;
            VmfeqVv "vmfeq.vv" any 0xfc00707f 0x60001057 [Zve32f] VV;
            VmfeqVf "vmfeq.vf" any 0xfc00707f 0x60005057 [Zve32f] VF;
            VmfleVv "vmfle.vv" any 0xfc00707f 0x64001057 [Zve32f] VV;
            VmfleVf "vmfle.vf" any 0xfc00707f 0x64005057 [Zve32f] VF;
            VmfltVv "vmflt.vv" any 0xfc00707f 0x6c001057 [Zve32f] VV;
            VmfltVf "vmflt.vf" any 0xfc00707f 0x6c005057 [Zve32f] VF;
            VmfneVv "vmfne.vv" any 0xfc00707f 0x70001057 [Zve32f] VV;
            VmfneVf "vmfne.vf" any 0xfc00707f 0x70005057 [Zve32f] VF;
            VmfgtVf "vmfgt.vf" any 0xfc00707f 0x74005057 [Zve32f] VF;
            VmfgeVf "vmfge.vf" any 0xfc00707f 0x7c005057 [Zve32f] VF;
            VfdivVv "vfdiv.vv" any 0xfc00707f 0x80001057 [Zve32f] VV;
            VfdivVf "vfdiv.vf" any 0xfc00707f 0x80005057 [Zve32f] VF;
            VfrdivVf "vfrdiv.vf" any 0xfc00707f 0x84005057 [Zve32f] VF;
            VfmulVv "vfmul.vv" any 0xfc00707f 0x90001057 [Zve32f] VV;
            VfmulVf "vfmul.vf" any 0xfc00707f 0x90005057 [Zve32f] VF;
            VfrsubVf "vfrsub.vf" any 0xfc00707f 0x9c005057 [Zve32f] VF;
            VfmaddVv "vfmadd.vv" any 0xfc00707f 0xa0001057 [Zve32f] VAccumulateV;
            VfmaddVf "vfmadd.vf" any 0xfc00707f 0xa0005057 [Zve32f] VAccumulateF;
            VfnmaddVv "vfnmadd.vv" any 0xfc00707f 0xa4001057 [Zve32f] VAccumulateV;
            VfnmaddVf "vfnmadd.vf" any 0xfc00707f 0xa4005057 [Zve32f] VAccumulateF;
            VfmsubVv "vfmsub.vv" any 0xfc00707f 0xa8001057 [Zve32f] VAccumulateV;
            VfmsubVf "vfmsub.vf" any 0xfc00707f 0xa8005057 [Zve32f] VAccumulateF;
            VfnmsubVv "vfnmsub.vv" any 0xfc00707f 0xac001057 [Zve32f] VAccumulateV;
            VfnmsubVf "vfnmsub.vf" any 0xfc00707f 0xac005057 [Zve32f] VAccumulateF;
            VfmaccVv "vfmacc.vv" any 0xfc00707f 0xb0001057 [Zve32f] VAccumulateV;
            VfmaccVf "vfmacc.vf" any 0xfc00707f 0xb0005057 [Zve32f] VAccumulateF;
            VfnmaccVv "vfnmacc.vv" any 0xfc00707f 0xb4001057 [Zve32f] VAccumulateV;
            VfnmaccVf "vfnmacc.vf" any 0xfc00707f 0xb4005057 [Zve32f] VAccumulateF;
            VfmsacVv "vfmsac.vv" any 0xfc00707f 0xb8001057 [Zve32f] VAccumulateV;
            VfmsacVf "vfmsac.vf" any 0xfc00707f 0xb8005057 [Zve32f] VAccumulateF;
            VfnmsacVv "vfnmsac.vv" any 0xfc00707f 0xbc001057 [Zve32f] VAccumulateV;
            VfnmsacVf "vfnmsac.vf" any 0xfc00707f 0xbc005057 [Zve32f] VAccumulateF;
            VfwaddVv "vfwadd.vv" any 0xfc00707f 0xc0001057 [Zve32f] VV;
            VfwaddVf "vfwadd.vf" any 0xfc00707f 0xc0005057 [Zve32f] VF;
            VfwredusumVs "vfwredusum.vs" any 0xfc00707f 0xc4001057 [Zve32f] VV;
            VfwsubVv "vfwsub.vv" any 0xfc00707f 0xc8001057 [Zve32f] VV;
            VfwsubVf "vfwsub.vf" any 0xfc00707f 0xc8005057 [Zve32f] VF;
            VfwredosumVs "vfwredosum.vs" any 0xfc00707f 0xcc001057 [Zve32f] VV;
            VfwaddWv "vfwadd.wv" any 0xfc00707f 0xd0001057 [Zve32f] VV;
            VfwaddWf "vfwadd.wf" any 0xfc00707f 0xd0005057 [Zve32f] VF;
            VfwsubWv "vfwsub.wv" any 0xfc00707f 0xd8001057 [Zve32f] VV;
            VfwsubWf "vfwsub.wf" any 0xfc00707f 0xd8005057 [Zve32f] VF;
            VfwmulVv "vfwmul.vv" any 0xfc00707f 0xe0001057 [Zve32f] VV;
            VfwmulVf "vfwmul.vf" any 0xfc00707f 0xe0005057 [Zve32f] VF;
            VfwmaccVv "vfwmacc.vv" any 0xfc00707f 0xf0001057 [Zve32f] VAccumulateV;
            VfwmaccVf "vfwmacc.vf" any 0xfc00707f 0xf0005057 [Zve32f] VAccumulateF;
            VfwnmaccVv "vfwnmacc.vv" any 0xfc00707f 0xf4001057 [Zve32f] VAccumulateV;
            VfwnmaccVf "vfwnmacc.vf" any 0xfc00707f 0xf4005057 [Zve32f] VAccumulateF;
            VfwmsacVv "vfwmsac.vv" any 0xfc00707f 0xf8001057 [Zve32f] VAccumulateV;
            VfwmsacVf "vfwmsac.vf" any 0xfc00707f 0xf8005057 [Zve32f] VAccumulateF;
            VfwnmsacVv "vfwnmsac.vv" any 0xfc00707f 0xfc001057 [Zve32f] VAccumulateV;
            VfwnmsacVf "vfwnmsac.vf" any 0xfc00707f 0xfc005057 [Zve32f] VAccumulateF;
            // Zvfbfmin.
            Vfwcvtbf16FFV "vfwcvtbf16.f.f.v" any 0xfc0ff07f 0x48069057 [Zvfbfmin] V2;
            Vfncvtbf16FFW "vfncvtbf16.f.f.w" any 0xfc0ff07f 0x480e9057 [Zvfbfmin] V2;
            // Zvfbfwma.
            Vfwmaccbf16Vv "vfwmaccbf16.vv" any 0xfc00707f 0xec001057 [Zvfbfwma] VAccumulateV;
            Vfwmaccbf16Vf "vfwmaccbf16.vf" any 0xfc00707f 0xec005057 [Zvfbfwma] VAccumulateF;
        }
    };
}
