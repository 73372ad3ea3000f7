# Two tasks, in stretches.

    .file   "switch.S"

#include "asm.h"
#include "ctr.h"
#include "place.h"

    .text
    .option push
    .balign 4
    .option norvc

# A stretch: records with the mctrctl in a0 while it calls a1 times.
    .macro stretch name
    .globl  \name
    .type   \name, @function
\name:
    mv      t2, ra
    csrw    mctrctl, a0
place \name\()_call
    jal     ra, \name\()_work
    addi    a1, a1, -1
place \name\()_loop
    bnez    a1, \name\()_call
    csrw    mctrctl, zero
    jr      t2
place \name\()_work
    ret
    .size   \name, . - \name
    .endm

    stretch first_task
    stretch second_task
    .option pop
