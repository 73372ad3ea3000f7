/* Control flow without matching calls and returns: exceptions that unwind many
 * frames at once, and generators that run on stacks of their own.
 */

#include "context.h"

/* --- Exceptions ------------------------------------------------------------ */

enum error { NO_ERROR, EXPECTED_NUMBER, EXPECTED_CLOSING, DIVIDED_BY_ZERO, TRAILING_TEXT };

/* Innermost first. */
static struct handler {
    struct mark mark;
    struct handler *outer;
} *handlers;

_Noreturn static void raise(enum error error)
{
    struct handler *handler = handlers;
    handlers = handler->outer;
    jump_back(&handler->mark, error);
}

/* A calculator by recursive descent; errors leave it from any depth. */

static const char *input;

static int32_t sum(void);

NOINLINE static int32_t atom(void)
{
    int32_t value = 0;
    if (*input == '(') {
        input++;
        value = sum();
        if (*input++ != ')')
            raise(EXPECTED_CLOSING);
        return value;
    }
    if (*input < '0' || *input > '9')
        raise(EXPECTED_NUMBER);
    while (*input >= '0' && *input <= '9')
        value = value * 10 + (*input++ - '0');
    return value;
}

NOINLINE static int32_t product(void)
{
    int32_t value = atom();
    while (*input == '*' || *input == '/') {
        char operator = *input++;
        int32_t right = atom();
        if (operator == '*')
            value *= right;
        else if (right != 0)
            value /= right;
        else
            raise(DIVIDED_BY_ZERO);
    }
    return value;
}

NOINLINE static int32_t sum(void)
{
    int32_t value = product();
    while (*input == '+' || *input == '-') {
        char operator = *input++;
        int32_t right = product();
        value = operator == '+' ? value + right : value - right;
    }
    return value;
}

NOINLINE static enum error evaluate(const char *text, int32_t *result)
{
    struct handler handler = { .outer = handlers };
    enum error error = set_mark(&handler.mark);
    if (error != NO_ERROR)
        return error;           /* `raise` has removed the handler */
    handlers = &handler;
    input = text;
    *result = sum();
    if (*input != '\0')
        raise(TRAILING_TEXT);
    handlers = handler.outer;
    return NO_ERROR;
}

static void run_exceptions(void)
{
    static const struct {
        const char *text;
        enum error error;
        int32_t value;
    } cases[] = {
        { "1+2*3",                      NO_ERROR,         7 },
        { "(1+2)*(3+4)/(2+1)",          NO_ERROR,         7 },
        { "((((((((7))))))))*6",        NO_ERROR,         42 },
        { "1+(2*(3+(4*(5+(6*))))",      EXPECTED_NUMBER,  0 },
        { "((((1+2)",                   EXPECTED_CLOSING, 0 },
        { "8/(4-(2*(1+1)))",            DIVIDED_BY_ZERO,  0 },
        { "1+2)",                       TRAILING_TEXT,    0 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int32_t value = 0;
        enum error error = evaluate(cases[i].text, &value);
        expect(1 + 2 * (int)i, cases[i].text, error, cases[i].error);
        if (error == NO_ERROR)
            expect(2 + 2 * (int)i, "  value", (uint32_t)value, (uint32_t)cases[i].value);
    }
    expect(20, "handlers left", handlers != NULL, 0);
}

/* Handlers within handlers: every level catches, notes and raises again. */
NOINLINE static uint32_t climb(unsigned level)
{
    static volatile uint32_t caught;
    struct handler handler = { .outer = handlers };
    if (set_mark(&handler.mark) != 0) {
        caught++;
        if (handlers != NULL)
            raise(DIVIDED_BY_ZERO);
        return caught;
    }
    handlers = &handler;
    if (level == 0)
        raise(DIVIDED_BY_ZERO);
    return climb(level - 1);
}

/* --- Generators ------------------------------------------------------------ */

struct generator {
    struct mark self, caller;
    void (*body)(struct generator *);
    uint32_t argument;
    uint32_t value;
    bool finished;
    struct generator *source;   /* what a filter reads from */
    char stack[2048] __attribute__((aligned(16)));
};

/* To be called by the body: hands out a value. */
static void yield(struct generator *generator, uint32_t value)
{
    generator->value = value;
    switch_context(&generator->self, &generator->caller);
}

static void generator_main(void *argument)
{
    struct generator *generator = argument;
    generator->body(generator);
    generator->finished = true;
    for (;;)
        switch_context(&generator->self, &generator->caller);
}

static void start(struct generator *generator, void (*body)(struct generator *), uint32_t argument,
                  struct generator *source)
{
    generator->body = body;
    generator->argument = argument;
    generator->source = source;
    generator->finished = false;
    make_context(&generator->self, generator->stack + sizeof generator->stack, generator_main,
                 generator);
}

/* The next value, or false at the end. */
static bool next(struct generator *generator, uint32_t *value)
{
    if (generator->finished)
        return false;
    switch_context(&generator->caller, &generator->self);
    *value = generator->value;
    return !generator->finished;
}

static void count_from_two(struct generator *self)
{
    for (uint32_t i = 2; i <= self->argument; i++)
        yield(self, i);
}

static void without_multiples(struct generator *self)
{
    uint32_t value;
    while (next(self->source, &value))
        if (value % self->argument != 0)
            yield(self, value);
}

/* Yields from within a recursion: the moves of the towers of Hanoi. */
static void hanoi(struct generator *self, uint32_t discs, uint32_t from, uint32_t to)
{
    if (discs == 0)
        return;
    hanoi(self, discs - 1, from, 3 - from - to);
    yield(self, discs << 4 | from << 2 | to);
    hanoi(self, discs - 1, 3 - from - to, to);
}

static void hanoi_moves(struct generator *self)
{
    hanoi(self, self->argument, 0, 2);
}

/* A value that lives in a saved floating-point register across the yields. */
static void halves(struct generator *self)
{
    double value = self->argument;
    for (; value >= 1; value *= 0.5)
        yield(self, (uint32_t)value);
}

enum { FILTERS = 6 };

static struct generator numbers, filters[FILTERS], moves, halving;

/* The sieve of Eratosthenes as a chain of generators, longer by one for each
 * prime found.
 */
static void run_generators(void)
{
    struct generator *last = &numbers;
    uint32_t value, count = 0, total = 0, used = 0;
    start(&numbers, count_from_two, 200, NULL);
    while (next(last, &value)) {
        count++;
        total += value;
        if (used < FILTERS) {
            start(&filters[used], without_multiples, value, last);
            last = &filters[used++];
        }
    }
    expect(30, "primes below 200", count, 46);
    expect(31, "  their sum", total, 4227);

    uint32_t hash = HASH_SEED, move_count = 0, half_sum = 0;
    start(&moves, hanoi_moves, 7, NULL);
    start(&halving, halves, 1000, NULL);
    bool more_moves = true, more_halves = true;
    while (more_moves || more_halves) {         /* in turn */
        if ((more_moves = next(&moves, &value))) {
            hash = hash_word(hash, value);
            move_count++;
        }
        if ((more_halves = next(&halving, &value)))
            half_sum += value;
    }
    expect(32, "hanoi, 7 discs: moves", move_count, 127);
    expect_hex(33, "  hash of them", hash, 0xd8dfcf55);
    expect(34, "halves of 1000: sum", half_sum, 1994);
}

int main(void)
{
    run_exceptions();
    expect(21, "raised through 20 levels", climb(20), 21);
    run_generators();
    return verdict();
}
