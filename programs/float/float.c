/* Floating point: kernels in single and double precision, checked to the last
 * bit, and the control register: rounding modes and exception flags.
 */

#include "csr.h"
#include "kernels.h"

enum { SIZE = 12, SIDE = 16, LIMIT = 60, STEPS = 50 };

/* Numbers from -1 up to 1, exact in either precision. */
static double next_fraction(uint32_t *random)
{
    return ((int32_t)next_random(random) >> 12) / 524288.0;
}

/* --- Kernels --------------------------------------------------------------- */

static void run_matrices(void)
{
    static float a1[SIZE * SIZE], b1[SIZE * SIZE], c1[SIZE * SIZE];
    static double a2[SIZE * SIZE], b2[SIZE * SIZE], c2[SIZE * SIZE];
    uint32_t random = 3, single = HASH_SEED, both = HASH_SEED;
    for (size_t i = 0; i < SIZE * SIZE; i++) {
        a1[i] = (float)(a2[i] = next_fraction(&random));
        b1[i] = (float)(b2[i] = next_fraction(&random));
    }
    matrix_multiply_single(c1, a1, b1, SIZE);
    matrix_multiply_double(c2, a2, b2, SIZE);
    for (size_t i = 0; i < SIZE * SIZE; i++) {
        single = hash_single(single, c1[i]);
        both = hash_double(both, c2[i]);
    }
    expect_hex(1, "matrices, single", single, 0xa9c04a00);
    expect_hex(2, "matrices, double", both, 0x9849fb8d);
}

static void run_bodies(void)
{
    static struct body bodies[BODIES];
    bodies_init(bodies);
    double before = bodies_energy(bodies);
    for (int i = 0; i < STEPS; i++)
        bodies_advance(bodies, 1.0 / 1024);
    double after = bodies_energy(bodies);
    double drift = __builtin_fabs((after - before) / before);

    uint32_t hash = HASH_SEED;
    for (size_t i = 0; i < BODIES; i++)
        for (int axis = 0; axis < 3; axis++)
            hash = hash_double(hash, bodies[i].position[axis]);
    expect_hex(3, "bodies, positions", hash, 0x63013d02);
    expect(4, "  energy kept to 1 in 1000", drift < 0.001, 1);
}

static void run_mandelbrot(void)
{
    uint32_t single = HASH_SEED, both = HASH_SEED;
    for (uint32_t y = 0; y < SIDE; y++) {
        for (uint32_t x = 0; x < SIDE * 2; x++) {
            float real = (float)x / SIDE * 1.5f - 2.25f;
            float imaginary = (float)y / SIDE * 2.5f - 1.25f;
            uint32_t steps = mandelbrot_double(real, imaginary, LIMIT);
            put_char(steps == LIMIT ? '#' : steps > 8 ? '+' : steps > 4 ? '-' : '.');
            both = hash_word(both, steps);
            single = hash_word(single, mandelbrot_single(real, imaginary, LIMIT));
        }
        put_char('\n');
    }
    expect_hex(5, "mandelbrot, single", single, 0xd68e63c0);
    expect_hex(6, "mandelbrot, double", both, 0xd68e63c0);
}

/* A signal of two frequencies has two pairs of lines in its spectrum, and
 * comes back from it.
 */
static void run_fourier(void)
{
    enum { N = 32 };
    static struct complex values[N];
    static const double wave[8] = { 0, 1, 2, 1, 0, -1, -2, -1 };
    for (size_t i = 0; i < N; i++)
        values[i] = (struct complex){ wave[i % 8] + (i % 4 < 2 ? 0.5 : -0.5), 0 };
    fft(values, N, false);

    uint32_t lines = 0, hash = HASH_SEED, wrong = 0;
    for (size_t i = 0; i < N; i++) {
        const struct complex *v = &values[i];
        lines += v->real * v->real + v->imaginary * v->imaginary > 1;
        hash = hash_double(hash_double(hash, v->real), v->imaginary);
    }
    expect(7, "spectrum: lines", lines, 6);
    expect_hex(8, "  bits", hash, 0x9e3d1b1e);
    fft(values, N, true);
    for (size_t i = 0; i < N; i++) {
        double original = wave[i % 8] + (i % 4 < 2 ? 0.5 : -0.5);
        wrong += __builtin_fabs(values[i].real / N - original) > 1e-12;
        wrong += __builtin_fabs(values[i].imaginary / N) > 1e-12;
    }
    expect(9, "  and back: wrong", wrong, 0);
}

/* --- The control register -------------------------------------------------- */

enum rounding { TO_NEAREST, TO_ZERO, DOWN, UP, TO_MAX_MAGNITUDE };

enum flag { INEXACT = 1, UNDERFLOW = 2, OVERFLOW = 4, DIVIDE_BY_ZERO = 8, INVALID = 16 };

/* Hides a value from the compiler, which would compute with it otherwise: it
 * knows nothing of modes and flags. The calls below also order the arithmetic
 * between the accesses to the registers.
 */
static inline double hidden(double value)
{
    __asm__ volatile("" : "+f"(value) :: "memory");
    return value;
}

static inline float hidden_single(float value)
{
    __asm__ volatile("" : "+f"(value) :: "memory");
    return value;
}

