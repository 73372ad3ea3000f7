"""tinycore under cocotb: each instruction of its RVFI port is checked."""

import os
from pathlib import Path

import cocotb
from cocotb.triggers import FallingEdge

from hartrace import Checker

TINYCORE = Path(__file__).resolve().parent.parent / "tinycore"
SIGNALS = [
    "order", "insn", "trap", "halt", "intr", "mode", "rd_addr", "rd_wdata", "pc_rdata",
    "pc_wdata", "mem_addr", "mem_rmask", "mem_wmask",
]


def bytes_of(signal, mask):
    """The bytes of a signal that a mask selects; the others may be unknown."""
    text = signal.value.binstr if hasattr(signal.value, "binstr") else str(signal.value)
    value = 0
    for at in range(len(text) // 8):
        if mask >> at & 1:
            end = len(text) - 8 * at
            value |= int(text[end - 8 : end], 2) << 8 * at
    return value


@cocotb.test()
async def every_instruction_agrees(dut):
    checker = Checker(
        os.environ["LIBHARTRACE"],
        str(TINYCORE / "tinycore.toml"),
        str(TINYCORE / "program.elf"),
    )
    for _ in range(100_000):
        # The core drives its port at the rising edge.
        await FallingEdge(dut.clk)
        if str(dut.rvfi_valid.value) == "1":
            shown = {name: int(getattr(dut, "rvfi_" + name).value) for name in SIGNALS}
            shown["mem_rdata"] = bytes_of(dut.rvfi_mem_rdata, shown["mem_rmask"])
            shown["mem_wdata"] = bytes_of(dut.rvfi_mem_wdata, shown["mem_wmask"])
            checker.retire(**shown)
        if str(dut.ending.value) == "1":
            break
    retired = checker.finish()
    dut._log.info("%d instructions agree", retired)
    assert retired > 8000
    checker.close()
