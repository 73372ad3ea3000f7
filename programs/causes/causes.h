/* What causes.S offers: code that traps, and a way to run it. */

#ifndef CAUSES_H
#define CAUSES_H

#include "csr.h"

/* Runs code in the mode that `status` has in MPP, until it traps; gives mcause. */
csr_t attempt(void (*code)(void), csr_t status);

/* mtval and mepc of the last trap. */
extern csr_t trap_value, trap_pc;

/* Each of these traps. */
void try_fetch_misaligned(void);
void try_fetch_access(void);
void try_illegal(void);
void try_breakpoint(void);
void try_load_misaligned(void);
void try_load_access(void);
void try_store_misaligned(void);
void try_store_access(void);
void try_call(void);
void try_fetch_page(void);
void try_load_page(void);
void try_store_page(void);

/* Waits for an interrupt. */
void try_waiting(void);

#endif
