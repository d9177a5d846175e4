/* SPDX-License-Identifier: MIT */
/*
 * Every entry path is tested for every reason: quota, room, drain, health, mode. The paths are
 * real: vgpuctl, calls on the bus, libvirt's hook and containers' hook as programs.
 */
#include <string.h>

#include "host-agent/model/admission.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"
#include "tests/unit/host-agent/slices_kit.h"

#define HALF       "amdgpu-vgpu-half"
#define DEFINITION "/etc/mdevctl.d/" ADDRESS "/" UUID
#define HOOK       HOOK_OUT "/vgpu-qemu-hook"

/* A domain's request, and a defined vGPU. */
#define DOMAIN(metadata)                                                                           \
    "<domain type='kvm'><name>red</name><metadata>" metadata "</metadata><devices>"                \
    "<hostdev mode='subsystem' type='mdev' model='vfio-pci' managed='no'>"                         \
    "<source><address uuid='" UUID "'/></source></hostdev></devices></domain>"
#define REQUEST                                                                                    \
    "<vgpu:request xmlns:vgpu='urn:org.mdev_vgpu:domain:1' uuid='" UUID                            \
    "' type='half' tenant='red'/>"

typedef enum { QUOTA, ROOM, DRAIN, HEALTH, MODE, SWITCHING, REASONS } Reason;

/* A part of the message. */
static const char *const words[REASONS] = {
    [QUOTA] = "tenant red would have",
    [ROOM] = "free",
    [DRAIN] = "being drained",
    [HEALTH] = "not healthy",
    [MODE] = "not shared now, but in mode host",
    [SWITCHING] = "being switched to mode passthrough",
};

/* In the order of Reason: whether the path is refused. */
#define ALL        {TRUE, TRUE, TRUE, TRUE, TRUE, TRUE}
#define PROMISES   {TRUE, TRUE, FALSE, FALSE, FALSE, FALSE}
#define GPU_STATES {FALSE, FALSE, TRUE, TRUE, TRUE, TRUE}
/* A GPU that is not shared is no mdev parent: mdevctl itself cannot start anything there. */
#define SHARED {TRUE, TRUE, TRUE, TRUE, FALSE, TRUE}

/**
 * Way
 * @before: what must exist before the GPU or the tenant gets its state
 * @ask: its message, to be freed; "": admitted
 */
typedef struct {
    const char *name;
    void (*before)(const AgentOnBus *at);
    char *(*ask)(const AgentOnBus *at);
    gboolean refused[REASONS];
} Way;

static char *said_by(Said said)
{
    char *text = g_strdup(said.status ? said.err : "");

    said_clear(&said);
    return text;
}

static char *create(const AgentOnBus *at)
{
    (void)at;
    return said_by(vgpuctl("slice create half --door vm --tenant red"));
}

static char *create_slice(const AgentOnBus *at)
{
    (void)at;
    return said_by(vgpuctl("slice create half --door native --tenant red"));
}

static void define(const AgentOnBus *at)
{
    file_tree_write(at->root, DEFINITION,
                    "{\"mdev_type\":\"" HALF "\",\"start\":\"manual\",\"attrs\":["
                    "{\"vgpu/vram_bytes\":\"8581545984\"},{\"vgpu/tenant\":\"red\"}]}");
    agent_update_vgpu(at->agent, UUID);
}

static void nothing(const AgentOnBus *at)
{
    (void)at;
}

static char *call(const char *method, const char *arguments)
{
    g_autofree char *line = g_strdup_printf("gdbus call --system --dest " VGPU_BUS_NAME
                                            " --object-path " VGPU_MANAGER_PATH
                                            " --method " VGPU_MANAGER_INTERFACE ".%s %s",
                                            method, arguments);

    return said_by(run_beside(line));
}

static char *start(const AgentOnBus *at)
{
    (void)at;
    return call("StartSlice", UUID " {}");
}

/* mdevctl's callout asks like this; also for udev's mdevctl at boot. */
static char *callout_start(const AgentOnBus *at)
{
    (void)at;
    return call("CheckDefinition",
                UUID2 " " ADDRESS " " HALF " \"{'Action': <'start'>, 'Tenant': <'red'>}\"");
}

static char *callout_define(const AgentOnBus *at)
{
    (void)at;
    return call("CheckDefinition",
                UUID2 " " ADDRESS " " HALF
                      " \"{'Action': <'define'>, 'Autostart': <true>, 'Tenant': <'red'>}\"");
}

static char *run_libvirt_hook(const AgentOnBus *at, const char *xml)
{
    g_autofree char *dir = root_path(at->root, "", NULL);
    g_autofree char *input = root_path(at->root, "/domain.xml", NULL);
    g_autofree char *line = g_strdup_printf("sh -c '" HOOK " red prepare begin - <%s'", input);

    file_tree_write(at->root, "/domain.xml", xml);
    g_setenv("VGPU_HOOK_ROOT", dir, TRUE);
    return said_by(run_beside(line));
}

