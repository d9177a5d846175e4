// SPDX-License-Identifier: MIT
/* Devices; contexts, which have hidden memory of their own; how much memory there is. */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "card.h"
#include "timing.h"

/* @peers: devices whose memory it reaches, a bit for each */
struct context {
    int device;
    uint64_t hidden;
    unsigned int peers;
};

#define CONTEXTS_MOST 256

/* Over all contexts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts[CONTEXTS_MOST];
static struct primary {
    struct context *context;
    unsigned int users;
} primaries[CARD_DEVICES];
static _Thread_local struct context *current;
/* What was current before a push. */
static _Thread_local struct context *below[8];
static _Thread_local unsigned int depth;

CUcontext fake_current(void)
{
    return (CUcontext)current;
}

int fake_device(void)
{
    return current ? current->device : 0;
}

int fake_device_of(CUstream stream)
{
    return stream == FAKE_OF_SECOND ? 1 : fake_device();
}

bool fake_take(int device, uint64_t bytes)
{
    return device || card_take(bytes);
}

/* CUDA's order need not be NVML's. Of what CUDA_VISIBLE_DEVICES can say, "1,0" is known. */
static const char *pci_of(int device)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    return card_pci(visible && !strcmp(visible, "1,0") && device < 2 ? 1 - device : device);
}

