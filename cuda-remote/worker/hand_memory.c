// SPDX-License-Identifier: MIT
/* Memory of the host that the GPU reaches, and what the driver knows of addresses. */
#include "hand.h"
#include "worker.h"

#include <string.h>

#include "numbers.h"

enum { REGISTER_PORTABLE = 1, REGISTER_DEVICEMAP = 2 };
enum { NOT_REGISTERED = 713 };
enum { POINTER_CONTEXT = 1, POINTER_P2P_TOKENS = 5, POINTER_SYNC_MEMOPS = 6, POINTER_POOL = 17 };

static CUresult register_memory(uint64_t address, uint64_t bytes)
{
    CUresult (*lock)(void *, size_t, unsigned int) = driver_function(CALL_cuMemHostRegister_v2);
    CUresult result;

    if (!lock)
        return CUDA_ERROR_NOT_SUPPORTED;
    /* Before the driver has it, so that it is not given back meanwhile. */
    if (!shared_add_pin(address, current_context()))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = lock((void *)(uintptr_t)address, bytes, REGISTER_PORTABLE | REGISTER_DEVICEMAP);
    if (result != CUDA_SUCCESS)
        shared_end_pin(address);
    return result;
}

static CUresult unregister_memory(uint64_t address)
{
    CUresult (*unlock)(void *) = driver_function(CALL_cuMemHostUnregister);
    CUresult result = unlock ? unlock((void *)(uintptr_t)address) : CUDA_ERROR_NOT_SUPPORTED;

    if (result == CUDA_SUCCESS || result == (CUresult)NOT_REGISTERED)
        shared_end_pin(address);
    return result;
}

/* Without a current context the driver may not say that it has nothing registered there. */
void host_memory_end_context(uint64_t context)
{
    uint64_t address;

    while (context && (address = shared_pin_of(context))) {
        CUresult result = unregister_memory(address);

        if (result != CUDA_SUCCESS && result != (CUresult)NOT_REGISTERED)
            shared_end_pin(address);
    }
}

CUresult hand_host_memory(struct request *request)
{
    const struct hand_host_memory *head = (const void *)request->head;

    if (request->head_bytes < sizeof(*head) || !request_uses(request, head->address, head->bytes)) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return request->number == CALL_cuMemFreeHost ? unregister_memory(head->address)
                                                 : register_memory(head->address, head->bytes);
}

/* Of several attributes, those that a pointer does not have are no error, and the driver writes
 * something for them, too. One without this function had fewer attributes. */
static CUresult read_attribute(unsigned int attribute, CUdeviceptr address, uint64_t *to)
{
    CUresult (*get_all)(unsigned int, unsigned int *, void **, CUdeviceptr) =
        driver_function(CALL_cuPointerGetAttributes);
    void *data = to;

    return get_all ? get_all(1, &attribute, &data, address) : CUDA_ERROR_NOT_SUPPORTED;
}

/*
 * The driver writes as many bytes as an attribute has, and a program has room for no more. How many
 * these are is seen by asking twice, into different values.
 */
static void get_value(unsigned int attribute, CUdeviceptr address, struct hand_value *value)
{
    CUresult (*get)(void *, unsigned int, CUdeviceptr) =
        driver_function(CALL_cuPointerGetAttribute);
    uint64_t first = 0, second = ~0ull;

    value->result = CUDA_ERROR_NOT_SUPPORTED;
    if (!get || attribute == POINTER_P2P_TOKENS)
        return;
    value->result = get(&first, attribute, address);
    if (read_attribute(attribute, address, &first) != CUDA_SUCCESS ||
        read_attribute(attribute, address, &second) != CUDA_SUCCESS)
        return;
    for (unsigned int i = 0; i < 8; i++)
        if (((first >> (8 * i)) & 0xff) == ((second >> (8 * i)) & 0xff))
            value->written |= 1u << i;
    value->value = first;
    if (attribute == POINTER_CONTEXT)
        value->value = object_number(OBJECT_CUcontext, (void *)(uintptr_t)first, 0);
    else if (attribute == POINTER_POOL)
        value->value = object_number(OBJECT_CUmemoryPool, (void *)(uintptr_t)first, 0);
}

CUresult hand_pointer(struct request *request)
{
    CUresult (*set)(const void *, unsigned int, CUdeviceptr) =
        driver_function(CALL_cuPointerSetAttribute);
    const struct hand_pointer *head = (const void *)request->head;
    size_t at = request->flags & RECORD_BULK ? 0 : sizeof(*head);
    CUresult result = CUDA_SUCCESS;
    const uint32_t *attributes;

    if (request->head_bytes < sizeof(*head) || !head->count || head->count > HAND_ATTRIBUTES_MOST) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    attributes = request_part(request, &at, head->count * sizeof(*attributes));
    if (!attributes)
        return CUDA_ERROR_INVALID_VALUE;
    if (request->number == CALL_cuPointerSetAttribute)
        return set && attributes[0] == POINTER_SYNC_MEMOPS
                   ? set(&head->value, attributes[0], head->address)
                   : CUDA_ERROR_NOT_SUPPORTED;
    for (uint32_t i = 0; i < head->count; i++) {
        struct hand_value *value = request_answer(request, sizeof(*value));

        if (!value)
            return CUDA_ERROR_INVALID_VALUE;
        get_value(attributes[i], head->address, value);
        if (request->number == CALL_cuPointerGetAttribute)
            result = (CUresult)value->result;
    }
    return result;
}
