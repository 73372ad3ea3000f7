use super::*;
use hartrace_etrace::{Compression, ResyncUnit};
use hartrace_testkit::Random;

fn parse(text: &str) -> Config {
    Config::parse(text, Path::new("a.scf")).unwrap()
}

fn refused_with(text: &str) -> (String, Range<usize>) {
    let error = Config::parse(text, Path::new("a.scf")).unwrap_err();
    (error.to_string(), error.span)
}

/// As the files of the reference flow look: both kinds of comments, headings with
/// spaces, values with and without spaces around the sign.
const INSTRUCTIONS: &str = "# A static configuration
[Required Attributes]
arch_p=0
bpred_size_p=0
cache_size_p = 5    # 32 targets
call_counter_size_p=0
context_width_p=0x20
time_width_p=1
ecause_width_p=5
f0s_width_p=0
iaddress_lsb_p=0
iaddress_width_p=40
nocontext_p=0
notime_p=1
privilege_width_p=2
return_stack_size_p=0
sijump_p=0

[Optional Filtering Attributes]
comparators_p=2
filters_p=3
ecause_choice_p=5
filter_context_p=1
filter_time_p=1
filter_excint_p=1
filter_privilege_p=0
filter_tval_p=1

[Other Recommended Attributes]
ctype_width_p=2
ilastsize_width_p=1
itype_width_p=3
iretire_width_p=3
retires_p=1
taken_branches_p=1
impdef_width_p=1
";

const DATA: &str = "; Data trace
[required]
daddress_width_p = 48
dblock_width_p = 1
data_width_p = 32
dsize_width_p = 3
dtype_width_p = 2
iaddr_lsbs_width_p = 1
lrid_width_p = 6
lresp_width_p = 1
ldata_width_p = 32
sdata_width_p = 32
";

const MODES: &str = "; A user configuration
[required]
file-stem = NOT_SET
debug-flags = 0x7f
ip-version = 6
object-files = NOT_SET

[codec]
; one value, not a range
cycle-accurate = false
resync-max = 3
full-address = true
implicit-except = false
si-jump = false
implicit-return = false
branch-prediction = false
jump-target-cache = true

[flags]
print-set-pc = false
use-rv32-isa = false
";

const DATA_MODES: &str = "[codec]
full-daddress = true
full-data = false
no-address = false
no-data = true
data-compress = 2
";

#[test]
fn forms_by_content() {
    let registers = "discovery_info_0 = 0\ndiscovery_info_1 = 0\n";
    for (text, form) in [
        ("", Form::Toml),
        ("# nothing\n", Form::Toml),
        ("[etrace]\nversion = \"2.0\"\n", Form::Toml),
        ("[etrace.parameters]\narch = 0\n", Form::Toml),
        ("[[filter.any]]\naddress = 1\n", Form::Toml),
        ("isaa = 3\n", Form::Toml),
        ("what is this\n", Form::Toml),
        (INSTRUCTIONS, Form::Scf),
        (DATA, Form::Scf),
        ("[attributes]\narch_p=0\n", Form::Scf),
        ("\u{feff}arch_p=0\n", Form::Scf),
        (MODES, Form::Ucf),
        (DATA_MODES, Form::Ucf),
        (registers, Form::Registers),
        ("\n<?xml version=\"1.0\"?>", Form::Ipxact),
        ("\u{feff}<a/>", Form::Ipxact),
    ] {
        assert_eq!(Form::detect(text), form, "{text}");
    }
}

