/* SPDX-License-Identifier: MIT */
/* libvirt's hook as libvirt runs it, with vgpud on a bus of its own, with none, and with one that
 * does not answer. */
#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <string.h>

#include "host-agent/daemon/domains/domains.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/fake_kernel.h"
#include "tests/unit/host-agent/recorded_host.h"

/* The hook waits for two seconds, and D-Bus by itself for 25. The rest is for a machine that is
 * busy. */
#define IMPATIENCE_US (20 * SECOND_US)

#define HOOK     HOOK_OUT "/vgpu-qemu-hook"
#define UUID     "c0ffee00-0000-4000-8000-000000000001"
#define UUID2    "c0ffee00-0000-4000-8000-000000000002"
#define GPU      "0000:02:00.0"
#define GPU_PATH "pci0000:00/0000:00:01.0/0000:02:00.0"
#define VGPU     "/sys/devices/" GPU_PATH "/" UUID

#define MDEV(uuid)                                                                                 \
    "<hostdev mode='subsystem' type='mdev' model='vfio-pci' managed='no'>"                         \
    "<source><address uuid='" uuid "'/></source></hostdev>"
#define REQUEST(attributes) "<vgpu:request xmlns:vgpu='urn:org.mdev_vgpu:domain:1' " attributes "/>"
#define REQUESTS(requests)                                                                         \
    "<vgpu:requests xmlns:vgpu='urn:org.mdev_vgpu:domain:1'>" requests "</vgpu:requests>"
#define DOMAIN(metadata, devices)                                                                  \
    "<domain type='kvm'><name>red</name><metadata>" metadata "</metadata><devices>" devices        \
    "</devices></domain>"
#define ASKED DOMAIN(REQUEST("uuid='" UUID "' type='half' vram='4G' weight='7'"), MDEV(UUID))
#define PCI(managed)                                                                               \
    "<hostdev mode='subsystem' type='pci' managed='" managed "'><source>"                          \
    "<address domain='0x0000' bus='0x02' slot='0x00' function='0x0'/></source></hostdev>"

#define VM_LINE   "VM:                     "
#define SECOND_US G_USEC_PER_SEC

static const char types[] = "[type vgpu-full]\nvram=1/1\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n";

static void open_shared(AgentOnBus *at)
{
    HostRoot *root = recorded_host_new("shared");
    g_autofree char *dir = root_path(root, "", NULL);

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\n");
    fake_kernel_use(root);
    agent_on_bus_open_tree(at, root);
    g_setenv("VGPU_HOOK_ROOT", dir, TRUE);
}

/*
 * A file, not a pipe: an operation that is nothing to the hook ends with nothing read. libvirt
 * takes that (it ignores EPIPE), GSubprocess does not.
 */
static Said run_hook(const char *domain, const char *operation, const char *sub, const char *xml)
{
    g_autofree char *path = NULL;
    const char *argv[] = {"sh", "-c",   "exec " HOOK " \"$1\" \"$2\" \"$3\" - <\"$4\"",
                          "sh", domain, operation,
                          sub,  NULL,   NULL};
    int fd = g_file_open_tmp("hook-XXXXXX", &path, NULL);
    Said said;

    g_assert_cmpint(fd, >=, 0);
    g_close(fd, NULL);
    g_assert_true(g_file_set_contents(path, xml, -1, NULL));
    argv[7] = path;
    said = run_program(argv);
    g_unlink(path);
    return said;
}

/* It ends so, prints nothing to standard output, and @err to standard error; "": nothing at all. */
static void assert_hook_of(const char *domain, const char *operation, const char *sub,
                           const char *xml, int status, const char *err)
{
    Said said = run_hook(domain, operation, sub, xml);

    g_test_message("%s %s: %d\n%s", operation, sub, said.status, said.err);
    g_assert_cmpint(said.status, ==, status);
    g_assert_cmpstr(said.out, ==, "");
    if (*err)
        g_assert_nonnull(strstr(said.err, err));
    else
        g_assert_cmpstr(said.err, ==, "");
    said_clear(&said);
}

