/* A program for a host: the command line, files, time and an exit code, all by
 * semihosting. There is no C library.
 *
 * The command line, as hosts give it, is the name of the program and then its
 * arguments:
 *
 *   exit=N     ends with exit code N, if all went well
 *   out=FILE   writes a list of the words that were counted
 *   -t         says how long it took
 *   FILE       counts the words in it
 *
 * Without a file, the words of a text of its own are counted.
 */

#include "host.h"
#include "support.h"

/* --- Words in a hash table ------------------------------------------------- */

enum { CHAINS = 256 };

struct word {
    struct word *next;          /* in its chain */
    unsigned count;
    char text[];
};

struct vocabulary {
    struct word *chain[CHAINS];
    unsigned different, total;
};

static struct vocabulary *new_vocabulary(void)
{
    return memset(allocate(sizeof(struct vocabulary)), 0, sizeof(struct vocabulary));
}

static struct word *new_word(const char *text)
{
    size_t size = strlen(text) + 1;
    struct word *word = allocate(sizeof *word + size);
    word->next = NULL;
    word->count = 0;
    memcpy(word->text, text, size);
    return word;
}

static unsigned chain_of(const char *text)
{
    uint32_t hash = HASH_SEED;
    for (; *text != '\0'; text++)
        hash = hash_word(hash, (unsigned char)*text);
    return hash % CHAINS;
}

static void count_word(struct vocabulary *vocabulary, const char *text)
{
    struct word **place = &vocabulary->chain[chain_of(text)];
    while (*place != NULL && strcmp(text, (*place)->text) != 0)
        place = &(*place)->next;
    if (*place == NULL) {
        *place = new_word(text);
        vocabulary->different++;
    }
    (*place)->count++;
    vocabulary->total++;
}

/* --- Reading --------------------------------------------------------------- */

