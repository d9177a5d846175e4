// SPDX-License-Identifier: MIT
#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The driver's own limit for locking ends before ours. */
#define MARGIN_MS 500u

/* Of each step: all of its fields that we do not name are 0. */
union arguments {
    unsigned int timeout_ms;
    uint64_t words[8];
};

static struct {
    int (*init)(unsigned int flags);
    int (*error_name)(int result, const char **name);
    int (*state)(int pid, unsigned int *state);
    int (*steps[4])(int pid, union arguments *arguments);
} driver;

static const char *const step_names[] = {"cuCheckpointProcessLock", "cuCheckpointProcessCheckpoint",
                                         "cuCheckpointProcessRestore", "cuCheckpointProcessUnlock"};

/**
 * struct call - of a thread of its own, which may outlive the wait for it
 * @result: -1: it has not ended
 * @left: nobody waits any more: the thread frees it
 */
struct call {
    enum step step;
    int pid;
    union arguments arguments;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int result;
    bool left;
};

static bool is_busy;

bool driver_is_busy(void)
{
    return is_busy;
}

static bool find_function(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    *(void **)function = found;
    return found;
}

const char *driver_open(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    bool has_all;
    int result;

    if (!library)
        return dlerror();
    has_all = find_function(library, "cuInit", &driver.init) &&
              find_function(library, "cuGetErrorName", &driver.error_name) &&
              find_function(library, "cuCheckpointProcessGetState", &driver.state);
    for (unsigned int i = 0; has_all && i < 4; i++)
        has_all = find_function(library, step_names[i], &driver.steps[i]);
    if (!has_all)
        return "the driver cannot suspend processes: version 570 or later is needed";
    result = driver.init(0);
    return result ? "cuInit failed" : NULL;
}

enum state driver_state(int pid)
{
    unsigned int state = STATE_UNKNOWN;

    if (driver.state(pid, &state) || state > STATE_FAILED)
        return STATE_UNKNOWN;
    return (enum state)state;
}

const char *driver_state_name(enum state state)
{
    static const char *const names[] = {"running", "locked", "suspended", "failed", "unknown"};

    return names[state];
}

static void *run_call(void *data)
{
    struct call *call = data;
    int result = driver.steps[call->step](call->pid, &call->arguments);
    bool left;

    pthread_mutex_lock(&call->lock);
    call->result = result;
    left = call->left;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&call->lock);
    if (left)
        free(call);
    return NULL;
}

static struct call *call_new(enum step step, int pid, unsigned int limit_ms)
{
    struct call *call = calloc(1, sizeof(*call));
    pthread_condattr_t monotonic;

    if (!call)
        return NULL;
    call->step = step;
    call->pid = pid;
    call->result = -1;
    if (step == STEP_LOCK)
        call->arguments.timeout_ms = limit_ms > 2 * MARGIN_MS ? limit_ms - MARGIN_MS : limit_ms;
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&call->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return call;
}

/* Its result; -1: it has not ended, and the thread frees @call. */
static int await_call(struct call *call, unsigned int limit_ms)
{
    struct timespec until;
    int result;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_ms / 1000;
    until.tv_nsec += (long)(limit_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&call->lock);
    while (call->result < 0 &&
           pthread_cond_timedwait(&call->ended, &call->lock, &until) != ETIMEDOUT)
        ;
    result = call->result;
    call->left = result < 0;
    pthread_mutex_unlock(&call->lock);
    if (result >= 0)
        free(call);
    return result;
}

const char *driver_step(enum step step, int pid, unsigned int limit_ms)
{
    static char text[128];
    struct call *call = call_new(step, pid, limit_ms);
    const char *name = NULL;
    pthread_t thread;
    int result;

    if (!call || pthread_create(&thread, NULL, run_call, call)) {
        free(call);
        return "no memory for a thread";
    }
    pthread_detach(thread);
    result = await_call(call, limit_ms);
    if (!result)
        return NULL;
    is_busy |= result < 0;
    if (result < 0)
        snprintf(text, sizeof(text), "%s has not ended after %u ms", step_names[step], limit_ms);
    else if (driver.error_name(result, &name) || !name)
        snprintf(text, sizeof(text), "%s: error %d", step_names[step], result);
    else
        snprintf(text, sizeof(text), "%s: %s", step_names[step], name);
    return text;
}
