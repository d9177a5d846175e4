/* SPDX-License-Identifier: MIT */
/* A client of vgpu-guard that can send anything. A call that must not fail aborts the test. */
#ifndef VTEST_CLIENT_H
#define VTEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vtest.h"

#define client_send(fd, command, ...)                                                              \
    client_message(fd, command, (const uint32_t[]){__VA_ARGS__},                                   \
                   sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

int client_connect(const char *path);

/* Bytes as they are. False: the peer does not accept them any more. */
bool client_write(int fd, const void *data, size_t size);

/* A byte of zero, with a descriptor. */
bool client_write_fd(int fd, int sent);

bool client_message(int fd, uint32_t command, const uint32_t *data, size_t words);

/* Sends its name; the same with a context. */
void client_name(int fd);
void client_hello(int fd);

/* The answer to @command: reads its header, and @words words of data, which must be all of it. */
void client_answer(int fd, uint32_t command, uint32_t *data, uint32_t words);

/* The descriptor that follows an answer; the caller owns it. */
int client_answer_fd(int fd);

/* Requests a blob and reads the answer: its number, and @blob_fd, which the caller owns. */
uint32_t client_blob(int fd, uint64_t blob_id, uint64_t size, int *blob_fd);

/* Whether the guard ends the connection within 20 s; answers before that are read and discarded. */
bool client_is_dropped(int fd);

#endif /* VTEST_CLIENT_H */
