"""Tables in the tools that take Arrow."""

from __future__ import annotations

import threading
import time

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import DATA, STAMPS, Traces

import hartrace


def test_tables_and_columns_are_listed(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace")
    assert list(hartrace.TABLES) == sorted(
        "runs calls traps accesses gaps messages functions lines branches".split()
    )
    for name, columns in hartrace.TABLES.items():
        table = trace.table(name)
        assert (table.name, table.columns) == (name, columns)
        assert table.columns[0] == "trace"
        schema = pa.schema(table)
        assert schema.names == columns
        assert schema.metadata[b"hartrace.schema"] == b"1"
        assert schema.metadata[b"hartrace.table"] == name.encode()
        assert pa.table(table).schema.equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    ("program", "kind", "config", "harts"),
    [
        ("sort-rv64gc", "ntrace", STAMPS, 1),
        ("timer-rv64gc", "etrace", "", 1),
        ("sort-rv64gc", "etrace", DATA, 1),
        ("exceptions-rv64gc", "tandem", "", 1),
        ("harts-rv64gc", "ntrace", "", 2),
    ],
)
def test_every_tool_sees_the_same(
    traces: Traces, program: str, kind: str, config: str, harts: int
) -> None:
    trace = traces.open(program, kind, config=config, harts=harts)
    for name, columns in hartrace.TABLES.items():
        table = trace.table(name)
        arrow = pa.table(table)
        polars = pl.DataFrame(table)
        pandas = pd.DataFrame.from_arrow(table)
        reader = pa.RecordBatchReader.from_stream(table)
        duck = duckdb.from_arrow(reader).fetchall()
        rows = arrow.num_rows
        assert (polars.height, len(pandas), len(duck)) == (rows, rows, rows), name
        assert polars.columns == list(pandas.columns) == columns
        for at, column in enumerate(columns):
            # Texts, numbers and nulls, value by value.
            values = arrow[column].to_pylist()
            assert polars[column].to_list() == values, (name, column)
            assert [row[at] for row in duck] == values, (name, column)
            if pa.types.is_integer(arrow[column].type):
                total = pc.sum(arrow[column]).as_py() or 0
                assert int(pandas[column].sum()) == total, (name, column)
                assert int(polars[column].sum() or 0) == total, (name, column)
            assert int(pandas[column].isna().sum()) == arrow[column].null_count
    counts = {name: pa.table(trace.table(name)).num_rows for name in hartrace.TABLES}
    assert counts["calls"] > 3 and counts["messages"] > 10 and counts["functions"] > 10
    if config == DATA or kind == "tandem":
        assert counts["accesses"] > 100
    if program == "timer-rv64gc":
        assert counts["traps"] > 0
    if harts == 2:
        assert set(pa.table(trace.runs(["hart"]))["hart"].to_pylist()) == {0, 1}


def test_duckdb_takes_a_table_by_its_name(traces: Traces) -> None:
    calls = traces.open("sort-rv64gc", "ntrace").calls()
    assert calls is not None
    arrow = pa.table(calls)
    found = duckdb.sql("SELECT count(*), sum(instructions), max(depth) FROM calls").fetchall()
    sums = [pc.sum(arrow["instructions"]).as_py(), pc.max(arrow["depth"]).as_py()]
    assert found == [(arrow.num_rows, *sums)]
    # A table is not used up: each query reads the trace again.
    assert duckdb.sql("SELECT count(*) FROM calls").fetchall() == [(arrow.num_rows,)]


