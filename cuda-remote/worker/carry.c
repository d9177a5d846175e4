// SPDX-License-Identifier: MIT
/*
 * A request of which the signature says all: its arguments are taken apart, checked, the driver is
 * called, and what it wrote becomes the answer. Everything is copied before it is looked at.
 */
#include "structure.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>

#define SCRATCH_MOST (1ull << 31)

static float float_of_word(uint64_t word)
{
    float value;

    memcpy(&value, &word, sizeof(value));
    return value;
}

struct bytes_64 {
    uint8_t byte[64];
};

#include "invoke.inc"
#include "numbers.h"

/* More than the channel keeps is a block of its own, until the next request. */
void *scratch_take(struct scratch *scratch, size_t bytes)
{
    size_t aligned = signature_align(bytes);
    struct scratch_block *block;

    if (aligned < bytes || aligned > SCRATCH_MOST - scratch->used)
        return NULL;
    scratch->used += aligned;
    if (aligned <= sizeof(scratch->kept) - scratch->kept_used) {
        void *at = scratch->kept + scratch->kept_used;

        scratch->kept_used += aligned;
        return at;
    }
    block = malloc(sizeof(*block) + aligned);
    if (!block)
        return NULL;
    block->next = scratch->blocks;
    scratch->blocks = block;
    return block->bytes;
}

void *scratch_take_zeros(struct scratch *scratch, size_t bytes)
{
    void *at = scratch_take(scratch, bytes);

    return at ? memset(at, 0, signature_align(bytes)) : NULL;
}

void scratch_empty(struct scratch *scratch)
{
    while (scratch->blocks) {
        struct scratch_block *block = scratch->blocks;

        scratch->blocks = block->next;
        free(block);
    }
    scratch->used = scratch->kept_used = 0;
}

/* Where the client has put the next part; NULL: it is not all there. */
static const uint8_t *part_place(struct request *request, size_t *at, size_t bytes)
{
    size_t from = *at, end = from + signature_align(bytes);

    if (signature_align(bytes) < bytes || end < from)
        return NULL;
    *at = end;
    if (!(request->flags & RECORD_BULK))
        return end <= request->head_bytes ? request->head + from : NULL;
    /* For each part anew, for it may be larger than what was used before. */
    return request_uses(request, request->bulk, end) ? (uint8_t *)(uintptr_t)request->bulk + from
                                                     : NULL;
}

bool request_uses(struct request *request, uint64_t address, uint64_t bytes)
{
    if (request->used_count == REQUEST_USES || !shared_use(address, bytes))
        return false;
    request->used[request->used_count++] = address;
    return true;
}

void request_end(struct request *request)
{
    while (request->used_count)
        shared_leave(request->used[--request->used_count]);
}

const void *request_part(struct request *request, size_t *at, size_t bytes)
{
    const uint8_t *from = part_place(request, at, bytes);
    void *to = from ? scratch_take(request->scratch, bytes) : NULL;

    if (to)
        memcpy(to, from, bytes);
    else
        request->is_broken = true;
    return to;
}

void *request_answer(struct request *request, size_t bytes)
{
    size_t aligned = signature_align(bytes);
    uint8_t *to;

    if (!request->out)
        request->out = scratch_take(request->scratch, request->out_most);
    if (!request->out || aligned < bytes || aligned > request->out_most - request->out_bytes) {
        request->is_broken = true;
        return NULL;
    }
    to = request->out + request->out_bytes;
    request->out_bytes += aligned;
    return memset(to, 0, aligned);
}

struct carried {
    const struct signature *signature;
    uint64_t words[SIGNATURE_ARGUMENTS]; /* as the client sent them, then as the driver gets them */
    uint64_t numbers[SIGNATURE_ARGUMENTS]; /* what pointers to numbers point to */
    size_t bytes[SIGNATURE_ARGUMENTS];
    uint64_t ends;  /* the object that does not exist afterwards */
    bool is_called; /* the driver was, so what is to be answered is its */
    uint64_t sent[SIGNATURE_ARGUMENTS];
};

static bool is_shared(const struct argument *argument, uint64_t word)
{
    return argument->is_shareable && word > 1;
}

/* False: the bytes that a part has cannot be. */
static bool measure_part(struct carried *call, unsigned int at)
{
    const struct argument *argument = &call->signature->arguments[at];

    if (!call->sent[at])
        call->bytes[at] = 0;
    else if (argument->kind == ARGUMENT_TEXT)
        call->bytes[at] = call->sent[at];
    else
        call->bytes[at] = signature_bytes(call->signature, at, call->sent, call->numbers);
    return call->bytes[at] <= SCRATCH_MOST || is_shared(argument, call->sent[at]);
}

