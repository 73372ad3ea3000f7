/* Every cause of a trap that a hart without a hypervisor has, one after the other, each
 * from code that is made for it, in the mode it belongs to.
 */

#include "causes.h"
#include "clint.h"
#include "runtime.h"

void trap_entry(void);

/* The interrupt controller and the UART of QEMU's `virt` machine: its transmitter is
 * always ready, and says so. */
#define PLIC_PRIORITY   0x0c000000ul
#define PLIC_ENABLE     0x0c002000ul
#define PLIC_CLAIM      0x0c200004ul
#define UART_ENABLE     0x10000001ul
enum { UART_SOURCE = 10, UART_READY = 2 };

/* --- Paging ------------------------------------------------------------------ */

enum { ENTRIES = 4096 / sizeof(uintptr_t) };

static uintptr_t root[ENTRIES] __attribute__((aligned(4096)));

/* Memory as it is, in one large page that U-mode has, or has not; the rest is in no
 * page. */
static csr_t paging(bool user)
{
    enum { LEAF = 0xcf, USER = 1 << 4 };
    uintptr_t page = 0x80000000ul;
    uintptr_t entry = page >> 12 << 10 | LEAF | (user ? USER : 0);
#if __riscv_xlen == 64
    root[page >> 30] = entry;
    return 8ul << 60 | (uintptr_t)root >> 12;
#else
    root[page >> 22] = entry;
    return 1ul << 31 | (uintptr_t)root >> 12;
#endif
}

/* --- Causes ------------------------------------------------------------------ */

enum mode { USER, SUPERVISOR, MACHINE = 3 };

struct exception {
    const char *name;
    void (*code)(void);
    enum mode mode;
    uint32_t cause;
};

static const struct exception exceptions[] = {
    {"instruction misaligned", try_fetch_misaligned, MACHINE, 0},
    {"instruction access fault", try_fetch_access, MACHINE, 1},
    {"illegal instruction", try_illegal, USER, 2},
    {"breakpoint", try_breakpoint, MACHINE, 3},
    {"load misaligned", try_load_misaligned, MACHINE, 4},
    {"load access fault", try_load_access, MACHINE, 5},
    {"store misaligned", try_store_misaligned, MACHINE, 6},
    {"store access fault", try_store_access, MACHINE, 7},
    {"call from user mode", try_call, USER, 8},
    {"call from supervisor mode", try_call, SUPERVISOR, 9},
    {"call from machine mode", try_call, MACHINE, 11},
    {"instruction page fault", try_fetch_page, SUPERVISOR, 12},
    {"load page fault", try_load_page, USER, 13},
    {"store page fault", try_store_page, SUPERVISOR, 15},
};

static void set_uart(bool asks)
{
    *clint_word(PLIC_PRIORITY + 4 * UART_SOURCE) = asks;
    *clint_word(PLIC_ENABLE) = asks ? 1u << UART_SOURCE : 0;
    *(volatile uint8_t *)UART_ENABLE = asks ? UART_READY : 0;
    if (!asks) {
        uint32_t source = *clint_word(PLIC_CLAIM);
        *clint_word(PLIC_CLAIM) = source;
    }
}

/* Makes an interrupt pending, or takes it back. */
static void set_interrupt(uint32_t code, bool pending)
{
    switch (code) {
    case 3:
        clint_software(pending);
        break;
    case 7:
        clint_set_timer(pending ? 0 : NEVER);
        break;
    case 11:
        set_uart(pending);
        break;
    default:
        if (pending)
            csr_set(mip, 1ul << code);
        else
            csr_clear(mip, 1ul << code);
    }
}

static void try_interrupt(int check, const char *name, uint32_t code)
{
    csr_write(mie, 1ul << code);
    set_interrupt(code, true);
    csr_t cause = attempt(try_waiting, MSTATUS_MPP | MSTATUS_MPIE);
    set_interrupt(code, false);
    expect(check, name, (uint32_t)(cause & ~CAUSE_INTERRUPT), code);
    expect(check, "  an interrupt", cause >> (__riscv_xlen - 1), 1);
}

int main(void)
{
    csr_write(mtvec, (uintptr_t)trap_entry);
    clint_set_timer(NEVER);
    /* All of memory, for all modes. */
    csr_write(pmpaddr0, ~0ul);
    csr_write(pmpcfg0, 0x1f);
    for (uint32_t i = 0; i < COUNT_OF(exceptions); i++) {
        const struct exception *e = &exceptions[i];
        if (e->cause >= 12) {
            csr_write(satp, paging(e->mode == USER));
            __asm__ volatile("sfence.vma" ::: "memory");
        }
        csr_t cause = attempt(e->code, (csr_t)e->mode << 11);
        csr_write(satp, 0);
        if ((e->cause == 4 || e->cause == 6) && cause == CAUSE_ECALL_FROM_M) {
            printf("# no trap: misaligned accesses work\n");
            cause = e->cause;
        }
        expect((int)i + 1, e->name, (uint32_t)cause, e->cause);
    }
    try_interrupt(21, "supervisor software", 1);
    try_interrupt(22, "machine software", 3);
    try_interrupt(23, "supervisor timer", 5);
    try_interrupt(24, "machine timer", 7);
    try_interrupt(25, "supervisor external", 9);
    try_interrupt(26, "machine external", 11);
    return verdict();
}