def test_columns_are_chosen_and_ordered(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace", config=STAMPS)
    whole = pa.table(trace.calls())
    some = ["depth", "trace", "function", "hart"]
    assert pa.table(trace.calls(some)).equals(whole.select(some))
    assert pa.table(trace.table("calls", columns=some)).equals(whole.select(some))
    assert pa.table(trace.calls(["trace"])).num_rows == whole.num_rows
    assert pa.RecordBatchReader.from_stream(trace.calls([])).read_all().num_rows in (
        whole.num_rows,
        0,  # some versions of PyArrow do not count rows without columns
    )
    assert set(whole["trace"].to_pylist()) == {trace.name}
    named = hartrace.open(trace.path, name="night 7")
    assert set(pa.table(named.calls(["trace"]))["trace"].to_pylist()) == {"night 7"}


def test_rows_are_selected(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace", 400_000, STAMPS)
    assert trace.size > 1 << 17
    for name, begin_time in [("runs", "time"), ("calls", "begin_time")]:
        whole = pl.DataFrame(trace.table(name))
        assert whole.height > 1000
        for start, end in [(0, 1000), (200_000, 201_000), (399_000, None), (None, 0)]:
            low, high = start or 0, 1 << 60 if end is None else end
            for _ in range(2):  # without an index, and with it
                chosen = pl.DataFrame(trace.table(name, start=start, end=end))
                inside = pl.col("begin").is_between(low, high, closed="left")
                assert chosen.equals(whole.filter(inside)), (name, start, end)
                chosen = pl.DataFrame(trace.table(name, start_time=start, end_time=end))
                inside = pl.col(begin_time).is_between(low, high, closed="left")
                assert chosen.equals(whole.filter(inside)), (name, start, end)
    two = traces.open("harts-rv64gc", "ntrace", harts=2)
    for table in (two.calls, two.runs, two.messages):
        all_rows = pl.DataFrame(table())
        for hart in (0, 1, 5):
            assert pl.DataFrame(table(hart=hart)).equals(
                all_rows.filter(pl.col("hart") == hart)
            )


def test_wrong_tables_columns_and_limits(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace")
    with pytest.raises(ValueError, match="`call` is not a table; the tables are runs, calls"):
        trace.table("call")
    with pytest.raises(ValueError, match="no column `name`; its columns are trace, hart, thread"):
        trace.calls(["function", "name"])
    with pytest.raises(TypeError, match="give a list of names"):
        trace.calls("function")
    with pytest.raises(ValueError, match="no column `begin` to select rows by"):
        trace.table("messages", start=5)
    with pytest.raises(ValueError, match="it has no harts"):
        trace.table("lines", hart=0)
    with pytest.raises(OverflowError):
        trace.calls(start=-1)
    with pytest.raises(TypeError):
        trace.calls(start="now")  # type: ignore[arg-type]


def test_batches_come_while_the_trace_is_decoded(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace", 400_000, STAMPS)
    reader = pa.RecordBatchReader.from_stream(trace.runs())
    first = reader.read_next_batch()
    whole = pa.table(trace.runs())
    assert 0 < first.num_rows < whole.num_rows / 2
    assert first.equals(whole.slice(0, first.num_rows).combine_chunks().to_batches()[0])
    # A reader that is given up leaves nothing that runs.
    before = threading.active_count()
    del reader, first
    assert threading.active_count() == before


def test_nothing_is_copied(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace", 400_000, STAMPS)
    before = pa.total_allocated_bytes()
    table = pa.table(trace.runs())
    # All memory of the columns is ours: PyArrow has allocated none for them.
    assert table.nbytes > 1_000_000
    assert pa.total_allocated_bytes() - before < 10_000


def test_other_threads_go_on(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace", 400_000, STAMPS)
    done: list[int] = []

    def work() -> None:
        done.append(pa.table(trace.runs()).num_rows)

    beats = 0
    begin = time.monotonic()
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        beats += 1
    took = time.monotonic() - begin
    thread.join()
    assert done == [pa.table(trace.runs()).num_rows]
    # If decoding held the interpreter, there would be a few at most.
    assert beats > min(50, took * 100), (beats, took)


def test_several_threads_read_the_same_trace(traces: Traces) -> None:
    trace = traces.open("sort-rv64gc", "ntrace")
    whole = pa.table(trace.calls())
    results: list[bool] = []

    def work() -> None:
        results.append(pa.table(trace.calls()).equals(whole))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_a_log_has_the_tables_of_its_trace(traces: Traces, tmp_path: object) -> None:
    trace = traces.open("sort-rv64gc", "ntrace")
    log = trace.path.with_name("sort.pc")
    log.write_text("".join(f"{i.pc:016x}\n" for i in trace.iter_instructions()))
    opened = hartrace.open(log, program=trace.programs)
    assert (opened.format, opened.has_time) == ("pc", False)
    drop = ["trace", "privilege", "position"]
    for name in ("calls", "runs", "branches"):
        one, other = pl.DataFrame(trace.table(name)), pl.DataFrame(opened.table(name))
        names = [column for column in one.columns if column not in drop]
        assert one.select(names).equals(other.select(names)), name
    assert pa.table(opened.messages()).num_rows == 0
