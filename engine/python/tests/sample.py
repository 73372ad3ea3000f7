"""What users write, for the type checker and for a test that runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa

import hartrace


def slowest(trace: hartrace.Trace, most: int) -> list[tuple[str, int]]:
    """The longest calls."""
    table = pa.table(trace.calls(["function", "instructions"]))
    rows = table.to_pylist()
    found = [(str(r["function"]), int(r["instructions"])) for r in rows if r["instructions"]]
    return sorted(found, key=lambda row: -row[1])[:most]


def traps(trace: hartrace.Trace) -> Iterator[hartrace.Trap]:
    """The traps of a trace."""
    for event in trace.iter_events(["trap"]):
        if isinstance(event, hartrace.Trap):
            yield event


def describe(event: hartrace.Event) -> str:
    """An event in a few words."""
    match event:
        case hartrace.Run():
            return f"{event.instructions} instructions at {event.start:#x}"
        case hartrace.Trap():
            return event.cause
        case hartrace.Gap():
            return event.reason
        case _:
            return type(event).__name__


def main(path: str, program: str) -> int:
    """Prints some facts about a trace."""
    try:
        trace = hartrace.open(path, program=[program])
    except hartrace.HartraceError as error:
        print(error.code, error.help or "", file=sys.stderr)
        return error.exit_code
    print(slowest(trace, 3), sum(1 for _ in traps(trace)))
    print([describe(event) for _, event in zip(range(3), trace.iter_events())])
    first: hartrace.Instruction = next(trace.iter_instructions())
    place = trace.places([first.pc])[0]
    print(first.text, place.function, place.line)
    result = hartrace.run(program, trace="etrace", max_instructions=1000)
    size: int | None = result.trace_bytes
    print(size, result.instructions, result.check().stop)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
