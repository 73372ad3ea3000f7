/* Several harts that pass messages: a token goes round by software interrupts, a
 * lock of load-reserved and store-conditional guards a sum, atomic operations hand
 * out work, and a barrier keeps the harts together. Any number of harts up to 8 does
 * the same work; what is printed does not depend on it, or on who is faster.
 */

#include "clint.h"
#include "csr.h"
#include "runtime.h"

enum { MOST = 8, ROUNDS = 20, DEPOSITS = 200, ITEMS = 96, SETTLE = 2000 };

static volatile uint32_t present;       /* harts that have come */
static volatile uint32_t harts;         /* how many take part; 0 is not known yet */
static volatile uint32_t arrived, phase;

/* --- A barrier ---------------------------------------------------------------- */

static void barrier(void)
{
    uint32_t now = phase;
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == harts) {
        arrived = 0;
        __atomic_store_n(&phase, now + 1, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == now)
            ;
    }
}

/* --- A token that goes round by interrupts ------------------------------------ */

static volatile uint32_t token, passed[MOST];

static void interrupt(uint32_t hart, uint32_t raised)
{
    *clint_word(CLINT_MSIP + 4 * hart) = raised;
}

void receive(uint32_t hart);

/* The handler: one more, and on to the next. */
void receive(uint32_t hart)
{
    interrupt(hart, 0);
    passed[hart] = passed[hart] + 1;
    token = token + 1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (token < ROUNDS * harts)
        interrupt((hart + 1) % harts, 1);
}

NOINLINE static void go_round(uint32_t hart)
{
    csr_write(mie, INTERRUPT_SOFTWARE);
    csr_set(mstatus, MSTATUS_MIE);
    barrier();
    if (hart == 0)
        interrupt(1 % harts, 1);
    while (token < ROUNDS * harts)
        ;
    csr_clear(mstatus, MSTATUS_MIE);
    barrier();
}

/* --- A sum behind a lock ------------------------------------------------------ */

static volatile uint32_t locked, sum, other_sum;

static void lock(void)
{
    uint32_t taken;
    do
        __asm__ volatile("1: lr.w.aq %0, (%1)\n\t"
                         "bnez %0, 1b\n\t"
                         "sc.w.rl %0, %2, (%1)"
                         : "=&r"(taken) : "r"(&locked), "r"(1) : "memory");
    while (taken);
}

static void unlock(void)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

/* Both sums must change together. */
NOINLINE static uint32_t deposit(uint32_t amount)
{
    lock();
    uint32_t torn = sum != other_sum;
    sum = sum + amount;
    other_sum = other_sum + amount;
    unlock();
    return torn;
}

/* --- Work that is handed out -------------------------------------------------- */

static volatile uint32_t next_item, done[ITEMS], torn_sums;

NOINLINE static uint32_t collatz(uint32_t n)
{
    uint32_t steps = 0;
    for (; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

NOINLINE static void work(void)
{
    for (;;) {
        uint32_t item = __atomic_fetch_add(&next_item, 1, __ATOMIC_RELAXED);
        if (item >= ITEMS)
            return;
        done[item] = collatz(item + 1);
    }
}

static void take_part(uint32_t hart)
{
    barrier();
    go_round(hart);
    for (uint32_t i = 0; i < DEPOSITS; i++)
        if (i % harts == hart && deposit(i))
            __atomic_fetch_add(&torn_sums, 1, __ATOMIC_RELAXED);
    barrier();
    work();
    barrier();
}

void other(uint32_t hart);

void other(uint32_t hart)
{
    __atomic_fetch_add(&present, 1, __ATOMIC_ACQ_REL);
    while (!__atomic_load_n(&harts, __ATOMIC_ACQUIRE))
        ;
    if (hart < harts)
        take_part(hart);
}

int main(void)
{
    /* Whoever comes within this time takes part. */
    uint64_t until = clint_time() + SETTLE;
    while (clint_time() < until)
        ;
    uint32_t count = __atomic_add_fetch(&present, 1, __ATOMIC_ACQ_REL);
    __atomic_store_n(&harts, count < MOST ? count : MOST, __ATOMIC_RELEASE);
    take_part(0);

    printf("# %u harts\n", (unsigned)harts);
    uint32_t uneven = 0, hash = HASH_SEED;
    for (uint32_t i = 0; i < harts; i++)
        uneven += passed[i] != ROUNDS;
    for (uint32_t i = 0; i < ITEMS; i++)
        hash = hash_word(hash, done[i]);
    expect(1, "harts that missed the token", uneven, 0);
    expect(2, "deposited", sum, DEPOSITS * (DEPOSITS - 1) / 2);
    expect(3, "torn sums", torn_sums, 0);
    expect_hex(4, "work done", hash, 0x1e04c5be);
    return verdict();
}
