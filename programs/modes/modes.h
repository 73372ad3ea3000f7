/* Three levels of privilege in one program:
 *
 *   modes.c     machine mode: sets up, emulates, forwards, owns the timer
 *   kernel.c    supervisor mode: system calls, faults, interrupts
 *   paging.c    its page tables (64-bit only)
 *   user.c      user mode: the program
 *   traps.S     the ways in and out
 */

#ifndef MODES_H
#define MODES_H

#include "runtime.h"

/* What an interrupted program had in its registers; the layout is known to
 * traps.S. x[0] is not used.
 */
struct frame {
    uintptr_t x[32];
    uintptr_t pc, status;
};

enum { A0 = 10, A1 = 11, A2 = 12, A3 = 13, A7 = 17 };

/* --- Machine mode ---------------------------------------------------------- */

void machine_trap(struct frame *frame);

/* In traps.S: goes to supervisor mode, on that stack; traps into machine mode
 * use the stack that is left behind.
 */
_Noreturn void enter_supervisor(void (*function)(void), void *stack_top);

/* What the kernel can ask of machine mode, by ecall. */
enum service {
    SERVICE_TIMER,              /* an interrupt soon */
    SERVICE_TIMER_SEEN,         /* take it back */
    SERVICE_EMULATED,           /* how many instructions were emulated */
    SERVICE_EXIT,
};

/* --- Supervisor mode ------------------------------------------------------- */

void kernel_main(void);
void kernel_trap(struct frame *frame);

/* In traps.S. */
void supervisor_entry(void);
_Noreturn void enter_user(void (*function)(uintptr_t), uintptr_t argument, uintptr_t stack_top);

/* Memory for the user: an address range that gets its pages when they are
 * touched, with the stack at its end. Without paging it is plain memory.
 */
enum { PAGE = 4096, ARENA_PAGES = 16 };

#if __riscv_xlen == 64
#define PAGING 1
#define ARENA 0x40000000ul
#else
#define PAGING 0
#endif

/* Translation on. */
void paging_start(void);

/* Whether the fault at `address` could be mended, so that the instruction can
 * be tried again.
 */
bool paging_mend(uintptr_t address, uintptr_t cause);

/* Prints what was done. */
void paging_report(void);

/* --- User mode ------------------------------------------------------------- */

/* `arena` is where the memory for the user begins. */
void user_main(uintptr_t arena);

enum syscall {
    SYSCALL_WRITE,              /* text, length */
    SYSCALL_EXPECT,             /* code, text, got, want */
    SYSCALL_RECOVER,            /* address: where to go on after the next fault */
    SYSCALL_INTERRUPT,          /* raise a software interrupt */
    SYSCALL_TIMER,              /* ask for a timer interrupt */
    SYSCALL_INTERRUPTS,         /* how many there were: 0 software, 1 timer */
    SYSCALL_BREAKPOINTS,        /* how many there were */
    SYSCALL_LENGTH,             /* of a text */
    SYSCALL_EXIT,
    SYSCALL_COUNT,
};

#endif