static int32_t rounded(double value)
{
    int32_t result;             /* by the mode in the register */
    __asm__ volatile("fcvt.w.d %0, %1, dyn" : "=r"(result) : "f"(value));
    return result;
}

static void run_rounding(void)
{
    static const char *const names[] = {
        "to nearest, ties to even", "towards zero", "down", "up", "to nearest, ties away",
    };
    static const double values[] = { 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.25, -2.75 };
    static const int32_t want[][COUNT_OF(values)] = {
        [TO_NEAREST]       = { 0, 2, 2,  0, -2, -2, 2, -3 },
        [TO_ZERO]          = { 0, 1, 2,  0, -1, -2, 2, -2 },
        [DOWN]             = { 0, 1, 2, -1, -2, -3, 2, -3 },
        [UP]               = { 1, 2, 3,  0, -1, -2, 3, -2 },
        [TO_MAX_MAGNITUDE] = { 1, 2, 3, -1, -2, -3, 2, -3 },
    };
    static const uint32_t thirds[] = {
        [TO_NEAREST] = 0x3eaaaaab, [TO_ZERO] = 0x3eaaaaaa, [DOWN] = 0x3eaaaaaa,
        [UP] = 0x3eaaaaab, [TO_MAX_MAGNITUDE] = 0x3eaaaaab,
    };
    for (int mode = TO_NEAREST; mode <= TO_MAX_MAGNITUDE; mode++) {
        uint32_t wrong = 0, bits;
        csr_write(frm, mode);
        for (size_t i = 0; i < COUNT_OF(values); i++)
            wrong += rounded(hidden(values[i])) != want[mode][i];
        float third = hidden_single(hidden_single(1) / hidden_single(3));
        csr_write(frm, TO_NEAREST);
        memcpy(&bits, &third, sizeof bits);
        printf("rounding %s\n", names[mode]);
        expect(20 + 2 * mode, "  integers wrong", wrong, 0);
        expect_hex(21 + 2 * mode, "  1/3", bits, thirds[mode]);
    }
}

static void run_flags(void)
{
    static const double zero = 0, one = 1, three = 3, huge = 0x1p1000, tiny = 0x1p-1000;

    csr_write(fflags, 0);
    hidden(hidden(one) + hidden(three));
    expect(40, "flags of 1 + 3", (uint32_t)csr_swap(fflags, 0), 0);
    hidden(hidden(one) / hidden(three));
    expect(41, "flags of 1 / 3", (uint32_t)csr_swap(fflags, 0), INEXACT);
    hidden(hidden(one) / hidden(zero));
    expect(42, "flags of 1 / 0", (uint32_t)csr_swap(fflags, 0), DIVIDE_BY_ZERO);
    hidden(hidden(zero) / hidden(zero));
    expect(43, "flags of 0 / 0", (uint32_t)csr_swap(fflags, 0), INVALID);
    hidden(hidden(huge) * hidden(huge));
    expect(44, "flags of an overflow", (uint32_t)csr_swap(fflags, 0), OVERFLOW | INEXACT);
    hidden(hidden(tiny) * hidden(tiny));
    expect(45, "flags of an underflow", (uint32_t)csr_swap(fflags, 0), UNDERFLOW | INEXACT);
    hidden(__builtin_sqrt(hidden(-one)));
    expect(46, "flags of a root of -1", (uint32_t)csr_swap(fflags, 0), INVALID);
    rounded(hidden(huge));
    expect(47, "flags of an integer too great", (uint32_t)csr_swap(fflags, 0), INVALID);

    /* Flags stay until they are cleared. */
    hidden(hidden(one) / hidden(zero));
    hidden(hidden(one) / hidden(three));
    expect(48, "flags gathered", (uint32_t)csr_read(fflags), DIVIDE_BY_ZERO | INEXACT);
    csr_write(frm, UP);
    expect(49, "the whole register", (uint32_t)csr_read(fcsr),
           UP << 5 | DIVIDE_BY_ZERO | INEXACT);
    csr_write(fcsr, 0);
}

static void run_special(void)
{
    double nan = hidden(hidden(0) / hidden(0)), infinity = hidden(hidden(1) / hidden(0));
    uint32_t class;
    expect(60, "NaN equals itself", hidden(nan) == hidden(nan), 0);
    expect(61, "-0 equals 0", hidden(-0.0) == hidden(0.0), 1);
    expect(62, "infinity is greatest", hidden(infinity) > hidden(0x1p1023), 1);
    __asm__("fclass.d %0, %1" : "=r"(class) : "f"(-infinity));
    expect(63, "class of -infinity", class, 1 << 0);
    __asm__("fclass.d %0, %1" : "=r"(class) : "f"(hidden(-0.0)));
    expect(64, "class of -0", class, 1 << 3);
    __asm__("fclass.d %0, %1" : "=r"(class) : "f"(hidden(0x1p-1060)));
    expect(65, "class of a subnormal", class, 1 << 5);
    __asm__("fclass.d %0, %1" : "=r"(class) : "f"(nan));
    expect(66, "class of a NaN", class, 1 << 9);
    csr_write(fcsr, 0);
}

int main(void)
{
    run_matrices();
    run_bodies();
    run_mandelbrot();
    run_fourier();
    run_rounding();
    run_flags();
    run_special();
    return verdict();
}
