// What the runtime offers, for C++: runtime.h is C.

#ifndef HOST_H
#define HOST_H

#include <stddef.h>
#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))

extern "C" {
void expect(int code, const char *what, uint32_t got, uint32_t want);
int verdict(void);
[[noreturn]] void exit(int code);
void *memcpy(void *to, const void *from, size_t size);
}

#endif
