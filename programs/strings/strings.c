/* Loops over bytes: copying, searching, checksums, encodings. */

#include "crc32.h"
#include "runtime.h"

/* --- Copying --------------------------------------------------------------- */

NOINLINE static void copy_bytes(uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
}

/* A register at a time, for places that are aligned to one. */
NOINLINE static void copy_words(uint8_t *to, const uint8_t *from, size_t size)
{
    typedef uintptr_t __attribute__((may_alias)) word;
    word *t = (word *)to;
    const word *f = (const word *)from;
    for (; size >= sizeof(word); size -= sizeof(word))
        *t++ = *f++;
    copy_bytes((uint8_t *)t, (const uint8_t *)f, size);
}

/* Eight bytes per turn; the switch jumps into the middle of the first. */
NOINLINE static void copy_unrolled(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size == 0)
        return;
    size_t turns = (size + 7) / 8;
    switch (size % 8) {
    case 0: do { *to++ = *from++; __attribute__((fallthrough));
    case 7:      *to++ = *from++; __attribute__((fallthrough));
    case 6:      *to++ = *from++; __attribute__((fallthrough));
    case 5:      *to++ = *from++; __attribute__((fallthrough));
    case 4:      *to++ = *from++; __attribute__((fallthrough));
    case 3:      *to++ = *from++; __attribute__((fallthrough));
    case 2:      *to++ = *from++; __attribute__((fallthrough));
    case 1:      *to++ = *from++;
            } while (--turns > 0);
    }
}

static uint8_t source[256] __attribute__((aligned(16)));
static uint8_t target[256] __attribute__((aligned(16)));

static void run_copies(void)
{
    static void (*const copies[])(uint8_t *, const uint8_t *, size_t) = {
        copy_bytes, copy_words, copy_unrolled,
    };
    uint32_t random = 7, wrong = 0;
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (uint8_t)next_random(&random);

    for (size_t c = 0; c < COUNT_OF(copies); c++)
        for (size_t size = 0; size <= 40; size++) {
            memset(target, 0xaa, sizeof target);
            copies[c](target, source, size);
            wrong += memcmp(target, source, size) != 0;
            wrong += target[size] != 0xaa;
        }
    expect(1, "copies gone wrong", wrong, 0);

    /* Overlapping, both ways. */
    copy_words(target, source, sizeof target);
    memmove(target + 10, target, 100);
    wrong = memcmp(target + 10, source, 100) != 0;
    memmove(target, target + 10, 100);
    wrong += memcmp(target, source, 100) != 0;
    expect(2, "moves gone wrong", wrong, 0);
}

/* --- Length, a word at a time --------------------------------------------- */

/* Whether one of the bytes of `word` is 0: taking 1 from each borrows from a
 * byte's top bit only if the byte was 0 or had that bit set.
 */
static bool has_zero_byte(uintptr_t word)
{
    const uintptr_t ones = (uintptr_t)-1 / 0xff;
    return ((word - ones) & ~word & ones << 7) != 0;
}

NOINLINE static size_t fast_length(const char *s)
{
    typedef uintptr_t __attribute__((may_alias)) word;
    const char *c = s;
    for (; (uintptr_t)c % sizeof(word) != 0; c++)
        if (*c == '\0')
            return (size_t)(c - s);
    /* Whole words; an aligned one never reaches into memory that is not there. */
    while (!has_zero_byte(*(const word *)c))
        c += sizeof(word);
    for (; *c != '\0'; c++)
        ;
    return (size_t)(c - s);
}

static const char text[] __attribute__((aligned(8))) =
    "A trace is a long story told in very few words: it names the turns that "
    "were taken, and leaves the way between them to those who hold the map. "
    "Who has the map and the turns has the whole way; who has but one of the "
    "two has nothing at all.";

static void run_lengths(void)
{
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof text; i++)
        wrong += fast_length(text + i) != strlen(text + i);
    expect(3, "lengths gone wrong", wrong, 0);
    expect(4, "length of the text", (uint32_t)fast_length(text), 238);
}

/* --- Searching: Knuth, Morris and Pratt ------------------------------------ */

enum { PATTERN_MAX = 32 };

/* How often the pattern occurs, overlapping or not. */
NOINLINE static uint32_t occurrences(const char *pattern, const char *in)
{
    uint8_t border[PATTERN_MAX + 1] = { 0 };
    size_t length = strlen(pattern);
    uint32_t found = 0;

    /* border[i]: the longest proper prefix of the pattern's first i
     * characters that is also their end. */
    for (size_t i = 1, matched = 0; i < length; i++) {
        while (matched > 0 && pattern[i] != pattern[matched])
            matched = border[matched];
        matched += pattern[i] == pattern[matched];
        border[i + 1] = (uint8_t)matched;
    }
    for (size_t matched = 0; *in != '\0'; in++) {
        while (matched > 0 && *in != pattern[matched])
            matched = border[matched];
        matched += *in == pattern[matched];
        if (matched == length) {
            found++;
            matched = border[matched];
        }
    }
    return found;
}

