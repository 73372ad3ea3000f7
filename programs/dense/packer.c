/* The packed form is a sequence of
 *
 *   0nnnnnnn                   n + 1 bytes follow as they are
 *   1nnnnnnn dddddddd          n + 3 bytes once more, from d + 1 bytes back
 */

#include "dense.h"

enum {
    LITERALS_MAX = 128,
    MATCH_MIN = 3,
    MATCH_MAX = 127 + MATCH_MIN,
    WINDOW = 256,
    HEADS = 64,                 /* a power of two */
};

struct output {
    uint8_t *bytes;
    size_t size, room;
    bool full;
};

static void put(struct output *out, uint8_t byte)
{
    if (out->size < out->room)
        out->bytes[out->size++] = byte;
    else
        out->full = true;
}

static void put_literals(struct output *out, const uint8_t *from, size_t count)
{
    while (count > 0) {
        size_t piece = count < LITERALS_MAX ? count : LITERALS_MAX;
        put(out, (uint8_t)(piece - 1));
        for (size_t i = 0; i < piece; i++)
            put(out, from[i]);
        from += piece;
        count -= piece;
    }
}

static uint32_t head_of(const uint8_t *at)
{
    return (at[0] * 33u ^ at[1] * 7u ^ at[2]) % HEADS;
}

/* How many bytes at `a` are the same as at `b`. */
static size_t match_length(const uint8_t *a, const uint8_t *b, size_t most)
{
    size_t length = 0;
    while (length < most && a[length] == b[length])
        length++;
    return length;
}

NOINLINE size_t pack(uint8_t *bytes, size_t room, const uint8_t *in, size_t size)
{
    struct output out = { bytes, 0, room, false };
    size_t last[HEADS] = { 0 };         /* where such a beginning was seen, plus 1 */
    size_t at = 0, literals = 0;

    while (at < size) {
        size_t length = 0, distance = 0;
        if (size - at >= MATCH_MIN) {
            size_t *seen = &last[head_of(in + at)];
            size_t most = size - at < MATCH_MAX ? size - at : MATCH_MAX;
            if (*seen != 0 && at - (*seen - 1) <= WINDOW) {
                distance = at - (*seen - 1);
                length = match_length(in + at - distance, in + at, most);
            }
            *seen = at + 1;
        }
        if (length < MATCH_MIN) {
            literals++;
            at++;
            continue;
        }
        put_literals(&out, in + at - literals, literals);
        put(&out, (uint8_t)(0x80 | (length - MATCH_MIN)));
        put(&out, (uint8_t)(distance - 1));
        literals = 0;
        at += length;
    }
    put_literals(&out, in + at - literals, literals);
    return out.full ? 0 : out.size;
}

NOINLINE size_t unpack(uint8_t *bytes, size_t room, const uint8_t *in, size_t size)
{
    struct output out = { bytes, 0, room, false };
    size_t at = 0;
    while (at < size) {
        uint8_t head = in[at++];
        if (head < 0x80) {
            size_t count = head + 1u;
            if (size - at < count)
                return 0;
            for (; count > 0; count--)
                put(&out, in[at++]);
        } else {
            size_t length = (head & 0x7f) + (size_t)MATCH_MIN;
            if (at == size)
                return 0;
            size_t distance = in[at++] + 1u;
            if (distance > out.size)
                return 0;
            for (; length > 0 && !out.full; length--)
                put(&out, bytes[out.size - distance]);
        }
    }
    return out.full ? 0 : out.size;
}
