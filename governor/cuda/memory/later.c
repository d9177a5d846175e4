// SPDX-License-Identifier: MIT
#include "later.h"

#include <stdlib.h>
#include <time.h>

#include "forks.h"
#include "meter.h"
#include "real.h"

#define PATIENCE_NS 100000000u
#define LOOK_NS     1000000u

/* @event: of @context, behind the call that frees
 * @aside: its context may be ending, and the event with it: it is not asked for */
struct later {
    struct later *next;
    struct charge charge;
    CUcontext context;
    CUevent event;
    bool aside;
};

/* Held over queries of events, so that none ends meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct later *list;
static _Atomic unsigned int count;

/* Under the lock. */
static void give_later(struct later **at)
{
    struct later *later = *at;

    *at = later->next;
    charge_give(&later->charge);
    free(later);
    count--;
}

static bool record_later(struct later *later, CUstream stream, bool per_thread)
{
    if (DRIVER(cuCtxGetCurrent, &later->context) != CUDA_SUCCESS ||
        DRIVER(cuEventCreate, &later->event, 0) != CUDA_SUCCESS)
        return false;
    if ((per_thread ? DRIVER(cuEventRecord_ptsz, later->event, stream)
                    : DRIVER(cuEventRecord, later->event, stream)) == CUDA_SUCCESS)
        return true;
    DRIVER(cuEventDestroy_v2, later->event);
    return false;
}

/* Under the lock. True if some of @gpu came; NULL: of any. */
static bool give_what_came(const struct gpu *gpu)
{
    struct later **at = &list;
    bool given = false;

    while (*at) {
        if ((*at)->aside || DRIVER(cuEventQuery, (*at)->event) == CUDA_ERROR_NOT_READY) {
            at = &(*at)->next;
            continue;
        }
        DRIVER(cuEventDestroy_v2, (*at)->event);
        given |= !gpu || (*at)->charge.gpu == gpu;
        give_later(at);
    }
    return given;
}

static bool look_for_freed(const struct gpu *gpu)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool given;

    if (!count)
        return false;
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    pthread_mutex_lock(&lock);
    given = give_what_came(gpu);
    pthread_mutex_unlock(&lock);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    return given;
}

void later_give(struct charge *charge, CUstream stream, bool per_thread)
{
    struct later *later = charge->gpu ? calloc(1, sizeof(*later)) : NULL;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool recorded;

    look_for_freed(NULL);
    if (!later || meter_is_capturing(stream, per_thread)) {
        free(later);
        charge_give(charge);
        return;
    }
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    recorded = record_later(later, stream, per_thread);
    DRIVER(cuThreadExchangeStreamCaptureMode, &mode);
    if (!recorded) {
        free(later);
        charge_give(charge);
        return;
    }
    later->charge = *charge;
    pthread_mutex_lock(&lock);
    later->next = list;
    list = later;
    count++;
    pthread_mutex_unlock(&lock);
    look_for_freed(NULL);
}

static bool frees_some_of(const struct gpu *gpu)
{
    bool some = false;

    if (!count)
        return false;
    pthread_mutex_lock(&lock);
    for (const struct later *later = list; later && !some; later = later->next)
        some = later->charge.gpu == gpu;
    pthread_mutex_unlock(&lock);
    return some;
}

bool later_make_room(struct gpu *gpu)
{
    const struct timespec some = {.tv_nsec = LOOK_NS};
    bool given = false;

    for (unsigned int i = 0; i < PATIENCE_NS / LOOK_NS && !given && frees_some_of(gpu); i++) {
        given = look_for_freed(gpu);
        if (!given)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &some, NULL);
    }
    return given;
}

void later_set_aside(CUcontext context)
{
    pthread_mutex_lock(&lock);
    for (struct later *later = list; later; later = later->next)
        later->aside |= context && later->context == context;
    pthread_mutex_unlock(&lock);
}

void later_take_back(CUcontext context, bool is_over)
{
    struct later **at = &list;

    pthread_mutex_lock(&lock);
    while (*at) {
        if (context && (*at)->context == context && is_over) {
            give_later(at);
            continue;
        }
        if (context && (*at)->context == context)
            (*at)->aside = false;
        at = &(*at)->next;
    }
    pthread_mutex_unlock(&lock);
}

void later_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    list = NULL;
    count = 0;
}
