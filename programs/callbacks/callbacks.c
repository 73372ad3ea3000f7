/* Calls that go through a pointer: a dispatch table, an event queue, a state
 * machine, tail calls, and objects with virtual methods.
 */

#include "runtime.h"

/* --- A dispatch table: a calculator in reverse Polish notation ------------ */

typedef int32_t operator_fn(int32_t, int32_t);

static int32_t add(int32_t a, int32_t b)        { return a + b; }
static int32_t subtract(int32_t a, int32_t b)   { return a - b; }
static int32_t multiply(int32_t a, int32_t b)   { return a * b; }
static int32_t divide(int32_t a, int32_t b)     { return b != 0 ? a / b : 0; }
static int32_t remainder(int32_t a, int32_t b)  { return b != 0 ? a % b : a; }

static int32_t power(int32_t base, int32_t exponent)
{
    int32_t result = 1;
    for (; exponent > 0; exponent--)
        result *= base;
    return result;
}

static operator_fn *const operators[128] = {
    ['+'] = add, ['-'] = subtract, ['*'] = multiply, ['/'] = divide, ['%'] = remainder,
    ['^'] = power,
};

/* Numbers have one digit; everything else is an operator. */
NOINLINE static int32_t calculate(const char *expression)
{
    int32_t stack[16];
    size_t top = 0;
    for (; *expression != '\0'; expression++) {
        char c = *expression;
        if (c >= '0' && c <= '9') {
            stack[top++] = c - '0';
        } else {
            operator_fn *apply = operators[c & 127];
            top--;
            stack[top - 1] = apply(stack[top - 1], stack[top]);
        }
    }
    return stack[0];
}

/* --- An event queue: handlers that post further events -------------------- */

typedef void handler_fn(void *context, uint32_t now);

struct event {
    uint32_t due;
    uint32_t serial;            /* events due at once: first come, first served */
    handler_fn *handler;
    void *context;
};

enum { EVENTS = 32 };

static struct event queue[EVENTS];      /* a heap: the next event first */
static size_t queued;
static uint32_t posted;

static bool earlier(const struct event *a, const struct event *b)
{
    return a->due != b->due ? a->due < b->due : a->serial < b->serial;
}

static void post(uint32_t due, handler_fn *handler, void *context)
{
    struct event event = { due, posted++, handler, context };
    size_t place = queued++;
    for (; place > 0 && earlier(&event, &queue[(place - 1) / 2]); place = (place - 1) / 2)
        queue[place] = queue[(place - 1) / 2];
    queue[place] = event;
}

static struct event take(void)
{
    struct event first = queue[0], moved = queue[--queued];
    size_t place = 0;
    for (size_t child; (child = 2 * place + 1) < queued; place = child) {
        if (child + 1 < queued && earlier(&queue[child + 1], &queue[child]))
            child++;
        if (!earlier(&queue[child], &moved))
            break;
        queue[place] = queue[child];
    }
    queue[place] = moved;
    return first;
}

struct metronome {
    uint32_t period, beats;
};

static uint32_t rhythm = HASH_SEED;

static void beat(void *context, uint32_t now)
{
    struct metronome *metronome = context;
    metronome->beats++;
    rhythm = hash_word(rhythm, now ^ metronome->period << 16);
    post(now + metronome->period, beat, metronome);
}

static void stop(void *context, uint32_t now)
{
    *(uint32_t *)context = now;
    queued = 0;
}

static void run_events(void)
{
    static struct metronome metronomes[] = { { 3, 0 }, { 5, 0 }, { 7, 0 } };
    uint32_t end = 0, handled = 0;
    for (size_t i = 0; i < COUNT_OF(metronomes); i++)
        post(metronomes[i].period, beat, &metronomes[i]);
    post(210, stop, &end);
    while (queued > 0) {
        struct event event = take();
        event.handler(event.context, event.due);
        handled++;
    }
    expect(10, "events: stopped at", end, 210);
    expect(11, "  beats every 3", metronomes[0].beats, 69);
    expect(12, "  beats every 5", metronomes[1].beats, 41);
    expect(13, "  beats every 7", metronomes[2].beats, 29);
    expect(14, "  handled", handled, 140);
    expect_hex(15, "  rhythm", rhythm, 0x2e63cbc2);
}

/* --- A state machine: every state is a function --------------------------- */

struct scanner;
typedef void state_fn(struct scanner *, char);

struct scanner {
    state_fn *state;
    uint32_t words, numbers, comments;
};

static void in_gap(struct scanner *, char);

static void in_word(struct scanner *scanner, char c)
{
    if (c == ' ')
        scanner->state = in_gap;
}

static void in_number(struct scanner *scanner, char c)
{
    if (c == ' ') {
        scanner->state = in_gap;
    } else if (c < '0' || c > '9') {
        scanner->numbers--;     /* it was none */
        scanner->words++;
        scanner->state = in_word;
    }
}

static void in_comment(struct scanner *scanner, char c)
{
    if (c == ')')
        scanner->state = in_gap;
}

