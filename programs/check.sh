#!/bin/sh
# Usage: check PROGRAM.elf SIMULATOR [ARGUMENT...]
#
# Runs the program on the simulator; it has to end with exit code 0 and print
# what an .expected file beside it says. Lines that start with `#` may differ.

elf=$1
shift
if [ $# -eq 0 ]; then
    echo "check: no simulator given: make check SIM=..." >&2
    exit 2
fi

# One for this ISA, if it has its own, else the one for all, else the one for
# all programs of the folder.
folder=$(dirname "$elf")
expected=${elf%.elf}.expected
[ -f "$expected" ] || expected=${elf%-rv*}.expected
[ -f "$expected" ] || expected=$folder/$(basename "$folder").expected

output=$(mktemp)
trap 'rm -f "$output"' EXIT

"$@" "$elf" > "$output"
code=$?
if [ $code -ne 0 ]; then
    cat "$output"
    echo "$elf: exit code $code"
    exit 1
fi
if ! grep -v '^#' "$output" | diff "$expected" -; then
    echo "$elf: another output"
    exit 1
fi
echo "$elf: good"
