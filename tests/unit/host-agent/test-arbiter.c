/* SPDX-License-Identifier: MIT */
/* Arbiters' settings and reports; an arbiter that answers nothing, or nonsense. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-agent/daemon/engines/arbiter.h"
#include "tests/unit/file_tree.h"

#define GPU   "0000:01:00.0"
#define UUID  "c0ffee00-0000-4000-8000-000000000001"
#define OTHER "c0ffee00-0000-4000-8000-000000000002"

static Slice *make_slice(const char *uuid, guint cap)
{
    Slice *slice = g_new0(Slice, 1);

    slice->uuid = g_strdup(uuid);
    slice->gpu = g_strdup(GPU);
    slice->owner = g_strdup("");
    slice->weight = 70;
    slice->cap = cap;
    slice->priority = 3;
    slice->vram = 4096;
    slice->compute = 25;
    slice->oversubscribe = 512;
    slice->present = TRUE;
    return slice;
}

static char *file_of(HostRoot *root, const char *name)
{
    return root_path(root, GOVERNOR_DIR, GPU, name, NULL);
}

static void assert_share(const Slice *slice, const char *expected)
{
    g_autofree char *text = shares_slice_text(slice);

    g_assert_cmpstr(text, ==, expected);
}

static void test_texts(void)
{
    g_autofree char *gpu = shares_gpu_text(1 << 20, GPU_POLICY_EQUAL, 0, 4096);
    g_autofree char *lends = shares_gpu_text(1 << 20, GPU_POLICY_EQUAL, 1000, 4096);
    g_autoptr(Slice) slice = make_slice(UUID, 100);
    g_autoptr(Slice) capped = make_slice(OTHER, 20);

    g_assert_cmpstr(gpu, ==, "[gpu]\nvram=1048576\npolicy=equal\n");
    g_assert_cmpstr(lends, ==,
                    "[gpu]\nvram=1048576\npolicy=equal\ncapacity=1000\ndisplaced=4096\n");
    assert_share(
        slice,
        "[slice]\nweight=70\ncap=0\nhard=false\npriority=3\nvram=4096\nspill=512\nshare=250000\n");
    assert_share(
        capped,
        "[slice]\nweight=70\ncap=20\nhard=true\npriority=3\nvram=4096\nspill=512\nshare=250000\n");
    slice->weight = 1;
    slice_set_text(&slice->owner, "slurm:7");
    assert_share(slice, "[slice]\nweight=1\ncap=0\nhard=false\npriority=3\nvram=4096\nspill=512\n"
                        "share=250000\npartners=slurm:7\n");
    slice->class = SLICE_BURSTABLE;
    assert_share(slice, "[slice]\nweight=1\ncap=0\nhard=false\npriority=3\nvram=4096\nspill=512\n"
                        "share=250000\nguaranteed=false\npartners=slurm:7\n");
    slice->resident = 1024;
    assert_share(slice, "[slice]\nweight=1\ncap=0\nhard=false\npriority=3\nvram=4096\nspill=512\n"
                        "share=250000\nguaranteed=false\nresident=1024\npartners=slurm:7\n");
    slice->class = SLICE_BEST_EFFORT;
    assert_share(slice, "[slice]\nweight=1\ncap=0\nhard=false\npriority=3\nvram=4096\nspill=512\n"
                        "share=250000\nguaranteed=false\nresident=1024\nbest-effort=true\n"
                        "partners=slurm:7\n");
}

/* A slice by hand is not vgpud's. */
static void test_list(void)
{
    HostRoot *root = file_tree_new();
    g_auto(GStrv) uuids = NULL;

    file_tree_write(root, "/" GOVERNOR_DIR "/" GPU "/slices/by-hand.conf", "[slice]\n");
    file_tree_write(root, "/" GOVERNOR_DIR "/" GPU "/slices/" UUID ".conf", "[slice]\n");
    uuids = shares_list(root, GPU);
    g_assert_cmpstr(uuids[0], ==, UUID);
    g_assert_null(uuids[1]);
    file_tree_free(root);
}

/* An arbiter that sends @text to each client, or NULL: nothing. */
typedef struct {
    int listener;
    const char *text;
} Speaker;

static void *speak(void *data)
{
    const Speaker *speaker = data;
    int fd = accept(speaker->listener, NULL, NULL);

    if (speaker->text)
        g_assert_cmpint(write(fd, speaker->text, strlen(speaker->text)), >, 0);
    else
        g_usleep(G_USEC_PER_SEC);
    close(fd);
    return NULL;
}

static void see(const char *slice, const SliceUse *use, GArray *pids, void *seen)
{
    g_string_append_printf(seen,
                           "%s:%u:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT
                           ":%s:%" G_GUINT64_FORMAT "%s",
                           slice, use->members, use->waited_ns, use->throttled_ns, use->spilled,
                           use->spill_kind, use->vram_peak, use->alone ? ":alone" : "");
    for (guint i = 0; i < pids->len; i++)
        g_string_append_printf(seen, ":%u", g_array_index(pids, guint, i));
    g_string_append(seen, " ");
}

/* @expected: NULL: no complete answer. */
static void assert_heard(const char *text, const char *expected)
{
    HostRoot *root = file_tree_new();
    g_autofree char *dir = file_of(root, "");
    g_autofree char *path = file_of(root, "status.sock");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    Speaker speaker = {.listener = socket(AF_UNIX, SOCK_STREAM, 0), .text = text};
    g_autoptr(GString) seen = g_string_new(NULL);
    GThread *thread;

    g_mkdir_with_parents(dir, 0755);
    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    g_assert_cmpint(bind(speaker.listener, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(speaker.listener, 1), ==, 0);
    thread = g_thread_new("arbiter", speak, &speaker);
    g_assert_cmpint(arbiter_read_status(root, GPU, see, seen), ==,
                    expected ? ARBITER_ANSWERS : ARBITER_SILENT);
    g_assert_cmpstr(seen->str, ==, expected ? expected : "");
    g_thread_join(thread);
    close(speaker.listener);
    file_tree_free(root);
}

static void test_status(void)
{
    HostRoot *nowhere = file_tree_new();

    assert_heard("{\"slices\":[{\"id\":\"a\",\"members\":2,\"waited_ns\":5,\"throttled_ns\":7,"
                 "\"vram_used\":3,\"vram_peak\":6,\"mode\":\"free\",\"pids\":[77,-1,78]},"
                 "{\"id\":\"b\",\"vram_used\":4,\"waited_ns\":-1,\"mode\":\"metered\","
                 "\"spill_used\":9,\"spill_kind\":\"driver\"}]}",
                 "a:2:5:7:0:none:6:alone:77:78 b:0:0:0:9:driver:4 ");
    assert_heard("{\"slices\":[]}", "");
    assert_heard("{\"slices\":[{\"id\":", NULL);
    assert_heard("[1]", NULL);
    assert_heard("{\"slices\":7}", NULL);
    assert_heard("{\"slices\":[3,{}]}", "");
    assert_heard(NULL, NULL);
    g_assert_cmpint(arbiter_read_status(nowhere, GPU, see, NULL), ==, ARBITER_AWAY);
    file_tree_free(nowhere);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/arbiter/texts", test_texts);
    g_test_add_func("/arbiter/list", test_list);
    g_test_add_func("/arbiter/status", test_status);
    return g_test_run();
}
