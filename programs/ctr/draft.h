/* Control Transfer Records, as the draft 0.1.4 has them. */

#ifndef DRAFT_H
#define DRAFT_H

#ifdef __ASSEMBLER__
#define NAME(name, number)  .equ name, number
#else
#define NAME(name, number)  __asm__(".equ " #name ", " #number)
#endif

NAME(sctrcontrol, 0x181);
NAME(sctrcontrolh, 0x182);
NAME(sctrstatus, 0x183);
NAME(mctrcontrol, 0x381);
NAME(mctrcontrolh, 0x382);
NAME(mctrstatus, 0x383);
NAME(machine_select, 0x350);    /* miselect */
NAME(machine_source, 0x351);    /* mireg, when an entry is selected */

#ifndef __ASSEMBLER__

#include "csr.h"
#include "records.h"

/* mctrcontrol, with mctrcontrolh above it on RV32 */
#define CTR_M           (1ull << 0)
#define CTR_S           (1ull << 1)
#define CTR_U           (1ull << 2)
#define CTR_CLR         (1ull << 7)
#define CTR_MTE         (1ull << 8)
#define CTR_STE         (1ull << 9)
#define CTR_RASEMU      (1ull << 10)
#define CTR_BPFRZ       (1ull << 11)
#define CTR_DEPTH       (15ull << 16)
#define CTR_EXCINH      (1ull << 33)
#define CTR_TRETINH     (1ull << 35)
#define CTR_TKBRINH     (1ull << 37)
#define CTR_ETEN        (1ull << 38)
#define CTR_DIRCALLINH  (1ull << 41)
#define CTR_RETINH      (1ull << 45)

/* mctrstatus */
#define CTR_WRPTR       0xfful
#define CTR_WRAP        (1ul << 14)
#define CTR_FROZEN      (1ul << 15)

static inline void ctr_write_control(uint64_t control)
{
#if __riscv_xlen == 32
    csr_write(mctrcontrolh, control >> 32);
#endif
    csr_write(mctrcontrol, (csr_t)control);
}

static inline uint64_t ctr_read_control(void)
{
#if __riscv_xlen == 32
    return (uint64_t)csr_read(mctrcontrolh) << 32 | csr_read(mctrcontrol);
#else
    return csr_read(mctrcontrol);
#endif
}

#endif
#endif
