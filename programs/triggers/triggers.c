/* Debug triggers (Sdtrig), used as a monitor does that debugs a program on its own hart:
 * breakpoints on addresses, watchpoints on data, single steps. Then, with trace actions,
 * a trace of only a part of the program.
 */

#include "csr.h"
#include "runtime.h"

/* tdata1 of mcontrol6 and icount. */
#define TYPE(number)    ((csr_t)(number) << (__riscv_xlen - 4))
#define MCONTROL6       TYPE(6)
#define ICOUNT          TYPE(3)

enum {
    LOAD      = 1 << 0,
    STORE     = 1 << 1,
    EXECUTE   = 1 << 2,
    MACHINE   = 1 << 6,
    AT_LEAST  = 2 << 7,
    BELOW     = 3 << 7,
    CHAIN     = 1 << 11,
    TRACE_ON  = 2 << 12,
    TRACE_OFF = 3 << 12,
    NOTIFY    = 4 << 12,
    DATA      = 1 << 21,
    /* Of icount. */
    ONE_STEP  = 1 << 10 | 1 << 9,
};

/* The trigger for single steps; those below it are the program's. */
enum { STEP = 3 };

/* In entry.S. */
void trap_entry(void);

static void set(csr_t number, csr_t control, uintptr_t value)
{
    csr_write(tselect, number);
    csr_write(tdata1, 0);
    csr_write(tdata2, value);
    csr_write(tdata1, control);
}

static void clear(void)
{
    for (csr_t number = 0; number <= STEP; number++)
        set(number, 0, 0);
}

/* --- The monitor ------------------------------------------------------------ */

/* What is switched off while the instruction under it is stepped over. */
static csr_t parked[STEP];
static uint32_t breaks, steps, stepping, total;
static uintptr_t last_address, last_value;

void handle_trap(csr_t cause, uintptr_t pc, uintptr_t value);

/* Called by the trap entry. A trigger that fires before an instruction would fire
 * again on the way back: it is off for one step.
 */
void handle_trap(csr_t cause, uintptr_t pc, uintptr_t value)
{
    if (cause != CAUSE_BREAKPOINT)
        exit(EXIT_UNEXPECTED_TRAP);
    if (stepping) {
        steps++;
        total++;
        stepping--;
        if (stepping == 0) {
            for (csr_t number = 0; number < STEP; number++) {
                csr_write(tselect, number);
                csr_write(tdata1, parked[number]);
            }
        }
    } else {
        breaks++;
        last_address = pc;
        last_value = value;
        for (csr_t number = 0; number < STEP; number++) {
            csr_write(tselect, number);
            parked[number] = csr_read(tdata1);
            csr_write(tdata1, 0);
        }
        stepping = 1;
    }
    csr_write(tselect, STEP);
    csr_write(tdata1, stepping ? ICOUNT | ONE_STEP : 0);
}

/* --- What it debugs --------------------------------------------------------- */

static volatile uint32_t cells[16];

NOINLINE static uint32_t visit(uint32_t n)
{
    cells[n % COUNT_OF(cells)] = n;
    return n * n;
}

NOINLINE static uint32_t visit_all(uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t n = 0; n < count; n++)
        sum += visit(n);
    return sum;
}

static void debug(void)
{
    breaks = steps = 0;
    set(0, MCONTROL6 | MACHINE | EXECUTE, (uintptr_t)visit);
    expect(1, "sum with a breakpoint", visit_all(20), 2470);
    clear();
    expect(2, "breakpoints", breaks, 20);
    expect(3, "steps over them", steps, 20);
    expect(4, "at the function", last_address == (uintptr_t)visit, 1);

    breaks = 0;
    set(0, MCONTROL6 | MACHINE | STORE, (uintptr_t)&cells[5]);
    visit_all(20);
    clear();
    expect(5, "stores to a cell", breaks, 1);
    expect(6, "its address", last_value == (uintptr_t)&cells[5], 1);

    breaks = 0;
    set(0, MCONTROL6 | MACHINE | STORE | AT_LEAST | CHAIN, (uintptr_t)&cells[4]);
    set(1, MCONTROL6 | MACHINE | STORE | BELOW, (uintptr_t)&cells[8]);
    visit_all(40);
    clear();
    expect(7, "stores to a range", breaks, 12);

    breaks = 0;
    set(0, MCONTROL6 | MACHINE | STORE | DATA | CHAIN, 19);
    set(1, MCONTROL6 | MACHINE | STORE, (uintptr_t)&cells[3]);
    visit_all(40);
    clear();
    expect(8, "stores of 19 to a cell", breaks, 1);

    breaks = 0;
    cells[9] = 77;
    set(0, MCONTROL6 | MACHINE | LOAD | DATA, 77);
    uint32_t loaded = cells[9];
    clear();
    expect(9, "loads of 77", breaks, 1);
    expect(10, "what was loaded", loaded, 77);
}

/* --- What is traced --------------------------------------------------------- */

static volatile uint32_t progress;

NOINLINE static uint32_t interesting(uint32_t n)
{
    uint32_t hash = HASH_SEED;
    for (uint32_t i = 0; i < n; i++)
        hash = hash_word(hash, i);
    progress = n;
    return hash;
}

NOINLINE static uint32_t boring(uint32_t hash)
{
    for (uint32_t i = 0; i < 100; i++)
        next_random(&hash);
    return hash;
}

static void trace(void)
{
    set(0, MCONTROL6 | MACHINE | EXECUTE | TRACE_ON, (uintptr_t)interesting);
    set(1, MCONTROL6 | MACHINE | EXECUTE | TRACE_OFF, (uintptr_t)boring);
    set(2, MCONTROL6 | MACHINE | STORE | NOTIFY, (uintptr_t)&progress);
    uint32_t all = HASH_SEED;
    for (uint32_t n = 5; n < 10; n++)
        all = hash_word(all, boring(interesting(n)));
    clear();
    expect_hex(11, "traced in part", all, 0x794f7d33);
}

int main(void)
{
    csr_write(mtvec, (uintptr_t)trap_entry);
    csr_set(mstatus, MSTATUS_MIE);
    debug();
    trace();
    return verdict();
}
