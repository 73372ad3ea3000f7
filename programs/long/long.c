/* A long run: rounds of checksums, sorting, interpretation and arithmetic.
 * About a billion instructions with the number of rounds below.
 */

#include "crc32.h"
#include "kernels.h"
#include "machine.h"
#include "samples.h"
#include "sorts.h"

#ifndef ROUNDS
#define ROUNDS 176
#endif

enum { BYTES = 4096, NUMBERS = 1500, SIZE = 24, PRIMES = 1500 };

static uint8_t bytes[BYTES];
static uint32_t numbers[NUMBERS], spare[NUMBERS / 2];
static struct record records[NUMBERS];
static float a1[SIZE * SIZE], b1[SIZE * SIZE], c1[SIZE * SIZE];
static double a2[SIZE * SIZE], b2[SIZE * SIZE], c2[SIZE * SIZE];
static struct machine machine;
static uint8_t code[256];

static uint32_t checksums(uint32_t seed)
{
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)next_random(&seed);
    return crc32_bits(crc32_table(0, bytes, BYTES), bytes, BYTES);
}

static bool rising(const struct record *a, const struct record *b)
{
    return a->key < b->key;
}

static bool falling(const struct record *a, const struct record *b)
{
    return a->key > b->key;
}

static uint32_t sorting(uint32_t seed)
{
    uint32_t hash = HASH_SEED;
    for (size_t i = 0; i < NUMBERS; i++) {
        numbers[i] = next_random(&seed);
        records[i] = (struct record){ numbers[i] & 0xffff, (uint32_t)i };
    }
    if (seed & 1)
        numbers_merge(numbers, spare, NUMBERS);
    else
        numbers_quick(numbers, NUMBERS);
    records_heap(records, NUMBERS, seed & 2 ? rising : falling);
    for (size_t i = 0; i < NUMBERS; i++)
        hash = hash_word(hash, numbers[i] ^ records[i].key);
    return hash;
}

static uint32_t interpretation(uint32_t seed)
{
    static const char *const samples[] = { sample_primes, sample_gcd, sample_fibonacci };
    static const int32_t sizes[] = { PRIMES, 25, 15 };
    uint32_t hash = HASH_SEED;
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        size_t length = assemble(samples[i], code, sizeof code);
        machine.variables['n' - 'a'] = sizes[i] + (int32_t)(seed % 3);
        hash = hash_word(hash, machine_run(&machine, code, length));
        for (uint32_t o = 0; o < machine.outputs; o++)
            hash = hash_word(hash, (uint32_t)machine.output[o]);
    }
    return hash;
}

static uint32_t arithmetic(uint32_t seed)
{
    uint32_t hash = HASH_SEED;
    for (size_t i = 0; i < SIZE * SIZE; i++) {
        a2[i] = ((int32_t)next_random(&seed) >> 12) / 524288.0;
        b2[i] = ((int32_t)next_random(&seed) >> 12) / 524288.0;
        a1[i] = (float)a2[i];
        b1[i] = (float)b2[i];
    }
    matrix_multiply_single(c1, a1, b1, SIZE);
    matrix_multiply_double(c2, a2, b2, SIZE);
    for (size_t i = 0; i < SIZE * SIZE; i++)
        hash = hash_double(hash_single(hash, c1[i]), c2[i]);
    return hash;
}

/* The parts of a round, and what they must give for each of the seeds, which
 * take turns: so any number of rounds can be checked.
 */
enum { PARTS = 4, SEEDS = 4 };

static const struct {
    const char *name;
    uint32_t (*run)(uint32_t seed);
    uint32_t want[SEEDS];
} parts[PARTS] = {
    { "checksums", checksums,
      { 0x2324826f, 0xf3236da6, 0x08f3765d, 0xe80173bc } },
    { "sorting", sorting,
      { 0x34ce4869, 0x43422c3b, 0x6e85a3af, 0xb34e22a5 } },
    { "interpretation", interpretation,
      { 0xaf281b0f, 0xede08166, 0x75185db0, 0xaf281b0f } },
    { "arithmetic", arithmetic,
      { 0xab776a12, 0x682555b8, 0x3eb65f41, 0x8992493f } },
};

int main(void)
{
    uint32_t wrong[PARTS] = { 0 }, hash = HASH_SEED;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (size_t p = 0; p < PARTS; p++) {
            uint32_t turn = round % SEEDS;
            uint32_t got = parts[p].run(1 + turn);
            wrong[p] += got != parts[p].want[turn];
            hash = hash_word(hash, got);
        }

    printf("%u rounds, gone wrong:\n", (unsigned)ROUNDS);
    for (size_t p = 0; p < PARTS; p++)
        expect(1 + (int)p, parts[p].name, wrong[p], 0);
    printf("hash %08x\n", (unsigned)hash);
    printf("# %llu instructions\n", (unsigned long long)instructions_retired());
    return verdict();
}
