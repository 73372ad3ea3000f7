/* A preemptive scheduler that tells a trace which task runs: it writes the number of
 * the task to `scontext`, in the middle of the switch. The tasks run in supervisor mode,
 * each on a stack of its own, and also yield by calls.
 *
 * How fast time runs does not matter for what is printed.
 */

#include "clint.h"
#include "csr.h"
#include "runtime.h"

enum { TASKS = 4, STACK = 2048, INTERVAL = 9 };

/* In scheduler/switch.S. */
void switch_entry(void);
void start_task(void *stack);

/* The stack pointer of each task that does not run: below it are its registers. */
static void *waiting[TASKS];
static uint64_t stacks[TASKS][STACK / sizeof(uint64_t)] __attribute__((aligned(16)));

static volatile uint32_t current, timers, yields, left = TASKS;
static volatile uint32_t results[TASKS], done[TASKS];

/* Contexts are 16 bits wide at least. */
static csr_t context_of(uint32_t task)
{
    return 0x1000 + task;
}

void *next_task(void *stack);
static void finish(void);

/* Called by the trap entry with the stack of what was interrupted, or has called; gives
 * the stack of the next task that has something to do. */
void *next_task(void *stack)
{
    enum { PC = 0 };
    csr_t cause = csr_read(mcause);
    waiting[current] = stack;
    if (cause == (CAUSE_INTERRUPT | 7)) {
        timers = timers + 1;
        clint_set_timer(clint_time() + INTERVAL);
    } else if (cause == CAUSE_ECALL_FROM_S) {
        yields = yields + 1;
        ((uintptr_t *)stack)[PC] += 4;
        if (left == 0)
            finish();
    } else {
        exit(EXIT_UNEXPECTED_TRAP);
    }
    do
        current = (current + 1) % TASKS;
    while (done[current] && left != 0);
    csr_write(scontext, context_of(current));
    return waiting[current];
}

static void yield(void)
{
    __asm__ volatile(".option push\n.option norvc\necall\n.option pop" ::: "memory");
}

/* --- What the tasks do ------------------------------------------------------ */

NOINLINE static uint32_t gcd(uint32_t a, uint32_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

NOINLINE static uint32_t coprimes(uint32_t below)
{
    uint32_t count = 0;
    for (uint32_t a = 1; a < below; a++) {
        for (uint32_t b = 1; b < a; b++)
            count += gcd(a, b) == 1;
        if (a % 8 == 0)
            yield();
    }
    return count;
}

NOINLINE static uint32_t paths(uint32_t right, uint32_t down)
{
    if (right == 0 || down == 0)
        return 1;
    return paths(right - 1, down) + paths(right, down - 1);
}

NOINLINE static uint32_t hashes(uint32_t count)
{
    uint32_t hash = HASH_SEED;
    for (uint32_t i = 0; i < count; i++)
        hash = hash_word(hash, i);
    yield();
    return hash;
}

NOINLINE static uint32_t work(uint32_t task)
{
    switch (task) {
    case 0:
        return coprimes(40);
    case 1:
        return paths(6, 6);
    case 2:
        return hashes(500);
    default:
        return coprimes(24) + paths(4, 5);
    }
}

void run_task(void);

/* Every task starts here, in supervisor mode. */
void run_task(void)
{
    uint32_t task = current;
    results[task] = work(task);
    done[task] = 1;
    __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED);
    for (;;)
        yield();
}

/* In machine mode, when all have finished. */
static void finish(void)
{
    expect(1, "coprimes below 40", results[0], 473);
    expect(2, "paths", results[1], 924);
    expect_hex(3, "hashes", results[2], 0x64f8d4e1);
    expect(4, "both", results[3], 297);
    expect(5, "preempted", timers > TASKS, 1);
    expect(6, "yielded", yields > TASKS, 1);
    printf("# %u by the timer, %u by calls\n", (unsigned)timers, (unsigned)yields);
    exit(verdict());
}

/* As if the task had been interrupted before its first instruction. */
static void prepare(uint32_t task)
{
    enum { REGISTERS = 32, PC = 0, STATUS = 31 };
    uintptr_t *top = (uintptr_t *)(void *)(stacks[task] + COUNT_OF(stacks[task]));
    uintptr_t *frame = top - REGISTERS;
    memset(frame, 0, REGISTERS * sizeof *frame);
    frame[PC] = (uintptr_t)run_task;
    csr_t status = csr_read(mstatus) & ~MSTATUS_MPP;
    frame[STATUS] = status | MSTATUS_MPP_S | MSTATUS_MPIE;
    waiting[task] = frame;
}

int main(void)
{
    csr_write(mtvec, (uintptr_t)switch_entry);
    /* All of memory, for all modes. */
    csr_write(pmpaddr0, ~0ul);
    csr_write(pmpcfg0, 0x1f);
    for (uint32_t task = 0; task < TASKS; task++)
        prepare(task);
    csr_write(mie, INTERRUPT_TIMER);
    clint_set_timer(clint_time() + INTERVAL);
    csr_write(scontext, context_of(0));
    start_task(waiting[0]);
    return 1;
}
