/* Semihosting: what a program may ask of the host, or debugger, it runs on.
 *
 * The operations and their numbers are those of Arm's specification of
 * semihosting, which that of RISC-V takes over. A handle stands for an open
 * file of the host; it is greater than 0.
 */

#ifndef HOST_H
#define HOST_H

#include "runtime.h"

/* The call itself, in call.S. The parameter is the address of a block of
 * fields, each as wide as a register, for most operations; some write in it.
 */
intptr_t host_call(uintptr_t operation, const void *parameter);

/* How to open a file. The numbers count through the modes of C's fopen: r, rb,
 * r+, r+b, w, wb, w+, w+b, a, ab, a+, a+b.
 */
enum open_mode {
    OPEN_READ = 1,
    OPEN_WRITE = 5,
    OPEN_WRITE_READ = 7,
};

/* The name of the console, which is standard input when it is opened to be
 * read, standard output when it is opened to be written.
 */
#define HOST_CONSOLE ":tt"

/* A handle, or -1. */
intptr_t host_open(const char *name, enum open_mode mode);
bool host_close(intptr_t handle);

/* How many bytes were read: less than asked for at the end, and 0 also after a
 * failure.
 */
size_t host_read(intptr_t handle, void *to, size_t size);

/* Whether all was written. */
bool host_write(intptr_t handle, const void *from, size_t size);

/* The length of a file in bytes; -1 if it has none. */
intptr_t host_length(intptr_t handle);

/* Reading and writing goes on that many bytes from the start. */
bool host_seek(intptr_t handle, size_t position);

/* To the host's own console, which needs no handle. */
void host_write_char(char c);
void host_write_text(const char *text);

/* Why the last operation failed: a number of the host's <errno.h>. */
int host_error(void);

/* Copies the command line to `line`; false if it takes more than `size` bytes,
 * its final NUL counted, or if the host has none.
 */
bool host_command_line(char *line, size_t size);

/* Time since the program was started: in hundredths of a second, and in ticks
 * of a finer clock of which `host_tick_rate` make a second. -1 and false if the
 * host does not know.
 */
intptr_t host_clock(void);
intptr_t host_tick_rate(void);
bool host_ticks(uint64_t *ticks);

/* Ends the program; 0 is success. */
_Noreturn void host_exit(int code);

#endif
