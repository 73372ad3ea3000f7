/* The platform-level interrupt controller, context 0: hart 0 in machine mode. */

#include "csr.h"
#include "devices.h"

#define MIE_MEIE        0x800ul

static volatile uint32_t *plic(uintptr_t offset)
{
    return (volatile uint32_t *)(PLIC + offset);
}

static volatile uint32_t *const claim = (volatile uint32_t *)(PLIC + 0x200004);

__attribute__((interrupt("machine"), aligned(4))) static void external(void)
{
    uint32_t source;
    while ((source = *claim) != 0) {
        if (source == UART_SOURCE)
            uart_interrupt();
        else
            virtio_interrupt(source);
        *claim = source;
    }
}

void plic_enable(uint32_t source)
{
    csr_write(mtvec, (uintptr_t)external);
    *plic(4 * source) = 1;
    *plic(0x2000 + source / 32 * 4) |= 1u << source % 32;
    *plic(0x200000) = 0;
    csr_set(mie, MIE_MEIE);
}

/* The interrupt may come before the wait, and wakes it although it is masked. */
void wait_until(const volatile uint32_t *number, uint32_t is_not)
{
    csr_clear(mstatus, MSTATUS_MIE);
    while (*number == is_not) {
        __asm__ volatile("wfi");
        csr_set(mstatus, MSTATUS_MIE);
        csr_clear(mstatus, MSTATUS_MIE);
    }
}
