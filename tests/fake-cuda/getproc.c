// SPDX-License-Identifier: MIT
/*
 * The function that a version of CUDA means by a name: the latest form that it had. Answers are
 * those of NVIDIA's 550 and 555, whose library gives them also without a GPU.
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/content.h"

static int is_per_thread(const char *name)
{
    size_t length = strlen(name);

    return length > 5 &&
           (!strcmp(name + length - 5, "_ptsz") || !strcmp(name + length - 5, "_ptds"));
}

/* What a driver may give out without exporting it. */
static CUresult unexported_alloc(CUdeviceptr *dptr, size_t bytes)
{
    return fake_alloc(bytes, dptr);
}

/* With FAKE_CUDA_LATER the driver has another mind than the table of when a form came. */
static int since_of(const struct fake_call *call)
{
    return getenv("FAKE_CUDA_LATER") && call->since == 12050 ? 13000 : call->since;
}

static void *look(const char *symbol, int version, int per_thread)
{
    const struct fake_call *best = NULL;

    if (!strcmp(symbol, "cuMemAlloc") && version >= 3020 && getenv("FAKE_CUDA_UNEXPORTED"))
        return (void *)unexported_alloc;
    /* A form of another name, as a later driver might. */
    if (!strcmp(symbol, "cuGraphInstantiate") && version >= 11040 &&
        getenv("FAKE_CUDA_INSTANTIATE"))
        symbol = "cuGraphInstantiateWithFlags";
    for (const struct fake_call *call = fake_calls; call->name; call++) {
        if (strcmp(call->base, symbol) || since_of(call) > version)
            continue;
        if (is_per_thread(call->name) && !per_thread)
            continue;
        if (!best || call->since > best->since ||
            (call->since == best->since && is_per_thread(call->name)))
            best = call;
    }
    return best ? best->function : NULL;
}

CUresult cuNewThing_v9(void);
CUresult cuMemNewAlloc(CUdeviceptr *dptr, size_t bytes);
CUresult cuMemAlloc_v9(int how, CUdeviceptr *dptr, size_t bytes);
CUresult cuMemcpyBatchAsync_v9(int how);
CUresult cuGetProcAddress_v9(int how);

/* Forms of CUDA 14, which no table has. NULL: of that name there is none. */
static void *look_later(const char *symbol)
{
    if (!strcmp(symbol, "cuMemAlloc"))
        return (void *)cuMemAlloc_v9;
    if (!strcmp(symbol, "cuMemcpyBatchAsync"))
        return (void *)cuMemcpyBatchAsync_v9;
    return !strcmp(symbol, "cuGetProcAddress") ? (void *)cuGetProcAddress_v9 : NULL;
}

/* Exported, and given to nobody. */
static bool is_never_given(const char *symbol)
{
    return !strncmp(symbol, "cudbg", 5) || !strcmp(symbol, "cuEGLApiInit") ||
           !strcmp(symbol, "cuMemGetAttribute");
}

static bool is_known(const char *symbol)
{
    for (const struct fake_call *call = fake_calls; call->name; call++)
        if (!strcmp(call->base, symbol))
            return !is_never_given(symbol);
    return false;
}

static void *find(const char *symbol, int version, cuuint64_t flags)
{
    if (!strcmp(symbol, "cuNewThing"))
        return (void *)cuNewThing_v9;
    if (!strcmp(symbol, "cuMemNewAlloc"))
        return (void *)cuMemNewAlloc;
    if (version >= 14000 && look_later(symbol))
        return look_later(symbol);
    return is_known(symbol)
               ? look(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0)
               : NULL;
}

#define FLAGS (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    void *found;

    ENTER();
    if (!symbol || !function || flags & ~(cuuint64_t)FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    found = find(symbol, version, flags);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    *function = found;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    ENTER();
    if (!symbol || !function || flags & ~(cuuint64_t)FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    *function = find(symbol, version, flags);
    if (status)
        *status = *function          ? CU_GET_PROC_ADDRESS_SUCCESS
                  : is_known(symbol) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

/* Of one that it does not have it says so, as NVIDIA's does. */
CUresult cuGetExportTable(const void **table, const void *id)
{
    ENTER();
    if (!table)
        return CUDA_ERROR_INVALID_VALUE;
    *table = table_find(id);
    if (!*table)
        *table = spike_table(id);
    return *table ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
