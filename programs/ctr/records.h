/* Records as they are read, and as they are shown. */

#ifndef RECORDS_H
#define RECORDS_H

#include "runtime.h"

enum { RECORDS_MAX = 256 };

struct record {
    uintptr_t source;           /* and V in bit 0 */
    uintptr_t target;           /* and MISP in bit 0 */
    uintptr_t data;             /* TYPE in 3:0, CCV in 15, CC in 31:16 */
};

enum type {
    TYPE_EXCEPTION = 1,
    TYPE_INTERRUPT = 2,
    TYPE_TRAP_RETURN = 3,
    TYPE_NOT_TAKEN = 4,
    TYPE_TAKEN = 5,
    TYPE_INDIRECT_CALL = 8,
    TYPE_DIRECT_CALL = 9,
    TYPE_INDIRECT_JUMP = 10,
    TYPE_DIRECT_JUMP = 11,
    TYPE_SWAP = 12,
    TYPE_RETURN = 13,
    TYPE_OTHER_INDIRECT = 14,
    TYPE_OTHER_DIRECT = 15,
};

/* A place in the program. Programs give a list of those that their records may
 * name; the last has no name.
 */
struct place {
    const char *start;
    const char *name;
    bool whole;                 /* a function: where in it is not told */
};

extern const struct place places[];

#define LABEL(label)        { label, #label, false }
#define FUNCTION(function)  { (const char *)(function), #function, true }
#define END_OF_PLACES       { NULL, NULL, false }

/* Reads the entries, the newest first, and returns how many: `count` of them,
 * or those up to the first that is not valid.
 */
size_t read_records(struct record *records, size_t count);

static inline bool is_valid(const struct record *record)
{
    return record->source & 1;
}

static inline enum type type_of(const struct record *record)
{
    return (enum type)(record->data & 15);
}

const char *type_name(enum type type);

/* Prints an address as a place. */
void print_place(uintptr_t address);

/* Prints the valid entries, the newest first; and behind a `#`, their cycles,
 * which depend on the hart.
 */
void show_records(const char *title, size_t count);

#endif
