//! IEEE 754 arithmetic as RISC-V has it.
