# What leads to a freeze, and the handlers of it.

    .file   "freeze.S"

#include "asm.h"
#include "ctr.h"
#include "place.h"

    .text
    .option push
    .balign 4
    .option norvc

# void break_once(uintptr_t control)
#
# A call, an ebreak, a call.
    .globl  break_once
    .type   break_once, @function
break_once:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    la      t0, broken
    csrw    mtvec, t0
    csrw    mctrctl, a0
place call_before
    jal     ra, work
place breakpoint
    ebreak
place call_behind
    jal     ra, work
    csrw    mctrctl, zero
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret
    .size   break_once, . - break_once

place work
    nop
place work_return
    ret

# Notes the status, makes a call, and lets recording go on.
place broken
    csrr    t0, sctrstatus
    la      t1, status_in_handler
    STORE   t0, 0(t1)
place handler_call
    jal     ra, work
    csrr    t0, mepc
    addi    t0, t0, 4
    csrw    mepc, t0
    li      t0, 0x80000000      # FROZEN
    csrc    sctrstatus, t0
place broken_return
    mret

# void count_to_overflow(uintptr_t control)
#
# Calls until the handler of the overflow says that it was there.
    .globl  count_to_overflow
    .type   count_to_overflow, @function
count_to_overflow:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    la      t0, overflow
    csrw    mtvec, t0
    la      t2, overflows
    csrw    mctrctl, a0
    csrsi   mstatus, 8          # MIE
place loop
    jal     ra, loop_work
place loop_test
    lw      t0, 0(t2)
place loop_back
    beqz    t0, loop
place loop_end
    csrci   mstatus, 8
    csrw    mctrctl, zero
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret
    .size   count_to_overflow, . - count_to_overflow

place loop_work
    nop
    nop
place loop_return
    ret
place loop_limit

# Notes status and place, counts itself, makes a call, and leaves it frozen.
# t2 and ra are the loop's; only ra has to be kept.
place overflow
    csrr    t0, sctrstatus
    la      t1, status_in_handler
    STORE   t0, 0(t1)
    csrr    t0, mepc
    la      t1, place_of_overflow
    STORE   t0, 0(t1)
    csrr    t0, mcause
    la      t1, cause_of_overflow
    STORE   t0, 0(t1)
    li      t0, 1 << 13         # LCOFIP
    csrc    mip, t0
    lw      t0, 0(t2)
    addi    t0, t0, 1
    sw      t0, 0(t2)
    mv      t1, ra
place overflow_call
    jal     ra, work
    mv      ra, t1
place overflow_return
    mret
    .option pop
