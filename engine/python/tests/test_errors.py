"""Wrong input."""

from __future__ import annotations

import random
import shutil
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import Traces, call, elf, tool

import hartrace


def refused(path: Path, **facts: object) -> hartrace.HartraceError:
    with pytest.raises(hartrace.HartraceError) as caught:
        hartrace.open(path, **facts)  # type: ignore[arg-type]
    return caught.value


def test_codes_texts_and_classes(traces: Traces, tmp_path: Path) -> None:
    trace = traces.path("sort-rv64gc", "ntrace")
    error = refused(tmp_path / "none.ntrace")
    assert isinstance(error, hartrace.FileError) and isinstance(error, OSError)
    assert (error.code, error.exit_code) == ("HT0001", 1)
    assert "none.ntrace" in error.message
    assert str(error).startswith("error[HT0001]: ") and "\x1b" not in str(error)

    error = refused(tmp_path)
    assert (error.code, type(error)) == ("HT0002", hartrace.FileError)

    error = refused(elf("sort-rv64gc"))
    assert (error.code, type(error)) == ("HT0113", hartrace.FormatError)
    assert "is not a trace" in error.message

    alone = tmp_path / "alone.ntrace"
    shutil.copy(trace, alone)
    error = refused(alone)
    assert (error.code, type(error)) == ("HT0304", hartrace.UsageError)
    assert isinstance(error, ValueError) and error.help is not None

    error = refused(trace, program=elf("timer-rv64gc"))
    assert (error.code, type(error)) == ("HT0205", hartrace.ConfigError)

    settings = tmp_path / "wrong.toml"
    settings.write_text("[ntrace]\nmoode = 'btm'\n")
    error = refused(trace, config=settings)
    assert (error.code, type(error)) == ("HT0202", hartrace.ConfigError)
    assert "wrong.toml:2" in str(error), str(error)

    assert refused(trace, isa="rv65").code == "HT0301"
    assert refused(trace, program="prog.elf@x").code == "HT0302"
    assert refused(trace, log_format="nonsense").code == "HT0108"
    assert refused(trace, program=tmp_path / "none.elf").code == "HT0001"
    with pytest.raises(TypeError):
        hartrace.open(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ["missing", "no program", "not a trace", "wrong program"])
def test_the_text_is_that_of_the_command_line(
    traces: Traces, tmp_path: Path, case: str
) -> None:
    hartrace_tool = tool("HARTRACE")
    trace = traces.path("sort-rv64gc", "ntrace")
    program: Path | None = None
    if case == "missing":
        path = tmp_path / "none.ntrace"
    elif case == "no program":
        path = tmp_path / "alone.ntrace"
        shutil.copy(trace, path)
    elif case == "not a trace":
        path = elf("sort-rv64gc")
    else:
        path, program = trace, elf("timer-rv64gc")
    error = refused(path) if program is None else refused(path, program=program)
    words = [] if program is None else ["-e", program]
    done = call(hartrace_tool, "decode", "-q", path, *words)
    assert done.stderr.strip() == str(error).strip()
    assert done.returncode == error.exit_code


def test_damage_is_a_row(traces: Traces, tmp_path: Path) -> None:
    whole = traces.path("sort-rv64gc", "ntrace", 300_000)
    path = tmp_path / "damaged.ntrace"
    data = bytearray(whole.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 200] = b"\xff" * 200
    path.write_bytes(data)
    trace = hartrace.open(path, program=elf("sort-rv64gc"), config=f"{whole}.toml")
    rows = pa.table(trace.gaps()).to_pylist()
    losses = [row for row in rows if row["kind"] == "loss"]
    assert losses and all(row["code"].startswith("NT") for row in losses)
    gaps = [event for event in trace.iter_events(["gap"]) if isinstance(event, hartrace.Gap)]
    assert [(g.kind, g.code, g.begin, g.position) for g in gaps] == [
        (row["kind"], row["code"], row["begin"], row["position"])
        for row in rows
        if row["kind"] != "not traced"
    ]
    assert pa.table(trace.calls()).num_rows > 10


def test_any_bytes_are_read_or_refused(traces: Traces, tmp_path: Path) -> None:
    source = random.Random(26)
    whole = traces.path("sort-rv64gc", "ntrace", 5_000)
    original = whole.read_bytes()
    for number in range(30):
        data = bytearray(original)
        for _ in range(20):
            data[source.randrange(len(data))] = source.randrange(256)
        if number % 3 == 0:
            data = data[: source.randrange(len(data))]
        if number % 10 == 0:
            data = bytearray(source.randbytes(2000))
        path = tmp_path / "any.ntrace"
        path.write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trace = hartrace.open(path, program=elf("sort-rv64gc"), config=f"{whole}.toml")
        except hartrace.HartraceError as error:
            assert error.code.startswith("HT")
            continue
        for name in hartrace.TABLES:
            pa.table(trace.table(name))
        assert sum(1 for _ in trace.iter_events()) >= 0
        assert sum(1 for _ in trace.iter_messages()) >= 0


def test_guesses_are_warnings(traces: Traces, tmp_path: Path) -> None:
    alone = tmp_path / "alone.ntrace"
    shutil.copy(traces.path("sort-rv64gc", "ntrace"), alone)
    with pytest.warns(hartrace.HartraceWarning, match="HT0") as caught:
        trace = hartrace.open(alone, program=elf("sort-rv64gc"))
    assert [str(warning.message) for warning in caught] == trace.warnings
    assert Path(caught[0].filename).name == "test_errors.py"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(hartrace.HartraceWarning):
            hartrace.open(alone, program=elf("sort-rv64gc"))


def test_a_log_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run.pc"
    path.write_text("0000000000000010\n" * 100)
    trace = hartrace.open(path, program=elf("sort-rv64gc"))
    with pytest.raises(hartrace.FormatError) as caught:
        list(trace.iter_events())
    assert caught.value.code == "HT0109"
    # Through Arrow, it is an error of the tool that reads, with the same text.
    with pytest.raises(Exception, match="HT0109"):
        pa.table(trace.calls())
