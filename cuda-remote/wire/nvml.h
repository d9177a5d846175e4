/* SPDX-License-Identifier: MIT */
/*
 * NVML by a worker: a program's libnvidia-ml.so.1 has a connection of its own, whose first message
 * is a question, and no CONTROL_HELLO. Each question is one call of the NVML door in the worker, so
 * what it says is what a program of the slice with the native door is told.
 */
#ifndef CUDA_REMOTE_NVML_H
#define CUDA_REMOTE_NVML_H

#include "control.h"

#define NVML_DATA_MOST 464u /* so that an answer is no longer than any reply (control.h) */

enum nvml_number {
    NVML_NONE,
#define HAND(name)         NVML_##name,
#define TEXT(name)         NVML_##name,
#define NUMBER(name, type) NVML_##name,
#define CHOICE(name)       NVML_##name,
#define PAIR(name, type)   NVML_##name,
#include "nvml.def"
#undef HAND
#undef TEXT
#undef NUMBER
#undef CHOICE
#undef PAIR
    NVML_NUMBERS,
};

/* A control_message of kind CONTROL_NVML: @address: the device's index, @which << 32; @bytes: an
 * nvml_number. Of a list @which is the first entry that is asked for. */
static inline struct control_message nvml_question(enum nvml_number number, uint32_t device,
                                                   uint32_t which)
{
    return (struct control_message){CONTROL_MAGIC, CONTROL_NVML, device | (uint64_t)which << 32,
                                    number};
}

/*
 * @reply.value: nvmlReturn_t. @data: a text, a structure or a part of a list, of @bytes.
 * @number: numbers; of a list, how many entries all of it has
 */
struct nvml_answer {
    struct control_reply reply;
    uint64_t number[3];
    uint64_t bytes;
    uint8_t data[NVML_DATA_MOST];
};

_Static_assert(sizeof(struct nvml_answer) <= CONTROL_REPLY_MOST, "an answer is a reply");

#endif
