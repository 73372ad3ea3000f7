/* Sorting: numbers by their value, and records by any order the caller has. */

#ifndef SORTS_H
#define SORTS_H

#include "runtime.h"

/* Numbers, compared directly. `merge` wants room for half of the elements. */
void numbers_insertion(uint32_t *a, size_t n);
void numbers_heap(uint32_t *a, size_t n);
void numbers_merge(uint32_t *a, uint32_t *spare, size_t n);
void numbers_quick(uint32_t *a, size_t n);

struct record {
    uint32_t key;
    uint32_t serial;
};

/* Whether *a goes before *b. */
typedef bool before_fn(const struct record *a, const struct record *b);

/* Records, compared through a pointer to a function. */
void records_insertion(struct record *a, size_t n, before_fn *before);
void records_heap(struct record *a, size_t n, before_fn *before);
void records_merge(struct record *a, struct record *spare, size_t n, before_fn *before);
void records_quick(struct record *a, size_t n, before_fn *before);

#endif