static char *libvirt_asks(const AgentOnBus *at)
{
    return run_libvirt_hook(at, DOMAIN(REQUEST));
}

static char *libvirt_starts(const AgentOnBus *at)
{
    return run_libvirt_hook(at, DOMAIN(""));
}

static void small_slice(const AgentOnBus *at)
{
    process(at, 77, 1000);
    assert_says("slice create --vram 1G --door native --tenant red --uuid " UUID, 0, UUID, "");
}

static char *claim(const AgentOnBus *at)
{
    g_autofree char *input = root_path(at->root, "/state.json", NULL);
    g_autofree char *line = g_strdup_printf("sh -c '" CONTAINER_HOOK " claim " UUID " <%s'", input);

    file_tree_write(at->root, "/state.json", WEB);
    return said_by(run_beside(line));
}

static char *grow(const AgentOnBus *at)
{
    (void)at;
    return said_by(vgpuctl("slice set " UUID " --vram 8G"));
}

/*
 * A definition is written whatever the GPU's state, and running vGPUs may change. A container's
 * claim uses what was promised when its slice was made.
 */
static const Way ways[] = {
    {"CreateSlices: a vGPU", nothing, create, ALL},
    {"CreateSlices", nothing, create_slice, ALL},
    {"StartSlice", define, start, ALL},
    {"callout: start", nothing, callout_start, SHARED},
    {"callout: define", nothing, callout_define, PROMISES},
    {"libvirt's hook: a request", nothing, libvirt_asks, ALL},
    {"libvirt's hook: a definition", define, libvirt_starts, ALL},
    {"containers' hook", small_slice, claim, GPU_STATES},
    {"SetSlice", small_slice, grow, {TRUE, TRUE, FALSE, FALSE, TRUE, FALSE}},
};

/* Establishes the reason. */
static void bring_about(const AgentOnBus *at, Reason reason)
{
    VgpuGpu *gpu = host_gpu_interface(agent_host(at->agent), ADDRESS);

    switch (reason) {
    case QUOTA:
        assert_says("tenant set red --vram 2G", 0, "", "");
        break;
    case ROOM:
        assert_says("slice create --vram 14G --door native", 0, "", "");
        break;
    case DRAIN:
        assert_says("gpu drain 02:00.0", 0, "", "");
        break;
    case HEALTH:
        vgpu_gpu_set_healthy(gpu, FALSE);
        break;
    case MODE:
        assert_says("gpu mode 02:00.0 host", 0, "", "");
        break;
    default:
        vgpu_gpu_set_switching(gpu, "passthrough");
        break;
    }
}

static void look(const Way *way, Reason reason)
{
    AgentOnBus at;
    g_autofree char *said = NULL;

    open_shared(&at);
    fake_kernel_use(at.root);
    assert_says("tenant set red", 0, "", "");
    way->before(&at);
    if (reason < REASONS)
        bring_about(&at, reason);
    said = way->ask(&at);
    g_test_message("%s, %s: %s", way->name, reason < REASONS ? words[reason] : "nothing", said);
    /* A GPU that is not shared has no types, either, and no shareable memory. */
    if (reason == MODE && way->refused[reason])
        g_assert_true(strstr(said, words[reason]) || strstr(said, "no GPU of this host has") ||
                      strstr(said, "0 MiB of 0 MiB are free"));
    else if (reason < REASONS && way->refused[reason])
        g_assert_nonnull(strstr(said, words[reason]));
    else
        g_assert_cmpstr(said, ==, "");
    agent_on_bus_close(&at);
}

static void test_way(gconstpointer way)
{
    for (guint reason = 0; reason <= REASONS; reason++)
        look(way, (Reason)reason);
}

/* A tenant that is gone: must not look like another driver's vGPU. */
static void test_no_tenant(void)
{
    AgentOnBus at;
    g_autofree char *said = NULL;

    open_shared(&at);
    assert_says("tenant set red", 0, "", "");
    assert_says("tenant remove red", 0, "", "");
    define(&at);
    said = libvirt_starts(&at);
    g_test_message("%s", said);
    g_assert_nonnull(strstr(said, "there is no tenant red"));
    agent_on_bus_close(&at);
}

static char *check_definition(const char *action, const char *vram)
{
    g_autofree char *arguments = g_strdup_printf(
        UUID " " ADDRESS " " HALF " \"{'Action': <'%s'>, 'Vram': <uint64 %s>}\"", action, vram);

    return call("CheckDefinition", arguments);
}

/* As mdevctl writes it. */
static void define_bigger(const AgentOnBus *at)
{
    file_tree_write(at->root, DEFINITION,
                    "{\"mdev_type\":\"" HALF "\",\"start\":\"manual\",\"attrs\":["
                    "{\"vgpu/vram_bytes\":\"4294967296\"},{\"vgpu/tenant\":\"red\"}]}");
    agent_update_vgpu(at->agent, UUID);
}

