# Two routines that swap: one keeps its place in ra, the other in t0.

    .file   "coroutine.S"

#include "asm.h"
#include "ctr.h"
#include "place.h"

    .text
    .option push
    .balign 4
    .option norvc

# void swap_routines(void)
#
# Calls the first, which starts the second; each goes to the other twice. What
# the records show before they return is frozen.
    .globl  swap_routines
    .type   swap_routines, @function
swap_routines:
    addi    sp, sp, -16
    STORE   ra, 0(sp)
place call_first
    jal     ra, first
    LOAD    ra, 0(sp)
    addi    sp, sp, 16
    ret
    .size   swap_routines, . - swap_routines

    .type   first, @function
place first
    mv      a5, ra
    la      t0, second
place first_swap
    jalr    ra, t0
place first_again
    jalr    ra, t0
    li      t1, 0x80000000      # FROZEN
    csrs    sctrstatus, t1
place first_return
    jr      a5
    .size   first, . - first

    .type   second, @function
place second
    nop
place second_swap
    jalr    t0, ra
place second_again
    jalr    t0, ra
    .size   second, . - second
    .option pop
