/* Speed: floating point, single and double. */

#include "kernels.h"

enum { ROUNDS = 80, SIZE = 48, SIDE = 32, LIMIT = 100, STEPS = 1000 };

static float a1[SIZE * SIZE], b1[SIZE * SIZE], c1[SIZE * SIZE];
static double a2[SIZE * SIZE], b2[SIZE * SIZE], c2[SIZE * SIZE];
static struct complex signal[FFT_MAX];
static struct body bodies[BODIES];

/* Numbers from -1 up to 1, exact in either precision. */
static double next_fraction(uint32_t *random)
{
    return ((int32_t)next_random(random) >> 12) / 524288.0;
}

static uint32_t matrices(uint32_t hash, uint32_t *random)
{
    for (size_t i = 0; i < SIZE * SIZE; i++) {
        a1[i] = (float)(a2[i] = next_fraction(random));
        b1[i] = (float)(b2[i] = next_fraction(random));
    }
    matrix_multiply_single(c1, a1, b1, SIZE);
    matrix_multiply_double(c2, a2, b2, SIZE);
    for (size_t i = 0; i < SIZE * SIZE; i += 7)
        hash = hash_double(hash_single(hash, c1[i]), c2[i]);
    return hash;
}

static uint32_t mandelbrot(uint32_t hash, uint32_t round)
{
    for (uint32_t y = 0; y < SIDE; y++)
        for (uint32_t x = 0; x < SIDE; x++) {
            float real = (float)x / SIDE * 3 - 2.25f + (float)round / 1024;
            float imaginary = (float)y / SIDE * 3 - 1.5f;
            hash = hash_word(hash, mandelbrot_single(real, imaginary, LIMIT));
            hash = hash_word(hash, mandelbrot_double(real, imaginary, LIMIT));
        }
    return hash;
}

static uint32_t transforms(uint32_t hash, uint32_t *random)
{
    for (size_t i = 0; i < FFT_MAX; i++) {
        signal[i].real = next_fraction(random);
        signal[i].imaginary = next_fraction(random);
    }
    fft(signal, FFT_MAX, false);
    fft(signal, FFT_MAX, true);
    for (size_t i = 0; i < FFT_MAX; i++)
        hash = hash_double(hash_double(hash, signal[i].real), signal[i].imaginary);
    return hash;
}

int main(void)
{
    uint32_t random = 1, hash = HASH_SEED;
    bodies_init(bodies);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        hash = matrices(hash, &random);
        hash = mandelbrot(hash, round);
        hash = transforms(hash, &random);
        for (int i = 0; i < STEPS; i++)
            bodies_advance(bodies, 1.0 / 1024);
        hash = hash_double(hash, bodies_energy(bodies));
    }
    expect_hex(1, "float", hash, 0xddabf4d5);
    printf("# %llu instructions\n", (unsigned long long)instructions_retired());
    return verdict();
}
