# A little of everything, in machine and in user mode.

    .file   "draft.S"

#include "asm.h"
#include "draft.h"
#include "place.h"

#define MSTATUS_MPP     0x1800

    .text
    .option push
    .balign 4
    .option norvc

# void go_around(uintptr_t control, uintptr_t high)
#
# Records with this mctrcontrol, whose upper half is apart on RV32; afterwards
# nothing but the depth is left of it.
    .globl  go_around
    .type   go_around, @function
go_around:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    csrw    mscratch, sp
    la      t0, back
    csrw    mtvec, t0
    la      t0, user
    csrw    mepc, t0
    li      t0, MSTATUS_MPP
    csrc    mstatus, t0
    li      t0, 0xf0000         # DEPTH
    and     a2, a0, t0
#if __riscv_xlen == 32
    csrw    mctrcontrolh, a1
#endif
    csrw    mctrcontrol, a0
place call
    jal     ra, callee
place branch
    beqz    zero, jump
place jump
    j       enter
place callee
    ret
place enter
    mret

place user
    nop
place user_call
    jal     ra, user_callee
place user_ecall
    ecall
place user_callee
    ret

place back
    csrw    mctrcontrol, a2
    csrr    sp, mscratch
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret
    .size   go_around, . - go_around

# void call_and_return(uintptr_t control, unsigned calls, unsigned returns)
#
# So many calls, each deeper than the last, and then so many returns; with RAS
# emulation, a stack.
    .globl  call_and_return
    .type   call_and_return, @function
call_and_return:
    mv      t2, ra
    li      t0, 0xf0000
    and     t1, a0, t0
    csrw    mctrcontrol, a0
place deeper
    beqz    a1, 2f
    addi    a1, a1, -1
place push
    jal     ra, deeper
2:  la      ra, 3f
3:  beqz    a2, 4f
    addi    a2, a2, -1
place pop
    ret
4:  csrw    mctrcontrol, t1
    jr      t2
    .size   call_and_return, . - call_and_return

# uintptr_t break_once(uintptr_t control)
#
# An ebreak; the status in its handler.
    .globl  break_once
    .type   break_once, @function
break_once:
    la      t0, broken
    csrw    mtvec, t0
    csrw    mctrcontrol, a0
place before
    j       breakpoint
place breakpoint
    ebreak
place behind
    csrw    mctrcontrol, zero
    mv      a0, t1
    ret
    .size   break_once, . - break_once

place broken
    csrr    t1, mctrstatus
    csrr    t0, mepc
    addi    t0, t0, 4
    csrw    mepc, t0
place broken_return
    mret

# uintptr_t try_guest(void)
#
# The cause of the exception that reading vsctrcontrol raises, or 0.
    .globl  try_guest
    .type   try_guest, @function
try_guest:
    la      t0, refused
    csrw    mtvec, t0
    li      a0, 0
    csrr    t0, 0x281
    ret
refused:
    csrr    a0, mcause
    csrr    t0, mepc
    addi    t0, t0, 4
    csrw    mepc, t0
    mret
    .size   try_guest, . - try_guest
    .option pop
