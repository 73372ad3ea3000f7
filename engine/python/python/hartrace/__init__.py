"""RISC-V processor traces as events and Arrow tables.

>>> import hartrace
>>> trace = hartrace.open("run.ntrace", program="prog.elf")  # doctest: +SKIP
>>> import pyarrow
>>> pyarrow.table(trace.calls())  # doctest: +SKIP

`open` reads a trace or the log of a simulator, `run` executes a program on the built-in hart
and traces it. Errors are `HartraceError` with the codes of the command line. Decoding does not
hold the interpreter lock, and Ctrl-C ends it.
"""

from ._errors import (
    ConfigError,
    FileError,
    FormatError,
    HartraceError,
    HartraceWarning,
    RunError,
    UsageError,
)
from ._hartrace import (
    Access,
    Context,
    Gap,
    Instruction,
    Mark,
    Message,
    Run,
    Table,
    Trap,
)
from ._run import RunResult, run
from ._trace import TABLES, Event, Place, Trace, open

__all__ = [
    "TABLES",
    "Access",
    "ConfigError",
    "Context",
    "Event",
    "FileError",
    "FormatError",
    "Gap",
    "HartraceError",
    "HartraceWarning",
    "Instruction",
    "Mark",
    "Message",
    "Place",
    "Run",
    "RunError",
    "RunResult",
    "Table",
    "Trace",
    "Trap",
    "UsageError",
    "open",
    "run",
]
