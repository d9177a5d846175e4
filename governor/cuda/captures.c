// SPDX-License-Identifier: MIT
#include "captures.h"

#include "forks.h"

#include <pthread.h>

#define MOST 64

/* @thread: of a stream that each thread has of its own */
struct capture {
    CUstream stream;
    pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture captures[MOST];
static unsigned int count;
/* There was no place for one, and whoever ends is not known any more. */
static bool too_many;

static bool is_same(const struct capture *capture, CUstream stream)
{
    bool is_own = !stream || stream == CU_STREAM_PER_THREAD;

    return capture->stream == stream && (!is_own || pthread_equal(capture->thread, pthread_self()));
}

void captures_begin(CUstream stream)
{
    pthread_mutex_lock(&lock);
    if (count < MOST)
        captures[count++] = (struct capture){stream, pthread_self()};
    else
        too_many = true;
    pthread_mutex_unlock(&lock);
}

void captures_end(CUstream stream)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count; i++) {
        if (!is_same(&captures[i], stream))
            continue;
        captures[i] = captures[--count];
        break;
    }
    pthread_mutex_unlock(&lock);
}

bool captures_any(void)
{
    bool any;

    pthread_mutex_lock(&lock);
    any = count || too_many;
    pthread_mutex_unlock(&lock);
    return any;
}

void captures_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    count = 0;
    too_many = false;
}
