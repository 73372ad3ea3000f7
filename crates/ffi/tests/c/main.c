/*
 * The header and the library, used from C: the layout of every struct is printed, for the
 * test to compare with the library's; then a checker and an encoder do their work.
 */
#include <hartrace.h>
#include <stdio.h>
#include <string.h>

#define SIZE(type) printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field))

static void layout(void)
{
    SIZE(hartrace_check_options);
    FIELD(hartrace_check_options, elf_size);
    SIZE(hartrace_retired);
    FIELD(hartrace_retired, rd_wdata);
    FIELD(hartrace_retired, write_count);
    SIZE(hartrace_write);
    SIZE(hartrace_difference);
    FIELD(hartrace_difference, expected);
    FIELD(hartrace_difference, count);
    SIZE(hartrace_counts);
    SIZE(hartrace_encode_options);
    SIZE(hartrace_block);
    FIELD(hartrace_block, iaddr);
    FIELD(hartrace_block, power_down);
}

static int fail(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    return 1;
}

static int check(const char *elf)
{
    static const struct { uint64_t pc; uint32_t insn; uint8_t rd; uint64_t value; } rows[] = {
        {0x80000000, 0x00010117, 2, 0x80010000},
        {0x80000004, 0x00010113, 2, 0x80010000},
        {0x80000008, 0x00000297, 5, 0x8000000c}, /* wrong */
    };
    hartrace_check_options options = {0};
    hartrace_check *check;
    hartrace_status status = HARTRACE_OK;
    hartrace_difference difference = {0};
    size_t row;

    options.size = sizeof options;
    options.elf_file = elf;
    options.config = "[program]\nisa = \"rv64gc\"\n";
    if (hartrace_check_new(&options, &check) != HARTRACE_OK)
        return fail("hartrace_check_new", hartrace_check_text(check));
    for (row = 0; row < sizeof rows / sizeof *rows && status == HARTRACE_OK; row++) {
        hartrace_retired retired = {0};
        retired.size = sizeof retired;
        retired.valid = HARTRACE_RVFI;
        retired.order = row;
        retired.pc_rdata = rows[row].pc;
        retired.pc_wdata = rows[row].pc + 4;
        retired.insn = rows[row].insn;
        retired.mode = 3;
        retired.ixl = 2;
        retired.rd_addr = rows[row].rd;
        retired.rd_wdata = rows[row].value;
        status = hartrace_check_retire(check, &retired);
    }
    if (status != HARTRACE_DIFFERENCE || row != 3)
        return fail("hartrace_check_retire", hartrace_check_text(check));
    difference.size = sizeof difference;
    if (hartrace_check_difference(check, 0, &difference) != HARTRACE_OK)
        return fail("hartrace_check_difference", "none");
    printf("x%u %llx %llx\n", (unsigned)difference.number,
           (unsigned long long)difference.expected, (unsigned long long)difference.actual);
    hartrace_check_free(check);
    return 0;
}

static int encode(void)
{
    hartrace_encode_options options = {0};
    hartrace_encode *encode;
    hartrace_block block = {0};
    uint8_t buffer[64];
    size_t count, all = 0;

    options.size = sizeof options;
    options.format = HARTRACE_FORMAT_ETRACE;
    if (hartrace_encode_new(&options, &encode) != HARTRACE_OK)
        return fail("hartrace_encode_new", hartrace_encode_text(encode));
    block.size = sizeof block;
    block.iaddr = 0x80000000;
    block.iretire = 2;
    block.ilastsize = 1;
    block.priv = 3;
    if (hartrace_encode_block(encode, &block) != HARTRACE_OK
        || hartrace_encode_finish(encode) != HARTRACE_OK)
        return fail("hartrace_encode_block", hartrace_encode_text(encode));
    while ((count = hartrace_encode_take(encode, buffer, sizeof buffer)) > 0)
        all += count;
    printf("trace %s\n", all > 0 ? "bytes" : "empty");
    hartrace_encode_free(encode);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fail("usage", "main PROGRAM");
    layout();
    printf("version %s\n", hartrace_version());
    return check(argv[1]) || encode();
}
