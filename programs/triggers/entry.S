# The entry of the monitor: saves what C may change, and goes on where the program was.

    .file   "entry.S"

#include "asm.h"

#define FRAME   (16 * WORD)

    .text
    .balign 4
    .globl  trap_entry
    .type   trap_entry, @function
trap_entry:
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
    csrr    a0, mcause
    csrr    a1, mepc
    csrr    a2, mtval
    call    handle_trap
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
    .size   trap_entry, . - trap_entry