/* Takes words from characters as they come. */
struct reader {
    struct vocabulary *vocabulary;
    char word[32];
    size_t length;
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static void read_char(struct reader *reader, char c)
{
    c = lower(c);
    if (c >= 'a' && c <= 'z') {
        if (reader->length < sizeof reader->word - 1)
            reader->word[reader->length++] = c;
    } else if (reader->length > 0) {
        reader->word[reader->length] = '\0';
        reader->length = 0;
        count_word(reader->vocabulary, reader->word);
    }
}

static void count_in_text(struct vocabulary *vocabulary, const char *text)
{
    struct reader reader = { .vocabulary = vocabulary };
    do
        read_char(&reader, *text);
    while (*text++ != '\0');
}

static bool count_in_file(struct vocabulary *vocabulary, const char *name)
{
    struct reader reader = { .vocabulary = vocabulary };
    unsigned long bytes = 0, lines = 0;
    char part[256];
    intptr_t file = host_open(name, OPEN_READ);
    if (file == -1) {
        printf("%s: cannot be read (error %d)\n", name, host_error());
        return false;
    }
    for (size_t size; (size = host_read(file, part, sizeof part)) > 0; bytes += size)
        for (size_t i = 0; i < size; i++) {
            lines += part[i] == '\n';
            read_char(&reader, part[i]);
        }
    read_char(&reader, '\0');
    host_close(file);
    printf("%s: %lu lines, %lu bytes\n", name, lines, bytes);
    return true;
}

/* --- The list -------------------------------------------------------------- */

/* The most frequent first, else by the alphabet. */
static bool goes_before(const struct word *a, const struct word *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return strcmp(a->text, b->text) < 0;
}

/* Lets the word at `place` sink in a heap of `size` words, in which no word
 * goes before one of those below it: those below i are 2i + 1 and 2i + 2.
 */
static void sink(struct word **list, size_t place, size_t size)
{
    struct word *word = list[place];
    for (size_t below; (below = 2 * place + 1) < size; place = below) {
        if (below + 1 < size && goes_before(list[below], list[below + 1]))
            below++;
        if (!goes_before(word, list[below]))
            break;
        list[place] = list[below];
    }
    list[place] = word;
}

static void sort(struct word **list, size_t size)
{
    for (size_t i = size / 2; i-- > 0;)
        sink(list, i, size);
    while (size > 1) {
        struct word *last = list[0];
        list[0] = list[--size];
        list[size] = last;
        sink(list, 0, size);
    }
}

/* All words in order; NULL follows the last one. */
static struct word **sorted_words(const struct vocabulary *vocabulary)
{
    struct word **list = allocate((vocabulary->different + 1) * sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < CHAINS; i++)
        for (struct word *word = vocabulary->chain[i]; word != NULL; word = word->next)
            list[count++] = word;
    list[count] = NULL;
    sort(list, count);
    return list;
}

static void print_words(struct word **list, size_t limit)
{
    for (size_t i = 0; i < limit && list[i] != NULL; i++)
        printf("%6u %s\n", list[i]->count, list[i]->text);
}

/* --- Writing --------------------------------------------------------------- */

/* Whether the file has this many bytes and lines, read from its start. Of what
 * has no length, a device perhaps, it is believed.
 */
static bool has_arrived(intptr_t file, size_t bytes, size_t lines)
{
    char part[256];
    intptr_t length = host_length(file);
    if (length <= 0)
        return true;
    if ((size_t)length != bytes || !host_seek(file, 0))
        return false;
    for (size_t size; (size = host_read(file, part, sizeof part)) > 0; bytes -= size)
        for (size_t i = 0; i < size; i++)
            lines -= part[i] == '\n';
    return bytes == 0 && lines == 0;
}

static bool write_words(struct word **list, const char *name)
{
    struct stream file = { .handle = host_open(name, OPEN_WRITE_READ) };
    size_t bytes = 0, lines = 0;
    if (file.handle == -1) {
        printf("%s: cannot be written (error %d)\n", name, host_error());
        return false;
    }
    print_to(&file);
    for (; list[lines] != NULL; lines++)
        bytes += (size_t)printf("%u %s\n", list[lines]->count, list[lines]->text);
    print_to(NULL);

    /* With a colon begin the names of what is no file: see HOST_CONSOLE. */
    bool good = !file.failed && (name[0] == ':' || has_arrived(file.handle, bytes, lines));
    good = host_close(file.handle) && good;
    if (!good)
        printf("%s: not all was written\n", name);
    return good;
}

/* --- The program ----------------------------------------------------------- */

static const char own_text[] =
    "A word is read, a word is counted, and when no word is left the words are "
    "sorted: the word that came most often comes first.";

/* The words of our own text are known. */
static bool check(void)
{
    struct vocabulary *vocabulary = new_vocabulary();
    count_in_text(vocabulary, own_text);
    struct word **list = sorted_words(vocabulary);
    bool good = vocabulary->total == 26 && vocabulary->different == 19
                && strcmp(list[0]->text, "word") == 0 && list[0]->count == 4;
    give_back(vocabulary);
    return good;
}

/* Of an argument `NAME=VALUE`, the value. */
static const char *value_of(const char *argument, const char *name)
{
    while (*name != '\0')
        if (*argument++ != *name++)
            return NULL;
    return argument;
}

static int number_in(const char *text)
{
    bool negative = *text == '-';
    unsigned number = 0;
    for (text += negative; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (unsigned)(*text - '0');
    return (int)(negative ? -number : number);
}

/* For information: another run takes another time. */
static void print_time(void)
{
    uint64_t ticks;
    printf("# %ld hundredths of a second\n", (long)host_clock());
    if (host_ticks(&ticks))
        printf("# %llu ticks, %ld in a second\n", (unsigned long long)ticks,
               (long)host_tick_rate());
}

int main(void)
{
    char **words;
    int count = command_line_words(&words), code = 0;
    const char *output = NULL, *value;
    bool read_any = false, timed = false;

    if (!check())
        fail(FAILED_CHECK, "the count is wrong");
    struct vocabulary *vocabulary = new_vocabulary();
    printf("%d arguments\n", count > 1 ? count - 1 : 0);
    for (int i = 1; i < count; i++) {
        if ((value = value_of(words[i], "exit=")) != NULL)
            code = number_in(value);
        else if ((value = value_of(words[i], "out=")) != NULL)
            output = value;
        else if (strcmp(words[i], "-t") == 0)
            timed = true;
        else if (count_in_file(vocabulary, words[i]))
            read_any = true;
        else
            return FAILED_INPUT;
    }
    if (!read_any)
        count_in_text(vocabulary, own_text);

    struct word **list = sorted_words(vocabulary);
    printf("%u words, %u different\n", vocabulary->total, vocabulary->different);
    print_words(list, 5);
    if (output != NULL && !write_words(list, output))
        return FAILED_OUTPUT;
    if (timed)
        print_time();
    return code;
}
