/* SPDX-License-Identifier: MIT */
/* Programs that compute by a worker: remote/client, and what they are told of the worker. */
#ifndef TESTS_CUDA_REMOTE_PROGRAM_H
#define TESTS_CUDA_REMOTE_PROGRAM_H

#include <glib.h>

/* That case, in the environment @env, which it takes. @output: a pipe from it; NULL: none. */
GPid program_start(const char *name, char **env, int *output);
/* The same, when it has said that it holds what it has. */
GPid program_start_holding(const char *name, char **env);
/* Until it has ended, as @wanted says (waitpid()). */
void program_await(GPid pid, int wanted);

/* The worker as units have it: a program whose door is where it is installed. @after: what the
 * shell does when the worker has ended; NULL: nothing. Its path, to be freed. After kit_open(). */
char *program_write_worker(const char *after);

#endif
