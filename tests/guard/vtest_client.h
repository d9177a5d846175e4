/* SPDX-License-Identifier: MIT */
/* A client of vgpu-guard that can say anything. Calls that fail where they must not abort the test.
 */
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

/* Bytes as they are. False: the peer does not take them any more. */
bool client_write(int fd, const void *data, size_t size);

bool client_message(int fd, uint32_t command, const uint32_t *data, size_t words);

/* Says its name; the same with a context. */
void client_name(int fd);
void client_hello(int fd);

/* The answer to @command: reads its header, and @words words of data, of which it must consist. */
void client_answer(int fd, uint32_t command, uint32_t *data, uint32_t words);

/* The descriptor that follows an answer; the caller's. */
int client_answer_fd(int fd);

/* Asks for a blob, reads the answer: its number, and @blob_fd, which is the caller's. */
uint32_t client_blob(int fd, uint64_t blob_id, uint64_t size, int *blob_fd);

/* Whether the guard ends the connection within 20 s; answers before that are read and forgotten. */
bool client_is_dropped(int fd);

#endif /* VTEST_CLIENT_H */
