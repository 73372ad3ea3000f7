//! A random CTR implementation.

use hartrace_ctr::{Config, Control, Depths, RasCycles, Version};
use hartrace_isa::Xlen;

use crate::hostile::Input;

/// An implementation, in plain words.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// 0.1.4; else 1.0.
    pub(crate) draft: bool,
    /// MXLEN is 32; else 64.
    pub(crate) narrow: bool,
    pub(crate) supervisor: bool,
    pub(crate) hypervisor: bool,
    /// In ascending order.
    pub(crate) depths: Vec<u16>,
    /// Optional fields that exist, by their names in 1.0.
    pub(crate) fields: Vec<&'static str>,
    pub(crate) types: bool,
    pub(crate) mispredicts: bool,
    pub(crate) cycles: Option<u8>,
    /// Returns add the counts they pop; else calls have no counts.
    pub(crate) accumulates: bool,
    /// A predictor gets wrong what comes from an odd sixteen.
    pub(crate) predicts: bool,
}

/// The fields of the control registers: the name in 1.0, and the bits in 0.1.4
/// and in 1.0.
pub(crate) const FIELDS: [(&str, Option<u32>, Option<u32>); 22] = [
    ("M", Some(0), Some(2)),
    ("S", Some(1), Some(1)),
    ("U", Some(2), Some(0)),
    ("RASEMU", Some(10), Some(7)),
    ("MTE", Some(8), Some(9)),
    ("STE", Some(9), Some(8)),
    ("BPFRZ", Some(11), Some(11)),
    ("LCOFIFRZ", Some(12), Some(12)),
    ("EXCINH", Some(33), Some(33)),
    ("INTRINH", Some(34), Some(34)),
    ("TRETINH", Some(35), Some(35)),
    ("NTBREN", Some(36), Some(36)),
    ("TKBRINH", Some(37), Some(37)),
    ("ETEN", Some(38), None),
    ("INDCALLINH", Some(40), Some(40)),
    ("DIRCALLINH", Some(41), Some(41)),
    ("INDJMPINH", Some(42), Some(42)),
    ("DIRJMPINH", Some(43), Some(43)),
    ("CORSWAPINH", Some(44), Some(44)),
    ("RETINH", Some(45), Some(45)),
    ("INDLJMPINH", Some(46), Some(46)),
    ("DIRLJMPINH", Some(47), Some(47)),
];

impl Plan {
    /// Whether the texts allow it.
    pub(crate) fn is_allowed(&self) -> bool {
        let has = |name: &str| self.fields.contains(&name);
        let consecutive = self.depths.windows(2).all(|pair| match pair {
            [a, b] => *b == 2 * a,
            _ => false,
        });
        let external = if self.draft {
            // With ETEN there is MTE, and STE if there is S-mode.
            !has("ETEN") || has("MTE") && (has("STE") || !self.supervisor)
        } else {
            has("MTE") == has("STE")
        };
        !self.depths.is_empty()
            && (consecutive || !self.draft)
            && external
            && (self.supervisor || self.draft && !self.hypervisor)
            && self.cycles.is_none_or(|bits| bits <= 4)
    }

    /// The bit of a field, if there is one and it is implemented.
    pub(crate) fn bit(&self, name: &str) -> u64 {
        let Some((_, draft, ratified)) = FIELDS.iter().find(|row| row.0 == name) else {
            return 0;
        };
        let required = match name {
            "M" | "U" => true,
            "S" => self.supervisor,
            "BPFRZ" => !self.draft,
            _ => false,
        };
        let there = required || self.fields.contains(&name);
        let gone = !self.supervisor && (name == "S" || name == "STE");
        let bit = if self.draft { draft } else { ratified };
        match bit {
            Some(bit) if there && !gone => 1 << bit,
            _ => 0,
        }
    }

    /// The writable bits of the machine's register, but CLR and DEPTH.
    pub(crate) fn writable(&self) -> u64 {
        FIELDS.iter().map(|row| self.bit(row.0)).sum()
    }
}

/// Any implementation, also such as are none.
pub(crate) fn plan(input: &mut Input<'_>) -> Plan {
    let kind = input.byte();
    let bit = |n: u32| kind >> n & 1 != 0;
    let draft = bit(0);
    let hypervisor = bit(1);
    let depths = match input.below(4) {
        0 => 0b11111,
        1 => 0b00001,
        _ => input.byte() & 31,
    };
    let some = input.number(3);
    let fields = FIELDS.iter().enumerate().filter(|(n, _)| match kind >> 6 {
        0 => false,
        1 => some >> n & 1 != 0,
        _ => true,
    });
    Plan {
        draft,
        narrow: bit(2),
        // Rarely none, and rarely none that is needed.
        supervisor: !bit(3) || hypervisor && bit(4),
        hypervisor,
        depths: (0..5)
            .filter(|n| depths >> n & 1 != 0)
            .map(|n| 16 << n)
            .collect(),
        fields: fields.map(|(_, row)| row.0).collect(),
        types: input.below(4) != 0,
        mispredicts: input.below(4) != 0,
        cycles: match input.below(8) {
            6 => None,
            bits => Some(bits.min(5)),
        },
        accumulates: input.flag(),
        predicts: input.below(4) == 0,
    }
}

/// The same in the words of the crate.
pub(crate) fn config(plan: &Plan) -> Config {
    let depths = plan.depths.iter();
    let fields = plan.fields.iter().filter_map(|name| Control::field(name));
    Config {
        version: if plan.draft {
            Version::V0_1_4
        } else {
            Version::V1_0
        },
        xlen: if plan.narrow { Xlen::Rv32 } else { Xlen::Rv64 },
        supervisor: plan.supervisor,
        hypervisor: plan.hypervisor,
        depths: depths.fold(Depths::NONE, |set, d| set.with(*d).unwrap_or(set)),
        fields: fields.fold(Control::NONE, Control::with),
        types: plan.types,
        mispredicts: plan.mispredicts,
        cycles: plan.cycles,
        ras_cycles: if plan.accumulates {
            RasCycles::Accumulate
        } else {
            RasCycles::Invalid
        },
    }
}

/// Makes an implementation of what is none.
pub(crate) fn repair(plan: &mut Plan) {
    if plan.depths.is_empty() {
        plan.depths = vec![32];
    }
    if plan.draft {
        let (least, most) = (plan.depths.first(), plan.depths.last());
        if let (Some(&least), Some(&most)) = (least, most) {
            plan.depths = (4..9)
                .map(|bit| 1 << bit)
                .filter(|d| (least..=most).contains(d))
                .collect();
        }
    }
    for name in ["MTE", "STE"] {
        if !plan.fields.contains(&name) {
            plan.fields.push(name);
        }
    }
    plan.supervisor |= plan.hypervisor || !plan.draft;
    plan.cycles = plan.cycles.map(|bits| bits.min(4));
}
