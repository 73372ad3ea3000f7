# Every type of transfer, once or twice.

    .file   "types.S"

#include "asm.h"
#include "ctr.h"
#include "place.h"

#define CLINT_MSIP  0x02000000
#define MSTATUS_MIE 8

# void every_type(uintptr_t control)
#
# Records with this mctrctl. A software interrupt is pending, and comes when it
# is let in.
    .text
    .option push
    .option norvc
    .globl  every_type
    .type   every_type, @function
every_type:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    la      t0, exception
    csrw    mtvec, t0
    csrw    mctrctl, a0

place not_taken
    bne     zero, zero, not_taken
place taken
    beq     zero, zero, direct_call
place direct_call
    jal     ra, callee
    la      t1, callee
place indirect_call
    jalr    ra, t1
place direct_call_t0
    jal     t0, callee_t0
    la      t1, indirect_target
place indirect_jump
    jr      t1
    nop
place indirect_target
    nop
place direct_jump
    j       direct_target
    nop
place direct_target
    la      t0, partner
place swap
    jalr    ra, t0
    la      t1, other_target
place other_indirect
    jalr    t2, t1
    nop
place other_target
    nop
place other_direct
    jal     t2, compressed
    nop

    .option rvc
place compressed
    li      a5, 0
place c_not_taken
    c.bnez  a5, compressed
place c_taken
    c.beqz  a5, c_jump
place c_jump
    c.j     c_jumped
    nop
    .balign 4
place c_jumped
    la      t1, callee
place c_indirect_call
    c.jalr  t1
    la      t1, c_target
place c_indirect_jump
    c.jr    t1
    nop
    .balign 4
place c_target
    la      t0, partner
place c_swap
    c.jalr  t0

    # Aligned while it may be needed: without compressed instructions the
    # assembler thinks it is not.
    .balign 4
    .option norvc
place call_environment
    ecall
place behind_exception
    la      t0, interrupt
    csrw    mtvec, t0
    csrsi   mstatus, MSTATUS_MIE
place behind_interrupt
    csrci   mstatus, MSTATUS_MIE

    csrw    mctrctl, zero
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret

place callee
    ret
place callee_t0
    jr      t0
place partner
    jalr    t0, ra

place exception
    csrr    t0, mepc
    addi    t0, t0, 4
    csrw    mepc, t0
place exception_return
    mret

place interrupt
    li      t0, CLINT_MSIP
    sw      zero, 0(t0)
place interrupt_return
    mret
    .size   every_type, . - every_type
    .option pop
