# Trap entry for interrupts that may nest: everything a handler in C may change
# goes to the stack, mepc and mstatus included, so that the handler is free to
# let further traps in.

    .file   "vectors.S"

#include "asm.h"

#define FRAME       (20 * WORD)     /* a multiple of 16 on either machine */
#define MSTATUS_MIE 8

# The layout is that of struct frame in timer.c.
    .macro entry name, handler
    .balign 4
    .type   \name, @function
\name:
    addi    sp, sp, -FRAME
    STORE   ra,  0 * WORD(sp)
    STORE   t0,  1 * WORD(sp)
    STORE   t1,  2 * WORD(sp)
    STORE   t2,  3 * WORD(sp)
    STORE   a0,  4 * WORD(sp)
    STORE   a1,  5 * WORD(sp)
    STORE   a2,  6 * WORD(sp)
    STORE   a3,  7 * WORD(sp)
    STORE   a4,  8 * WORD(sp)
    STORE   a5,  9 * WORD(sp)
    STORE   a6, 10 * WORD(sp)
    STORE   a7, 11 * WORD(sp)
    STORE   t3, 12 * WORD(sp)
    STORE   t4, 13 * WORD(sp)
    STORE   t5, 14 * WORD(sp)
    STORE   t6, 15 * WORD(sp)
    csrr    t0, mepc
    csrr    t1, mstatus
    STORE   t0, 16 * WORD(sp)
    STORE   t1, 17 * WORD(sp)
    mv      a0, sp
    call    \handler
    j       leave
    .size   \name, . - \name
    .endm

    .text
    entry   exception_entry, handle_exception
    entry   software_entry, handle_software
    entry   timer_entry, handle_timer
    entry   unknown_entry, handle_unknown

    .type   leave, @function
leave:
    csrci   mstatus, MSTATUS_MIE    # mepc must stay as it is from here on
    LOAD    t0, 16 * WORD(sp)
    LOAD    t1, 17 * WORD(sp)
    csrw    mepc, t0
    csrw    mstatus, t1
    LOAD    ra,  0 * WORD(sp)
    LOAD    t0,  1 * WORD(sp)
    LOAD    t1,  2 * WORD(sp)
    LOAD    t2,  3 * WORD(sp)
    LOAD    a0,  4 * WORD(sp)
    LOAD    a1,  5 * WORD(sp)
    LOAD    a2,  6 * WORD(sp)
    LOAD    a3,  7 * WORD(sp)
    LOAD    a4,  8 * WORD(sp)
    LOAD    a5,  9 * WORD(sp)
    LOAD    a6, 10 * WORD(sp)
    LOAD    a7, 11 * WORD(sp)
    LOAD    t3, 12 * WORD(sp)
    LOAD    t4, 13 * WORD(sp)
    LOAD    t5, 14 * WORD(sp)
    LOAD    t6, 15 * WORD(sp)
    addi    sp, sp, FRAME
    mret
    .size   leave, . - leave

# mtvec in direct mode: one entry for all, told apart by mcause in C.
    .globl  direct_entry
    entry   direct_entry, handle_any

# mtvec in vectored mode: exceptions at the base, interrupt n at base + 4 n.
    .globl  vectors
    .balign 64
    .type   vectors, @function
vectors:
    .option push
    .option norvc
    .option norelax
    j       exception_entry
    j       unknown_entry
    j       unknown_entry
    j       software_entry          # 3
    j       unknown_entry
    j       unknown_entry
    j       unknown_entry
    j       timer_entry             # 7
    .rept   8
    j       unknown_entry
    .endr
    .option pop
    .size   vectors, . - vectors
