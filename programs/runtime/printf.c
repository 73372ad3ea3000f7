/* Formatted output. */

#include "runtime.h"

/* Divides `*value` by ten and returns the remainder. In pieces of 16 bits, so
 * that a 32-bit hart needs no 64-bit division, for which it has no
 * instruction.
 */
static unsigned divide_by_ten(uint64_t *value)
{
    uint64_t quotient = 0;
    uint32_t rest = 0;
    for (int shift = 48; shift >= 0; shift -= 16) {
        rest = rest << 16 | (uint32_t)(*value >> shift & 0xffff);
        quotient = quotient << 16 | rest / 10;
        rest %= 10;
    }
    *value = quotient;
    return rest;
}

enum { DIGITS = 20 };           /* of the greatest 64-bit number */

/* Writes the digits of `value` so that they end at `end`; returns the first. */
static char *digits(char *end, uint64_t value, unsigned base)
{
    do {
        unsigned digit;
        if (base == 10) {
            digit = divide_by_ten(&value);
        } else {
            digit = value & 15;
            value >>= 4;
        }
        *--end = "0123456789abcdef"[digit];
    } while (value != 0);
    return end;
}

struct field {
    bool left, zeros;           /* the flags `-` and `0` */
    int width;
};

/* The text with its sign, filled up to the width of the field. */
static int put_field(struct field field, const char *sign, const char *text, size_t length)
{
    int signs = (int)strlen(sign);
    int size = signs + (int)length;
    int fill = field.width > size ? field.width - size : 0;
    int written = size + fill;

    if (!field.left && !field.zeros)
        for (; fill > 0; fill--)
            put_char(' ');
    for (; *sign != '\0'; sign++)
        put_char(*sign);
    if (!field.left)
        for (; fill > 0; fill--)
            put_char('0');
    for (; length > 0; length--)
        put_char(*text++);
    for (; fill > 0; fill--)
        put_char(' ');
    return written;
}

static int put_number(struct field field, const char *sign, uint64_t value, unsigned base)
{
    char room[DIGITS];
    char *end = room + sizeof room;
    char *first = digits(end, value, base);
    return put_field(field, sign, first, (size_t)(end - first));
}

/* How wide an argument is: the length modifiers. */
enum length { INT, LONG, LONG_LONG, SIZE };

/* A va_list may be an array; inside a struct it can be passed on. */
struct arguments {
    va_list list;
};

static int64_t signed_argument(struct arguments *arguments, enum length length)
{
    switch (length) {
    case LONG:      return va_arg(arguments->list, long);
    case LONG_LONG: return va_arg(arguments->list, long long);
    case SIZE:      return va_arg(arguments->list, ptrdiff_t);
    default:        return va_arg(arguments->list, int);
    }
}

static uint64_t unsigned_argument(struct arguments *arguments, enum length length)
{
    switch (length) {
    case LONG:      return va_arg(arguments->list, unsigned long);
    case LONG_LONG: return va_arg(arguments->list, unsigned long long);
    case SIZE:      return va_arg(arguments->list, size_t);
    default:        return va_arg(arguments->list, unsigned);
    }
}

/* One conversion; `*format` stands after the `%` and is moved past it. */
static int put_conversion(const char **format, struct arguments *arguments)
{
    const char *f = *format;
    struct field field = { false, false, 0 };
    enum length length = INT;
    int written = 0;

    for (; *f == '-' || *f == '0'; f++)
        *(*f == '-' ? &field.left : &field.zeros) = true;
    for (; *f >= '0' && *f <= '9'; f++)
        field.width = field.width * 10 + (*f - '0');
    if (*f == 'z') {
        length = SIZE;
        f++;
    }
    for (; *f == 'l'; f++)
        length = length == INT ? LONG : LONG_LONG;

    switch (*f) {
    case 'd': {
        int64_t value = signed_argument(arguments, length);
        uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
        written = put_number(field, value < 0 ? "-" : "", size, 10);
        break;
    }
    case 'u':
        written = put_number(field, "", unsigned_argument(arguments, length), 10);
        break;
    case 'x':
        written = put_number(field, "", unsigned_argument(arguments, length), 16);
        break;
    case 'p':
        written = put_number(field, "0x", (uintptr_t)va_arg(arguments->list, void *), 16);
        break;
    case 's': {
        const char *text = va_arg(arguments->list, const char *);
        field.zeros = false;
        written = put_field(field, "", text, strlen(text));
        break;
    }
    case 'c': {
        char c = (char)va_arg(arguments->list, int);
        field.zeros = false;
        written = put_field(field, "", &c, 1);
        break;
    }
    case '%':
        put_char('%');
        written = 1;
        break;
    default:
        /* Not known: shown as it stands, so that it is seen. */
        put_char('%');
        *format = f;
        return 1;
    }
    *format = f + 1;
    return written;
}

int printf(const char *format, ...)
{
    struct arguments arguments;
    int written = 0;

    va_start(arguments.list, format);
    while (*format != '\0') {
        char c = *format++;
        if (c == '%') {
            written += put_conversion(&format, &arguments);
        } else {
            put_char(c);
            written++;
        }
    }
    va_end(arguments.list);
    return written;
}
