/* A small stack machine: what it executes, and what it works on. */

#ifndef MACHINE_H
#define MACHINE_H

#include "runtime.h"

/* An instruction is one byte; those before OP_ADD are followed by an operand
 * of 16 bits, least significant byte first.
 *
 *   name, what it does to the stack (top at the right), and what else
 */
#define OPCODES(X)                                                            \
    X(PUSH,   "push")       /*       -> k      k: operand, sign-extended */   \
    X(LOAD,   "load")       /*       -> v      the variable */                \
    X(STORE,  "store")      /*     v ->                                  */   \
    X(JUMP,   "jump")       /*       ->        to an address */               \
    X(ZERO,   "zero")       /*     v ->        jumps if v is 0 */             \
    X(CALL,   "call")       /*       ->                                  */   \
    X(ADD,    "add")        /*   a b -> a + b                            */   \
    X(SUB,    "sub")        /*   a b -> a - b                            */   \
    X(MUL,    "mul")        /*   a b -> a * b                            */   \
    X(DIV,    "div")        /*   a b -> a / b  stops if b is 0 */             \
    X(MOD,    "mod")        /*   a b -> a % b  stops if b is 0 */             \
    X(AND,    "and")        /*   a b -> a & b                            */   \
    X(XOR,    "xor")        /*   a b -> a ^ b                            */   \
    X(LESS,   "less")       /*   a b -> a < b                            */   \
    X(EQUAL,  "equal")      /*   a b -> a == b                           */   \
    X(DUP,    "dup")        /*     v -> v v                              */   \
    X(DROP,   "drop")       /*     v ->                                  */   \
    X(SWAP,   "swap")       /*   a b -> b a                              */   \
    X(OVER,   "over")       /*   a b -> a b a                            */   \
    X(FETCH,  "fetch")      /*     i -> byte   from memory, i modulo its size */ \
    X(KEEP,   "keep")       /*   b i ->        byte b to memory at i */       \
    X(PRINT,  "print")      /*     v ->        to the output */               \
    X(RETURN, "return")     /*       ->                                  */   \
    X(HALT,   "halt")

#define OPCODE_VALUE(name, text) OP_##name,
enum opcode { OPCODES(OPCODE_VALUE) OPCODE_COUNT };
#undef OPCODE_VALUE

static inline bool has_operand(enum opcode opcode)
{
    return opcode < OP_ADD;
}

enum {
    STACK_SIZE = 64,
    CALL_DEPTH = 64,
    VARIABLES  = 26,            /* a to z */
    MEMORY     = 4096,          /* bytes; a power of two */
    OUTPUT     = 16,
};

struct machine {
    int32_t stack[STACK_SIZE];
    uint16_t calls[CALL_DEPTH];
    int32_t variables[VARIABLES];
    uint8_t memory[MEMORY];
    int32_t output[OUTPUT];
    uint32_t outputs;
    uint32_t steps;
};

enum stop {
    STOP_HALT,
    STOP_STACK,                 /* too much or too little on a stack */
    STOP_ADDRESS,               /* ran out of the code */
    STOP_DIVISION,              /* by zero */
    STOP_OPERAND,               /* no such variable */
    STOP_OPCODE,                /* no such instruction */
};

/* Runs from address 0 until something stops it. The machine's variables and
 * memory are as the caller left them; the counts start anew.
 */
enum stop machine_run(struct machine *machine, const uint8_t *code, size_t length);

/* Translates source text. Words are separated by white space; `word:` names an
 * address; operands are numbers, variables (`a` to `z`) or names of addresses;
 * a comment runs from `;` to the end of the line. Returns the length of the
 * code, or 0 if the text is wrong or the code does not fit.
 */
size_t assemble(const char *text, uint8_t *code, size_t room);

#endif
