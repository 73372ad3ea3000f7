# Into supervisor and user mode and back, and attempts at registers from there.

    .file   "modes.S"

#include "asm.h"
#include "ctr.h"
#include "place.h"

#define MSTATUS_MPP     0x1800
#define MSTATUS_MPP_S   0x0800
#define SSTATUS_SPP     0x0100

    .text
    .option push
    .balign 4
    .option norvc

# uintptr_t run_in(uintptr_t mode, uintptr_t (*function)(uintptr_t), uintptr_t argument)
#
# The mode is that of mstatus.MPP. The stack stays; the result is that of the
# function, which returns to an ecall.
    .globl  run_in
    .type   run_in, @function
run_in:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    csrw    mscratch, sp
    la      t0, machine_trap
    csrw    mtvec, t0
    csrw    mepc, a1
    li      t0, MSTATUS_MPP
    csrc    mstatus, t0
    csrs    mstatus, a0
    mv      a0, a2
    la      ra, back_to_machine
    mret

back_to_machine:
    ecall

# An instruction that is illegal is left out, and a0 says why; an ecall comes
# back.
machine_trap:
    csrr    t0, mcause
    li      t1, 2
    bne     t0, t1, 1f
    mv      a0, t0
    csrr    t0, mepc
    addi    t0, t0, 4
    csrw    mepc, t0
    mret
1:  csrw    mctrctl, zero
    csrr    sp, mscratch
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret
    .size   run_in, . - run_in

# Attempts: 0, or the cause of the exception.
    .macro attempt name, instruction:vararg
    .globl  \name
    .type   \name, @function
\name:
    li      a0, 0
    \instruction
    ret
    .size   \name, . - \name
    .endm

    attempt try_control, csrr t0, sctrctl
    attempt try_status, csrr t0, sctrstatus
    attempt try_depth, csrr t0, sctrdepth
    attempt try_select, csrr t0, ctr_select
    attempt try_entry, csrr t0, ctr_source
    attempt try_entry_4, csrr t0, 0x155
    attempt try_clear, .4byte 0x10400073
    attempt try_machine, csrr t0, mctrctl

# uintptr_t visit_user(uintptr_t control)
#
# In supervisor mode: records with this sctrctl while it is in user mode, where
# a call is made and an ecall that comes here.
    .globl  visit_user
    .type   visit_user, @function
visit_user:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    csrw    sscratch, sp
    la      t0, supervisor_trap
    csrw    stvec, t0
    la      t0, user
    csrw    sepc, t0
    li      t0, SSTATUS_SPP
    csrc    sstatus, t0
    csrw    sctrctl, a0
place enter_user
    sret

place user
    nop
place user_call
    jal     ra, user_callee
place user_ecall
    ecall
place user_callee
    ret

place supervisor_trap
    nop
place supervisor_call
    jal     ra, supervisor_callee
    csrw    sctrctl, zero
    csrr    sp, sscratch
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    li      a0, 0
    ret
place supervisor_callee
    ret
    .size   visit_user, . - visit_user
    .option pop
