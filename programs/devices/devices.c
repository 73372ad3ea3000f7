/* The devices of a virt machine, by interrupt: lines from the console, a disk,
 * random numbers, the clock.
 *
 * The first sector of the disk is a line of text. What is typed is printed
 * backwards, line by line, up to the line `end`.
 */

#include "devices.h"

static uint8_t sector[512], other[512];

static void use_disk(void)
{
    expect(1, "sectors", (uint32_t)block_sectors(), 8);
    expect(2, "read", block_request(READ, 0, sector, sizeof sector), 0);
    for (char *c = (char *)sector; *c != '\n' && c < (char *)sector + sizeof sector; c++)
        put_char(*c);
    put_char('\n');
    for (size_t i = 0; i < sizeof sector; i++)
        sector[i] = (uint8_t)(i * 7);
    expect(3, "write", block_request(WRITE, 7, sector, sizeof sector), 0);
    expect(4, "flush", block_request(FLUSH, 0, 0, 0), 0);
    expect(5, "read again", block_request(READ, 7, other, sizeof other), 0);
    expect(6, "the same", memcmp(sector, other, sizeof sector) == 0, 1);
    expect(7, "after the end", block_request(READ, 8, other, sizeof other), 1);
    expect(8, "no such request", block_request(99, 0, other, 0), 2);
}

static void use_entropy(void)
{
    uint32_t numbers[4] = { 0 };
    entropy_request(numbers, sizeof numbers);
    printf("# %08x %08x\n", (unsigned)numbers[0], (unsigned)numbers[1]);
    expect(9, "random", (numbers[0] | numbers[1] | numbers[2] | numbers[3]) != 0, 1);
}

static uint64_t clock_now(void)
{
    uint32_t low = *(volatile uint32_t *)RTC;
    return *(volatile uint32_t *)(RTC + 4) * 4294967296ull + low;
}

static uint32_t use_console(void)
{
    char line[80];
    for (uint32_t count = 0;; count++) {
        size_t length = 0;
        for (char c; (c = uart_read()) != '\n' && c != '\r';)
            if (length < sizeof line - 1)
                line[length++] = c;
        line[length] = '\0';
        if (strcmp(line, "end") == 0)
            return count;
        while (length > 0)
            put_char(line[--length]);
        put_char('\n');
    }
}

int main(void)
{
    uint64_t begin = clock_now();
    if (virtio_find(BLOCK))
        use_disk();
    if (virtio_find(ENTROPY))
        use_entropy();
    plic_enable(UART_SOURCE);
    uart_listen();
    uint32_t lines = use_console();
    printf("%u lines\n", (unsigned)lines);
    expect(10, "time passes", clock_now() > begin, 1);
    return verdict();
}
