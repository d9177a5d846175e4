// SPDX-License-Identifier: MIT
/*
 * Dumps of the GPU's state, which would be files of the worker's on the host: there are none. What
 * a program asks is answered as by a driver that makes none, and what asks for one is refused.
 */
#include "remote.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    COREDUMP_ON_EXCEPTION = 1,
    COREDUMP_TRIGGER_HOST,
    COREDUMP_LIGHTWEIGHT,
    COREDUMP_USER_TRIGGER,
    COREDUMP_FILE,
    COREDUMP_PIPE,
    COREDUMP_FLAGS,
};

#define NAME_MOST 1024u
#define NO_DUMPS  "a dump of the GPU would be a file of the host"

/* Bytes of the value; 0: there is no such setting. */
static size_t value_of(unsigned int setting, char *to)
{
    char host[HOST_NAME_MAX + 1] = "";

    memset(to, 0, NAME_MOST);
    switch (setting) {
    case COREDUMP_ON_EXCEPTION:
    case COREDUMP_LIGHTWEIGHT:
    case COREDUMP_USER_TRIGGER:
        return sizeof(bool);
    case COREDUMP_TRIGGER_HOST:
        to[0] = 1;
        return sizeof(bool);
    case COREDUMP_FILE:
    case COREDUMP_PIPE:
        gethostname(host, sizeof(host) - 1);
        return (size_t)snprintf(to, NAME_MOST, "%s.cuda.%s.%d",
                                setting == COREDUMP_FILE ? "core" : "corepipe", host,
                                (int)getpid()) +
               1;
    case COREDUMP_FLAGS:
        return sizeof(int);
    default:
        return 0;
    }
}

static CUresult get_setting(unsigned int setting, void *to, size_t *bytes)
{
    CUresult result = connect_state();
    char value[NAME_MOST];
    size_t has;

    if (result != CUDA_SUCCESS)
        return result;
    has = value_of(setting, value);
    if (!has || !to || !bytes || *bytes < has)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to, value, has);
    *bytes = has;
    return CUDA_SUCCESS;
}

static CUresult set_setting(unsigned int setting, const void *to, const size_t *bytes)
{
    CUresult result = connect_state();
    char value[NAME_MOST];
    size_t has;

    if (result != CUDA_SUCCESS)
        return result;
    has = value_of(setting, value);
    if (!has || !to || !bytes || !*bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (setting == COREDUMP_FILE || setting == COREDUMP_PIPE)
        return (CUresult)remote_refuse("cuCoredumpSetAttribute", NO_DUMPS);
    return *bytes >= has && !memcmp(to, value, has)
               ? CUDA_SUCCESS
               : (CUresult)remote_refuse("cuCoredumpSetAttribute", NO_DUMPS);
}

#define COREDUMP_GET(name)                                                                         \
    EXPORT CUresult name(unsigned int setting, void *to, size_t *bytes);                           \
    CUresult name(unsigned int setting, void *to, size_t *bytes)                                   \
    {                                                                                              \
        return get_setting(setting, to, bytes);                                                    \
    }
COREDUMP_GET(cuCoredumpGetAttribute)
COREDUMP_GET(cuCoredumpGetAttributeGlobal)

#define COREDUMP_SET(name)                                                                         \
    EXPORT CUresult name(unsigned int setting, const void *to, const size_t *bytes);               \
    CUresult name(unsigned int setting, const void *to, const size_t *bytes)                       \
    {                                                                                              \
        return set_setting(setting, to, bytes);                                                    \
    }
COREDUMP_SET(cuCoredumpSetAttribute)
COREDUMP_SET(cuCoredumpSetAttributeGlobal)
