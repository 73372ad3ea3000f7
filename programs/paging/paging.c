/* Pages on demand, under Sv39 or Sv32. A program in supervisor mode runs in an address
 * space in which hardly anything is mapped: its handler, in the same mode, maps a page
 * when it is missed, gives it the right to be written or executed when that is missed,
 * and sets the accessed and dirty bits, which the hart does not set by itself.
 */

#include "csr.h"
#include "runtime.h"

enum {
    V = 1 << 0, R = 1 << 1, W = 1 << 2, X = 1 << 3, A = 1 << 6, D = 1 << 7,
    PAGE = 4096, ENTRIES = PAGE / sizeof(uintptr_t), PAGES = 24,
};

#if __riscv_xlen == 64
enum { LEVELS = 3, BITS = 9 };
#define SATP_MODE   (8ul << 60)
#else
enum { LEVELS = 2, BITS = 10 };
#define SATP_MODE   (1ul << 31)
#endif

/* Where pages appear on demand; not where memory is. */
#define DEMAND      0x40000000ul

typedef uintptr_t table[ENTRIES];

static table root __attribute__((aligned(PAGE)));
static table tables[8] __attribute__((aligned(PAGE)));
static uint8_t frames[PAGES][PAGE] __attribute__((aligned(PAGE)));
static uint32_t used_tables, used_frames;

static uint32_t fetches, loads, stores, mapped, rights;

/* In far.S. */
uint32_t far(uint32_t n);

/* --- The handler -------------------------------------------------------------- */

static uintptr_t *entry_of(uintptr_t address)
{
    uintptr_t *level = root;
    for (int n = LEVELS - 1; n > 0; n--) {
        uintptr_t *entry = &level[address >> (12 + BITS * n) & (ENTRIES - 1)];
        if (!(*entry & V)) {
            if (used_tables == COUNT_OF(tables))
                exit(101);
            *entry = (uintptr_t)tables[used_tables++] >> 12 << 10 | V;
        }
        level = (uintptr_t *)(*entry >> 10 << 12);
    }
    return &level[address >> 12 & (ENTRIES - 1)];
}

static void flush_page(uintptr_t address)
{
    __asm__ volatile("sfence.vma %0, zero" :: "r"(address) : "memory");
}

static void handle_fault(uintptr_t address, uintptr_t right)
{
    if ((address < DEMAND || address >= DEMAND + PAGES * PAGE) && address != (uintptr_t)far)
        exit(102);
    uintptr_t *entry = entry_of(address);
    if (!(*entry & V)) {
        mapped++;
        *entry = (uintptr_t)frames[used_frames++] >> 12 << 10 | V | R;
    } else {
        rights++;
        *entry |= right | R | A | (right & W ? D : 0);
    }
    flush_page(address);
}

__attribute__((interrupt("supervisor"), aligned(4))) static void handle(void)
{
    switch (csr_read(scause)) {
    case CAUSE_FETCH_PAGE_FAULT:
        fetches++;
        handle_fault(csr_read(stval), X);
        break;
    case CAUSE_LOAD_PAGE_FAULT:
        loads++;
        handle_fault(csr_read(stval), 0);
        break;
    case CAUSE_STORE_PAGE_FAULT:
        stores++;
        handle_fault(csr_read(stval), W);
        break;
    default:
        exit(EXIT_UNEXPECTED_TRAP);
    }
}

/* --- What is run --------------------------------------------------------------- */

NOINLINE static uint32_t sum(uintptr_t from, uint32_t pages)
{
    uint32_t all = 0;
    for (uint32_t n = 0; n < pages; n++)
        all += *(volatile uint32_t *)(from + n * PAGE + 8 * n);
    return all;
}

NOINLINE static void fill(uintptr_t from, uint32_t pages)
{
    for (uint32_t n = 0; n < pages; n++)
        *(volatile uint32_t *)(from + n * PAGE + 8 * n) = n + 1;
}

static void run(void)
{
    expect(1, "sum of new pages", sum(DEMAND, 8), 0);
    expect(2, "load faults", loads, 16);
    fill(DEMAND, 8);
    expect(3, "store faults", stores, 8);
    expect(4, "sum of full pages", sum(DEMAND, 8), 36);
    fill(DEMAND + 8 * PAGE, 8);
    expect(5, "store faults", stores, 8 + 16);
    expect(6, "sum of the others", sum(DEMAND + 8 * PAGE, 8), 36);
    expect(7, "load faults", loads, 16);
    expect(8, "code in a page", far(35), 42);
    expect(9, "fetch faults", fetches, 1);
    expect(10, "pages mapped", mapped, 16);
    /* Two bytes of one page and two of the next. */
    *(volatile uint32_t *)(DEMAND + 18 * PAGE - 2) = 0x12345678;
    expect_hex(11, "across two pages", *(volatile uint32_t *)(DEMAND + 18 * PAGE - 2), 0x12345678);
    expect(12, "pages mapped", mapped, 18);
    expect(13, "rights given", rights, loads + stores + fetches - mapped);
    exit(verdict());
}

/* --- Machine mode: to supervisor mode, with paging ------------------------------ */

static void map_memory(void)
{
    /* A megabyte at 0x80000000, page by page, as it is; and the host interface in it. */
    for (uintptr_t at = 0x80000000ul; at < 0x80100000ul; at += PAGE)
        *entry_of(at) = at >> 12 << 10 | V | R | W | X | A | D;
    *entry_of((uintptr_t)far) &= ~(uintptr_t)X;
}

int main(void)
{
    map_memory();
    csr_write(pmpaddr0, ~0ul);
    csr_write(pmpcfg0, 0x1f);
    csr_write(medeleg, 1ul << CAUSE_FETCH_PAGE_FAULT | 1ul << CAUSE_LOAD_PAGE_FAULT
                       | 1ul << CAUSE_STORE_PAGE_FAULT);
    csr_write(stvec, (uintptr_t)handle);
    csr_write(satp, SATP_MODE | (uintptr_t)root >> 12);
    __asm__ volatile("sfence.vma" ::: "memory");
    csr_clear(mstatus, MSTATUS_MPP);
    csr_set(mstatus, MSTATUS_MPP_S);
    csr_write(mepc, (uintptr_t)run);
    __asm__ volatile("mret");
    __builtin_unreachable();
}