#[test]
fn parameters_become_the_keys_they_determine() {
    let config = parse(INSTRUCTIONS);
    let expected = "[ingress]
itype_width = 3
sijump = false

[etrace]
iaddress_width = 40
iaddress_lsb = 0
privilege_width = 2
context_width = 32
time_width = 0
ecause_width = 5
f0s_width = 0
bpred_size = 0
cache_size = 5
call_counter_size = 0
return_stack_size = 0

[etrace.parameters]
arch = 0
comparators = 2
filters = 3
ecause_choice = 5
filter_context = true
filter_time = true
filter_excint = 1
filter_privilege = false
filter_tval = true
ctype_width = 2
ilastsize_width = 1
iretire_width = 3
retires = 1
taken_branches = 1
impdef_width = 1
";
    assert_eq!(config.to_toml(false), expected);
    let cache = config.etrace.cache_size.unwrap();
    assert_eq!(cache.origin.to_string(), "a.scf:5");
    let data = parse(DATA).etrace;
    assert!(data.data.is_enabled());
    let said = |setting: Option<Setting<u8>>| setting.map(|s| s.value);
    assert_eq!(said(data.data.daddress_width), Some(48));
    assert_eq!(said(data.data.lrid_width), Some(6));
    assert_eq!(said(data.parameters.dtype_width), Some(2));
    // Nothing about instruction trace follows from a file about data trace.
    assert_eq!(data.iaddress_width, None);
}

#[test]
fn modes_of_the_reference_flow() {
    let etrace = parse(MODES).etrace;
    let value = |setting: &Option<Setting<bool>>| setting.as_ref().unwrap().value;
    assert!(value(&etrace.full_address) && value(&etrace.jump_target_cache));
    assert!(!value(&etrace.implicit_exception) && !value(&etrace.sijump));
    assert_eq!(etrace.resync_max.unwrap().value, 3);
    assert_eq!(etrace.resync.unwrap().value, ResyncUnit::Packets);
    let data = parse(DATA_MODES).etrace.data;
    assert!(value(&data.full_address) && value(&data.no_data));
    assert_eq!(data.compression.unwrap().value, Compression::Differential);

    // Both files together, and back.
    let both = parse(MODES).over(parse(INSTRUCTIONS));
    let (text, omitted) = both.to_form(Form::Ucf, Xlen::Rv64).unwrap();
    assert!(omitted.is_empty());
    let again = parse(&text).over(parse(INSTRUCTIONS));
    let settings = |config: &Config| config.etrace.settings(Xlen::Rv64).unwrap();
    assert_eq!(settings(&again), settings(&both));
    let both = parse(DATA_MODES).over(parse(DATA));
    let (text, _) = both.to_form(Form::Ucf, Xlen::Rv64).unwrap();
    let again = parse(&text).over(parse(DATA));
    assert_eq!(settings(&again), settings(&both));
    // More than the register has room for, as in a suite of the reference flow.
    let etrace = parse("resync-max = 16\n").etrace;
    assert_eq!(etrace.settings(Xlen::Rv64).unwrap().resync.max, 16);
    // A counter of cycles has no key.
    let cycles = Config::parse("[etrace]\nresync = \"cycles\"\n", Path::new("a.toml")).unwrap();
    let (text, omitted) = cycles.to_form(Form::Ucf, Xlen::Rv64).unwrap();
    assert_eq!(omitted, ["resync"]);
    assert!(!text.contains("resync"), "{text}");
}

#[test]
fn missing_attributes_have_their_defaults() {
    let config = parse("iaddress_lsb_p=2\n");
    let settings = config.etrace.settings(Xlen::Rv32).unwrap();
    assert_eq!(settings.iaddress_lsb, 2);
    assert_eq!((settings.ecause_width, settings.iaddress_width), (4, 32));
    let origin = config.etrace.ecause_width.unwrap().origin;
    assert_eq!(origin, Origin::Default);
    // 2.0 excludes the context by default, the draft does not.
    let (message, _) = refused_with("context_width_p=8\n");
    let words = "`context_width` needs `nocontext`, whose default is not the same in all versions";
    assert_eq!(message, words);
    let given = parse("context_width_p=8\nnocontext_p=0\n").etrace;
    assert_eq!(given.context_width.unwrap().value, 8);
    // A bus that no packet shows.
    let given = parse("context_width_p=8\nnocontext_p=1\ntime_width_p=9\n").etrace;
    assert_eq!(given.context_width.unwrap().value, 0);
    assert_eq!(given.parameters.context_bus.unwrap().value, 8);
    assert_eq!(given.time_width.unwrap().value, 0);
    assert_eq!(given.parameters.time_bus.unwrap().value, 9);
}

