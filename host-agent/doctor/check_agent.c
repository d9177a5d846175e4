/* SPDX-License-Identifier: MIT */
/*
 * vgpud, its meter, the arbiters, their files and their room: whether they are there, and whether
 * they answer.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-agent/doctor/doctor.h"
#include "host-agent/doctor/findings.h"
#include "lib/bus.h"
#include "lib/gpu.h"
#include "lib/program.h"
#include "lib/tenants_conf.h"
#include "lib/types.h"
#include "lib/vgpud_conf.h"

#define UNIT    "vgpud.service"
#define METER   "vgpu-meter.service"
#define SUBJECT "vgpud"

/* For an answer; libvirt's hook waits as long. */
#define PATIENCE_MS 2000

/*
 * What systemd says of a unit. Without systemd, or without the unit, it cannot be checked.
 */

typedef struct {
    char *state; /* "active" */
    char *load;  /* "loaded", "masked" */
    guint deaths;
} Unit;

static void unit_clear(Unit *unit)
{
    g_free(unit->state);
    g_free(unit->load);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Unit, unit_clear)

static char *value_of(char **lines, const char *key)
{
    for (guint i = 0; lines[i]; i++)
        if (g_str_has_prefix(lines[i], key) && lines[i][strlen(key)] == '=')
            return g_strdup(lines[i] + strlen(key) + 1);
    return NULL;
}

static gboolean unit_read(Unit *unit, const char *name)
{
    const char *argv[] = {"systemctl", "show", "--property=LoadState,ActiveState,NRestarts", name,
                          NULL};
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    g_autofree char *out = NULL, *deaths = NULL;
    g_auto(GStrv) lines = NULL;

    if (!program_run(&program, &out, NULL))
        return FALSE;
    lines = g_strsplit(g_strstrip(out), "\n", -1);
    unit->state = value_of(lines, "ActiveState");
    unit->load = value_of(lines, "LoadState");
    deaths = value_of(lines, "NRestarts");
    unit->deaths = deaths ? (guint)strtoul(deaths, NULL, 10) : 0;
    return unit->state && unit->load && !g_str_equal(unit->load, "not-found");
}

static void add_stopped(Examination *exam, const Unit *unit)
{
    gboolean masked = g_str_equal(unit->load, "masked");

    finding_add(exam, FINDING_PROBLEM, SUBJECT,
                g_strdup_printf("it does not run (%s%s): no vGPU or slice can be made, started or "
                                "given back",
                                unit->state, masked ? ", masked" : ""),
                g_strdup(masked ? "systemctl unmask --now " UNIT
                                : "systemctl start " UNIT
                                  "; if that fails, \"journalctl -u vgpud\" "
                                  "says why"));
}

