/* What a program on a host stands on, besides the runtime of all programs:
 * its arguments, formatted output to files, memory.
 */

#ifndef SUPPORT_H
#define SUPPORT_H

#include "host.h"

/* The words of the command line, of which the first is the program's name. NULL
 * follows the last one. There are no quotes: a space always ends a word.
 */
int command_line_words(char ***words);

/* A file that is written; all but the handle is 0 at the start. */
struct stream {
    intptr_t handle;
    bool failed;                /* since the start */
    size_t used;
    char text[512];
};

/* From now on `printf`, `put_char` and `flush` are for `stream`, or for the
 * console if it is NULL. What was gathered before is handed over.
 */
void print_to(struct stream *stream);

/* Memory, aligned for anything the program stores; there is always enough, or
 * the program ends. It lasts until it is given back, which gives back all that
 * was allocated after it, too.
 */
void *allocate(size_t size);
void give_back(void *from);

/* Exit codes of the program. */
enum {
    FAILED_MEMORY = 10,
    FAILED_INPUT,
    FAILED_OUTPUT,
    FAILED_CHECK,
    FAILED_COMMAND_LINE,
};

/* Says why, and ends. */
_Noreturn void fail(int code, const char *why);

#endif
