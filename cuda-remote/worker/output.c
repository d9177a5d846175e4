// SPDX-License-Identifier: MIT
/*
 * What kernels print, and what the driver says of their assertions. The driver writes it to this
 * process's standard output and error, when a call waits for the kernels. Both are pipes to
 * ourselves, and an answer says when the program has something to fetch. Nothing waits for a
 * program that does not: what is more than the pipes hold is lost.
 */
#include "hand.h"
#include "worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "numbers.h"

#define BUFFER_BYTES (256u << 10)
#define PIPE_BYTES   (1 << 20)
#define ASSERTED     710 /* CUDA_ERROR_ASSERT */

/* Ends that are read; -1: it is not ours. */
static int out = -1, err = -1;
static bool has_reader; /* the program knows of it */

/* False: there is no pipe. */
static bool replace_output(int fd, int *read_end)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    if (dup2(ends[1], fd) < 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    close(ends[1]);
    *read_end = ends[0];
    return true;
}

bool output_begin(bool with_errors)
{
    static char buffer[BUFFER_BYTES];

    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    return replace_output(STDOUT_FILENO, &out) &&
           (!with_errors || replace_output(STDERR_FILENO, &err));
}

void output_is_read(bool is_known)
{
    has_reader = is_known && out >= 0;
}

/* The driver writes through the library's buffer, so that a look at it is all that a call costs. */
bool output_is_waiting(uint32_t result)
{
    return has_reader && (__fpending(stdout) || (result == ASSERTED && err >= 0));
}

/* So much as there is and fits. */
static uint32_t take_output(int fd, uint8_t *to, size_t most)
{
    ssize_t bytes = fd < 0 ? 0 : read(fd, to, most);

    return bytes > 0 ? (uint32_t)bytes : 0;
}

CUresult hand_output(struct request *request)
{
    struct hand_output *to = request_answer(request, sizeof(*to));
    uint8_t *text = request_answer(request, HAND_OUTPUT_MOST);

    if (!to || !text)
        return CUDA_ERROR_INVALID_VALUE;
    fflush(stdout);
    to->is_lost = ferror(stdout) != 0;
    clearerr(stdout);
    to->out_bytes = take_output(out, text, HAND_OUTPUT_MOST);
    to->err_bytes = take_output(err, text + to->out_bytes, HAND_OUTPUT_MOST - to->out_bytes);
    return CUDA_SUCCESS;
}
