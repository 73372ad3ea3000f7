"""Events, instructions and messages, one by one."""

from __future__ import annotations

import json
from collections import Counter

import polars as pl
import pytest
from conftest import DATA, STAMPS, Traces, call, tool

import hartrace


@pytest.mark.parametrize("program", ["sort-rv64gc", "timer-rv64gc", "exceptions-rv64gc"])
def test_instructions_are_the_steps_of_the_hart(traces: Traces, program: str) -> None:
    # A tandem trace has a group for each step, with the instruction itself.
    steps = list(traces.open(program, "tandem").iter_instructions())
    assert len(steps) > 20_000
    for kind in ("ntrace", "etrace"):
        trace = traces.open(program, kind)
        insns = list(trace.iter_instructions())
        assert [(i.begin, i.pc, i.bits, i.size) for i in insns] == [
            (i.begin, i.pc, i.bits, i.size) for i in steps
        ]
        part = list(trace.iter_instructions(start=1000, end=1010))
        assert [repr(i) for i in part] == [repr(i) for i in insns[1000:1010]]
        assert [i.begin for i in trace.iter_instructions(hart=0, end=3)] == [0, 1, 2]
        assert list(trace.iter_instructions(hart=9)) == []
    assert steps[0].text.startswith("auipc gp,0x") and steps[0].hart == 0


def naive_runs(steps: list[hartrace.Instruction]) -> list[tuple[int, int, int, int]]:
    """Stretches of instructions, as the table `runs` has them, without traps."""
    rows: list[tuple[int, int, int, int]] = []
    start = 0
    for at, step in enumerate(steps):
        following = steps[at + 1].pc if at + 1 < len(steps) else None
        if following != step.pc + step.size:
            begin = steps[start]
            rows.append((begin.begin, begin.pc, step.pc + step.size, at + 1 - start))
            start = at + 1
    return rows


def test_runs_are_those_of_the_steps(traces: Traces) -> None:
    steps = list(traces.open("sort-rv64gc", "tandem").iter_instructions())
    expected = naive_runs(steps)
    for kind in ("ntrace", "etrace"):
        table = pl.DataFrame(
            traces.open("sort-rv64gc", kind).runs(["begin", "start", "end", "instructions"])
        )
        # A jump to the next instruction ends a stretch as well.
        merged: list[tuple[int, int, int, int]] = []
        for begin, start, end, count in table.iter_rows():
            if merged and merged[-1][2] == start:
                first = merged.pop()
                merged.append((first[0], first[1], end, first[3] + count))
            else:
                merged.append((begin, start, end, count))
        assert merged == expected


def test_events_agree_with_the_tables(traces: Traces) -> None:
    for program, kind, config in [
        ("timer-rv64gc", "etrace", ""),
        ("sort-rv64gc", "ntrace", STAMPS),
        ("sort-rv64gc", "etrace", DATA),
    ]:
        trace = traces.open(program, kind, config=config)
        events = list(trace.iter_events())
        counts = Counter(type(event).__name__ for event in events)
        runs = [event for event in events if isinstance(event, hartrace.Run)]
        insns = sum(run.instructions for run in runs)
        assert insns == sum(1 for _ in trace.iter_instructions()) > 20_000
        table = pl.DataFrame(trace.runs(["instructions"]))
        assert table["instructions"].sum() == insns
        traps = [event for event in events if isinstance(event, hartrace.Trap)]
        rows = pl.DataFrame(trace.traps()).sort("begin")
        assert [(t.begin, t.kind, t.code, t.cause) for t in traps] == [
            (r["begin"], r["kind"], r["code"], r["cause"]) for r in rows.iter_rows(named=True)
        ]
        accesses = pl.DataFrame(trace.accesses(["begin", "kind", "address", "data", "pc"]))
        assert accesses.rows() == [
            (a.begin, a.kind, a.address, a.data, a.pc)
            for a in events
            if isinstance(a, hartrace.Access)
        ]
        assert list(trace.iter_events(["trap", "gap"])) == traps
        assert list(trace.iter_events("trap")) == traps  # type: ignore[arg-type]
        assert counts["Gap"] == 0
        if config == STAMPS:
            assert sum(run.time is not None for run in runs) > 10
    with pytest.raises(ValueError, match="not a kind of event; the kinds are run, trap"):
        trace.iter_events(["jump"])  # type: ignore[list-item]


def test_events_are_those_of_the_command_line(traces: Traces) -> None:
    hartrace_tool = tool("HARTRACE")
    trace = traces.open("timer-rv64gc", "etrace")
    done = call(hartrace_tool, "decode", "-q", trace.path, "-f", "json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [
        (line["hart"], int(line["start"], 16), int(line["end"], 16), line["insns"], line["exit"])
        for line in lines
        if line["type"] == "run"
    ]
    runs = [event for event in trace.iter_events(["run"]) if isinstance(event, hartrace.Run)]
    assert [(r.hart, r.start, r.end, r.instructions, r.exit) for r in runs] == expected
    marks = [line["mark"] for line in lines if line["type"] == "mark"]
    found = [event.kind for event in trace.iter_events(["mark"]) if isinstance(event, hartrace.Mark)]
    assert found == marks


def test_messages_agree_with_their_table(traces: Traces) -> None:
    for kind in ("ntrace", "etrace", "tandem"):
        trace = traces.open("sort-rv64gc", kind)
        rows = pl.DataFrame(trace.messages()).rows(named=True)
        messages = list(trace.iter_messages())
        assert [(m.position, m.bytes, m.kind, m.address, m.time, m.fault) for m in messages] == [
            (r["position"], r["bytes"], r["kind"], r["address"], r["time"], r["fault"])
            for r in rows
        ]
        assert len(messages) > 100
    sync = next(traces.open("sort-rv64gc", "ntrace").iter_messages())
    assert sync.kind == "ProgTraceSync" and sync.fields["SYNC"] == 3


def test_objects_are_values(traces: Traces) -> None:
    trace = traces.open("timer-rv64gc", "etrace")
    one, other = list(trace.iter_events()), list(trace.iter_events())
    assert one == other and len(set(one)) == len({repr(e): e for e in one} and set(other))
    assert repr(one[2]).startswith("Run(hart=0, begin=0, start=0x80000000")
    run = one[2]
    assert isinstance(run, hartrace.Run)
    with pytest.raises(AttributeError):
        run.start = 5  # type: ignore[misc]


def test_places(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace")
    start, nowhere = trace.places([0x8000_0004, 5])
    assert start.function == "_start" and start.offset == 4
    assert start.file is not None and start.file.endswith("crt0.S") and start.line
    assert nowhere == (5, None, None, None, None)
    starts = pl.DataFrame(trace.functions(["function", "start"]))
    places = trace.places(starts["start"])
    assert all(place.function is not None and place.offset == 0 for place in places)


def test_an_iterator_that_is_given_up(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace", 400_000, STAMPS)
    for _ in range(20):
        iterator = trace.iter_instructions()
        assert next(iterator).begin == 0
        del iterator