static void assert_hook(const char *operation, const char *sub, const char *xml, int status,
                        const char *err)
{
    assert_hook_of("red", operation, sub, xml, status, err);
}

static gboolean file_exists(const AgentOnBus *at, const char *path)
{
    g_autofree char *full = root_path(at->root, path, NULL);

    return g_file_test(full, G_FILE_TEST_EXISTS);
}

static void set_state(const AgentOnBus *at, const char *text)
{
    file_tree_write(at->root, VGPU "/vgpu/state", text);
}

/* Made at the start as requested, removed at the end. */
static void test_start_and_end(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", ASKED, 0, "");
    assert_says("-o json vgpu show " UUID, 0, "\"Vram\" : 4294967296", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Domain\" : \"red\"", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Weight\" : 7", "");
    assert_says("-o json vgpu show " UUID, 0, "\"Defined\" : false", "");
    assert_hook("start", "begin", ASKED, 0, "");
    assert_hook("started", "begin", ASKED, 0, "");
    agent_on_bus_restart(&at);
    assert_hook("stopped", "end", ASKED, 0, "");
    g_assert_true(file_exists(&at, VGPU));
    assert_hook("release", "end", ASKED, 0, "");
    g_assert_false(file_exists(&at, VGPU));
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

/* As the recipes for Intel's GVT-g write it: the address in the guest is not the source's. */
static void test_recipe(void)
{
    static const char recipe[] =
        DOMAIN(REQUEST("uuid='" UUID "' type='half'"),
               "<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci' display='off'>"
               "<source><address uuid='C0FFEE00-0000-4000-8000-000000000001'/></source>"
               "<alias name='ua-vgpu'/><rom bar='off'/>"
               "<address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0' "
               "multifunction='on'/></hostdev>");
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", recipe, 0, "");
    g_assert_true(file_exists(&at, VGPU));
    assert_hook("release", "end", recipe, 0, "");
    g_assert_false(file_exists(&at, VGPU));
    agent_on_bus_close(&at);
}

/* All of a domain's, or none. */
static void test_several(void)
{
    static const char both[] = DOMAIN(
        REQUESTS(REQUEST("uuid='" UUID "' type='half'") REQUEST("uuid='" UUID2 "' type='half'")),
        MDEV(UUID) MDEV(UUID2));
    static const char too_much[] = DOMAIN(
        REQUESTS(REQUEST("uuid='" UUID "' type='half'") REQUEST("uuid='" UUID2 "' type='full'")),
        MDEV(UUID) MDEV(UUID2));
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", both, 0, "");
    assert_says("vgpu list", 0, UUID2, "");
    assert_hook("release", "end", both, 0, "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    assert_hook("prepare", "begin", too_much, 1,
                "cannot start domain red: cannot make vGPU " UUID2
                ", which the domain's metadata requests: ");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

/* What was not made for the domain stays when it ends. */
static void test_others_stay(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("vgpu create half --uuid " UUID2, 0, UUID2, "");
    assert_hook("prepare", "begin", DOMAIN("", MDEV(UUID2)), 0, "");
    assert_hook("prepare", "begin", ASKED, 0, "");
    assert_hook("release", "end", DOMAIN("", MDEV(UUID2)), 0, "");
    assert_says("vgpu list", 0, UUID2, "");
    g_assert_false(file_exists(&at, VGPU));
    agent_on_bus_close(&at);
}

/* One that a VM has still, or again, is not taken from it. */
static void test_open_stays(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", ASKED, 0, "");
    set_state(&at, "device=running engine=ready\n");
    assert_hook("release", "end", ASKED, 0, "");
    g_assert_true(file_exists(&at, VGPU));
    assert_hook("prepare", "begin", ASKED, 1, "vGPU " UUID " is open in another VM");
    set_state(&at, "device=closed engine=ready\n");
    assert_hook("prepare", "begin", ASKED, 0, "");
    agent_on_bus_close(&at);
}

/* virt-clone keeps the UUIDs: the clone never takes its original's vGPU, open or just made. */
static void test_clone(void)
{
    static const char clone[] = "<domain type='kvm'><name>two</name><metadata>" REQUEST(
        "uuid='" UUID "' type='half'") "</metadata><devices>" MDEV(UUID) "</devices></domain>";
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", ASKED, 0, "");
    assert_hook_of("two", "prepare", "begin", clone, 1, "is domain red's");
    set_state(&at, "device=running engine=ready\n");
    assert_hook_of("two", "prepare", "begin", clone, 1, "vgpuctl domain prepare two --replace");
    assert_hook_of("two", "release", "end", clone, 0, "");
    g_assert_true(file_exists(&at, VGPU));
    set_state(&at, "device=closed engine=ready\n");
    assert_hook("release", "end", ASKED, 0, "");
    assert_hook_of("two", "prepare", "begin", clone, 0, "");
    agent_on_bus_close(&at);
}

static void test_defined(void)
{
    AgentOnBus at;

    open_shared(&at);
    file_tree_write(at.root, "/etc/mdevctl.d/" GPU "/" UUID,
                    "{\"mdev_type\":\"amdgpu-vgpu-half\",\"start\":\"manual\",\"attrs\":[]}");
    agent_update_vgpu(at.agent, UUID);
    assert_hook("prepare", "begin", DOMAIN("", MDEV(UUID)), 0, "");
    g_assert_true(file_exists(&at, VGPU));
    assert_hook("release", "end", DOMAIN("", MDEV(UUID)), 0, "");
    assert_says("vgpu list", 0, "closed", "");
    agent_on_bus_close(&at);
}

/* Its engine is waited for; one that gave up fails the start. */
static gboolean become_ready(void *data)
{
    set_state(data, "device=closed engine=ready\n");
    return G_SOURCE_REMOVE;
}

static void test_engine(void)
{
    AgentOnBus at;
    gint64 begin;

    open_shared(&at);
    assert_hook("prepare", "begin", ASKED, 0, "");
    set_state(&at, "device=closed engine=starting\n");
    g_timeout_add(700, become_ready, &at);
    begin = g_get_monotonic_time();
    assert_hook("prepare", "begin", ASKED, 0, "");
    g_assert_cmpint(g_get_monotonic_time() - begin, >=, SECOND_US / 2);
    set_state(&at, "device=closed engine=failed\n");
    file_tree_write(at.root, VGPU "/vgpu/failure", "no Vulkan device\n");
    assert_hook("prepare", "begin", ASKED, 1,
                "the engine of vGPU " UUID " gave up: no Vulkan device");
    agent_on_bus_close(&at);
}

/* A domain without our devices, and unknown content, start as usual. */
#define BACKED(memory, devices)                                                                    \
    "<domain type='kvm'><name>red</name><metadata>" REQUEST(                                       \
        "uuid='" UUID "' type='half'") "</metadata>" memory "<devices>" devices                    \
                                       "</devices></domain>"
#define BACKING(inside) BACKED("<memoryBacking>" inside "</memoryBacking>", MDEV(UUID))
#define SHARED          "<access mode='shared'/>"

static void memory_in(const AgentOnBus *at, const char *place, const char *target)
{
    g_autofree char *link = root_path(at->root, place, NULL);
    g_autofree char *parent = g_path_get_dirname(link);

    g_assert_cmpint(g_mkdir_with_parents(parent, 0755), ==, 0);
    g_unlink(link);
    g_assert_no_errno(symlink(target, link));
}

/* A vGPU needs the guest's memory pinned, which the kernel refuses for files on a disk. */
static void test_memory_in_file(void)
{
    static const char *const good[] = {
        BACKING(""),
        BACKING("<source type='file'/>"),
        BACKING("<source type='memfd'/>" SHARED),
        BACKING("<hugepages/>" SHARED),
        BACKED("<memoryBacking>" SHARED "</memoryBacking>", ""),
    };
    static const char *const bad[] = {
        BACKING(SHARED),
        BACKING("<source type='file'/>" SHARED),
        BACKED("<cpu><numa><cell id='0'/><cell id='1' memAccess='shared'/></numa></cpu>",
               MDEV(UUID)),
    };
    AgentOnBus at;

    open_shared(&at);
    memory_in(&at, "/var/lib/libvirt/qemu/ram", AGENT_OUT);
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        assert_hook("prepare", "begin", good[i], 0, "");
        assert_hook("release", "end", good[i], 0, "");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        assert_hook("prepare", "begin", bad[i], 1,
                    "vGPU " UUID " cannot use the domain's memory, which would be files on a disk "
                    "in /var/lib/libvirt/qemu/ram: set <source type='memfd'/>");
        g_assert_false(file_exists(&at, VGPU));
    }
    /* libvirt makes the directory below it. */
    file_tree_write(at.root, "/etc/libvirt/qemu.conf",
                    "#memory_backing_dir = \"/x\"\nmemory_backing_dir = \"/mnt/shm/ram\"\n");
    memory_in(&at, "/mnt/shm", "/dev/shm");
    assert_hook("prepare", "begin", bad[0], 0, "");
    assert_hook("release", "end", bad[0], 0, "");
    agent_on_bus_close(&at);
}

static void test_none_of_ours(void)
{
    static const char *const texts[] = {
        DOMAIN("", ""),
        DOMAIN("<other:request xmlns:other='urn:other' uuid='x'/>", ""),
        DOMAIN("<request uuid='x' type='y'/>", ""),
        DOMAIN("", MDEV(UUID)),
        DOMAIN(REQUEST("uuid='" UUID "' type='half'"), ""),
        DOMAIN(
            "",
            "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1'/></source></hostdev>"),
        DOMAIN("", "<hostdev mode='subsystem' type='mdev'/><hostdev/>"),
        DOMAIN("", "<hostdev mode='subsystem' type='mdev'><source><address "
                   "uuid='../../x'/></source></hostdev>"),
        "<domain/>",
    };
    AgentOnBus at;

    open_shared(&at);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        assert_hook("prepare", "begin", texts[i], 0, "");
        assert_hook("release", "end", texts[i], 0, "");
    }
    g_assert_false(file_exists(&at, "/mdevctl-log"));
    agent_on_bus_close(&at);
}

