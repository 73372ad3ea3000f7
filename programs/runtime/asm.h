/* For assembler sources: one register wide, on either machine. */

#ifndef ASM_H
#define ASM_H

#if __riscv_xlen == 64
#define STORE   sd
#define LOAD    ld
#define WORD    8
#else
#define STORE   sw
#define LOAD    lw
#define WORD    4
#endif

#endif
