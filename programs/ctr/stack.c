/* RAS emulation: the records are the call stack. Recursion, deeper than the
 * array too; calls through pointers; a jump back over many frames, which leaves
 * calls behind; co-routines.
 */

#include "ctr.h"
#include "../longjmp/context.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* In coroutine.S. */
void swap_routines(void);

extern const char call_first[], first[], first_swap[], first_again[], first_return[], second[],
    second_swap[], second_again[];

enum { DEPTH = 16 };

/* --- The true stack -------------------------------------------------------- */

/* Where each function that has not returned begins, the innermost last. */
static const void *frames[64];
static size_t depth;

ALWAYS_INLINE void enter(const void *function)
{
    frames[depth++] = function;
}

ALWAYS_INLINE void leave(void)
{
    depth--;
}

/* --- Looking at it --------------------------------------------------------- */

/* What is called to look is not to be seen. */
ALWAYS_INLINE void stop(void)
{
    csr_set(sctrstatus, CTR_FROZEN);
}

ALWAYS_INLINE void go_on(void)
{
    csr_clear(sctrstatus, CTR_FROZEN);
}

static unsigned compared, different;

/* Whether the records, as far as they reach, are the true stack. */
static void compare(void)
{
    static struct record records[DEPTH];
    size_t found = read_records(records, DEPTH);
    size_t wanted = depth < DEPTH ? depth : DEPTH;
    bool same = found == wanted;

    for (size_t i = 0; same && i < found; i++)
        same = (records[i].target & ~1ul) == (uintptr_t)frames[depth - 1 - i];
    compared++;
    if (!same)
        different++;
}

static void show_comparison(void)
{
    printf("stacks compared: %u, different: %u\n", compared, different);
    compared = different = 0;
}

/* From here on calls are kept; `depth` is 0. */
ALWAYS_INLINE void begin(void)
{
    ctr_set_up(DEPTH);
    depth = 0;
    csr_write(mctrctl, CTR_M | CTR_RASEMU);
}

ALWAYS_INLINE void end(void)
{
    csr_write(mctrctl, 0);
}

/* --- Recursion ------------------------------------------------------------- */

NOINLINE static void descend(unsigned levels, const char *title)
{
    enter(descend);
    if (levels > 1) {
        descend(levels - 1, title);
    } else {
        stop();
        show_records(title, DEPTH);
        compare();
        go_on();
    }
    leave();
}

NOINLINE static uint32_t fibonacci(uint32_t n)
{
    uint32_t sum = n;
    enter(fibonacci);
    if (n > 1) {
        sum = fibonacci(n - 1);
        sum += fibonacci(n - 2);
    }
    stop();
    compare();
    go_on();
    leave();
    return sum;
}

static bool is_odd(unsigned n);

NOINLINE static bool is_even(unsigned n)
{
    enter(is_even);
    bool even = n == 0 || is_odd(n - 1);
    if (n == 0) {
        stop();
        show_records("mutual recursion", DEPTH);
        compare();
        go_on();
    }
    leave();
    return even;
}

NOINLINE static bool is_odd(unsigned n)
{
    enter(is_odd);
    bool odd = n != 0 && is_even(n - 1);
    leave();
    return odd;
}

static void recurse(void)
{
    begin();
    descend(5, "five deep");
    end();
    begin();
    descend(20, "twenty deep, sixteen are kept");
    end();
    show_records("after the returns", DEPTH);
    begin();
    uint32_t sum = fibonacci(10);
    end();
    printf("fibonacci(10) = %u\n", (unsigned)sum);
    begin();
    is_even(6);
    end();
    show_comparison();
}

/* --- Pointers -------------------------------------------------------------- */

NOINLINE static void visitor(unsigned n)
{
    enter(visitor);
    stop();
    if (n == 2)
        show_records("through pointers", DEPTH);
    compare();
    go_on();
    leave();
}

NOINLINE static void walk(unsigned n, void (*visit)(unsigned))
{
    enter(walk);
    if (n > 0)
        walk(n - 1, visit);
    visit(n);
    leave();
}

static void use_pointers(void)
{
    begin();
    walk(3, visitor);
    end();
    show_comparison();
}

/* --- A jump back ----------------------------------------------------------- */

static struct mark mark;
static volatile bool armed = true;

NOINLINE static void fall(unsigned levels)
{
    enter(fall);
    if (levels > 1)
        fall(levels - 1);
    else if (armed)
        jump_back(&mark, 1);
    leave();
}

NOINLINE static void guarded(void)
{
    enter(guarded);
    if (set_mark(&mark) == 0)
        fall(4);
    depth = 1;                  /* those that fell have no frame any more */
    stop();
    show_records("after a jump back: calls that nobody returned from", DEPTH);
    compare();
    go_on();
    leave();
}

static void jump(void)
{
    begin();
    guarded();
    end();
    show_comparison();
    show_records("and behind the function that caught it", DEPTH);
}

/* --- Co-routines ----------------------------------------------------------- */

static void swap(void)
{
    begin();
    swap_routines();
    end();
    show_records("after four swaps", DEPTH);
    csr_write(sctrstatus, 0);
}

const struct place places[] = {
    FUNCTION(descend), FUNCTION(fibonacci), FUNCTION(is_even), FUNCTION(is_odd),
    FUNCTION(recurse), FUNCTION(visitor), FUNCTION(walk), FUNCTION(use_pointers),
    FUNCTION(fall), FUNCTION(guarded), FUNCTION(jump), FUNCTION(jump_back), FUNCTION(set_mark),
    FUNCTION(swap), FUNCTION(swap_routines), LABEL(call_first), LABEL(first), LABEL(first_swap),
    LABEL(first_again), LABEL(first_return), LABEL(second), LABEL(second_swap),
    LABEL(second_again), END_OF_PLACES,
};

int main(void)
{
    recurse();
    use_pointers();
    jump();
    swap();
    return 0;
}
