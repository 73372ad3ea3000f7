/* The console of a program that talks through a 16550 instead of the host
 * interface, and ends with the test finisher. Input comes by interrupt.
 */

#include "devices.h"

enum { DATA, INTERRUPTS, FIFOS, LINE = 3, MODEM, LINE_STATUS };

static volatile uint8_t *uart(int number)
{
    return (volatile uint8_t *)(UART + number);
}

void put_char(char c)
{
    while ((*uart(LINE_STATUS) & 0x20) == 0)
        ;
    *uart(DATA) = c;
}

void flush(void)
{
}

void exit(int code)
{
    *(volatile uint32_t *)FINISHER = code == 0 ? 0x5555 : (uint32_t)code << 16 | 0x3333;
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

void uart_listen(void)
{
    *uart(LINE) = 3;
    *uart(FIFOS) = 0x81;            /* on; interrupt from 8 bytes on */
    *uart(INTERRUPTS) = 1;
}

/* What was received and not yet read. */
static volatile char received[256];
static volatile uint32_t first, last;

void uart_interrupt(void)
{
    while (*uart(LINE_STATUS) & 1)
        received[last++ % sizeof received] = *uart(DATA);
}

char uart_read(void)
{
    wait_until(&last, first);
    return received[first++ % sizeof received];
}
