// SPDX-License-Identifier: MIT
/* Every entry point while memory of the process is displaced: it waits, or the driver answers. */
#include "kit.h"
#include "orders.h"

#include <dlfcn.h>
#include <string.h>

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);

#define WHOLE     (4 * MIB)
#define ARGUMENTS 16
/* Enough for what an argument points to. */
#define ROOM 16384

static const struct call {
    const char *name;
    const char *away;
    const char *words;
} calls[] = {
#define AWAY(name, away, words) {#name, #away, words},
#include "away.inc"
};

typedef long any_function(long, long, long, long, long, long, long, long, long, long, long, long,
                          long, long, long, long);

static char memory[ARGUMENTS][ROOM];
static _Atomic bool returned;

static bool is_away(const struct call *call, const char *away)
{
    return !strcmp(call->away, away);
}

static void *function_of(const struct call *call)
{
    return dlsym(RTLD_DEFAULT, call->name);
}

static void *call_entry(void *data)
{
    const struct call *call = data;
    any_function *function = (any_function *)function_of(call);
    long a[ARGUMENTS] = {0};
    CUgraph graph;

    memset(memory, 0, sizeof(memory));
    for (unsigned int i = 0; call->words[i]; i++)
        a[i] = call->words[i] == 'p' ? (long)memory[i] : 0;
    function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
             a[14], a[15]);
    returned = true;
    if (is_away(call, "begins") && g_str_has_suffix(call->name, "_ptsz"))
        cuStreamEndCapture_ptsz(NULL, &graph);
    else if (is_away(call, "begins"))
        cuStreamEndCapture(NULL, &graph);
    return NULL;
}

static void displace(void)
{
    struct orders_said said;

    orders_leave(WHOLE);
    orders_await_left();
    orders_look(&said);
    g_assert_cmpuint(said.displaced, ==, WHOLE);
}

static void bring_back(void)
{
    orders_take(WHOLE);
    orders_await_taken();
}

/* It does not come to the driver, says COME, and goes on when all is back. */
static void check_waits(const struct call *call)
{
    struct orders_said said;
    unsigned int before;
    GThread *thread;

    displace();
    before = kit_calls(call->name);
    orders_look(&said);
    returned = false;
    thread = g_thread_new(call->name, call_entry, (void *)call);
    orders_await_comes(said.comes + 1);
    if (returned || kit_calls(call->name) != before)
        g_error("%s came to the driver while memory was displaced", call->name);
    bring_back();
    g_thread_join(thread);
    /* What brings memory back calls some of them, too. */
    if (!returned || kit_calls(call->name) == before)
        g_error("%s did not come to the driver when memory was back", call->name);
}

/* The driver is asked at once, and nobody comes back for it. */
static void check_driver(const struct call *call)
{
    unsigned int before = kit_calls(call->name);
    struct orders_said said, later;

    orders_look(&said);
    g_thread_join(g_thread_new(call->name, call_entry, (void *)call));
    orders_look(&later);
    if (kit_calls(call->name) != before + 1)
        g_error("%s did not come to the driver while memory was displaced", call->name);
    if (later.comes != said.comes)
        g_error("%s asked for displaced memory", call->name);
}

static bool is_wait(const struct call *call)
{
    return is_away(call, "waits") || is_away(call, "begins");
}

/* cuGetProcAddress is how the others are got. */
static bool is_answered(const struct call *call)
{
    return !is_wait(call) && !is_away(call, "own") &&
           !g_str_has_prefix(call->name, "cuGetProcAddress") && function_of(call);
}

static void enter(void)
{
    CUdeviceptr at;

    g_setenv("FAKE_CUDA_TOTAL", "8589934592", TRUE);
    orders_open();
    kit_context();
    ok(cuMemAlloc_v2(&at, WHOLE));
}

static void waits(void)
{
    unsigned int count = 0;

    enter();
    for (unsigned int i = 0; i < G_N_ELEMENTS(calls); i++)
        if (is_wait(&calls[i])) {
            check_waits(&calls[i]);
            count++;
        }
    g_assert_cmpuint(count, >, 290);
}

static void answers(void)
{
    unsigned int count = 0;

    enter();
    displace();
    for (unsigned int i = 0; i < G_N_ELEMENTS(calls); i++)
        if (is_answered(&calls[i])) {
            check_driver(&calls[i]);
            count++;
        }
    bring_back();
    g_assert_cmpuint(count, >, 350);
}

static void run_program(const void *program)
{
    kit_run((void (*)(void))program);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/away/waits", waits, run_program);
    g_test_add_data_func("/away/answers", answers, run_program);
    return g_test_run();
}