#[test]
fn mistakes_in_pairs_have_their_places() {
    for (text, at, words) in [
        (
            "arch_p=0\nbpred_size_p = 16\n",
            "16",
            "`bpred_size` takes a number from 0 to 15",
        ),
        (
            "arch_p=0\nbpred_size_p = -1\n",
            "-1",
            "`bpred_size` takes a number from 0 to 15",
        ),
        (
            "arch_p=0\nbpred_size_p = +1\n",
            "+1",
            "`bpred_size` takes a number from 0 to 15",
        ),
        (
            "bpred_size_p = 0x+1\n",
            "0x+1",
            "`bpred_size` takes a number from 0 to 15",
        ),
        (
            "bpred_size_p =\n",
            "",
            "`bpred_size` takes a number from 0 to 15",
        ),
        (
            "itype_width_p=2\n",
            "2",
            "`itype_width` takes a number from 3 to 128",
        ),
        (
            "nocontext_p=2\n",
            "2",
            "`nocontext` takes a number from 0 to 1",
        ),
        (
            "arch_p=0\nbpred_sice_p=1\n",
            "bpred_sice_p",
            "unknown key `bpred_sice_p` in an .scf or .ucf file; did you mean `bpred_size`?",
        ),
        (
            "arch_p=0\nbpred_size=1\n",
            "bpred_size",
            "unknown key `bpred_size` in an .scf or .ucf file",
        ),
        (
            "resync-max = 1\nsi-jumps = true\n",
            "si-jumps",
            "unknown key `si-jumps` in an .scf or .ucf file; did you mean `si-jump`?",
        ),
        ("arch_p=0\narch_p=1\n", "arch_p", "`arch` is given twice"),
        (
            "si-jump = true\nsi-jump = true\n",
            "si-jump",
            "`si-jump` is given twice",
        ),
        ("arch_p=0\nwhat\n", "what", "expected `key = value`"),
        (
            "resync-max = 28\n",
            "28",
            "`resync-max` takes a number from 0 to 27",
        ),
        ("si-jump = 1\n", "1", "`si-jump` takes true or false"),
        (
            "data-compress = 4\n",
            "4",
            "`data-compress` takes a number from 0 to 3",
        ),
        (
            "cycle-accurate = true\n",
            "true",
            "`cycle-accurate` takes false: there is no cycle-accurate trace",
        ),
        (
            "discovery_info_0 = 0\n",
            "",
            "`discovery_info_0` and `discovery_info_1` are both needed",
        ),
        (
            "discovery_info_0 = x\n",
            "x",
            "`discovery_info_0` takes a 64-bit number such as 0x1234",
        ),
        (
            "discovery_info_1 = 1x\n",
            "1x",
            "`discovery_info_1` takes a 64-bit number such as 0x1234",
        ),
        (
            "discovery_info_1 = 1\ndiscovery_info_1 = 1\n",
            "discovery_info_1",
            "`discovery_info_1` is given twice",
        ),
    ] {
        let (message, span) = refused_with(text);
        assert_eq!(message, words, "{text}");
        assert_eq!(text.get(span), Some(at), "{text}");
    }
}