/* A driver of others' describes its types so. */
static void describe_types(const AgentOnBus *at, const char *text)
{
    static const char *const ids[] = {"amdgpu-vgpu-full", "amdgpu-vgpu-half"};

    for (guint i = 0; i < G_N_ELEMENTS(ids); i++) {
        g_autofree char *path = g_strdup_printf(
            "/sys/devices/" GPU_PATH "/mdev_supported_types/%s/description", ids[i]);

        file_tree_write(at->root, path, text);
    }
}

/* As after "vgpuctl attach", "virsh managedsave" and "virsh start". */
static void test_unknown(void)
{
    AgentOnBus at;

    open_shared(&at);
    file_tree_link(at.root, "/sys/class/mdev_bus/" GPU, "../../devices/" GPU_PATH);
    assert_hook("prepare", "begin", DOMAIN("", MDEV(UUID)), 1,
                "run \"vgpuctl slice create TYPE --door vm --uuid " UUID "\" first");
    /* With other drivers' GPUs on the host, a script may make it. */
    file_tree_write(at.root,
                    "/sys/class/mdev_bus/0000:00:02.0/mdev_supported_types/i915-GVTg_V5_4/"
                    "description",
                    "low_gm_size: 128MB\nweight: 4\n");
    assert_hook("prepare", "begin", DOMAIN("", MDEV(UUID)), 0, "");
    agent_on_bus_close(&at);
}

