/* The devices of QEMU's virt machine, for a program in machine mode. */

#ifndef DEVICES_H
#define DEVICES_H

#include "runtime.h"

#define FINISHER    0x00100000ul
#define RTC         0x00101000ul
#define PLIC        0x0c000000ul
#define UART        0x10000000ul
#define VIRTIO      0x10001000ul

enum { SLOTS = 8, UART_SOURCE = 10 };

/* plic.c: lets a source interrupt; waits while a number that an interrupt
 * changes is this one. */
void plic_enable(uint32_t source);
void wait_until(const volatile uint32_t *number, uint32_t is_not);

/* uart.c */
void uart_listen(void);
void uart_interrupt(void);
char uart_read(void);

/* virtio.c: whether there is a device of this kind; then, one request. */
bool virtio_find(uint32_t kind);
void virtio_interrupt(uint32_t source);
uint8_t block_request(uint32_t type, uint64_t sector, void *data, uint32_t size);
uint64_t block_sectors(void);
void entropy_request(void *data, uint32_t size);

enum { BLOCK = 2, ENTROPY = 4 };
enum { READ = 0, WRITE = 1, FLUSH = 4 };

#endif
