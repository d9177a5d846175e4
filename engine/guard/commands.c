// SPDX-License-Identifier: MIT
/* When each is allowed, its length, and its handler. */
#include "session.h"

#include "guard_limits.h"
#include "vtest.h"
#include "worker.h"

#include <linux/virtio_gpu.h>
#include <string.h>
#include <unistd.h>
#include <virglrenderer.h>

#define WORDS_MAX    (GUARD_MESSAGE_MAX / (uint32_t)sizeof(uint32_t))
#define CAPSET_MAX   65536u
#define LOW_WORD(v)  ((uint32_t)(v))
#define HIGH_WORD(v) ((uint32_t)((v) >> 32))
#define BLOB_WORDS   (sizeof(struct vtest_blob) / sizeof(uint32_t))
#define WAIT_HEADER  2u

static bool fail_with(struct session *session, const char *fault)
{
    return session_fail(session, "%s", fault);
}

static bool answer_ping(struct session *session, const uint32_t *data G_GNUC_UNUSED,
                        uint32_t words G_GNUC_UNUSED)
{
    return session_answer(session, VTEST_PING_PROTOCOL_VERSION, NULL, 0);
}

static bool busy_wait(struct session *session, const uint32_t *data, uint32_t words G_GNUC_UNUSED)
{
    const uint32_t idle = 0;

    if (data[0] != 0)
        return fail_with(session, "it requests OpenGL's resources, which are not offered");
    return session_answer(session, VTEST_RESOURCE_BUSY_WAIT, &idle, 1);
}

static bool protocol_version(struct session *session, const uint32_t *data,
                             uint32_t words G_GNUC_UNUSED)
{
    const uint32_t version = MIN(data[0], VTEST_PROTOCOL_VERSION);

    return session_answer(session, VTEST_PROTOCOL_VERSION_COMMAND, &version, 1);
}

static bool get_param(struct session *session, const uint32_t *data, uint32_t words G_GNUC_UNUSED)
{
    const bool known = data[0] == VTEST_PARAM_MAX_TIMELINE_COUNT;
    const uint32_t answer[] = {known, known ? VTEST_TIMELINES : 0};

    return session_answer(session, VTEST_GET_PARAM, answer, G_N_ELEMENTS(answer));
}

static bool get_capset(struct session *session, const uint32_t *data, uint32_t words G_GNUC_UNUSED)
{
    g_autofree uint32_t *answer = NULL;
    uint32_t version = 0;
    uint32_t size = 0;

    if (data[0] == VIRTIO_GPU_CAPSET_VENUS)
        virgl_renderer_get_cap_set(data[0], &version, &size);
    if (size > CAPSET_MAX || size % sizeof(uint32_t) || data[1] > version)
        size = 0;
    answer = g_malloc0(sizeof(uint32_t) + size);
    answer[0] = size > 0;
    if (size)
        virgl_renderer_fill_caps(data[0], data[1], answer + 1);
    return session_answer(session, VTEST_GET_CAPSET, answer, 1 + size / (uint32_t)sizeof(uint32_t));
}

static bool context_init(struct session *session, const uint32_t *data,
                         uint32_t words G_GNUC_UNUSED)
{
    int ret;

    if (session->context)
        return fail_with(session, "it has a context already");
    if (data[0] != VIRTIO_GPU_CAPSET_VENUS)
        return session_fail(session, "it requests contexts of kind %u; only Venus is offered",
                            data[0]);
    ret = worker_create_context(SESSION_CONTEXT, VIRTIO_GPU_CAPSET_VENUS,
                                (uint32_t)strlen(session->name), session->name, &session->worker);
    if (ret != 0)
        return session_fail(session, "virglrenderer could not create its context (%d)", ret);
    session->context = true;
    session_watch_worker(session);
    session->probed = g_get_monotonic_time();
    return true;
}

static bool do_sync_create(struct session *session, const uint32_t *data,
                           uint32_t words G_GNUC_UNUSED)
{
    const char *fault = NULL;
    uint32_t id = sync_create(&session->syncs, vtest_u64(data), &fault);

    return id ? session_answer(session, VTEST_SYNC_CREATE, &id, 1) : fail_with(session, fault);
}

static bool do_sync_unref(struct session *session, const uint32_t *data,
                          uint32_t words G_GNUC_UNUSED)
{
    const char *fault = NULL;

    return sync_unref(&session->syncs, data[0], &fault) || fail_with(session, fault);
}

static bool do_sync_read(struct session *session, const uint32_t *data,
                         uint32_t words G_GNUC_UNUSED)
{
    const char *fault = NULL;
    uint64_t value;
    uint32_t answer[2];

    if (!sync_read(&session->syncs, data[0], &value, &fault))
        return fail_with(session, fault);
    answer[0] = LOW_WORD(value);
    answer[1] = HIGH_WORD(value);
    return session_answer(session, VTEST_SYNC_READ, answer, G_N_ELEMENTS(answer));
}

