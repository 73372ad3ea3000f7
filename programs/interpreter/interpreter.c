/* A stack machine in software: assembles a few programs and runs them. Its
 * heart is a switch over the opcode, which is a jump through a table.
 */

#include "machine.h"
#include "samples.h"

static struct machine machine;
static uint8_t code[256];

static void run(int check, const char *name, const char *text, int32_t n,
                const uint32_t *want, size_t wanted)
{
    size_t length = assemble(text, code, sizeof code);
    memset(&machine, 0, sizeof machine);
    machine.variables['n' - 'a'] = n;
    enum stop stop = machine_run(&machine, code, length);

    printf("%s: %zu bytes, n = %d\n", name, length, (int)n);
    expect(check, "  stopped by", stop, STOP_HALT);
    expect(check + 1, "  outputs", machine.outputs, (uint32_t)wanted);
    for (size_t i = 0; i < wanted; i++)
        expect(check + 2, "  output", (uint32_t)machine.output[i], want[i]);
    printf("  %u steps\n", (unsigned)machine.steps);
}

/* Every way to stop but the good one. */
static void run_broken(int check)
{
    static const struct {
        const char *name;
        const char *text;
        enum stop stop;
    } broken[] = {
        { "stack empty",    "drop drop drop halt",      STOP_STACK },
        { "stack full",     "more: push 1 jump more",   STOP_STACK },
        { "calls too deep", "deep: call deep",          STOP_STACK },
        { "end of code",    "push 1",                   STOP_ADDRESS },
        { "division by 0",  "push 1 push 0 div halt",   STOP_DIVISION },
    };
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        size_t length = assemble(broken[i].text, code, sizeof code);
        expect(check++, broken[i].name, machine_run(&machine, code, length), broken[i].stop);
    }
    static const uint8_t unknown[] = { OPCODE_COUNT };
    expect(check++, "unknown opcode", machine_run(&machine, unknown, sizeof unknown), STOP_OPCODE);
    expect(check++, "unknown word", (uint32_t)assemble("push 1 fly", code, sizeof code), 0);
}

int main(void)
{
    static const uint32_t primes[] = { 168, 997 };
    static const uint32_t gcd[] = { 880 };
    static const uint32_t fibonacci[] = { 610 };

    run(1, "primes", sample_primes, 1000, primes, COUNT_OF(primes));
    run(4, "gcd", sample_gcd, 20, gcd, COUNT_OF(gcd));
    run(7, "fibonacci", sample_fibonacci, 15, fibonacci, COUNT_OF(fibonacci));
    run_broken(10);
    return verdict();
}
