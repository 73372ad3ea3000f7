# Entry, a trap handler that counts and returns, and the way out.

#if __riscv_xlen == 64
#define SAVE sd
#define LOAD ld
#define WORD 8
#else
#define SAVE sw
#define LOAD lw
#define WORD 4
#endif

    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    la      sp, _stack
    la      t0, handler
    csrw    mtvec, t0
    la      t0, _bss
    la      t1, _end
0:  bgeu    t0, t1, 1f
    SAVE    zero, 0(t0)
    addi    t0, t0, WORD
    j       0b
1:  call    main
    # The host interface that simulators share: (code << 1) | 1 to tohost.
    slli    a0, a0, 1
    ori     a0, a0, 1
    la      t0, tohost
    sw      a0, 0(t0)
    sw      zero, 4(t0)
2:  j       2b
    .size _start, . - _start

    .text
    .balign 4
    .type handler, @function
handler:
    addi    sp, sp, -2 * WORD
    SAVE    t0, 0(sp)
    SAVE    t1, WORD(sp)
    la      t0, traps
    lw      t1, 0(t0)
    addi    t1, t1, 1
    sw      t1, 0(t0)
    csrr    t0, mepc
    addi    t0, t0, 4
    csrw    mepc, t0
    LOAD    t0, 0(sp)
    LOAD    t1, WORD(sp)
    addi    sp, sp, 2 * WORD
    mret
    .size handler, . - handler

    .section .tohost, "aw", @progbits
    .balign 64
    .globl tohost
tohost:
    .dword 0
    .globl fromhost
fromhost:
    .dword 0
