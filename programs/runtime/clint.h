/* The core-local interruptor: the machine's clock, its timer, and software
 * interrupts, of hart 0.
 */

#ifndef CLINT_H
#define CLINT_H

#include <stdint.h>

#define CLINT_MSIP      0x02000000ul
#define CLINT_MTIMECMP  0x02004000ul
#define CLINT_MTIME     0x0200bff8ul

/* A time that never comes. */
#define NEVER           UINT64_MAX

static inline volatile uint32_t *clint_word(uintptr_t address)
{
    return (volatile uint32_t *)address;
}

static inline uint64_t clint_time(void)
{
#if __riscv_xlen == 64
    return *(volatile uint64_t *)CLINT_MTIME;
#else
    uint32_t low, high;
    do {
        high = *clint_word(CLINT_MTIME + 4);
        low = *clint_word(CLINT_MTIME);
    } while (high != *clint_word(CLINT_MTIME + 4));
    return (uint64_t)high << 32 | low;
#endif
}

/* The timer interrupt is pending from that time on, until it is set anew. */
static inline void clint_set_timer(uint64_t time)
{
#if __riscv_xlen == 64
    *(volatile uint64_t *)CLINT_MTIMECMP = time;
#else
    *clint_word(CLINT_MTIMECMP + 4) = UINT32_MAX;   /* nothing too early meanwhile */
    *clint_word(CLINT_MTIMECMP) = (uint32_t)time;
    *clint_word(CLINT_MTIMECMP + 4) = (uint32_t)(time >> 32);
#endif
}

/* Raises the software interrupt (1) or takes it back (0). */
static inline void clint_software(uint32_t raised)
{
    *clint_word(CLINT_MSIP) = raised;
}

#endif