/* An mdev parent of NVIDIA's or GVT-g is not shared by us. */
static void test_others_parent(void)
{
    AgentOnBus at;

    open_shared(&at);
    describe_types(&at, "Half of it; vram=12288M window=256M weight=400 cap=100% priority=0\n");
    assert_hook("prepare", "begin", DOMAIN("", PCI("no")), 1, "it is shared");
    describe_types(&at, "num_heads=4, frl_config=60, framebuffer=1024M, max_instance=16\n");
    assert_hook("prepare", "begin", DOMAIN("", PCI("no")), 0, "");
    agent_refresh(at.agent);
    assert_says("gpu list", 0, GPU "  host", "");
    agent_on_bus_close(&at);
}

static void test_wrong(void)
{
    static const struct {
        const char *xml, *err;
    } cases[] = {
        {"", "can't be read"},
        {"<domain", "can't be read"},
        {"<pool/>", "it has no <domain>"},
        {DOMAIN(REQUEST("type='half'"), MDEV(UUID)), "uuid=\"\": it must be the UUID"},
        {DOMAIN(REQUEST("uuid='7' type='half'"), MDEV(UUID)), "uuid=\"7\": it must be the UUID"},
        {DOMAIN(REQUEST("uuid='" UUID "'"), MDEV(UUID)), "it must be a type"},
        {DOMAIN(REQUEST("uuid='" UUID "' type='half' vram='many'"), MDEV(UUID)),
         "vram=\"many\": it must be a size"},
        {DOMAIN(REQUEST("uuid='" UUID "' type='half' weight='-1'"), MDEV(UUID)),
         "weight=\"-1\": it must be a number"},
        {DOMAIN(REQUEST("uuid='" UUID "' type='half' colour='red'"), MDEV(UUID)),
         "colour=\"red\": there is no such attribute"},
        {DOMAIN(REQUEST("uuid='" UUID "' type='third'"), MDEV(UUID)), "has a type \"third\""},
        {DOMAIN(REQUEST("uuid='" UUID "' type='half' tenant='nobody'"), MDEV(UUID)),
         "there is no tenant nobody"},
    };
    AgentOnBus at;

    open_shared(&at);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_hook("prepare", "begin", cases[i].xml, 1, cases[i].err);
    g_assert_false(file_exists(&at, "/mdevctl-log"));
    agent_on_bus_close(&at);
}

