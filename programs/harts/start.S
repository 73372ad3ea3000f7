# Start-up of a program that every hart runs, each on its own stack. Hart 0 goes to
# `main` when memory is as C wants it; the others wait for that and go to `other`.

    .file   "start.S"

#include "asm.h"

#define STACK_BITS          13      /* 8 KiB each, down from the top */
#define MSTATUS_FS_INITIAL  0x2000
#define MSTATUS_MIE         8

    .section .text.start, "ax", @progbits
    .globl  _start
    .type   _start, @function
_start:
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop

    la      t0, software_entry
    csrw    mtvec, t0
    csrw    mie, zero
    li      t0, MSTATUS_FS_INITIAL
    csrs    mstatus, t0
    csrw    fcsr, zero

    csrr    a0, mhartid
    la      sp, _stack_top
    slli    t0, a0, STACK_BITS
    sub     sp, sp, t0
    bnez    a0, wait

    la      t0, _bss_start
    la      t1, _bss_end
    bgeu    t0, t1, 2f
1:  STORE   zero, 0(t0)
    addi    t0, t0, WORD
    bltu    t0, t1, 1b

2:  la      t0, ready
    li      t1, 1
    fence   rw, w
    sw      t1, 0(t0)
    call    main
    call    exit                # does not return
    .size   _start, . - _start

    .type   wait, @function
wait:
    la      t0, ready
1:  lw      t1, 0(t0)
    beqz    t1, 1b
    fence   r, rw
    call    other
2:  wfi
    j       2b
    .size   wait, . - wait

# Software interrupts only; anything else is unexpected.
    .text
    .balign 4
    .type   software_entry, @function
software_entry:
    addi    sp, sp, -16 * WORD
    STORE   ra,  0 * WORD(sp)
    STORE   t0,  1 * WORD(sp)
    STORE   t1,  2 * WORD(sp)
    STORE   t2,  3 * WORD(sp)
    STORE   t3,  4 * WORD(sp)
    STORE   t4,  5 * WORD(sp)
    STORE   t5,  6 * WORD(sp)
    STORE   t6,  7 * WORD(sp)
    STORE   a0,  8 * WORD(sp)
    STORE   a1,  9 * WORD(sp)
    STORE   a2, 10 * WORD(sp)
    STORE   a3, 11 * WORD(sp)
    STORE   a4, 12 * WORD(sp)
    STORE   a5, 13 * WORD(sp)
    STORE   a6, 14 * WORD(sp)
    STORE   a7, 15 * WORD(sp)
    csrr    a0, mcause
    csrr    a1, mepc
    csrr    a2, mtval
    bgez    a0, 1f
    csrr    a0, mhartid
    call    receive
    LOAD    ra,  0 * WORD(sp)
    LOAD    t0,  1 * WORD(sp)
    LOAD    t1,  2 * WORD(sp)
    LOAD    t2,  3 * WORD(sp)
    LOAD    t3,  4 * WORD(sp)
    LOAD    t4,  5 * WORD(sp)
    LOAD    t5,  6 * WORD(sp)
    LOAD    t6,  7 * WORD(sp)
    LOAD    a0,  8 * WORD(sp)
    LOAD    a1,  9 * WORD(sp)
    LOAD    a2, 10 * WORD(sp)
    LOAD    a3, 11 * WORD(sp)
    LOAD    a4, 12 * WORD(sp)
    LOAD    a5, 13 * WORD(sp)
    LOAD    a6, 14 * WORD(sp)
    LOAD    a7, 15 * WORD(sp)
    addi    sp, sp, 16 * WORD
    mret
1:  call    report_unexpected_trap
    .size   software_entry, . - software_entry

# Set when memory is ready: not zeroed with the rest.
    .section .data
    .balign 4
ready:
    .word   0