/* The program's numbers in place, the driver's objects afterwards. */
static CUresult find_objects(unsigned int type, uint64_t *elements, size_t count)
{
    static const CUresult errors[] = {
        [OBJECT_NONE] = CUDA_ERROR_INVALID_HANDLE,
#define O(object, parent, error) [OBJECT_##object] = error,
#define H(type)
#include "objects.def"
#undef H
#undef O
    };

    for (size_t i = 0; i < count; i++) {
        void *real;

        if (!object_find(type, elements[i], &real))
            return errors[type];
        elements[i] = (uintptr_t)real;
    }
    return CUDA_SUCCESS;
}

CUresult structures_find(struct request *request, unsigned int structure, size_t each,
                         uint8_t *part, size_t bytes)
{
    for (size_t from = 0; from < bytes; from += each) {
        CUresult known = structure == STRUCTURE_CUdevResource         ? resource_reveal(part + from)
                         : structure_is_known(structure, part + from) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_NOT_SUPPORTED;

        if (known != CUDA_SUCCESS)
            return known;
        for (unsigned int i = 0; i < structure_fields_count; i++) {
            const struct structure_field *field = &structure_fields[i];
            CUresult result = CUDA_SUCCESS;
            uint64_t value;

            if (field->structure != structure || !structure_has(field, part + from))
                continue;
            value = field->is_written ? 0 : structure_value(field, part + from);
            if (field->object)
                result = find_objects(field->object, &value, 1);
            else if (!place_is_usable(request, value, structure_extent(field, part + from)))
                result = CUDA_ERROR_INVALID_VALUE;
            if (result != CUDA_SUCCESS)
                return result;
            structure_put(field, part + from, value);
        }
    }
    return CUDA_SUCCESS;
}

/* What the driver would follow, though there is nothing. */
static bool is_missing(const struct carried *call, unsigned int i)
{
    const struct argument *argument = &call->signature->arguments[i];

    return !call->sent[i] && !argument->is_optional && !argument->is_indirect &&
           (argument->kind == ARGUMENT_TEXT ||
            signature_bytes(call->signature, i, call->sent, call->numbers));
}

/* Of the elements of an array that the call reads. */
static CUresult take_part(struct request *request, struct carried *call, unsigned int i, size_t *at)
{
    const struct argument *argument = &call->signature->arguments[i];
    const uint8_t *part;

    if (is_missing(call, i))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_shared(argument, call->sent[i]))
        return request_uses(request, call->sent[i], call->bytes[i]) ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
    if (!argument_is_read(argument)) {
        call->words[i] =
            call->sent[i] ? (uintptr_t)scratch_take_zeros(request->scratch, call->bytes[i]) : 0;
        request->is_broken |= call->sent[i] && !call->words[i];
        return CUDA_SUCCESS;
    }
    if (!call->sent[i])
        return CUDA_SUCCESS;
    part = request_part(request, at, call->bytes[i]);
    if (!part)
        return CUDA_ERROR_INVALID_VALUE;
    call->words[i] = (uintptr_t)part;
    if (argument->kind == ARGUMENT_TEXT && part[call->bytes[i] - 1])
        request->is_broken = true;
    if (argument->object && argument_is_read(argument))
        return find_objects(argument->object, (uint64_t *)(uintptr_t)part, call->bytes[i] / 8);
    if (argument->structure)
        return structures_find(request, argument->structure, argument->bytes,
                               (uint8_t *)(uintptr_t)part, call->bytes[i]);
    if (!argument->object && call->bytes[i] >= 4 && (argument->bytes == 4 || argument->bytes == 8))
        memcpy(&call->numbers[i], part, argument->bytes);
    return CUDA_SUCCESS;
}

