# Start-up of a program on the bare machine, and the end of it when a trap
# comes that nobody expected.
#
# Needed from whoever starts us: machine mode, and nothing else. The hart's
# number is read from mhartid; only hart 0 runs the program.

    .file   "crt0.S"

#include "asm.h"

#define MSTATUS_FS_INITIAL  0x2000

    .section .text.start, "ax", @progbits
    .globl  _start
    .type   _start, @function
_start:
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    la      sp, _stack_top

    la      t0, unexpected_trap
    csrw    mtvec, t0
    csrw    mie, zero

    csrr    t0, mhartid
    bnez    t0, park

    # Floating point on; rounding to nearest, no flags raised.
    li      t0, MSTATUS_FS_INITIAL
    csrs    mstatus, t0
    csrw    fcsr, zero

    # The linker script aligns both ends to 8 bytes.
    la      t0, _bss_start
    la      t1, _bss_end
    bgeu    t0, t1, 2f
1:  STORE   zero, 0(t0)
    addi    t0, t0, WORD
    bltu    t0, t1, 1b

2:  call    main
    call    exit                # does not return
    .size   _start, . - _start

    .type   park, @function
park:
    wfi
    j       park
    .size   park, . - park

# Whatever the program was doing, its stack can no longer be trusted: report
# on a fresh one and stop.
    .text
    .balign 4
    .type   unexpected_trap, @function
unexpected_trap:
    la      sp, _stack_top
    csrr    a0, mcause
    csrr    a1, mepc
    csrr    a2, mtval
    call    report_unexpected_trap
    .size   unexpected_trap, . - unexpected_trap
