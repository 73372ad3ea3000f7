/*
 * libhartrace for SystemVerilog: functions with plain arguments, which hartrace_rvfi.sv and
 * hartrace_rvvi.sv import by DPI-C. Compile it with the simulation and link libhartrace.
 */
#include <hartrace.h>
#include <stdlib.h>
#include <string.h>

/* Some simulators compile it as C++. */
#ifdef __cplusplus
extern "C" {
#endif

#define MOST_WRITES 32

typedef struct {
    hartrace_check *check;
    /* Registers that the next retirement writes besides rd. */
    hartrace_write writes[MOST_WRITES];
    size_t count;
    int too_many;
} dpi_check;

static const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* A checker; hartrace_dpi_status() says whether it can be used. */
void *hartrace_dpi_new(const char *config_file, const char *config, const char *elf, int hart,
                       int reports)
{
    dpi_check *self = (dpi_check *)calloc(1, sizeof *self);
    hartrace_check_options options;

    if (!self)
        return NULL;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.hart = (uint32_t)hart;
    options.reports = (uint32_t)reports;
    options.config_file = text_or_null(config_file);
    options.config = text_or_null(config);
    options.elf_file = text_or_null(elf);
    hartrace_check_new(&options, &self->check);
    return self;
}

/* 0, or why the checker cannot be used. */
int hartrace_dpi_status(void *handle)
{
    dpi_check *self = (dpi_check *)handle;
    hartrace_counts counts;

    if (!self || !self->check)
        return HARTRACE_ARGUMENT;
    memset(&counts, 0, sizeof counts);
    counts.size = sizeof counts;
    if (*hartrace_check_text(self->check))
        return HARTRACE_CONFIG;
    return hartrace_check_counts(self->check, &counts);
}

/* The next retirement writes this register, too. */
void hartrace_dpi_write(void *handle, int kind, int number, long long value)
{
    dpi_check *self = (dpi_check *)handle;

    if (!self)
        return;
    if (self->count == MOST_WRITES) {
        self->too_many = 1;
        return;
    }
    self->writes[self->count].kind = (uint32_t)kind;
    self->writes[self->count].number = (uint32_t)number;
    self->writes[self->count].value = (uint64_t)value;
    self->count++;
}

int hartrace_dpi_retire(void *handle, int valid, long long order, int insn, int flags,
                        int mode, long long pc_rdata, long long pc_wdata, int rd_addr,
                        long long rd_wdata, long long mem_addr, int mem_masks,
                        long long mem_rdata, long long mem_wdata)
{
    dpi_check *self = (dpi_check *)handle;
    hartrace_retired retired;
    hartrace_status status;

    if (!self)
        return HARTRACE_ARGUMENT;
    memset(&retired, 0, sizeof retired);
    retired.size = sizeof retired;
    retired.valid = (uint32_t)valid;
    retired.order = (uint64_t)order;
    retired.insn = (uint32_t)insn;
    retired.trap = flags & 1;
    retired.halt = flags >> 1 & 1;
    retired.intr = flags >> 2 & 1;
    retired.mode = (uint8_t)mode;
    retired.pc_rdata = (uint64_t)pc_rdata;
    retired.pc_wdata = (uint64_t)pc_wdata;
    retired.rd_addr = (uint8_t)rd_addr;
    retired.rd_wdata = (uint64_t)rd_wdata;
    retired.mem_addr = (uint64_t)mem_addr;
    retired.mem_rmask = mem_masks & 0xff;
    retired.mem_wmask = mem_masks >> 8 & 0xff;
    retired.mem_rdata = (uint64_t)mem_rdata;
    retired.mem_wdata = (uint64_t)mem_wdata;
    retired.writes = self->writes;
    retired.write_count = self->count;
    status = self->too_many ? HARTRACE_ARGUMENT : hartrace_check_retire(self->check, &retired);
    self->count = 0;
    self->too_many = 0;
    return status;
}

int hartrace_dpi_finish(void *handle)
{
    dpi_check *self = (dpi_check *)handle;

    return self ? hartrace_check_finish(self->check) : HARTRACE_ARGUMENT;
}

long long hartrace_dpi_retired(void *handle)
{
    dpi_check *self = (dpi_check *)handle;
    hartrace_counts counts;

    memset(&counts, 0, sizeof counts);
    counts.size = sizeof counts;
    if (!self || hartrace_check_counts(self->check, &counts) != HARTRACE_OK)
        return 0;
    return (long long)counts.retired;
}

/* The report of the difference, or the error. */
const char *hartrace_dpi_text(void *handle)
{
    dpi_check *self = (dpi_check *)handle;

    return hartrace_check_text(self ? self->check : NULL);
}

void hartrace_dpi_free(void *handle)
{
    dpi_check *self = (dpi_check *)handle;

    if (self)
        hartrace_check_free(self->check);
    free(self);
}

#ifdef __cplusplus
}
#endif