/*
 * A definition is for the next start: it may have more than the tenant may have now, also while the
 * vGPU runs. And a vGPU that was just stopped is started with all checks, before udev has told
 * vgpud of the stop.
 */
static void test_defined_while_running(void)
{
    AgentOnBus at;
    g_autofree char *live = NULL, *modify = NULL, *again = NULL, *running = NULL, *stopped = NULL;

    open_shared(&at);
    assert_says("tenant set red --vram 2G", 0, "", "");
    recorded_host_add_vgpu(at.root, "pci0000:00/0000:00:01.0/" ADDRESS, UUID, HALF,
                           "state=device=closed engine=ready|failure=|vram_bytes=1073741824|"
                           "weight=10|cap=100|priority=0|tenant=red");
    define_bigger(&at);
    live = check_definition("live", "4294967296");
    g_assert_nonnull(strstr(live, "tenant red would have"));
    modify = check_definition("modify", "4294967296");
    g_assert_cmpstr(modify, ==, "");
    running = check_definition("start", "4294967296");
    g_assert_cmpstr(running, ==, "");
    recorded_host_remove_vgpu(at.root, UUID);
    again = check_definition("modify", "4294967296");
    g_assert_cmpstr(again, ==, "");
    stopped = check_definition("start", "4294967296");
    g_assert_nonnull(strstr(stopped, "tenant red would have"));
    agent_on_bus_close(&at);
}

/* The rules themselves, without a host. */
static gboolean admits(AdmissionWay way, const Room *room, const Slice *before, const Slice *wanted,
                       AgentError code)
{
    g_autoptr(GError) error = NULL;
    const AdmissionRequest request = {.way = way, .room = room, .before = before, .wanted = wanted};
    gboolean admitted = admission_check(&request, &error);

    if (!admitted)
        g_assert_error(error, AGENT_ERROR, (int)code);
    return admitted;
}

#define FOR(way) for (AdmissionWay way = ADMISSION_CREATE; (guint)way < ADMISSION_WAYS; way++)

static void test_rules(void)
{
    Slice slice = {.uuid = (char *)UUID,
                   .gpu = (char *)ADDRESS,
                   .tenant = (char *)"",
                   .class = SLICE_BURSTABLE,
                   .vram = 10,
                   .present = TRUE};
    Slice small = slice, best_effort = slice;
    const Room open = {.gpu = (char *)ADDRESS, .vram = 100, .capacity = 100};
    Room full = open, drained = open, back = open, sick = open, lent = open;
    Room short_of_memory = open;

    small.vram = 5;
    full.promised_vram = 95;
    drained.draining = TRUE;
    back.draining = TRUE;
    back.switching = (char *)"shared";
    sick.unhealthy = (char *)"hot";
    lent.promised_vram = 10;
    lent.lent[0] = 85;
    short_of_memory.evicted = TRUE;
    best_effort.class = SLICE_BEST_EFFORT;
    FOR(way)
    {
        g_assert_true(admits(way, &open, NULL, &slice, 0));
        g_assert_false(admits(way, &full, NULL, &slice, AGENT_ERROR_NO_ROOM));
        g_assert_true(admits(way, &full, &small, &slice, 0));
        /* Existing promises stay. */
        full.promised_vram = 200;
        g_assert_true(admits(way, &full, &slice, &slice, 0));
        g_assert_true(admits(way, &full, &slice, &small, 0));
        g_assert_false(admits(way, &full, &small, &slice, AGENT_ERROR_NO_ROOM));
        full.promised_vram = 95;
    }
    FOR(way)
    {
        g_assert_false(admits(way, &lent, NULL, &slice, AGENT_ERROR_NO_ROOM_NOW));
        g_assert_true(admits(way, &short_of_memory, NULL, &slice, 0));
    }
    g_assert_false(
        admits(ADMISSION_START, &short_of_memory, NULL, &best_effort, AGENT_ERROR_NO_ROOM_NOW));
    g_assert_false(admits(ADMISSION_START, &drained, &slice, &slice, AGENT_ERROR_IN_USE));
    g_assert_true(admits(ADMISSION_START, &back, NULL, &slice, 0));
    g_assert_false(admits(ADMISSION_CLAIM, &back, &slice, &slice, AGENT_ERROR_IN_USE));
    g_assert_true(admits(ADMISSION_START, &sick, &slice, &slice, 0));
    g_assert_false(admits(ADMISSION_START, &sick, NULL, &slice, AGENT_ERROR_IN_USE));
    g_assert_false(admits(ADMISSION_CLAIM, &sick, &slice, &slice, AGENT_ERROR_IN_USE));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/admission/rules", test_rules);
    g_test_add_func("/admission/no-tenant", test_no_tenant);
    g_test_add_func("/admission/defined-while-running", test_defined_while_running);
    for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autofree char *path = g_strdup_printf("/admission/%s", ways[i].name);

        g_test_add_data_func(path, &ways[i], test_way);
    }
    return g_test_run();
}
