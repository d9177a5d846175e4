/* SPDX-License-Identifier: MIT */
#ifndef CUDA_WORKER_CONTROL_LOOP_H
#define CUDA_WORKER_CONTROL_LOOP_H

#include "control.h"

#include <stdbool.h>

/* Answers a program's first message. CONTROL_OCCUPIED: it may try again; else it was the last. */
enum control_result control_welcome_program(int socket, const char *library);
/* Answers one more. @is_of_vm: an engine passes it on, and may send memory with it. False: the
 * program is gone, or broke the rules. */
bool control_serve(int socket, bool is_of_vm);
/* Starts a worker for each program that connects to @path. Returns only if it cannot. */
int control_listen(const char *path, const char *library);

#endif
