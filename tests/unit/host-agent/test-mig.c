/* SPDX-License-Identifier: MIT */
/*
 * How nvidia-smi is called: outside of vgpud's sandbox, which has neither NVIDIA's nodes nor the
 * capability.
 */
#include <glib.h>
#include <string.h>

#include "host-agent/daemon/modes/binding.h"
#include "lib/gpu.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"

#define GPU "0000:17:00.0"

typedef struct {
    HostRoot *root;
    Gpu *gpu;
} Card;

static void card_open(Card *card)
{
    card->root = recorded_host_new("server-8gpu");
    fake_kernel_use(card->root);
    card->gpu = gpu_new(card->root, pci_device_read(card->root, GPU), "H100", NULL);
}

static void card_close(Card *card)
{
    gpu_free(card->gpu);
    file_tree_free(card->root);
}

/* Each recorded command line is one of systemd's, and ends so. */
static void assert_run(const char *const *ends)
{
    g_autofree char *done = fake_kernel_done();
    g_auto(GStrv) lines = g_strsplit(g_strchomp(done), "\n", -1);

    g_assert_cmpuint(g_strv_length(lines), ==, g_strv_length((char **)ends));
    for (guint i = 0; ends[i]; i++) {
        g_autofree char *end = g_strconcat(" -- nvidia-smi ", ends[i], NULL);

        g_assert_true(g_str_has_prefix(lines[i], "run systemd-run "));
        g_assert_nonnull(strstr(lines[i], "--property=DeviceAllow=char-nvidia* rw"));
        g_assert_nonnull(strstr(lines[i], "CAP_SYS_ADMIN"));
        g_assert_nonnull(strstr(lines[i], " --wait "));
        g_assert_cmpstr(lines[i] + strlen(lines[i]) - strlen(end), ==, end);
    }
}

static void test_make(void)
{
    static const char *const ends[] = {
        "-i " GPU " -mig 1",
        "mig -i " GPU " -cgi 19,19 -C",
        NULL,
    };
    Card card;

    card_open(&card);
    g_assert_true(partitioner_mig.make(card.root, card.gpu, 2, NULL));
    assert_run(ends);
    card_close(&card);
}

static void test_remove(void)
{
    static const char *const ends[] = {
        "mig -i " GPU " -dci",
        "mig -i " GPU " -dgi",
        "-i " GPU " -mig 0",
        NULL,
    };
    Card card;

    card_open(&card);
    file_tree_write(card.root, "/proc/driver/nvidia/gpus/" GPU "/information",
                    "Device Minor: \t 3\n");
    file_tree_write(card.root, "/proc/driver/nvidia/capabilities/gpu3/mig/gi1/access", "");
    g_assert_true(partitioner_mig.remove(card.root, card.gpu, NULL));
    assert_run(ends);
    card_close(&card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mig/make", test_make);
    g_test_add_func("/mig/remove", test_remove);
    return g_test_run();
}
