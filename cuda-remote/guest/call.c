// SPDX-License-Identifier: MIT
/* The calls of which the signature says all. */
#include "context.h"
#include "kept.h"
#include "places.h"
#include "remote.h"
#include "structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t word_of_float(float value)
{
    uint64_t word = 0;

    memcpy(&word, &value, sizeof(value));
    return word;
}

struct bytes_64 {
    uint8_t byte[64];
};

#include "client.inc"

unsigned int remote_refuse(const char *name, const char *reason)
{
    const char *verbose = getenv("VGPU_CUDA_VERBOSE");

    if (verbose && *verbose == '1')
        fprintf(stderr, "vgpu-cuda: %s is not supported here: %s\n", name, reason);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* What is made for a call, and freed after it: arrays of objects or of what holds them, in the
 * worker's numbers. */
struct coded {
    const struct signature *signature;
    const uint64_t *given;
    uint64_t words[SIGNATURE_ARGUMENTS];
    uint64_t numbers[SIGNATURE_ARGUMENTS];
    uint8_t *arrays[SIGNATURE_ARGUMENTS];
    size_t bytes[SIGNATURE_ARGUMENTS];
    bool is_doubtful; /* an object is none of its type: the worker says what is wrong */
};

/* What pointers to numbers point to; @tells: the call says why it failed. */
static void read_numbers(struct coded *call, bool *tells)
{
    *tells = false;
    for (unsigned int i = 0; i < call->signature->count; i++) {
        const struct argument *argument = &call->signature->arguments[i];

        *tells |= argument->is_told;
        if (call->given[i] && argument_is_read(argument) && !argument->object &&
            argument->count < 0 && argument->fixed == 1 &&
            (argument->bytes == 4 || argument->bytes == 8))
            memcpy(&call->numbers[i], (const void *)(uintptr_t)call->given[i], argument->bytes);
    }
}

static void code_word(struct coded *call, unsigned int i)
{
    const struct argument *argument = &call->signature->arguments[i];
    const void *at = (const void *)(uintptr_t)call->given[i];

    call->words[i] = call->given[i];
    if (argument->kind == ARGUMENT_OBJECT) {
        call->words[i] = object_to_number(call->given[i]);
        call->is_doubtful |= call->given[i] > 2 && object_type(call->words[i]) != argument->object;
    } else if (argument_is_pointer(argument)) {
        call->bytes[i] = !at ? 0
                         : argument->kind == ARGUMENT_TEXT
                             ? strlen(at) + 1
                             : signature_bytes(call->signature, i, call->given, call->numbers);
        if (argument->kind == ARGUMENT_TEXT)
            call->words[i] = call->bytes[i];
        else if (at && !(argument->is_shareable && shared_contains(at, call->bytes[i])))
            call->words[i] = 1;
    }
}

static uint64_t number_of(const struct structure_field *field, uint64_t value)
{
    return field && field->is_written ? 0 : object_to_number(value);
}

static uint64_t object_of(const struct structure_field *field, uint64_t number)
{
    (void)field;
    return object_of_number(number);
}

/* Of all objects in an array of them, or of structures. */
static void change_objects(const struct argument *argument, uint8_t *array, size_t bytes,
                           uint64_t (*change)(const struct structure_field *, uint64_t))
{
    uint64_t *objects = (uint64_t *)array;

    for (size_t n = 0; argument->object && n < bytes / sizeof(*objects); n++)
        objects[n] = change(NULL, objects[n]);
    for (size_t from = 0; argument->structure && from < bytes; from += argument->bytes)
        for (unsigned int i = 0; i < structure_fields_count; i++) {
            const struct structure_field *field = &structure_fields[i];

            if (field->structure == argument->structure && field->object &&
                structure_has(field, array + from))
                structure_put(field, array + from,
                              change(field, structure_value(field, array + from)));
        }
}

/* A copy, with the worker's numbers in place of the program's objects. */
static bool number_array(struct coded *call, unsigned int i)
{
    const struct argument *argument = &call->signature->arguments[i];

    call->arrays[i] = calloc(1, call->bytes[i] ? call->bytes[i] : 1);
    if (call->arrays[i] && argument_is_read(argument)) {
        memcpy(call->arrays[i], (const void *)(uintptr_t)call->given[i], call->bytes[i]);
        change_objects(argument, call->arrays[i], call->bytes[i], number_of);
    }
    return call->arrays[i] != NULL;
}

static bool add_parts(struct coded *call, struct exchange *exchange)
{
    for (unsigned int pass = 0; pass < 2; pass++)
        for (unsigned int i = 0; i < call->signature->count; i++) {
            const struct argument *argument = &call->signature->arguments[i];
            void *at = (void *)(uintptr_t)call->given[i];

            if (argument->is_indirect != pass || !argument_is_pointer(argument) || !at ||
                (argument->is_shareable && call->words[i] > 1))
                continue;
            if (call->bytes[i] > SIZE_MAX / 4)
                return false;
            if ((argument->object || argument->structure) && !number_array(call, i))
                return false;
            if (call->arrays[i])
                at = call->arrays[i];
            if (argument_is_read(argument))
                exchange_in(exchange, at, call->bytes[i]);
            if (argument_is_written(argument))
                exchange_out(exchange, at, call->bytes[i]);
        }
    return true;
}

/* What a failed call wrote stays where it is, unless it tells why. */
static void take_objects(struct coded *call, CUresult result)
{
    for (unsigned int i = 0; i < call->signature->count; i++) {
        const struct argument *argument = &call->signature->arguments[i];

        if (!call->arrays[i])
            continue;
        if (argument_is_written(argument) && (result == CUDA_SUCCESS || argument->is_told)) {
            change_objects(argument, call->arrays[i], call->bytes[i], object_of);
            memcpy((void *)(uintptr_t)call->given[i], call->arrays[i], call->bytes[i]);
        }
        free(call->arrays[i]);
    }
}

static CUresult send_call(unsigned int number, const uint64_t *words, bool may_be_posted)
{
    struct coded call = {.signature = &signatures[number], .given = words};
    struct exchange exchange_of;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    bool tells;

    exchange_begin(&exchange_of, number, call.words, call.signature->count * sizeof(uint64_t));
    read_numbers(&call, &tells);
    exchange_of.keeps_failed = !tells;
    for (unsigned int i = 0; i < call.signature->count; i++)
        code_word(&call, i);
    exchange_of.is_posted = may_be_posted && !call.is_doubtful;
    if (add_parts(&call, &exchange_of))
        result = exchange_run(&exchange_of);
    take_objects(&call, result);
    for (unsigned int i = 0; i < call.signature->count && result == CUDA_SUCCESS; i++)
        if (call.signature->arguments[i].ends &&
            call.signature->arguments[i].object != OBJECT_CUmemGenericAllocationHandle)
            object_forget(words[i], call.words[i]);
    return result;
}

unsigned int remote_call(unsigned int number, const uint64_t *words)
{
    return (unsigned int)send_call(number, words, signatures[number].mode == CALL_POST);
}

unsigned int remote_post(unsigned int number, const uint64_t *words)
{
    return (unsigned int)send_call(number, words, true);
}

static unsigned int ask_or_find(unsigned int number, const uint64_t *words, uint64_t context,
                                uint64_t since)
{
    CUresult result = connect_usable();
    struct kept_key key;

    if (result != CUDA_SUCCESS)
        return (unsigned int)result;
    kept_ask(&key, number, words, context, since);
    if (kept_find(&key, number, words))
        return CUDA_SUCCESS;
    result = send_call(number, words, false);
    if (result == CUDA_SUCCESS)
        kept_add(&key, number, words);
    return (unsigned int)result;
}

unsigned int remote_keep(unsigned int number, const uint64_t *words)
{
    return ask_or_find(number, words, 0, 0);
}

unsigned int remote_keep_here(unsigned int number, const uint64_t *words)
{
    return ask_or_find(number, words, context_number(), 0);
}

unsigned int remote_keep_since(unsigned int number, const uint64_t *words, uint64_t since)
{
    return ask_or_find(number, words, context_number(), since);
}

unsigned int remote_turn(unsigned int number, const uint64_t *words)
{
    CUresult result = send_call(number, words, false);

    context_forget();
    return (unsigned int)result;
}

/* And with it memory. */
static bool ends_context(unsigned int number)
{
    switch (number) {
    case CALL_cuCtxDestroy:
    case CALL_cuCtxDestroy_v2:
    case CALL_cuCtxDetach:
    case CALL_cuDevicePrimaryCtxRelease:
    case CALL_cuDevicePrimaryCtxRelease_v2:
    case CALL_cuDevicePrimaryCtxReset:
    case CALL_cuDevicePrimaryCtxReset_v2:
    case CALL_cuGreenCtxDestroy:
        return true;
    default:
        return false;
    }
}

unsigned int remote_alter(unsigned int number, const uint64_t *words)
{
    CUresult result = send_call(number, words, false);

    kept_end(number);
    if (ends_context(number)) {
        place_end_all();
        if (result == CUDA_SUCCESS)
            memory_end_context();
    }
    return (unsigned int)result;
}
