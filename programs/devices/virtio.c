/* Virtio devices: each with one queue of eight descriptors, one request at a
 * time.
 */

#include "devices.h"

enum { SIZE = 8 };
enum { NEXT = 1, DEVICE_WRITES = 2 };

struct descriptor {
    uint64_t address;
    uint32_t length;
    uint16_t flags, next;
};

struct available {
    uint16_t flags, index, ring[SIZE];
};

struct used {
    uint16_t flags, index;
    struct {
        uint32_t head, length;
    } ring[SIZE];
};

static struct queue {
    uintptr_t registers;
    struct descriptor descriptors[SIZE] __attribute__((aligned(16)));
    struct available available __attribute__((aligned(16)));
    volatile struct used used __attribute__((aligned(16)));
    volatile uint32_t interrupts;
} queues[SLOTS];

static struct queue *block, *entropy;

static volatile uint32_t *reg(const struct queue *queue, uintptr_t offset)
{
    return (volatile uint32_t *)(queue->registers + offset);
}

static void place(const struct queue *queue, uintptr_t offset, const volatile void *area)
{
    *reg(queue, offset) = (uint32_t)(uintptr_t)area;
    *reg(queue, offset + 4) = (uint64_t)(uintptr_t)area >> 32;
}

/* Initialization as in section 3.1.1, with no feature but VERSION_1. */
static void initialize(struct queue *queue, uint32_t source)
{
    *reg(queue, 0x70) = 0;
    *reg(queue, 0x70) = 1;
    *reg(queue, 0x70) = 3;
    *reg(queue, 0x24) = 0;
    *reg(queue, 0x20) = 0;
    *reg(queue, 0x24) = 1;
    *reg(queue, 0x20) = 1;
    *reg(queue, 0x70) = 11;
    *reg(queue, 0x30) = 0;
    *reg(queue, 0x38) = SIZE;
    place(queue, 0x80, queue->descriptors);
    place(queue, 0x90, &queue->available);
    place(queue, 0xa0, &queue->used);
    *reg(queue, 0x44) = 1;
    *reg(queue, 0x70) = 15;
    plic_enable(source);
}

bool virtio_find(uint32_t kind)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct queue *queue = &queues[slot];
        queue->registers = VIRTIO + slot * 0x1000;
        if (*reg(queue, 0) != 0x74726976 || *reg(queue, 4) != 2 || *reg(queue, 8) != kind)
            continue;
        initialize(queue, slot + 1);
        *(kind == BLOCK ? &block : &entropy) = queue;
        return true;
    }
    return false;
}

void virtio_interrupt(uint32_t source)
{
    struct queue *queue = &queues[source - 1];
    *reg(queue, 0x64) = *reg(queue, 0x60);
    queue->interrupts++;
}

/* Puts the chain that starts with descriptor 0 into the queue, and waits. */
static void request(struct queue *queue)
{
    uint32_t before = queue->interrupts;
    queue->available.ring[queue->available.index % SIZE] = 0;
    __asm__ volatile("fence" ::: "memory");
    queue->available.index++;
    __asm__ volatile("fence" ::: "memory");
    *reg(queue, 0x50) = 0;
    wait_until(&queue->interrupts, before);
    __asm__ volatile("fence" ::: "memory");
}

uint8_t block_request(uint32_t type, uint64_t sector, void *data, uint32_t size)
{
    static struct {
        uint32_t type, reserved;
        uint64_t sector;
    } header;
    static volatile uint8_t status;
    struct descriptor *d = block->descriptors;

    header.type = type;
    header.sector = sector;
    status = 0xff;
    uint16_t flags = type == READ ? DEVICE_WRITES : 0;
    d[0] = (struct descriptor){ (uintptr_t)&header, sizeof header, NEXT, size > 0 ? 1 : 2 };
    d[1] = (struct descriptor){ (uintptr_t)data, size, flags | NEXT, 2 };
    d[2] = (struct descriptor){ (uintptr_t)&status, 1, DEVICE_WRITES, 0 };
    request(block);
    return status;
}

uint64_t block_sectors(void)
{
    return *reg(block, 0x100) | (uint64_t)*reg(block, 0x104) << 32;
}

void entropy_request(void *data, uint32_t size)
{
    entropy->descriptors[0] = (struct descriptor){ (uintptr_t)data, size, DEVICE_WRITES, 0 };
    request(entropy);
}
