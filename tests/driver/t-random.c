/* SPDX-License-Identifier: MIT */
/*
 * VMM, guest and engine at random: whatever they do, the kernel has no fault and no leak.
 *
 *   t-random [--seed N] [--ops N]
 *
 * The same seed gives the same operations, not the same timing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signal.h>
#include <unistd.h>

#include "kernel_counts.h"
#include "random_world.h"

#define DEFAULT_SEED 20181
#define DEFAULT_OPS  10000
#define SHOWN_OPS    24
#define LIMIT_S      1500
/* Waiting for an engine that never answers is useless. */
#define TIMEOUT_MS 100
/* A leak exceeds this in thousands of operations; the rest of the system does not. */
#define LEAST_GROWTH 64
#define BATCHES      3

static uint32_t seed = DEFAULT_SEED;
static unsigned ops = DEFAULT_OPS;
static const char *done[SHOWN_OPS];
static unsigned ndone;

/* The operations before the failure, if there is one. */
static void show_last_ops(int signal_number)
{
    for (unsigned i = ndone > SHOWN_OPS ? ndone - SHOWN_OPS : 0; i < ndone; i++)
        dprintf(STDERR_FILENO, "# operation %u: %s\n", i, done[i % SHOWN_OPS]);
    dprintf(STDERR_FILENO, "# again: t-random --seed %u --ops %u\n", seed, ndone);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static unsigned total_weight(const WorldOp *op)
{
    unsigned sum = 0;

    for (; op->name; op++)
        sum += op->weight;
    return sum;
}

static const WorldOp *pick_step(World *w)
{
    static const WorldOp *const tables[] = {world_vmm_ops, world_guest_ops, world_engine_ops};
    const WorldOp *op = tables[below(w, G_N_ELEMENTS(tables))];
    unsigned left = below(w, total_weight(op));

    while (left >= op->weight)
        left -= op++->weight;
    return op;
}

static void run_op(World *w)
{
    const WorldOp *op = pick_step(w);

    /* Without a VMM the only operation is to open it. */
    if (!w->vmm_open)
        op = &world_vmm_ops[0];
    done[ndone++ % SHOWN_OPS] = op->name;
    op->run(w);
}

static uint64_t number_after(const char *path, const char *name)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, name))
            return g_ascii_strtoull(*line + strlen(name) + 1, NULL, 10);
    }
    g_error("%s: no %s", path, name);
}

static unsigned count_entries(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    unsigned n = 0;

    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

/* This process's resources. */
typedef struct {
    uint64_t locked_kib;
    unsigned fds;
} Held;

static Held count_held(void)
{
    g_autofree char *status = g_strdup_printf("/proc/%d/status", getpid());

    return (Held){
        .locked_kib = number_after(status, "VmPin:") + number_after(status, "VmLck:"),
        .fds = count_entries("/proc/self/fd"),
    };
}

static void live_steps(unsigned nops)
{
    World *w = world_new(seed);
    g_autofree char *uuid = g_strdup(w->uuid);

    while (nops--)
        run_op(w);
    world_free(w);
    g_assert_cmpuint(mdev_attr_u64(uuid, "vgpu/pinned_bytes"), ==, 0);
    g_assert_cmpuint(mdev_attr_u64(uuid, "vgpu/window_published_bytes"), ==, 0);
    assert_ok(mdev_remove(uuid));
    assert_ok(mdev_gpu_remove(TESTBED_GPU));
}

/* A vGPU that has survived all that still works, and so does another one. */
static void test_random(void)
{
    KernelCounts *counts[BATCHES + 1];
    Held held_before, held_after;

    signal(SIGABRT, show_last_ops);
    signal(SIGTRAP, show_last_ops);
    signal(SIGSEGV, show_last_ops);
    signal(SIGBUS, show_last_ops);
    g_printerr("# --seed %u --ops %u\n", seed, ops);
    mdev_set_engine_timeout_ms(TIMEOUT_MS);
    mdev_set_reset_timeout_ms(TIMEOUT_MS);
    /* All kinds of caches have their final size after a while. */
    live_steps(ops / 10);
    counts[0] = kernel_counts_take();
    held_before = count_held();
    for (unsigned batch = 1; batch <= BATCHES; batch++) {
        live_steps((ops - ops / 10) / BATCHES);
        held_after = count_held();
        counts[batch] = kernel_counts_take();
    }
    g_assert_cmpuint(held_after.fds, ==, held_before.fds);
    g_assert_cmpuint(held_after.locked_kib, ==, held_before.locked_kib);
    g_assert_cmpuint(kernel_counts_grown(counts, BATCHES + 1, LEAST_GROWTH), ==, 0);
    for (unsigned i = 0; i <= BATCHES; i++)
        kernel_counts_free(counts[i]);
}

/* Removes our options from the command line: GTest has a --seed of its own. */
static void parse_options(int *argc, char **argv)
{
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        if (!strcmp(argv[i], "--seed") && i + 1 < *argc)
            seed = (uint32_t)strtoul(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--ops") && i + 1 < *argc)
            ops = (unsigned)strtoul(argv[++i], NULL, 0);
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
}

int main(int argc, char **argv)
{
    parse_options(&argc, argv);
    driver_test_init(argc, argv);
    driver_test_add_limit("/random/operations", test_random, LIMIT_S);
    return driver_test_run();
}
