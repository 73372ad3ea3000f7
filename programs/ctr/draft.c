/* Control Transfer Records as the draft 0.1.4 has them: one control register
 * with the depth and CLR in it, and an upper half on RV32; WRAP; ETEN.
 */

#include "draft.h"

enum { DEPTH = 16 };

/* In draft.S. */
void go_around(uintptr_t control, uintptr_t high);
void call_and_return(uintptr_t control, unsigned calls, unsigned returns);
uintptr_t break_once(uintptr_t control);
uintptr_t try_guest(void);

extern const char call[], branch[], jump[], callee[], enter[], user[], user_call[], user_ecall[],
    user_callee[], back[], deeper[], push[], pop[], before[], breakpoint[], behind[], broken[],
    broken_return[];

const struct place places[] = {
    LABEL(call), LABEL(branch), LABEL(jump), LABEL(callee), LABEL(enter), LABEL(user),
    LABEL(user_call), LABEL(user_ecall), LABEL(user_callee), LABEL(back), LABEL(deeper),
    LABEL(push), LABEL(pop), LABEL(before), LABEL(breakpoint), LABEL(behind), LABEL(broken),
    LABEL(broken_return), END_OF_PLACES,
};

/* --- Discovery ------------------------------------------------------------- */

static void discover(void)
{
    ctr_write_control(0);
    unsigned least = ctr_read_control() >> 16 & 15;
    ctr_write_control(CTR_DEPTH);
    unsigned most = ctr_read_control() >> 16 & 15;
    printf("depths: %x to %x\n", least, most);
    for (unsigned code = least; code <= most; code = code << 1 | 1) {
        ctr_write_control((uint64_t)code << 16);
        printf("  %x: %u entries\n", (unsigned)(ctr_read_control() >> 16 & 15), (code + 1) * 16);
    }

    ctr_write_control(-1ull);
    printf("mctrcontrol: %llx of all ones\n", (unsigned long long)ctr_read_control());
    printf("sctrcontrol: %x in its lower half\n", (unsigned)(uint32_t)csr_read(sctrcontrol));
    csr_write(mctrstatus, -1ul);
    printf("mctrstatus: %x of all ones, sctrstatus %x\n", (unsigned)csr_read(mctrstatus),
           (unsigned)csr_read(sctrstatus));
    ctr_write_control(CTR_CLR);
    printf("cleared: %llx, status %x\n", (unsigned long long)ctr_read_control(),
           (unsigned)csr_read(mctrstatus));
    printf("vsctrcontrol: exception %u\n", (unsigned)try_guest());
}

/* --- Recording ------------------------------------------------------------- */

static void record(const char *title, uint64_t control)
{
    ctr_write_control(CTR_CLR);
    go_around((uintptr_t)control, (uintptr_t)(control >> 32));
    show_records(title, DEPTH);
}

static void show_status(const char *title)
{
    csr_t status = csr_read(mctrstatus);
    printf("%s: WRPTR %u%s%s\n", title, (unsigned)(status & CTR_WRPTR),
           status & CTR_WRAP ? ", WRAP" : "", status & CTR_FROZEN ? ", FROZEN" : "");
}

/* --- The stack ------------------------------------------------------------- */

static void emulate(unsigned calls, unsigned returns)
{
    ctr_write_control(CTR_CLR);
    call_and_return((uintptr_t)(CTR_M | CTR_RASEMU), calls, returns);
    printf("%u calls, %u returns\n", calls, returns);
    show_status("  status");
    show_records("  stack", DEPTH);
}

/* Entries through both windows. */
static void show_windows(void)
{
    ctr_write_control(CTR_CLR);
    csr_write(machine_select, 0x205);
    csr_write(machine_source, 0x12345678);
    csr_write(0x150, 0x205);
    printf("mireg %lx, sireg %lx\n", csr_read(machine_source), csr_read(0x151));
}

int main(void)
{
    csr_t entry = csr_read(mtvec);
    csr_write(pmpaddr0, -1ul);
    csr_write(pmpcfg0, 0x1f);

    discover();
    show_windows();
    record("M and U", CTR_M | CTR_U);
    record("U", CTR_U);
    record("U, MTE", CTR_U | CTR_MTE);
    record("U, ETEN", CTR_U | CTR_ETEN);
    record("U, ETEN and STE", CTR_U | CTR_ETEN | CTR_STE);
    record("U, ETEN and MTE", CTR_U | CTR_ETEN | CTR_MTE);
    record("the same with EXCINH", CTR_U | CTR_ETEN | CTR_MTE | CTR_EXCINH);
    record("M", CTR_M);
    record("M and U, no calls and returns", CTR_M | CTR_U | CTR_DIRCALLINH | CTR_RETINH);
    record("M and U, no branches, no traps", CTR_M | CTR_U | CTR_TKBRINH | CTR_EXCINH | CTR_TRETINH);

    emulate(3, 1);
    emulate(20, 2);
    emulate(20, 6);
    emulate(1, 3);

    uintptr_t status = break_once((uintptr_t)(CTR_M | CTR_CLR | CTR_BPFRZ));
    printf("breakpoint: %s in the handler\n", status & CTR_FROZEN ? "frozen" : "not frozen");
    show_status("  status");
    show_records("  records", DEPTH);
    csr_write(mtvec, entry);
    return 0;
}