/// Parameters of a possible encoder; with `registers` only what these can hold.
fn random_parameters(random: &mut Random, registers: bool) -> Parameters {
    let mut parameters = Parameters::new(Version::V2_0);
    for &parameter in Parameter::ALL {
        let (from, to) = match parameter {
            Parameter::PrivilegeWidth => (2, 4),
            Parameter::ContextWidth | Parameter::TimeWidth => (1, 32),
            Parameter::EcauseWidth => (1, 16),
            Parameter::CallCounterSize | Parameter::ReturnStackSize => (0, 7),
            Parameter::IaddressLsb => (u32::from(registers), 2),
            Parameter::F0sWidth => (1, 2),
            Parameter::Retires => (1, 8),
            Parameter::TakenBranches => (1, 16),
            Parameter::ImpdefWidth => (1, 32),
            p => (u32::from(*p.range().start()), u32::from(*p.range().end())),
        };
        let fixed = registers && !RegisterField::all().any(|field| field.parameter == parameter);
        if !fixed {
            let value = random.between(from, to);
            parameters.set(parameter, value.into()).unwrap();
        }
    }
    parameters.data_width = if registers || random.flip() { 32 } else { 64 };
    parameters
}

/// Every form says the same as every other.
#[test]
fn forms_round_trip() {
    let mut random = Random::new(19);
    for _ in 0..30 {
        let parameters = random_parameters(&mut random, false);
        let scf = pairs::write_scf(&parameters, Version::V2_0, true);
        let config = parse(&scf);
        assert_eq!(config.parameters(Xlen::Rv64), Ok(parameters), "{scf}");
        assert_eq!(config.to_form(Form::Scf, Xlen::Rv64).unwrap().0, scf);
        let toml = config.to_toml(false);
        let again = parse(&toml);
        assert_eq!(again.to_toml(false), toml);
        assert_eq!(again.parameters(Xlen::Rv64), Ok(parameters), "{toml}");

        let parameters = random_parameters(&mut random, true);
        let scf = pairs::write_scf(&parameters, Version::V2_0, false);
        for form in [Form::Registers, Form::Ipxact] {
            let (text, omitted) = parse(&scf).to_form(form, Xlen::Rv64).unwrap();
            assert!(omitted.is_empty());
            assert_eq!(Form::detect(&text), form);
            let again = parse(&text);
            assert_eq!(again.parameters(Xlen::Rv64), Ok(parameters), "{text}");
            assert_eq!(again.to_form(form, Xlen::Rv64).unwrap().0, text);
            assert_eq!(again.to_form(Form::Scf, Xlen::Rv64).unwrap().0, scf);
        }
        let registers = Registers::pack(&parameters).unwrap();
        let config = Config::from_registers(registers.0, None).unwrap();
        assert_eq!(config.parameters(Xlen::Rv64), Ok(parameters));
    }
}

#[test]
fn what_the_registers_cannot_say() {
    let config = parse("notime_p=0\ntime_width_p=8\niaddress_lsb_p=1\n").over(parse(DATA));
    let (_, omitted) = config.to_form(Form::Registers, Xlen::Rv64).unwrap();
    for name in [
        "time_width",
        "notime",
        "daddress_width",
        "dtype_width",
        "lrid_width",
    ] {
        assert!(omitted.iter().any(|other| other == name), "{omitted:?}");
    }
    let error = parse("iaddress_lsb_p=0\n").to_form(Form::Ipxact, Xlen::Rv32);
    let words = "iaddress_lsb_p = 0 does not fit its register field, which holds 1 to 4";
    assert_eq!(error.unwrap_err().to_string(), words);
}

/// A description of one register with a field, which may have a value, wherever that
/// stands.
fn description(register: &str, field: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<ipxact:component xmlns:ipxact=\"x\"><ipxact:memoryMaps>\n\
         <ipxact:register><ipxact:name>other</ipxact:name>\n\
         <ipxact:field><ipxact:name>anything</ipxact:name></ipxact:field></ipxact:register>\n\
         <ipxact:register>{register}<ipxact:field>\n{field}</ipxact:field></ipxact:register>\n\
         </ipxact:memoryMaps></ipxact:component>\n"
    )
}

const FIRST: &str = "<ipxact:name>discovery_info_0</ipxact:name>";

