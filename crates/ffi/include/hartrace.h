/*
 * libhartrace: a RISC-V core checked against a reference hart, and the trace of its ingress
 * port encoded, while a simulation runs. docs/library-c.md is the guide.
 *
 * Made by cbindgen from crates/ffi/src; see crates/ffi/cbindgen.toml.
 *
 * Handles are independent of each other: there is no global state. A handle may move from
 * thread to thread, but only one call at a time may use it. No function ends the process
 * or throws. A fault in the library itself makes its handle answer HARTRACE_INTERNAL from
 * then on.
 *
 * A pointer is NULL, which is an error where nothing else is said, or points to what its
 * type says for the time of the call. Texts are UTF-8 and end with a zero.
 *
 * Structs begin with their size in bytes, so that a library and a header of different
 * versions can work together. Set all of a struct to zero first, then its size, then the
 * fields that are needed.
 */


#ifndef HARTRACE_H
#define HARTRACE_H

#include <stddef.h>
#include <stdint.h>

// Fields of hartrace_retired that have a value: `order`.
#define HARTRACE_HAS_ORDER 1

// `pc_wdata`.
#define HARTRACE_HAS_PC_WDATA (1 << 1)

// `intr`.
#define HARTRACE_HAS_INTR (1 << 2)

// `mode`.
#define HARTRACE_HAS_MODE (1 << 3)

// `ixl`.
#define HARTRACE_HAS_IXL (1 << 4)

// `rd_addr` and `rd_wdata`.
#define HARTRACE_HAS_RD (1 << 5)

// `mem_addr`, the masks and the data.
#define HARTRACE_HAS_MEM (1 << 6)

// `cause`; for an instruction with `trap` or `intr`.
#define HARTRACE_HAS_CAUSE (1 << 7)

// `tval`; for an instruction with `trap` or `intr`.
#define HARTRACE_HAS_TVAL (1 << 8)

// In `reports` only: `writes` has every write to a floating-point register.
#define HARTRACE_HAS_FLOATS (1 << 9)

// In `reports` only: `writes` has every write to a CSR, those of traps too. Without it
// `writes` may have some: they are compared.
#define HARTRACE_HAS_CSRS (1 << 10)

// The signals of the RISC-V Formal Interface: all up to HARTRACE_HAS_MEM.
#define HARTRACE_RVFI 127

// `kind` of a write: an integer register, 0 to 31.
#define HARTRACE_X 0

// A floating-point register, 0 to 31.
#define HARTRACE_F 1

// A CSR, 0 to 0xfff.
#define HARTRACE_CSR 2

// `field` of a difference: the instruction itself.
#define HARTRACE_FIELD_INSN 0

// The pc after the instruction.
#define HARTRACE_FIELD_PC 1

// The privilege mode after it.
#define HARTRACE_FIELD_MODE 2

// An integer register, `number`.
#define HARTRACE_FIELD_X 3

// A floating-point register, `number`.
#define HARTRACE_FIELD_F 4

// A CSR, `number`.
#define HARTRACE_FIELD_CSR 5

// The address of a load.
#define HARTRACE_FIELD_LOAD_ADDRESS 6

// The address of a store.
#define HARTRACE_FIELD_STORE_ADDRESS 7

// Its size in bytes.
#define HARTRACE_FIELD_STORE_SIZE 8

// What it stores.
#define HARTRACE_FIELD_STORE_DATA 9

// An interrupt, by its code.
#define HARTRACE_FIELD_INTERRUPT 10

// The handler of an interrupt that has no cause: none that is enabled leads there.
#define HARTRACE_FIELD_HANDLER 11

// `format` of an encoder: by the settings, which have a section [etrace] or [ntrace].
#define HARTRACE_FORMAT_CONFIG 0

// E-Trace.
#define HARTRACE_FORMAT_ETRACE 1

// N-Trace.
#define HARTRACE_FORMAT_NTRACE 2

// A core being checked.
typedef struct hartrace_check hartrace_check;

// A trace being encoded.
typedef struct hartrace_encode hartrace_encode;

// What a function returns: HARTRACE_OK, HARTRACE_DIFFERENCE, or an error below zero.
typedef int32_t hartrace_status;

// How a core is checked.
typedef struct {
  // sizeof(hartrace_check_options).
  uint32_t size;
  // The number of the hart: what mhartid reads. Each hart has its own handle.
  uint32_t hart;
  // HARTRACE_HAS_*: what the core reports of every instruction. 0: HARTRACE_RVFI.
  uint32_t reports;
  // 0.
  uint32_t reserved;
  // Settings in TOML, as `hartrace verify -c` reads them; or NULL.
  const char *config;
  // A file with settings, which those of `config` override; or NULL.
  const char *config_file;
  // The program, an ELF file; or NULL, if the settings name it or `elf` has it.
  const char *elf_file;
  // The program as the bytes of an ELF file, which are copied; or NULL.
  const void *elf;
  // Their number.
  uintptr_t elf_size;
} hartrace_check_options;

