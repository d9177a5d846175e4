// SPDX-License-Identifier: MIT
/* What the driver knows of an address. Of memory that the program has allocated it is asked once.
 */
#include "places.h"
#include "remote.h"

#include <string.h>

enum {
    POINTER_CONTEXT = 1,
    POINTER_DEVICE_POINTER = 3,
    POINTER_HOST_POINTER = 4,
    POINTER_P2P_TOKENS = 5,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_POOL = 17,
};

/* In place_fact.written: @value is the distance from the address that is asked about. */
#define IS_DISTANCE (1u << 8)

/*
 * It is the same for all addresses of the memory, as long as that is not freed. The address for
 * kernels depends on the current context, too.
 */
static bool is_lasting(unsigned int attribute)
{
    return attribute && attribute < PLACE_FACTS && attribute != POINTER_DEVICE_POINTER &&
           attribute != POINTER_P2P_TOKENS && attribute != POINTER_SYNC_MEMOPS;
}

static struct place_fact fact_of(unsigned int attribute, const struct hand_value *value,
                                 CUdeviceptr address)
{
    struct place_fact fact = {value->value, value->written, value->result};

    if (attribute == POINTER_CONTEXT || attribute == POINTER_POOL)
        fact.value = object_of_number(fact.value);
    if (fact.value && (attribute == POINTER_DEVICE_POINTER || attribute == POINTER_HOST_POINTER)) {
        fact.value -= address;
        fact.written |= IS_DISTANCE;
    }
    return fact;
}

/* As many bytes as the driver would have written. */
static void put_fact(void *to, const struct place_fact *fact, CUdeviceptr address)
{
    uint64_t is = fact->written & IS_DISTANCE ? fact->value + address : fact->value;

    if (fact->written == 0xf) {
        memcpy(to, &is, 4);
        return;
    }
    for (unsigned int i = 0; i < 8; i++)
        if (fact->written & (1u << i))
            ((uint8_t *)to)[i] = (uint8_t)(is >> (8 * i));
}

/*
 * That the memory has no such attribute lasts; other errors are of this moment. What a worker of
 * before says has no result of its own.
 */
static bool is_fact(const struct place_fact *fact)
{
    return fact->result == CUDA_SUCCESS ? fact->written : fact->result == CUDA_ERROR_INVALID_VALUE;
}

static CUresult ask_facts(unsigned int number, unsigned int count, const unsigned int *attributes,
                          struct place_fact *facts, CUdeviceptr address)
{
    const struct hand_pointer head = {.address = address, .count = count};
    struct hand_value values[HAND_ATTRIBUTES_MOST] = {{0}};
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    uint64_t changes = place_changes();
    CUresult result;

    exchange_in(&ask, attributes, count * sizeof(*attributes));
    exchange_out(&ask, values, count * sizeof(*values));
    result = exchange_run(&ask);
    for (unsigned int i = 0; i < count; i++) {
        facts[i] = fact_of(attributes[i], &values[i], address);
        if (is_lasting(attributes[i]) && is_fact(&facts[i]))
            place_learn(address, attributes[i], &facts[i], changes);
    }
    return result;
}

EXPORT CUresult cuPointerGetAttribute(void *data, unsigned int attribute, CUdeviceptr address);
CUresult cuPointerGetAttribute(void *data, unsigned int attribute, CUdeviceptr address)
{
    CUresult result = data ? connect_usable() : CUDA_ERROR_INVALID_VALUE;
    struct place_fact fact;

    if (result != CUDA_SUCCESS)
        return result;
    if (place_find_fact(address, attribute, &fact))
        result = (CUresult)fact.result;
    else
        result = ask_facts(CALL_cuPointerGetAttribute, 1, &attribute, &fact, address);
    if (result == CUDA_SUCCESS)
        put_fact(data, &fact, address);
    return result;
}

/* Of several attributes, those that a pointer does not have are what the driver makes them. */
EXPORT CUresult cuPointerGetAttributes(unsigned int count, unsigned int *attributes, void **data,
                                       CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned int count, unsigned int *attributes, void **data,
                                CUdeviceptr address)
{
    struct place_fact facts[HAND_ATTRIBUTES_MOST];
    CUresult result = connect_usable();
    unsigned int found = 0;

    if (result != CUDA_SUCCESS)
        return result;
    if (!count || count > HAND_ATTRIBUTES_MOST || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    while (found < count && place_find_fact(address, attributes[found], &facts[found]))
        found++;
    if (found < count)
        result = ask_facts(CALL_cuPointerGetAttributes, count, attributes, facts, address);
    for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (data[i])
            put_fact(data[i], &facts[i], address);
    return result;
}

EXPORT CUresult cuPointerSetAttribute(const void *value, unsigned int attribute,
                                      CUdeviceptr address);
CUresult cuPointerSetAttribute(const void *value, unsigned int attribute, CUdeviceptr address)
{
    struct hand_pointer head = {.address = address, .count = 1};
    struct exchange set = {
        .number = CALL_cuPointerSetAttribute, .head = &head, .head_bytes = sizeof(head)};

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    head.value = *(const unsigned int *)value;
    exchange_in(&set, &attribute, sizeof(attribute));
    return exchange_run(&set);
}
