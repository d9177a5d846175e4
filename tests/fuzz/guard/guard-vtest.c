// SPDX-License-Identifier: MIT
/*
 * A client of vgpu-guard that sends anything, to a real session over a fake virglrenderer, which
 * asserts that it is never used in a way that the real one does not survive. What must hold beside
 * that: the session ends, and leaves no context and no blob behind.
 *
 * An input is steps. The first byte of each says what: a message of a length and command that fit,
 * with small numbers where random ones would never meet; bytes as they are; or what goes wrong in
 * the renderer from here on.
 */
#include "fixture.h"

#include <linux/virtio_gpu.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define MAX_STREAM (64u << 10)
#define WORDS_MAX  16u
#define NUM_KINDS  16u

struct input {
    const uint8_t *data;
    size_t left;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What Mesa sends; words that are not given are zero. */
static const struct {
    uint32_t command;
    uint32_t words;
    uint32_t likely[7];
} kinds[NUM_KINDS] = {
    {VTEST_CONTEXT_INIT, 1, {VIRTIO_GPU_CAPSET_VENUS}},
    {VTEST_RESOURCE_CREATE_BLOB, 6, {2, 1, 4096}},
    {VTEST_RESOURCE_CREATE_BLOB, 6, {2, 3, 8192, 0, 1}},
    {VTEST_RESOURCE_UNREF, 1, {1}},
    {VTEST_SYNC_CREATE, 2, {0}},
    {VTEST_SYNC_UNREF, 1, {1}},
    {VTEST_SYNC_READ, 1, {1}},
    {VTEST_SYNC_WRITE, 3, {1, 1}},
    {VTEST_SYNC_WAIT, 5, {0, 0, 1, 1}},
    {VTEST_SYNC_WAIT, 8, {1, 100, 1, 1, 0, 2, 1}},
    {VTEST_SUBMIT_CMD2, 12, {1, 1, 7, 2, 9, 1, 1}},
    {VTEST_SUBMIT_CMD2, 10, {1, 0, 0, 0, 7, 1, 0}},
    {VTEST_PING_PROTOCOL_VERSION, 0, {0}},
    {VTEST_RESOURCE_BUSY_WAIT, 2, {0}},
    {VTEST_GET_PARAM, 1, {VTEST_PARAM_MAX_TIMELINE_COUNT}},
    {VTEST_GET_CAPSET, 2, {VIRTIO_GPU_CAPSET_VENUS}},
};

static uint8_t take8(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->data++;
}

static void add_message(GByteArray *stream, struct input *in, uint8_t kind)
{
    uint32_t message[VTEST_HEADER_WORDS + WORDS_MAX] = {kinds[kind].words, kinds[kind].command};
    uint8_t changes = take8(in) & 3;

    memcpy(message + VTEST_HEADER_WORDS, kinds[kind].likely, sizeof(kinds[kind].likely));
    while (changes--)
        message[take8(in) % G_N_ELEMENTS(message)] += (uint32_t)(int8_t)take8(in);
    g_byte_array_append(stream, (const uint8_t *)message,
                        (guint)((VTEST_HEADER_WORDS + kinds[kind].words) * sizeof(uint32_t)));
}

static void add_bytes(GByteArray *stream, struct input *in)
{
    size_t wanted = take8(in);
    size_t size = MIN(wanted, in->left);

    g_byte_array_append(stream, in->data, (guint)size);
    in->data += size;
    in->left -= size;
}

static void add_name(GByteArray *stream)
{
    static const uint32_t header[] = {5, VTEST_CREATE_RENDERER};

    g_byte_array_append(stream, (const uint8_t *)header, sizeof(header));
    g_byte_array_append(stream, (const uint8_t *)"fuzz", 5);
}

static void fail_something(uint8_t what)
{
    fake_virgl.context_result = what & 1 ? -1 : 0;
    fake_virgl.submit_result = what & 2 ? -1 : 0;
    fake_virgl.fence_result = what & 4 ? -1 : 0;
    fake_virgl.blob_result = what & 8 ? -1 : 0;
    fake_virgl.export_opaque = what & 16;
    fake_virgl.signal_at_once = what & 32;
}

static GByteArray *make_stream(struct input *in)
{
    GByteArray *stream = g_byte_array_new();

    fail_something(take8(in));
    if (take8(in) & 1)
        add_name(stream);
    while (in->left && stream->len < MAX_STREAM) {
        uint8_t op = take8(in);

        if (op & 0x80)
            add_bytes(stream, in);
        else
            add_message(stream, in, op % NUM_KINDS);
    }
    return stream;
}

static GLogWriterOutput say_nothing(GLogLevelFlags level, const GLogField *fields G_GNUC_UNUSED,
                                    gsize count G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
    return level & G_LOG_FLAG_FATAL ? G_LOG_WRITER_UNHANDLED : G_LOG_WRITER_HANDLED;
}

int LLVMFuzzerInitialize(int *argc G_GNUC_UNUSED, char ***argv G_GNUC_UNUSED)
{
    g_log_set_writer_func(say_nothing, NULL, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Nobody reads the answers: a session that fills the socket sees its client as gone. */
    const struct timeval at_once = {.tv_usec = 1000};
    const int room = 1 << 20;
    struct input in = {.data = data, .left = size};
    GByteArray *stream;
    struct fixture f;

    fixture_set_up(&f, NULL);
    stream = make_stream(&in);
    setsockopt(f.client, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    setsockopt(f.guard, SOL_SOCKET, SO_SNDTIMEO, &at_once, sizeof(at_once));
    client_write(f.client, stream->data, stream->len);
    shutdown(f.client, SHUT_WR);
    session_run(&f.session);
    while (fake_virgl.fences->len)
        fake_virgl_signal(fake_virgl.fences->len / 2);
    fixture_tear_down(&f, NULL);
    g_byte_array_unref(stream);
    return 0;
}
