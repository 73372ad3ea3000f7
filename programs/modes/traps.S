# The ways into machine and supervisor mode, and out of them.

    .file   "traps.S"

#include "asm.h"

#define PC      (32 * WORD)
#define STATUS  (33 * WORD)
#define FRAME   (36 * WORD)         /* a multiple of 16 on either machine */

#define MSTATUS_MPP     0x1800
#define MSTATUS_MPP_S   0x0800
#define MSTATUS_MPIE    0x0080
#define SSTATUS_SPP     0x0100
#define SSTATUS_SPIE    0x0020

#define SYSCALL_RECOVER 2           /* as in modes.h */

# All registers but x0 and sp.
    .macro each operation
    \operation x1,   1 * WORD(sp)
    .irp n, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \operation x\n, \n * WORD(sp)
    .endr
    .endm

    .macro load_gp
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    .endm

    .text

# --- Machine mode ------------------------------------------------------------

# void enter_supervisor(void (*function)(void), void *stack_top)
    .globl  enter_supervisor
    .type   enter_supervisor, @function
enter_supervisor:
    csrw    mscratch, sp
    la      t0, machine_entry
    csrw    mtvec, t0
    csrw    mepc, a0
    li      t0, MSTATUS_MPP
    csrc    mstatus, t0
    li      t0, MSTATUS_MPP_S
    csrs    mstatus, t0
    mv      sp, a1
    mret
    .size   enter_supervisor, . - enter_supervisor

# mscratch: the machine's own stack. Machine mode itself does not trap.
    .balign 4
    .type   machine_entry, @function
machine_entry:
    csrrw   sp, mscratch, sp
    addi    sp, sp, -FRAME
    each    STORE
    csrr    t0, mscratch
    csrr    t1, mepc
    csrr    t2, mstatus
    STORE   t0, 2 * WORD(sp)
    STORE   t1, PC(sp)
    STORE   t2, STATUS(sp)
    load_gp
    mv      a0, sp
    call    machine_trap
    LOAD    t0, 2 * WORD(sp)
    LOAD    t1, PC(sp)
    LOAD    t2, STATUS(sp)
    csrw    mscratch, t0
    csrw    mepc, t1
    csrw    mstatus, t2
    each    LOAD
    addi    sp, sp, FRAME
    csrrw   sp, mscratch, sp
    mret
    .size   machine_entry, . - machine_entry

# --- Supervisor mode ---------------------------------------------------------

# void enter_user(void (*function)(uintptr_t), uintptr_t argument, uintptr_t stack_top)
    .globl  enter_user
    .type   enter_user, @function
enter_user:
    csrw    sscratch, sp
    csrw    sepc, a0
    li      t0, SSTATUS_SPP
    csrc    sstatus, t0
    li      t0, SSTATUS_SPIE
    csrs    sstatus, t0
    mv      a0, a1
    mv      sp, a2
    li      ra, 0
    sret
    .size   enter_user, . - enter_user

# sscratch: the kernel's stack while the user runs, 0 while the kernel does.
# So the kernel can trap as well: on a page of the user's that is not there.
    .globl  supervisor_entry
    .balign 4
    .type   supervisor_entry, @function
supervisor_entry:
    csrrw   sp, sscratch, sp
    bnez    sp, 1f
    csrr    sp, sscratch            # from the kernel: stay on its stack
1:  addi    sp, sp, -FRAME
    each    STORE
    csrrw   t0, sscratch, zero
    csrr    t1, sepc
    csrr    t2, sstatus
    STORE   t0, 2 * WORD(sp)
    STORE   t1, PC(sp)
    STORE   t2, STATUS(sp)
    load_gp
    mv      a0, sp
    call    kernel_trap
    LOAD    t1, PC(sp)
    LOAD    t2, STATUS(sp)
    csrw    sepc, t1
    csrw    sstatus, t2
    andi    t2, t2, SSTATUS_SPP
    bnez    t2, 2f
    addi    t0, sp, FRAME
    csrw    sscratch, t0
2:  each    LOAD
    LOAD    sp, 2 * WORD(sp)
    sret
    .size   supervisor_entry, . - supervisor_entry

# --- User mode ---------------------------------------------------------------

    .section .user.text, "ax", @progbits

# uintptr_t user_syscall(a0, a1, a2, a3, number)
    .globl  user_syscall
    .type   user_syscall, @function
user_syscall:
    mv      a7, a4
    ecall
    ret
    .size   user_syscall, . - user_syscall

# uintptr_t user_attempt(void (*function)(uintptr_t), uintptr_t argument)
#
# Calls the function. Returns the cause of the exception that ended it, -1 when
# there was none. The function must be a leaf that leaves the stack alone.
    .globl  user_attempt
    .type   user_attempt, @function
user_attempt:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
    mv      t0, a0
    la      a0, 1f
    li      a7, SYSCALL_RECOVER
    ecall
    mv      a0, a1
    jalr    t0
    li      a0, 0                   # no recovery from here on
    li      a7, SYSCALL_RECOVER
    ecall
    li      a0, -1
1:  LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret
    .size   user_attempt, . - user_attempt

    .macro  leaf name
    .globl  \name
    .type   \name, @function
\name:
    .endm

# Things to attempt, with an address as the argument.

leaf    attempt_load
    lw      t1, 0(a0)
    ret
    .size   attempt_load, . - attempt_load

leaf    attempt_store
    sw      zero, 0(a0)
    ret
    .size   attempt_store, . - attempt_store

leaf    attempt_jump
    jr      a0
    .size   attempt_jump, . - attempt_jump

leaf    attempt_reserve             # must be aligned, on every machine
    lr.w    t1, (a0)
    ret
    .size   attempt_reserve, . - attempt_reserve

leaf    attempt_machine_register
    csrr    t1, mscratch
    ret
    .size   attempt_machine_register, . - attempt_machine_register

leaf    attempt_return_from_trap
    sret
    ret
    .size   attempt_return_from_trap, . - attempt_return_from_trap

leaf    attempt_nothing
    ret
    .size   attempt_nothing, . - attempt_nothing

# uintptr_t user_time(void): not allowed in user mode, but emulated.
leaf    user_time
    csrr    a0, time
    ret
    .size   user_time, . - user_time

# Two breakpoints, a short one and a long one.
leaf    user_breakpoints
    ebreak
    .option push
    .option norvc
    ebreak
    .option pop
    ret
    .size   user_breakpoints, . - user_breakpoints
