/* Speed: table look-ups and bit loops, few branches taken by surprise. */

#include "crc32.h"

enum { ROUNDS = 800 };

static uint8_t data[4096];

int main(void)
{
    uint32_t random = 1, by_table = 0, by_bits = 0;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)next_random(&random);

    for (uint32_t round = 0; round < ROUNDS; round++) {
        data[round % sizeof data]++;
        by_table = crc32_table(by_table, data, sizeof data);
        by_bits = crc32_bits(by_bits, data, sizeof data);
    }
    expect_hex(1, "crc, by table", by_table, 0xcfdd590f);
    expect_hex(2, "crc, by bits", by_bits, 0xcfdd590f);
    printf("# %llu instructions\n", (unsigned long long)instructions_retired());
    return verdict();
}
