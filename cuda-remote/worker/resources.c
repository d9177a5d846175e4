// SPDX-License-Identifier: MIT
/*
 * A GPU's resources, from which green contexts are made: the driver hands them out as structures in
 * which it has hidden something of its own. That stays here, and the program has a number in its
 * place: nothing that a program makes up is the driver's.
 */
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* CUdevResource: a type; what is hidden, in which the number is; what a program reads or sets; and
 * the next one of a chain, which is an address. */
#define RESOURCE_BYTES 144u
#define HIDDEN_AT      4u
#define NUMBER_AT      8u
#define SHOWN_AT       96u
#define NEXT_AT        136u
#define HIDDEN_BYTES   (SHOWN_AT - HIDDEN_AT)
#define KEPT_MOST      65536u

struct kept {
    uint8_t type[HIDDEN_AT], hidden[HIDDEN_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *kept;
static uint64_t kept_count;

/* The same one again has the same number. 0: there is no room. */
static uint64_t keep_resource(const uint8_t *resource)
{
    uint64_t at = 0;

    while (at < kept_count && memcmp(&kept[at], resource, sizeof(*kept)))
        at++;
    if (at == kept_count) {
        struct kept *more = at < KEPT_MOST ? realloc(kept, (size_t)(at + 1) * sizeof(*kept)) : NULL;

        if (!more)
            return 0;
        kept = more;
        memcpy(&kept[kept_count++], resource, sizeof(*kept));
    }
    return at + 1;
}

CUresult resource_hide(uint8_t *resource)
{
    static const uint8_t none[HIDDEN_AT];
    uint64_t number;

    if (!memcmp(resource, none, sizeof(none)))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    number = keep_resource(resource);
    pthread_mutex_unlock(&lock);
    memset(resource + HIDDEN_AT, 0, HIDDEN_BYTES);
    memset(resource + NEXT_AT, 0, RESOURCE_BYTES - NEXT_AT);
    memcpy(resource + NUMBER_AT, &number, sizeof(number));
    return number ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult resource_reveal(uint8_t *resource)
{
    bool is_known = false;
    uint64_t number, next;

    memcpy(&number, resource + NUMBER_AT, sizeof(number));
    memcpy(&next, resource + NEXT_AT, sizeof(next));
    if (next)
        return CUDA_ERROR_NOT_SUPPORTED;
    memset(resource + HIDDEN_AT, 0, HIDDEN_BYTES);
    pthread_mutex_lock(&lock);
    if (number && number <= kept_count) {
        is_known = !memcmp(resource, kept[number - 1].type, HIDDEN_AT);
        memcpy(resource + HIDDEN_AT, kept[number - 1].hidden, HIDDEN_BYTES);
    }
    pthread_mutex_unlock(&lock);
    return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
