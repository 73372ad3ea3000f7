/* Programs for the stack machine. */

#ifndef SAMPLES_H
#define SAMPLES_H

/* Prints how many primes there are below the variable n, and the greatest. */
extern const char sample_primes[];

/* Prints the sum of gcd(x, y) over all 0 < x, y <= n. */
extern const char sample_gcd[];

/* Prints the nth Fibonacci number, recursively. */
extern const char sample_fibonacci[];

#endif