/*
 * Operations that future versions of libvirt may use, and those that must never fail: whatever the
 * input, and without vgpud.
 */
static void test_other_operations(void)
{
    static const char *const operations[][2] = {
        {"reconnect", "begin"}, {"attach", "begin"}, {"migrate", "begin"}, {"restore", "begin"},
        {"start", "begin"},     {"stopped", "end"},  {"prepare", "end"},   {"defrost", "-"},
    };
    AgentOnBus at;

    open_shared(&at);
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere", TRUE);
    for (gsize i = 0; i < G_N_ELEMENTS(operations); i++) {
        assert_hook(operations[i][0], operations[i][1], ASKED, 0, "");
        assert_hook(operations[i][0], operations[i][1], "<domain", 0, "");
    }
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address(at.daemon), TRUE);
    agent_on_bus_close(&at);
}

/*
 * vgpud cannot be reached: quick; existing vGPUs are accepted, and missing ones fail with a
 * message.
 */
static void assert_without_agent(const AgentOnBus *at, const char *why)
{
    g_autofree char *sentence = g_strdup_printf("requests: vgpud can't be reached (%s", why);
    gint64 begin = g_get_monotonic_time();

    assert_hook("prepare", "begin", ASKED, 1, sentence);
    g_assert_cmpint(g_get_monotonic_time() - begin, <, IMPATIENCE_US);
    begin = g_get_monotonic_time();
    assert_hook("release", "end", ASKED, 1, "now, vgpud will do it later");
    g_assert_cmpint(g_get_monotonic_time() - begin, <, IMPATIENCE_US);
    recorded_host_add_vgpu(at->root, GPU_PATH, UUID, "amdgpu-vgpu-half",
                           "state=device=closed engine=ready|failure=");
    assert_hook("prepare", "begin", ASKED, 0, "");
    recorded_host_remove_vgpu(at->root, UUID);
    file_tree_write(at->root, "/etc/mdevctl.d/" GPU "/" UUID2, "{\"mdev_type\":\"x\"}");
    assert_hook("prepare", "begin", DOMAIN("", MDEV(UUID2)), 1,
                "cannot start vGPU " UUID2 ", which is defined");
}

