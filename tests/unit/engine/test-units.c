// SPDX-License-Identifier: MIT
/*
 * What the systemd units of engine, guard and describer leave to an owned process, and the order of
 * the engine's modules.
 */
#include "exit_code.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

static const char *const units[] = {
    "engine/systemd/vgpu-engine@.service",
    "engine/systemd/vgpu-guard@.service",
    "engine/systemd/vgpu-describe@.service",
};

static char *read_file(const char *path)
{
    g_autoptr(GError) error = NULL;
    char *text = NULL;

    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

/* Of the first @count units. */
static void assert_lines(size_t count, const char *const *lines, gboolean there)
{
    for (size_t i = 0; i < count; i++) {
        g_autofree char *text = read_file(units[i]);
        g_auto(GStrv) all = g_strsplit(text, "\n", -1);

        for (const char *const *line = lines; *line; line++) {
            if (g_strv_contains((const char *const *)all, *line) != there)
                g_error("%s: %s \"%s\"", units[i], there ? "no" : "has", *line);
        }
    }
}

/*
 * Sockets to which everybody may connect are in /run and, for many daemons, below /var or /opt, or
 * in /dev/shm, which belongs to everybody. Landlock
 * does not cover connecting.
 */
static void test_sockets(void)
{
    static const char *const lines[] = {
        "InaccessiblePaths=-/var -/srv -/mnt -/media -/opt -/dev/shm -/dev/mqueue",
        NULL,
    };

    assert_lines(3, lines, TRUE);
}

/* What workers may write is in memory, of limited size, and gone with the unit. */
static void test_cache(void)
{
    static const char *const lines[] = {
        "TemporaryFileSystem=/run/vgpu/shaders:size=64M,nr_inodes=8k,mode=1777,nosuid,nodev,noexec",
        NULL,
    };

    assert_lines(2, lines, TRUE);
}

static void test_nvidia(void)
{
    static const char *const wanted[] = {"After=nvidia-persistenced.service", NULL};
    static const char *const unwanted[] = {"DeviceAllow=char-nvidia-modeset rw", NULL};

    assert_lines(3, wanted, TRUE);
    assert_lines(3, unwanted, FALSE);
}

/* An engine whose VM has ended has a code of its own (exit_code.h), and the next one starts. */
static void test_closed(void)
{
    static const char *const lines[] = {"SuccessExitStatus=9", "RestartForceExitStatus=9",
                                        "KillMode=control-group", NULL};

    g_assert_cmpint(EXIT_CODE_CLOSED, ==, 9);
    assert_lines(1, lines, TRUE);
}

/* The GPU may come back, and a node may be made late; all other codes are not in the list. */
static void test_restarts(void)
{
    g_autofree char *engine = g_strdup_printf("RestartPreventExitStatus=%d %d %d", EXIT_CODE_USAGE,
                                              EXIT_CODE_DEVICE, EXIT_CODE_SANDBOX);
    g_autofree char *guard =
        g_strdup_printf("RestartPreventExitStatus=%d %d", EXIT_CODE_USAGE, EXIT_CODE_SANDBOX);
    const char *const prevents[] = {engine, guard};

    for (size_t i = 0; i < G_N_ELEMENTS(prevents); i++) {
        g_autofree char *text = read_file(units[i]);
        g_auto(GStrv) all = g_strsplit(text, "\n", -1);

        g_assert_true(g_strv_contains((const char *const *)all, "Restart=on-failure"));
        g_assert_true(g_strv_contains((const char *const *)all, prevents[i]));
        g_assert_null(strstr(strstr(text, prevents[i]) + 1, "RestartPreventExitStatus"));
    }
}

/* Of those that have render workers. */
static void test_timer_slack(void)
{
    static const char *const lines[] = {"TimerSlackNSec=1", NULL};

    assert_lines(2, lines, TRUE);
}

/* Each may use those after it (docs/architecture.md). */
static const char *const modules[] = {
    "main",        "loop",          "engine",
    "queue",       "watch",         "state",
    "parking",     "control",       "resource_commands",
    "display",     "image",         "window",
    "scanout",     "painter",       "damage",
    "capset",      "answer",        "hold",
    "context",     "context_kind",  "cuda_context",
    "cuda_worker", "resource",      "host_memory",
    "backing",     "fence",         "lifelines",
    "worker",      "venus_rings",   "credits",
    "renderer",    "shader_cache",  "describe",
    "cuda_alone",  "vulkan_driver", "sandbox",
    "icd_probe",   "icd_known",     "icd",
    "gpu",         "device",        "device_v1",
    "options",     "poller",        "children",
    "stream",      "monitor",       "pixels",
    "guest_log",   "stuck",         "watchdog",
    "exit_code",   "request",       "transport",
};

static void assert_uses_none_before(size_t module)
{
    g_autofree char *path = g_strdup_printf("engine/%s.c", modules[module]);
    g_autofree char *text = NULL;

    if (!g_file_test(path, G_FILE_TEST_EXISTS)) /* a header alone */
        return;
    text = read_file(path);
    for (size_t i = 0; i < module; i++) {
        g_autofree char *include = g_strdup_printf("#include \"%s.h\"", modules[i]);

        if (strcmp(modules[i], "engine") != 0 && strstr(text, include))
            g_error("%s uses %s, which comes before it", path, modules[i]);
    }
}

static bool is_listed(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(modules); i++) {
        g_autofree char *file = g_strdup_printf("%s.c", modules[i]);

        if (strcmp(file, name) == 0)
            return true;
    }
    return false;
}

static void test_all_modules(void)
{
    g_autoptr(GDir) dir = g_dir_open("engine", 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir))) {
        if (g_str_has_suffix(name, ".c") && !is_listed(name))
            g_error("engine/%s has no place in the order of the modules", name);
    }
}

static void test_modules(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(modules); i++)
        assert_uses_none_before(i);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/units/sockets", test_sockets);
    g_test_add_func("/units/shader-cache", test_cache);
    g_test_add_func("/units/nvidia", test_nvidia);
    g_test_add_func("/units/closed", test_closed);
    g_test_add_func("/units/restarts", test_restarts);
    g_test_add_func("/units/timer-slack", test_timer_slack);
    g_test_add_func("/modules/all", test_all_modules);
    g_test_add_func("/modules/order", test_modules);
    return g_test_run();
}