static CUresult take_value(struct request *request, struct carried *call, unsigned int i)
{
    const struct argument *argument = &call->signature->arguments[i];

    switch (argument->kind) {
    case ARGUMENT_OBJECT:
        if (argument->ends)
            call->ends = call->sent[i];
        return find_objects(argument->object, &call->words[i], 1);
    case ARGUMENT_DEVICE:
        return place_is_usable(request, call->sent[i],
                               signature_extent(call->signature, i, call->sent))
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case ARGUMENT_NULL:
        call->words[i] = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

/* Parts whose length is the value of an argument come first, then those whose length was in one of
 * these. The first error is the result; a client that broke the rules is found by the way. */
static CUresult take_arguments(struct request *request, struct carried *call)
{
    size_t at = call->signature->count * sizeof(uint64_t);
    CUresult result = CUDA_SUCCESS;

    if (request->flags & RECORD_BULK)
        at = 0;
    for (unsigned int pass = 0; pass < 2; pass++)
        for (unsigned int i = 0; i < call->signature->count; i++) {
            const struct argument *argument = &call->signature->arguments[i];
            CUresult here = CUDA_SUCCESS;

            if (argument->is_indirect != pass)
                continue;
            if (!argument_is_pointer(argument))
                here = take_value(request, call, i);
            else if (!measure_part(call, i))
                request->is_broken = true;
            else
                here = take_part(request, call, i, &at);
            if (request->is_broken)
                return CUDA_ERROR_INVALID_VALUE;
            if (result == CUDA_SUCCESS)
                result = here;
        }
    return result;
}

/* With which an object ends that the call has made. */
static uint64_t parent_of(const struct carried *call, unsigned int type)
{
    static const uint8_t parents[] = {
        [OBJECT_NONE] = OBJECT_NONE,
#define NOTHING                  OBJECT_NONE
#define CONTEXT                  OBJECT_CUcontext
#define MODULE                   OBJECT_CUmodule
#define LIBRARY                  OBJECT_CUlibrary
#define GRAPH                    OBJECT_CUgraph
#define NODE                     OBJECT_CUgraphNode
#define O(object, parent, error) [OBJECT_##object] = parent,
#define H(type)
#include "objects.def"
#undef H
#undef O
    };
    uint64_t first = 0;

    if (parents[type] == OBJECT_NONE)
        return 0;
    if (parents[type] == OBJECT_CUcontext)
        return current_context();
    for (unsigned int i = 0; i < call->signature->count; i++) {
        if (call->signature->arguments[i].kind != ARGUMENT_OBJECT)
            continue;
        if (call->signature->arguments[i].object == parents[type])
            return call->sent[i];
        if (!first && call->signature->arguments[i].object != OBJECT_CUgraph)
            first = call->sent[i];
    }
    return object_parent(first);
}

static CUresult number_objects(const struct carried *call, unsigned int type, uint64_t *elements,
                               size_t count)
{
    uint64_t parent = parent_of(call, type);

    for (size_t i = 0; i < count; i++) {
        void *real = (void *)(uintptr_t)elements[i];

        elements[i] = object_number(type, real, parent);
        if (real && !elements[i])
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static CUresult number_in_structures(const struct carried *call, const struct argument *argument,
                                     uint8_t *part, size_t bytes)
{
    for (size_t from = 0; from < bytes; from += argument->bytes) {
        if (argument->structure == STRUCTURE_CUdevResource &&
            resource_hide(part + from) != CUDA_SUCCESS)
            return CUDA_ERROR_OUT_OF_MEMORY;
        for (unsigned int i = 0; i < structure_fields_count; i++) {
            const struct structure_field *field = &structure_fields[i];
            CUresult result;
            uint64_t value;

            if (field->structure != argument->structure || !field->object ||
                !structure_has(field, part + from))
                continue;
            value = structure_value(field, part + from);
            result = number_objects(call, field->object, &value, 1);
            if (result != CUDA_SUCCESS)
                return result;
            structure_put(field, part + from, value);
        }
    }
    return CUDA_SUCCESS;
}

/* What the driver wrote, in the program's numbers. Nothing else of it goes to the program. */
static CUresult code_answer(struct request *request, const struct carried *call, unsigned int i)
{
    const struct argument *argument = &call->signature->arguments[i];
    uint8_t *part = (uint8_t *)(uintptr_t)call->words[i];

    if (!call->is_called || (request->result != CUDA_SUCCESS && !argument->is_told)) {
        memset(part, 0, call->bytes[i]);
        return CUDA_SUCCESS;
    }
    if (argument->structure)
        return number_in_structures(call, argument, part, call->bytes[i]);
    return argument->object
               ? number_objects(call, argument->object, (uint64_t *)part, call->bytes[i] / 8)
               : CUDA_SUCCESS;
}

/* In the order of the parts of the request. */
static void give_answer(struct request *request, const struct carried *call)
{
    for (unsigned int pass = 0; pass < 2; pass++)
        for (unsigned int i = 0; i < call->signature->count; i++) {
            const struct argument *argument = &call->signature->arguments[i];
            CUresult result;
            void *to;

            if (argument->is_indirect != pass || !argument_is_written(argument) ||
                is_shared(argument, call->sent[i]) || !call->words[i])
                continue;
            request->makes_objects |= argument->object || argument->bytes == sizeof(CUdeviceptr);
            result = code_answer(request, call, i);
            if (request->result == CUDA_SUCCESS)
                request->result = result;
            to = request_answer(request, call->bytes[i]);
            if (to)
                memcpy(to, (const void *)(uintptr_t)call->words[i], call->bytes[i]);
        }
}

/* Room for what the call writes. */
static bool make_room(struct request *request, const struct carried *call)
{
    size_t sum = 0;

    for (unsigned int i = 0; i < call->signature->count; i++)
        if (argument_is_written(&call->signature->arguments[i]) &&
            !is_shared(&call->signature->arguments[i], call->sent[i]))
            sum += signature_align(call->bytes[i]);
    if (request->flags & RECORD_BULK)
        request->out_most = sum;
    request->out = scratch_take(request->scratch, sum);
    return request->out && sum <= request->out_most;
}

/* The primary contexts of devices, which are there before and after they are active. */
#define DEVICES 64u
static _Atomic uint64_t primary[DEVICES];

static bool is_active(CUdevice device)
{
    CUresult (*state)(CUdevice, unsigned int *, int *) =
        driver_function(CALL_cuDevicePrimaryCtxGetState);
    unsigned int flags;
    int active = 0;

    return state && state(device, &flags, &active) == CUDA_SUCCESS && active;
}

static void end_objects(unsigned int number, const struct carried *call)
{
    if (call->ends) {
        if (object_type(call->ends) == OBJECT_CUcontext)
            host_memory_end_context(call->ends);
        object_end(call->ends);
        if (object_type(call->ends) == OBJECT_CUmemGenericAllocationHandle ||
            object_type(call->ends) == OBJECT_CUmemoryPool)
            share_forget_ended();
    }
    switch (number) {
    case CALL_cuDevicePrimaryCtxRetain:
        if (call->sent[1] < DEVICES && call->words[0])
            primary[call->sent[1]] = *(const uint64_t *)(uintptr_t)call->words[0];
        break;
    case CALL_cuGraphConditionalHandleCreate:
        if (call->words[0])
            condition_remember(*(const uint64_t *)(uintptr_t)call->words[0], call->sent[1]);
        break;
    case CALL_cuDevicePrimaryCtxRelease:
    case CALL_cuDevicePrimaryCtxRelease_v2:
    case CALL_cuDevicePrimaryCtxReset:
    case CALL_cuDevicePrimaryCtxReset_v2:
        if (call->sent[0] < DEVICES && !is_active((CUdevice)call->sent[0])) {
            host_memory_end_context(primary[call->sent[0]]);
            object_end_children(primary[call->sent[0]]);
        }
        break;
    }
}

/* A copy from or to memory that is not shared, and that is gone when a graph would make it. */
static bool is_lost_in_a_graph(const struct request *request, const struct carried *call)
{
    bool has_part = false, has_stream = false;
    void *stream = NULL;

    for (unsigned int i = 0; i < call->signature->count; i++) {
        const struct argument *argument = &call->signature->arguments[i];

        has_part |= argument->is_shareable && call->sent[i] && !is_shared(argument, call->sent[i]);
        if (argument->kind == ARGUMENT_OBJECT && argument->object == OBJECT_CUstream) {
            has_stream = true;
            stream = (void *)(uintptr_t)call->words[i];
        }
    }
    return has_part && has_stream && stream_is_capturing(request->number, stream);
}

static void carry_out(struct request *request, const struct signature *signature)
{
    struct carried call = {.signature = signature};
    void *function = driver_function(request->number);

    if (request->head_bytes < signature->count * sizeof(uint64_t)) {
        request->is_broken = true;
        return;
    }
    memcpy(call.sent, request->head, signature->count * sizeof(uint64_t));
    memcpy(call.words, call.sent, sizeof(call.words));
    request->result = take_arguments(request, &call);
    if (request->is_broken)
        return;
    if (!make_room(request, &call)) {
        request->result = CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    if (request->result == CUDA_SUCCESS && is_lost_in_a_graph(request, &call))
        request->result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (request->result == CUDA_SUCCESS && !function)
        request->result = CUDA_ERROR_NOT_SUPPORTED;
    if (request->result == CUDA_SUCCESS) {
        request->result = invokes[request->number](function, call.words);
        call.is_called = true;
    }
    give_answer(request, &call);
    if (request->result == CUDA_SUCCESS)
        end_objects(request->number, &call);
}

static bool is_by_signature(unsigned int number)
{
    return number < signatures_count && signature_is_sent(&signatures[number]);
}

/* No call has two ways: those by hand, which launches are, are looked for first. */
void request_carry_out(struct request *request)
{
    if (hand_carry_out(request))
        return;
    if (is_by_signature(request->number))
        carry_out(request, &signatures[request->number]);
    else
        request->result = CUDA_ERROR_NOT_SUPPORTED;
}
