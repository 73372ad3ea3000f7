"""The parts of hartrace that are compiled."""

from typing import Any, final

from typing_extensions import CapsuleType, Self, TypedDict

from ._errors import HartraceError

class _Facts(TypedDict):
    elf: list[str]
    raw: list[str]
    code: list[str]
    debug: list[str]
    config: list[str]
    isa: str | None
    log_format: str | None

class _Request(TypedDict):
    program: str
    arguments: list[str]
    stdin: bytes
    trace: str | None
    output: str | None
    config: list[str]
    isa: str | None
    harts: int | None
    max_instructions: int | None
    files: str | None
    writable: bool
    max_output: int

@final
class Run:
    """Instructions that were executed one after the other at consecutive addresses."""

    @property
    def hart(self) -> int:
        """The hart."""
    @property
    def begin(self) -> int:
        """Instructions of the hart before it."""
    @property
    def time(self) -> int | None:
        """The time of its start, where the trace reports one."""
    @property
    def start(self) -> int:
        """Address of the first instruction."""
    @property
    def end(self) -> int:
        """Address after the last instruction."""
    @property
    def instructions(self) -> int:
        """How many instructions there are."""
    @property
    def exit(self) -> str:
        """How the last instruction ended it, as in docs/json.md: `taken`, `direct-call`, `return`
        and so on; `stop` if it is no transfer."""
    @property
    def next(self) -> int | None:
        """Where the hart continued; None for `stop`."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Trap:
    """An exception or an interrupt."""

    @property
    def hart(self) -> int:
        """The hart."""
    @property
    def begin(self) -> int:
        """Instructions of the hart before it."""
    @property
    def kind(self) -> str:
        """`exception`, `interrupt` or `unknown`."""
    @property
    def code(self) -> int | None:
        """The code in `mcause` or `scause`, without the top bit, if known."""
    @property
    def cause(self) -> str:
        """What it is called."""
    @property
    def address(self) -> int | None:
        """The instruction that trapped, or before which an interrupt was taken, if known."""
    @property
    def handler(self) -> int | None:
        """First address of the handler, if known."""
    @property
    def value(self) -> int | None:
        """The trap value, if known."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Context:
    """From here on the hart runs in another mode or context."""

    @property
    def hart(self) -> int:
        """The hart."""
    @property
    def begin(self) -> int:
        """Instructions of the hart before it."""
    @property
    def privilege(self) -> str | None:
        """The privilege mode, if it is reported here."""
    @property
    def context(self) -> int | None:
        """The software context, if it is reported here."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Access:
    """A data access."""

    @property
    def hart(self) -> int:
        """The hart."""
    @property
    def begin(self) -> int:
        """Instructions of the hart before the one that made it."""
    @property
    def kind(self) -> str:
        """`load`, `store` or the name of an atomic."""
    @property
    def address(self) -> int | None:
        """The virtual address, or the number of a CSR, if reported."""
    @property
    def size(self) -> int:
        """Bytes."""
    @property
    def data(self) -> int | None:
        """The value loaded or stored, if reported."""
    @property
    def operand(self) -> int | None:
        """Atomics: the value read; CSRs: the value read or the operand."""
    @property
    def pc(self) -> int | None:
        """Address of the instruction, if it is known which one made the access."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Mark:
    """Something that a trace reports beside the flow of control."""

    @property
    def hart(self) -> int:
        """The hart."""
    @property
    def begin(self) -> int:
        """Instructions of the hart before it."""
    @property
    def kind(self) -> str:
        """`on`, `off`, `sync`, `halted` and so on, as in docs/json.md."""
    @property
    def number(self) -> int | None:
        """The code of a synchronisation, an external trigger or a message of a vendor."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Gap:
    """Something that is missing, or in doubt."""

    @property
    def hart(self) -> int:
        """The hart."""
    @property
    def begin(self) -> int:
        """Instructions of the hart before it."""
    @property
    def kind(self) -> str:
        """`loss`, `data`, `warning` or `unconfirmed`, as in the table `gaps`."""
    @property
    def code(self) -> str | None:
        """The code of the diagnostic, such as NT0203."""
    @property
    def reason(self) -> str:
        """What it means."""
    @property
    def value(self) -> int | None:
        """The offending value."""
    @property
    def position(self) -> int | None:
        """Byte offset in the trace where it was noticed."""
    @property
    def bytes(self) -> int:
        """Bytes of trace that could not be used."""
    @property
    def unconfirmed(self) -> int:
        """How many of the instructions before it nothing confirms."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Instruction:
    """An instruction that was executed."""

    @property
    def hart(self) -> int:
        """The hart."""
    @property
    def begin(self) -> int:
        """Instructions of the hart before it."""
    @property
    def pc(self) -> int:
        """Its address."""
    @property
    def bits(self) -> int:
        """Its encoding."""
    @property
    def size(self) -> int:
        """Its length in bytes."""
    @property
    def text(self) -> str:
        """Its disassembly: mnemonic and operands."""