#[test]
fn descriptions_of_any_layout() {
    let field = "<ipxact:name>>bpred_size</ipxact:name><ipxact:bitOffset>'h4</ipxact:bitOffset>\
                 <ipxact:bitWidth>4</ipxact:bitWidth>";
    let field = field.replace(">>", ">");
    let reset =
        |value: &str| format!("<ipxact:reset><ipxact:value>{value}</ipxact:value></ipxact:reset>");
    let size = |config: Config| config.etrace.bpred_size.unwrap().value;
    // In the field, as 1685-2014 has it, and in the register.
    for value in ["9", "'h9", "0x9", "4'b1001", "'d9", "'o11"] {
        let with = format!("{field}<ipxact:resets>{}</ipxact:resets>", reset(value));
        assert_eq!(size(parse(&description(FIRST, &with))), 9, "{value}");
    }
    let register = format!("{FIRST}{}", reset("64'h0000_0000_0000_00a3"));
    assert_eq!(size(parse(&description(&register, &field))), 10);
    // Without values, those of the registers.
    let text = description(FIRST, &field);
    let config = Config::from_registers([0x70, 0], Some(&text)).unwrap();
    assert_eq!(size(config), 7);
    let error = Config::from_registers([0x170, 0], Some(&text)).unwrap_err();
    let words = "bits 0x100 of discovery_info_0 are set, but belong to no field";
    assert_eq!(error.to_string(), words);
    assert!(
        refused_with(&text)
            .0
            .starts_with("the fields have no values")
    );
}

#[test]
fn descriptions_that_are_wrong() {
    let field = |name: &str, offset: &str, width: &str| {
        format!(
            "<n:name>{name}</n:name><n:bitOffset>{offset}</n:bitOffset>\
             <n:bitWidth>{width}</n:bitWidth>"
        )
    };
    for (register, field, words) in [
        (
            FIRST,
            field("bpred_size", "61", "4"),
            "field `bpred_size` is not within 64 bits",
        ),
        (
            FIRST,
            field("bpred_size", "1", "0"),
            "field `bpred_size` is not within 64 bits",
        ),
        (
            FIRST,
            field("bpred_size", "0", "'hffffffffffffffff"),
            "is not within 64 bits",
        ),
        (
            FIRST,
            field("bpred_size", "x", "4"),
            "`bitOffset` takes a 64-bit number",
        ),
        (
            FIRST,
            field("bpred_size", "'", "4"),
            "`bitOffset` takes a 64-bit number",
        ),
        (
            FIRST,
            field("bpred_size", "+1", "4"),
            "`bitOffset` takes a 64-bit number",
        ),
        (
            FIRST,
            field("bpred_sice", "0", "4"),
            "did you mean `bpred_size`?",
        ),
        (
            FIRST,
            "<n:name>arch</n:name>".to_owned(),
            "field `arch` needs bitOffset and bitWidth",
        ),
        (
            "<n:name>another</n:name>",
            field("arch", "0", "4"),
            "there is no register",
        ),
    ] {
        let (message, _) = refused_with(&description(register, &field));
        assert!(message.contains(words), "{message}");
    }
    let (message, _) = refused_with("<a><b></a>");
    assert!(message.contains("`</b>`"), "{message}");
    assert_eq!(refused_with("<a><b>").0, "the element <b> is not closed");
}

/// Whatever the bytes: settings or an error.
#[test]
fn damaged_texts() {
    let parameters = Parameters::new(Version::V2_0);
    let registers = Registers::pack(&parameters).unwrap();
    let xml = ipxact::write(registers);
    let mut random = Random::new(7);
    for text in [
        INSTRUCTIONS,
        MODES,
        &pairs::write_registers(registers),
        &xml,
    ] {
        for _ in 0..150 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..random.between(1, 4) {
                let at = random.index(bytes.len());
                bytes[at] = random.one_of(*b"<>=/0x'[#;a\n&");
            }
            bytes.truncate(random.index(bytes.len()) + 1);
            let text = String::from_utf8(bytes).unwrap();
            if let Err(error) = Config::parse(&text, Path::new("a")) {
                assert!(error.span.end <= text.len() && !error.to_string().is_empty());
            }
        }
    }
}
