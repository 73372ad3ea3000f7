# A visit to user mode: a software interrupt and a timer interrupt before its
# first instruction, a call, an ecall that returns, a jump, an ecall that does
# not. Each trap sets the way for the next, so that no handler has to branch.

    .file   "traps.S"

#include "asm.h"
#include "ctr.h"
#include "place.h"

#define CLINT_MSIP      0x02000000
#define CLINT_MTIMECMP  0x02004000

#define MSTATUS_MPP     0x1800
#define MSTATUS_MPIE    0x0080

    .text
    .option push
    .balign 4
    .option norvc

# void visit_user(uintptr_t control)
    .globl  visit_user
    .type   visit_user, @function
visit_user:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    csrw    mscratch, sp
    la      t0, software
    csrw    mtvec, t0
    la      t0, user
    csrw    mepc, t0
    li      t0, MSTATUS_MPP | MSTATUS_MPIE
    csrc    mstatus, t0
    csrw    mctrctl, a0
place enter_user
    mret

place user
    nop
place user_call
    jal     ra, user_callee
place user_ecall
    ecall
place user_jump
    j       user_last
place user_callee
    ret
place user_last
    ecall

place software
    li      t0, CLINT_MSIP
    sw      zero, 0(t0)
    li      t0, CLINT_MTIMECMP
    sd      zero, 0(t0)         # long past
    la      t0, timer
    csrw    mtvec, t0
place software_return
    mret

place timer
    li      t0, CLINT_MTIMECMP
    li      t1, -1              # never
    sd      t1, 0(t0)
    la      t0, environment
    csrw    mtvec, t0
place timer_return
    mret

place environment
    csrr    t0, mepc
    addi    t0, t0, 4
    csrw    mepc, t0
    la      t0, last
    csrw    mtvec, t0
place environment_return
    mret

place last
    csrw    mctrctl, zero
    csrr    sp, mscratch
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret
    .size   visit_user, . - visit_user
    .option pop
