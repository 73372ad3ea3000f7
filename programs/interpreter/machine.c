#include "machine.h"

/* The stack grows upwards; `top` is the number of values on it. The loop makes
 * sure that there are at least two values' room on either side of what an
 * instruction touches, so that the instructions need not look: the two lowest
 * and the two highest places are never a program's own.
 */
enum { MARGIN = 2 };

enum stop machine_run(struct machine *machine, const uint8_t *code, size_t length)
{
    int32_t *const stack = machine->stack;
    size_t top = MARGIN, depth = 0, pc = 0;
    enum stop stop;

    machine->outputs = 0;
    machine->steps = 0;
    for (;;) {
        if (top < MARGIN || top > STACK_SIZE - MARGIN) {
            stop = STOP_STACK;
            break;
        }
        if (pc >= length) {
            stop = STOP_ADDRESS;
            break;
        }
        enum opcode opcode = code[pc++];
        uint16_t operand = 0;
        if (has_operand(opcode)) {
            if (length - pc < 2) {
                stop = STOP_ADDRESS;
                break;
            }
            operand = (uint16_t)(code[pc] | code[pc + 1] << 8);
            pc += 2;
        }
        machine->steps++;

        int32_t *const a = &stack[top - 2], *const b = &stack[top - 1];
        switch (opcode) {
        case OP_PUSH:
            stack[top++] = (int16_t)operand;
            continue;
        case OP_LOAD:
            if (operand >= VARIABLES) {
                stop = STOP_OPERAND;
                break;
            }
            stack[top++] = machine->variables[operand];
            continue;
        case OP_STORE:
            if (operand >= VARIABLES) {
                stop = STOP_OPERAND;
                break;
            }
            machine->variables[operand] = *b;
            top--;
            continue;
        case OP_JUMP:
            pc = operand;
            continue;
        case OP_ZERO:
            top--;
            if (*b == 0)
                pc = operand;
            continue;
        case OP_CALL:
            if (depth == CALL_DEPTH) {
                stop = STOP_STACK;
                break;
            }
            machine->calls[depth++] = (uint16_t)pc;
            pc = operand;
            continue;
        case OP_ADD:
            *a = (int32_t)((uint32_t)*a + (uint32_t)*b);
            top--;
            continue;
        case OP_SUB:
            *a = (int32_t)((uint32_t)*a - (uint32_t)*b);
            top--;
            continue;
        case OP_MUL:
            *a = (int32_t)((uint32_t)*a * (uint32_t)*b);
            top--;
            continue;
        case OP_DIV:
            if (*b == 0) {
                stop = STOP_DIVISION;
                break;
            }
            /* The one quotient that overflows wraps around. */
            *a = *b == -1 ? (int32_t)-(uint32_t)*a : *a / *b;
            top--;
            continue;
        case OP_MOD:
            if (*b == 0) {
                stop = STOP_DIVISION;
                break;
            }
            *a = *b == -1 ? 0 : *a % *b;
            top--;
            continue;
        case OP_AND:
            *a &= *b;
            top--;
            continue;
        case OP_XOR:
            *a ^= *b;
            top--;
            continue;
        case OP_LESS:
            *a = *a < *b;
            top--;
            continue;
        case OP_EQUAL:
            *a = *a == *b;
            top--;
            continue;
        case OP_DUP:
            stack[top++] = *b;
            continue;
        case OP_DROP:
            top--;
            continue;
        case OP_SWAP: {
            int32_t upper = *b;
            *b = *a;
            *a = upper;
            continue;
        }
        case OP_OVER:
            stack[top++] = *a;
            continue;
        case OP_FETCH:
            *b = machine->memory[(uint32_t)*b % MEMORY];
            continue;
        case OP_KEEP:
            machine->memory[(uint32_t)*b % MEMORY] = (uint8_t)*a;
            top -= 2;
            continue;
        case OP_PRINT:
            if (machine->outputs == OUTPUT) {
                stop = STOP_STACK;
                break;
            }
            machine->output[machine->outputs++] = *b;
            top--;
            continue;
        case OP_RETURN:
            if (depth == 0) {
                stop = STOP_STACK;
                break;
            }
            pc = machine->calls[--depth];
            continue;
        case OP_HALT:
            stop = STOP_HALT;
            break;
        default:
            stop = STOP_OPCODE;
            break;
        }
        break;
    }
    return stop;
}