static void test_agent_down(void)
{
    AgentOnBus at;

    open_shared(&at);
    g_bus_unown_name(at.owner);
    assert_without_agent(&at, "The name org.mdev_vgpu.Host1 was not provided");
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere", TRUE);
    assert_without_agent(&at, "Could not connect");
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address(at.daemon), TRUE);
    at.owner = 0;
    agent_free(at.agent);
    g_dbus_connection_close_sync(at.bus, NULL, NULL);
    g_object_unref(at.bus);
    g_test_dbus_down(at.daemon);
    g_object_unref(at.daemon);
    file_tree_free(at.root);
}

/* A bus that accepts connections and does not answer. To be freed. */
static GSocket *hang_bus(const AgentOnBus *at)
{
    g_autofree char *path = root_path(at->root, "bus", NULL);
    g_autofree char *address = g_strconcat("unix:path=", path, NULL);
    g_autoptr(GSocketAddress) socket_address = g_unix_socket_address_new(path);
    GSocket *socket =
        g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);

    g_assert_true(g_socket_bind(socket, socket_address, FALSE, NULL));
    g_assert_true(g_socket_listen(socket, NULL));
    g_socket_set_blocking(socket, FALSE);
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", address, TRUE);
    return socket;
}

static void test_bus_hangs(void)
{
    AgentOnBus at;
    g_autoptr(GSocket) socket = NULL;

    open_shared(&at);
    socket = hang_bus(&at);
    assert_without_agent(&at, "D-Bus does not answer");
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address(at.daemon), TRUE);
    agent_on_bus_close(&at);
}

/* It is waited for once, however many vGPUs of the domain need it. */
static void test_waits_once(void)
{
    static const char two[] = DOMAIN(
        REQUESTS(REQUEST("uuid='" UUID "' type='half'") REQUEST("uuid='" UUID2 "' type='half'")),
        MDEV(UUID) MDEV(UUID2));
    AgentOnBus at;
    g_autoptr(GSocket) socket = NULL;
    g_autoptr(GSocket) first = NULL;
    g_autoptr(GSocket) second = NULL;

    open_shared(&at);
    recorded_host_add_vgpu(at.root, GPU_PATH, UUID, "amdgpu-vgpu-half",
                           "state=device=closed engine=ready|failure=");
    recorded_host_add_vgpu(at.root, GPU_PATH, UUID2, "amdgpu-vgpu-half",
                           "state=device=closed engine=ready|failure=");
    socket = hang_bus(&at);
    assert_hook("prepare", "begin", two, 0, "");
    first = g_socket_accept(socket, NULL, NULL);
    second = g_socket_accept(socket, NULL, NULL);
    g_assert_nonnull(first);
    g_assert_null(second);
    g_setenv("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address(at.daemon), TRUE);
    agent_on_bus_close(&at);
}

/* A vgpud that is stopped: nobody runs its main loop while the hook does. */
static void test_agent_hangs(void)
{
    AgentOnBus at;
    g_autoptr(GSubprocess) process = NULL;
    g_autofree char *err = NULL;
    gint64 begin = g_get_monotonic_time();

    open_shared(&at);
    process = g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, NULL,
                               HOOK, "red", "prepare", "begin", "-", NULL);
    begin = g_get_monotonic_time();
    g_assert_true(g_subprocess_communicate_utf8(process, ASKED, NULL, NULL, &err, NULL));
    g_assert_cmpint(g_get_monotonic_time() - begin, <, IMPATIENCE_US);
    g_assert_cmpint(g_get_monotonic_time() - begin, >=, AGENT_PATIENCE_MS * 900);
    g_assert_cmpint(g_subprocess_get_exit_status(process), ==, 1);
    g_assert_nonnull(strstr(err, "vgpud can't be reached (Timeout was reached)"));
    agent_on_bus_close(&at);
}

