/* Floating-point kernels. Products and sums are fused only where the source
 * says so (the programs are compiled with -ffp-contract=off), and nothing
 * comes from a mathematical library: the results are the same to the last bit
 * on every machine with IEEE 754 arithmetic.
 */

#ifndef KERNELS_H
#define KERNELS_H

#include "runtime.h"

/* c = a * b, for square matrices by rows. */
void matrix_multiply_single(float *c, const float *a, const float *b, size_t n);
void matrix_multiply_double(double *c, const double *a, const double *b, size_t n);

/* Points in space that attract each other. */
enum { BODIES = 5 };

struct body {
    double position[3], velocity[3], mass;
};

void bodies_init(struct body bodies[BODIES]);
void bodies_advance(struct body bodies[BODIES], double step);
double bodies_energy(const struct body bodies[BODIES]);

/* After how many steps of z = z * z + c, at most `limit`, |z| passes 2. */
uint32_t mandelbrot_single(float real, float imaginary, uint32_t limit);
uint32_t mandelbrot_double(double real, double imaginary, uint32_t limit);

/* Fast Fourier transform in place; n is a power of two, at most FFT_MAX. The
 * inverse gives n times the original.
 */
enum { FFT_MAX = 64 };

struct complex {
    double real, imaginary;
};

void fft(struct complex *values, size_t n, bool inverse);

/* Folds the bits of a value into a hash. */
uint32_t hash_single(uint32_t hash, float value);
uint32_t hash_double(uint32_t hash, double value);

#endif
