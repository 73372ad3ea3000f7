/* Reading records through the select register, and printing them. */

#include "csr.h"
#include "records.h"

/* siselect, and sireg to sireg3, which are the same in 0.1.4 and 1.0. */
static struct record read_record(size_t entry)
{
    struct record record;
    csr_write(0x150, 0x200 + entry);
    record.source = csr_read(0x151);
    record.target = csr_read(0x152);
    record.data = csr_read(0x153);
    return record;
}

size_t read_records(struct record *records, size_t count)
{
    size_t found = 0;
    for (; found < count; found++) {
        records[found] = read_record(found);
        if (!is_valid(&records[found]))
            break;
    }
    return found;
}

const char *type_name(enum type type)
{
    switch (type) {
    case TYPE_EXCEPTION:        return "exception";
    case TYPE_INTERRUPT:        return "interrupt";
    case TYPE_TRAP_RETURN:      return "trap return";
    case TYPE_NOT_TAKEN:        return "not taken";
    case TYPE_TAKEN:            return "taken";
    case TYPE_INDIRECT_CALL:    return "indirect call";
    case TYPE_DIRECT_CALL:      return "direct call";
    case TYPE_INDIRECT_JUMP:    return "indirect jump";
    case TYPE_DIRECT_JUMP:      return "direct jump";
    case TYPE_SWAP:             return "swap";
    case TYPE_RETURN:           return "return";
    case TYPE_OTHER_INDIRECT:   return "other indirect";
    case TYPE_OTHER_DIRECT:     return "other direct";
    }
    return "?";
}

/* The last place that starts at or before an address. */
static const struct place *find_place(uintptr_t address)
{
    const struct place *found = NULL;
    for (const struct place *p = places; p->name != NULL; p++)
        if ((uintptr_t)p->start <= address && (found == NULL || p->start > found->start))
            found = p;
    return found;
}

void print_place(uintptr_t address)
{
    const struct place *place = find_place(address);
    if (address == 0)
        printf("0");
    else if (place == NULL)
        printf("%lx", (unsigned long)address);
    else if (place->whole || address == (uintptr_t)place->start)
        printf("%s", place->name);
    else
        printf("%s+%u", place->name, (unsigned)(address - (uintptr_t)place->start));
}

/* Software's formula for CC. */
static unsigned cycles_of(uintptr_t data)
{
    unsigned exponent = data >> 28 & 15, mantissa = data >> 16 & 0xfff;
    return exponent == 0 ? mantissa : (4096 + mantissa) << (exponent - 1);
}

void show_records(const char *title, size_t count)
{
    static struct record records[RECORDS_MAX];
    size_t found = read_records(records, count);

    printf("%s: %u\n", title, (unsigned)found);
    for (size_t i = 0; i < found; i++) {
        printf("%4u %-15s ", (unsigned)i, type_name(type_of(&records[i])));
        print_place(records[i].source & ~(uintptr_t)1);
        printf(" -> ");
        print_place(records[i].target & ~(uintptr_t)1);
        printf("%s\n", records[i].target & 1 ? " mispredicted" : "");
    }
    printf("# cycles:");
    for (size_t i = 0; i < found; i++)
        if (records[i].data & 1 << 15)
            printf(" %u", cycles_of(records[i].data));
        else
            printf(" -");
    printf("\n");
}
