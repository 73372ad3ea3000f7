/* The runtime of the example programs: everything they may ask of the world.
 *
 * There is no C library. The names that have one in the standard library keep
 * its meaning, so that a program can also be compiled for the host and tried
 * there.
 */

#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call that shall stay a call. */
#define NOINLINE __attribute__((noinline, noclone))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Exit codes below this one are the programs' own. */
enum { EXIT_UNEXPECTED_TRAP = 120 };

/* Console. Output is gathered and handed to the host when the buffer is full,
 * on `flush`, and at the end.
 */
void put_char(char c);
void flush(void);

/* Knows %d %u %x %s %c %p %%, the lengths l, ll and z, a width, and the flags
 * `-` and `0`.
 */
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the simulation; 0 is success. */
_Noreturn void exit(int code);

/* Memory and strings, as in the standard library. */
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

/* Self checks. Each prints one line; a wrong value makes `verdict` the code of
 * the first check that failed. Codes are 1 to 119, one per check.
 */
void expect(int code, const char *what, uint32_t got, uint32_t want);
void expect_hex(int code, const char *what, uint32_t got, uint32_t want);

/* To be returned from `main`: 0, or the code of the first failed check. */
int verdict(void);

/* Instructions retired since reset. */
uint64_t instructions_retired(void);

/* Marsaglia's 32-bit xorshift generator; the state must not be 0. */
static inline uint32_t next_random(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* FNV-1a, a word at a time: folds `value` into `hash`. */
enum { HASH_SEED = 0x811c9dc5 };

static inline uint32_t hash_word(uint32_t hash, uint32_t value)
{
    return (hash ^ value) * 0x01000193u;
}

#endif
