/* SPDX-License-Identifier: MIT */
/*
 * An interpreter of PTX, for the fake card: it computes what a kernel computes, one thread after
 * the other. It is made from the public PTX ISA and needs nothing of a driver; image.c and
 * effects.c join it to the fake driver.
 *
 * Blocks run in order, one at a time; those of a cooperative launch take turns. Threads of a block
 * run until they wait for each other, or until their turn is over. Textures, matrices and
 * asynchronous copies are missing: a kernel may contain them, but not reach them.
 *
 * Input is not trusted. Text that is not PTX is refused with a line and a reason. A kernel can
 * reach only memory that @find gives, and ends after a number of instructions.
 */
#ifndef FAKE_CUDA_PTX_H
#define FAKE_CUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a launch ends: results as the CUDA driver numbers them. */
enum ptx_result {
    PTX_DONE = 0,
    PTX_NO_MEMORY = 2,
    PTX_BAD_ADDRESS = 700,
    PTX_TOO_LONG = 702,
    PTX_ASSERTED = 710,
    PTX_MISALIGNED = 716,
    PTX_BAD_CODE_ADDRESS = 718,
    PTX_FAILED = 719,
    PTX_UNSUPPORTED = 801,
};

#define PTX_REASON 160

/* Why text is refused, or what a kernel lacked. */
struct ptx_error {
    unsigned int line;
    char reason[PTX_REASON];
};

/* Of a function; @offset in the bytes that a launch is given. */
struct ptx_parameter {
    uint32_t offset;
    uint32_t bytes;
};

enum ptx_space {
    SPACE_GENERIC,
    SPACE_PARAM,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_CONST,
};

/**
 * struct ptx_variable - of a module, in the card's memory
 * @address: the user's, who places it
 */
struct ptx_variable {
    const char *name;
    enum ptx_space space;
    uint64_t bytes;
    uint32_t align;
    bool is_extern;
    uint64_t address;
    struct ptx_value *values;
    struct ptx_variable *next;
};

struct ptx_function;
struct ptx_module;

/* NULL: it is refused. Of several texts, names of one are known in the others. */
struct ptx_module *ptx_parse(const char *text, size_t bytes, struct ptx_error *error);
void ptx_free(struct ptx_module *module);

struct ptx_variable *ptx_variables(const struct ptx_module *module);
/* Writes the @variable's initial value, when all variables are placed. */
void ptx_initialise(const struct ptx_module *module, const struct ptx_variable *variable,
                    uint8_t *to);

/* Kernels, by name or by number. NULL: there is none. */
const struct ptx_function *ptx_kernel(const struct ptx_module *module, const char *name);
const struct ptx_function *ptx_kernel_at(const struct ptx_module *module, unsigned int number);
const char *ptx_name(const struct ptx_function *function);
unsigned int ptx_parameters(const struct ptx_function *function,
                            const struct ptx_parameter **parameters);
/* Bytes of all parameters, of shared memory and of local memory that it declares. */
uint32_t ptx_parameter_bytes(const struct ptx_function *function);
uint32_t ptx_shared_bytes(const struct ptx_function *function);
uint32_t ptx_local_bytes(const struct ptx_function *function);
uint32_t ptx_registers(const struct ptx_function *function);
/* Instructions that it has. */
uint32_t ptx_length(const struct ptx_function *function);

/* A part of the card's memory, and where the host has it. @bytes: 0: it is no memory. */
struct ptx_range {
    uint64_t address;
    uint64_t bytes;
    uint8_t *host;
};

/**
 * struct ptx_launch
 * @find: the range in which @address is; it stays so while the kernel runs
 * @steps: so many instructions it may take, over all threads
 * @error: what it lacked, if the result is PTX_UNSUPPORTED
 */
struct ptx_launch {
    const struct ptx_module *module;
    const struct ptx_function *kernel;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    bool is_cooperative;
    const uint8_t *parameters;
    struct ptx_range (*find)(void *user, uint64_t address);
    void *user;
    uint64_t steps;
    struct ptx_error error;
};

/* @launch->steps becomes what it took. */
enum ptx_result ptx_run(struct ptx_launch *launch);

/*
 * The PTX in a fat binary, in its wrapper, or as it is; for the latest architecture that is not
 * above @architecture (100: compute capability 10.0). To be freed. NULL: there is none; @is_image
 * says if it is an image at all.
 */
char *ptx_unpack(const void *image, unsigned int architecture, bool *is_image);

#endif
