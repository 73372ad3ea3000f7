/* Leaving a function other than by return: jumps back to a place that was
 * marked, and switches between stacks.
 */

#ifndef CONTEXT_H
#define CONTEXT_H

#include "runtime.h"

/* What a call preserves: ra, sp, s0 to s11, fs0 to fs11. */
struct mark {
    uintptr_t integer[14];
    double floating[12];
};

/* Marks this place and returns 0. `jump_back` to the mark returns from here a
 * second time, with another value than 0. The function that set the mark must
 * not have returned.
 */
int set_mark(struct mark *mark) __attribute__((returns_twice));
_Noreturn void jump_back(const struct mark *mark, int value);

/* Saves this place in *from and goes on at *to; returns when somebody switches
 * back.
 */
void switch_context(struct mark *from, const struct mark *to);

/* Makes a place at which `function(argument)` begins, on the stack that ends
 * at `stack_top`. The function must not return.
 */
void make_context(struct mark *mark, void *stack_top, void (*function)(void *), void *argument);

#endif
