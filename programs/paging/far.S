# A function in a page of its own, to be missed when it is called.

    .file   "far.S"

    .section .text.far, "ax", @progbits
    .balign 4096
    .globl  far
    .type   far, @function
far:                                # uint32_t far(uint32_t n)
    addi    a0, a0, 7
    ret
    .size   far, . - far
    .balign 4096
