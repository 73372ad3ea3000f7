/* Control and status registers, by name: csr_read(mcause). */

#ifndef CSR_H
#define CSR_H

#include <stdint.h>

typedef unsigned long csr_t;

#define csr_read(name) __extension__({                                       \
    csr_t value_;                                                            \
    __asm__ volatile("csrr %0, " #name : "=r"(value_) :: "memory");          \
    value_;                                                                  \
})

#define csr_write(name, value) \
    __asm__ volatile("csrw " #name ", %0" :: "rK"((csr_t)(value)) : "memory")

#define csr_set(name, bits) \
    __asm__ volatile("csrs " #name ", %0" :: "rK"((csr_t)(bits)) : "memory")

#define csr_clear(name, bits) \
    __asm__ volatile("csrc " #name ", %0" :: "rK"((csr_t)(bits)) : "memory")

#define csr_swap(name, value) __extension__({                                \
    csr_t old_;                                                              \
    __asm__ volatile("csrrw %0, " #name ", %1"                               \
                     : "=r"(old_) : "rK"((csr_t)(value)) : "memory");        \
    old_;                                                                    \
})

/* mstatus, sstatus */
#define MSTATUS_SIE         (1ul << 1)
#define MSTATUS_MIE         (1ul << 3)
#define MSTATUS_SPIE        (1ul << 5)
#define MSTATUS_MPIE        (1ul << 7)
#define MSTATUS_SPP         (1ul << 8)
#define MSTATUS_MPP         (3ul << 11)
#define MSTATUS_MPP_S       (1ul << 11)
#define MSTATUS_SUM         (1ul << 18)

/* mie, mip */
#define INTERRUPT_SOFTWARE  (1ul << 3)
#define INTERRUPT_TIMER     (1ul << 7)

/* mcause: the top bit tells interrupts from exceptions */
#define CAUSE_INTERRUPT     (1ul << (__riscv_xlen - 1))

enum cause {
    CAUSE_FETCH_MISALIGNED   = 0,
    CAUSE_ILLEGAL            = 2,
    CAUSE_BREAKPOINT         = 3,
    CAUSE_ECALL_FROM_U       = 8,
    CAUSE_ECALL_FROM_S       = 9,
    CAUSE_ECALL_FROM_M       = 11,
    CAUSE_FETCH_PAGE_FAULT   = 12,
    CAUSE_LOAD_PAGE_FAULT    = 13,
    CAUSE_STORE_PAGE_FAULT   = 15,
};

#endif