/* --- Base64 ---------------------------------------------------------------- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* `out` has room for four characters per three bytes begun, and a 0. */
NOINLINE static size_t base64_encode(char *out, const uint8_t *in, size_t size)
{
    char *o = out;
    for (; size > 0; in += 3) {
        size_t group = size < 3 ? size : 3;
        uint32_t bits = (uint32_t)in[0] << 16;
        if (group > 1)
            bits |= (uint32_t)in[1] << 8;
        if (group > 2)
            bits |= in[2];
        o[0] = alphabet[bits >> 18];
        o[1] = alphabet[bits >> 12 & 63];
        o[2] = group > 1 ? alphabet[bits >> 6 & 63] : '=';
        o[3] = group > 2 ? alphabet[bits & 63] : '=';
        o += 4;
        size -= group;
    }
    *o = '\0';
    return (size_t)(o - out);
}

static uint32_t base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0' + 52);
    return c == '+' ? 62 : 63;
}

NOINLINE static size_t base64_decode(uint8_t *out, const char *in)
{
    uint8_t *o = out;
    uint32_t bits = 0;
    unsigned count = 0;
    for (; *in != '\0' && *in != '='; in++) {
        bits = bits << 6 | base64_value(*in);
        count += 6;
        if (count >= 8) {
            count -= 8;
            *o++ = (uint8_t)(bits >> count);
        }
    }
    return (size_t)(o - out);
}

static void run_base64(void)
{
    static char encoded[400];
    static uint8_t decoded[300];
    uint32_t wrong = 0;

    base64_encode(encoded, (const uint8_t *)"hart", 4);
    printf("base64 of \"hart\": %s\n", encoded);
    expect(10, "  as it should be", strcmp(encoded, "aGFydA=="), 0);
    for (size_t size = 0; size < sizeof text; size += 7) {
        base64_encode(encoded, (const uint8_t *)text, size);
        wrong += base64_decode(decoded, encoded) != size;
        wrong += memcmp(decoded, text, size) != 0;
    }
    expect(11, "base64 round trips wrong", wrong, 0);
    size_t length = base64_encode(encoded, (const uint8_t *)text, sizeof text - 1);
    expect_hex(12, "base64 of the text, crc", crc32_table(0, encoded, length), 0x39572eb6);
}

/* --- Words ----------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The next word from *rest on, in small letters; false at the end. */
NOINLINE static bool next_word(const char **rest, char *word, size_t room)
{
    const char *c = *rest;
    size_t length = 0;
    while (*c != '\0' && !is_letter(*c))
        c++;
    for (; is_letter(*c); c++)
        if (length + 1 < room)
            word[length++] = (char)(*c | 0x20);
    word[length] = '\0';
    *rest = c;
    return length > 0;
}

enum { WORDS = 64, WORD_MAX = 12 };

static struct {
    char text[WORD_MAX];
    uint32_t count;
} words[WORDS];

static void run_words(void)
{
    const char *rest = text;
    char word[WORD_MAX];
    uint32_t total = 0, different = 0, most = 0;
    while (next_word(&rest, word, sizeof word)) {
        uint32_t w = 0;
        while (w < different && strcmp(words[w].text, word) != 0)
            w++;
        if (w == different)
            memcpy(words[different++].text, word, strlen(word) + 1);
        words[w].count++;
        total++;
        if (words[w].count > words[most].count)
            most = w;
    }
    expect(20, "words", total, 52);
    expect(21, "  different", different, 36);
    printf("  most frequent: %s, %u times\n", words[most].text, (unsigned)words[most].count);
    expect(22, "  as it should be", strcmp(words[most].text, "the"), 0);
}

int main(void)
{
    run_copies();
    run_lengths();
    expect(5, "\"the\" in the text", occurrences("the", text), 8);
    expect(6, "\"aba\" in \"ababababa\"", occurrences("aba", "ababababa"), 4);
    expect(7, "\"aabaaab\"", occurrences("aabaaab", "aabaaabaaabaabaaab"), 3);
    expect_hex(8, "crc of \"123456789\"", crc32_bits(0, "123456789", 9), 0xcbf43926);
    expect_hex(9, "crc of the text", crc32_table(0, text, sizeof text - 1), 0xd670e49c);
    run_base64();
    run_words();
    return verdict();
}
