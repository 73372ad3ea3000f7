//! The codes of diagnostics.

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $text:literal exit $exit:literal,)+) => {
        /// The codes; docs/diagnostics.md has a section for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $variant,)+ }

        impl Code {
            /// Every code, in the order of the manual.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// `HT0001` and so on; never given to anything else.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Code::$variant => $text),+ }
            }

            /// The exit code of a command that ends with it; 0 for warnings.
            #[must_use]
            pub const fn exit(self) -> u8 {
                match self { $(Code::$variant => $exit),+ }
            }
        }
    };
}

codes! {
    /// An input cannot be opened.
    CannotOpen "HT0001" exit 1,
    /// An input is a directory.
    IsDirectory "HT0002" exit 1,
    /// Reading failed.
    CannotRead "HT0003" exit 1,
    /// An input is larger than what is read at once.
    TooLarge "HT0004" exit 1,
    /// An output cannot be opened.
    CannotCreate "HT0005" exit 1,
    /// Writing failed.
    CannotWrite "HT0006" exit 1,
    /// The output would replace an input.
    OutputIsInput "HT0007" exit 2,
    /// Ended by a signal, unfinished output removed.
    Interrupted "HT0008" exit 1,
    /// A command that is a program of its own is not installed.
    NotInstalled "HT0009" exit 1,
    /// Not an ELF file.
    NotElf "HT0101" exit 5,
    /// An ELF file for another machine.
    WrongMachine "HT0102" exit 5,
    /// A big-endian ELF file.
    BigEndian "HT0103" exit 5,
    /// An ELF file that is cut off or contradicts itself.
    DamagedElf "HT0104" exit 1,
    /// An unknown kind of file.
    UnknownFormat "HT0105" exit 5,
    /// Lines of a log that cannot be read; an error with --strict.
    DamagedLines "HT0106" exit 3,
    /// An ELF file in which nothing is loaded.
    NotLinked "HT0107" exit 5,
    /// Some other kind of file where a log is wanted.
    NotALog "HT0108" exit 5,
    /// A log of which no line could be read.
    NothingRead "HT0109" exit 5,
    /// A log that does not match its program; an error with --strict.
    DoubtfulProgram "HT0110" exit 3,
    /// A trace with gaps; an error with --strict.
    Gaps "HT0111" exit 3,
    /// A trace of which nothing could be decoded.
    NotSynchronised "HT0112" exit 5,
    /// Some other kind of file where a trace is wanted.
    NotATrace "HT0113" exit 5,
    /// A log without the register and memory writes that a tandem trace needs.
    NoEffects "HT0114" exit 1,
    /// Bytes of a tandem trace that cannot be read.
    DamagedTrace "HT0115" exit 3,
    /// Something else where a tandem trace is wanted.
    NotTandem "HT0116" exit 5,
    /// Snapshots of control transfer records that cannot be read; an error with
    /// --strict.
    DamagedRecords "HT0117" exit 3,
    /// Records without the data that a report needs.
    UnfitRecords "HT0118" exit 1,
    /// A trace of which parts may be missing; an error with --strict.
    Doubtful "HT0119" exit 3,
    /// Traps whose cause a log or trace does not record; an error with --strict.
    UnknownCauses "HT0120" exit 3,
    /// Something that needs times, of a trace without timestamps.
    NoTime "HT0121" exit 1,
    /// Traces of different programs where they are added up.
    DifferentPrograms "HT0122" exit 1,
    /// A file about source lines, of a program without line tables.
    NoLines "HT0123" exit 1,
    /// A point that is not in the trace.
    NotFound "HT0124" exit 1,
    /// Jumps that contradict the call stack; an error with --strict.
    DoubtfulJumps "HT0125" exit 3,
    /// A file that is not a code history, or a damaged one.
    BadCodeHistory "HT0126" exit 1,
    /// Instructions decoded with code that may have been another one.
    Unconfirmed "HT0127" exit 3,
    /// Something that a code history cannot be made of.
    BadCodeSource "HT0128" exit 1,
    /// Tables with a schema of another version.
    WrongSchema "HT0129" exit 1,
    /// A query that cannot be run.
    BadQuery "HT0130" exit 1,
    /// A waveform whose port is not known.
    NoPort "HT0131" exit 5,
    /// A waveform whose header cannot be read.
    BadWave "HT0132" exit 5,
    /// The scheduler of a cluster, or a part of the cluster, cannot be reached.
    NoScheduler "HT0133" exit 1,
    /// Programs of a cluster have different versions.
    WrongPlan "HT0134" exit 1,
    /// A configuration file is not TOML.
    ConfigSyntax "HT0201" exit 1,
    /// An unknown key or section.
    ConfigUnknown "HT0202" exit 1,
    /// A value its key does not take, or one that is missing.
    ConfigValue "HT0204" exit 1,
    /// An ELF file differs from what a configuration or sidecar says.
    WrongProgram "HT0205" exit 1,
    /// Settings that contradict each other.
    Contradiction "HT0206" exit 1,
    /// An ISA string that cannot be read.
    BadIsa "HT0301" exit 2,
    /// A FILE@BASE that cannot be read.
    BadFileSpec "HT0302" exit 2,
    /// Register widths that contradict each other.
    WidthMismatch "HT0303" exit 2,
    /// No program was given.
    NoProgram "HT0304" exit 2,
    /// A log of several harts, or without the one that was chosen.
    WhichHart "HT0305" exit 2,
    /// An instruction set with extensions that the hart does not have.
    UnsupportedIsa "HT0306" exit 2,
    /// Memory that cannot be laid out.
    BadMemory "HT0307" exit 2,
    /// An entry that is neither an address nor a symbol.
    BadEntry "HT0308" exit 2,
    /// Neither a register nor an address nor a symbol.
    BadPlace "HT0309" exit 2,
    /// A trace with fewer instructions.
    BeyondEnd "HT0310" exit 2,
    /// An unknown name of state.
    BadState "HT0311" exit 2,
    /// Something was guessed (a note, not an error).
    Guessed "HT0401" exit 0,
    /// Values were written that the source does not record (a warning).
    Assumed "HT0402" exit 0,
    /// A doubtful load base (a warning).
    DoubtfulBase "HT0403" exit 0,
    /// The instruction set has instructions that are not decoded (a warning).
    NotDecoded "HT0404" exit 0,
    /// A program that cannot end a run (a warning).
    CannotEnd "HT0405" exit 0,
    /// The host refused a request of the program (a warning).
    Refused "HT0406" exit 0,
    /// A program built for extensions that the hart does not have (a warning).
    MissingExtension "HT0407" exit 0,
    /// Settings with which a trace omits information (a warning).
    CutShort "HT0408" exit 0,
    /// An index that does not fit its trace (a warning).
    StaleIndex "HT0409" exit 0,
    /// Groups of a tandem trace that could not be checked (a warning).
    Unchecked "HT0410" exit 0,
    /// Records that do not follow each other (a warning).
    OddRecords "HT0411" exit 0,
    /// A dump without snapshots (a warning).
    NoSnapshots "HT0412" exit 0,
    /// Settings that the form of a configuration has no place for (a warning).
    NoPlace "HT0413" exit 0,
    /// A timeline that is larger than viewers open (a warning).
    LargeTimeline "HT0414" exit 0,
    /// The program reported failure.
    ProgramFailed "HT0501" exit 10,
    /// The hart traps forever.
    TrapLoop "HT0502" exit 10,
    /// The hart waits forever.
    Asleep "HT0503" exit 10,
    /// A program outside memory.
    OutsideMemory "HT0504" exit 1,
    /// An entry outside memory.
    EntryOutside "HT0505" exit 1,
    /// A program for an operating system.
    NotBareMetal "HT0506" exit 5,
    /// More memory than the host has.
    HostMemory "HT0507" exit 1,
    /// Files that cannot be made a system to boot.
    BadSystem "HT0508" exit 1,
    /// The decoded trace differs from the run.
    Difference "HT0601" exit 4,
    /// A trace and the built-in hart differ.
    Mismatch "HT0602" exit 4,
    /// Less of the program ran than was demanded.
    LowCoverage "HT0603" exit 4,
    /// Two runs differ.
    RunsDiffer "HT0604" exit 4,
}
