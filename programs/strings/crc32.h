/* The CRC-32 of Ethernet, zip and PNG: polynomial 0x04c11db7, bits reflected.
 * `crc` is 0 to begin with, or the result for what came before.
 */

#ifndef CRC32_H
#define CRC32_H

#include "runtime.h"

/* A bit at a time. */
uint32_t crc32_bits(uint32_t crc, const void *data, size_t size);

/* A byte at a time, from a table made on first use. */
uint32_t crc32_table(uint32_t crc, const void *data, size_t size);

#endif
