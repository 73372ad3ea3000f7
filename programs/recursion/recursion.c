/* Functions that call themselves: deep stacks, wide call trees, calls in turn.
 */

#include "runtime.h"

static uint32_t calls, depth, deepest;

static inline void enter(void)
{
    calls++;
    if (++depth > deepest)
        deepest = depth;
}

static inline void leave(void)
{
    depth--;
}

/* --- Ackermann: few arguments, a deep stack ------------------------------ */

NOINLINE static uint32_t ackermann(uint32_t m, uint32_t n)
{
    uint32_t result;
    enter();
    if (m == 0)
        result = n + 1;
    else if (n == 0)
        result = ackermann(m - 1, 1);
    else
        result = ackermann(m - 1, ackermann(m, n - 1));
    leave();
    return result;
}

/* --- Fibonacci: a wide tree ----------------------------------------------- */

NOINLINE static uint32_t fibonacci(uint32_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* --- Towers of Hanoi, with discs that are really moved ------------------- */

enum { DISCS = 9 };

struct peg {
    uint8_t disc[DISCS];
    uint8_t height;
};

static struct peg pegs[3];
static uint32_t moves, illegal_moves;

static void move_disc(struct peg *from, struct peg *to)
{
    uint8_t disc = from->disc[--from->height];
    if (to->height > 0 && to->disc[to->height - 1] < disc)
        illegal_moves++;
    to->disc[to->height++] = disc;
    moves++;
}

NOINLINE static void hanoi(unsigned discs, struct peg *from, struct peg *to, struct peg *other)
{
    if (discs == 0)
        return;
    hanoi(discs - 1, from, other, to);
    move_disc(from, to);
    hanoi(discs - 1, other, to, from);
}

/* --- Queens: backtracking -------------------------------------------------- */

/* In how many ways the rows from `row` on can be filled. The masks have a bit
 * for every column that a queen above attacks: straight down, and along either
 * diagonal.
 */
NOINLINE static uint32_t queens(unsigned size, unsigned row, uint32_t straight, uint32_t left,
                                uint32_t right)
{
    if (row == size)
        return 1;
    uint32_t ways = 0;
    uint32_t open = ~(straight | left | right) & ((1u << size) - 1);
    while (open != 0) {
        uint32_t queen = open & -open;
        open ^= queen;
        ways += queens(size, row + 1, straight | queen, (left | queen) << 1,
                       (right | queen) >> 1);
    }
    return ways;
}

/* --- Mutual recursion: Hofstadter's female and male sequences ------------- */

static uint32_t male(uint32_t n);

NOINLINE static uint32_t female(uint32_t n)
{
    return n == 0 ? 1 : n - male(female(n - 1));
}

NOINLINE static uint32_t male(uint32_t n)
{
    return n == 0 ? 0 : n - female(male(n - 1));
}

int main(void)
{
    expect(1, "ackermann(2, 7)", ackermann(2, 7), 17);
    expect(2, "ackermann(3, 3)", ackermann(3, 3), 61);
    expect(3, "  calls", calls, 2584);
    expect(4, "  deepest", deepest, 63);

    expect(5, "fibonacci(16)", fibonacci(16), 987);

    for (unsigned disc = DISCS; disc > 0; disc--)
        pegs[0].disc[pegs[0].height++] = (uint8_t)disc;
    hanoi(DISCS, &pegs[0], &pegs[2], &pegs[1]);
    expect(6, "hanoi, 9 discs: moves", moves, (1u << DISCS) - 1);
    expect(7, "  illegal moves", illegal_moves, 0);
    expect(8, "  discs on the last peg", pegs[2].height, DISCS);

    expect(9, "queens on a 6 x 6 board", queens(6, 0, 0, 0, 0), 4);
    expect(10, "queens on an 8 x 8 board", queens(8, 0, 0, 0, 0), 92);

    expect(11, "female(20)", female(20), 13);
    expect(12, "male(20)", male(20), 12);
    return verdict();
}
