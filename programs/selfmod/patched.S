# A loop with an instruction that is replaced while it runs.

    .file   "patched.S"

#include "asm.h"

# uint32_t patched_loop(uint32_t times, void (*every)(uint32_t)): adds what the patched
# instruction adds; `every` is called before each round and may replace it. In the segment
# of data, so that it may be written.
    .data
    .balign 4
    .option norvc
    .globl  patched_loop
    .type   patched_loop, @function
patched_loop:
    addi    sp, sp, -8 * WORD
    STORE   ra, 0 * WORD(sp)
    STORE   s0, 1 * WORD(sp)
    STORE   s1, 2 * WORD(sp)
    STORE   s2, 3 * WORD(sp)
    STORE   s3, 4 * WORD(sp)
    mv      s0, a0
    mv      s2, a1
    li      s1, 0
    li      s3, 0
1:  mv      a0, s3
    jalr    s2
    .globl  patched_instruction
patched_instruction:
    addi    s1, s1, 0
    addi    s3, s3, 1
    bne     s3, s0, 1b
    mv      a0, s1
    LOAD    ra, 0 * WORD(sp)
    LOAD    s0, 1 * WORD(sp)
    LOAD    s1, 2 * WORD(sp)
    LOAD    s2, 3 * WORD(sp)
    LOAD    s3, 4 * WORD(sp)
    addi    sp, sp, 8 * WORD
    ret
    .size   patched_loop, . - patched_loop
