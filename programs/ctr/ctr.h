/* Control Transfer Records, as the ratified 1.0 has them: registers by name,
 * for C and for the assembler.
 */

#ifndef CTR_H
#define CTR_H

/* The names are known to the assembler from here on: csr_read(sctrstatus). */
#ifdef __ASSEMBLER__
#define NAME(name, number)  .equ name, number
#else
#define NAME(name, number)  __asm__(".equ " #name ", " #number)
#endif

NAME(sctrctl, 0x14e);
NAME(sctrstatus, 0x14f);
NAME(sctrdepth, 0x15f);
NAME(mctrctl, 0x34e);
NAME(ctr_select, 0x150);        /* siselect */
NAME(ctr_source, 0x151);        /* sireg, when an entry is selected */
NAME(ctr_target, 0x152);        /* sireg2 */
NAME(ctr_data, 0x153);          /* sireg3 */
NAME(state_enable, 0x30c);      /* mstateen0 */

#ifdef __ASSEMBLER__

#define SCTRCLR     .4byte 0x10400073

#else

#include "csr.h"
#include "records.h"

/* mctrctl and sctrctl */
#define CTR_U           (1ull << 0)
#define CTR_S           (1ull << 1)
#define CTR_M           (1ull << 2)
#define CTR_RASEMU      (1ull << 7)
#define CTR_STE         (1ull << 8)
#define CTR_MTE         (1ull << 9)
#define CTR_BPFRZ       (1ull << 11)
#define CTR_LCOFIFRZ    (1ull << 12)
#define CTR_EXCINH      (1ull << 33)
#define CTR_INTRINH     (1ull << 34)
#define CTR_TRETINH     (1ull << 35)
#define CTR_NTBREN      (1ull << 36)

/* sctrstatus */
#define CTR_WRPTR       0xfful
#define CTR_FROZEN      (1ul << 31)

/* mstateen0 */
#define STATE_CTR       (1ul << 54)
#define STATE_CSRIND    (1ul << 60)

/* Zeroes all entries, and leaves the status alone. */
static inline void ctr_clear(void)
{
    __asm__ volatile(".4byte 0x10400073" ::: "memory");
}

/* DEPTH for so many entries. */
static inline unsigned ctr_depth_code(unsigned depth)
{
    unsigned code = 0;
    for (; depth > 16; depth /= 2)
        code++;
    return code;
}

/* 16, 32, 64, 128 or 256 entries; none of them holds anything, and recording
 * begins at the first.
 */
static inline void ctr_set_up(unsigned depth)
{
    csr_write(mctrctl, 0);
    csr_write(sctrdepth, ctr_depth_code(depth));
    csr_write(sctrstatus, 0);
    ctr_clear();
}

#endif
#endif
