/* What semihost.c does, but with a C library: picolibc, with its start-up code,
 * standard streams, memory and sorting. Its ELF files are not committed.
 *
 * The command line, as hosts give it, is the name of the program and then its
 * arguments:
 *
 *   exit=N     ends with exit code N, if all went well
 *   out=FILE   writes a list of the words that were counted
 *   FILE       counts the words in it
 *
 * Without a file, the words of a text of its own are counted.
 */

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit codes of our own. */
enum { FAILED_MEMORY = 10, FAILED_INPUT, FAILED_OUTPUT, FAILED_CHECK };

/* Picolibc puts a name of its own before the words of the command line, so the
 * host's name for us is the second.
 */
enum { FIRST_ARGUMENT = 2 };

/* --- Words in a binary tree ------------------------------------------------ */

struct word {
    struct word *before, *after;
    unsigned count;
    char text[];
};

struct vocabulary {
    struct word *root;
    unsigned different, total;
};

static struct word *new_word(const char *text)
{
    size_t size = strlen(text) + 1;
    struct word *word = malloc(sizeof *word + size);
    if (word == NULL) {
        printf("out of memory\n");
        exit(FAILED_MEMORY);
    }
    word->before = word->after = NULL;
    word->count = 0;
    memcpy(word->text, text, size);
    return word;
}

static void count_word(struct vocabulary *vocabulary, const char *text)
{
    struct word **place = &vocabulary->root;
    while (*place != NULL) {
        int order = strcmp(text, (*place)->text);
        if (order == 0)
            break;
        place = order < 0 ? &(*place)->before : &(*place)->after;
    }
    if (*place == NULL) {
        *place = new_word(text);
        vocabulary->different++;
    }
    (*place)->count++;
    vocabulary->total++;
}

static void free_words(struct word *word)
{
    if (word == NULL)
        return;
    free_words(word->before);
    free_words(word->after);
    free(word);
}

/* --- Reading --------------------------------------------------------------- */

/* Takes words from characters as they come. */
struct reader {
    struct vocabulary *vocabulary;
    char word[32];
    size_t length;
};

static void read_char(struct reader *reader, int c)
{
    if (isalpha(c)) {
        if (reader->length < sizeof reader->word - 1)
            reader->word[reader->length++] = (char)tolower(c);
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
    FILE *file = fopen(name, "r");
    if (file == NULL) {
        printf("%s: cannot be read\n", name);
        return false;
    }
    for (int c; (c = getc(file)) != EOF; bytes++) {
        lines += c == '\n';
        read_char(&reader, c);
    }
    read_char(&reader, '\0');
    fclose(file);
    printf("%s: %lu lines, %lu bytes\n", name, lines, bytes);
    return true;
}

/* --- The list -------------------------------------------------------------- */

static size_t collect(struct word *word, struct word **list)
{
    if (word == NULL)
        return 0;
    size_t count = collect(word->before, list);
    list[count++] = word;
    return count + collect(word->after, list + count);
}

/* The most frequent first, else by the alphabet. */
static int compare_words(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->text, y->text);
}

static struct word **sorted_words(const struct vocabulary *vocabulary)
{
    struct word **list = calloc(vocabulary->different + 1, sizeof *list);
    if (list == NULL) {
        printf("out of memory\n");
        exit(FAILED_MEMORY);
    }
    size_t count = collect(vocabulary->root, list);
    qsort(list, count, sizeof *list, compare_words);
    return list;
}

static void print_words(const struct vocabulary *vocabulary)
{
    struct word **list = sorted_words(vocabulary);
    printf("%u words, %u different\n", vocabulary->total, vocabulary->different);
    for (size_t i = 0; i < 5 && list[i] != NULL; i++)
        printf("%6u %s\n", list[i]->count, list[i]->text);
    free(list);
}

static bool write_words(const struct vocabulary *vocabulary, const char *name)
{
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        printf("%s: cannot be written\n", name);
        return false;
    }
    struct word **list = sorted_words(vocabulary);
    bool good = true;
    for (size_t i = 0; list[i] != NULL; i++)
        good = fprintf(file, "%u %s\n", list[i]->count, list[i]->text) > 0 && good;
    free(list);
    return fclose(file) == 0 && good;
}

/* --- The program ----------------------------------------------------------- */

static const char own_text[] =
    "A word is read, a word is counted, and when no word is left the words are "
    "sorted: the word that came most often comes first.";

/* The words of our own text are known. */
static bool check(void)
{
    struct vocabulary vocabulary = { 0 };
    count_in_text(&vocabulary, own_text);
    struct word **list = sorted_words(&vocabulary);
    bool good = vocabulary.total == 26 && vocabulary.different == 19
                && strcmp(list[0]->text, "word") == 0 && list[0]->count == 4;
    free(list);
    free_words(vocabulary.root);
    return good;
}

static const char *value_of(const char *argument, const char *name)
{
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 ? argument + length : NULL;
}

int main(int argc, char **argv)
{
    struct vocabulary vocabulary = { 0 };
    const char *output = NULL, *value;
    bool read_any = false;
    int code = 0;

    if (!check()) {
        printf("the count is wrong\n");
        return FAILED_CHECK;
    }
    printf("%d arguments\n", argc > FIRST_ARGUMENT ? argc - FIRST_ARGUMENT : 0);
    for (int i = FIRST_ARGUMENT; i < argc; i++) {
        if ((value = value_of(argv[i], "exit=")) != NULL)
            code = atoi(value);
        else if ((value = value_of(argv[i], "out=")) != NULL)
            output = value;
        else if (count_in_file(&vocabulary, argv[i]))
            read_any = true;
        else
            return FAILED_INPUT;
    }
    if (!read_any)
        count_in_text(&vocabulary, own_text);
    print_words(&vocabulary);
    if (output != NULL && !write_words(&vocabulary, output))
        return FAILED_OUTPUT;
    free_words(vocabulary.root);
    return code;
}
