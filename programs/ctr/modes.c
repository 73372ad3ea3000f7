/* Control Transfer Records of an operating system: which state enables it needs,
 * and what it sees of itself and of user mode.
 */

#include "ctr.h"

enum { DEPTH = 16 };

enum mode { MODE_U = 0, MODE_S = 1 << 11 };

/* In modes.S. */
uintptr_t run_in(uintptr_t mode, uintptr_t (*function)(uintptr_t), uintptr_t argument);
uintptr_t visit_user(uintptr_t control);
uintptr_t try_control(uintptr_t), try_status(uintptr_t), try_depth(uintptr_t),
    try_select(uintptr_t), try_entry(uintptr_t), try_entry_4(uintptr_t), try_clear(uintptr_t),
    try_machine(uintptr_t);

extern const char enter_user[], user[], user_call[], user_ecall[], user_callee[],
    supervisor_trap[], supervisor_call[], supervisor_callee[];

const struct place places[] = {
    LABEL(enter_user), LABEL(user), LABEL(user_call), LABEL(user_ecall), LABEL(user_callee),
    LABEL(supervisor_trap), LABEL(supervisor_call), LABEL(supervisor_callee), END_OF_PLACES,
};

/* --- Access ---------------------------------------------------------------- */

static const struct {
    const char *name;
    uintptr_t (*attempt)(uintptr_t);
    bool entry;
} attempts[] = {
    { "sctrctl", try_control, false }, { "sctrstatus", try_status, false },
    { "sctrdepth", try_depth, false }, { "siselect", try_select, false },
    { "sireg", try_entry, true },      { "sireg4", try_entry_4, true },
    { "SCTRCLR", try_clear, false },   { "mctrctl", try_machine, false },
};

static void try_all(const char *mode_name, enum mode mode, csr_t enables)
{
    csr_write(state_enable, enables);
    for (size_t i = 0; i < COUNT_OF(attempts); i++) {
        uintptr_t cause = run_in(mode, attempts[i].attempt, 0);
        /* QEMU 10.0 does not look at CTR when an entry is read, but at bit 60
         * alone; so this is told apart. */
        bool doubtful = attempts[i].entry && mode == MODE_S && enables == STATE_CSRIND;
        printf("%s%s, CTR %u, CSRIND %u: %-10s %s\n", doubtful ? "# " : "", mode_name,
               (unsigned)(enables / STATE_CTR & 1), (unsigned)(enables / STATE_CSRIND & 1),
               attempts[i].name, cause == 0 ? "good" : "illegal");
    }
}

static void show_access(void)
{
    static const csr_t enables[] = { STATE_CTR | STATE_CSRIND, STATE_CTR, STATE_CSRIND, 0 };

    csr_write(ctr_select, 0x200);
    for (size_t i = 0; i < COUNT_OF(enables); i++)
        try_all("S", MODE_S, enables[i]);
    try_all("U", MODE_U, enables[0]);
    csr_write(state_enable, STATE_CTR | STATE_CSRIND);
}

/* --- Records --------------------------------------------------------------- */

/* Bits of sctrctl that can be set. LCOFIFRZ is only there with Sscofpmf. */
static uintptr_t write_ones(uintptr_t ones)
{
    csr_write(sctrctl, ones);
    return csr_read(sctrctl) & ~(uintptr_t)CTR_LCOFIFRZ;
}

static void show_control(void)
{
    csr_write(mctrctl, CTR_M | CTR_MTE);
    printf("sctrctl: %lx of all ones\n", (unsigned long)run_in(MODE_S, write_ones, -1ul));
}

static void show_visit(const char *title, uint64_t control)
{
    ctr_set_up(DEPTH);
    run_in(MODE_S, visit_user, control);
    show_records(title, DEPTH);
}

/* Recording goes on while access is closed. */
static void show_closed(void)
{
    ctr_set_up(DEPTH);
    csr_write(state_enable, 0);
    csr_write(mctrctl, CTR_S);
    run_in(MODE_S, try_control, 0);
    csr_write(state_enable, STATE_CTR | STATE_CSRIND);
    static struct record records[DEPTH];
    size_t found = read_records(records, DEPTH);
    printf("closed, and recorded: %u\n", (unsigned)found);
    for (size_t i = 0; i < found; i++)
        printf("%4u %s\n", (unsigned)i, type_name(type_of(&records[i])));
}

int main(void)
{
    csr_t before = csr_read(mtvec);
    csr_write(pmpaddr0, -1ul);
    csr_write(pmpcfg0, 0x1f);

    /* An ecall from U-mode ends an attempt there, so it is not delegated yet. */
    csr_write(medeleg, 0);
    show_access();
    csr_write(medeleg, 1 << CAUSE_ECALL_FROM_U);

    show_control();
    show_visit("S and U", CTR_S | CTR_U);
    show_visit("U", CTR_U);
    show_visit("U, STE", CTR_U | CTR_STE);
    show_visit("U, STE, EXCINH", CTR_U | CTR_STE | CTR_EXCINH);
    show_visit("S", CTR_S);
    show_visit("S, EXCINH", CTR_S | CTR_EXCINH);
    show_visit("S and U, calls as a stack", CTR_S | CTR_U | CTR_RASEMU);
    show_closed();

    csr_write(mtvec, before);
    return 0;
}
