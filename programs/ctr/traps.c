/* Traps and interrupts between machine and user mode: what is recorded, in part
 * or in full, for each choice of modes and of enables for external traps.
 */

#include "clint.h"
#include "ctr.h"

enum { DEPTH = 32 };

/* In traps.S. */
void visit_user(uintptr_t control);

extern const char enter_user[], user[], user_call[], user_ecall[], user_jump[], user_callee[],
    user_last[], software[], software_return[], timer[], timer_return[], environment[],
    environment_return[], last[];

const struct place places[] = {
    LABEL(enter_user), LABEL(user), LABEL(user_call), LABEL(user_ecall), LABEL(user_jump),
    LABEL(user_callee), LABEL(user_last), LABEL(software), LABEL(software_return), LABEL(timer),
    LABEL(timer_return), LABEL(environment), LABEL(environment_return), LABEL(last),
    END_OF_PLACES,
};

static const struct {
    const char *title;
    uint64_t control;
} settings[] = {
    { "both modes", CTR_M | CTR_U },
    { "user mode", CTR_U },
    { "user mode, MTE", CTR_U | CTR_MTE },
    { "user mode, STE", CTR_U | CTR_STE },
    { "user mode, MTE and STE", CTR_U | CTR_MTE | CTR_STE },
    { "the same with EXCINH and INTRINH",
      CTR_U | CTR_MTE | CTR_STE | CTR_EXCINH | CTR_INTRINH },
    { "machine mode", CTR_M },
    { "machine mode, EXCINH", CTR_M | CTR_EXCINH },
    { "machine mode, INTRINH", CTR_M | CTR_INTRINH },
    { "machine mode, TRETINH", CTR_M | CTR_TRETINH },
    { "both modes, EXCINH, INTRINH and TRETINH",
      CTR_M | CTR_U | CTR_EXCINH | CTR_INTRINH | CTR_TRETINH },
    { "neither, MTE and STE", CTR_MTE | CTR_STE },
    { "both modes, RASEMU, MTE and STE", CTR_M | CTR_U | CTR_RASEMU | CTR_MTE | CTR_STE },
};

int main(void)
{
    csr_t before = csr_read(mtvec);
    csr_write(pmpaddr0, -1ul);
    csr_write(pmpcfg0, 0x1f);
    clint_set_timer(NEVER);
    csr_write(mie, INTERRUPT_SOFTWARE | INTERRUPT_TIMER);

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        ctr_set_up(DEPTH);
        clint_software(1);
        while (!(csr_read(mip) & INTERRUPT_SOFTWARE))
            ;
        visit_user(settings[i].control);
        csr_write(mtvec, before);
        show_records(settings[i].title, DEPTH);
    }
    return 0;
}
