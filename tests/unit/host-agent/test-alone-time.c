/* SPDX-License-Identifier: MIT */
/* GPU time of slices that their arbiter does not measure, as GPU drivers report it. */
#include "host-agent/meter/alone_time.h"

#include "tests/unit/file_tree.h"

#define GPU    "0000:0a:00.0"
#define SLICE  "11111111-0000-4000-8000-000000000001"
#define SECOND G_USEC_PER_SEC

typedef struct {
    HostRoot *root;
    AloneTime *times;
    GArray *pids;
    gint64 now;
    guint64 measured; /* by the arbiter, of the slice */
    guint64 others;   /* of the GPU's other slices */
} Fixture;

static void open_host(Fixture *f, const void *data)
{
    const guint pids[] = {77, 78};

    (void)data;
    f->root = file_tree_new();
    f->times = alone_time_new(f->root);
    f->pids = g_array_new(FALSE, FALSE, sizeof(guint));
    g_array_append_vals(f->pids, pids, G_N_ELEMENTS(pids));
    f->now = g_get_monotonic_time();
    f->measured = 1000;
    f->others = 5000;
}

static void close_host(Fixture *f, const void *data)
{
    (void)data;
    g_array_unref(f->pids);
    alone_time_free(f->times);
    file_tree_free(f->root);
}

/* A process has client @id of the GPU's driver, which has had @ns. */
static void client(Fixture *f, guint pid, const char *id, guint ns)
{
    g_autofree char *info = g_strdup_printf("/proc/%u/fdinfo/%s", pid, id);
    g_autofree char *link = g_strdup_printf("/proc/%u/fd/%s", pid, id);
    g_autofree char *there = root_path(f->root, link, NULL);
    g_autofree char *text =
        g_strdup_printf("drm-driver:\tamdgpu\ndrm-client-id:\t%s\ndrm-pdev:\t" GPU
                        "\ndrm-engine-gfx:\t%u ns\ndrm-engine-compute:\t5 ns\n",
                        id, ns);

    file_tree_write(f->root, info, text);
    if (!g_file_test(there, G_FILE_TEST_IS_SYMLINK))
        file_tree_link(f->root, link, "/dev/dri/renderD128");
}

/* What NVIDIA's driver reported @age seconds ago. */
static void nvidia(Fixture *f, const char *busy, gint64 age)
{
    g_autofree char *text = g_strdup_printf("[gpu]\ntime=%" G_GINT64_FORMAT "\nmemory=1\n%s",
                                            g_get_monotonic_time() - age * SECOND, busy);

    file_tree_write(f->root, "/run/vgpu/readings/" GPU, text);
}

/* A second later the arbiter reports that the slice is alone, or not. */
static SliceUse report(Fixture *f, gboolean alone)
{
    SliceUse use = {.gpu_ns = f->measured, .alone = alone};
    ReportedSlice slice = {
        .gpu = GPU, .uuid = SLICE, .pids = f->pids, .measured = f->measured + f->others};

    f->now += SECOND;
    slice.now = f->now;
    alone_time_add(f->times, &slice, &use);
    return use;
}

static void assert_ns(Fixture *f, gboolean alone, guint64 ns)
{
    SliceUse use = report(f, alone);
    guint64 all;

    g_assert_cmpuint(use.alone_ns, ==, ns);
    g_assert_true(use.alone_known);
    g_assert_true(slice_use_gpu_ns(&use, &all));
    g_assert_cmpuint(all, ==, f->measured + ns);
}

/* Both processes count, and a client that has come since; one that both have, once. */
static void test_fdinfo(Fixture *f, const void *data)
{
    (void)data;
    client(f, 77, "10", 5000);
    client(f, 78, "11", 300);
    client(f, 78, "10", 5000);
    assert_ns(f, TRUE, 0); /* what was before the first look is not known */
    client(f, 77, "10", 5100);
    client(f, 78, "10", 5100);
    client(f, 78, "11", 301);
    assert_ns(f, TRUE, 101);
    client(f, 78, "12", 20);
    assert_ns(f, TRUE, 126);
    client(f, 78, "12", 10); /* another one, with the same number */
    assert_ns(f, TRUE, 126);
}

