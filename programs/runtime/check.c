/* Self checks: a program's results against values known beforehand. */

#include "runtime.h"

static int first_failure;

static void judge(int code, bool good)
{
    if (!good && first_failure == 0)
        first_failure = code;
}

void expect(int code, const char *what, uint32_t got, uint32_t want)
{
    printf("%-28s %10u", what, (unsigned)got);
    if (got == want)
        printf("\n");
    else
        printf("  FAILED, not %u\n", (unsigned)want);
    judge(code, got == want);
}

void expect_hex(int code, const char *what, uint32_t got, uint32_t want)
{
    printf("%-28s   %08x", what, (unsigned)got);
    if (got == want)
        printf("\n");
    else
        printf("  FAILED, not %08x\n", (unsigned)want);
    judge(code, got == want);
}

int verdict(void)
{
    if (first_failure == 0)
        printf("all good\n");
    else
        printf("failed: check %d\n", first_failure);
    return first_failure;
}
