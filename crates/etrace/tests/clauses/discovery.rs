//! Chapter 9: every row of its tables, and the registers of 9.2.

use hartrace_etrace::{
    Config, ConfigError, DataConfig, Parameter, ParameterError, ParameterTable, Parameters,
    RegisterField, Registers, Version,
};
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

use crate::common::*;

/// The attribute of a default.
fn default(parameter: Parameter, version: Version) -> Option<u8> {
    parameter.attribute(parameter.default(version))
}

/// Rows of a table of attributes: the name, the default in the draft and in 2.0 if the
/// text has the attribute, and whether it is the parameter or one less.
type Row = (&'static str, Option<u8>, Option<u8>, u8);

fn check(table: ParameterTable, rows: &[Row]) {
    let listed = Parameter::ALL.iter().filter(|p| p.table() == table);
    assert_eq!(listed.count(), rows.len());
    for &(name, draft, ratified, less) in rows {
        let parameter = Parameter::find(name).expect(name);
        assert_eq!(parameter.table(), table, "{name}");
        for (version, expected) in [(DRAFT, draft), (RATIFIED, ratified)] {
            if expected.is_some() {
                assert_eq!(default(parameter, version), expected, "{name}");
            }
            let value = Parameters::new(version).get(parameter);
            assert_eq!(value, parameter.default(version), "{name}");
            assert!(parameter.range().contains(&value), "{name}");
        }
        let end = *parameter.range().end();
        assert_eq!(parameter.attribute(end), Some(end - less), "{name}");
        assert_eq!(parameter.from_attribute((end - less).into()), Ok(end));
        assert!(parameter.from_attribute(u64::from(end - less) + 1).is_err());
        assert!(parameter.from_attribute(u64::MAX).is_err());
    }
}

#[test]
fn table_9_1_parameters() {
    let names = [
        "arch_p",
        "bpred_size_p",
        "cache_size_p",
        "call_counter_size_p",
        "ctype_width_p",
        "context_width_p",
        "ecause_width_p",
        "ecause_choice_p",
        "f0s_width_p",
        "filter_context_p",
        "filter_excint_p",
        "filter_privilege_p",
        "filter_tval_p",
        "iaddress_lsb_p",
        "iaddress_width_p",
        "iretire_width_p",
        "ilastsize_width_p",
        "itype_width_p",
        "nocontext_p",
        "privilege_width_p",
        "retires_p",
        "return_stack_size_p",
        "sijump_p",
        "taken_branches_p",
        "impdef_width_p",
        // Added by 2.0.
        "time_width_p",
        "filter_time_p",
        "notime_p",
        "daddress_width_p",
        "dblock_width_p",
        "data_width_p",
        "dsize_width_p",
        "dtype_width_p",
        "iaddr_lsbs_width_p",
        "lrid_width_p",
        "lresp_width_p",
        "ldata_width_p",
        "sdata_width_p",
    ];
    for name in names {
        assert_eq!(Parameter::find(name).expect(name).to_string(), name);
    }
    // 2.0 renames one.
    assert_eq!(Parameter::find("blocks_p"), Some(Parameter::TakenBranches));
    assert_eq!(Parameter::find("blocks_p_p"), None);
    // Those that table 9.3 and the registers have besides.
    let others = [
        "comparators",
        "filters",
        "version",
        "minor_revision",
        "filter_impdef",
    ];
    assert_eq!(Parameter::ALL.len(), names.len() + others.len());
    for name in others {
        assert_eq!(Parameter::find(name).expect(name).name(), name);
    }
}

#[test]
fn table_9_2_required_attributes() {
    check(
        ParameterTable::Required,
        &[
            ("arch", Some(0), Some(0), 0),
            ("bpred_size", Some(0), Some(0), 0),
            ("cache_size", Some(0), Some(0), 0),
            ("call_counter_size", Some(0), Some(0), 0),
            ("context_width", Some(0), Some(0), 1),
            ("time_width", None, Some(0), 1),
            ("ecause_width", Some(3), Some(3), 1),
            ("f0s_width", Some(0), Some(0), 0),
            ("iaddress_lsb", Some(0), Some(0), 1),
            ("iaddress_width", Some(31), Some(31), 1),
            ("nocontext", Some(0), Some(1), 0),
            ("notime", None, Some(1), 0),
            ("privilege_width", Some(2), Some(1), 1),
            ("return_stack_size", Some(0), Some(0), 0),
            ("sijump", Some(0), Some(0), 0),
        ],
    );
    // The draft has no time.
    assert!(Parameters::new(DRAFT).notime);
}

#[test]
fn table_9_3_filtering_attributes() {
    check(
        ParameterTable::Filtering,
        &[
            ("comparators", Some(0), Some(0), 1),
            ("filters", Some(0), Some(0), 1),
            ("ecause_choice", Some(5), Some(5), 0),
            ("filter_context", Some(1), Some(1), 0),
            ("filter_time", None, Some(1), 0),
            ("filter_excint", Some(1), Some(1), 0),
            ("filter_privilege", Some(1), Some(1), 0),
            ("filter_tval", Some(1), Some(1), 0),
        ],
    );
}

#[test]
fn table_9_4_other_attributes() {
    check(
        ParameterTable::Other,
        &[
            ("ctype_width", Some(1), Some(0), 1),
            ("ilastsize_width", Some(0), Some(0), 1),
            ("itype_width", Some(4), Some(3), 1),
            ("iretire_width", Some(2), Some(1), 1),
            ("retires", Some(0), Some(0), 1),
            ("taken_branches", Some(0), None, 1),
            ("impdef_width", Some(0), Some(0), 1),
        ],
    );
}

#[test]
fn data_trace_attributes() {
    check(
        ParameterTable::Data,
        &[
            ("daddress_width", None, Some(31), 1),
            ("dblock_width", None, Some(0), 1),
            ("data_width", None, Some(31), 1),
            ("dsize_width", None, Some(2), 1),
            ("dtype_width", None, Some(0), 1),
            ("iaddr_lsbs_width", None, Some(0), 1),
            ("lrid_width", None, Some(0), 1),
            ("lresp_width", None, Some(0), 1),
            ("ldata_width", None, Some(31), 1),
            ("sdata_width", None, Some(31), 1),
        ],
    );
}

/// 9.2: bit offsets and widths.
#[test]
fn register_fields() {
    let expected = [
        ("version", 0, 0, 4),
        ("minor_revision", 0, 4, 4),
        ("arch", 0, 8, 4),
        ("bpred_size", 0, 12, 4),
        ("cache_size", 0, 16, 4),
        ("call_counter_size", 0, 20, 3),
        ("comparators", 0, 23, 3),
        ("context_type_width", 0, 26, 5),
        ("context_width", 0, 31, 5),
        ("ecause_choice", 0, 36, 3),
        ("ecause_width", 0, 39, 4),
        ("filters", 0, 43, 4),
        ("filter_context", 0, 47, 1),
        ("filter_excint", 0, 48, 4),
        ("filter_privilege", 0, 52, 1),
        ("filter_tval", 0, 53, 1),
        ("filter_impdef", 0, 54, 1),
        ("f0s_width", 0, 55, 2),
        ("iaddress_lsb", 0, 57, 2),
        ("iaddress_width", 1, 0, 7),
        ("ilastsize_width", 1, 7, 7),
        ("itype_width", 1, 14, 7),
        ("iretire_width", 1, 21, 7),
        ("nocontext", 1, 28, 1),
        ("privilege_width", 1, 29, 2),
        ("retires", 1, 31, 3),
        ("return_stack_size", 1, 34, 4),
        ("sijump", 1, 38, 1),
        ("taken_branches", 1, 39, 4),
        ("impdef_width", 1, 43, 5),
    ];
    let fields = RegisterField::all().map(|f| (f.name(), f.register, f.offset, f.width));
    assert!(fields.eq(expected));
    for (name, ..) in expected {
        let field = RegisterField::all().find(|f| f.name() == name).unwrap();
        assert_eq!(Parameter::find(name), Some(field.parameter));
    }
}

/// The values that both a parameter and its field can have.
fn room(field: &RegisterField) -> (u64, u64) {
    let range = field.parameter.range();
    let less = u64::from(*range.end() - field.parameter.attribute(*range.end()).unwrap());
    let largest = (1 << field.width) - 1 + less;
    let from = u64::from(*range.start()).max(less);
    (from, largest.min((*range.end()).into()))
}

#[test]
fn registers_of_the_defaults() {
    let registers = Registers::pack(&Parameters::new(RATIFIED)).unwrap();
    // Filters match context, causes, privilege and trap values; a cause of four bits,
    // five of them matched by choice.
    let low = 5 << 36 | 3 << 39 | 1 << 47 | 1 << 48 | 1 << 52 | 1 << 53;
    // 32-bit addresses, itype of four bits, iretire of two, no context, two bits of
    // privilege.
    let high = 31 | 3 << 14 | 1 << 21 | 1 << 28 | 1 << 29;
    assert_eq!(registers, Registers([low, high]));
    let draft = Registers::pack(&Parameters::new(DRAFT)).unwrap();
    let high = 31 | 4 << 14 | 2 << 21 | 2 << 29;
    assert_eq!(draft, Registers([low | 1 << 26, high]));
    for version in VERSIONS {
        let parameters = Parameters::new(version);
        let registers = Registers::pack(&parameters).unwrap();
        assert_eq!(registers.unpack(version), Ok(parameters));
    }
}

#[test]
fn registers_packed_and_unpacked() {
    let mut random = Random::new(9);
    for version in VERSIONS {
        for _ in 0..200 {
            let mut parameters = Parameters::new(version);
            for field in RegisterField::all() {
                let (from, to) = room(&field);
                let value = from + random.below(to - from + 1);
                parameters.set(field.parameter, value).unwrap();
            }
            let registers = Registers::pack(&parameters).unwrap();
            assert_eq!(registers.unpack(version), Ok(parameters));
            assert_eq!(Registers::omitted(&parameters, version).count(), 0);
        }
    }
    // Each end of each field by itself: no field touches another.
    for field in RegisterField::all() {
        let (from, to) = room(&field);
        for value in [from, to] {
            let mut parameters = Parameters::new(RATIFIED);
            parameters.set(field.parameter, value).unwrap();
            let registers = Registers::pack(&parameters).unwrap();
            assert_eq!(u64::from(field.read(registers).unwrap()), value);
            assert_eq!(registers.unpack(RATIFIED), Ok(parameters));
        }
    }
}

#[test]
fn registers_that_mean_nothing() {
    let good = Registers::pack(&Parameters::new(RATIFIED)).unwrap();
    let with = |register: usize, bits: u64| {
        let mut registers = good;
        registers.0[register] |= bits;
        registers.unpack(RATIFIED)
    };
    for (register, bits) in [(0, 1 << 59), (0, 1 << 63), (1, 1 << 48), (1, 1 << 63)] {
        let expected = ParameterError::Reserved {
            register: register as u8,
            bits,
        };
        assert_eq!(with(register, bits), Err(expected));
    }
    // Three bits of subformat, and addresses without their lowest four bits.
    let error = with(0, 3 << 55).unwrap_err();
    assert_eq!(error.to_string(), "f0s_width_p must be 0 to 2, not 3");
    let error = with(0, 3 << 57).unwrap_err();
    assert_eq!(error.to_string(), "iaddress_lsb_p must be 0 to 2, not 4");
    // Any bits: parameters or an error.
    let mut random = Random::new(92);
    for _ in 0..1000 {
        let registers = Registers([random.draw() >> 5, random.draw() >> 16]);
        if let Ok(parameters) = registers.unpack(RATIFIED) {
            assert_eq!(Registers::pack(&parameters), Ok(registers));
        }
    }
}

#[test]
fn parameters_without_a_place_in_the_registers() {
    for (parameter, value, message) in [
        (
            Parameter::IaddressLsb,
            0,
            "iaddress_lsb_p = 0 does not fit its register field, which holds 1 to 4",
        ),
        (
            Parameter::ContextWidth,
            33,
            "context_width_p = 33 does not fit its register field, which holds 1 to 32",
        ),
        (
            Parameter::CallCounterSize,
            8,
            "call_counter_size_p = 8 does not fit its register field, which holds 0 to 7",
        ),
        (
            Parameter::Retires,
            9,
            "retires_p = 9 does not fit its register field, which holds 1 to 8",
        ),
    ] {
        let mut parameters = Parameters::new(RATIFIED);
        parameters.set(parameter, value).unwrap();
        let error = Registers::pack(&parameters).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    // Time and data trace have no fields at all.
    let mut parameters = Parameters::new(RATIFIED);
    parameters.notime = false;
    parameters.data_width = 64;
    let omitted: Vec<Parameter> = Registers::omitted(&parameters, RATIFIED).collect();
    assert_eq!(omitted, [Parameter::Notime, Parameter::DataWidth]);
}

#[test]
fn parameters_out_of_range() {
    for &parameter in Parameter::ALL {
        let range = parameter.range();
        let mut parameters = Parameters::new(RATIFIED);
        for value in range.clone() {
            parameters.set(parameter, value.into()).unwrap();
            assert_eq!(parameters.get(parameter), value);
        }
        let (start, end) = (u64::from(*range.start()), u64::from(*range.end()));
        for value in [Some(end + 1), start.checked_sub(1), Some(u64::MAX)] {
            let Some(value) = value else { continue };
            let error = parameters.set(parameter, value).unwrap_err();
            assert_eq!(error, ParameterError::Range { parameter, value });
            let words = format!("{parameter} must be {start} to {end}, not {value}");
            assert_eq!(error.to_string(), words);
        }
    }
    let both = Parameters {
        bpred_size: 4,
        cache_size: 4,
        ..Parameters::new(RATIFIED)
    };
    assert_eq!(both.validate(), Err(ConfigError::F0sNeeded.into()));
    let wrong = Parameters {
        ecause_width: 65,
        ..Parameters::new(RATIFIED)
    };
    assert!(wrong.validate().is_err());
}

/// The widths and sizes of packets are those of the parameters, and come back.
#[test]
fn parameters_and_settings() {
    for version in VERSIONS {
        let draft = version == DRAFT;
        let assumed = Parameters::new(version);
        let config = assumed.config(version, Xlen::Rv32, false).unwrap();
        assert_eq!(config.context_width, u8::from(draft));
        assert_eq!(config.time_width, 0);
        assert_eq!((config.ecause_width, config.iaddress_width), (4, 32));
        assert_eq!(config.privilege_width, if draft { 3 } else { 2 });
        let again = Parameters {
            itype_width: assumed.itype_width,
            ..Parameters::of(&config)
        };
        assert_eq!(again, assumed);
    }
    let parameters = Parameters {
        bpred_size: 5,
        cache_size: 6,
        call_counter_size: 3,
        context_width: 20,
        time_width: 40,
        ecause_width: 9,
        f0s_width: 1,
        iaddress_lsb: 2,
        iaddress_width: 48,
        nocontext: false,
        notime: false,
        privilege_width: 4,
        return_stack_size: 7,
        daddress_width: 40,
        data_width: 64,
        lrid_width: 5,
        itype_width: 4,
        ..Parameters::new(RATIFIED)
    };
    let config = parameters.config(RATIFIED, Xlen::Rv64, true).unwrap();
    let expected = Config {
        bpred_size: 5,
        cache_size: 6,
        call_counter_size: 3,
        context_width: 20,
        time_width: 40,
        ecause_width: 9,
        f0s_width: 1,
        iaddress_lsb: 2,
        iaddress_width: 48,
        privilege_width: 4,
        return_stack_size: 7,
        data: Some(DataConfig {
            daddress_width: 40,
            data_width: 64,
            lrid_width: 5,
            ..DataConfig::new(RATIFIED, Xlen::Rv64)
        }),
        ..Config::new(RATIFIED, Xlen::Rv64)
    };
    assert_eq!(config, expected);
    assert_eq!(Parameters::of(&config), parameters);
    // What one half allows, the other may not.
    let error = parameters.config(DRAFT, Xlen::Rv64, false).unwrap_err();
    assert_eq!(error, ConfigError::DraftTime.into());
    let error = parameters.config(RATIFIED, Xlen::Rv32, false).unwrap_err();
    assert_eq!(error, ConfigError::IaddressWidth.into());
    let one = Parameters {
        privilege_width: 1,
        ..parameters
    };
    let error = one.config(RATIFIED, Xlen::Rv64, false).unwrap_err();
    assert_eq!(error, ConfigError::PrivilegeWidth.into());
}
