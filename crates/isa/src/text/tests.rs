//! Hand-picked encodings with their text; the long comparison with the tools
//! themselves is `hartrace-proof compressed` and `random32`.
//!
//! The tab between mnemonic and operands is written as a space here.

use super::*;
use crate::decode;
use hartrace_testkit::Random;
use std::string::{String, ToString};

/// Bits, text in 2.40, in 2.45 where it differs, and without aliases where
/// that differs from 2.45.
type Row = (u32, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const FULL: &[Row] = &[
    (0x0000_0013, "nop", "", "addi zero,zero,0"),
    (0x0050_0513, "li a0,5", "", "addi a0,zero,5"),
    (0x0005_8513, "mv a0,a1", "", "addi a0,a1,0"),
    (0xff01_0113, "add sp,sp,-16", "addi sp,sp,-16", ""),
    (0x0ff5_7513, "zext.b a0,a0", "", "andi a0,a0,255"),
    (0x0015_7513, "and a0,a0,1", "andi a0,a0,1", ""),
    (0xfff5_c513, "not a0,a1", "", "xori a0,a1,-1"),
    (0x0015_3513, "seqz a0,a0", "", "sltiu a0,a0,1"),
    (0x40b0_0533, "neg a0,a1", "", "sub a0,zero,a1"),
    (0x00b0_3533, "snez a0,a1", "", "sltu a0,zero,a1"),
    (0x0005_a533, "sltz a0,a1", "", "slt a0,a1,zero"),
    (0x00b0_2533, "sgtz a0,a1", "", "slt a0,zero,a1"),
    (0x0035_1513, "sll a0,a0,0x3", "slli a0,a0,0x3", ""),
    (0x4035_551b, "sraw a0,a0,0x3", "sraiw a0,a0,0x3", ""),
    (0x0005_851b, "sext.w a0,a1", "", "addiw a0,a1,0"),
    (0x0015_859b, "addw a1,a1,1", "addiw a1,a1,1", ""),
    (0x1234_5537, "lui a0,0x12345", "", ""),
    (0x0000_1517, "auipc a0,0x1", "", ""),
    (0x0080_006f, "j 0x8", "", "jal zero,0x8"),
    (0xff9f_f0ef, "jal 0xfffffffffffffff8", "", "jal ra,0xfffffffffffffff8"),
    (0x0080_02ef, "jal t0,0x8", "", ""),
    (0x0000_8067, "ret", "", "jalr zero,0(ra)"),
    (0x0003_0067, "jr t1", "", "jalr zero,0(t1)"),
    (0x0083_0067, "jr 8(t1)", "", "jalr zero,8(t1)"),
    (0x0003_00e7, "jalr t1", "", "jalr ra,0(t1)"),
    (0x0083_00e7, "jalr 8(t1)", "", "jalr ra,8(t1)"),
    (0x0003_0567, "jalr a0,t1", "", "jalr a0,0(t1)"),
    (0x0083_0567, "jalr a0,8(t1)", "", ""),
    (0x0005_0463, "beqz a0,0x8", "", "beq a0,zero,0x8"),
    (0x00b5_1463, "bne a0,a1,0x8", "", ""),
    (0x0005_5463, "bgez a0,0x8", "", "bge a0,zero,0x8"),
    (0x00a0_5463, "blez a0,0x8", "", "bge zero,a0,0x8"),
    (0x00a0_4463, "bgtz a0,0x8", "", "blt zero,a0,0x8"),
    (0x00b5_4463, "blt a0,a1,0x8", "", ""),
    (0x00b5_7463, "bgeu a0,a1,0x8", "", ""),
    (0x0085_3503, "ld a0,8(a0)", "", ""),
    (0xfea5_3c23, "sd a0,-8(a0)", "", ""),
    (0x0ff0_000f, "fence", "", "fence iorw,iorw"),
    (0x0310_000f, "fence rw,w", "", ""),
    (0x8330_000f, "fence.tso", "", ""),
    (0x0000_100f, "fence.i", "", ""),
    (0x0100_000f, "pause", "", ""),
    (0x0000_0073, "ecall", "", ""),
    (0x0010_0073, "ebreak", "", ""),
    (0x3020_0073, "mret", "", ""),
    (0x1020_0073, "sret", "", ""),
    (0x1050_0073, "wfi", "", ""),
    (0x1200_0073, "sfence.vma", "", "sfence.vma zero,zero"),
    (0x1205_0073, "sfence.vma a0", "", "sfence.vma a0,zero"),
    (0x12b5_0073, "sfence.vma a0,a1", "", ""),
    (0x3005_2573, "csrrs a0,mstatus,a0", "", ""),
    (0x3000_22f3, "csrr t0,mstatus", "", "csrrs t0,mstatus,zero"),
    (0x3002_9073, "csrw mstatus,t0", "", "csrrw zero,mstatus,t0"),
    (0x3002_d073, "csrw mstatus,5", "csrwi mstatus,5", "csrrwi zero,mstatus,5"),
    (0x0030_2573, "frcsr a0", "", "csrrs a0,fcsr,zero"),
    (0x0025_1573, "fsrm a0,a0", "", "csrrw a0,frm,a0"),
    (0xc000_2573, "rdcycle a0", "", "csrrs a0,cycle,zero"),
    (0xc000_1073, "unimp", "", ""),
    (0x7c00_25f3, "csrr a1,0x7c0", "", "csrrs a1,0x7c0,zero"),
    (0x02b5_0533, "mul a0,a0,a1", "", ""),
    (0x02b5_453b, "divw a0,a0,a1", "", ""),
    (0x1005_25af, "lr.w a1,(a0)", "", ""),
    (0x18a5_a5af, "sc.w a1,a0,(a1)", "", ""),
    (0x06a5_b5af, "amoadd.d.aqrl a1,a0,(a1)", "", ""),
    (0x00b5_252f, "amoadd.w a0,a1,(a0)", "", ""),
    (0x00b5_7553, "fadd.s fa0,fa0,fa1", "", ""),
    (0x00b5_0553, "fadd.s fa0,fa0,fa1,rne", "", ""),
    (0xc005_9553, "fcvt.w.s a0,fa1,rtz", "", ""),
    (0x20b5_8553, "fmv.s fa0,fa1", "", "fsgnj.s fa0,fa1,fa1"),
    (0x22b5_9553, "fneg.d fa0,fa1", "", "fsgnjn.d fa0,fa1,fa1"),
    (0x20c5_a553, "fsgnjx.s fa0,fa1,fa2", "", ""),
    (0xd205_0553, "fcvt.d.w fa0,a0", "", ""),
    (0xe205_0553, "fmv.x.d a0,fa0", "", ""),
    (0xf205_0553, "fmv.d.x fa0,a0", "", ""),
    (0x0085_3507, "fld fa0,8(a0)", "", ""),
    (0x60c5_f543, "fmadd.s fa0,fa1,fa2,fa2", "", ""),
    (0xa0b5_2553, "feq.s a0,fa0,fa1", "", ""),
    (0x20b5_2533, "sh1add a0,a0,a1", "", ""),
    (0x0805_853b, "zext.w a0,a1", "", "add.uw a0,a1,zero"),
    (0x6005_1513, "clz a0,a0", "", ""),
    (0x6055_5513, "ror a0,a0,0x5", "rori a0,a0,0x5", ""),
    (0x4835_1513, "bclr a0,a0,0x3", "bclri a0,a0,0x3", ""),
    (0x0ab5_5533, "minu a0,a0,a1", "", ""),
    (0x2ab5_0533, ".4byte 0x2ab50533", ".insn 4, 0x2ab50533", ""),
    (0x3105_1513, "aes64ks1i a0,a0,0x0", "", ""),
    (0x0015_200f, "cbo.clean (a0)", "", ""),
    (0x0205_6013, "prefetch.i 32(a0)", "", ""),
    (0x00d0_0073, "wrs.nto", "", ""),
    (0x16b5_0073, "sinval.vma a0,a1", "", ""),
    (0x62b5_0073, "hfence.gvma a0,a1", "", ""),
    (0x6005_4573, "hlv.b a0,(a0)", "", ""),
    (0x62a5_c073, "hsv.b a0,(a1)", "", ""),
];

#[rustfmt::skip]
const SHORT: &[Row] = &[
    (0x0001, "nop", "", "c.addi zero,0"),
    (0x0505, "add a0,a0,1", "addi a0,a0,1", "c.addi a0,1"),
    (0x1141, "add sp,sp,-16", "addi sp,sp,-16", "c.addi sp,-16"),
    (0x4501, "li a0,0", "", "c.li a0,0"),
    (0x6505, "lui a0,0x1", "", "c.lui a0,0x1"),
    (0x757d, "lui a0,0xfffff", "", "c.lui a0,0xfffff"),
    (0x7139, "add sp,sp,-64", "addi sp,sp,-64", "c.addi16sp sp,-64"),
    (0x1008, "add a0,sp,32", "addi a0,sp,32", "c.addi4spn a0,sp,32"),
    (0x852e, "mv a0,a1", "", "c.mv a0,a1"),
    (0x952e, "add a0,a0,a1", "", "c.add a0,a1"),
    (0x8082, "ret", "", "c.jr ra"),
    (0x8502, "jr a0", "", "c.jr a0"),
    (0x9502, "jalr a0", "", "c.jalr a0"),
    (0x9002, "ebreak", "", "c.ebreak"),
    (0x0000, "unimp", "", "c.unimp"),
    (0xa001, "j 0x0", "", "c.j 0x0"),
    (0xc101, "beqz a0,0x0", "", "c.beqz a0,0x0"),
    (0xe101, "bnez a0,0x0", "", "c.bnez a0,0x0"),
    (0x8905, "and a0,a0,1", "andi a0,a0,1", "c.andi a0,1"),
    (0x8d0d, "sub a0,a0,a1", "", "c.sub a0,a1"),
    (0x9d2d, "addw a0,a0,a1", "", "c.addw a0,a1"),
    (0x2505, "addw a0,a0,1", "addiw a0,a0,1", "c.addiw a0,1"),
    (0x2501, "sext.w a0,a0", "", "c.addiw a0,0"),
    (0x050e, "sll a0,a0,0x3", "slli a0,a0,0x3", "c.slli a0,0x3"),
    (0x8105, "srl a0,a0,0x1", "srli a0,a0,0x1", "c.srli a0,0x1"),
    (0x4108, "lw a0,0(a0)", "", "c.lw a0,0(a0)"),
    (0x6108, "ld a0,0(a0)", "", "c.ld a0,0(a0)"),
    (0x2108, "fld fa0,0(a0)", "", "c.fld fa0,0(a0)"),
    (0x60a2, "ld ra,8(sp)", "", "c.ldsp ra,8(sp)"),
    (0xe406, "sd ra,8(sp)", "", "c.sdsp ra,8(sp)"),
    (0xa422, "fsd fs0,8(sp)", "", "c.fsdsp fs0,8(sp)"),
    (0x0015, "c.nop 5", "", "c.addi zero,5"),
    (0x4015, "c.li zero,5", "", ""),
    (0x6015, "c.lui zero,0x5", "", ""),
    (0x8006, "c.mv zero,ra", "", ""),
    (0x9006, "c.add zero,ra", "", ""),
    (0x0502, "c.slli64 a0", "", ""),
    (0x8002, ".2byte 0x8002", ".insn 2, 0x8002", ""),
];

/// What 2.40 does not know, as 2.45 writes it.
#[rustfmt::skip]
const NEWER: &[Row] = &[
    (0x0eb5_5533, "czero.eqz a0,a0,a1", "", ""),
    (0x28b5_252f, "amocas.w a0,a1,(a0)", "", ""),
    (0x00b5_052f, "amoadd.b a0,a1,(a0)", "", ""),
    (0xf010_8553, "fli.s fa0,min", "", ""),
    (0xf018_0553, "fli.s fa0,0x1p+0", "", ""),
    (0xc285_9553, "fcvtmod.w.d a0,fa1,rtz", "", ""),
    (0x1040_0073, "sctrclr", "", ""),
    (0x7020_0073, "mnret", "", ""),
    (0x81c5_c573, "mop.r.0 a0,a1", "", ""),
    (0x14e0_2573, "csrr a0,sctrctl", "", "csrrs a0,sctrctl,zero"),
    (0x8128, "lbu a0,2(a0)", "", "c.lbu a0,2(a0)"),
    (0x9d75, "not a0,a0", "", "c.not a0"),
    (0x9d61, "zext.b a0,a0", "", "c.zext.b a0"),
    (0x9d4d, "mul a0,a0,a1", "", "c.mul a0,a1"),
    (0xb842, "cm.push {ra},-16", "", ""),
    (0xb872, "cm.push {ra,s0-s2},-32", "", ""),
    (0xbefe, "cm.popret {ra,s0-s11},160", "", ""),
    (0xacbe, "cm.mvsa01 s1,s7", "", ""),
    (0xa07e, "cm.jt 31", "", ""),
    (0xa082, "cm.jalt 32", "", ""),
];

/// As objdump writes addresses where there are no symbols.
struct Bare;

impl Resolve for Bare {
    fn address(&self, f: &mut Formatter<'_>, address: u64) -> fmt::Result {
        write!(f, "{address:#x}")
    }
}

fn text(bits: u32, style: &Style) -> String {
    let inst = decode(bits, style.isa);
    let text = inst.text(0, style).resolve(&Bare).to_string();
    text.replace('\t', " ")
}

fn check(rows: &[Row], arch: &str) {
    let old = Style::new(Isa::parse(arch).unwrap());
    let new = Style {
        dialect: Dialect::Binutils245,
        ..old
    };
    let plain = Style {
        aliases: false,
        ..new
    };
    for &(bits, in_old, in_new, in_plain) in rows {
        let or = |text: &'static str, other| if text.is_empty() { other } else { text };
        let in_new = or(in_new, in_old);
        assert_eq!(text(bits, &old), in_old, "{bits:08x}");
        assert_eq!(text(bits, &new), in_new, "{bits:08x}");
        assert_eq!(text(bits, &plain), or(in_plain, in_new), "{bits:08x}");
    }
}

#[test]
fn hand_picked() {
    check(
        FULL,
        "rv64imafdc_zicsr_zifencei_\
         zba_zbb_zbs_zbc_zbkb_zknd_zkne_zicbom_\
         zicbop_zawrs_zihintpause_svinval_h_zfh",
    );
    check(SHORT, "rv64imafdc_zicsr");
    check(
        NEWER,
        "rv64imafd_zca_zicsr_zicond_zacas_zabha_zfa_zimop_zcb_zcmp_zcmt_smctr",
    );
}

#[test]
fn numbers_for_registers() {
    let mut style = Style::new(Isa::parse("rv32imafc_zcmp").unwrap());
    style.numeric = true;
    assert_eq!(text(0x00b5_0533, &style), "add x10,x10,x11");
    assert_eq!(text(0x00b5_7553, &style), "fadd.s f10,f10,f11");
    assert_eq!(text(0xb872, &style), "cm.push {x1,x8-x9,x18},-16");
    assert_eq!(text(0xb852, &style), "cm.push {x1,x8},-16");
}

#[test]
fn floating_point_in_integer_registers() {
    let style = Style::new(Isa::parse("rv32i_zfinx").unwrap());
    assert_eq!(text(0x00b5_7553, &style), "fadd.s a0,a0,a1");
}

#[test]
fn longer_than_32_bits() {
    let style = Style::new(Isa::RV64GC);
    let bytes = [0x1f, 0, 0x34, 0x12, 0, 0];
    let inst = decode(0x1234_001f, style.isa);
    let text = |style| inst.text(0, style).raw(&bytes).to_string();
    assert_eq!(text(&style), ".byte\t0x1f, 0x00, 0x34, 0x12, 0x00, 0x00");
    let new = Style {
        dialect: Dialect::Binutils245,
        ..style
    };
    assert_eq!(text(&new), ".insn\t6, 0x1234001f");
}

#[test]
fn pairs_make_addresses() {
    let isa = Isa::RV64GC;
    let mut tracker = Tracker::new(isa.xlen(), Some(0x2000));
    let mut note = |bits, pc| tracker.note(&decode(bits, isa), pc, true);
    assert_eq!(note(0x0001_2517, 0x1000), None); // auipc a0,0x12
    assert_eq!(note(0x0345_0513, 0x1004), Some(0x1_3034)); // addi a0,a0,52
    assert_eq!(note(0x0345_0513, 0x1008), None); // used up
    assert_eq!(note(0xffc1_a503, 0x100c), Some(0x1ffc)); // lw a0,-4(gp)
    assert_eq!(note(0x0082_2503, 0x1010), Some(8)); // lw a0,8(tp)
    assert_eq!(note(0x8000_05b7, 0x1014), None); // lui a1,0x80000
    assert_eq!(note(0xfff5_859b, 0x1018), Some(0x7fff_ffff)); // addiw a1,a1,-1
}

#[test]
fn everything_has_text() {
    let mut random = Random::new(1);
    let isas = [
        "rv32gc",
        "rv64gc",
        "rv64imac_zcmp_zcmt_zcb_zimop_zcmop_zfinx",
    ];
    for isa in isas.map(|t| Isa::parse(t).unwrap()) {
        let style = Style::new(isa);
        for _ in 0..50_000 {
            let bits = random.draw() as u32;
            assert!(!text(bits, &style).is_empty());
        }
    }
}