static bool do_sync_write(struct session *session, const uint32_t *data,
                          uint32_t words G_GNUC_UNUSED)
{
    const struct sync_entries one = {.words = data, .count = 1};
    const char *fault = NULL;

    return sync_write(&session->syncs, one, &fault) || fail_with(session, fault);
}

static bool do_sync_wait(struct session *session, const uint32_t *data, uint32_t words)
{
    const struct sync_entries entries = {
        .words = data + WAIT_HEADER,
        .count = (words - WAIT_HEADER) / VTEST_SYNC_ENTRY_WORDS,
    };
    const char *fault = NULL;
    bool fresh, ok;
    int fd;

    if ((words - WAIT_HEADER) % VTEST_SYNC_ENTRY_WORDS || (data[0] & ~VTEST_SYNC_WAIT_ANY))
        return fail_with(session, "its wait for syncs has a wrong form");
    fd =
        sync_wait(&session->syncs, entries, data[0] & VTEST_SYNC_WAIT_ANY, data[1], &fresh, &fault);
    if (fd == SYNC_DEFERRED) {
        session->wire.soon_us = SYNC_QUICK_US;
        return true;
    }
    if (fd < 0)
        return fail_with(session, fault);
    ok = session_answer_fd(session, VTEST_SYNC_WAIT, NULL, 0, fd);
    if (fresh)
        close(fd);
    return ok;
}

/* The command that must have come before. */
enum stage { STAGE_NAMED, STAGE_CONTEXT };

static const struct command {
    bool (*run)(struct session *session, const uint32_t *data, uint32_t words);
    enum stage stage;
    uint32_t min_words;
    uint32_t max_words;
} commands[VTEST_NUM_COMMANDS] = {
    [VTEST_PING_PROTOCOL_VERSION] = {answer_ping, STAGE_NAMED, 0, 0},
    [VTEST_RESOURCE_BUSY_WAIT] = {busy_wait, STAGE_NAMED, 2, 2},
    [VTEST_PROTOCOL_VERSION_COMMAND] = {protocol_version, STAGE_NAMED, 1, 1},
    [VTEST_GET_PARAM] = {get_param, STAGE_NAMED, 1, 1},
    [VTEST_GET_CAPSET] = {get_capset, STAGE_NAMED, 2, 2},
    [VTEST_CONTEXT_INIT] = {context_init, STAGE_NAMED, 1, 1},
    [VTEST_RESOURCE_CREATE_BLOB] = {session_create_blob, STAGE_CONTEXT, BLOB_WORDS, BLOB_WORDS},
    [VTEST_RESOURCE_UNREF] = {session_unref_blob, STAGE_CONTEXT, 1, 1},
    [VTEST_SYNC_CREATE] = {do_sync_create, STAGE_CONTEXT, 2, 2},
    [VTEST_SYNC_UNREF] = {do_sync_unref, STAGE_CONTEXT, 1, 1},
    [VTEST_SYNC_READ] = {do_sync_read, STAGE_CONTEXT, 1, 1},
    [VTEST_SYNC_WRITE] = {do_sync_write, STAGE_CONTEXT, 3, 3},
    [VTEST_SYNC_WAIT] = {do_sync_wait, STAGE_CONTEXT, WAIT_HEADER, WORDS_MAX},
    [VTEST_SUBMIT_CMD2] = {session_submit, STAGE_CONTEXT, 1, WORDS_MAX},
};

bool command_check(struct session *session, uint32_t id, uint32_t length, size_t *size)
{
    const struct command *command = id < VTEST_NUM_COMMANDS ? &commands[id] : NULL;

    if (id == VTEST_CREATE_RENDERER) {
        if (session->name[0])
            return fail_with(session, "it names itself twice");
        if (length == 0 || length > GUARD_NAME_MAX)
            return session_fail(session, "its name has %u bytes", length);
        *size = length;
        return true;
    }
    if (!session->name[0])
        return session_fail(session, "it begins with command %u instead of its name", id);
    if (!command || !command->run)
        return session_fail(session, "it sends command %u, which is unknown", id);
    if (length < command->min_words || length > command->max_words)
        return session_fail(session, "it sends command %u with %u words", id, length);
    if (command->stage == STAGE_CONTEXT && !session->context)
        return session_fail(session, "it sends command %u before it has a context", id);
    *size = (size_t)length * sizeof(uint32_t);
    return true;
}

bool command_run(struct session *session, uint32_t id, const uint32_t *data, size_t size)
{
    const char *name = (const char *)data;
    size_t length;

    if (id != VTEST_CREATE_RENDERER)
        return commands[id].run(session, data, (uint32_t)(size / sizeof(uint32_t)));
    /* The name is written to the journal: one word, without control characters. */
    length = MIN(strnlen(name, size), sizeof(session->name) - 1);
    for (size_t i = 0; i < length; i++)
        session->name[i] = g_ascii_isgraph(name[i]) ? name[i] : '?';
    session->name[length] = '\0';
    if (length == 0)
        strcpy(session->name, "?");
    return true;
}
