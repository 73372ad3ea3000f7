/* For assembler sources: places that records can name. */

#ifndef PLACE_H
#define PLACE_H

    .macro place name
    .globl  \name
\name:
    .endm

#endif
