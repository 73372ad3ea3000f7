"""Programs on the built-in hart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from conftest import REPOSITORY, call, elf, tool

import hartrace


def test_a_program_that_succeeds(tmp_path: Path) -> None:
    result = hartrace.run(elf("sieve-rv64gc"))
    assert (result.exit_code, result.stop, result.failure) == (0, "exit", None)
    assert result.check() is result
    assert result.trace is None and result.trace_bytes is None
    assert result.instructions > 10_000 and result.cycles >= result.instructions
    assert result.summary == "the program ended with code 0"
    traced = hartrace.run(elf("sieve-rv64gc"), trace="ntrace", output=tmp_path / "out.bin")
    assert (traced.instructions, traced.stdout) == (result.instructions, result.stdout)
    assert traced.trace is not None and traced.trace.format == "ntrace"
    assert traced.trace_bytes == (tmp_path / "out.bin").stat().st_size
    assert (tmp_path / "out.bin.toml").exists()
    assert sum(1 for _ in traced.trace.iter_instructions()) == result.instructions


def test_output_is_that_of_the_command_line() -> None:
    hartrace_tool = tool("HARTRACE")
    for name in ("timer-rv64gc", "exceptions-rv32gc"):
        result = hartrace.run(elf(name))
        done = call(hartrace_tool, "run", "-q", elf(name))
        assert result.stdout.decode() == done.stdout
        assert result.exit_code == done.returncode == 0


def test_temporary_traces_go_away() -> None:
    result = hartrace.run(elf("sieve-rv64gc"), trace="ntrace")
    assert result.trace is not None
    path = result.trace.path
    assert path.exists()
    assert pa.table(result.trace.calls()).num_rows > 10
    del result
    assert not path.exists()


def test_limits_and_output(tmp_path: Path) -> None:
    result = hartrace.run(elf("sort-rv64gc"), max_instructions=12_345)
    assert (result.stop, result.exit_code, result.instructions) == ("limit", None, 12_345)
    whole = hartrace.run(elf("timer-rv64gc"))
    assert len(whole.stdout) > 10 and not whole.output_cut
    short = hartrace.run(elf("timer-rv64gc"), max_output=10)
    assert short.stdout == whole.stdout[:10] and short.output_cut


def test_several_harts(tmp_path: Path) -> None:
    result = hartrace.run(elf("harts-rv64gc"), trace="ntrace", harts=2)
    assert result.trace is not None and result.check().exit_code == 0
    harts = pa.table(result.trace.runs(["hart", "instructions"])).group_by("hart")
    sums = harts.aggregate([("instructions", "sum")]).to_pylist()
    assert {row["hart"] for row in sums} == {0, 1}
    assert sum(row["instructions_sum"] for row in sums) == result.instructions
    with pytest.raises(hartrace.ConfigError, match="container"):
        hartrace.run(elf("harts-rv64gc"), trace="tandem", harts=2, output=tmp_path / "x.tandem")
    assert list(tmp_path.iterdir()) == []


def test_code_that_changes(tmp_path: Path) -> None:
    lists = []
    for kind in ("ntrace", "etrace"):
        output = tmp_path / f"run.{kind}"
        result = hartrace.run(elf("selfmod-rv64gc"), output=output)
        assert result.trace is not None
        assert Path(f"{output}.code").exists()
        lists.append([(i.pc, i.bits) for i in result.trace.iter_instructions()])
        assert len(lists[-1]) == result.instructions
        assert pa.table(result.trace.gaps()).num_rows == 0
    assert lists[0] == lists[1]
    # The same address has had several instructions.
    assert len(set(lists[0])) > len({pc for pc, _ in lists[0]})


def test_failures(tmp_path: Path) -> None:
    with pytest.raises(hartrace.FileError) as caught:
        hartrace.run(tmp_path / "none.elf")
    assert caught.value.code == "HT0001"
    text = tmp_path / "text.elf"
    text.write_text("no program")
    with pytest.raises(hartrace.FormatError) as wrong:
        hartrace.run(text)
    assert wrong.value.code == "HT0101"
    with pytest.raises(hartrace.UsageError):
        hartrace.run(elf("sieve-rv64gc"), isa="rv32gc")
    with pytest.raises(ValueError, match="`vcd` is not a kind of trace"):
        hartrace.run(elf("sieve-rv64gc"), trace="vcd")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="which format"):
        hartrace.run(elf("sieve-rv64gc"), output=tmp_path / "run.bin")
    with pytest.raises(hartrace.FileError):
        hartrace.run(elf("sieve-rv64gc"), output=tmp_path / "none" / "run.ntrace")
    with pytest.raises(hartrace.FileError):
        hartrace.run(elf("sieve-rv64gc"), files=tmp_path / "none")


def test_arguments_files_and_exit_codes(tmp_path: Path) -> None:
    program = elf("semihost-rv64gc")
    (tmp_path / "sample.txt").write_bytes((program.parent / "sample.txt").read_bytes())
    result = hartrace.run(program, ["exit=7"], files=tmp_path, writable=True)
    assert (result.exit_code, result.stop) == (7, "exit")
    assert isinstance(result.failure, hartrace.RunError)
    assert result.failure.message == "the program reported failure: code 7"
    with pytest.raises(hartrace.RunError) as caught:
        result.check()
    assert caught.value is result.failure and caught.value.code == "HT0501"
    assert result.stdout.startswith(b"1 arguments\n")
    assert hartrace.run(program, files=tmp_path, writable=True).check().exit_code == 0


def test_the_configurations_of_the_repository_work() -> None:
    for config in sorted((REPOSITORY / "configs" / "ntrace").glob("[bhr]*.toml")):
        result = hartrace.run(
            elf("sieve-rv32imac"), trace="ntrace", config=config, max_instructions=20_000
        )
        assert result.trace is not None
