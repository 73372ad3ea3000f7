/* The assembler of the stack machine: two passes over the text, the first for
 * the addresses that are named, the second for the code.
 */

#include "machine.h"

struct word {
    const char *text;
    size_t length;
};

enum { NAMES = 32 };

struct assembler {
    struct { struct word name; uint16_t address; } names[NAMES];
    size_t name_count;
    const char *rest;           /* of the text */
    uint8_t *code;
    size_t length, room;
};

#define OPCODE_TEXT(name, text) text,
static const char *const mnemonics[] = { OPCODES(OPCODE_TEXT) };
#undef OPCODE_TEXT

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

/* The next word of the text; its length is 0 at the end. */
static struct word next_word(struct assembler *as)
{
    const char *c = as->rest;
    while (is_space(*c) || *c == ';') {
        if (*c == ';')
            while (*c != '\0' && *c != '\n')
                c++;
        else
            c++;
    }
    struct word word = { c, 0 };
    while (*c != '\0' && !is_space(*c) && *c != ';')
        c++;
    word.length = (size_t)(c - word.text);
    as->rest = c;
    return word;
}

static bool same(struct word word, const char *text, size_t length)
{
    return word.length == length && memcmp(word.text, text, length) == 0;
}

static bool parse_opcode(struct word word, enum opcode *opcode)
{
    for (size_t i = 0; i < COUNT_OF(mnemonics); i++)
        if (same(word, mnemonics[i], strlen(mnemonics[i]))) {
            *opcode = (enum opcode)i;
            return true;
        }
    return false;
}

static bool parse_number(struct word word, uint16_t *number)
{
    bool negative = word.length > 1 && word.text[0] == '-';
    uint32_t value = 0;
    for (size_t i = negative; i < word.length; i++) {
        if (word.text[i] < '0' || word.text[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(word.text[i] - '0');
    }
    *number = (uint16_t)(negative ? -value : value);
    return word.length > 0;
}

static bool parse_operand(const struct assembler *as, enum opcode opcode, struct word word,
                          uint16_t *operand)
{
    switch (opcode) {
    case OP_PUSH:
        return parse_number(word, operand);
    case OP_LOAD:
    case OP_STORE:
        *operand = (uint16_t)(word.text[0] - 'a');
        return word.length == 1 && *operand < VARIABLES;
    default:
        for (size_t i = 0; i < as->name_count; i++)
            if (same(word, as->names[i].name.text, as->names[i].name.length)) {
                *operand = as->names[i].address;
                return true;
            }
        return false;
    }
}

static bool define_name(struct assembler *as, struct word word)
{
    if (as->name_count == NAMES)
        return false;
    word.length--;              /* without the colon */
    as->names[as->name_count].name = word;
    as->names[as->name_count].address = (uint16_t)as->length;
    as->name_count++;
    return true;
}

static bool emit(struct assembler *as, unsigned byte)
{
    if (as->length == as->room)
        return false;
    as->code[as->length++] = (uint8_t)byte;
    return true;
}

enum pass { COLLECT_NAMES, GENERATE };

static bool run_pass(struct assembler *as, const char *text, enum pass pass)
{
    as->rest = text;
    as->length = 0;
    for (;;) {
        struct word word = next_word(as);
        enum opcode opcode;
        uint16_t operand = 0;
        if (word.length == 0)
            return true;
        if (word.text[word.length - 1] == ':') {
            if (pass == COLLECT_NAMES && !define_name(as, word))
                return false;
            continue;
        }
        if (!parse_opcode(word, &opcode) || !emit(as, opcode))
            return false;
        if (!has_operand(opcode))
            continue;
        word = next_word(as);
        if (pass == GENERATE && !parse_operand(as, opcode, word, &operand))
            return false;
        if (!emit(as, operand & 0xff) || !emit(as, operand >> 8))
            return false;
    }
}

size_t assemble(const char *text, uint8_t *code, size_t room)
{
    struct assembler as = { .code = code, .room = room };
    if (!run_pass(&as, text, COLLECT_NAMES) || !run_pass(&as, text, GENERATE))
        return 0;
    return as.length;
}
