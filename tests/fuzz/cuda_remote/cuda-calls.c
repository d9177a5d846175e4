// SPDX-License-Identifier: MIT
/*
 * Requests of a program that its worker takes apart: those that calls.def describes, formed by the
 * same table, with a wrong word, number or length here and there. In place of the driver there is
 * one that reads and writes all that a call's pointers stand for, so that a place which is too
 * small is found, and one that is not shared or not the driver's.
 *
 * An input: for each request two bytes of its number, one of how it is sent, then what its words
 * and parts are made of.
 */
#include <stdlib.h>
#include <string.h>

#include "hand.h"
#include "numbers.h"
#include "worker.h"

#define ARENA        0x300000000000ull
#define SHARED_BYTES (1ull << 16)
#define PART_MOST    4096u
#define HEAD_MOST    (CHANNEL_RECORD_MOST - sizeof(struct channel_record))
#define DEVICE       0x700000000000ull
#define DEVICE_BYTES 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__asan_default_options(void);

/* A function of the program's that the driver was given stays until it is called, which nobody does
 * here. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static struct scratch scratch;
static uint64_t objects[OBJECT_TYPES];
static char reals[OBJECT_TYPES];

/* The request that is carried out. */
static const struct signature *called;
static uint64_t words[SIGNATURE_ARGUMENTS], numbers[SIGNATURE_ARGUMENTS];

/* How often the driver was called for what a request is made of. */
static unsigned int turns;

static const uint8_t *next;
static size_t left;

static uint8_t take_byte(void)
{
    if (!left)
        return 0;
    left--;
    return *next++;
}

static void require(bool condition)
{
    if (!condition)
        abort();
}

void worker_say(const char *format, ...)
{
    (void)format;
}

static CUresult get_current(CUcontext *context)
{
    *context = (CUcontext)(uintptr_t)&reals[OBJECT_CUcontext];
    return CUDA_SUCCESS;
}

/* The driver's memory is one range, at which there is nothing here. */
static CUresult get_attribute(void *data, int attribute, CUdeviceptr at)
{
    if (at < DEVICE || at - DEVICE >= DEVICE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == 2)
        *(unsigned int *)data = 2;
    else
        *(uint64_t *)data = attribute == 11 ? DEVICE : DEVICE_BYTES;
    return CUDA_SUCCESS;
}

/* Calls that have a number of their arguments somewhere else than a word each. */
static bool is_passed_otherwise(void)
{
    for (unsigned int i = 0; i < called->count; i++)
        if (called->arguments[i].kind == ARGUMENT_STRUCT)
            return true;
    return strstr(called->name, "Float") || strstr(called->name, "MipmapLevelBias") ||
           strstr(called->name, "MipmapLevelClamp") || strstr(called->name, "ParamSetf");
}

/* All that a pointer stands for is there: a shared place, or a copy. */
static void touch(const struct argument *argument, uintptr_t at, size_t bytes)
{
    volatile uint8_t *place = (volatile uint8_t *)at;
    uint8_t sum = 0;

    for (size_t i = 0; i < bytes; i++)
        sum = (uint8_t)(sum + place[i]);
    if (argument_is_written(argument))
        for (size_t i = 0; i < bytes; i++)
            place[i] = (uint8_t)(argument->object ? 0 : sum + i);
}

static unsigned int answer(uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4,
                           uintptr_t a5, uintptr_t a6, uintptr_t a7)
{
    const uintptr_t given[] = {a0, a1, a2, a3, a4, a5, a6, a7};

    if (is_passed_otherwise())
        return CUDA_SUCCESS;
    for (unsigned int i = 0; i < called->count && i < sizeof(given) / sizeof(given[0]); i++) {
        const struct argument *argument = &called->arguments[i];

        if (argument->kind == ARGUMENT_OBJECT && given[i] > 2)
            require(given[i] == (uintptr_t)&reals[argument->object]);
        if ((argument_is_read(argument) || argument_is_written(argument)) && given[i])
            touch(argument, given[i],
                  argument->kind == ARGUMENT_TEXT ? strlen((const char *)given[i]) + 1
                                                  : signature_bytes(called, i, words, numbers));
    }
    return words[0] % 7 == 6 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Calls of the worker's own: each fourth fails, and none writes what it should. */
static unsigned int answer_by_turns(void)
{
    return turns++ % 4 == 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void *driver_function(unsigned int number)
{
    if (number == CALL_cuCtxGetCurrent)
        return (void *)get_current;
    if (number == CALL_cuPointerGetAttribute)
        return (void *)get_attribute;
    return called && called == &signatures[number] && called->mode != CALL_HAND
               ? (void *)answer
               : (void *)answer_by_turns;
}

static uint64_t make_word(uint8_t object)
{
    static const uint64_t likely[] = {0,
                                      1,
                                      2,
                                      ARENA,
                                      ARENA + SHARED_BYTES - 8,
                                      DEVICE,
                                      DEVICE + DEVICE_BYTES - 16,
                                      UINT64_MAX,
                                      1ull << 63,
                                      1ull << 32};
    uint8_t way = take_byte();
    uint64_t word = 0;

    if (way < 96)
        return objects[way < 64 && object < OBJECT_TYPES ? object : way % OBJECT_TYPES];
    if (way < 224)
        return likely[way % (sizeof(likely) / sizeof(likely[0]))];
    for (unsigned int i = 0; i < 8; i++)
        word = word << 8 | take_byte();
    return word;
}

static bool is_count(unsigned int at)
{
    for (unsigned int i = 0; i < called->count; i++)
        if (called->arguments[i].count == (int8_t)at)
            return true;
    return false;
}

static void fill_part(uint8_t *part, size_t bytes, const struct argument *argument)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word = make_word(argument->object);

        memcpy(part + i, &word, sizeof(word));
    }
    for (size_t i = bytes & ~(size_t)7; i < bytes; i++)
        part[i] = take_byte();
}

