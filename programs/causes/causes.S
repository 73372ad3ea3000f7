# Code that traps, one function for each cause, and what runs it and comes back. Nothing
# here is compressed: one of the causes needs compressed instructions to be off.

    .file   "causes.S"

#include "asm.h"

#define MISA_C      4
#define MSTATUS_MPP 0x1800
#define ENABLES     0x88            /* MPIE and MIE */
#define NOWHERE     0x10            /* no memory and no device */
#define UNMAPPED    0xc0000000      /* in no page table */

    .option norvc

# csr_t attempt(void (*code)(void), csr_t status): what a function has to keep is put
# aside, and comes back with the trap.
    .text
    .balign 4
    .globl  attempt
    .type   attempt, @function
attempt:
    la      t0, kept
    STORE   ra,  0 * WORD(t0)
    STORE   sp,  1 * WORD(t0)
    .irp    number, 0,1,2,3,4,5,6,7,8,9,10,11
    STORE   s\number, (2 + \number) * WORD(t0)
    .endr
    csrw    mepc, a0
    li      t1, MSTATUS_MPP | ENABLES
    csrc    mstatus, t1
    csrs    mstatus, a1
    mret
    .size   attempt, . - attempt

    .balign 4
    .globl  trap_entry
    .type   trap_entry, @function
trap_entry:
    csrsi   misa, MISA_C
    la      t0, kept
    LOAD    ra,  0 * WORD(t0)
    LOAD    sp,  1 * WORD(t0)
    .irp    number, 0,1,2,3,4,5,6,7,8,9,10,11
    LOAD    s\number, (2 + \number) * WORD(t0)
    .endr
    csrr    a0, mcause
    csrr    t1, mtval
    la      t0, trap_value
    STORE   t1, 0(t0)
    csrr    t1, mepc
    la      t0, trap_pc
    STORE   t1, 0(t0)
    csrw    mie, zero
    csrw    mepc, ra
    li      t1, ENABLES             # interrupts stay off
    csrc    mstatus, t1
    li      t1, MSTATUS_MPP
    csrs    mstatus, t1
    mret
    .size   trap_entry, . - trap_entry

    .macro  trying name
    .balign 4
    .globl  try_\name
    .type   try_\name, @function
try_\name:
    .endm

    .macro  tried name
    .size   try_\name, . - try_\name
    .endm

    trying  fetch_misaligned
    csrci   misa, MISA_C
    la      t0, try_fetch_misaligned + 2
    jr      t0
    tried   fetch_misaligned

    trying  fetch_access
    li      t0, NOWHERE
    jr      t0
    tried   fetch_access

    trying  illegal
    .word   0xffffffff
    tried   illegal

    trying  breakpoint
    ebreak
    tried   breakpoint

# Misaligned loads and stores may well work; a call ends the attempt then.
    trying  load_misaligned
    la      t0, cell + 1
    lw      t1, 0(t0)
    ecall
    tried   load_misaligned

    trying  load_access
    li      t0, NOWHERE
    lw      t1, 0(t0)
    tried   load_access

    trying  store_misaligned
    la      t0, cell + 1
    sw      t1, 0(t0)
    ecall
    tried   store_misaligned

    trying  store_access
    li      t0, NOWHERE
    sw      t1, 0(t0)
    tried   store_access

    trying  call
    ecall
    tried   call

    trying  fetch_page
    li      t0, UNMAPPED
    jr      t0
    tried   fetch_page

    trying  load_page
    li      t0, UNMAPPED
    lw      t1, 0(t0)
    tried   load_page

    trying  store_page
    li      t0, UNMAPPED
    sw      t1, 0(t0)
    tried   store_page

    trying  waiting
1:  j       1b
    tried   waiting

    .bss
    .balign 16
kept:
    .skip   14 * WORD
    .globl  trap_value
trap_value:
    .skip   WORD
    .globl  trap_pc
trap_pc:
    .skip   WORD
cell:
    .skip   16
