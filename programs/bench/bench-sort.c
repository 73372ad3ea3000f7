/* Speed: branches that nobody can guess, recursion, calls through pointers. */

#include "sorts.h"

enum { ROUNDS = 160, SIZE = 2000 };

static uint32_t numbers[SIZE], spare[SIZE / 2];
static struct record records[SIZE];

static bool by_key(const struct record *a, const struct record *b)
{
    return a->key < b->key;
}

static void fill(uint32_t *random)
{
    for (size_t i = 0; i < SIZE; i++)
        numbers[i] = next_random(random);
}

static uint32_t hash_of(uint32_t hash)
{
    for (size_t i = 0; i < SIZE; i += 8)
        hash = hash_word(hash, numbers[i]);
    return hash;
}

int main(void)
{
    uint32_t random = 1, hash = HASH_SEED;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        fill(&random);
        numbers_quick(numbers, SIZE);
        hash = hash_of(hash);

        fill(&random);
        numbers_heap(numbers, SIZE);
        hash = hash_of(hash);

        fill(&random);
        numbers_merge(numbers, spare, SIZE);
        hash = hash_of(hash);

        fill(&random);
        for (size_t i = 0; i < SIZE; i++)
            records[i] = (struct record){ numbers[i], (uint32_t)i };
        records_quick(records, SIZE, by_key);
        for (size_t i = 0; i < SIZE; i++)
            numbers[i] = records[i].key;
        hash = hash_of(hash);
    }
    expect_hex(1, "sort", hash, 0x90be2b12);
    printf("# %llu instructions\n", (unsigned long long)instructions_retired());
    return verdict();
}
