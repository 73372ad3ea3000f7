/* Every type of transfer in machine mode, and what each filter leaves out. */

#include "clint.h"
#include "ctr.h"

enum { DEPTH = 64 };

/* In types.S. */
void every_type(uintptr_t control);

extern const char not_taken[], taken[], direct_call[], indirect_call[], direct_call_t0[],
    indirect_jump[], indirect_target[], direct_jump[], direct_target[], swap[], other_indirect[],
    other_target[], other_direct[], compressed[], c_not_taken[], c_taken[], c_jump[], c_jumped[],
    c_indirect_call[], c_indirect_jump[], c_target[], c_swap[], call_environment[],
    behind_exception[], behind_interrupt[], callee[], callee_t0[], partner[], exception[],
    exception_return[], interrupt[], interrupt_return[];

const struct place places[] = {
    LABEL(not_taken), LABEL(taken), LABEL(direct_call), LABEL(indirect_call),
    LABEL(direct_call_t0), LABEL(indirect_jump), LABEL(indirect_target), LABEL(direct_jump),
    LABEL(direct_target), LABEL(swap), LABEL(other_indirect), LABEL(other_target),
    LABEL(other_direct), LABEL(compressed), LABEL(c_not_taken), LABEL(c_taken), LABEL(c_jump),
    LABEL(c_jumped), LABEL(c_indirect_call), LABEL(c_indirect_jump), LABEL(c_target),
    LABEL(c_swap), LABEL(call_environment), LABEL(behind_exception), LABEL(behind_interrupt),
    LABEL(callee), LABEL(callee_t0), LABEL(partner), LABEL(exception), LABEL(exception_return),
    LABEL(interrupt), LABEL(interrupt_return), END_OF_PLACES,
};

static void record(uint64_t control)
{
    ctr_set_up(DEPTH);
    clint_software(1);
    while (!(csr_read(mip) & INTERRUPT_SOFTWARE))
        ;
    csr_t before = csr_read(mtvec);
    every_type(control);
    csr_write(mtvec, before);
}

/* The types in a row, the oldest first. */
static void show_types(void)
{
    static struct record records[DEPTH];
    size_t found = read_records(records, DEPTH);
    while (found-- > 0)
        printf(" %u", (unsigned)type_of(&records[found]));
    printf("\n");
}

static void show_filters(void)
{
    for (unsigned type = 1; type < 16; type++) {
        if (type == 6 || type == 7)
            continue;
        /* Set, a filter leaves its type out; that of branches that are not
         * taken lets them in. */
        uint64_t filter = 1ull << (32 + type);
        record((CTR_M | CTR_NTBREN) ^ filter);
        printf("no %s:", type_name((enum type)type));
        show_types();
    }
}

int main(void)
{
    csr_write(mie, INTERRUPT_SOFTWARE);

    record(CTR_M | CTR_NTBREN);
    show_records("every type", DEPTH);
    show_filters();
    record(CTR_M | CTR_RASEMU);
    show_records("left on the stack", DEPTH);
    record(0);
    show_records("nothing enabled", DEPTH);
    return 0;
}
