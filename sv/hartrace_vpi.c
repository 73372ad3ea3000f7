/*
 * libhartrace for Icarus Verilog, which has no DPI-C: the system functions that
 * hartrace_rvfi.sv calls, as a VPI module.
 *
 *   $hartrace_new(config_file, elf, hart, reports)   the number of a checker, or -1
 *   $hartrace_retire(checker, ...)                   the arguments of hartrace_dpi_retire()
 *   $hartrace_report(checker)                        prints the difference or the error
 *   $hartrace_finish(checker)
 *   $hartrace_retired(checker)                       instructions that were compared
 *
 * Build it with hartrace_dpi.c:
 *   iverilog-vpi --name=hartrace hartrace_vpi.c hartrace_dpi.c libhartrace.a
 */
#include <stdlib.h>
#include <string.h>
#include <vpi_user.h>

/* hartrace_dpi.c */
void *hartrace_dpi_new(const char *, const char *, const char *, int, int);
int hartrace_dpi_status(void *);
int hartrace_dpi_retire(void *, int, long long, int, int, int, long long, long long, int,
                        long long, long long, int, long long, long long);
int hartrace_dpi_finish(void *);
long long hartrace_dpi_retired(void *);
const char *hartrace_dpi_text(void *);

/* Values of a simulation are numbers, so a checker has one. */
#define MOST_CHECKERS 256
static void *checkers[MOST_CHECKERS];
static int checker_count;

static vpiHandle arguments(void)
{
    return vpi_iterate(vpiArgument, vpi_handle(vpiSysTfCall, NULL));
}

/* The next argument as a number; a bit that is neither 0 nor 1 sets *unknown. */
static long long number(vpiHandle list, int *unknown)
{
    vpiHandle argument = vpi_scan(list);
    s_vpi_value value;
    int size, words, word;
    unsigned long long result = 0;

    if (!argument)
        return 0;
    size = vpi_get(vpiSize, argument);
    value.format = vpiVectorVal;
    vpi_get_value(argument, &value);
    words = (size + 31) / 32;
    for (word = 0; word < words && word < 2; word++) {
        result |= (unsigned long long)(PLI_UINT32)value.value.vector[word].aval << 32 * word;
        if (value.value.vector[word].bval)
            *unknown = 1;
    }
    return (long long)result;
}

/* The next argument as a text, without the spaces that a register pads it with. */
static char *text(vpiHandle list)
{
    vpiHandle argument = vpi_scan(list);
    s_vpi_value value;
    const char *start;
    char *copy;

    if (!argument)
        return NULL;
    value.format = vpiStringVal;
    vpi_get_value(argument, &value);
    start = value.value.str + strspn(value.value.str, " ");
    copy = malloc(strlen(start) + 1);
    return copy ? strcpy(copy, start) : NULL;
}

static void answer(long long result, PLI_INT32 format)
{
    s_vpi_value value;
    s_vpi_time time = {0};

    value.format = format;
    if (format == vpiTimeVal) {
        time.type = vpiSimTime;
        time.high = (PLI_UINT32)((unsigned long long)result >> 32);
        time.low = (PLI_UINT32)result;
        value.value.time = &time;
    } else {
        value.value.integer = (PLI_INT32)result;
    }
    vpi_put_value(vpi_handle(vpiSysTfCall, NULL), &value, NULL, vpiNoDelay);
}

static void *checker(vpiHandle list)
{
    int unknown = 0;
    long long index = number(list, &unknown);

    return !unknown && index >= 0 && index < checker_count ? checkers[index] : NULL;
}

static PLI_INT32 new_call(PLI_BYTE8 *data)
{
    vpiHandle list = arguments();
    int unknown = 0, hart, reports, result = -1;
    char *config = text(list), *elf = text(list);

    (void)data;
    hart = (int)number(list, &unknown);
    reports = (int)number(list, &unknown);
    vpi_free_object(list);
    if (checker_count < MOST_CHECKERS) {
        void *made = hartrace_dpi_new(config, NULL, elf, hart, reports);
        if (hartrace_dpi_status(made) == 0) {
            result = checker_count;
            checkers[checker_count++] = made;
        } else {
            vpi_printf("%s\n", hartrace_dpi_text(made));
        }
    }
    free(config);
    free(elf);
    answer(result, vpiIntVal);
    return 0;
}

static PLI_INT32 retire_call(PLI_BYTE8 *data)
{
    vpiHandle list = arguments();
    void *self = checker(list);
    long long values[13];
    int unknown = 0, index;

    (void)data;
    for (index = 0; index < 13; index++)
        values[index] = number(list, &unknown);
    vpi_free_object(list);
    if (unknown)
        vpi_printf("hartrace: a signal of the port is X or Z\n");
    answer(unknown ? -1
                   : hartrace_dpi_retire(self, (int)values[0], values[1], (int)values[2],
                                         (int)values[3], (int)values[4], values[5], values[6],
                                         (int)values[7], values[8], values[9],
                                         (int)values[10], values[11], values[12]),
           vpiIntVal);
    return 0;
}

static PLI_INT32 report_call(PLI_BYTE8 *data)
{
    vpiHandle list = arguments();

    (void)data;
    /* vpi_printf has a small buffer in some versions. */
    const char *text = hartrace_dpi_text(checker(list));
    vpi_free_object(list);
    while (*text) {
        size_t length = strcspn(text, "\n");
        vpi_printf("%.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
    return 0;
}

static PLI_INT32 finish_call(PLI_BYTE8 *data)
{
    vpiHandle list = arguments();

    (void)data;
    answer(hartrace_dpi_finish(checker(list)), vpiIntVal);
    vpi_free_object(list);
    return 0;
}

static PLI_INT32 retired_call(PLI_BYTE8 *data)
{
    vpiHandle list = arguments();

    (void)data;
    answer(hartrace_dpi_retired(checker(list)), vpiTimeVal);
    vpi_free_object(list);
    return 0;
}

static void add(const char *name, PLI_INT32 type, PLI_INT32 result,
                PLI_INT32 (*call)(PLI_BYTE8 *))
{
    s_vpi_systf_data data = {0};

    data.type = type;
    data.sysfunctype = result;
    data.tfname = (char *)name;
    data.calltf = call;
    vpi_register_systf(&data);
}

static void begin(void)
{
    add("$hartrace_new", vpiSysFunc, vpiIntFunc, new_call);
    add("$hartrace_retire", vpiSysFunc, vpiIntFunc, retire_call);
    add("$hartrace_finish", vpiSysFunc, vpiIntFunc, finish_call);
    add("$hartrace_retired", vpiSysFunc, vpiTimeFunc, retired_call);
    add("$hartrace_report", vpiSysTask, 0, report_call);
}

void (*vlog_startup_routines[])(void) = {begin, NULL};
