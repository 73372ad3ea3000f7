/* Freezing: on a breakpoint, on the overflow of a counter, and by software. */

#include "ctr.h"

enum { DEPTH = 16, BEFORE_OVERFLOW = 1000000 };

NAME(counter, 0xb03);           /* mhpmcounter3 */
NAME(event, 0x323);             /* mhpmevent3 */
NAME(inhibit, 0x320);           /* mcountinhibit */

#define EVENT_INSTRUCTIONS      2ul
#define EVENT_OVERFLOWED        (1ul << 63)
#define INTERRUPT_OVERFLOW      (1ul << 13)

/* In freeze.S. */
void break_once(uintptr_t control);
void count_to_overflow(uintptr_t control);

extern const char call_before[], breakpoint[], call_behind[], work[], work_return[], broken[],
    handler_call[], broken_return[], loop[], loop_test[], loop_back[], loop_end[], loop_work[],
    loop_return[], loop_limit[], overflow[], overflow_call[], overflow_return[];

/* Written by the handlers. */
extern volatile uintptr_t status_in_handler, place_of_overflow, cause_of_overflow;
extern volatile uint32_t overflows;

volatile uintptr_t status_in_handler, place_of_overflow, cause_of_overflow;
volatile uint32_t overflows;

const struct place places[] = {
    LABEL(call_before), LABEL(breakpoint), LABEL(call_behind), LABEL(work), LABEL(work_return),
    LABEL(broken), LABEL(handler_call), LABEL(broken_return), LABEL(loop), LABEL(loop_test),
    LABEL(loop_back), LABEL(loop_end), LABEL(loop_work), LABEL(loop_return), LABEL(overflow),
    LABEL(overflow_call), LABEL(overflow_return), END_OF_PLACES,
};

static const char *frozen(uintptr_t status)
{
    return status & CTR_FROZEN ? "frozen" : "not frozen";
}

/* --- Breakpoints ----------------------------------------------------------- */

static void meet_breakpoint(const char *title, uint64_t control)
{
    ctr_set_up(DEPTH);
    break_once(control);
    printf("%s: %s in the handler\n", title, frozen(status_in_handler));
    show_records("  records", DEPTH);
}

/* --- Counters -------------------------------------------------------------- */

/* Whether all of it happened in the loop, one transfer after the other. The
 * last may have been the way into the loop's test, so the place counts. */
static bool is_of_loop(const struct record *records, size_t count)
{
    uintptr_t low = (uintptr_t)loop, high = (uintptr_t)loop_limit;
    for (size_t i = 0; i < count; i++) {
        uintptr_t source = records[i].source & ~1ul, target = records[i].target & ~1ul;
        if (source < low || source >= high || target < low || target >= high)
            return false;
        /* The older one leads to where this one comes from. */
        if (i + 1 < count && (records[i + 1].target & ~1ul) > source)
            return false;
    }
    return true;
}

static void overflow_counter(const char *title, uint64_t control)
{
    static struct record records[DEPTH];

    ctr_set_up(DEPTH);
    overflows = 0;
    csr_write(event, EVENT_INSTRUCTIONS);
    csr_write(inhibit, 0);
    csr_set(mie, INTERRUPT_OVERFLOW);
    csr_write(counter, -(uintptr_t)BEFORE_OVERFLOW);
    count_to_overflow(control);
    csr_clear(mie, INTERRUPT_OVERFLOW);

    size_t found = read_records(records, DEPTH);
    printf("%s: interrupt %u, %s in the handler\n", title, (unsigned)(cause_of_overflow & 63),
           frozen(status_in_handler));
    printf("  overflows %u, the event says so: %u\n", (unsigned)overflows,
           (unsigned)(csr_read(event) >> 63));
    printf("  stopped in the loop: %u\n", place_of_overflow >= (uintptr_t)loop &&
                                              place_of_overflow < (uintptr_t)loop_limit);
    printf("  %s afterwards, %u records, of the loop alone: %u\n", frozen(csr_read(sctrstatus)),
           (unsigned)found, is_of_loop(records, found));
    printf("# stopped at ");
    print_place(place_of_overflow);
    printf(", the newest record is of ");
    print_place(records[0].source & ~1ul);
    printf("\n");
    csr_write(sctrstatus, 0);
}

/* --- Software -------------------------------------------------------------- */

static void freeze_by_hand(void)
{
    ctr_set_up(DEPTH);
    csr_write(sctrstatus, CTR_FROZEN);
    break_once(CTR_M);
    printf("by software, thawed by the handler: %s in it\n", frozen(status_in_handler));
    show_records("  records", DEPTH);
}

int main(void)
{
    csr_t before = csr_read(mtvec);
    meet_breakpoint("BPFRZ", CTR_M | CTR_BPFRZ);
    meet_breakpoint("no BPFRZ", CTR_M);
    meet_breakpoint("LCOFIFRZ", CTR_M | CTR_LCOFIFRZ);
    overflow_counter("LCOFIFRZ", CTR_M | CTR_LCOFIFRZ);
    overflow_counter("BPFRZ", CTR_M | CTR_BPFRZ);
    freeze_by_hand();
    csr_write(mtvec, before);
    return 0;
}
