/* Depths: which there are, how the array wraps in each, and what is left behind
 * the end of it.
 */

#include "ctr.h"

/* In depth.S. */
void jump_around(uintptr_t control, unsigned times);

extern const char jump_loop[], jump_end[];

const struct place places[] = { LABEL(jump_loop), LABEL(jump_end), END_OF_PLACES };

static unsigned select_depth(unsigned code)
{
    csr_write(sctrdepth, code);
    return (unsigned)csr_read(sctrdepth);
}

static size_t count_valid(size_t first)
{
    size_t count = 0;
    for (size_t i = first; i < RECORDS_MAX; i++) {
        csr_write(ctr_select, 0x200 + i);
        count += csr_read(ctr_source) & 1;
    }
    return count;
}

/* Whether entries from the depth on can be written, or read as other than 0. */
static bool is_something_behind(size_t depth)
{
    bool found = false;
    for (size_t i = depth; i < RECORDS_MAX; i++) {
        csr_write(ctr_select, 0x200 + i);
        csr_write(ctr_source, -1ul);
        csr_write(ctr_target, -1ul);
        csr_write(ctr_data, -1ul);
        found |= csr_read(ctr_source) != 0 || csr_read(ctr_target) != 0 || csr_read(ctr_data) != 0;
    }
    return found;
}

static void fill(unsigned depth, unsigned times)
{
    ctr_set_up(depth);
    jump_around(CTR_M, times);
    printf("depth %3u, %3u jumps: WRPTR %3u, valid %3u\n", depth, times,
           (unsigned)(csr_read(sctrstatus) & CTR_WRPTR), (unsigned)count_valid(0));
}

/* Bits of WRPTR, and the other bits of the status. */
static void show_status(unsigned depth)
{
    csr_write(sctrstatus, -1ul);
    csr_t ones = csr_read(sctrstatus);
    csr_write(sctrstatus, 0);
    printf("depth %3u: status %lx and %lx, something behind the end: %u\n", depth, ones,
           csr_read(sctrstatus), is_something_behind(depth));
}

/* Every entry is what it was, one place on, after a record; in physical order
 * entry X is at (WRPTR - X - 1) % depth.
 */
static void show_rotation(unsigned depth)
{
    ctr_set_up(depth);
    for (size_t i = 0; i < depth; i++) {
        csr_write(ctr_select, 0x200 + i);
        csr_write(ctr_source, 0x1000 + 2 * i);
    }
    csr_write(sctrstatus, 3);
    csr_write(ctr_select, 0x200);
    csr_t newest = csr_read(ctr_source);
    csr_write(ctr_select, 0x200 + depth - 1);
    printf("depth %3u, WRPTR 0 to 3: entry 0 was %u, the last was %u\n", depth,
           (unsigned)(newest - 0x1000) / 2, (unsigned)(csr_read(ctr_source) - 0x1000) / 2);
}

int main(void)
{
    static const unsigned depths[] = { 16, 32, 64, 128, 256 };

    for (unsigned code = 0; code < 5; code++)
        printf("DEPTH %u: reads %u\n", code, select_depth(code));
    for (size_t i = 0; i < COUNT_OF(depths); i++) {
        unsigned depth = depths[i];
        fill(depth, depth - 1);
        fill(depth, depth);
        fill(depth, depth + 5);
        show_status(depth);
        show_rotation(depth);
    }

    ctr_set_up(16);
    jump_around(CTR_M, 3);
    show_records("three jumps", 16);
    ctr_clear();
    printf("cleared: WRPTR %u, valid %u\n", (unsigned)(csr_read(sctrstatus) & CTR_WRPTR),
           (unsigned)count_valid(0));
    jump_around(CTR_M, 2);
    show_records("two more", 16);

    /* What a change of depth leaves is not specified: only that it can be
     * cleared. */
    csr_write(sctrdepth, 4);
    ctr_clear();
    printf("deeper and cleared: valid %u\n", (unsigned)count_valid(0));
    jump_around(CTR_M, 300);
    csr_write(sctrdepth, 0);
    printf("# shallower: WRPTR %u, valid %u\n", (unsigned)(csr_read(sctrstatus) & CTR_WRPTR),
           (unsigned)count_valid(0));
    csr_write(sctrdepth, 4);
    printf("# and deeper again: valid %u\n", (unsigned)count_valid(0));
    return 0;
}
