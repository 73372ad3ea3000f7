/* Supervisor mode: what a kernel does. A table of system calls, faults that it
 * can mend and faults that it cannot, and interrupts.
 */

#include "csr.h"
#include "modes.h"

#define SUPERVISOR_SOFTWARE (1ul << 1)
#define SUPERVISOR_TIMER    (1ul << 5)

static uint32_t software_interrupts, timer_interrupts, breakpoints, nested_faults;

/* Where the user goes on after a fault that cannot be mended; 0: nowhere. */
static uintptr_t recovery;

static uintptr_t service(enum service number)
{
    register uintptr_t a0 __asm__("a0") = 0;
    register uintptr_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");
    return a0;
}

/* --- System calls ---------------------------------------------------------- */

/* From the user's memory, which the kernel sees only on purpose. Touching it
 * may fault, here in the kernel.
 */
static void copy_from_user(char *to, uintptr_t from, size_t size)
{
    csr_set(sstatus, MSTATUS_SUM);
    memcpy(to, (const void *)from, size);
    csr_clear(sstatus, MSTATUS_SUM);
}

static uintptr_t do_write(const uintptr_t *a)
{
    char text[64];
    size_t length = a[1] < sizeof text ? a[1] : sizeof text;
    copy_from_user(text, a[0], length);
    for (size_t i = 0; i < length; i++)
        put_char(text[i]);
    return length;
}

static uintptr_t do_expect(const uintptr_t *a)
{
    char text[32];
    copy_from_user(text, a[1], sizeof text);
    text[sizeof text - 1] = '\0';
    expect((int)a[0], text, (uint32_t)a[2], (uint32_t)a[3]);
    return 0;
}

static uintptr_t do_length(const uintptr_t *a)
{
    uintptr_t length = 0;
    char c;
    for (;; length++) {
        copy_from_user(&c, a[0] + length, 1);
        if (c == '\0')
            return length;
    }
}

static uintptr_t do_recover(const uintptr_t *a)
{
    recovery = a[0];
    return 0;
}

static uintptr_t do_interrupt(const uintptr_t *a)
{
    (void)a;
    csr_set(sip, SUPERVISOR_SOFTWARE);  /* taken on return to the user */
    return 0;
}

static uintptr_t do_timer(const uintptr_t *a)
{
    (void)a;
    return service(SERVICE_TIMER);
}

static uintptr_t do_interrupts(const uintptr_t *a)
{
    return a[0] == 0 ? software_interrupts : timer_interrupts;
}

static uintptr_t do_breakpoints(const uintptr_t *a)
{
    (void)a;
    return breakpoints;
}

static uintptr_t do_exit(const uintptr_t *a)
{
    printf("user mode ended with %u\n", (unsigned)a[0]);
    expect(90, "instructions emulated", (uint32_t)service(SERVICE_EMULATED), 2);
    if (PAGING) {
        expect(91, "faulted inside the kernel", nested_faults > 0, 1);
        paging_report();
    }
    return service(SERVICE_EXIT);
}

static uintptr_t (*const syscalls[SYSCALL_COUNT])(const uintptr_t *) = {
    [SYSCALL_WRITE]       = do_write,
    [SYSCALL_EXPECT]      = do_expect,
    [SYSCALL_RECOVER]     = do_recover,
    [SYSCALL_INTERRUPT]   = do_interrupt,
    [SYSCALL_TIMER]       = do_timer,
    [SYSCALL_INTERRUPTS]  = do_interrupts,
    [SYSCALL_BREAKPOINTS] = do_breakpoints,
    [SYSCALL_LENGTH]      = do_length,
    [SYSCALL_EXIT]        = do_exit,
};

/* --- Traps ----------------------------------------------------------------- */

static bool from_user(const struct frame *frame)
{
    return (frame->status & MSTATUS_SPP) == 0;
}

/* To the user's recovery, with the cause as the result. */
static void give_up(struct frame *frame, csr_t cause)
{
    if (!from_user(frame) || recovery == 0) {
        printf("unexpected trap: scause %lx sepc %lx stval %lx\n", cause,
               (unsigned long)frame->pc, csr_read(stval));
        exit(EXIT_UNEXPECTED_TRAP);
    }
    frame->pc = recovery;
    frame->x[A0] = cause;
    recovery = 0;
}

/* Past a breakpoint: 2 bytes if it is compressed, else 4. */
static void skip_instruction(struct frame *frame)
{
    uint16_t low;
    copy_from_user((char *)&low, frame->pc, sizeof low);
    frame->pc += (low & 3) == 3 ? 4 : 2;
}

void kernel_trap(struct frame *frame)
{
    csr_t cause = csr_read(scause);
    switch (cause) {
    case CAUSE_INTERRUPT | 1:
        csr_clear(sip, SUPERVISOR_SOFTWARE);
        software_interrupts++;
        break;
    case CAUSE_INTERRUPT | 5:
        service(SERVICE_TIMER_SEEN);
        timer_interrupts++;
        break;
    case CAUSE_ECALL_FROM_U:
        frame->pc += 4;
        frame->x[A0] = frame->x[A7] < SYSCALL_COUNT ? syscalls[frame->x[A7]](&frame->x[A0])
                                                    : (uintptr_t)-1;
        break;
    case CAUSE_BREAKPOINT:
        breakpoints++;
        skip_instruction(frame);
        break;
    case CAUSE_FETCH_PAGE_FAULT:
    case CAUSE_LOAD_PAGE_FAULT:
    case CAUSE_STORE_PAGE_FAULT:
        if (!from_user(frame))
            nested_faults++;
        if (!paging_mend(csr_read(stval), cause))
            give_up(frame, cause);
        break;
    default:
        give_up(frame, cause);
        break;
    }
}

/* --- Start ----------------------------------------------------------------- */

void kernel_main(void)
{
    printf("supervisor mode\n");
    csr_write(stvec, (uintptr_t)supervisor_entry);
    csr_write(sscratch, 0);
    csr_write(sie, SUPERVISOR_SOFTWARE | SUPERVISOR_TIMER);

#if PAGING
    paging_start();
    uintptr_t arena = ARENA;
#else
    static char memory[ARENA_PAGES * PAGE] __attribute__((aligned(4096)));
    uintptr_t arena = (uintptr_t)memory;
#endif
    enter_user(user_main, arena, arena + ARENA_PAGES * PAGE);
}
