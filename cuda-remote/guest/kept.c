// SPDX-License-Identifier: MIT
#include "kept.h"

#include "signature.h"
#include "remote.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SLOTS      1024u
#define SLOT_WORDS 32u /* of answers; larger ones are asked for again */

enum kind { KIND_OTHER, KIND_FUNCTION, KINDS };

/*
 * @sequence: odd while it is written. Who reads it looks at it before and after: what lies between
 * is read, and written, in order.
 */
struct slot {
    _Atomic uint64_t sequence;
    _Atomic uint64_t epoch;
    _Atomic uint64_t key[KEPT_WORDS];
    _Atomic uint64_t answer[SLOT_WORDS];
};

static struct slot slots[SLOTS];
static _Atomic uint64_t epochs[KINDS] = {1, 1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who writes */

uint64_t kept_epoch(void)
{
    return atomic_load(&epochs[KIND_OTHER]);
}

static bool is_function(const struct argument *argument)
{
    return argument->object == OBJECT_CUfunction || argument->object == OBJECT_CUkernel;
}

void kept_end(unsigned int number)
{
    const struct signature *call = &signatures[number];
    bool is_of_function = false;

    for (unsigned int i = 0; i < call->count; i++)
        is_of_function |= is_function(&call->arguments[i]);
    if (!is_of_function)
        atomic_fetch_add(&epochs[KIND_OTHER], 1);
    atomic_fetch_add(&epochs[KIND_FUNCTION], 1);
}

/* Of what the call writes at argument @at, if it writes there. */
static size_t bytes_at(const struct signature *call, unsigned int at, const uint64_t *words)
{
    const struct argument *argument = &call->arguments[at];

    return argument->count < 0 ? (size_t)argument->fixed * argument->bytes
                               : signature_bytes(call, at, words, words);
}

static size_t words_at(const struct signature *call, unsigned int at, const uint64_t *words)
{
    return words[at] ? signature_align(bytes_at(call, at, words)) / sizeof(uint64_t) : 0;
}

static void add_word(struct kept_key *key, uint64_t word)
{
    key->words[key->count++] = word;
    key->hash = (key->hash ^ word) * 0x9e3779b97f4a7c15ull;
}

/* All arguments are numbers, objects, or written (gen-remote). */
void kept_ask(struct kept_key *key, unsigned int number, const uint64_t *words, uint64_t context,
              uint64_t since)
{
    const struct signature *call = &signatures[number];
    enum kind kind = KIND_OTHER;

    key->count = key->room = 0;
    key->hash = 0;
    add_word(key, number | since << 16);
    add_word(key, context);
    for (unsigned int i = 0; i < call->count; i++) {
        const struct argument *argument = &call->arguments[i];

        if (argument->kind == ARGUMENT_OUT) {
            add_word(key, words[i] != 0);
            key->room += words_at(call, i, words);
        } else if (argument->kind == ARGUMENT_OBJECT) {
            add_word(key, object_to_number(words[i]));
            kind = is_function(argument) ? KIND_FUNCTION : kind;
        } else {
            add_word(key, words[i]);
        }
    }
    key->epoch = atomic_load(&epochs[kind]);
}

static struct slot *slot_of(const struct kept_key *key)
{
    return &slots[(key->hash >> 32) % SLOTS];
}

/* False: it has another answer, or is being written. */
static bool read_slot(struct slot *slot, const struct kept_key *key, uint64_t *to)
{
    uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);

    if (sequence % 2 || atomic_load_explicit(&slot->epoch, memory_order_acquire) != key->epoch)
        return false;
    for (size_t i = 0; i < key->count; i++)
        if (atomic_load_explicit(&slot->key[i], memory_order_acquire) != key->words[i])
            return false;
    for (size_t i = 0; i < key->room; i++)
        to[i] = atomic_load_explicit(&slot->answer[i], memory_order_acquire);
    return atomic_load_explicit(&slot->sequence, memory_order_acquire) == sequence;
}

bool kept_find(const struct kept_key *key, unsigned int number, const uint64_t *words)
{
    const struct signature *call = &signatures[number];
    uint64_t answer[SLOT_WORDS], *from = answer;

    if (key->room > SLOT_WORDS || !read_slot(slot_of(key), key, answer))
        return false;
    for (unsigned int i = 0; i < call->count; i++) {
        if (call->arguments[i].kind != ARGUMENT_OUT || !words[i])
            continue;
        if (bytes_at(call, i, words) == sizeof(int))
            memcpy((void *)(uintptr_t)words[i], from, sizeof(int));
        else
            memcpy((void *)(uintptr_t)words[i], from, bytes_at(call, i, words));
        from += words_at(call, i, words);
    }
    return true;
}

static void write_slot(struct slot *slot, const struct kept_key *key, const uint64_t *answer)
{
    uint64_t sequence;

    pthread_mutex_lock(&lock);
    sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_relaxed);
    atomic_store_explicit(&slot->epoch, key->epoch, memory_order_release);
    for (size_t i = 0; i < key->count; i++)
        atomic_store_explicit(&slot->key[i], key->words[i], memory_order_release);
    for (size_t i = 0; i < key->room; i++)
        atomic_store_explicit(&slot->answer[i], answer[i], memory_order_release);
    atomic_store_explicit(&slot->sequence, sequence + 2, memory_order_release);
    pthread_mutex_unlock(&lock);
}

void kept_add(const struct kept_key *key, unsigned int number, const uint64_t *words)
{
    const struct signature *call = &signatures[number];
    uint64_t answer[SLOT_WORDS] = {0}, *to = answer;

    if (key->room > SLOT_WORDS)
        return;
    for (unsigned int i = 0; i < call->count; i++) {
        if (call->arguments[i].kind != ARGUMENT_OUT || !words[i])
            continue;
        memcpy(to, (const void *)(uintptr_t)words[i], bytes_at(call, i, words));
        to += words_at(call, i, words);
    }
    write_slot(slot_of(key), key, answer);
}
