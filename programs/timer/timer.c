/* Interrupts and traps within traps: the timer and the software interrupt of
 * the core-local interruptor, handlers that let others in, calls to the
 * environment from inside a handler, vectored and direct mode, WFI.
 *
 * How fast time runs does not matter: nothing that is printed depends on how
 * many instructions fit between two ticks.
 */

#include "clint.h"
#include "csr.h"
#include "runtime.h"

enum { TICKS = 20, INTERVAL = 20 };

/* In vectors.S. */
void vectors(void);
void direct_entry(void);

/* What the trap entries save; the rest is preserved by the handlers. */
struct frame {
    uintptr_t ra, t0, t1, t2;
    uintptr_t a[8];
    uintptr_t t3, t4, t5, t6;
    uintptr_t pc, status;
};

void handle_exception(struct frame *frame);
void handle_software(struct frame *frame);
void handle_timer(struct frame *frame);
void handle_unknown(struct frame *frame);
void handle_any(struct frame *frame);

/* How many traps there are between here and `main`, and the most there were. */
static volatile uint32_t depth, deepest;

static volatile uint32_t calls, software, ticks;

static void enter(void)
{
    depth = depth + 1;
    if (depth > deepest)
        deepest = depth;
}

static void leave(void)
{
    depth = depth - 1;
}

/* --- Calls to the environment ---------------------------------------------- */

enum call { CALL_SQUARE, CALL_DEPTH };

/* An ecall: from machine mode into machine mode. */
NOINLINE static uintptr_t environment(enum call number, uintptr_t argument)
{
    register uintptr_t a0 __asm__("a0") = argument;
    register uintptr_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");
    return a0;
}

void handle_exception(struct frame *frame)
{
    if (csr_read(mcause) != CAUSE_ECALL_FROM_M)
        handle_unknown(frame);
    enter();
    calls = calls + 1;
    switch (frame->a[7]) {
    case CALL_SQUARE:
        frame->a[0] *= frame->a[0];
        break;
    case CALL_DEPTH:
        frame->a[0] = depth;
        break;
    }
    frame->pc += 4;             /* an ecall is never compressed */
    leave();
}

/* --- The alarm ------------------------------------------------------------- */

static volatile uint64_t alarm_time = NEVER;

static void set_alarm(uint64_t time)
{
    alarm_time = time;
    clint_set_timer(time);
}

/* --- The software interrupt ------------------------------------------------ */

/* What it is to do, besides counting. */
static volatile enum { JUST_COUNT, LET_TIMER_IN } software_task;

static volatile uintptr_t depth_seen_by_call;

void handle_software(struct frame *frame)
{
    (void)frame;
    enter();
    clint_software(0);
    while (csr_read(mip) & INTERRUPT_SOFTWARE)
        ;                       /* until the hart has seen it go */
    software = software + 1;

    if (software_task == LET_TIMER_IN) {
        uint32_t before = ticks;
        software_task = JUST_COUNT;
        set_alarm(0);           /* long past: now */
        csr_set(mstatus, MSTATUS_MIE);
        while (ticks == before)
            ;
        csr_clear(mstatus, MSTATUS_MIE);
    }
    leave();
}

/* --- The timer ------------------------------------------------------------- */

/* After how many ticks there shall be no more. */
static volatile uint32_t last_tick;

void handle_timer(struct frame *frame)
{
    (void)frame;
    if (clint_time() < alarm_time)
        return;                 /* the echo of an alarm that was put off */
    enter();
    ticks = ticks + 1;
    set_alarm(ticks < last_tick ? clint_time() + INTERVAL : NEVER);

    if (ticks % 5 == 0 || depth > 1)
        depth_seen_by_call = environment(CALL_DEPTH, 0);

    if (ticks % 4 == 0 && depth == 1) {
        /* The software interrupt may come in, the timer may not. */
        uint32_t before = software;
        csr_clear(mie, INTERRUPT_TIMER);
        clint_software(1);
        csr_set(mstatus, MSTATUS_MIE);
        while (software == before)
            ;
        csr_clear(mstatus, MSTATUS_MIE);
        csr_set(mie, INTERRUPT_TIMER);
    }
    leave();
}

