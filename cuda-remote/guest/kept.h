/* SPDX-License-Identifier: MIT */
/*
 * Answers that are kept, so that the next one who asks the same gets them here: of the calls that
 * calls.def says are kept. What an answer depends on is in its key: the numbers of objects, which
 * none has again, and numbers. What else may change it ends it (kept_end()).
 */
#ifndef CUDA_REMOTE_GUEST_KEPT_H
#define CUDA_REMOTE_GUEST_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_WORDS 8u

/* @epoch: of all answers of its kind, at the time of the question. @room: words of the answer. */
struct kept_key {
    uint64_t epoch;
    uint64_t hash;
    size_t count, room;
    uint64_t words[KEPT_WORDS];
};

/* @context: the number of the context that the answer is of; 0: of none. @since: what else it
 * depends on. */
void kept_ask(struct kept_key *key, unsigned int number, const uint64_t *words, uint64_t context,
              uint64_t since);
/* Writes what the call would write. False: there is no such answer. */
bool kept_find(const struct kept_key *key, unsigned int number, const uint64_t *words);
/* What the call has written, since kept_ask(). */
void kept_add(const struct kept_key *key, unsigned int number, const uint64_t *words);
/* What the answers of before depended on may have changed by this call. */
void kept_end(unsigned int number);
/* The same as long as no call has ended what is not about functions. */
uint64_t kept_epoch(void);

#endif
