// SPDX-License-Identifier: MIT
/*
 * Every entry point, called by link, by dlsym() and by cuGetProcAddress(): the driver's function of
 * that name is called once, with all arguments unchanged.
 */
#include "kit.h"

#include <dlfcn.h>
#include <string.h>

struct call {
    const char *name;
    const char *base;
    int since;
    const char *kind;
    const char *words;
    void *linked;
};

typedef long any_function(long, long, long, long, long, long, long, long, long, long, long, long,
                          long, long, long, long);

/* Those of the header have types. */
#define C(name, base, since, class, kind, words) DECLARE_##kind(name)
#define DECLARE_wrap(name)
#define DECLARE_used(name) extern any_function name __attribute__((weak));
#define DECLARE_pass(name) extern any_function name __attribute__((weak));
#define DECLARE_leave(name)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
#include "undeclared.inc"
#pragma GCC diagnostic pop
#undef C

#define LINKED_wrap(name)  (void *)name
#define LINKED_used(name)  (void *)name
#define LINKED_pass(name)  (void *)name
#define LINKED_leave(name) NULL
#define C(name, base, since, class, kind, words)                                                   \
    {#name, #base, since, #kind, words, LINKED_##kind(name)},
static const struct call calls[] = {
#include "calls.inc"
};
#undef C

#define ARGUMENTS 16

static unsigned int (*count_of)(const char *name);
static long *remembered;

/* Each pointer has memory of its own, which is zero. Enough for a list of as many as is said below.
 */
#define SOME 100
static char memory[ARGUMENTS][(SOME + ARGUMENTS) * 128];

static void prepare(const struct call *call, long arguments[ARGUMENTS])
{
    memset(memory, 0, sizeof(memory));
    memset(arguments, 0, ARGUMENTS * sizeof(long));
    for (unsigned int i = 0; call->words[i]; i++)
        arguments[i] = call->words[i] == 'p' ? (long)memory[i] : 0;
}

static long invoke(void *function, const long *a)
{
    return ((any_function *)function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                                      a[10], a[11], a[12], a[13], a[14], a[15]);
}

static bool is_wrapped(const struct call *call)
{
    return !strcmp(call->kind, "wrap");
}

/* cuGetProcAddress is how the others are got; it has a test of its own. */
static bool is_special(const struct call *call)
{
    return !strcmp(call->base, "cuGetProcAddress");
}

static void call_with(const struct call *call, void *function, const long *arguments,
                      const char *way)
{
    unsigned int before = count_of(call->name);

    invoke(function, arguments);
    if (count_of(call->name) != before + 1)
        g_error("%s, called by %s, was called %u times at the driver", call->name, way,
                count_of(call->name) - before);
}

/* All of what a function is given arrives, in registers and on the stack, where the driver's only
 * remembers it. */
static void call_once(const struct call *call, void *function, const char *way)
{
    long arguments[ARGUMENTS];
    size_t size;

    if (!function)
        g_error("%s is not there by %s", call->name, way);
    prepare(call, arguments);
    remembered[0] = -1;
    call_with(call, function, arguments, way);
    if (remembered[0] == -1 || strchr(call->words, 'b'))
        return;
    /* A function of ours may look at what it is given a pointer to. */
    for (unsigned int i = 0; i < ARGUMENTS; i++)
        arguments[i] = is_wrapped(call) && i < strlen(call->words) && call->words[i] == 'p'
                           ? (long)memory[i]
                           : SOME + (long)i;
    call_with(call, function, arguments, way);
    /* Beyond its own arguments, a function of ours passes nothing on. */
    size = is_wrapped(call) ? strlen(call->words) * sizeof(long) : sizeof(arguments);
    if (memcmp(remembered, arguments, size))
        g_error("%s, called by %s: its arguments were changed", call->name, way);
}

static void by_link(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(calls); i++) {
        if (calls[i].linked && !is_special(&calls[i]))
            call_once(&calls[i], calls[i].linked, "link");
    }
}

static void by_dlsym(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    g_assert_nonnull(library);
    for (unsigned int i = 0; i < G_N_ELEMENTS(calls); i++) {
        if (!is_special(&calls[i]))
            call_once(&calls[i], dlsym(library, calls[i].name), "dlsym");
    }
}

static bool is_per_thread(const char *name)
{
    return g_str_has_suffix(name, "_ptsz") || g_str_has_suffix(name, "_ptds");
}

/* The driver exports these and gives them to nobody who asks. */
static bool is_never_given(const char *base)
{
    return g_str_has_prefix(base, "cudbg") || !strcmp(base, "cuEGLApiInit") ||
           !strcmp(base, "cuMemGetAttribute");
}

/* Asked as the driver was of that version, each form is got, and of the wrapped ones our own. */
static void by_getproc(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(calls); i++) {
        const struct call *call = &calls[i];
        CUdriverProcAddressQueryResult status;
        void *function = NULL, *again = NULL;
        cuuint64_t flags = is_per_thread(call->name) ? 2 : 1;

        if (is_special(call) || is_never_given(call->base))
            continue;
        ok(cuGetProcAddress_v2(call->base, &function, call->since, flags, &status));
        ok(cuGetProcAddress(call->base, &again, call->since, flags));
        g_assert_true(function == again);
        if (is_wrapped(call) && function != call->linked)
            g_error("%s by cuGetProcAddress is not the door's own", call->name);
        call_once(call, function, "cuGetProcAddress");
    }
}

/* Arguments in registers and on the stack, and floating ones, also by the first call, which looks
 * the function up. */
static void arguments(void)
{
    long (*copy)(long, long, long, long, long, long, long, long, long, long, long) = NULL;

    *(void **)&copy = dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(copy(11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 + i), ==, 0);
        for (long k = 0; k < 10; k++)
            g_assert_cmpint(remembered[k], ==, 11 + k);
        g_assert_cmpint(remembered[10], ==, 21 + i);
    }
}

static void floating(void)
{
    CUresult (*set)(void *, int, float) = NULL;
    const float *seen = kit_driver("fake_float");

    *(void **)&set = dlsym(RTLD_DEFAULT, "cuParamSetf");
    for (int i = 0; i < 2; i++) {
        ok(set(NULL, 4, 1.5f + (float)i));
        g_assert_cmpfloat(*seen, ==, 1.5f + (float)i);
    }
}

static void find_driver(void)
{
    *(void **)&count_of = kit_driver("fake_count");
    remembered = kit_driver("fake_arguments");
    ok(cuInit(0));
}

static void program(void)
{
    find_driver();
    arguments();
    floating();
    by_link();
    by_dlsym();
    by_getproc();
}

/* As a member of a slice, and on a GPU without one. */
static void test_governed(void)
{
    kit_open(64 * MIB);
    kit_run(program);
    kit_close();
}

static void test_ungoverned(void)
{
    kit_open(0);
    kit_run(program);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/entries/governed", test_governed);
    g_test_add_func("/entries/ungoverned", test_ungoverned);
    return g_test_run();
}
