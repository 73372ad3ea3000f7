/* The operations of semihosting, one function each. */

#include "host.h"

enum operation {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITEC = 0x03,
    SYS_WRITE0 = 0x04,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_SEEK = 0x0a,
    SYS_FLEN = 0x0c,
    SYS_CLOCK = 0x10,
    SYS_ERRNO = 0x13,
    SYS_GET_CMDLINE = 0x15,
    SYS_EXIT = 0x18,
    SYS_EXIT_EXTENDED = 0x20,
    SYS_ELAPSED = 0x30,
    SYS_TICKFREQ = 0x31,
};

/* Why a program ends. */
enum reason {
    RUN_TIME_ERROR = 0x20023,
    APPLICATION_EXIT = 0x20026,
};

/* --- Files ----------------------------------------------------------------- */

intptr_t host_open(const char *name, enum open_mode mode)
{
    uintptr_t block[] = { (uintptr_t)name, mode, strlen(name) };
    return host_call(SYS_OPEN, block);
}

bool host_close(intptr_t handle)
{
    uintptr_t block[] = { (uintptr_t)handle };
    return host_call(SYS_CLOSE, block) == 0;
}

/* Reading and writing return how much is missing. */

size_t host_read(intptr_t handle, void *to, size_t size)
{
    uintptr_t block[] = { (uintptr_t)handle, (uintptr_t)to, size };
    size_t missing = (size_t)host_call(SYS_READ, block);
    return missing < size ? size - missing : 0;
}

bool host_write(intptr_t handle, const void *from, size_t size)
{
    uintptr_t block[] = { (uintptr_t)handle, (uintptr_t)from, size };
    return host_call(SYS_WRITE, block) == 0;
}

intptr_t host_length(intptr_t handle)
{
    uintptr_t block[] = { (uintptr_t)handle };
    return host_call(SYS_FLEN, block);
}

bool host_seek(intptr_t handle, size_t position)
{
    uintptr_t block[] = { (uintptr_t)handle, position };
    return host_call(SYS_SEEK, block) == 0;
}

/* --- Console --------------------------------------------------------------- */

void host_write_char(char c)
{
    host_call(SYS_WRITEC, &c);
}

void host_write_text(const char *text)
{
    host_call(SYS_WRITE0, text);
}

/* --- What the host knows --------------------------------------------------- */

int host_error(void)
{
    return (int)host_call(SYS_ERRNO, NULL);
}

bool host_command_line(char *line, size_t size)
{
    uintptr_t block[] = { (uintptr_t)line, size };
    return host_call(SYS_GET_CMDLINE, block) == 0;
}

intptr_t host_clock(void)
{
    return host_call(SYS_CLOCK, NULL);
}

intptr_t host_tick_rate(void)
{
    return host_call(SYS_TICKFREQ, NULL);
}

bool host_ticks(uint64_t *ticks)
{
    return host_call(SYS_ELAPSED, ticks) == 0;
}

/* --- The end --------------------------------------------------------------- */

/* Whether SYS_EXIT_EXTENDED is there. A file that every host pretends to have
 * says which extensions it has: four characters to know it by, and then bits.
 */
static bool has_extended_exit(void)
{
    unsigned char features[5] = { 0 };
    intptr_t handle = host_open(":semihosting-features", OPEN_READ);
    if (handle == -1)
        return false;
    size_t size = host_read(handle, features, sizeof features);
    host_close(handle);
    return size == sizeof features && memcmp(features, "SHFB", 4) == 0
           && (features[4] & 1) != 0;
}

void host_exit(int code)
{
    uintptr_t block[] = { APPLICATION_EXIT, (uintptr_t)code };

    if (has_extended_exit())
        host_call(SYS_EXIT_EXTENDED, block);
    /* The older operation takes a code on 64 bits only. */
#if __riscv_xlen == 64
    host_call(SYS_EXIT, block);
#else
    host_call(SYS_EXIT, (void *)(code == 0 ? APPLICATION_EXIT : RUN_TIME_ERROR));
#endif
    for (;;)
        ;
}
