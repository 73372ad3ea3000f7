"""Programs on the built-in hart."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from . import _hartrace
from ._errors import HartraceError
from ._trace import Paths, StrPath, Trace, open, texts

TraceFormat = Literal["ntrace", "etrace", "tandem"]


@dataclass(frozen=True)
class RunResult:
    """How a program ran."""

    exit_code: int | None
    """The code that the program ended with; None if it did not end by itself."""
    stop: str
    """Why the run ended: `exit`, `limit`, `spins`, `asleep` or `trap loop`."""
    summary: str
    """The same in a few words."""
    instructions: int
    """Instructions that retired, of all harts."""
    cycles: int
    """Cycles of the machine."""
    stdout: bytes
    """What the program wrote."""
    stderr: bytes
    """What it wrote to its standard error."""
    output_cut: bool
    """Whether it wrote more than `max_output` bytes, and the rest is missing."""
    trace_bytes: int | None
    """The size of the trace."""
    failure: HartraceError | None
    """Why the run is a failure; None if the program succeeded or was stopped by a limit."""
    trace: Trace | None
    """The trace, if one was asked for."""
    _folder: tempfile.TemporaryDirectory[str] | None = field(repr=False, compare=False)

    def check(self) -> RunResult:
        """Raises the failure, if there is one."""
        if self.failure is not None:
            raise self.failure
        return self


def run(
    program: StrPath,
    arguments: Sequence[str] = (),
    *,
    trace: TraceFormat | None = None,
    output: StrPath | None = None,
    config: Paths | None = None,
    isa: str | None = None,
    harts: int | None = None,
    max_instructions: int | None = None,
    stdin: bytes = b"",
    files: StrPath | None = None,
    writable: bool = False,
    max_output: int = 64 << 20,
) -> RunResult:
    """Runs a bare-metal ELF program on the built-in hart.

    trace
        The format of a trace to write: `ntrace`, `etrace` or `tandem`, with the settings of the
        configuration.
    output
        The file for the trace; its sidecar is `FILE.toml`. Without it, the trace is in a
        temporary folder that is removed when the result is no longer used. Its ending names the
        format if `trace` does not.
    config
        Configuration files, for the machine and for the encoder: `-c`.
    isa
        The instruction set of the hart, such as `rv64gc`: `--isa`.
    harts
        Number of harts: `--harts`.
    max_instructions
        Stop after so many instructions: `--max-insns`.
    stdin
        What the program reads.
    files
        A folder whose files the program may open, or, if `writable`, also write: `--files`.
    max_output
        The most bytes of output that are kept.

    A program that ends with another code than 0 is a result like any other; `RunResult.check`
    raises it. Ctrl-C ends the run, and leaves no file behind.
    """
    kind = trace if output is None or trace is not None else format_of(output)
    folder = None
    if kind is not None and output is None:
        folder = tempfile.TemporaryDirectory(prefix="hartrace-")
        output = Path(folder.name) / f"run.{kind}"
    outcome = _hartrace.run_program(
        {
            "program": os.fspath(program),
            "arguments": list(arguments),
            "stdin": stdin,
            "trace": kind,
            "output": None if output is None else os.fspath(output),
            "config": texts(config),
            "isa": isa,
            "harts": harts,
            "max_instructions": max_instructions,
            "files": None if files is None else os.fspath(files),
            "writable": writable,
            "max_output": max_output,
        }
    )
    return RunResult(
        exit_code=outcome.exit_code,
        stop=outcome.stop,
        summary=outcome.summary,
        instructions=outcome.instructions,
        cycles=outcome.cycles,
        stdout=bytes(outcome.stdout),
        stderr=bytes(outcome.stderr),
        output_cut=outcome.is_cut,
        trace_bytes=outcome.trace_bytes,
        failure=outcome.failure,
        trace=None if output is None else open(output),
        _folder=folder,
    )


def format_of(output: StrPath) -> str:
    """The format that the ending of a name stands for."""
    ending = Path(output).suffix.removeprefix(".")
    if ending not in ("ntrace", "etrace", "tandem"):
        raise ValueError(
            f"which format should `{os.fspath(output)}` have? give trace, or name it .ntrace, "
            ".etrace or .tandem"
        )
    return ending
