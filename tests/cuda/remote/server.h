/* SPDX-License-Identifier: MIT */
/* A socket whose programs get a worker each, with the door of slice "a" before the fake card. */
#ifndef TESTS_CUDA_SERVER_H
#define TESTS_CUDA_SERVER_H

#include <glib.h>

/* After kit_open(). */
void server_open(void);
void server_close(void);
/* Of a program that has no driver but a worker; it takes @env. */
char **server_environment(char **env);
/* A worker for @value, as its @option says: "--fd" or "--listen". */
GPid server_start_worker(const char *option, const char *value);
/* All that serve a program now. */
void server_kill_workers(void);

#endif
