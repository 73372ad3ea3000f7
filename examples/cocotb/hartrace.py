"""libhartrace for Python: checks the instructions that a core retires (hartrace.h)."""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

OK, DIFFERENCE = 0, 1
RVFI = 0x7F


class Options(ctypes.Structure):
    """hartrace_check_options"""

    _fields_ = [
        ("size", c_uint32),
        ("hart", c_uint32),
        ("reports", c_uint32),
        ("reserved", c_uint32),
        ("config", c_char_p),
        ("config_file", c_char_p),
        ("elf_file", c_char_p),
        ("elf", c_void_p),
        ("elf_size", c_size_t),
    ]


class Retired(ctypes.Structure):
    """hartrace_retired"""

    _fields_ = [
        ("size", c_uint32),
        ("valid", c_uint32),
        ("order", c_uint64),
        ("pc_rdata", c_uint64),
        ("pc_wdata", c_uint64),
        ("insn", c_uint32),
        ("trap", c_uint8),
        ("halt", c_uint8),
        ("intr", c_uint8),
        ("mode", c_uint8),
        ("ixl", c_uint8),
        ("rd_addr", c_uint8),
        ("mem_rmask", c_uint8),
        ("mem_wmask", c_uint8),
        ("rd_wdata", c_uint64),
        ("mem_addr", c_uint64),
        ("mem_rdata", c_uint64),
        ("mem_wdata", c_uint64),
        ("cause", c_uint64),
        ("tval", c_uint64),
        ("writes", c_void_p),
        ("write_count", c_size_t),
    ]


class Counts(ctypes.Structure):
    """hartrace_counts"""

    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("retired", c_uint64),
        ("exceptions", c_uint64),
        ("interrupts", c_uint64),
        ("compared", c_uint64),
    ]


class Difference(Exception):
    """The core and the hart differ; the text is the report."""


class Checker:
    """A hart beside a core."""

    def __init__(self, library, config_file, elf_file, hart=0, reports=RVFI):
        self.library = ctypes.CDLL(library)
        self._declare()
        options = Options(
            size=ctypes.sizeof(Options),
            hart=hart,
            reports=reports,
            config_file=config_file.encode(),
            elf_file=elf_file.encode(),
        )
        self.handle = c_void_p()
        status = self.library.hartrace_check_new(ctypes.byref(options), ctypes.byref(self.handle))
        if status != OK:
            raise RuntimeError(self.text())
        self.retired = Retired(size=ctypes.sizeof(Retired), valid=reports)

    def _declare(self):
        library = self.library
        library.hartrace_check_new.argtypes = [POINTER(Options), POINTER(c_void_p)]
        library.hartrace_check_retire.argtypes = [c_void_p, POINTER(Retired)]
        library.hartrace_check_finish.argtypes = [c_void_p]
        library.hartrace_check_counts.argtypes = [c_void_p, POINTER(Counts)]
        library.hartrace_check_free.argtypes = [c_void_p]
        library.hartrace_check_text.argtypes = [c_void_p]
        library.hartrace_check_text.restype = c_char_p
        for name in ("new", "retire", "finish", "counts"):
            getattr(library, "hartrace_check_" + name).restype = c_int32

    def text(self):
        """The report of the difference, or the error."""
        return self.library.hartrace_check_text(self.handle).decode()

    def retire(self, **signals):
        """An instruction, with the RVFI signals by their names; raises at a difference."""
        for name, value in signals.items():
            setattr(self.retired, name, value)
        status = self.library.hartrace_check_retire(self.handle, ctypes.byref(self.retired))
        if status != OK:
            raise Difference(self.text())

    def finish(self):
        """Nothing follows; the number of instructions that were compared."""
        if self.library.hartrace_check_finish(self.handle) != OK:
            raise Difference(self.text())
        counts = Counts(size=ctypes.sizeof(Counts))
        self.library.hartrace_check_counts(self.handle, ctypes.byref(counts))
        return counts.retired

    def close(self):
        self.library.hartrace_check_free(self.handle)
        self.handle = c_void_p()
