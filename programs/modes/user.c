/* User mode: a program that does what it may, and tries what it may not.
 *
 * Everything it uses is in pages of its own, so code and text are placed
 * there by hand; its data is on its stack and in the arena.
 */

#include "csr.h"
#include "modes.h"

#define USER_CODE __attribute__((section(".user.text"), noinline, noclone))

/* A text of the user's. */
#define TEXT(string) __extension__({                                         \
    static const char text_[] __attribute__((section(".user.rodata"))) = string; \
    text_;                                                                   \
})

/* In traps.S. */
uintptr_t user_syscall(uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3, enum syscall number);
uintptr_t user_attempt(void (*function)(uintptr_t), uintptr_t argument);
void attempt_load(uintptr_t address);
void attempt_store(uintptr_t address);
void attempt_jump(uintptr_t address);
void attempt_reserve(uintptr_t address);
void attempt_machine_register(uintptr_t);
void attempt_return_from_trap(uintptr_t);
void attempt_nothing(uintptr_t);
uintptr_t user_time(void);
void user_breakpoints(void);

#define WRITE(string) \
    user_syscall((uintptr_t)TEXT(string), sizeof(string) - 1, 0, 0, SYSCALL_WRITE)

#define EXPECT(code, what, got, want) \
    user_syscall((code), (uintptr_t)TEXT(what), (got), (want), SYSCALL_EXPECT)

USER_CODE static uintptr_t interrupts(uintptr_t kind)
{
    return user_syscall(kind, 0, 0, 0, SYSCALL_INTERRUPTS);
}

USER_CODE static void try_forbidden(void)
{
    uintptr_t cause = user_attempt(attempt_nothing, 0);
    EXPECT(10, "nothing: cause", cause, -1ul);
    cause = user_attempt(attempt_machine_register, 0);
    EXPECT(11, "machine register: cause", cause, CAUSE_ILLEGAL);
    cause = user_attempt(attempt_return_from_trap, 0);
    EXPECT(12, "return from trap: cause", cause, CAUSE_ILLEGAL);
    EXPECT(13, "unknown call: result", user_syscall(0, 0, 0, 0, SYSCALL_COUNT), -1ul);
    user_breakpoints();
    EXPECT(14, "breakpoints", user_syscall(0, 0, 0, 0, SYSCALL_BREAKPOINTS), 2);
}

USER_CODE static void try_interrupts(void)
{
    user_syscall(0, 0, 0, 0, SYSCALL_INTERRUPT);
    while (interrupts(0) == 0)
        ;
    EXPECT(20, "software interrupts", interrupts(0), 1);
    user_syscall(0, 0, 0, 0, SYSCALL_TIMER);
    while (interrupts(1) == 0)
        ;
    EXPECT(21, "timer interrupts", interrupts(1), 1);
}

USER_CODE static void try_clock(void)
{
    uintptr_t before = user_time();
    uintptr_t after = user_time();
    EXPECT(30, "time goes on", after >= before, 1);
}

/* A reservation on an address that is not aligned: misaligned, or no access;
 * a machine may choose.
 */
USER_CODE static void try_misaligned(uintptr_t arena)
{
    *(volatile uint32_t *)arena = 0;
    uintptr_t cause = user_attempt(attempt_reserve, arena + 1);
    EXPECT(40, "misaligned reservation", cause == 4 || cause == 5, 1);
}

#if PAGING

/* Sums over a page's first words. */
USER_CODE static uint32_t sum(uintptr_t address)
{
    const volatile uint32_t *word = (const volatile uint32_t *)address;
    uint32_t total = 0;
    for (size_t i = 0; i < 16; i++)
        total += word[i];
    return total;
}

USER_CODE static void try_paging(uintptr_t arena)
{
    /* Page 0 was written before; 1 and 2 are written, 3 and 4 only read. */
    for (uintptr_t page = 1; page <= 2; page++)
        for (size_t i = 0; i < 16; i++)
            ((volatile uint32_t *)(arena + page * PAGE))[i] = (uint32_t)(page * i);
    EXPECT(50, "page 1", sum(arena + 1 * PAGE), 120);
    EXPECT(51, "page 2", sum(arena + 2 * PAGE), 240);
    EXPECT(52, "page 3, not written", sum(arena + 3 * PAGE), 0);

    /* Page 4 is touched by the kernel first: a fault within a system call. */
    EXPECT(60, "page 4, by the kernel",
           user_syscall(arena + 4 * PAGE, 0, 0, 0, SYSCALL_LENGTH), 0);

    uintptr_t outside = arena + ARENA_PAGES * PAGE;
    EXPECT(53, "load outside: cause", user_attempt(attempt_load, outside), CAUSE_LOAD_PAGE_FAULT);
    EXPECT(54, "store outside: cause", user_attempt(attempt_store, outside),
           CAUSE_STORE_PAGE_FAULT);
    EXPECT(55, "jump outside: cause", user_attempt(attempt_jump, outside),
           CAUSE_FETCH_PAGE_FAULT);
    EXPECT(56, "jump into data: cause", user_attempt(attempt_jump, arena + PAGE),
           CAUSE_FETCH_PAGE_FAULT);

    /* Functions may begin at any even address, words may not. */
    uintptr_t kernel = (uintptr_t)kernel_main & ~3ul, user = (uintptr_t)user_main & ~3ul;
    EXPECT(57, "load from kernel: cause", user_attempt(attempt_load, kernel),
           CAUSE_LOAD_PAGE_FAULT);
    EXPECT(58, "jump to kernel: cause", user_attempt(attempt_jump, kernel),
           CAUSE_FETCH_PAGE_FAULT);
    EXPECT(59, "store to own code: cause", user_attempt(attempt_store, user),
           CAUSE_STORE_PAGE_FAULT);
}

#else

USER_CODE static void try_paging(uintptr_t arena)
{
    (void)arena;
}

#endif

USER_CODE void user_main(uintptr_t arena)
{
    WRITE("user mode\n");
    try_forbidden();
    try_interrupts();
    try_clock();
    try_misaligned(arena);
    try_paging(arena);
    user_syscall(42, 0, 0, 0, SYSCALL_EXIT);
}
