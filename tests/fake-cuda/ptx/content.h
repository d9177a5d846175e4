/* SPDX-License-Identifier: MIT */
/*
 * What the fake card's memory has in it, and what is done to it. Without FAKE_CUDA_CONTENT=1 memory
 * has addresses and no content, and images are numbers: then nothing here does anything.
 *
 * An operation is done when it is submitted, so that all streams keep the order of the calls. This
 * is also an order that the streams allow: a stream waits only for what was submitted before. While
 * a function of the host has not run, the next operation waits for it. Only values that a stream
 * waits for may come later than what is behind them. The card's time passes as before.
 *
 *   FAKE_CUDA_CONTENT   1: memory has content, and kernels compute
 *   FAKE_CUDA_STEPS     instructions that a launch may take; 2,000,000,000
 *   FAKE_CUDA_VERBOSE   1: says on standard error why text is refused, or a kernel ended
 *
 * Without content remain: arrays, what another process shares, copies and fills that are added to a
 * graph, what cuStreamWriteValue writes.
 */
#ifndef FAKE_CUDA_CONTENT_H
#define FAKE_CUDA_CONTENT_H

#include "../fake.h"
#include "ptx.h"

bool content_is_on(void);

/* Memory of the card that begins to exist, or ends. False: the host has not so much. */
bool content_add(CUdeviceptr at, uint64_t bytes);
void content_remove(CUdeviceptr at);
/* The host sees it at its address, too. */
bool content_share(CUdeviceptr at);
/*
 * Addresses that are reserved, without memory: whoever reads or writes there ends the process. What
 * backs them is a file's. It can be reached once that is allowed.
 */
bool content_reserve(CUdeviceptr at, uint64_t bytes);
bool content_back(CUdeviceptr at, uint64_t bytes, int fd, uint64_t offset);
bool content_allow(CUdeviceptr at, uint64_t bytes);
void content_unback(CUdeviceptr at, uint64_t bytes);
/* Where the host has it; bytes 0: it is none. */
struct ptx_range content_find(void *user, uint64_t address);
/* The host's memory that kernels may reach. */
void content_lock(const void *at, uint64_t bytes);
void content_unlock(const void *at);

/* A kernel's launch, a copy or a fill. */
struct effect;

/* What the next operation that is submitted does. The graph that captures it takes it. */
void effect_begin(struct effect *effect);
struct effect *effect_take(void);
/* After it was submitted: it is done now, if no graph has taken it. */
CUresult effect_end(CUstream stream, bool per_thread, CUresult submitted);
/* Of a graph, each time that it is launched. */
CUresult effect_repeat(const struct effect *effect, CUstream stream, bool per_thread);
struct effect *effect_make_launch(const struct ptx_launch *launch, const uint8_t *parameters);
/* The parameters of a launch, as they lie in the kernel's parameter space. */
const uint8_t *effect_parameters(const struct effect *effect);
/* Of a function that moves memory; NULL: there is none. */
struct effect *effect_of_move(const char *name, const long *arguments, CUstream *stream,
                              bool *per_thread);

struct shape {
    uint32_t grid[3], block[3];
    uint32_t shared;
    bool is_cooperative;
};

/* NULL: @function is not of an image here, or @result says what is wrong with the launch. */
struct effect *effect_of_launch(CUfunction function, const struct shape *shape, void **parameters,
                                void **extra, CUresult *result);
uint64_t effect_length_ns(const struct effect *effect);

struct image;

/* For which PTX is taken: ten times the compute capability. */
unsigned int image_architecture(void);
/* CUDA_SUCCESS without one: it is a number in text. */
CUresult image_load(struct image **made, const void *data);
CUresult image_load_file(struct image **made, const char *path);
void image_unload(struct image *image);
uint64_t image_bytes(const struct image *image);
CUresult image_function(const struct image *image, const char *name, CUfunction *function);
CUresult image_global(const struct image *image, const char *name, CUdeviceptr *at, size_t *bytes);
/* Number @at; NULL: there are no more. */
CUfunction image_function_at(const struct image *image, unsigned int at);
/* Writes why into the buffer that the JIT's options name. */
void image_explain(unsigned int count, const unsigned int *options, void **values);

/* Of code.c. */
struct image *code_image(const void *module);

/* Of functions with PTX; false: it is another, or it has no such attribute. */
bool image_attribute(const void *function, unsigned int attribute, int *value);
CUresult image_parameter(const void *function, size_t at, size_t *offset, size_t *bytes);

/* Of memory of the card; false: it is not known here. */
bool pointer_attribute(void *data, unsigned int attribute, CUdeviceptr at);
const void *table_find(const void *id);

#endif
