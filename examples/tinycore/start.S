# Start and trap entry of the program for tinycore.
    .file   "start.S"
    .section .text.start
    .globl _start
_start:
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    la      sp, __stack_top
    la      t0, trap_entry
    csrw    mtvec, t0
    call    main
    li      t0, 0x00100000          # ends the simulation
    sw      a0, 0(t0)
1:  j       1b

# Saves what C functions may change, and calls trap(mcause, mepc, mtval).
    .balign 4
trap_entry:
    addi    sp, sp, -64
    .irp    reg, 1,5,6,7,10,11,12,13,14,15
    sw      x\reg, 4*\reg(sp)
    .endr
    csrr    a0, mcause
    csrr    a1, mepc
    csrr    a2, mtval
    call    trap
    csrw    mepc, a0
    .irp    reg, 1,5,6,7,10,11,12,13,14,15
    lw      x\reg, 4*\reg(sp)
    .endr
    addi    sp, sp, 64
    mret

# Switches interrupts on and off again, often: an interrupt may only be taken between the
# two.
    .globl  windows
windows:
    csrsi   mstatus, 8
    csrci   mstatus, 8
    addi    a0, a0, -1
    bnez    a0, windows
    ret

# One exception of each kind that tinycore has.
    .globl  exceptions
exceptions:
    ecall
    ebreak
    .word   0xffffffff
    la      t0, exceptions
    lw      t1, 1(t0)
    sh      t1, 3(t0)
    ret
