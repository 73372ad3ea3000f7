#include "kernels.h"

NOINLINE void matrix_multiply_single(float *c, const float *a, const float *b, size_t n)
{
    for (size_t row = 0; row < n; row++)
        for (size_t column = 0; column < n; column++) {
            float sum = 0;
            for (size_t k = 0; k < n; k++)
                sum = __builtin_fmaf(a[row * n + k], b[k * n + column], sum);
            c[row * n + column] = sum;
        }
}

NOINLINE void matrix_multiply_double(double *c, const double *a, const double *b, size_t n)
{
    for (size_t row = 0; row < n; row++)
        for (size_t column = 0; column < n; column++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a[row * n + k] * b[k * n + column];
            c[row * n + column] = sum;
        }
}

/* --- Bodies ---------------------------------------------------------------- */

/* One heavy body and four light ones around it, in units of our own. */
void bodies_init(struct body bodies[BODIES])
{
    static const struct body initial[BODIES] = {
        { {  0.0,  0.0,   0.0  }, { 0.0,    0.0,   0.0  }, 40.0   },
        { {  1.0,  0.0,   0.0  }, { 0.0,    6.25,  0.0  }, 0.0003 },
        { {  0.0, -2.25,  0.1  }, { 4.125,  0.0,   0.25 }, 0.004  },
        { { -4.5,  0.5,  -0.25 }, { -0.25, -2.875, 0.0  }, 0.03   },
        { {  3.0,  6.5,   0.5  }, { -2.125, 1.0,   0.125 }, 0.01  },
    };
    for (size_t i = 0; i < BODIES; i++)
        bodies[i] = initial[i];
}

static double distance_squared(const struct body *a, const struct body *b, double apart[3])
{
    double sum = 0;
    for (int axis = 0; axis < 3; axis++) {
        apart[axis] = a->position[axis] - b->position[axis];
        sum += apart[axis] * apart[axis];
    }
    return sum;
}

NOINLINE void bodies_advance(struct body bodies[BODIES], double step)
{
    for (size_t i = 0; i < BODIES; i++)
        for (size_t j = i + 1; j < BODIES; j++) {
            struct body *a = &bodies[i], *b = &bodies[j];
            double apart[3];
            double squared = distance_squared(a, b, apart);
            double pull = step / (squared * __builtin_sqrt(squared));
            for (int axis = 0; axis < 3; axis++) {
                a->velocity[axis] -= apart[axis] * b->mass * pull;
                b->velocity[axis] += apart[axis] * a->mass * pull;
            }
        }
    for (size_t i = 0; i < BODIES; i++)
        for (int axis = 0; axis < 3; axis++)
            bodies[i].position[axis] =
                __builtin_fma(step, bodies[i].velocity[axis], bodies[i].position[axis]);
}

double bodies_energy(const struct body bodies[BODIES])
{
    double energy = 0;
    for (size_t i = 0; i < BODIES; i++) {
        const double *v = bodies[i].velocity;
        energy += 0.5 * bodies[i].mass * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (size_t j = i + 1; j < BODIES; j++) {
            double apart[3];
            double squared = distance_squared(&bodies[i], &bodies[j], apart);
            energy -= bodies[i].mass * bodies[j].mass / __builtin_sqrt(squared);
        }
    }
    return energy;
}

/* --- Mandelbrot ------------------------------------------------------------ */

NOINLINE uint32_t mandelbrot_single(float real, float imaginary, uint32_t limit)
{
    float x = 0, y = 0;
    uint32_t steps = 0;
    while (steps < limit && x * x + y * y <= 4) {
        float next = x * x - y * y + real;
        y = 2 * x * y + imaginary;
        x = next;
        steps++;
    }
    return steps;
}

NOINLINE uint32_t mandelbrot_double(double real, double imaginary, uint32_t limit)
{
    double x = 0, y = 0;
    uint32_t steps = 0;
    while (steps < limit && x * x + y * y <= 4) {
        double next = x * x - y * y + real;
        y = 2 * x * y + imaginary;
        x = next;
        steps++;
    }
    return steps;
}

/* --- Fourier --------------------------------------------------------------- */

static struct complex times(struct complex a, struct complex b)
{
    return (struct complex){ a.real * b.real - a.imaginary * b.imaginary,
                             a.real * b.imaginary + a.imaginary * b.real };
}

/* The first of the 2^k-th roots of unity, counted clockwise: each is the root
 * of the one before, by halving the angle.
 */
static struct complex root_of_unity(size_t order)
{
    struct complex root = { -1, 0 };
    for (size_t o = 2; o < order; o *= 2) {
        double half_real = __builtin_sqrt((1 + root.real) / 2);
        double half_imaginary = __builtin_sqrt((1 - root.real) / 2);
        root = (struct complex){ half_real, -half_imaginary };
    }
    return root;
}

/* Every value to the place whose number has the same bits in reverse. */
static void reverse_bits(struct complex *values, size_t n)
{
    for (size_t i = 0, mirror = 0; i < n; i++) {
        if (i < mirror) {
            struct complex swapped = values[i];
            values[i] = values[mirror];
            values[mirror] = swapped;
        }
        size_t bit = n / 2;
        for (; bit > 0 && (mirror & bit); bit /= 2)
            mirror ^= bit;
        mirror |= bit;
    }
}

NOINLINE void fft(struct complex *values, size_t n, bool inverse)
{
    reverse_bits(values, n);
    for (size_t size = 2; size <= n; size *= 2) {
        struct complex root = root_of_unity(size), factor = { 1, 0 };
        if (inverse)
            root.imaginary = -root.imaginary;
        for (size_t k = 0; k < size / 2; k++) {
            for (size_t i = k; i < n; i += size) {
                struct complex *a = &values[i], *b = &values[i + size / 2];
                struct complex turned = times(factor, *b);
                b->real = a->real - turned.real;
                b->imaginary = a->imaginary - turned.imaginary;
                a->real += turned.real;
                a->imaginary += turned.imaginary;
            }
            factor = times(factor, root);
        }
    }
}

/* --- Bits ------------------------------------------------------------------ */

uint32_t hash_single(uint32_t hash, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return hash_word(hash, bits);
}

uint32_t hash_double(uint32_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return hash_word(hash_word(hash, (uint32_t)bits), (uint32_t)(bits >> 32));
}
