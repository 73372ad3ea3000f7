#include "dense.h"

static uint32_t hash_of(const char *word, size_t length)
{
    uint32_t hash = HASH_SEED;
    for (size_t i = 0; i < length; i++)
        hash = hash_word(hash, (uint8_t)word[i]);
    return hash ^ hash >> 15;
}

NOINLINE struct slot *table_slot(struct table *table, const char *word, size_t length)
{
    uint32_t place = hash_of(word, length) % TABLE_SIZE;
    for (;; place = (place + 1) % TABLE_SIZE) {
        struct slot *slot = &table->slots[place];
        table->probes++;
        if (slot->word == NULL) {
            if (table->used == TABLE_SIZE - 1)
                return NULL;    /* one stays free, so that every search ends */
            table->used++;
            *slot = (struct slot){ word, (uint8_t)length, 0 };
            return slot;
        }
        if (slot->length == length && memcmp(slot->word, word, length) == 0)
            return slot;
    }
}
