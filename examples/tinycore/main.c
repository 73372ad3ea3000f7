/* What tinycore executes: a sieve, sums, exceptions, and timer interrupts. */
#include <stdint.h>

#define CONSOLE (*(volatile uint32_t *)0x10000000)
#define MTIME (*(volatile uint32_t *)0x0200bff8)
#define MTIMECMP (*(volatile uint32_t *)0x02004000)
#define MTIMECMPH (*(volatile uint32_t *)0x02004004)

void windows(uint32_t rounds);
void exceptions(void);

static volatile uint32_t interrupts, traps, causes;

uint32_t trap(uint32_t cause, uint32_t epc, uint32_t tval)
{
    if (cause == 0x80000007) {
        interrupts++;
        MTIMECMP = MTIME + 97;
        return epc;
    }
    traps++;
    causes += (cause << 8) ^ tval;
    return epc + 4;
}

static void put(const char *text)
{
    while (*text)
        CONSOLE = (uint8_t)*text++;
}

static void put_number(uint32_t number)
{
    static const uint32_t powers[] = {10000, 1000, 100, 10, 1};
    int started = 0;
    for (int i = 0; i < 5; i++) {
        uint32_t digit = 0;
        while (number >= powers[i])
            number -= powers[i], digit++;
        started |= digit != 0 || i == 4;
        if (started)
            CONSOLE = '0' + digit;
    }
}

static uint8_t composite[400];

static uint32_t sieve(void)
{
    uint32_t primes = 0;
    for (uint32_t n = 2; n < sizeof composite; n++) {
        if (composite[n])
            continue;
        primes++;
        for (uint32_t multiple = n + n; multiple < sizeof composite; multiple += n)
            composite[multiple] = 1;
    }
    return primes;
}

int main(void)
{
    put("primes ");
    put_number(sieve());
    exceptions();
    put(", exceptions ");
    put_number(traps);
    MTIMECMPH = 0;
    MTIMECMP = MTIME + 50;
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7));
    while (interrupts < 20)
        windows(7);
    put(", interrupts ");
    put_number(interrupts);
    put("\n");
    return 0;
}
