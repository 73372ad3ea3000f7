/* Code that changes: functions made at run time, an instruction that is patched while a
 * loop runs, and a buffer that holds one function after the other, as in a compiler that
 * translates while the program runs.
 */

#include "runtime.h"

enum { WORDS = 64 };

/* In the segment of data, so that it may be written; nothing keeps it from being
 * executed. */
static uint32_t buffer[WORDS] __attribute__((aligned(64)));

typedef uint32_t function(uint32_t);

static void synchronise(void)
{
    __asm__ volatile("fence.i" ::: "memory");
}

/* --- An assembler for what is needed -------------------------------------------- */

enum { A0 = 10, A1 = 11 };

static uint32_t addi(uint32_t rd, uint32_t rs, int32_t value)
{
    return (uint32_t)value << 20 | rs << 15 | rd << 7 | 0x13;
}

static uint32_t slli(uint32_t rd, uint32_t rs, uint32_t bits)
{
    return bits << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x13;
}

static uint32_t add(uint32_t rd, uint32_t a, uint32_t b)
{
    return b << 20 | a << 15 | rd << 7 | 0x33;
}

static uint32_t ret(void)
{
    return 0x00008067;
}

/* A function that multiplies by a constant: for each bit a shift and an addition. */
NOINLINE static function *make_product(uint32_t by)
{
    uint32_t *at = buffer;
    *at++ = addi(A1, A0, 0);
    *at++ = addi(A0, 0, 0);
    for (uint32_t bit = 0; by >> bit != 0; bit++) {
        if (by >> bit & 1)
            *at++ = add(A0, A0, A1);
        *at++ = slli(A1, A1, 1);
    }
    *at++ = ret();
    synchronise();
    return (function *)(void *)buffer;
}

/* --- A loop that is patched while it runs ----------------------------------------- */

/* In patched.S: adds a constant so many times; the constant is in an instruction. */
extern uint32_t patched_loop(uint32_t times, void (*every)(uint32_t));
extern uint32_t patched_instruction;

static uint32_t patches;

static void patch(uint32_t round)
{
    if (round % 3 == 0) {
        patches++;
        patched_instruction = addi(9, 9, (int32_t)patches);
        synchronise();
    }
}

int main(void)
{
    uint32_t hash = HASH_SEED;
    for (uint32_t by = 1; by < 40; by += 3) {
        function *product = make_product(by);
        for (uint32_t n = 0; n < 5; n++) {
            uint32_t found = product(n * 11);
            if (found != n * 11 * by)
                exit(2);
            hash = hash_word(hash, found);
        }
    }
    expect_hex(1, "products", hash, 0x15cf346f);
    expect(3, "a loop that is patched", patched_loop(10, patch), 22);
    expect(4, "patches", patches, 4);
    return verdict();
}