@final
class Message:
    """A message, packet or group of a trace."""

    @property
    def position(self) -> int:
        """Byte offset of its first byte."""
    @property
    def bytes(self) -> int:
        """Its length in bytes."""
    @property
    def hart(self) -> int | None:
        """The hart or source that it names."""
    @property
    def kind(self) -> str:
        """What it is called in its specification; `idle`, `unreadable`."""
    @property
    def address(self) -> int | None:
        """The full address that it reports."""
    @property
    def time(self) -> int | None:
        """The full time that it reports."""
    @property
    def fault(self) -> str | None:
        """The code of what is wrong with it, such as NT0101."""
    @property
    def fields(self) -> dict[str, int]:
        """Its fields by their names in the specification."""

@final
class Events:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Run | Trap | Context | Access | Mark | Gap: ...

@final
class Instructions:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Instruction: ...

@final
class Messages:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Message: ...

@final
class Table:
    """Rows of a trace, made when they are asked for.

    It has the Arrow PyCapsule interface: `pyarrow.table(t)`, `polars.DataFrame(t)`,
    `pandas.DataFrame.from_arrow(t)` and DuckDB take it as it is. Each of them decodes the trace
    once, and gets batches while it is decoded; nothing is copied.
    """

    @property
    def name(self) -> str:
        """Its name, such as `calls`."""
    @property
    def columns(self) -> list[str]:
        """The names of its columns, in their order."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """The schema as a capsule `arrow_schema`."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> CapsuleType:
        """The rows as a capsule `arrow_array_stream`."""

@final
class Recording:
    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def isa(self) -> str: ...
    @property
    def has_time(self) -> bool: ...
    @property
    def programs(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    def table(
        self,
        name: str,
        columns: list[str] | None,
        hart: int | None,
        begin: tuple[int | None, int | None],
        time: tuple[int | None, int | None],
    ) -> Table: ...
    def events(self, kinds: list[str], hart: int | None) -> Events: ...
    def instructions(
        self, hart: int | None, start: int | None, end: int | None
    ) -> Instructions: ...
    def messages(self) -> Messages: ...
    def places(
        self, addresses: list[int]
    ) -> list[tuple[str | None, int | None, str | None, int | None]]: ...

@final
class Outcome:
    @property
    def stop(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def summary(self) -> str: ...
    @property
    def instructions(self) -> int: ...
    @property
    def cycles(self) -> int: ...
    @property
    def trace_bytes(self) -> int | None: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...
    @property
    def is_cut(self) -> bool: ...
    @property
    def failure(self) -> HartraceError | None: ...

def open_recording(path: str, name: str | None, facts: _Facts) -> Recording: ...
def table_columns() -> dict[str, list[str]]: ...
def run_program(request: _Request) -> Outcome: ...
