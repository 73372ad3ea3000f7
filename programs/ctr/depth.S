# So many jumps.

    .file   "depth.S"

#include "asm.h"
#include "ctr.h"
#include "place.h"

    .text
    .option push
    .balign 4
    .option norvc

# void jump_around(uintptr_t control, unsigned times)
    .globl  jump_around
    .type   jump_around, @function
jump_around:
    addi    a1, a1, 1           # the last time it does not jump
    csrw    mctrctl, a0
place jump_loop
    addi    a1, a1, -1
    nop
place jump_end
    bnez    a1, jump_loop
    csrw    mctrctl, zero
    ret
    .size   jump_around, . - jump_around
    .option pop
