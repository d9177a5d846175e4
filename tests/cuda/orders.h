/* SPDX-License-Identifier: MIT */
/*
 * An arbiter's orders, given by the test: a thread of this process that lets its member in, grants
 * all that it asks for, hands out pieces of a vault, and remembers what was said.
 */
#ifndef TESTS_CUDA_ORDERS_H
#define TESTS_CUDA_ORDERS_H

#include "governor_protocol.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * struct orders_said - by the member, so far
 * @uncopied: of @gave, without a copy
 * @held: bytes that are charged; @displaced: of these not on the card
 * @cleans: how often all was copied
 * @pieces: of the vault that it has
 */
struct orders_said {
    uint64_t gave, took, uncopied;
    uint64_t held, displaced;
    uint64_t unmovable;
    unsigned int stuck, comes, pieces, movable, cleans;
    enum governor_stuck reason;
};

/* A slice of the fake card, for this process. Before the first call of the driver. */
void orders_open(void);
/* Memory does not move, as in other slices. Before the process joins. */
void orders_do_not_move(void);
/* So many pieces of the vault, and no more. */
void orders_limit_pieces(unsigned int pieces);

/* The process gets no turn of time meanwhile. */
void orders_hold_turns(bool hold);

void orders_look(struct orders_said *said);
/* To give, or to bring back, so much more. */
void orders_leave(uint64_t bytes);
void orders_take(uint64_t bytes);
/* To copy all that can move, or so much of it. */
void orders_copy(void);
void orders_copy_some(uint64_t bytes);
/* The next arbiter, to which the process has come again. */
void orders_begin_again(void);
/* To return pieces of the vault; until it has no more than so many. */
void orders_return_pieces(void);
void orders_await_pieces(unsigned int pieces);
void orders_await_cleans(unsigned int cleans);
/* Until it has given, or taken, or not been able to, all that it was told to. */
void orders_await_left(void);
void orders_await_taken(void);
/* Until so much is charged. */
void orders_await_held(uint64_t bytes);
/* Until so much cannot move. */
void orders_await_unmovable(uint64_t bytes);
/* Until a thread was kept out so often. */
void orders_await_comes(unsigned int comes);

#endif
