"""Traces and logs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from . import _hartrace
from ._hartrace import Access, Context, Gap, Instruction, Mark, Message, Run, Table, Trap

StrPath: TypeAlias = "str | os.PathLike[str]"
"""The name of a file."""

Paths: TypeAlias = "StrPath | Sequence[StrPath]"
"""One file, or several."""

Event: TypeAlias = "Run | Trap | Context | Access | Mark | Gap"
"""What `Trace.events` gives."""

EventKind: TypeAlias = Literal["run", "trap", "context", "access", "mark", "gap"]
"""The kinds of events, by their names."""

KINDS: tuple[EventKind, ...] = ("run", "trap", "context", "access", "mark", "gap")

TABLES: dict[str, list[str]] = _hartrace.table_columns()
"""The tables with their columns; docs/tables.md explains them."""


class Place(NamedTuple):
    """What is known of an address."""

    address: int
    """The address."""
    function: str | None
    """The function that it is in."""
    offset: int | None
    """Bytes from the start of the function."""
    file: str | None
    """The source file."""
    line: int | None
    """The source line."""


def texts(paths: Paths | None) -> list[str]:
    """One or several names as a list."""
    if paths is None:
        return []
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


class Trace:
    """A trace or log with its program.

    Tables are made when a consumer asks for their rows, from the file, each time again. Their
    methods take the same arguments:

    columns
        Names of columns, in the order in which they are wanted. What is not wanted is not made:
        without times, for instance, decoding is faster.
    hart
        Only rows of this hart.
    start, end
        Only rows that begin in this range, in instructions of their hart: `start` is included,
        `end` is not.
    start_time, end_time
        The same in the time of the trace.

    The first selection by instructions or times makes an index of a large trace, in the cache
    directory of the user; with it only the parts that have such rows are read.
    """

    __slots__ = ("_recording",)

    def __init__(self, recording: _hartrace.Recording) -> None:
        self._recording = recording

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._recording.path)

    @property
    def name(self) -> str:
        """What is in the column `trace`: the path, or the name that was given."""
        return self._recording.name

    @property
    def format(self) -> str:
        """`ntrace`, `etrace` or `tandem`, or the format of a log such as `spike` or `pc`."""
        return self._recording.format

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._recording.size

    @property
    def isa(self) -> str:
        """The instruction set, such as `rv64imafdc_zicsr_zifencei`."""
        return self._recording.isa

    @property
    def has_time(self) -> bool:
        """Whether there may be times."""
        return self._recording.has_time

    @property
    def programs(self) -> list[Path]:
        """The ELF files of the program."""
        return [Path(path) for path in self._recording.programs]

    @property
    def warnings(self) -> list[str]:
        """What may make results wrong, such as settings that were guessed."""
        return self._recording.warnings

    def __repr__(self) -> str:
        return f"<hartrace.Trace {self.name}: {self.format}, {self.size} bytes>"

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        hart: int | None = None,
        start: int | None = None,
        end: int | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Table:
        """A table by its name; `TABLES` lists them."""
        if isinstance(columns, str):
            raise TypeError("columns: give a list of names, not a text")
        wanted = None if columns is None else list(columns)
        return self._recording.table(name, wanted, hart, (start, end), (start_time, end_time))

    def runs(
        self,
        columns: Sequence[str] | None = None,
        *,
        hart: int | None = None,
        start: int | None = None,
        end: int | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Table:
        """Stretches of instructions at consecutive addresses, up to a jump or a trap."""
        return self.table(
            "runs",
            columns,
            hart=hart,
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
        )

    def calls(
        self,
        columns: Sequence[str] | None = None,
        *,
        hart: int | None = None,
        start: int | None = None,
        end: int | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Table:
        """Calls of functions, in the order in which they returned."""
        return self.table(
            "calls",
            columns,
            hart=hart,
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
        )

    def traps(
        self,
        columns: Sequence[str] | None = None,
        *,
        hart: int | None = None,
        start: int | None = None,
        end: int | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Table:
        """Exceptions and interrupts, from the trap to the return from it."""
        return self.table(
            "traps",
            columns,
            hart=hart,
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
        )

    def accesses(
        self,
        columns: Sequence[str] | None = None,
        *,
        hart: int | None = None,
        start: int | None = None,
        end: int | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Table:
        """Data accesses, of traces with data trace and of tandem traces."""
        return self.table(
            "accesses",
            columns,
            hart=hart,
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
        )

    def gaps(
        self,
        columns: Sequence[str] | None = None,
        *,
        hart: int | None = None,
        start: int | None = None,
        end: int | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Table:
        """What is missing in the trace, or in doubt. Damage is a row, not an exception."""
        return self.table(
            "gaps",
            columns,
            hart=hart,
            start=start,
            end=end,
            start_time=start_time,
            end_time=end_time,
        )

    def messages(
        self,
        columns: Sequence[str] | None = None,
        *,
        hart: int | None = None,
        start_time: int | None = None,
        end_time: int | None = None,
    ) -> Table:
        """Messages, packets or groups of the trace. A log has none."""
        return self.table(
            "messages", columns, hart=hart, start_time=start_time, end_time=end_time
        )

    def functions(self, columns: Sequence[str] | None = None) -> Table:
        """Functions of the program."""
        return self.table("functions", columns)

    def lines(self, columns: Sequence[str] | None = None) -> Table:
        """Source lines of the program, with their code."""
        return self.table("lines", columns)

    def branches(self, columns: Sequence[str] | None = None) -> Table:
        """Conditional branches of the program, with how often each was taken."""
        return self.table("branches", columns)

    def iter_events(
        self, kinds: Iterable[EventKind] = KINDS, *, hart: int | None = None
    ) -> Iterator[Event]:
        """What happened, in the order of the trace: runs of instructions, traps, changes of
        mode or context, data accesses, marks and gaps. `kinds` names those that are wanted."""
        wanted = [kinds] if isinstance(kinds, str) else list(kinds)
        for kind in wanted:
            if kind not in KINDS:
                names = ", ".join(KINDS)
                raise ValueError(f"`{kind}` is not a kind of event; the kinds are {names}")
        return self._recording.events(wanted, hart)

    def iter_instructions(
        self, *, hart: int | None = None, start: int | None = None, end: int | None = None
    ) -> Iterator[Instruction]:
        """Instructions one by one. `start` and `end` are numbers of instructions of a hart."""
        return self._recording.instructions(hart, start, end)

    def iter_messages(self) -> Iterator[Message]:
        """Messages, packets or groups of the trace with their fields. A log has none."""
        return self._recording.messages()

    def places(self, addresses: Iterable[int]) -> list[Place]:
        """The function and the source line of each address."""
        wanted = [int(address) for address in addresses]
        known = self._recording.places(wanted)
        return [Place(address, *place) for address, place in zip(wanted, known)]


def open(
    path: StrPath,
    program: Paths | None = None,
    *,
    raw: Paths | None = None,
    code: Paths | None = None,
    debug_dir: Paths | None = None,
    config: Paths | None = None,
    isa: str | None = None,
    log_format: str | None = None,
    name: str | None = None,
) -> Trace:
    """Opens a trace of any format, or the log of a simulator.

    What is not given comes from the sidecar `FILE.toml`, as on the command line.

    program
        ELF files of the program, each `FILE` or `FILE@BASE`: `-e`.
    raw
        Code as raw binaries, each `FILE@BASE`: `--raw`.
    code
        Code histories, for code that changes: `--code`.
    debug_dir
        Folders with the debugging information of stripped programs: `--debug-dir`.
    config
        Configuration files; later ones take precedence: `-c`.
    isa
        The instruction set, such as `rv64gc`: `--isa`.
    log_format
        The format of a log that is not recognised by itself: `--log-format`.
    name
        What is in the column `trace`; otherwise the path.

    Raises a `HartraceError` if the file is neither a trace nor a log, or its program is missing
    or another one. Damage within a trace is no error: it is in the table `gaps`.
    """
    recording = _hartrace.open_recording(
        os.fspath(path),
        name,
        {
            "elf": texts(program),
            "raw": texts(raw),
            "code": texts(code),
            "debug": texts(debug_dir),
            "config": texts(config),
            "isa": isa,
            "log_format": log_format,
        },
    )
    return Trace(recording)
