/* Page tables of the kernel, after Sv39: three levels of 512 entries.
 *
 *   0x40000000  the user's arena: pages that come when they are touched
 *   0x60000000  the first 2 MiB of RAM once more, for reading, as one big page
 *   0x80000000  RAM where it is, page by page: the kernel's own code and data,
 *               and in the middle the user's code
 */

#include "csr.h"
#include "modes.h"

#if PAGING

typedef uint64_t entry;

enum {
    VALID = 1, READ = 2, WRITE = 4, EXECUTE = 8, USER = 16, GLOBAL = 32, ACCESSED = 64, DIRTY = 128,

    /* For us, ignored by the hart: the page is shared, copy it on writing. */
    SHARED = 256,

    FLAGS = 1023, ENTRIES = 512, POOL = ARENA_PAGES + 8,
};

#define RAM         0x80000000ul
#define RAM_SIZE    0x00100000ul
#define MIRROR      0x60000000ul
#define SATP_SV39   (8ul << 60)

#define TABLE __attribute__((aligned(PAGE)))

static TABLE entry root[ENTRIES];
static TABLE entry middle_low[ENTRIES];         /* of 0x40000000 */
static TABLE entry middle_ram[ENTRIES];         /* of 0x80000000 */
static TABLE entry leaves_arena[ENTRIES];
static TABLE entry leaves_ram[ENTRIES];

static TABLE uint8_t pool[POOL][PAGE];
static size_t pool_used;

/* What pages of the arena begin as. Never written: it stands for them all
 * until they are.
 */
static TABLE uint8_t blank[PAGE];

static uint32_t pages_mapped, pages_copied, bits_set;

extern char _user_start[], _user_end[];

static entry to_page(const volatile void *page, entry flags)
{
    return (uintptr_t)page >> 12 << 10 | flags;
}

static size_t index_of(uintptr_t address, int level)
{
    return address >> (12 + 9 * level) & (ENTRIES - 1);
}

static void invalidate(uintptr_t address)
{
    __asm__ volatile("sfence.vma %0, zero" :: "r"(address) : "memory");
}

static entry ram_flags(uintptr_t address)
{
    if (address < (uintptr_t)_user_start)
        return VALID | READ | EXECUTE | GLOBAL | ACCESSED;
    if (address < (uintptr_t)_user_end)
        return VALID | READ | EXECUTE | USER | ACCESSED;
    return VALID | READ | WRITE | GLOBAL | ACCESSED | DIRTY;
}

void paging_start(void)
{
    root[index_of(ARENA, 2)] = to_page(middle_low, VALID);
    root[index_of(RAM, 2)] = to_page(middle_ram, VALID);
    middle_low[index_of(ARENA, 1)] = to_page(leaves_arena, VALID);
    middle_low[index_of(MIRROR, 1)] = to_page((void *)RAM, VALID | READ | ACCESSED);
    middle_ram[index_of(RAM, 1)] = to_page(leaves_ram, VALID);
    for (uintptr_t address = RAM; address < RAM + RAM_SIZE; address += PAGE)
        leaves_ram[index_of(address, 0)] = to_page((void *)address, ram_flags(address));

    csr_write(satp, SATP_SV39 | (uintptr_t)root >> 12);
    __asm__ volatile("sfence.vma" ::: "memory");

    /* The mirror shows what is in RAM. */
    static volatile uint32_t seen = 0x5eed;
    uintptr_t mirrored = (uintptr_t)&seen - RAM + MIRROR;
    seen = 0xcafe;
    expect_hex(80, "through the big page", *(volatile uint32_t *)mirrored, 0xcafe);
}

bool paging_mend(uintptr_t address, uintptr_t cause)
{
    if (address < ARENA || address >= ARENA + ARENA_PAGES * PAGE)
        return false;
    if (cause == CAUSE_FETCH_PAGE_FAULT)
        return false;           /* there is data, no code */

    entry *leaf = &leaves_arena[index_of(address, 0)];
    bool writing = cause == CAUSE_STORE_PAGE_FAULT;
    if (!(*leaf & VALID)) {
        /* Not there yet: the blank page, until it is written to. */
        *leaf = to_page(blank, VALID | READ | USER | SHARED);
        pages_mapped++;
    } else if (writing && (*leaf & SHARED)) {
        if (pool_used == POOL)
            return false;
        uint8_t *page = pool[pool_used++];
        memcpy(page, blank, PAGE);
        *leaf = to_page(page, (*leaf & FLAGS & ~(entry)SHARED) | WRITE);
        pages_copied++;
    } else if (!(*leaf & ACCESSED) || (writing && !(*leaf & DIRTY))) {
        /* On a hart that leaves these bits to us. */
        *leaf |= ACCESSED | (writing ? DIRTY : 0);
        bits_set++;
    } else {
        return false;
    }
    invalidate(address);
    return true;
}

void paging_report(void)
{
    uint32_t accessed = 0, dirty = 0;
    for (size_t i = 0; i < ARENA_PAGES; i++) {
        accessed += (leaves_arena[i] & ACCESSED) != 0;
        dirty += (leaves_arena[i] & DIRTY) != 0;
    }
    expect(81, "pages mapped", pages_mapped, 6);
    expect(82, "  of these copied", pages_copied, 4);
    expect(83, "  accessed", accessed, 6);
    expect(84, "  dirty", dirty, 4);
    printf("# accessed and dirty bits set by the kernel: %u\n", (unsigned)bits_set);
}

#else

void paging_start(void)
{
}

bool paging_mend(uintptr_t address, uintptr_t cause)
{
    (void)address;
    (void)cause;
    return false;
}

void paging_report(void)
{
}

#endif
