# Saving and restoring what a call preserves. The layout is that of struct mark.

    .file   "context.S"

#include "asm.h"

#define INTEGER(i)      ((i) * WORD)
#define FLOATING(i)     (14 * WORD + (i) * 8)

    .macro save mark
    STORE   ra,  INTEGER(0)(\mark)
    STORE   sp,  INTEGER(1)(\mark)
    STORE   s0,  INTEGER(2)(\mark)
    STORE   s1,  INTEGER(3)(\mark)
    STORE   s2,  INTEGER(4)(\mark)
    STORE   s3,  INTEGER(5)(\mark)
    STORE   s4,  INTEGER(6)(\mark)
    STORE   s5,  INTEGER(7)(\mark)
    STORE   s6,  INTEGER(8)(\mark)
    STORE   s7,  INTEGER(9)(\mark)
    STORE   s8,  INTEGER(10)(\mark)
    STORE   s9,  INTEGER(11)(\mark)
    STORE   s10, INTEGER(12)(\mark)
    STORE   s11, INTEGER(13)(\mark)
    fsd     fs0,  FLOATING(0)(\mark)
    fsd     fs1,  FLOATING(1)(\mark)
    fsd     fs2,  FLOATING(2)(\mark)
    fsd     fs3,  FLOATING(3)(\mark)
    fsd     fs4,  FLOATING(4)(\mark)
    fsd     fs5,  FLOATING(5)(\mark)
    fsd     fs6,  FLOATING(6)(\mark)
    fsd     fs7,  FLOATING(7)(\mark)
    fsd     fs8,  FLOATING(8)(\mark)
    fsd     fs9,  FLOATING(9)(\mark)
    fsd     fs10, FLOATING(10)(\mark)
    fsd     fs11, FLOATING(11)(\mark)
    .endm

    .macro restore mark
    LOAD    ra,  INTEGER(0)(\mark)
    LOAD    sp,  INTEGER(1)(\mark)
    LOAD    s0,  INTEGER(2)(\mark)
    LOAD    s1,  INTEGER(3)(\mark)
    LOAD    s2,  INTEGER(4)(\mark)
    LOAD    s3,  INTEGER(5)(\mark)
    LOAD    s4,  INTEGER(6)(\mark)
    LOAD    s5,  INTEGER(7)(\mark)
    LOAD    s6,  INTEGER(8)(\mark)
    LOAD    s7,  INTEGER(9)(\mark)
    LOAD    s8,  INTEGER(10)(\mark)
    LOAD    s9,  INTEGER(11)(\mark)
    LOAD    s10, INTEGER(12)(\mark)
    LOAD    s11, INTEGER(13)(\mark)
    fld     fs0,  FLOATING(0)(\mark)
    fld     fs1,  FLOATING(1)(\mark)
    fld     fs2,  FLOATING(2)(\mark)
    fld     fs3,  FLOATING(3)(\mark)
    fld     fs4,  FLOATING(4)(\mark)
    fld     fs5,  FLOATING(5)(\mark)
    fld     fs6,  FLOATING(6)(\mark)
    fld     fs7,  FLOATING(7)(\mark)
    fld     fs8,  FLOATING(8)(\mark)
    fld     fs9,  FLOATING(9)(\mark)
    fld     fs10, FLOATING(10)(\mark)
    fld     fs11, FLOATING(11)(\mark)
    .endm

    .text

    .globl  set_mark
    .type   set_mark, @function
set_mark:
    save    a0
    li      a0, 0
    ret
    .size   set_mark, . - set_mark

    .globl  jump_back
    .type   jump_back, @function
jump_back:
    restore a0
    mv      a0, a1
    ret                         # from set_mark, once more
    .size   jump_back, . - jump_back

    .globl  switch_context
    .type   switch_context, @function
switch_context:
    save    a0
    restore a1
    ret                         # from the switch_context that left *to
    .size   switch_context, . - switch_context

    .globl  make_context
    .type   make_context, @function
make_context:
    la      t0, begin_context
    STORE   t0, INTEGER(0)(a0)
    andi    a1, a1, -16         # the calling convention's alignment
    STORE   a1, INTEGER(1)(a0)
    STORE   a2, INTEGER(2)(a0)  # s0: the function
    STORE   a3, INTEGER(3)(a0)  # s1: its argument
    ret
    .size   make_context, . - make_context

    .type   begin_context, @function
begin_context:
    mv      a0, s1
    jalr    s0
    ebreak                      # it returned after all
    .size   begin_context, . - begin_context
