// SPDX-License-Identifier: MIT
#include "places.h"

#include "charge.h"
#include "join.h"
#include "real.h"

#define KNOWN        4
#define NOT_ON_A_GPU (-1)

/* @device: NOT_ON_A_GPU: the host's, or managed, which moves
 * @gone: charge_gone() when it was asked for: with memory that goes, its address may be another's
 */
struct range {
    uint64_t at;
    uint64_t bytes;
    int device;
    uint64_t gone;
};

static _Thread_local struct range known[KNOWN];
static _Thread_local unsigned int next_known;

static const struct range *find_range(uint64_t at)
{
    uint64_t gone = charge_gone();

    for (unsigned int i = 0; i < KNOWN; i++)
        if (at - known[i].at < known[i].bytes && known[i].gone == gone)
            return &known[i];
    return NULL;
}

/* Pageable memory is no range, and is not remembered. */
static int ask_driver(CUdeviceptr at)
{
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned int type = 0, is_managed = 0;
    struct range range = {.gone = charge_gone()};
    void *data[] = {&type, &range.device, &is_managed, &range.at, &range.bytes};

    if (DRIVER(cuPointerGetAttributes, sizeof(data) / sizeof(data[0]), attributes, data, at) !=
            CUDA_SUCCESS ||
        !type)
        return NOT_ON_A_GPU;
    if (type != CU_MEMORYTYPE_DEVICE || (is_managed & 1))
        range.device = NOT_ON_A_GPU;
    known[next_known++ % KNOWN] = range;
    return range.device;
}

static int device_at(CUdeviceptr at)
{
    const struct range *range = find_range(at);

    return range ? range->device : ask_driver(at);
}

static bool is_inside(CUdeviceptr to, CUdeviceptr from)
{
    int device = device_at(to);

    return device != NOT_ON_A_GPU && device == device_at(from);
}

bool places_are_inside(CUdeviceptr to, CUdeviceptr from, uint64_t bytes)
{
    return bytes >= PLACES_LARGE && gpu_current() && is_inside(to, from);
}

bool places_are_inside_all(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes,
                           size_t count)
{
    size_t largest = 0, sum = 0;

    if (!to || !from || !sizes)
        return false;
    for (size_t i = 0; i < count; i++) {
        sum += sizes[i];
        largest = sizes[i] > sizes[largest] ? i : largest;
    }
    return count && places_are_inside(to[largest], from[largest], sum);
}