/* A shared GPU is passed through as a whole if nothing uses it, and if libvirt may take it. */
static void test_pci(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", DOMAIN("", PCI("no")), 1,
                "\"vgpuctl gpu mode " GPU " passthrough\" first");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_hook("prepare", "begin", DOMAIN("", PCI("yes")), 1, "vGPU " UUID " has no definition");
    assert_says("vgpu remove " UUID, 0, "", "");
    assert_hook("prepare", "begin", DOMAIN("", PCI("yes")), 0, "");
    assert_says("gpu list", 0, GPU "  passthrough", "");
    assert_hook("prepare", "begin", DOMAIN("", PCI("no")), 0, "");
    agent_on_bus_close(&at);
}

static void claim_slice(const AgentOnBus *at)
{
    g_autofree char *state = root_path(at->root, "/state.json", NULL);
    g_autofree char *line = g_strdup_printf("sh -c '" CONTAINER_HOOK " claim " UUID " <%s'", state);
    Said said;

    file_tree_write(at->root, "/proc/77/stat",
                    "77 (a) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1000 1 1\n");
    file_tree_write(at->root, "/state.json", "{\"id\":\"web\",\"pid\":77}");
    said = run_beside(line);
    g_assert_cmpint(said.status, ==, 0);
    said_clear(&said);
}

/* Without the kernel module a shared GPU has no types, and is taken from no container either. */
static void test_pci_for_containers(void)
{
    AgentOnBus at;
    HostRoot *root = recorded_host_new("containers");
    g_autofree char *dir = root_path(root, "", NULL);

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root, "/etc/vgpu/gpus.conf", "[gpu " GPU "]\nmode=shared\n");
    agent_on_bus_open_tree(&at, root);
    g_setenv("VGPU_HOOK_ROOT", dir, TRUE);
    assert_says("slice create --vram 1G --door native --uuid " UUID, 0, UUID, "");
    claim_slice(&at);
    assert_hook("prepare", "begin", DOMAIN("", PCI("no")), 1,
                "\"vgpuctl gpu mode " GPU " passthrough\" first");
    assert_hook("prepare", "begin", DOMAIN("", PCI("yes")), 1,
                "cannot pass GPU " GPU " through: it is shared: ");
    g_assert_true(file_exists(&at, "/run/vgpu/shared/" GPU));
    agent_on_bus_close(&at);
}

static void settle_events(void)
{
    for (guint i = 0; i < 50; i++) {
        g_main_context_iteration(NULL, FALSE);
        g_usleep(10000);
    }
}

/*
 * Nobody reported the VM's end: vgpud notices it, when there is no process of the VM any more and
 * enough time has passed.
 */
static void test_lost_release(void)
{
    AgentOnBus at;
    DomainWatch *watch;

    open_shared(&at);
    assert_hook("prepare", "begin", ASKED, 0, "");
    fake_process(at.root, 5000300, "qemu-system-x86", "red", NULL, "null");
    agent_on_bus_restart(&at);
    watch = agent_domains(at.agent);
    g_assert_true(domain_watch_is_needed(watch));
    domain_watch_look(watch, 0);
    domain_watch_look(watch, DOMAIN_WATCH_GRACE);
    settle_events();
    g_assert_true(file_exists(&at, VGPU));
    file_tree_write(at.root, "/proc/5000300/cmdline", "");
    domain_watch_look(watch, 2 * DOMAIN_WATCH_GRACE);
    domain_watch_look(watch, 3 * DOMAIN_WATCH_GRACE - 1);
    settle_events();
    g_assert_true(file_exists(&at, VGPU));
    set_state(&at, "device=open engine=ready\n");
    domain_watch_look(watch, 3 * DOMAIN_WATCH_GRACE);
    g_assert_false(domain_watch_is_needed(watch));
    set_state(&at, "device=closed engine=ready\n");
    g_assert_true(domain_watch_is_needed(watch));
    domain_watch_look(watch, 3 * DOMAIN_WATCH_GRACE);
    settle_events();
    g_assert_true(file_exists(&at, VGPU));
    domain_watch_look(watch, 4 * DOMAIN_WATCH_GRACE);
    iterate_until_told("vgpu list", "This host has no vGPU.");
    g_assert_false(file_exists(&at, VGPU));
    agent_on_bus_close(&at);
}

