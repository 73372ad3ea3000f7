/* A preemptive scheduler: a timer interrupt stops a task wherever it is and
 * continues another on its own stack. The tasks call, recurse and sort; what they
 * come to does not depend on where they are interrupted.
 *
 * How fast time runs does not matter for what is printed.
 */

#include "clint.h"
#include "csr.h"
#include "runtime.h"

enum { TASKS = 3, STACK = 2048, INTERVAL = 12 };

/* In switch.S. */
void switch_entry(void);
void start_task(void *stack);

/* The stack pointer of each task that does not run: below it are its registers. */
static void *waiting[TASKS];
static uint64_t stacks[TASKS][STACK / sizeof(uint64_t)] __attribute__((aligned(16)));

static volatile uint32_t current, switches, finished;
static volatile uint32_t results[TASKS];

void *next_task(void *stack);

/* Called by the trap entry with the stack of what was interrupted; gives the stack
 * of the next task that has something to do. */
void *next_task(void *stack)
{
    clint_set_timer(clint_time() + INTERVAL);
    waiting[current] = stack;
    switches = switches + 1;
    do
        current = (current + 1) % TASKS;
    while (finished & 1u << current && finished != (1u << TASKS) - 1);
    return waiting[current];
}

/* --- What the tasks do ------------------------------------------------------ */

NOINLINE static uint32_t fibonacci(uint32_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

NOINLINE static void insert(uint32_t *list, uint32_t count, uint32_t value)
{
    uint32_t at = count;
    for (; at > 0 && list[at - 1] > value; at--)
        list[at] = list[at - 1];
    list[at] = value;
}

NOINLINE static uint32_t sort(uint32_t seed)
{
    uint32_t list[40], hash = HASH_SEED;
    for (uint32_t i = 0; i < COUNT_OF(list); i++)
        insert(list, i, next_random(&seed) & 0xffff);
    for (uint32_t i = 0; i < COUNT_OF(list); i++)
        hash = hash_word(hash, list[i]);
    return hash;
}

NOINLINE static uint32_t collatz(uint32_t from)
{
    uint32_t steps = 0;
    for (; from != 1; steps++)
        from = from & 1 ? 3 * from + 1 : from / 2;
    return steps;
}

NOINLINE static uint32_t longest(uint32_t below)
{
    uint32_t best = 0;
    for (uint32_t n = 1; n < below; n++) {
        uint32_t steps = collatz(n);
        if (steps > best)
            best = steps;
    }
    return best;
}

NOINLINE static uint32_t work(uint32_t task)
{
    switch (task) {
    case 0:
        return fibonacci(14);
    case 1:
        return sort(7);
    default:
        return longest(120);
    }
}

void run_task(void);

/* Every task starts here, on its own stack, with interrupts on. */
void run_task(void)
{
    uint32_t task = current;
    results[task] = work(task);
    __asm__ volatile("" ::: "memory");
    csr_clear(mstatus, MSTATUS_MIE);
    finished |= 1u << task;
    csr_set(mstatus, MSTATUS_MIE);
    for (;;) {
        if (finished == (1u << TASKS) - 1) {
            csr_clear(mstatus, MSTATUS_MIE);
            expect(1, "fibonacci(14)", results[0], 377);
            expect_hex(2, "sorted", results[1], sort(7));
            expect(3, "longest below 120", results[2], 118);
            expect(4, "switches", switches >= TASKS, 1);
            printf("# %u switches\n", (unsigned)switches);
            exit(verdict());
        }
    }
}

/* As if the task had been interrupted before its first instruction. */
static void prepare(uint32_t task)
{
    enum { REGISTERS = 32, PC = 0, STATUS = 31 };
    uintptr_t *top = (uintptr_t *)(void *)(stacks[task] + COUNT_OF(stacks[task]));
    uintptr_t *frame = top - REGISTERS;
    memset(frame, 0, REGISTERS * sizeof *frame);
    frame[PC] = (uintptr_t)run_task;
    frame[STATUS] = csr_read(mstatus) | MSTATUS_MPP | MSTATUS_MPIE;
    waiting[task] = frame;
}

int main(void)
{
    csr_write(mtvec, (uintptr_t)switch_entry);
    for (uint32_t task = 0; task < TASKS; task++)
        prepare(task);
    csr_write(mie, INTERRUPT_TIMER);
    clint_set_timer(clint_time() + INTERVAL);
    start_task(waiting[0]);
    return 1;
}
