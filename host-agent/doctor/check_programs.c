/* SPDX-License-Identifier: MIT */
/* Required programs: a Vulkan driver, and VM tools that support mediated devices. */
#include <stdlib.h>
#include <string.h>

#include "host-agent/doctor/findings.h"
#include "lib/host_root.h"
#include "lib/program.h"

#define DESCRIPTIONS "/run/vgpu/vulkan"

/**
 * struct program
 * @least: the version that was seen working with ours
 */
static const struct program {
    const char *name;
    const char *what;
    guint least[2];
} programs[] = {
    {"mdevctl", "mdevctl", {1, 4}},
    {"qemu-system-x86_64", "QEMU", {10, 0}},
    {"virsh", "libvirt", {11, 3}},
};

/* The result of the engine's look at the GPU, which vgpud starts (vgpu-describe@.service). */
static void check_export(Examination *exam)
{
    g_auto(GStrv) gpus = host_list(exam, DESCRIPTIONS);

    for (guint i = 0; gpus[i]; i++) {
        g_autofree char *path = g_build_filename(DESCRIPTIONS, gpus[i], NULL);
        g_autoptr(GKeyFile) keyfile = root_read_keys(exam->root, path, G_KEY_FILE_NONE, NULL);
        g_autofree char *device = NULL;

        if (!keyfile)
            continue;
        device = g_key_file_get_string(keyfile, "vulkan", "device", NULL);
        if (!g_key_file_get_boolean(keyfile, "vulkan", "exports-memory", NULL))
            finding_add(exam, FINDING_WARNING, "Vulkan",
                        g_strdup_printf("GPU %s (%s): its driver can't export memory as dma-bufs",
                                        gpus[i], device ? device : "nameless"),
                        g_strdup("use a driver with VK_EXT_external_memory_dma_buf; without it "
                                 "guests' memory uses a slower path"));
    }
}

void check_vulkan(Examination *exam)
{
    static const char *const dirs[] = {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"};

    for (guint i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_auto(GStrv) drivers = host_list(exam, dirs[i]);
        g_autofree char *names = g_strjoinv(", ", drivers);

        if (!drivers[0])
            continue;
        finding_ok(exam, "Vulkan", "%s", names);
        check_export(exam);
        return;
    }
    finding_add(exam, FINDING_PROBLEM, "Vulkan", g_strdup("no Vulkan driver is installed"),
                g_strdup("install the GPU's own, or mesa-vulkan-drivers"));
}

/* The first number with a dot in a program's version output. */
static gboolean parse_version(const char *text, guint version[2])
{
    for (const char *at = text; *at; at++) {
        char *end;

        if (!g_ascii_isdigit(*at) || (at > text && (g_ascii_isalnum(at[-1]) || at[-1] == '_')))
            continue;
        version[0] = (guint)strtoul(at, &end, 10);
        if (*end != '.' || !g_ascii_isdigit(end[1]))
            continue;
        version[1] = (guint)strtoul(end + 1, NULL, 10);
        return TRUE;
    }
    return FALSE;
}

static gboolean version_of(const char *path, guint version[2])
{
    const char *argv[] = {path, "--version", NULL};
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    g_autofree char *out = NULL;

    return program_run(&program, &out, NULL) && parse_version(out, version);
}

static void check_program(Examination *exam, const struct program *program)
{
    g_autofree char *path = g_find_program_in_path(program->name);
    guint version[2];

    if (!path)
        finding_add_for_vms(exam, FINDING_WARNING, program->what,
                    g_strdup_printf("%s is not installed, or not in PATH", program->name),
                    g_strdup("install it if this host runs VMs with it"));
    else if (!version_of(path, version))
        finding_add_for_vms(exam, FINDING_WARNING, program->what,
                    g_strdup_printf("%s does not say its version", path),
                    g_strdup_printf("see whether \"%s --version\" works", program->name));
    else if (version[0] < program->least[0] ||
             (version[0] == program->least[0] && version[1] < program->least[1]))
        finding_add_for_vms(exam, FINDING_WARNING, program->what,
                    g_strdup_printf("version %u.%u; %u.%u is the oldest tested version",
                                    version[0], version[1], program->least[0], program->least[1]),
                    g_strdup("upgrade it, if something does not work"));
    else
        finding_ok(exam, program->what, "version %u.%u", version[0], version[1]);
}

void check_programs(Examination *exam)
{
    for (guint i = 0; i < G_N_ELEMENTS(programs); i++)
        check_program(exam, &programs[i]);
}
