// SPDX-License-Identifier: MIT
/* What a module has; its memory, which is freed with it. */
#include "inside.h"

#include <stdlib.h>

struct part {
    struct part *next;
    _Alignas(16) char bytes[];
};

void *module_get(struct ptx_module *module, size_t bytes)
{
    struct part *part = calloc(1, sizeof(*part) + bytes);

    if (!part)
        return NULL;
    part->next = module->parts;
    module->parts = part;
    return part->bytes;
}

char *module_copy(struct ptx_module *module, const char *text, size_t bytes)
{
    char *copy = module_get(module, bytes + 1);

    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void ptx_free(struct ptx_module *module)
{
    while (module && module->parts) {
        struct part *next = module->parts->next;

        free(module->parts);
        module->parts = next;
    }
    free(module);
}

struct ptx_function *module_function(const struct ptx_module *module, const char *name)
{
    struct ptx_function *function = module->functions;

    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    return function;
}

struct ptx_function *module_function_at(const struct ptx_module *module, uint64_t address)
{
    struct ptx_function *function = module->functions;
    uint64_t number = (address - CODE_WINDOW) / CODE_STEP;

    if (address < CODE_WINDOW || address % CODE_STEP)
        return NULL;
    while (function && function->number != number)
        function = function->next;
    return function;
}

struct ptx_variable *ptx_variables(const struct ptx_module *module)
{
    return module->variables;
}

static uint64_t address_of(const struct ptx_module *module, const char *name)
{
    const struct ptx_function *function = module_function(module, name);

    if (function)
        return CODE_WINDOW + (uint64_t)function->number * CODE_STEP;
    for (const struct ptx_variable *at = module->variables; at; at = at->next)
        if (!strcmp(at->name, name))
            return at->address;
    return 0;
}

void ptx_initialise(const struct ptx_module *module, const struct ptx_variable *variable,
                    uint8_t *to)
{
    memset(to, 0, variable->bytes);
    for (const struct ptx_value *at = variable->values; at; at = at->next) {
        uint64_t value = at->value + (at->symbol ? address_of(module, at->symbol) : 0);

        memcpy(to + at->at, &value, at->bytes);
    }
}

const struct ptx_function *ptx_kernel_at(const struct ptx_module *module, unsigned int number)
{
    const struct ptx_function *function = module->functions;

    for (; function; function = function->next)
        if (function->is_kernel && function->is_defined && !number--)
            break;
    return function;
}

const struct ptx_function *ptx_kernel(const struct ptx_module *module, const char *name)
{
    const struct ptx_function *function = module_function(module, name);

    return function && function->is_kernel && function->is_defined ? function : NULL;
}

const char *ptx_name(const struct ptx_function *function)
{
    return function->name;
}

unsigned int ptx_parameters(const struct ptx_function *function,
                            const struct ptx_parameter **parameters)
{
    *parameters = function->parameters;
    return function->parameter_count;
}

uint32_t ptx_parameter_bytes(const struct ptx_function *function)
{
    return function->parameter_bytes;
}

uint32_t ptx_shared_bytes(const struct ptx_function *function)
{
    return function->shared_bytes;
}

uint32_t ptx_local_bytes(const struct ptx_function *function)
{
    return function->frame_bytes;
}

uint32_t ptx_registers(const struct ptx_function *function)
{
    return function->registers < 255 ? function->registers : 255;
}

uint32_t ptx_length(const struct ptx_function *function)
{
    return function->length;
}
