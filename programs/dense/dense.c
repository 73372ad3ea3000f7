/* The same program with compressed instructions and without: words counted in
 * a hash table, a text packed and unpacked, and powers of a matrix.
 */

#include "dense.h"

static const char text[] =
    "this is the hart that runs the loop; this is the port that watches the hart that runs "
    "the loop; this is the packet that leaves the port that watches the hart that runs the "
    "loop; this is the sink that keeps the packet that leaves the port that watches the hart "
    "that runs the loop; this is the reader that opens the sink that keeps the packet that "
    "leaves the port that watches the hart that runs the loop; and that is how the reader "
    "knows the loop.";

/* --- Words ----------------------------------------------------------------- */

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static void run_words(void)
{
    static struct table table;
    uint32_t words = 0;
    for (const char *c = text; *c != '\0';) {
        const char *start = c;
        while (is_letter(*c))
            c++;
        if (c > start) {
            table_slot(&table, start, (size_t)(c - start))->count++;
            words++;
        } else {
            c++;
        }
    }
    expect(1, "words", words, 89);
    expect(2, "  different", table.used, 18);
    expect(3, "  probes", table.probes, 91);
    expect(4, "  \"that\"", table_slot(&table, "that", 4)->count, 16);
    expect(5, "  \"loop\"", table_slot(&table, "loop", 4)->count, 6);
}

/* --- Packing --------------------------------------------------------------- */

static uint8_t packed[600], unpacked[600];

static void run_packer(void)
{
    size_t size = sizeof text - 1;
    size_t small = pack(packed, sizeof packed, (const uint8_t *)text, size);
    expect(10, "size of the text", (uint32_t)size, 446);
    expect(11, "  packed", (uint32_t)small, 145);
    uint32_t hash = HASH_SEED;
    for (size_t i = 0; i < small; i++)
        hash = hash_word(hash, packed[i]);
    expect_hex(12, "  hash", hash, 0xaef7b8e2);
    size_t back = unpack(unpacked, sizeof unpacked, packed, small);
    expect(13, "  unpacked", (uint32_t)back, (uint32_t)size);
    expect(14, "  same as before", memcmp(unpacked, text, size) == 0, 1);

    /* Noise does not get smaller, but survives. */
    static uint8_t noise[500];
    uint32_t random = 5;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)next_random(&random);
    small = pack(packed, sizeof packed, noise, sizeof noise);
    expect(15, "noise, packed", (uint32_t)small, 504);
    back = unpack(unpacked, sizeof unpacked, packed, small);
    expect(16, "  same as before", back == sizeof noise && memcmp(unpacked, noise, back) == 0, 1);

    expect(17, "no room", (uint32_t)pack(packed, 100, noise, sizeof noise), 0);
    packed[0] = 0x80;           /* a reference to nothing */
    expect(18, "damaged", (uint32_t)unpack(unpacked, sizeof unpacked, packed, small), 0);
}

/* --- Matrices -------------------------------------------------------------- */

enum { N = 8 };

struct matrix {
    uint32_t at[N][N];
};

NOINLINE static void multiply(struct matrix *c, const struct matrix *a, const struct matrix *b)
{
    for (size_t row = 0; row < N; row++)
        for (size_t column = 0; column < N; column++) {
            uint32_t sum = 0;
            for (size_t k = 0; k < N; k++)
                sum += a->at[row][k] * b->at[k][column];
            c->at[row][column] = sum;
        }
}

/* a to the power of n, by squaring. */
static struct matrix power(struct matrix a, uint32_t n)
{
    struct matrix result = { { { 0 } } }, next;
    for (size_t i = 0; i < N; i++)
        result.at[i][i] = 1;
    for (; n > 0; n /= 2) {
        if (n % 2 == 1) {
            multiply(&next, &result, &a);
            result = next;
        }
        multiply(&next, &a, &a);
        a = next;
    }
    return result;
}

static void run_matrices(void)
{
    /* The companion matrix of a recurrence: each number is the sum of the two
     * before it. Its powers hold the Fibonacci numbers. */
    struct matrix fibonacci = { { { 0 } } };
    fibonacci.at[0][0] = fibonacci.at[0][1] = fibonacci.at[1][0] = 1;
    expect(20, "fibonacci(40)", power(fibonacci, 40).at[0][1], 102334155);

    /* Paths on a ring of eight places, one step left or right at a time. */
    struct matrix ring = { { { 0 } } };
    for (size_t i = 0; i < N; i++)
        ring.at[i][(i + 1) % N] = ring.at[i][(i + N - 1) % N] = 1;
    expect(21, "paths of 12 steps, home", power(ring, 12).at[0][0], 1056);
    expect(22, "paths of 13 steps, home", power(ring, 13).at[0][0], 0);
}

int main(void)
{
    run_words();
    run_packer();
    run_matrices();
    return verdict();
}
