#include "samples.h"

const char sample_primes[] =
    "           push 0   store c            ; primes found      \n"
    "           push 2   store i                                \n"
    "clear:     load i   load n   less   zero sieve             \n"
    "           push 0   load i   keep                          \n"
    "           load i   push 1   add    store i                \n"
    "           jump clear                                      \n"
    "sieve:     push 2   store i                                \n"
    "number:    load i   load n   less   zero done              \n"
    "           load i   fetch    zero prime                    \n"
    "           jump next                                       \n"
    "prime:     load c   push 1   add    store c                \n"
    "           load i   store p            ; the last so far   \n"
    "           load i   dup      mul    store m                \n"
    "multiple:  load m   load n   less   zero next              \n"
    "           push 1   load m   keep                          \n"
    "           load m   load i   add    store m                \n"
    "           jump multiple                                   \n"
    "next:      load i   push 1   add    store i                \n"
    "           jump number                                     \n"
    "done:      load c   print    load p   print   halt         \n";

const char sample_gcd[] =
    "           push 0   store s                                \n"
    "           push 1   store x                                \n"
    "row:       push 1   store y                                \n"
    "column:    load x   load y   call gcd                      \n"
    "           load s   add      store s                       \n"
    "           load y   push 1   add    store y                \n"
    "           load n   load y   less   zero column            \n"
    "           load x   push 1   add    store x                \n"
    "           load n   load x   less   zero row               \n"
    "           load s   print    halt                          \n"
    "                                       ; a b -> gcd(a, b)  \n"
    "gcd:       dup      zero finished                          \n"
    "           swap     over     mod                           \n"
    "           jump gcd                                        \n"
    "finished:  drop     return                                 \n";

const char sample_fibonacci[] =
    "           load n   call fib  print   halt                 \n"
    "                                       ; n -> fib(n)       \n"
    "fib:       dup      push 2   less   zero sum               \n"
    "           return                                          \n"
    "sum:       dup      push 1   sub    call fib               \n"
    "           swap     push 2   sub    call fib               \n"
    "           add      return                                 \n";
