// SPDX-License-Identifier: MIT
#include "later.h"

#include <stdlib.h>
#include <time.h>

#include "forks.h"
#include "meter.h"
#include "real.h"

#define PATIENCE_NS 100000000u
#define LOOK_NS     1000000u

/* @event: of @context, behind the call that frees */
struct later {
    struct later *next;
    struct charge charge;
    CUcontext context;
    CUevent event;
};

/* Held over queries of events, so that none ends meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct later *list;
static _Atomic unsigned int count;

static bool record(struct later *later, CUstream stream, bool per_thread)
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

/* Under the lock: takes out what has come, of the context if one is given, and gives it back. */
static bool give_what_came(CUcontext ends)
{
    struct later **at = &list;
    bool given = false;

    while (*at) {
        struct later *later = *at;

        if (ends ? later->context != ends
                 : DRIVER(cuEventQuery, later->event) == CUDA_ERROR_NOT_READY) {
            at = &later->next;
            continue;
        }
        *at = later->next;
        DRIVER(cuEventDestroy_v2, later->event);
        charge_give(&later->charge);
        free(later);
        count--;
        given = true;
    }
    return given;
}

static bool look_for_freed(CUcontext ends)
{
    CUstreamCaptureMode mode;
    bool given;

    if (!count)
        return false;
    meter_relax(&mode);
    pthread_mutex_lock(&lock);
    given = give_what_came(ends);
    pthread_mutex_unlock(&lock);
    meter_unrelax(&mode);
    return given;
}

void later_give(struct charge *charge, CUstream stream, bool per_thread)
{
    struct later *later = charge->gpu ? calloc(1, sizeof(*later)) : NULL;
    CUstreamCaptureMode mode;
    bool recorded;

    look_for_freed(NULL);
    if (!later || meter_is_capturing(stream, per_thread)) {
        free(later);
        charge_give(charge);
        return;
    }
    meter_relax(&mode);
    recorded = record(later, stream, per_thread);
    meter_unrelax(&mode);
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

bool later_make_room(struct gpu *gpu)
{
    const struct timespec some = {.tv_nsec = LOOK_NS};
    bool given = false;

    (void)gpu;
    for (unsigned int i = 0; i < PATIENCE_NS / LOOK_NS && count && !given; i++) {
        given = look_for_freed(NULL);
        if (!given)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &some, NULL);
    }
    return given;
}

void later_context_ends(CUcontext context)
{
    if (context)
        look_for_freed(context);
}

void later_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    list = NULL;
    count = 0;
}
