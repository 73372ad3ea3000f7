/* Arguments, output, memory and the end of a program on a host. Output takes
 * the place of runtime/htif.c.
 */

#include "support.h"

/* --- Output ---------------------------------------------------------------- */

static struct stream console;
static struct stream *output = &console;

/* A host need not let its console be opened: then it goes a character at a
 * time, which is slow.
 */
static void write_console(void)
{
    if (console.handle == 0)
        console.handle = host_open(HOST_CONSOLE, OPEN_WRITE);
    if (console.handle == -1)
        for (size_t i = 0; i < console.used; i++)
            host_write_char(console.text[i]);
    else if (!host_write(console.handle, console.text, console.used))
        console.failed = true;
}

void flush(void)
{
    if (output->used == 0)
        return;
    if (output == &console)
        write_console();
    else if (!host_write(output->handle, output->text, output->used))
        output->failed = true;
    output->used = 0;
}

void put_char(char c)
{
    if (output->used == sizeof output->text)
        flush();
    output->text[output->used++] = c;
}

void print_to(struct stream *stream)
{
    flush();
    output = stream != NULL ? stream : &console;
}

/* --- The end --------------------------------------------------------------- */

void exit(int code)
{
    flush();
    host_exit(code);
}

void fail(int code, const char *why)
{
    flush();
    host_write_text(why);
    host_write_char('\n');
    host_exit(code);
}

/* Called by crt0.S on a trap that the program has no handler for. */
_Noreturn void report_unexpected_trap(uintptr_t cause, uintptr_t pc, uintptr_t value);

_Noreturn void report_unexpected_trap(uintptr_t cause, uintptr_t pc, uintptr_t value)
{
    /* Where nobody serves semihosting, its ebreak is such a trap, and so would
     * be the one of the report. Nobody can be told.
     */
    static bool reported;
    if (reported)
        for (;;)
            ;
    reported = true;

    print_to(NULL);
    printf("unexpected trap: mcause %lx mepc %lx mtval %lx\n",
           (unsigned long)cause, (unsigned long)pc, (unsigned long)value);
    exit(EXIT_UNEXPECTED_TRAP);
}

/* --- Arguments ------------------------------------------------------------- */

enum { LINE_SIZE = 1024, WORDS_MAX = 64 };

int command_line_words(char ***words)
{
    static char line[LINE_SIZE];
    static char *list[WORDS_MAX + 1];
    int count = 0;

    if (!host_command_line(line, sizeof line))
        fail(FAILED_COMMAND_LINE, "the command line is too long, or there is none");
    for (char *next = line; *next != '\0';) {
        if (*next == ' ') {
            *next++ = '\0';
            continue;
        }
        if (count == WORDS_MAX)
            fail(FAILED_COMMAND_LINE, "too many arguments");
        list[count++] = next;
        while (*next != '\0' && *next != ' ')
            next++;
    }
    *words = list;
    return count;
}

/* --- Memory ---------------------------------------------------------------- */

/* From the linker script. The heap lies between the data and the room that is
 * left to the stack.
 */
extern char _bss_end[], _stack_top[];

enum { STACK_SIZE = 64 * 1024, ALIGNMENT = 8 };

static char *heap = _bss_end;

void *allocate(size_t size)
{
    size_t left = (uintptr_t)_stack_top - STACK_SIZE - (uintptr_t)heap;
    char *start = heap;

    if (size > left)
        fail(FAILED_MEMORY, "out of memory");
    /* Both ends of the heap are aligned, so that there is room for this. */
    heap += (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return start;
}

void give_back(void *from)
{
    heap = from;
}
