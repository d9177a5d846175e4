// SPDX-License-Identifier: MIT
/* cuGetProcAddress: the form of a function that a version of CUDA means, of those that the driver
 * in the worker has. */
#include "remote.h"

#include "entries.h"

#include <string.h>

static bool is_per_thread(const struct entry *entry)
{
    size_t length = strlen(entry->name);

    return length > 5 && (!strcmp(entry->name + length - 5, "_ptsz") ||
                          !strcmp(entry->name + length - 5, "_ptds"));
}

static bool is_here(const struct entry *entry)
{
    return signatures[entry->number].mode != CALL_REFUSE &&
           (signatures[entry->number].mode == CALL_LOCAL || connect_has(entry->number));
}

/* The latest form that is not later than @version; one for per-thread streams if there is one and
 * it is wanted. */
static const struct entry *find_form(const char *base, int version, bool per_thread, bool *is_later)
{
    const struct entry *best = NULL;

    *is_later = false;
    for (unsigned int i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];

        if (strcmp(entry->base, base) || (is_per_thread(entry) && !per_thread) || !is_here(entry))
            continue;
        if (entry->since > version)
            *is_later = true;
        else if (!best || entry->since > best->since ||
                 (entry->since == best->since && is_per_thread(entry)))
            best = entry;
    }
    return best;
}

/* As the driver's: a name that it does not know is no error of this form. */
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **to, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status);
CUresult cuGetProcAddress_v2(const char *symbol, void **to, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const struct entry *entry;
    bool is_later;

    if (!symbol || !to || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    connect_worker();
    entry = find_form(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                      &is_later);
    *to = entry ? (void *)(uintptr_t)entry->function : NULL;
    if (status)
        *status = entry      ? CU_GET_PROC_ADDRESS_SUCCESS
                  : is_later ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                             : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **to, int version, cuuint64_t flags);
CUresult cuGetProcAddress(const char *symbol, void **to, int version, cuuint64_t flags)
{
    void *found = NULL;
    CUresult result = cuGetProcAddress_v2(symbol, &found, version, flags, NULL);

    if (result == CUDA_SUCCESS && !found)
        return CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS)
        *to = found;
    return result;
}
