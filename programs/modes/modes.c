/* Machine mode: what a firmware does. It opens memory for the other modes,
 * hands most traps to the kernel, emulates the reading of the clock, and turns
 * its own timer interrupt into one for the kernel.
 */

#include "clint.h"
#include "csr.h"
#include "modes.h"

#define MSTATUS_MPRV        (1ul << 17)
#define MSTATUS_MXR         (1ul << 19)

#define SUPERVISOR_SOFTWARE (1ul << 1)
#define SUPERVISOR_TIMER    (1ul << 5)

#define CSR_TIME            0xc01
#define CSR_TIMEH           0xc81

enum { SOON = 10 };             /* ticks of the clock */

static uint32_t emulated;

/* The instruction at `pc`, read as the interrupted mode would: through its
 * page tables. By halves, since it may lie across two pages.
 */
static uint32_t fetch(uintptr_t pc)
{
    csr_t bits = MSTATUS_MPRV | MSTATUS_MXR;
    uint32_t low, high;
    __asm__ volatile(
        "csrs   mstatus, %2\n\t"
        "lhu    %0, 0(%3)\n\t"
        "lhu    %1, 2(%3)\n\t"
        "csrc   mstatus, %2"
        : "=&r"(low), "=&r"(high) : "r"(bits), "r"(pc) : "memory");
    return high << 16 | low;
}

/* csrr rd, time and csrr rd, timeh; false if it is another instruction. */
static bool emulate(struct frame *frame)
{
    uint32_t instruction = fetch(frame->pc);
    uint32_t csr = instruction >> 20, rd = instruction >> 7 & 31;
    if ((instruction & 0x000ff07f) != 0x00002073)
        return false;           /* csrrs rd, csr, zero */
    if (csr != CSR_TIME && csr != CSR_TIMEH)
        return false;
    uint64_t time = clint_time();
    if (rd != 0)
        frame->x[rd] = (uintptr_t)(csr == CSR_TIME ? time : time >> 32);
    frame->pc += 4;
    emulated++;
    return true;
}

/* Lets the kernel handle a trap that has come here: as if it had been
 * delegated.
 */
static void forward(struct frame *frame)
{
    csr_t status = frame->status;
    bool from_supervisor = (status & MSTATUS_MPP) == MSTATUS_MPP_S;

    csr_write(sepc, frame->pc);
    csr_write(scause, csr_read(mcause));
    csr_write(stval, csr_read(mtval));
    frame->pc = csr_read(stvec);

    status &= ~(MSTATUS_SPP | MSTATUS_SPIE | MSTATUS_MPP);
    status |= MSTATUS_MPP_S;
    if (from_supervisor)
        status |= MSTATUS_SPP;
    if (status & MSTATUS_SIE)
        status |= MSTATUS_SPIE;
    frame->status = status & ~MSTATUS_SIE;
}

static void serve(struct frame *frame)
{
    frame->pc += 4;
    switch (frame->x[A7]) {
    case SERVICE_TIMER:
        clint_set_timer(clint_time() + SOON);
        csr_set(mie, INTERRUPT_TIMER);
        break;
    case SERVICE_TIMER_SEEN:
        csr_clear(mip, SUPERVISOR_TIMER);
        break;
    case SERVICE_EMULATED:
        frame->x[A0] = emulated;
        break;
    case SERVICE_EXIT:
        exit(verdict());
    }
}

void machine_trap(struct frame *frame)
{
    csr_t cause = csr_read(mcause);
    switch (cause) {
    case CAUSE_INTERRUPT | 7:
        csr_clear(mie, INTERRUPT_TIMER);
        clint_set_timer(NEVER);
        csr_set(mip, SUPERVISOR_TIMER);
        break;
    case CAUSE_ECALL_FROM_S:
        serve(frame);
        break;
    case CAUSE_ILLEGAL:
        if (!emulate(frame))
            forward(frame);
        break;
    case 4: case 5: case 6: case 7:     /* misaligned, or no access at all */
        forward(frame);
        break;
    default:
        printf("unexpected trap: mcause %lx mepc %lx mtval %lx\n", cause,
               (unsigned long)frame->pc, csr_read(mtval));
        exit(EXIT_UNEXPECTED_TRAP);
    }
}

static char kernel_stack[8192] __attribute__((aligned(16)));

int main(void)
{
    /* All of memory, for the modes below. */
    csr_write(pmpaddr0, -1ul);
    csr_write(pmpcfg0, 0x1f);

    csr_write(medeleg, 1ul << CAUSE_BREAKPOINT | 1ul << CAUSE_ECALL_FROM_U
                       | 1ul << CAUSE_FETCH_PAGE_FAULT | 1ul << CAUSE_LOAD_PAGE_FAULT
                       | 1ul << CAUSE_STORE_PAGE_FAULT);
    csr_write(mideleg, SUPERVISOR_SOFTWARE | SUPERVISOR_TIMER);
    csr_write(mcounteren, 0);   /* the clock is read by emulation */
    clint_set_timer(NEVER);

    printf("machine mode\n");
    enter_supervisor(kernel_main, kernel_stack + sizeof kernel_stack);
}
