/* Speed: one indirect jump every few instructions, to ever different places. */

#include "machine.h"
#include "samples.h"

enum { ROUNDS = 27 };

static struct machine machine;
static uint8_t code[256];

static uint32_t run(uint32_t hash, const char *text, int32_t n)
{
    size_t length = assemble(text, code, sizeof code);
    machine.variables['n' - 'a'] = n;
    hash = hash_word(hash, machine_run(&machine, code, length));
    for (uint32_t i = 0; i < machine.outputs; i++)
        hash = hash_word(hash, (uint32_t)machine.output[i]);
    return hash_word(hash, machine.steps);
}

int main(void)
{
    uint32_t hash = HASH_SEED;
    for (int32_t round = 0; round < ROUNDS; round++) {
        hash = run(hash, sample_primes, 4000 - round);
        hash = run(hash, sample_gcd, 30 + round % 10);
        hash = run(hash, sample_fibonacci, 14 + round % 4);
    }
    expect_hex(1, "interpreter", hash, 0x02833cee);
    printf("# %llu instructions\n", (unsigned long long)instructions_retired());
    return verdict();
}
