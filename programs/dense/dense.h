/* The parts of the program: a hash table, and a packer. */

#ifndef DENSE_H
#define DENSE_H

#include "runtime.h"

/* --- A hash table from words to numbers: open addressing, no removal ------ */

enum { TABLE_SIZE = 128 };      /* a power of two */

struct slot {
    const char *word;           /* not terminated; NULL: free */
    uint8_t length;
    uint32_t count;
};

struct table {
    struct slot slots[TABLE_SIZE];
    uint32_t used, probes;
};

/* The slot of the word, made if there is none; NULL if the table is full. */
struct slot *table_slot(struct table *table, const char *word, size_t length);

/* --- A packer: repeats become references into what came before ------------ */

/* Returns the packed size, or 0 if there is not enough room. */
size_t pack(uint8_t *out, size_t room, const uint8_t *in, size_t size);

/* Returns the size, or 0 if the input is damaged or there is not enough room. */
size_t unpack(uint8_t *out, size_t room, const uint8_t *in, size_t size);

#endif