/* The host has crashed: nothing of it is in the kernel, and nothing is left in the ledger. */
static void test_host_crashed(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", ASKED, 0, "");
    recorded_host_remove_vgpu(at.root, UUID);
    agent_on_bus_restart(&at);
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    agent_on_bus_close(&at);
}

/* Which VM has a vGPU, whoever attached it. */
static void test_vms(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", ASKED, 0, "");
    assert_says("vgpu create half --uuid " UUID2, 0, UUID2, "");
    assert_says("-o json vgpu list", 0, "\"Vm\" : \"red\"", "");
    file_tree_link(at.root, "/sys/devices/" GPU_PATH "/" UUID2 "/iommu_group",
                   "../../../../../kernel/iommu_groups/77");
    file_tree_write(at.root, "/sys/devices/" GPU_PATH "/" UUID2 "/vgpu/state",
                    "device=running engine=ready\n");
    fake_process(at.root, 5000300, "qemu-system-x86", "blue", NULL, "vfio/77");
    assert_says("vgpu list", 0, "-       red", "");
    assert_says("vgpu list", 0, "blue", "");
    assert_says("vgpu show " UUID2, 0, VM_LINE "blue", "");
    fake_process_closes(at.root, 5000300);
    fake_process(at.root, 5000301, "qemu-system-x86", "green", NULL, "vfio/77");
    assert_says("vgpu list", 0, "green", "");
    agent_on_bus_close(&at);
}

static void test_bad_domain(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_hook("prepare", "begin", "<!DOCTYPE domain [<!ENTITY a 'x'>]><domain>&a;</domain>", 1,
                "document type");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hook/clone", test_clone);
    g_test_add_func("/qemu-hook/start-and-end", test_start_and_end);
    g_test_add_func("/qemu-hook/recipe", test_recipe);
    g_test_add_func("/qemu-hook/several", test_several);
    g_test_add_func("/qemu-hook/others-stay", test_others_stay);
    g_test_add_func("/qemu-hook/open-stays", test_open_stays);
    g_test_add_func("/qemu-hook/defined", test_defined);
    g_test_add_func("/qemu-hook/engine", test_engine);
    g_test_add_func("/qemu-hook/memory-in-file", test_memory_in_file);
    g_test_add_func("/qemu-hook/none-of-ours", test_none_of_ours);
    g_test_add_func("/qemu-hook/unknown", test_unknown);
    g_test_add_func("/qemu-hook/others-parent", test_others_parent);
    g_test_add_func("/qemu-hook/waits-once", test_waits_once);
    g_test_add_func("/qemu-hook/wrong", test_wrong);
    g_test_add_func("/qemu-hook/document-type", test_bad_domain);
    g_test_add_func("/qemu-hook/other-operations", test_other_operations);
    g_test_add_func("/qemu-hook/agent-down", test_agent_down);
    g_test_add_func("/qemu-hook/bus-hangs", test_bus_hangs);
    g_test_add_func("/qemu-hook/agent-hangs", test_agent_hangs);
    g_test_add_func("/qemu-hook/pci", test_pci);
    g_test_add_func("/qemu-hook/pci-for-containers", test_pci_for_containers);
    g_test_add_func("/qemu-hook/lost-release", test_lost_release);
    g_test_add_func("/qemu-hook/host-crashed", test_host_crashed);
    g_test_add_func("/qemu-hook/vms", test_vms);
    return g_test_run();
}
