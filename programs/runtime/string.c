/* The few functions of <string.h> that compilers call unasked, and two more.
 * Plain byte loops: short, and easy to follow in a trace.
 */

#include "runtime.h"

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    while (size-- > 0)
        *d++ = *s++;
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    if ((uintptr_t)d - (uintptr_t)s >= size) {
        while (size-- > 0)
            *d++ = *s++;
    } else {
        /* `to` starts inside `from`: what is overwritten must move first. */
        while (size-- > 0)
            d[size] = s[size];
    }
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    unsigned char *d = to;
    while (size-- > 0)
        *d++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *x = a, *y = b;
    for (; size > 0; size--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

size_t strlen(const char *s)
{
    const char *end = s;
    while (*end != '\0')
        end++;
    return (size_t)(end - s);
}

int strcmp(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}