static void in_gap(struct scanner *scanner, char c)
{
    if (c == '(') {
        scanner->comments++;
        scanner->state = in_comment;
    } else if (c >= '0' && c <= '9') {
        scanner->numbers++;
        scanner->state = in_number;
    } else if (c != ' ') {
        scanner->words++;
        scanner->state = in_word;
    }
}

static void run_scanner(void)
{
    struct scanner scanner = { .state = in_gap };
    for (const char *c = "the 3rd of 12 (or 13?) rows has 40 seats (as in 1897) and 2 doors"; *c; c++)
        scanner.state(&scanner, *c);
    expect(20, "scanner: words", scanner.words, 8);
    expect(21, "  numbers", scanner.numbers, 3);
    expect(22, "  comments", scanner.comments, 2);
}

/* --- Tail calls: Collatz, hopping between two functions ------------------- */

static uint32_t fall(uint32_t n, uint32_t steps);
static uint32_t rise(uint32_t n, uint32_t steps);

typedef uint32_t step_fn(uint32_t, uint32_t);

/* Not constant, so that the call stays one through a pointer. */
static step_fn *volatile next_step[2] = { fall, rise };

NOINLINE static uint32_t fall(uint32_t n, uint32_t steps)
{
    n /= 2;
    return n == 1 ? steps : next_step[n % 2](n, steps + 1);
}

NOINLINE static uint32_t rise(uint32_t n, uint32_t steps)
{
    return fall(3 * n + 1, steps + 1);
}

/* --- Virtual methods ------------------------------------------------------- */

struct shape;

struct shape_class {
    const char *name;
    const struct shape_class *parent;
    uint32_t (*area)(const struct shape *);
    uint32_t (*perimeter)(const struct shape *);
    void (*grow)(struct shape *, uint32_t by);
};

struct shape {
    const struct shape_class *class;
};

struct rectangle {
    struct shape shape;
    uint32_t width, height;
};

/* A rectangle without a piece of its corner. */
struct notched {
    struct rectangle rectangle;
    uint32_t notch;
};

static uint32_t rectangle_area(const struct shape *shape)
{
    const struct rectangle *r = (const struct rectangle *)shape;
    return r->width * r->height;
}

static uint32_t rectangle_perimeter(const struct shape *shape)
{
    const struct rectangle *r = (const struct rectangle *)shape;
    return 2 * (r->width + r->height);
}

static void rectangle_grow(struct shape *shape, uint32_t by)
{
    struct rectangle *r = (struct rectangle *)shape;
    r->width += by;
    r->height += by;
}

/* A square stays one, whichever of its sides grows. */
static void square_grow(struct shape *shape, uint32_t by)
{
    struct rectangle *r = (struct rectangle *)shape;
    r->width = r->height += 2 * by;
}

static uint32_t notched_area(const struct shape *shape)
{
    const struct notched *n = (const struct notched *)shape;
    return shape->class->parent->area(shape) - n->notch * n->notch;
}

static void notched_grow(struct shape *shape, uint32_t by)
{
    shape->class->parent->grow(shape, by);
    ((struct notched *)shape)->notch++;
}

static const struct shape_class rectangle_class = {
    "rectangle", NULL, rectangle_area, rectangle_perimeter, rectangle_grow,
};
static const struct shape_class square_class = {
    "square", &rectangle_class, rectangle_area, rectangle_perimeter, square_grow,
};
static const struct shape_class notched_class = {
    "notched", &rectangle_class, notched_area, rectangle_perimeter, notched_grow,
};

static void run_shapes(void)
{
    static struct rectangle rectangle = { { &rectangle_class }, 3, 4 };
    static struct rectangle square = { { &square_class }, 5, 5 };
    static struct notched notched = { { { &notched_class }, 6, 7 }, 1 };
    static struct shape *const shapes[] = {
        &rectangle.shape, &square.shape, &notched.rectangle.shape,
    };
    static const uint32_t areas[] = { 182, 625, 247 };
    static const uint32_t perimeters[] = { 54, 100, 66 };

    for (uint32_t round = 0; round < 4; round++)
        for (size_t i = 0; i < COUNT_OF(shapes); i++)
            shapes[i]->class->grow(shapes[i], 1 + round);
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct shape_class *class = shapes[i]->class;
        printf("%s\n", class->name);
        expect(40 + 2 * (int)i, "  area", class->area(shapes[i]), areas[i]);
        expect(41 + 2 * (int)i, "  perimeter", class->perimeter(shapes[i]), perimeters[i]);
    }
}

int main(void)
{
    expect(1, "3 4 + 5 * 6 -", (uint32_t)calculate("34+5*6-"), 29);
    expect(2, "2 9 ^ 7 % 8 3 / *", (uint32_t)calculate("29^7%83/*"), 2);
    run_events();
    run_scanner();
    expect(30, "collatz 27: steps", rise(27, 1), 111);
    expect(31, "collatz 871: steps", rise(871, 1), 178);
    run_shapes();
    return verdict();
}
