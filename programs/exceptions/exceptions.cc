// C++ exceptions: thrown across many frames, caught by type, thrown again, with
// destructors that run on the way. The unwinder is that of libgcc; abi.cc has what a
// C++ library would add to it.

#include "host.h"

namespace {

struct Overflow { unsigned at; };
struct NotFound { unsigned key; };

unsigned destroyed;

// Counts that it was left.
struct Guard {
    unsigned weight;
    explicit Guard(unsigned w) : weight(w) {}
    ~Guard() { destroyed += weight; }
};

NOINLINE unsigned find(unsigned key, unsigned limit)
{
    if (key >= limit)
        throw NotFound{key};
    return key * key;
}

NOINLINE unsigned descend(unsigned depth, unsigned limit)
{
    Guard guard(1);
    if (depth > limit)
        throw Overflow{depth};
    unsigned below = descend(depth + 1, limit);
    return below + 1;
}

// Catches one kind and lets the other pass.
NOINLINE unsigned look_up(unsigned key)
{
    Guard guard(100);
    try {
        return find(key, 10);
    } catch (const Overflow &) {
        return 0;
    }
}

NOINLINE unsigned guarded(unsigned key)
{
    try {
        return look_up(key);
    } catch (const NotFound &missing) {
        return 1000 + missing.key;
    }
}

// Catches, and throws the same again.
NOINLINE unsigned again(unsigned limit)
{
    try {
        return descend(0, limit);
    } catch (const Overflow &) {
        Guard guard(1000);
        throw;
    }
}

NOINLINE unsigned depth_of(unsigned limit)
{
    try {
        return again(limit);
    } catch (const Overflow &overflow) {
        return overflow.at;
    }
}

NOINLINE unsigned rounds(unsigned count)
{
    unsigned caught = 0;
    for (unsigned i = 0; i < count; i++) {
        try {
            caught += find(i % 16, 8) & 1;
        } catch (...) {
            caught += 2;
        }
    }
    return caught;
}

} // namespace

int main()
{
    expect(1, "found", guarded(7), 49);
    expect(2, "not found", guarded(17), 1017);
    expect(3, "destroyed", destroyed, 200);
    destroyed = 0;
    expect(4, "depth", depth_of(6), 7);
    expect(5, "destroyed", destroyed, 1008);
    expect(6, "rounds", rounds(16), 20);
    return verdict();
}
