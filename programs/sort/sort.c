/* Four sorting algorithms on the same pseudo-random data: once with the
 * comparison compiled in, once with it behind a pointer.
 */

#include "runtime.h"
#include "sorts.h"

enum { SIZE = 160, SEED = 0x2545f491 };

/* --- Numbers: every algorithm must give the same ------------------------- */

static uint32_t numbers[SIZE];
static uint32_t spare_numbers[SIZE / 2];

static void merge_numbers(uint32_t *a, size_t n)
{
    numbers_merge(a, spare_numbers, n);
}

static const struct {
    const char *name;
    void (*sort)(uint32_t *, size_t);
} number_sorts[] = {
    { "numbers, insertion sort", numbers_insertion },
    { "numbers, heapsort",       numbers_heap },
    { "numbers, mergesort",      merge_numbers },
    { "numbers, quicksort",      numbers_quick },
};

static uint32_t numbers_hash(void)
{
    uint32_t hash = HASH_SEED;
    for (size_t i = 0; i < SIZE; i++)
        hash = hash_word(hash, numbers[i]);
    return hash;
}

static size_t numbers_out_of_order(void)
{
    size_t wrong = 0;
    for (size_t i = 1; i < SIZE; i++)
        wrong += numbers[i - 1] > numbers[i];
    return wrong;
}

static void sort_numbers(int code)
{
    for (size_t s = 0; s < COUNT_OF(number_sorts); s++) {
        uint32_t random = SEED;
        for (size_t i = 0; i < SIZE; i++)
            numbers[i] = next_random(&random);
        number_sorts[s].sort(numbers, SIZE);
        expect_hex(code++, number_sorts[s].name, numbers_hash(), 0x3e30fc9e);
        expect(code++, "  out of order", (uint32_t)numbers_out_of_order(), 0);
    }
}

/* --- Records: three orders, and which sort is stable --------------------- */

static struct record records[SIZE];
static struct record spare_records[SIZE / 2];
static uint32_t comparisons;

static bool rising(const struct record *a, const struct record *b)
{
    comparisons++;
    return a->key < b->key;
}

static bool falling(const struct record *a, const struct record *b)
{
    comparisons++;
    return a->key > b->key;
}

static uint32_t mirrored(uint32_t key)
{
    uint32_t mirror = 0;
    for (int bit = 0; bit < 8; bit++)
        mirror |= (key >> bit & 1) << (7 - bit);
    return mirror;
}

static bool by_mirrored_key(const struct record *a, const struct record *b)
{
    comparisons++;
    return mirrored(a->key) < mirrored(b->key);
}

static void merge_records(struct record *a, size_t n, before_fn *before)
{
    records_merge(a, spare_records, n, before);
}

static const struct {
    const char *name;
    void (*sort)(struct record *, size_t, before_fn *);
    bool stable;
} record_sorts[] = {
    { "insertion sort", records_insertion, true },
    { "heapsort",       records_heap,      false },
    { "mergesort",      merge_records,     true },
    { "quicksort",      records_quick,     false },
};

static const struct {
    const char *name;
    before_fn *before;
} orders[] = {
    { "rising",   rising },
    { "falling",  falling },
    { "mirrored", by_mirrored_key },
};

/* Neighbours in the wrong order, and equal neighbours that changed places. */
static void faults(before_fn *before, uint32_t *wrong, uint32_t *exchanged)
{
    *wrong = *exchanged = 0;
    for (size_t i = 1; i < SIZE; i++) {
        const struct record *a = &records[i - 1], *b = &records[i];
        if (before(b, a))
            ++*wrong;
        else if (!before(a, b) && a->serial > b->serial)
            ++*exchanged;
    }
}

static void sort_records(int code)
{
    for (size_t s = 0; s < COUNT_OF(record_sorts); s++) {
        uint32_t wrong_in_all = 0, exchanged_in_all = 0;
        printf("records, %s\n", record_sorts[s].name);
        for (size_t o = 0; o < COUNT_OF(orders); o++) {
            uint32_t random = SEED, wrong, exchanged;
            for (size_t i = 0; i < SIZE; i++)
                records[i] = (struct record){ next_random(&random) & 0xff, (uint32_t)i };
            comparisons = 0;
            record_sorts[s].sort(records, SIZE, orders[o].before);
            printf("  %-10s %6u comparisons\n", orders[o].name, (unsigned)comparisons);
            faults(orders[o].before, &wrong, &exchanged);
            wrong_in_all += wrong;
            exchanged_in_all += exchanged;
        }
        expect(code++, "  out of order", wrong_in_all, 0);
        expect(code++, "  stable", exchanged_in_all == 0, record_sorts[s].stable);
    }
}

int main(void)
{
    sort_numbers(1);
    sort_records(20);
    return verdict();
}