// A register with its new value.
typedef struct {
  // HARTRACE_X, HARTRACE_F or HARTRACE_CSR.
  uint32_t kind;
  // Its number.
  uint32_t number;
  // The whole value.
  uint64_t value;
} hartrace_write;

// An instruction that has retired or trapped, with what it did: the signals of one lane of
// the RISC-V Formal Interface, and what RVVI reports beyond them.
typedef struct {
  // sizeof(hartrace_retired).
  uint32_t size;
  // HARTRACE_HAS_*: the fields that have a value.
  uint32_t valid;
  // The number of the instruction, each one more than the last.
  uint64_t order;
  // Its address.
  uint64_t pc_rdata;
  // Where the hart goes, if no interrupt is taken.
  uint64_t pc_wdata;
  // The instruction; a compressed one in the low half.
  uint32_t insn;
  // Not 0: it did not retire, but trapped. What follows is the handler.
  uint8_t trap;
  // Not 0: it is the last one before the hart halts. Of no consequence here.
  uint8_t halt;
  // Not 0: it is the first instruction of a trap handler.
  uint8_t intr;
  // The privilege mode: 0, 1 or 3.
  uint8_t mode;
  // The width of the hart: 1 for 32 bits, 2 for 64.
  uint8_t ixl;
  // The integer register that it writes; 0 for none.
  uint8_t rd_addr;
  // A bit for each byte that it reads, from `mem_addr` on.
  uint8_t mem_rmask;
  // A bit for each byte that it writes.
  uint8_t mem_wmask;
  // The new value of the register.
  uint64_t rd_wdata;
  // The address of its memory access.
  uint64_t mem_addr;
  // What it reads, each byte in the place of its bit in the mask.
  uint64_t mem_rdata;
  // What it writes.
  uint64_t mem_wdata;
  // The cause of the trap, as xcause has it.
  uint64_t cause;
  // The value of the trap, as xtval has it.
  uint64_t tval;
  // Further registers that it writes; or NULL.
  const hartrace_write *writes;
  // Their number.
  uintptr_t write_count;
} hartrace_retired;

// One value that differs.
typedef struct {
  // sizeof(hartrace_difference).
  uint32_t size;
  // HARTRACE_FIELD_*.
  uint32_t field;
  // The register.
  uint32_t number;
  // 1: the hart has a value, and `expected` is it; 0: it has none.
  uint8_t has_expected;
  // 1: the core has a value, and `actual` is it; 0: it has none.
  uint8_t has_actual;
  // 1: the hart has the instruction in `insn`.
  uint8_t has_insn;
  // 0.
  uint8_t reserved;
  // What the hart has.
  uint64_t expected;
  // What the core has.
  uint64_t actual;
  // The number of the instruction, from 0 on.
  uint64_t index;
  // Its address.
  uint64_t pc;
  // The instruction.
  uint32_t insn;
  // How many values differ in it.
  uint32_t count;
} hartrace_difference;

// What a checker has done.
typedef struct {
  // sizeof(hartrace_counts).
  uint32_t size;
  // 0.
  uint32_t reserved;
  // Instructions that retired.
  uint64_t retired;
  // Exceptions.
  uint64_t exceptions;
  // Interrupts.
  uint64_t interrupts;
  // Values compared.
  uint64_t compared;
} hartrace_counts;

// How a trace is encoded.
typedef struct {
  // sizeof(hartrace_encode_options).
  uint32_t size;
  // HARTRACE_FORMAT_*.
  uint32_t format;
  // Settings in TOML, as `hartrace encode -c` reads them; or NULL.
  const char *config;
  // A file with settings, which those of `config` override; or NULL.
  const char *config_file;
} hartrace_encode_options;

// A block of the trace ingress port (E-Trace, chapter 4): the signals of one block in one
// cycle. Show the blocks of a cycle one after the other, the oldest first.
typedef struct {
  // sizeof(hartrace_block).
  uint32_t size;
  // The number of the hart.
  uint32_t hart;
  // itype.
  uint8_t itype;
  // ilastsize: log2 of the halfwords of the last instruction.
  uint8_t ilastsize;
  // priv: 0, 1, 3; 4 for debug mode.
  uint8_t priv;
  // ctype.
  uint8_t ctype;
  // sijump.
  uint8_t sijump;
  // trigger: 1 trace-on, 2 trace-off, 4 notify.
  uint8_t trigger;
  // Not 0: the hart is halted.
  uint8_t halted;
  // Not 0: the hart is in reset.
  uint8_t reset;
  // iretire in halfwords, also from a port with single retirement.
  uint32_t iretire;
  // cause, without the interrupt bit.
  uint32_t cause;
  // iaddr.
  uint64_t iaddr;
  // tval.
  uint64_t tval;
  // context.
  uint64_t context;
  // time, in cycles.
  uint64_t time;
  // impdef.
  uint32_t impdef;
  // External trigger inputs, a bit each.
  uint8_t external;
  // Not 0: the hart is in a low-power state.
  uint8_t power_down;
  // 0.
  uint8_t reserved[2];
} hartrace_block;

// Done; core and hart agree so far.
#define HARTRACE_OK 0