bool fake_exists(CUdevice device)
{
    return device >= 0 && device < card_devices();
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER();
    *version = 13020;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER();
    *count = card_devices();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER();
    if (!fake_exists(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
    ENTER();
    if (!fake_exists(device) || length < 13)
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(id, pci_of(device), 13);
    return CUDA_SUCCESS;
}

/* Where @context is; NULL: it is none. */
static struct context **place_of(const void *context)
{
    for (unsigned int i = 0; i < CONTEXTS_MOST; i++) {
        if (contexts[i] == context)
            return &contexts[i];
    }
    return NULL;
}

static CUresult make_context(struct context **made, CUdevice device)
{
    struct context **place = place_of(NULL);
    uint64_t hidden = device ? 0 : card_setting("FAKE_CUDA_HIDDEN", 0);

    if (!place || !card_take(hidden))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *place = *made = calloc(1, sizeof(**made));
    (*made)->device = device;
    (*made)->hidden = hidden;
    return CUDA_SUCCESS;
}

static void end_context(struct context *context)
{
    fake_free_context((CUcontext)context);
    timing_end_context((CUcontext)context);
    fake_unmap_arrays_of((CUcontext)context);
    fake_give(context->hidden);
    if (current == context)
        current = NULL;
    *place_of(context) = NULL;
    free(context);
}

static CUresult create(CUcontext *made, CUdevice device)
{
    CUresult result;

    if (!made || !fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    result = make_context((struct context **)made, device);
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        return result;
    /* It is pushed. */
    if (depth < sizeof(below) / sizeof(below[0]))
        below[depth++] = current;
    current = (struct context *)*made;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *made, unsigned int flags, CUdevice device)
{
    ENTER();
    (void)flags;
    return create(made, device);
}

CUresult cuCtxCreate_v2(CUcontext *made, unsigned int flags, CUdevice device)
{
    ENTER();
    (void)flags;
    return create(made, device);
}

CUresult cuCtxCreate_v3(CUcontext *made, void *parameters, int count, unsigned int flags,
                        CUdevice device)
{
    ENTER();
    (void)parameters;
    (void)count;
    (void)flags;
    return create(made, device);
}

CUresult cuCtxCreate_v4(CUcontext *made, void *parameters, unsigned int flags, CUdevice device)
{
    ENTER();
    (void)parameters;
    (void)flags;
    return create(made, device);
}

CUresult cuGLCtxCreate_v2(CUcontext *made, unsigned int flags, CUdevice device)
{
    ENTER();
    (void)flags;
    return create(made, device);
}

CUresult cuVDPAUCtxCreate_v2(CUcontext *made, unsigned int flags, CUdevice device,
                             unsigned int vdp_device, void *vdp_get_proc_address)
{
    ENTER();
    (void)flags;
    (void)vdp_device;
    (void)vdp_get_proc_address;
    return create(made, device);
}

static bool is_primary(CUcontext context)
{
    for (int i = 0; i < CARD_DEVICES; i++)
        if ((CUcontext)primaries[i].context == context)
            return true;
    return false;
}

/* One that was pushed is popped. */
static CUresult destroy(CUcontext context)
{
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    bool is_current = context == (CUcontext)current;

    pthread_mutex_lock(&lock);
    if (context && place_of(context) && !is_primary(context)) {
        end_context((struct context *)context);
        if (is_current && depth && place_of(below[--depth]))
            current = below[depth];
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuCtxDestroy(CUcontext context)
{
    ENTER();
    return destroy(context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    ENTER();
    return destroy(context);
}

CUresult cuCtxDetach(CUcontext context)
{
    ENTER();
    return destroy(context);
}

/* A green one is a context here, in which work is launched. */
CUresult cuGreenCtxCreate(CUgreenCtx *made, void *resources, CUdevice device, unsigned int flags)
{
    CUresult result;

    ENTER();
    (void)resources;
    (void)flags;
    if (!made || !fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    result = make_context((struct context **)made, device);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx of)
{
    ENTER();
    *context = (CUcontext)of;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    ENTER();
    return destroy((CUcontext)context);
}

static CUresult set_current(CUcontext context)
{
    bool is_one;

    pthread_mutex_lock(&lock);
    is_one = place_of(context) != NULL;
    pthread_mutex_unlock(&lock);
    if (is_one)
        current = (struct context *)context;
    return is_one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER();
    return set_current(context);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER();
    *context = (CUcontext)current;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    struct context *before = current;
    CUresult result;

    ENTER();
    if (depth == sizeof(below) / sizeof(below[0]))
        return CUDA_ERROR_INVALID_VALUE;
    result = set_current(context);
    if (result == CUDA_SUCCESS)
        below[depth++] = before;
    return result;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    ENTER();
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = (CUcontext)current;
    current = below[--depth];
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    ENTER();
    *context = (CUcontext)current;
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; stream == FAKE_OF_SECOND && i < CONTEXTS_MOST; i++) {
        if (contexts[i] && contexts[i]->device == 1)
            *context = (CUcontext)contexts[i];
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER();
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = current->device;
    return CUDA_SUCCESS;
}

CUresult fake_grow_context(uint64_t bytes)
{
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!card_take(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    current->hidden += bytes;
    return CUDA_SUCCESS;
}

void fake_shrink_context(CUcontext context, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (context && place_of(context)) {
        ((struct context *)context)->hidden -= bytes;
        fake_give(bytes);
    }
    pthread_mutex_unlock(&lock);
}

/* A stack that grows is the context's. */
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    ENTER();
    return limit == CU_LIMIT_STACK_SIZE ? fake_grow_context(value) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = CUDA_SUCCESS;
    struct primary *primary;

    ENTER();
    if (!context || !fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    primary = &primaries[device];
    pthread_mutex_lock(&lock);
    if (!primary->users)
        result = make_context(&primary->context, device);
    if (result == CUDA_SUCCESS) {
        primary->users++;
        *context = (CUcontext)primary->context;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* All its users do with a reset. */
static CUresult release(CUdevice device, bool all)
{
    struct primary *primary;
    unsigned int users;

    if (!fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    primary = &primaries[device];
    pthread_mutex_lock(&lock);
    users = primary->users;
    primary->users = users && !all ? users - 1 : 0;
    if (users && !primary->users) {
        end_context(primary->context);
        primary->context = NULL;
    }
    pthread_mutex_unlock(&lock);
    return users ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER();
    return release(device, false);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER();
    return release(device, false);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    ENTER();
    return release(device, true);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    ENTER();
    return release(device, true);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    ENTER();
    if (!fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    pthread_mutex_lock(&lock);
    *active = primaries[device].users > 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER();
    if (!can || !fake_exists(device) || !fake_exists(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

/* CUdevice_P2PAttribute: how fast, whether at all, atomics, arrays. */
CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer)
{
    ENTER();
    if (!fake_exists(device) || !fake_exists(peer) || device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attribute < 1 || attribute > 4)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute > 1;
    return CUDA_SUCCESS;
}

#define PEER_ACCESS_ALREADY_ENABLED ((CUresult)704)
#define PEER_ACCESS_NOT_ENABLED     ((CUresult)705)
#define PEER_ACCESS_UNSUPPORTED     ((CUresult)217)

static CUresult reach_peer(CUcontext peer, bool reaches)
{
    CUresult result = CUDA_SUCCESS;
    unsigned int bit;

    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    if (!peer || !place_of(peer)) {
        pthread_mutex_unlock(&lock);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    bit = 1u << ((struct context *)peer)->device;
    if (((struct context *)peer)->device == current->device)
        result = PEER_ACCESS_UNSUPPORTED;
    else if (reaches && (current->peers & bit))
        result = PEER_ACCESS_ALREADY_ENABLED;
    else if (!reaches && !(current->peers & bit))
        result = PEER_ACCESS_NOT_ENABLED;
    else
        current->peers ^= bit;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    ENTER();
    return flags ? CUDA_ERROR_INVALID_VALUE : reach_peer(peer, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    ENTER();
    return reach_peer(peer, false);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *address)
{
    ENTER();
    if (!device || !address)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < card_devices(); i++) {
        if (strcasecmp(pci_of(i), address))
            continue;
        *device = i;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct card card;

    ENTER();
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    card_look(&card);
    if (free)
        *free = card.total - card.used;
    if (total)
        *total = card.total;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    struct card card;

    ENTER();
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    card_look(&card);
    *free = (unsigned int)(card.total - card.used);
    *total = (unsigned int)card.total;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    ENTER();
    if (!bytes || !fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = card_get()->total;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    ENTER();
    if (!bytes || !fake_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = (unsigned int)card_get()->total;
    return CUDA_SUCCESS;
}