/* --- Everything else ------------------------------------------------------- */

void handle_unknown(struct frame *frame)
{
    printf("unexpected trap: mcause %lx mepc %lx depth %u\n", csr_read(mcause),
           (unsigned long)frame->pc, (unsigned)depth);
    exit(EXIT_UNEXPECTED_TRAP);
}

void handle_any(struct frame *frame)
{
    switch (csr_read(mcause)) {
    case CAUSE_INTERRUPT | 3:
        handle_software(frame);
        break;
    case CAUSE_INTERRUPT | 7:
        handle_timer(frame);
        break;
    default:
        handle_exception(frame);
        break;
    }
}

/* --- The checks ------------------------------------------------------------ */

/* Sleeps until the last tick, and tells how often it woke. */
static uint32_t wait_for_ticks(uint32_t count)
{
    uint32_t woken = 0;
    last_tick = count;
    set_alarm(clint_time() + INTERVAL);
    while (ticks < count) {
        /* Closed, so that the last tick cannot come between the look and the
         * sleep: a pending interrupt ends the sleep all the same. */
        csr_clear(mstatus, MSTATUS_MIE);
        if (ticks < count)
            __asm__ volatile("wfi" ::: "memory");
        csr_set(mstatus, MSTATUS_MIE);
        woken++;
    }
    last_tick = 0;
    return woken;
}

static void run_one_by_one(void)
{
    expect(1, "square of 12 by ecall", (uint32_t)environment(CALL_SQUARE, 12), 144);
    expect(2, "depth inside an ecall", (uint32_t)environment(CALL_DEPTH, 0), 1);
    clint_software(1);
    while (software == 0)
        ;
    expect(3, "software interrupts", software, 1);
}

static void run_ticks(int code)
{
    ticks = software = calls = deepest = 0;
    uint32_t woken = wait_for_ticks(TICKS);
    expect(code, "ticks", ticks, TICKS);
    expect(code + 1, "  software interrupts", software, TICKS / 4);
    expect(code + 2, "  calls", calls, TICKS / 5);
    expect(code + 3, "  deepest", deepest, 2);
    printf("# woken %u times\n", (unsigned)woken);
}

/* An ecall in a timer interrupt in a software interrupt. */
static void run_nested(void)
{
    ticks = software = calls = deepest = 0;
    depth_seen_by_call = 0;
    software_task = LET_TIMER_IN;
    clint_software(1);
    while (software == 0 || depth != 0)
        ;
    expect(20, "nested: deepest", deepest, 3);
    expect(21, "  depth the call saw", (uint32_t)depth_seen_by_call, 3);
    expect(22, "  ticks", ticks, 1);
    expect(23, "  calls", calls, 1);
}

/* WFI goes on without a trap if interrupts are off, but one is pending. */
static void run_sleep(void)
{
    ticks = 0;
    csr_clear(mstatus, MSTATUS_MIE);
    uint64_t alarm = clint_time() + 3 * INTERVAL;
    set_alarm(alarm);
    while (!(csr_read(mip) & INTERRUPT_TIMER))
        __asm__ volatile("wfi" ::: "memory");
    expect(30, "slept until the alarm", clint_time() >= alarm, 1);
    expect(31, "  ticks meanwhile", ticks, 0);
    csr_set(mstatus, MSTATUS_MIE);
    while (ticks == 0)
        ;
    expect(32, "  and then", ticks, 1);
}

int main(void)
{
    csr_write(mtvec, (uintptr_t)vectors | 1);
    set_alarm(NEVER);
    csr_write(mie, INTERRUPT_SOFTWARE | INTERRUPT_TIMER);
    csr_set(mstatus, MSTATUS_MIE);

    printf("vectored\n");
    run_one_by_one();
    run_ticks(10);
    run_nested();
    run_sleep();

    printf("direct\n");
    csr_write(mtvec, (uintptr_t)direct_entry);
    run_ticks(40);

    csr_clear(mstatus, MSTATUS_MIE);
    csr_write(mie, 0);
    expect(50, "depth at the end", depth, 0);
    return verdict();
}
