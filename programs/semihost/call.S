# A call to the host: three instructions that no program has any other use for.
#
# A host knows the ebreak by its neighbours. All three have to be uncompressed
# and have to lie in one page, for a host that looks at them through the page
# tables. So there is one place that calls, of 16 bytes at a multiple of 16.

# intptr_t host_call(uintptr_t operation, const void *parameter)
#
# Operation and parameter are in a0 and a1 already, where the host wants them;
# its result comes back in a0. No other register changes.

    .section .text.host_call, "ax", @progbits
    .option push
    .option norvc
    .balign 16
    .globl  host_call
    .type   host_call, @function
host_call:
    slli    x0, x0, 0x1f
    ebreak
    srai    x0, x0, 7
    ret
    .size   host_call, . - host_call
    .option pop

# At the end, so that the lines above keep the path that the compiler gives them.
    .file   "call.S"
