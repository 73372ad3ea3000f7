#include "crc32.h"

#define POLYNOMIAL 0xedb88320u  /* 0x04c11db7 with its bits reflected */

static inline uint32_t shift_byte(uint32_t crc)
{
    for (int bit = 0; bit < 8; bit++)
        crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    return crc;
}

NOINLINE uint32_t crc32_bits(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *byte = data;
    crc = ~crc;
    while (size-- > 0)
        crc = shift_byte(crc ^ *byte++);
    return ~crc;
}

NOINLINE uint32_t crc32_table(uint32_t crc, const void *data, size_t size)
{
    static uint32_t table[256];
    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++)
            table[i] = shift_byte(i);

    const uint8_t *byte = data;
    crc = ~crc;
    while (size-- > 0)
        crc = crc >> 8 ^ table[(crc ^ *byte++) & 0xff];
    return ~crc;
}
