/* SPDX-License-Identifier: MIT */
/*
 * The harness of the driver tests: GTest programs with TAP output.
 *
 * Every test runs in its own process, so that one that fails, or hangs in the kernel, affects
 * neither the others nor their vGPUs. After each test the harness
 *   - kills its remaining processes,
 *   - removes its remaining vGPUs and GPUs (only those with TEST_GPU_PREFIX in the name),
 *   - reads the kernel's log: a WARNING, BUG, KASAN, UBSAN or lockdep report fails the test.
 */
#ifndef DRIVER_TEST_H
#define DRIVER_TEST_H

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* GPUs that tests register are called "soft:" TEST_GPU_PREFIX "…". */
#define TEST_GPU_PREFIX "dtest"

#define TEST_DEFAULT_LIMIT_S 180

typedef void (*DriverTestFn)(void);

/* To be called first and last in main(). */
void driver_test_init(int argc, char **argv);
int driver_test_run(void);

/*
 * @limit_s: seconds without a line of output after which the test counts as hung; its kernel stacks
 * are printed then.
 */
void driver_test_add_limit(const char *path, DriverTestFn fn, unsigned limit_s);
void driver_test_add(const char *path, DriverTestFn fn);

/* Ends the running test as skipped. */
void driver_test_skip(const char *format, ...) G_GNUC_NORETURN G_GNUC_PRINTF(1, 2);

/* Milliseconds of the monotonic clock. */
int64_t now_ms(void);

/* Waits until @condition holds, @timeout_ms at most; true if it holds. */
#define wait_until(condition, timeout_ms)                                                          \
    ({                                                                                             \
        int64_t wait_end_ = now_ms() + (timeout_ms);                                               \
        bool wait_ok_;                                                                             \
        while (!(wait_ok_ = (condition)) && now_ms() < wait_end_)                                  \
            g_usleep(2000);                                                                        \
        wait_ok_;                                                                                  \
    })

/* For functions that return a negative errno on failure. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        long ret_ = (call);                                                                        \
        if (ret_ < 0) {                                                                            \
            g_autofree char *text_ = g_strdup_printf("%s: %s", #call, g_strerror((int)-ret_));     \
            g_assertion_message(G_LOG_DOMAIN, __FILE__, __LINE__, G_STRFUNC, text_);               \
        }                                                                                          \
    } while (0)

#define assert_fails(call, error)                                                                  \
    do {                                                                                           \
        long ret_ = (call);                                                                        \
        if (ret_ != -(error)) {                                                                    \
            g_autofree char *text_ =                                                               \
                g_strdup_printf("%s: expected %s, got %s", #call, g_strerror(error),               \
                                ret_ < 0 ? g_strerror((int)-ret_) : "success");                    \
            g_assertion_message(G_LOG_DOMAIN, __FILE__, __LINE__, G_STRFUNC, text_);               \
        }                                                                                          \
    } while (0)

#endif /* DRIVER_TEST_H */
