"""The tables of the wheel are those of `hartrace export`."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from conftest import STAMPS, Traces, call, tool

import hartrace


@pytest.mark.parametrize(
    ("program", "kind", "config", "harts"),
    [
        ("sort-rv64gc", "ntrace", STAMPS, 1),
        ("timer-rv64gc", "etrace", "", 1),
        ("scheduler-rv64gc", "tandem", "", 1),
        ("harts-rv64gc", "etrace", "", 2),
    ],
)
def test_tables_equal_an_export(
    traces: Traces, tmp_path: Path, program: str, kind: str, config: str, harts: int
) -> None:
    export = tool("HARTRACE_EXPORT")
    path = traces.path(program, kind, config=config, harts=harts)
    done = call(export, path, "-o", tmp_path / "tables", "--tables", "all")
    assert done.returncode == 0, done.stderr
    trace = hartrace.open(path)
    for name, columns in hartrace.TABLES.items():
        mine = pl.DataFrame(trace.table(name))
        files = sorted((tmp_path / "tables" / name).rglob("*.parquet"))
        if not files:
            assert mine.height == 0, name
            continue
        own = [column for column in columns if column not in ("trace", "hart")]
        found = 0
        for file in files:
            schema = ds.dataset(file).schema
            assert schema.names == own
            assert schema.metadata[b"hartrace.schema"] == b"1"
            theirs = pl.from_arrow(ds.dataset(file).to_table())
            assert isinstance(theirs, pl.DataFrame)
            part = mine
            if "hart" in columns:
                hart = int(file.parent.name.removeprefix("hart="))
                part = mine.filter(pl.col("hart") == hart)
            assert part.height == theirs.height > 0
            for column in own:
                assert part[column].to_list() == theirs[column].to_list(), (name, column)
            found += theirs.height
        assert found == mine.height
    assert pa.table(trace.gaps()).num_rows == 0
