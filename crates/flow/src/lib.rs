//! The vocabulary of RISC-V trace.

#![no_std]
#![forbid(unsafe_code)]
