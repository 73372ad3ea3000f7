/* The host-target interface: two words of memory through which a program and
 * the simulator it runs on talk to each other.
 *
 *   tohost = (code << 1) | 1   ends the simulation with that exit code;
 *   tohost = address           asks for a system call: the eight double words
 *                              at `address` are its number and arguments, and
 *                              its result comes back in the first. The host
 *                              answers by setting fromhost.
 */

#include "runtime.h"

enum { SYSCALL_WRITE = 64, STDOUT = 1 };

/* 64 bits on either machine, each on a line of its own. */
#define MAILBOX __attribute__((section(".tohost"), aligned(64), used))

volatile MAILBOX uint64_t tohost;
volatile MAILBOX uint64_t fromhost;

static void send(uintptr_t message)
{
#if __riscv_xlen == 64
    tohost = message;
#else
    /* The upper half first: the host may look between the two stores. */
    volatile uint32_t *half = (volatile uint32_t *)&tohost;
    half[1] = 0;
    half[0] = message;
#endif
}

static void write_host(const char *text, size_t length)
{
    static volatile uint64_t call[8] __attribute__((aligned(64)));

    call[0] = SYSCALL_WRITE;
    call[1] = STDOUT;
    call[2] = (uintptr_t)text;
    call[3] = length;
    __asm__ volatile("fence" ::: "memory");
    send((uintptr_t)call);
    while (fromhost == 0)
        ;
    fromhost = 0;
    __asm__ volatile("fence" ::: "memory");
}

static char buffer[1024];
static size_t buffered;

void flush(void)
{
    if (buffered > 0)
        write_host(buffer, buffered);
    buffered = 0;
}

void put_char(char c)
{
    if (buffered == sizeof buffer)
        flush();
    buffer[buffered++] = c;
}

void exit(int code)
{
    flush();
    send((uintptr_t)code << 1 | 1);
    for (;;)
        ;
}

/* Called by crt0.S on a trap in machine mode that the program has no handler
 * for.
 */
_Noreturn void report_unexpected_trap(uintptr_t cause, uintptr_t pc, uintptr_t value);

_Noreturn void report_unexpected_trap(uintptr_t cause, uintptr_t pc, uintptr_t value)
{
    printf("unexpected trap: mcause %lx mepc %lx mtval %lx\n",
           (unsigned long)cause, (unsigned long)pc, (unsigned long)value);
    exit(EXIT_UNEXPECTED_TRAP);
}

uint64_t instructions_retired(void)
{
#if __riscv_xlen == 64
    uint64_t count;
    __asm__ volatile("csrr %0, minstret" : "=r"(count));
    return count;
#else
    uint32_t low, high, again;
    do {
        __asm__ volatile("csrr %0, minstreth" : "=r"(high));
        __asm__ volatile("csrr %0, minstret" : "=r"(low));
        __asm__ volatile("csrr %0, minstreth" : "=r"(again));
    } while (high != again);
    return (uint64_t)high << 32 | low;
#endif
}