/* While it is not alone, the arbiter measures it. */
static void test_not_alone(Fixture *f, const void *data)
{
    (void)data;
    client(f, 77, "10", 100);
    report(f, TRUE);
    client(f, 77, "10", 150);
    assert_ns(f, FALSE, 0);
    client(f, 77, "10", 1150);
    assert_ns(f, TRUE, 0);
    client(f, 77, "10", 1160);
    assert_ns(f, TRUE, 10);
}

/* It was alone at both looks, but others worked in between: the arbiter has measured that part. */
static void test_between(Fixture *f, const void *data)
{
    (void)data;
    client(f, 77, "10", 100);
    assert_ns(f, TRUE, 0);
    client(f, 77, "10", 1000);
    f->measured += 600;
    assert_ns(f, TRUE, 300);
    client(f, 77, "10", 1500);
    f->measured = 200; /* the arbiter was restarted */
    assert_ns(f, TRUE, 600);
}

/*
 * A client that could not be read at the last look, or whose process was not the slice's for the
 * arbiter, has not had all its time since then.
 */
static void test_returns(Fixture *f, const void *data)
{
    const guint seconds = 1000 * 1000 * 1000;

    (void)data;
    client(f, 77, "10", seconds);
    assert_ns(f, TRUE, 0);
    client(f, 77, "10", seconds + seconds / 4);
    client(f, 78, "11", 3 * seconds);
    client(f, 78, "12", 3 * seconds);
    assert_ns(f, TRUE, seconds);
}

static void test_nvidia_between(Fixture *f, const void *data)
{
    (void)data;
    nvidia(f, "busy=50\n", 1);
    assert_ns(f, TRUE, 0);
    f->measured += 100 * 1000 * 1000;
    f->others += 300 * 1000 * 1000;
    assert_ns(f, TRUE, 100 * 1000 * 1000);
    f->now += (gint64)3600 * SECOND; /* no look for an hour, and the sample is of its end */
    assert_ns(f, TRUE, 100 * 1000 * 1000);
    assert_ns(f, TRUE, 600 * 1000 * 1000);
}

static void test_nvidia(Fixture *f, const void *data)
{
    (void)data;
    nvidia(f, "busy=48\n", 20);
    assert_ns(f, TRUE, 0);
    assert_ns(f, TRUE, 480 * 1000 * 1000);
    assert_ns(f, TRUE, 960 * 1000 * 1000);
    nvidia(f, "busy=0\n", 1);
    assert_ns(f, TRUE, 960 * 1000 * 1000);
    alone_time_forget(f->times, SLICE);
    nvidia(f, "busy=100\n", 1);
    assert_ns(f, TRUE, 0);
}

/* Neither: then its GPU time is not known, unless it is not alone. */
static void assert_unknown(Fixture *f)
{
    SliceUse use = report(f, TRUE);
    guint64 ns;

    g_assert_false(use.alone_known);
    g_assert_false(slice_use_gpu_ns(&use, &ns));
    use = report(f, FALSE);
    g_assert_true(slice_use_gpu_ns(&use, &ns));
    g_assert_cmpuint(ns, ==, 1000);
}

static void test_unknown(Fixture *f, const void *data)
{
    (void)data;
    assert_unknown(f);
    nvidia(f, "", 1); /* it does not report this, as in MIG mode */
    assert_unknown(f);
    nvidia(f, "busy=48\n", 600); /* too old */
    assert_unknown(f);
    nvidia(f, "busy=101\n", 1);
    assert_unknown(f);
}

#define ADD(name, test) g_test_add(name, Fixture, NULL, open_host, test, close_host)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("/alone-time/fdinfo", test_fdinfo);
    ADD("/alone-time/not-alone", test_not_alone);
    ADD("/alone-time/between", test_between);
    ADD("/alone-time/returns", test_returns);
    ADD("/alone-time/nvidia", test_nvidia);
    ADD("/alone-time/nvidia-between", test_nvidia_between);
    ADD("/alone-time/unknown", test_unknown);
    return g_test_run();
}
