/* Two tasks with records of their own: they are saved and restored when one
 * gives way to the other, and go on as if it had never been there.
 */

#include "ctr.h"

enum { DEPTH = 16 };

/* In switch.S: calls so often, and records with this mctrctl. */
void first_task(uintptr_t control, unsigned times);
void second_task(uintptr_t control, unsigned times);

extern const char first_task_call[], first_task_loop[], first_task_work[], second_task_call[],
    second_task_loop[], second_task_work[];

const struct place places[] = {
    LABEL(first_task_call), LABEL(first_task_loop), LABEL(first_task_work),
    LABEL(second_task_call), LABEL(second_task_loop), LABEL(second_task_work), END_OF_PLACES,
};

/* --- Contexts -------------------------------------------------------------- */

/* What of the records belongs to a task; its control register is 0 while it
 * does not run. */
struct context {
    csr_t status;
    struct record entries[DEPTH];
};

static void save(struct context *context)
{
    context->status = csr_read(sctrstatus);
    for (size_t i = 0; i < DEPTH; i++) {
        csr_write(ctr_select, 0x200 + i);
        context->entries[i].source = csr_read(ctr_source);
        context->entries[i].target = csr_read(ctr_target);
        context->entries[i].data = csr_read(ctr_data);
    }
}

/* The status first: it says which physical entry each of them is. */
static void restore(const struct context *context)
{
    ctr_clear();
    csr_write(sctrstatus, context->status);
    for (size_t i = 0; i < DEPTH; i++) {
        csr_write(ctr_select, 0x200 + i);
        csr_write(ctr_source, context->entries[i].source);
        csr_write(ctr_target, context->entries[i].target);
        csr_write(ctr_data, context->entries[i].data);
    }
}

static struct context contexts[2];

static void switch_tasks(size_t from, size_t to)
{
    save(&contexts[from]);
    restore(&contexts[to]);
}

/* --- Tasks ----------------------------------------------------------------- */

static void show_status(void)
{
    csr_t status = csr_read(sctrstatus);
    printf("WRPTR %u%s\n", (unsigned)(status & CTR_WRPTR), status & CTR_FROZEN ? ", frozen" : "");
}

int main(void)
{
    ctr_set_up(DEPTH);

    first_task(CTR_M, 2);
    show_status();
    switch_tasks(0, 1);
    second_task(CTR_M, 1);
    show_status();
    switch_tasks(1, 0);
    first_task(CTR_M, 1);
    show_status();
    show_records("the first task, twice and once", DEPTH);

    /* The second one is frozen when it comes back. */
    contexts[1].status |= CTR_FROZEN;
    switch_tasks(0, 1);
    second_task(CTR_M, 5);
    show_status();
    show_records("the second task, frozen", DEPTH);
    csr_write(sctrstatus, csr_read(sctrstatus) & ~CTR_FROZEN);
    second_task(CTR_M, 6);
    show_status();
    show_records("the second task, beyond the depth", DEPTH);

    switch_tasks(1, 0);
    show_status();
    show_records("the first task is as it was", DEPTH);
    switch_tasks(0, 1);
    show_status();
    show_records("and so is the second", DEPTH);
    second_task(CTR_M | CTR_RASEMU, 3);
    show_status();
    return 0;
}