// Core and hart differ. hartrace_check_text() has the report.
#define HARTRACE_DIFFERENCE 1

// A null pointer, a struct with a wrong size, a value that cannot be. Nothing was done.
#define HARTRACE_ARGUMENT -1

// Settings or a program that cannot be used. The handle can only be freed.
#define HARTRACE_CONFIG -2

// A retirement that does not follow the one before, by its order. Nothing was done.
#define HARTRACE_ORDER -3

// A fault in the library. The handle can only be freed.
#define HARTRACE_INTERNAL -4

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this interface. It grows when something is added; a library with a larger
// number does all that this header says.
uint32_t hartrace_api_version(void);

// The version of hartrace, as text.
const char *hartrace_version(void);

// Makes a checker of one hart.
//
// `check` gets a handle in any case, to be freed with hartrace_check_free(): if the result
// is not HARTRACE_OK, hartrace_check_text() says why, and every call has the same result.
// Only if one of the pointers is NULL, or a struct has a wrong size, there is no handle.
hartrace_status hartrace_check_new(const hartrace_check_options *options,
                                   hartrace_check **check);

// Frees a checker. NULL is ignored.
void hartrace_check_free(hartrace_check *check);

// Checks an instruction that the core has retired, or that has trapped.
//
// HARTRACE_OK: core and hart agree. HARTRACE_DIFFERENCE: they differ, now or at an earlier
// call; nothing more is compared. Other results: the call was wrong and nothing was done.
//
// What an instruction did is compared at once, if `pc_wdata` has a value. Otherwise, and
// for instructions that trap or return from a trap, it is compared with the next call.
//
//     hartrace_retired r = {0};
//     r.size = sizeof r;
//     r.valid = HARTRACE_RVFI;
//     r.order = 0, r.pc_rdata = 0x80, r.pc_wdata = 0x84;
//     r.insn = 0x00100513, r.mode = 3, r.ixl = 1;     // li a0, 1
//     r.rd_addr = 10, r.rd_wdata = 1;
//     if (hartrace_check_retire(check, &r) == HARTRACE_DIFFERENCE)
//         puts(hartrace_check_text(check));
hartrace_status hartrace_check_retire(hartrace_check *check,
                                      const hartrace_retired *retired);

// Checks instructions that the core has retired one after the other, at most 4096: the same
// as a call of hartrace_check_retire for each, up to the first that does not give
// HARTRACE_OK, whose result is given back. It takes less than half the time, for
// simulations that can wait until a difference is found.
//
// `agreed` may be NULL; otherwise the number of calls that would have given HARTRACE_OK is
// put there: what differs is `retired[agreed]`.
hartrace_status hartrace_check_retire_all(hartrace_check *check,
                                          const hartrace_retired *retired,
                                          size_t count,
                                          size_t *agreed);

// The core was reset: the hart starts again as at first. Memory stays as it is.
hartrace_status hartrace_check_reset(hartrace_check *check);

// Nothing follows: what waits for a further retirement is compared without it.
hartrace_status hartrace_check_finish(hartrace_check *check);

// Goes on after a difference: the hart takes the values of the core. The text is gone.
hartrace_status hartrace_check_continue(hartrace_check *check);

// The report of the difference, as `hartrace verify` prints it, or what was wrong with a
// call; an empty text if there is nothing. It is valid until the next call.
const char *hartrace_check_text(const hartrace_check *check);

// One of the values that differ, `index` from 0 on; HARTRACE_ARGUMENT if there is none.
hartrace_status hartrace_check_difference(hartrace_check *check,
                                          uintptr_t index,
                                          hartrace_difference *difference);

// What was compared so far.
hartrace_status hartrace_check_counts(hartrace_check *check, hartrace_counts *counts);

// Makes an encoder. As for hartrace_check_new(), there is a handle in any case.
hartrace_status hartrace_encode_new(const hartrace_encode_options *options,
                                    hartrace_encode **encode);

// Frees an encoder. NULL is ignored.
void hartrace_encode_free(hartrace_encode *encode);

// Encodes a block. The bytes wait for hartrace_encode_take().
hartrace_status hartrace_encode_block(hartrace_encode *encode,
                                      const hartrace_block *block);

// No block follows: the trace is ended, as by an encoder that is switched off.
hartrace_status hartrace_encode_finish(hartrace_encode *encode);

// Takes bytes of the trace, as many as wait and there is room for, and returns their
// number: 0 if none wait.
//
//     uint8_t buffer[256];
//     size_t count;
//     while ((count = hartrace_encode_take(encode, buffer, sizeof buffer)) > 0)
//         fwrite(buffer, 1, count, file);
uintptr_t hartrace_encode_take(hartrace_encode *encode, uint8_t *buffer, uintptr_t size);

// How many bytes wait to be taken.
uintptr_t hartrace_encode_pending(hartrace_encode *encode);

// What was wrong with a call; an empty text if nothing was. It is valid until the next
// call.
const char *hartrace_encode_text(const hartrace_encode *encode);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HARTRACE_H */
