// SPDX-License-Identifier: MIT
#include "kit.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card.h"

#define GPU     "0000:3b:00.0"
#define GPU_2   "0000:3c:00.0"
#define STARTED 128

struct live kit_live;

static pid_t started[STARTED];
static unsigned int started_count;

/* GPU/SLICE as a container has it, in a directory of that name. */
static void show(const char *gpu, const char *slice, const char *name)
{
    g_autofree char *dir = g_build_filename(kit_live.root, name, gpu, NULL);
    g_autofree char *link = g_build_filename(dir, slice, NULL);
    g_autofree char *of = g_build_filename(kit_live.root, "run/vgpu/slices", slice, NULL);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_cmpint(symlink(of, link), ==, 0);
}

void kit_open(uint64_t vram)
{
    g_autofree char *a = g_strdup_printf("[slice]\nvram=%" G_GUINT64_FORMAT "\n", vram);
    const char *slices[] = {"a", a, "b", "[slice]\n", NULL};
    g_autofree char *shown = NULL;
    g_autofree char *card = NULL;

    live_open(&kit_live, slices);
    if (vram)
        show(GPU, "a", "shown");
    shown = g_build_filename(kit_live.root, "shown", NULL);
    g_mkdir_with_parents(shown, 0755);
    card = g_build_filename(kit_live.root, "card", NULL);
    g_setenv("VGPU_GOVERNOR_SLICES", shown, TRUE);
    g_setenv("FAKE_CUDA_CARD", card, TRUE);
    g_setenv("FAKE_CUDA_TOTAL", "8589934592", TRUE);
    started_count = 0;
}

void kit_open_two(const char *a, const char *b)
{
    const char *slices[] = {"a", a, "b", b, NULL};
    g_autofree char *card = NULL;

    live_open(&kit_live, slices);
    show(GPU, "a", "only-a");
    show(GPU, "b", "only-b");
    card = g_build_filename(kit_live.root, "card", NULL);
    g_setenv("FAKE_CUDA_CARD", card, TRUE);
    started_count = 0;
}

void kit_open_devices(const char *a, const char *b)
{
    g_autofree char *shown = NULL;

    kit_open_two(a, b);
    show(GPU, "a", "shown");
    show(GPU_2, "b", "shown");
    shown = g_build_filename(kit_live.root, "shown", NULL);
    g_setenv("VGPU_GOVERNOR_SLICES", shown, TRUE);
    g_setenv("FAKE_CUDA_DEVICES", "2", TRUE);
}

void kit_enter(const char *slice)
{
    g_autofree char *name = g_strconcat("only-", slice, NULL);
    g_autofree char *dir = g_build_filename(kit_live.root, name, NULL);

    if (slice)
        g_setenv("VGPU_GOVERNOR_SLICES", dir, TRUE);
    else
        g_unsetenv("VGPU_GOVERNOR_SLICES");
    kit_context();
}

/*
 * From its first launch on the arbiter sees it, and measures it if there is a reason. A function
 * that is not known then has an event before it and one after it.
 */
void kit_enter_measured(const char *slice)
{
    unsigned int before, ns = 20000;

    kit_enter(slice);
    do {
        before = kit_calls("cuEventRecord");
        kit_launch(kit_kernel(ns++), NULL);
        ok(cuStreamSynchronize(NULL));
    } while (kit_calls("cuEventRecord") < before + 2);
}

void kit_launch(CUfunction function, CUstream stream)
{
    ok(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

unsigned int kit_calls(const char *name)
{
    unsigned int (*count)(const char *) = NULL;

    *(void **)&count = kit_driver("fake_count");
    return count(name);
}

void kit_close(void)
{
    live_close(&kit_live);
    g_unsetenv("VGPU_GOVERNOR_REQUIRED");
    g_unsetenv("FAKE_CUDA_HIDDEN");
    g_unsetenv("FAKE_CUDA_UNEXPORTED");
    g_unsetenv("FAKE_CUDA_LATER");
    g_unsetenv("FAKE_CUDA_SMALL_STEPS");
    g_unsetenv("FAKE_CUDA_DEVICES");
}

unsigned int kit_start(void (*program)(void))
{
    pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    g_assert_cmpuint(started_count, <, STARTED);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        program();
        _exit(0);
    }
    started[started_count] = pid;
    return started_count++;
}

int kit_pid(unsigned int number)
{
    return started[number];
}

int kit_end_of(unsigned int number)
{
    int status = -1;

    g_assert_cmpint(waitpid(started[number], &status, 0), ==, started[number]);
    started[number] = 0;
    return status;
}

void kit_await(unsigned int number)
{
    g_assert_cmpint(kit_end_of(number), ==, 0);
}

void kit_kill_all(void)
{
    while (started_count) {
        pid_t pid = started[--started_count];

        if (!pid)
            continue;
        kill(pid, SIGKILL);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    }
}

void kit_run(void (*program)(void))
{
    kit_await(kit_start(program));
}

CUcontext kit_context(void)
{
    CUcontext context = NULL;

    ok(cuInit(0));
    ok(cuCtxCreate_v2(&context, 0, 0));
    return context;
}

void kit_charged(uint64_t bytes)
{
    live_await(&kit_live, "a", "vram_used", (gint64)bytes);
}

void kit_charged_b(uint64_t bytes)
{
    live_await(&kit_live, "b", "vram_used", (gint64)bytes);
}

static void look(struct card *card)
{
    void (*function)(struct card *) = NULL;

    *(void **)&function = kit_driver("card_look");
    function(card);
}

uint64_t kit_on_card(void)
{
    struct card card;

    look(&card);
    return card.used;
}

uint64_t kit_peak(void)
{
    struct card card;

    look(&card);
    return card.peak;
}

void *kit_driver(const char *name)
{
    void *driver = dlopen(REAL_DIR "/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    g_assert_nonnull(driver);
    return dlsym(driver, name);
}