/* Its parts behind @used bytes; what they end at. 0: they are more than a record can have. */
static size_t form_parts(uint8_t *to, size_t used)
{
    for (unsigned int pass = 0; pass < 2; pass++)
        for (unsigned int i = 0; i < called->count; i++) {
            const struct argument *argument = &called->arguments[i];
            size_t bytes;

            if (argument->is_indirect != pass || !argument_is_read(argument) || !words[i] ||
                (argument->is_shareable && words[i] > 1))
                continue;
            if (argument->kind == ARGUMENT_TEXT)
                words[i] = 1u + take_byte() % 16;
            bytes = argument->kind == ARGUMENT_TEXT ? words[i]
                                                    : signature_bytes(called, i, words, numbers);
            if (bytes > PART_MOST || used + signature_align(bytes) > HEAD_MOST)
                return 0;
            fill_part(to + used, bytes, argument);
            if (argument->kind == ARGUMENT_TEXT)
                to[used + bytes - 1] = take_byte() == 255;
            else if (!argument->object && bytes >= 4 &&
                     (argument->bytes == 4 || argument->bytes == 8))
                memcpy(&numbers[i], to + used, argument->bytes);
            used += signature_align(bytes);
        }
    return used;
}

/* The bytes of a record behind its header, or 0. */
static size_t form_request(uint8_t *to, bool is_bulk, uint8_t *bulk)
{
    size_t head = called->count * sizeof(uint64_t), used;

    memset(numbers, 0, sizeof(numbers));
    for (unsigned int i = 0; i < called->count; i++) {
        uint8_t kind = called->arguments[i].kind;

        words[i] = kind >= ARGUMENT_STRUCT && kind <= ARGUMENT_IO && take_byte() < 224 ? 1
                   : is_count(i) ? take_byte() % 8u
                                 : make_word(called->arguments[i].object);
    }
    used = is_bulk ? form_parts(bulk, 0) : form_parts(to, head);
    if (!used && head && !is_bulk)
        return 0;
    memcpy(to, words, head);
    return is_bulk ? head : used;
}

/* It asks for an answer that takes long to make, and nothing else. */
static bool is_large(void)
{
    for (unsigned int i = 0; i < called->count; i++) {
        size_t bytes = argument_is_written(&called->arguments[i])
                           ? signature_bytes(called, i, words, numbers)
                           : 0;

        if (bytes > 1u << 20 && bytes <= 1u << 31)
            return true;
    }
    return false;
}

/* A request of a form that calls.def does not describe is bytes. */
static size_t form_bytes(uint8_t *to)
{
    size_t bytes = take_byte() * 8u;

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = make_word((uint8_t)(i % OBJECT_TYPES));

        memcpy(to + i, &word, sizeof(word));
    }
    return bytes;
}

static void carry_out_one(void)
{
    static uint8_t space[HEAD_MOST];
    unsigned int number = (take_byte() | (unsigned int)take_byte() << 8) % (signatures_count + 16);
    uint8_t how = take_byte();
    /* HAND_CALLED waits for ever, as there is no driver that calls. */
    const unsigned int others[] = {HAND_LAYOUT, HAND_LINKED, 1999, UINT16_MAX};
    struct request request = {.number = number < signatures_count ? number : others[number % 4],
                              .flags = RECORD_ANSWER | (how & 1 ? RECORD_BULK : 0),
                              .bulk = ARENA + (how & 2 ? 4096 : 0),
                              .scratch = &scratch,
                              .out_most = CHANNEL_ANSWER_BYTES - sizeof(struct channel_answer)};
    bool is_formed = number < signatures_count && signature_is_sent(&signatures[number]);
    size_t bytes;
    uint8_t *head;

    called = number < signatures_count ? &signatures[number] : NULL;
    turns = how >> 4;
    bytes = is_formed ? form_request(space, how & 1, (uint8_t *)(uintptr_t)request.bulk)
                      : form_bytes(space);
    if (is_formed && is_large())
        return;
    if ((how & 12) == 12)
        bytes = bytes > 8 ? bytes - 8 : 0;
    /* Exactly as long as the record: what is read behind it is found. */
    head = malloc(bytes + 1);
    memcpy(head, space, bytes);
    request.head = head;
    request.head_bytes = bytes;
    /* Copies are blocks of their own, so that what is behind them is found, too. */
    scratch.kept_used = sizeof(scratch.kept);
    request_carry_out(&request);
    require(request.is_broken || request.out_bytes <= request.out_most);
    request_end(&request);
    scratch_empty(&scratch);
    free(head);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    int fd = -1;

    (void)argc;
    (void)argv;
    require(shared_reserve(ARENA, 1ull << 30) == CONTROL_OK);
    require(shared_add(ARENA, SHARED_BYTES, &fd) == CONTROL_OK);
    for (unsigned int type = 1; type < OBJECT_TYPES; type++)
        objects[type] = object_number(type, &reals[type], 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    next = data;
    left = size;
    /* What an earlier input has ended is there again. */
    for (unsigned int type = 1; type < OBJECT_TYPES; type++)
        objects[type] = object_number(type, &reals[type], 0);
    while (left)
        carry_out_one();
    return 0;
}
