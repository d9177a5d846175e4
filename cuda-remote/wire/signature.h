/* SPDX-License-Identifier: MIT */
/*
 * What the two ends know of each call: its arguments, and how they lie in a record. gen-remote
 * makes the table from calls.def and entry_points.def.
 *
 * A request is a word for each argument, then what the pointers among them point to, each part from
 * a multiple of 8 bytes on. A word of a pointer is 0 for NULL, else 1; the address itself says
 * nothing at the other end, except for memory that both have. The length of each part
 * follows from the other arguments, so a request cannot say one length and mean another. An answer
 * is the parts that the call writes, in the same order.
 */
#ifndef CUDA_REMOTE_SIGNATURE_H
#define CUDA_REMOTE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIGNATURE_ARGUMENTS 16

enum object_type {
    OBJECT_NONE,
#define O(type, parent, error) OBJECT_##type,
#define H(type)
#include "objects.def"
#undef H
#undef O
    OBJECT_TYPES,
};

/* Structures of the driver's (structure.h). */
enum structure_type {
    STRUCTURE_NONE,
#define O(type, parent, error)
#define H(type) STRUCTURE_##type,
#include "objects.def"
#undef H
#undef O
};

enum argument_kind {
    ARGUMENT_VALUE,  /* a number, or a structure of up to 8 bytes */
    ARGUMENT_OBJECT, /* of type @object */
    ARGUMENT_DEVICE, /* an address of the driver's, with an extent */
    ARGUMENT_STRUCT, /* by value, of more than 8 bytes; the word is its address */
    ARGUMENT_TEXT,   /* ends with 0 */
    ARGUMENT_IN,     /* elements that the call reads */
    ARGUMENT_OUT,    /* elements that it writes */
    ARGUMENT_IO,     /* both */
    ARGUMENT_NULL,   /* the driver gets NULL */
};

/* ARGUMENT_DEVICE: (@rows - 1) * @pitch + @count * @bytes; without @rows, @count * @bytes. */
struct argument {
    uint8_t kind;
    uint8_t object;     /* elements are objects of this type; OBJECT_NONE: bytes */
    uint8_t structure;  /* elements are such structures (structure.h) */
    bool is_shareable;  /* it may be memory that both ends have */
    bool ends;          /* the object does not exist after it */
    bool is_indirect;   /* @count is a pointer to the number */
    bool is_optional;   /* it may be NULL though it has elements */
    bool is_told;       /* what the call writes there tells why it failed */
    uint8_t minus;      /* from the number */
    int8_t count;       /* argument with the number of elements; -1: @fixed */
    int8_t rows, pitch; /* arguments; -1: none */
    uint32_t bytes;     /* of an element */
    uint32_t fixed;
};

/* As in calls.def. */
enum call_mode {
    CALL_NONE,
    CALL_LOCAL,
    CALL_POST,
    CALL_SYNC,
    CALL_KEEP,
    CALL_HERE,
    CALL_TURN,
    CALL_ALTER,
    CALL_CLIENT,
    CALL_HAND,
    CALL_REFUSE,
};

struct signature {
    const char *name;
    uint8_t mode;
    uint8_t count;
    struct argument arguments[SIGNATURE_ARGUMENTS];
};

/* By their numbers on the wire. */
extern const struct signature signatures[];
extern const unsigned int signatures_count;

#define SIGNATURE_TOO_LARGE SIZE_MAX

static inline size_t signature_align(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/*
 * Bytes of argument @at's elements. @words: the arguments; of pointers to numbers the value that
 * they point to, in @numbers. SIGNATURE_TOO_LARGE: no machine has so much.
 */
size_t signature_bytes(const struct signature *of, unsigned int at, const uint64_t *words,
                       const uint64_t *numbers);
/* The same for the extent of an ARGUMENT_DEVICE. */
size_t signature_extent(const struct signature *of, unsigned int at, const uint64_t *words);

static inline bool argument_is_read(const struct argument *argument)
{
    return argument->kind == ARGUMENT_IN || argument->kind == ARGUMENT_IO ||
           argument->kind == ARGUMENT_TEXT || argument->kind == ARGUMENT_STRUCT;
}

static inline bool argument_is_written(const struct argument *argument)
{
    return argument->kind == ARGUMENT_OUT || argument->kind == ARGUMENT_IO;
}

static inline bool argument_is_pointer(const struct argument *argument)
{
    return argument_is_read(argument) || argument_is_written(argument);
}

/* Its request is what its signature says. */
static inline bool signature_is_sent(const struct signature *of)
{
    return of->name && of->mode >= CALL_POST && of->mode <= CALL_CLIENT;
}

#endif
