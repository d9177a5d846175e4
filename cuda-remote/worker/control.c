// SPDX-License-Identifier: MIT
/* The socket: what the program asks for beside its calls. When it is closed the program is gone,
 * and nothing of it has to stay. */
#include "worker.h"

#include "control_loop.h"
#include "lib/descriptor.h"
#include "numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int connection = -1; /* the program's, once it has said hello */

/* Names of variables that the driver reads, and that are the program's business. */
static const char *const allowed[] = {
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MODULE_LOADING",
    "CUDA_MODULE_DATA_LOADING",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_CACHE_DISABLE",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "NVIDIA_TF32_OVERRIDE",
    NULL,
};

static void use_setting(char *text)
{
    const size_t prefix = strlen(CONTROL_PID);
    char *value = strchr(text, '=');
    char name[16];

    /* For who lists the slice's processes: what the program says has no other use. */
    if (!strncmp(text, CONTROL_PID, prefix)) {
        snprintf(name, sizeof(name), WORKER_NAME "%u",
                 (unsigned int)strtoul(text + prefix, NULL, 10));
        prctl(PR_SET_NAME, name);
    }
    for (unsigned int i = 0; value && allowed[i]; i++)
        if (strlen(allowed[i]) == (size_t)(value - text) &&
            !strncmp(allowed[i], text, (size_t)(value - text)))
            setenv(allowed[i], value + 1, 1);
}

static void use_settings(const struct control_hello *hello, size_t bytes)
{
    char settings[CONTROL_SETTINGS + 1] = {0};

    if (bytes > sizeof(hello->settings))
        return;
    memcpy(settings, hello->settings, bytes);
    for (char *at = settings; *at; at += strlen(at) + 1)
        use_setting(at);
}

static bool send_reply(int socket, const void *data, size_t bytes, int fd)
{
    return descriptor_send(socket, data, bytes, 0, &fd, 1) == (ssize_t)bytes;
}

static CUresult start_driver(const char *library, struct control_welcome *welcome)
{
    CUresult (*init)(unsigned int), (*version)(int *);
    CUresult result;

    if (!driver_load(library))
        return CUDA_ERROR_NO_DEVICE;
    init = driver_function(CALL_cuInit);
    version = driver_function(CALL_cuDriverGetVersion);
    if (!init || !version)
        return CUDA_ERROR_NOT_FOUND;
    result = init(0);
    if (result == CUDA_SUCCESS && !driver_keeps_out())
        result = CUDA_ERROR_SYSTEM_NOT_READY;
    if (result == CUDA_SUCCESS)
        result = version(&welcome->driver_version);
    driver_fill_has(welcome->has);
    return result;
}

enum control_result control_welcome_program(int socket, const char *library)
{
    struct control_hello hello;
    struct control_welcome welcome = {
        .reply = {.magic = CONTROL_MAGIC}, .major = CONTROL_MAJOR, .minor = CONTROL_MINOR};
    ssize_t got = recv(socket, &hello, sizeof(hello), 0);

    connection = socket;
    if (got == 0)
        return CONTROL_NO_DRIVER;
    if (got != (ssize_t)sizeof(hello) || hello.message.magic != CONTROL_MAGIC ||
        hello.message.kind != CONTROL_HELLO || hello.major != CONTROL_MAJOR)
        welcome.reply.result = CONTROL_REFUSED;
    else
        welcome.reply.result = (uint32_t)shared_reserve(hello.message.address, hello.message.bytes);
    if (welcome.reply.result == CONTROL_OK) {
        use_settings(&hello, hello.settings_bytes);
        output_is_read(hello.minor >= CONTROL_MINOR_OUTPUT);
        welcome.cuda_result = start_driver(library, &welcome);
        if (welcome.cuda_result != CUDA_SUCCESS)
            welcome.reply.result = CONTROL_NO_DRIVER;
    }
    send_reply(socket, &welcome, sizeof(welcome), -1);
    return welcome.reply.result;
}

/* Packets of several threads do not mix. */
void control_tell_answered(uint64_t channel)
{
    const struct control_reply answered = {CONTROL_MAGIC, CONTROL_ANSWERED, channel};

    send_reply(connection, &answered, sizeof(answered), -1);
}

/* @given: what came with the message, of a VM's engine; -1: nothing. */
static int carry_out(const struct control_message *message, int given, int *fd)
{
    switch (message->kind) {
    case CONTROL_CHANNEL:
        return channels_add(message->address, fd);
    case CONTROL_CHANNEL_END:
        return channels_end(message->address);
    case CONTROL_SHARE_NEW:
        return message->bytes > CONTROL_SHARE ? CONTROL_NO_MEMORY
                                              : shared_add(message->address, message->bytes, fd);
    case CONTROL_SHARE_GUEST:
        return given < 0 ? CONTROL_REFUSED : shared_borrow(message->address, message->bytes, given);
    case CONTROL_SHARE_END:
        return channels_has(message->address) ? CONTROL_REFUSED : shared_end(message->address);
    default:
        return CONTROL_REFUSED;
    }
}

/* The kernel closes what a program sends that has no engine before it. */
bool control_serve(int socket, bool is_of_vm)
{
    struct control_message message;
    struct control_reply answer = {.magic = CONTROL_MAGIC};
    int given = -1, fd = -1;
    ssize_t got = is_of_vm ? descriptor_receive(socket, &message, sizeof(message), 0, &given, 1)
                           : recv(socket, &message, sizeof(message), 0);
    bool ok = got == (ssize_t)sizeof(message) && message.magic == CONTROL_MAGIC;

    if (ok)
        answer.result = (uint32_t)carry_out(&message, given, &fd);
    if (given >= 0)
        close(given);
    if (ok)
        ok = send_reply(socket, &answer, sizeof(answer), fd);
    if (fd >= 0)
        close(fd);
    return ok;
}