/* A property is read by vgpud's main loop, which also serves hooks and commands. */
static void check_answer(Examination *exam, const Unit *unit)
{
    const char *argv[] = {"busctl",       "--system",    "--auto-start=no", "--timeout=2",
                          "get-property", VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                          "Version",      NULL};
    const Program program = {.argv = argv, .seconds = CHECK_SECONDS};
    g_autoptr(GError) error = NULL;

    if (!program_run(&program, NULL, &error) &&
        !g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
        finding_add(exam, FINDING_PROBLEM, SUBJECT,
                    g_strdup_printf("it runs and does not answer within 2 s, so VMs and containers "
                                    "with a GPU do not start: %s",
                                    error->message),
                    g_strdup("\"journalctl -u vgpud\" may say why; \"systemctl restart vgpud\" "
                             "touches nothing that runs"));
    else if (unit->deaths == 0)
        finding_ok(exam, SUBJECT, "it runs, and has not died since it was started");
}

/* VMs, containers and vgpud go on without it. */
static void check_meter(Examination *exam)
{
    g_auto(Unit) unit = {0};

    if (!unit_read(&unit, METER))
        return;
    if (g_str_equal(unit.state, "active"))
        finding_ok(exam, "vgpu-meter", "it runs");
    else
        finding_add(exam, FINDING_PROBLEM, "vgpu-meter",
                    g_strdup_printf("it does not run (%s): no use is counted, metrics and reports "
                                    "do not answer, and the GPUs' health stays as it was found "
                                    "last",
                                    unit.state),
                    g_strdup("systemctl start " METER
                             "; if that fails, \"journalctl -u vgpu-meter\" says why"));
}

void check_agent(Examination *exam)
{
    g_auto(Unit) unit = {0};

    if (!unit_read(&unit, UNIT))
        return;
    if (!g_str_equal(unit.state, "active") && !g_str_equal(unit.state, "reloading")) {
        add_stopped(exam, &unit);
    } else {
        check_answer(exam, &unit);
        check_meter(exam);
    }
    if (unit.deaths)
        finding_add(exam, FINDING_WARNING, SUBJECT,
                    g_strdup_printf("vgpud has died %u times since its last manual start; systemd "
                                    "starts it again, after 10 s at most",
                                    unit.deaths),
                    g_strdup("\"journalctl -u vgpud\" says why; \"systemctl restart vgpud\" resets "
                             "the count"));
}

/*
 * /etc/vgpu. vgpud ignores a file with an error: what was in force before stays, and at its next
 * start nothing of it is.
 */

static void add_mistake(Examination *exam, const GError *error)
{
    finding_add(
        exam, FINDING_PROBLEM, "configuration", g_strdup(error->message),
        g_strdup("correct it, and run \"vgpuctl reload\"; until then vgpud goes by what the "
                 "file said before, and after its next start by nothing of it"));
}

void check_conf(Examination *exam)
{
    g_autoptr(GError) wrong_types = NULL, wrong_gpus = NULL, wrong_tenants = NULL;
    g_autoptr(GError) wrong_conf = NULL;
    g_autoptr(GPtrArray) types = types_load(exam->root, &wrong_types);
    g_autoptr(GPtrArray) gpus = gpus_load(exam->root, &wrong_gpus);
    g_autoptr(GPtrArray) tenants = tenants_conf_load(exam->root, &wrong_tenants);
    g_autoptr(VgpudConf) conf = vgpud_conf_load(exam->root, &wrong_conf);
    const GError *const errors[] = {wrong_types, wrong_gpus, wrong_tenants, wrong_conf};

    for (guint i = 0; i < G_N_ELEMENTS(errors); i++)
        if (errors[i])
            add_mistake(exam, errors[i]);
    if (types && gpus && tenants && conf)
        finding_ok(exam, "configuration", "the files in /etc/vgpu have no mistake");
}

/* Room for what vgpud writes. It refuses work before the disk is full. */

#define NEEDED_MIB 16

static void check_room(Examination *exam, const char *path, const char *effect)
{
    g_autofree char *full = root_path(exam->root, path, NULL);
    struct statvfs disk;
    guint64 free_mib;

    if (statvfs(full, &disk))
        return;
    free_mib = (guint64)disk.f_bavail * disk.f_frsize >> 20;
    if (free_mib < NEEDED_MIB || (disk.f_files && !disk.f_favail))
        finding_add(exam, free_mib ? FINDING_WARNING : FINDING_PROBLEM, "disk",
                    g_strdup_printf("%s has %" G_GUINT64_FORMAT " MiB%s free: %s", path, free_mib,
                                    disk.f_favail ? "" : " and no inodes", effect),
                    g_strdup_printf("make room on the file system of %s", path));
}

void check_disk(Examination *exam)
{
    check_room(exam, "/var/lib/vgpu",
               "when it is full, vgpud can neither make nor give back vGPUs and slices");
    check_room(exam, "/etc/mdevctl.d", "when it is full, no vGPU can be defined");
    check_room(exam, "/run/vgpu", "when it is full, no container or program gets its slice");
}

/* Whether arbiters enforce the vGPUs' shares. */

#define GOVERNOR "/run/vgpu/governor"
#define LAYER    "share/vulkan/implicit_layer.d/VkLayer_vgpu_governor.json"

/* Something comes from it, in time. 0, or an errno. */
static int ask_arbiter(HostRoot *root, const char *gpu)
{
    g_autofree char *full = root_path(root, GOVERNOR, gpu, "status.sock", NULL);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = 0;
    char byte;

    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (g_strlcpy(address.sun_path, full, sizeof(address.sun_path)) >= sizeof(address.sun_path))
        result = ENAMETOOLONG;
    else if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) ||
             recv(fd, &byte, 1, 0) < 0)
        result = errno;
    close(fd);
    return result;
}

gboolean doctor_arbiter_hangs(HostRoot *root, const char *gpu)
{
    return ask_arbiter(root, gpu) == EAGAIN;
}

static void check_arbiter(Examination *exam, const char *gpu)
{
    int code = ask_arbiter(exam->root, gpu);

    if (!code)
        finding_ok(exam, "arbiter", "the shares of GPU %s have an arbiter", gpu);
    else if (code == EACCES || code == EPERM)
        finding_add(
            exam, FINDING_INFO, "arbiter",
            g_strdup_printf("the arbiter of GPU %s cannot be asked: %s", gpu, g_strerror(code)),
            g_strdup("run vgpuctl doctor as root"));
    else if (code == EAGAIN)
        finding_add(exam, FINDING_PROBLEM, "arbiter",
                    g_strdup_printf("the arbiter of GPU %s does not answer: programs that start "
                                    "wait, and the use of its slices is unknown",
                                    gpu),
                    g_strdup_printf("systemd restarts it within a minute; if not, \"systemctl "
                                    "restart vgpu-arbiter@%s\", which programs survive",
                                    gpu));
    else
        finding_add(exam, FINDING_WARNING, "arbiter",
                    g_strdup_printf("GPU %s is shared and has no arbiter: its vGPUs' memory and "
                                    "shares are not enforced",
                                    gpu),
                    g_strdup_printf("\"vgpuctl reload\" starts vgpu-arbiter@%s; if it does not "
                                    "start, that unit's journal has the reason",
                                    gpu));
}

void check_arbiters(Examination *exam)
{
    g_autoptr(Inventory) inventory = inventory_new(exam->root);
    g_autoptr(GPtrArray) gpus = inventory_read(inventory);
    gboolean any = FALSE;

    for (guint i = 0; i < gpus->len; i++) {
        const Gpu *gpu = g_ptr_array_index(gpus, i);

        if (gpu->mode != GPU_MODE_SHARED)
            continue;
        check_arbiter(exam, gpu->pci->address);
        any = TRUE;
    }
    if (any && !host_has(exam, "/usr/" LAYER) && !host_has(exam, "/usr/local/" LAYER))
        finding_add(exam, FINDING_WARNING, "arbiter",
                    g_strdup("the governor's Vulkan layer is not installed: engines do not follow "
                             "the arbiter"),
                    g_strdup("reinstall mdev-vgpu's governor (/usr/" LAYER ")"));
}
