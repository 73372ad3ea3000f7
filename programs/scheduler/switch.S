# Saves everything a task has on its stack, asks for the next task, and continues
# that one. Registers are stored by their number. The pc has the place of x0, x31 that
# of x2, which says where all this is, and mstatus that of x31: see `prepare` in
# scheduler.c.

    .file   "switch.S"

#include "asm.h"

#define FRAME   (32 * WORD)

    .text
    .balign 4
    .globl  switch_entry
    .type   switch_entry, @function
switch_entry:
    addi    sp, sp, -FRAME
    STORE   ra,  1 * WORD(sp)
    STORE   t6,  2 * WORD(sp)
    .irp    number, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    STORE   x\number, \number * WORD(sp)
    .endr
    csrr    t0, mepc
    csrr    t1, mstatus
    STORE   t0,  0 * WORD(sp)
    STORE   t1, 31 * WORD(sp)
    mv      a0, sp
    call    next_task
    mv      sp, a0
    j       continue_task
    .size   switch_entry, . - switch_entry

# void start_task(void *stack): leaves the caller for good.
    .globl  start_task
    .type   start_task, @function
start_task:
    mv      sp, a0
    j       continue_task
    .size   start_task, . - start_task

    .globl  continue_task
    .type   continue_task, @function
continue_task:
    LOAD    t0,  0 * WORD(sp)
    LOAD    t1, 31 * WORD(sp)
    csrw    mepc, t0
    csrw    mstatus, t1
    LOAD    ra,  1 * WORD(sp)
    LOAD    t6,  2 * WORD(sp)
    .irp    number, 4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    LOAD    x\number, \number * WORD(sp)
    .endr
    addi    sp, sp, FRAME
    mret
    .size   continue_task, . - continue_task
