/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl domain prepare, attach, detach: against libvirt's own test driver, which has no state
 * between calls.
 */
#include <gio/gio.h>
#include <string.h>

#include "lib/domain.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/agent_on_bus.h"
#include "tests/unit/host-agent/recorded_host.h"

#define UUID "c0ffee00-0000-4000-8000-000000000001"

static const char types[] = "[type vgpu-full]\nvram=1/1\nwindow=4G\n"
                            "[type vgpu-half]\nvram=1/2\nweight=400\n";

#define PORT(index) "<controller type='pci' index='" index "' model='pcie-root-port'/>"

#define UUID2 "c0ffee00-0000-4000-8000-000000000002"

/* A mediated device of a domain. */
#define HOSTDEV                                                                                    \
    "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source>"                              \
    "<address uuid='" UUID "'/></source></hostdev>"

/* A node of the test driver with two domains: "red" runs, "off" does not. */
#define NODE(devices)                                                                              \
    "<node xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"                               \
    "<domain type='test'><name>red</name><memory>8192</memory><os><type>hvm</type></os>"           \
    "<devices><controller type='pci' index='0' model='pcie-root'/>" devices "</devices></domain>"  \
    "<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>"                 \
    "<test:runstate>5</test:runstate><name>off</name>"                                             \
    "<metadata><vgpu:request xmlns:vgpu='" DOMAIN_NAMESPACE "' uuid='" UUID "' type='half'/>"      \
    "<mine:note xmlns:mine='urn:mine'>kept</mine:note></metadata>"                                 \
    "<memory>8192</memory><os><type>hvm</type></os><devices/></domain></node>"

static void open_shared(AgentOnBus *at, const char *node)
{
    HostRoot *root = recorded_host_new("shared");
    g_autofree char *path = root_path(root, "/node.xml", NULL);
    g_autofree char *uri = g_strconcat("test://", path, NULL);

    file_tree_write(root, "/etc/vgpu/types.d/10-test.conf", types);
    file_tree_write(root, "/node.xml", node);
    g_setenv("LIBVIRT_DEFAULT_URI", uri, TRUE);
    agent_on_bus_open_tree(at, root);
}

static gboolean made_anything(const AgentOnBus *at)
{
    g_autofree char *log = root_path(at->root, "/mdevctl-log", NULL);

    return g_file_test(log, G_FILE_TEST_EXISTS);
}

/* The output is a domain with all requests, and its previous content. */
static void test_prepare(void)
{
    AgentOnBus at;
    Said said;
    g_autoptr(Domain) domain = NULL;
    g_autoptr(GError) error = NULL;

    open_shared(&at, NODE(""));
    said = vgpuctl("domain prepare off --type half --vram 2G --tenant '' --gpu '1002:*' --dry-run");
    g_test_message("%s%s", said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    g_assert_nonnull(strstr(said.out, "kept</mine:note>"));
    domain = domain_parse(said.out, strlen(said.out), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(g_strv_length(domain->mdevs), ==, 1);
    g_assert_cmpuint(domain->requests->len, ==, 2);
    g_assert_nonnull(domain_request(domain, domain->mdevs[0]));
    said_clear(&said);
    assert_says("domain prepare red --type half --uuid " UUID, 0,
                "Domain red will have vGPU " UUID " at every start", "");
    g_assert_false(made_anything(&at));
    agent_on_bus_close(&at);
}

/* Domain "off" has a request and its device already, as a clone has. */
static void test_prepare_instead(void)
{
    g_autoptr(GString) node = g_string_new(NODE(""));
    AgentOnBus at;
    Said said;
    g_autoptr(Domain) domain = NULL;
    g_autoptr(GError) error = NULL;

    g_string_replace(node, "<devices/>", "<devices>" HOSTDEV "</devices>", 1);
    open_shared(&at, node->str);
    said = vgpuctl("domain prepare off --type half --replace --uuid " UUID2 " --dry-run");
    g_test_message("%s%s", said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    g_assert_nonnull(strstr(said.out, "kept</mine:note>"));
    domain = domain_parse(said.out, strlen(said.out), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(domain->requests->len, ==, 1);
    g_assert_nonnull(domain_request(domain, UUID2));
    g_assert_cmpuint(g_strv_length(domain->mdevs), ==, 1);
    g_assert_cmpstr(domain->mdevs[0], ==, UUID2);
    said_clear(&said);
    agent_on_bus_close(&at);
}

static void test_prepare_display(void)
{
    AgentOnBus at;

    open_shared(&at, NODE(PORT("1")));
    assert_says("domain prepare off --type half --display on --dry-run", 0,
                " model=\"vfio-pci\" display=\"on\" ramfb=\"on\">", "");
    assert_says("domain prepare off --type half --display on --dry-run", 0, " display=\"1\"/>", "");
    assert_says("domain prepare off --type half --display off --dry-run", 0, " model=\"vfio-pci\">",
                "");
    assert_says("attach red --type half --display on", 2, "",
                "cannot attach a vGPU with a display to a running VM");
    g_assert_false(made_anything(&at));
    agent_on_bus_close(&at);
}

/* Each option is in the request that the hook will read. */
static void test_prepare_all_options(void)
{
    static const char *const words[] = {
        "type=\"half\"",       "vram=\"1073741824\"", "window=\"268435456\"",
        "weight=\"7\"",        "cap=\"50\"",          "priority=\"1\"",
        "compute=\"20\"",      "class=\"burstable\"", "oversubscribe=\"1048576\"",
        "engines=\"compute\"", "gpu=\"1002:*\"",      "not-gpu=\"10de:*\"",
        "policy=\"spread\"",   "job=\"train\"",       "replica=\"web\"",
        "display=\"1\"",
    };
    AgentOnBus at;
    Said said;
    g_autoptr(Domain) domain = NULL;

    open_shared(&at, NODE(""));
    said = vgpuctl("domain prepare red --dry-run --type half --vram 1G --window 256M --weight 7 "
                   "--cap 50 --priority 1 --compute 20 --class burstable --oversubscribe 1M "
                   "--engines compute --gpu '1002:*' --not-gpu '10de:*' --policy spread "
                   "--job train --replica web --display on");
    g_test_message("%s%s", said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (!strstr(said.out, words[i]))
            g_error("%s is not in %s", words[i], said.out);
    domain = domain_parse(said.out, strlen(said.out), NULL);
    g_assert_nonnull(domain);
    said_clear(&said);
    agent_on_bus_close(&at);
}

/* The output may be stored in a terminal's log. */
static void test_prepare_secret(void)
{
    AgentOnBus at;
    Said said;

    open_shared(&at, NODE("<graphics type='vnc' port='-1' passwd='s3cret'/>"));
    said = vgpuctl("domain prepare red --type half --dry-run");
    g_test_message("%s%s", said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    g_assert_nonnull(strstr(said.out, "<graphics"));
    g_assert_null(strstr(said.out, "s3cret"));
    said_clear(&said);
    agent_on_bus_close(&at);
}

static void test_prepare_refused(void)
{
    AgentOnBus at;

    open_shared(&at, NODE(""));
    assert_says("domain prepare red", 2, "", "--type is required");
    assert_says("domain prepare red --type half --uuid 7", 2, "", "--uuid cannot be \"7\"");
    assert_says("domain prepare red --type third", 3, "", "has a type \"third\"");
    assert_says("domain prepare red --type half --weight 0", 2, "", "Weight must be");
    assert_says("domain prepare nobody --type half", 3, "", "libvirt has no domain nobody");
    assert_says("domain prepare off --type half --uuid " UUID, 1, "", "already has vGPU " UUID);
    assert_says("domain prepare red --type half --connect test:///nowhere/x.xml", 4, "",
                "cannot reach libvirt");
    assert_says("vgpu create full", 0, "", "");
    assert_says("domain prepare red --type half", 0, "at every start",
                "could not start with this vGPU now");
    agent_on_bus_close(&at);
}

/* No port: nothing is made. */
static void test_attach_no_port(void)
{
    AgentOnBus at;

    open_shared(&at, NODE(PORT("1") "<interface type='user'><mac address='52:54:00:00:00:01'/>"
                                    "<address type='pci' domain='0x0000' bus='0x01' slot='0x00' "
                                    "function='0x0'/></interface>"));
    assert_says("attach red --type half", 7, "",
                "no free root port (1 in use); add \"<controller type='pci'");
    assert_says("attach off --type half", 1, "",
                "domain off is not running; \"vgpuctl domain prepare\"");
    assert_says("attach red", 7, "", "free root port");
    g_assert_false(made_anything(&at));
    agent_on_bus_close(&at);
}

/* Port 1 has a device, and 768 MiB of room are behind port 2. */
#define INFO_PCI                                                                                   \
    "  Bus  0, device   1, function 0:\n    PCI bridge: PCI device 1b36:000c\n"                    \
    "      secondary bus 1.\n      prefetchable memory range [0xc0000000, 0xc01fffff]\n"           \
    "  Bus  1, device   0, function 0:\n    VGA controller: PCI device 1af4:1050\n"                \
    "  Bus  0, device   2, function 0:\n    PCI bridge: PCI device 1b36:000c\n"                    \
    "      secondary bus 2.\n      prefetchable memory range [0x800000000, 0x82fffffff]\n"

/* The window is no larger than the room. */
static void test_attach_window(void)
{
    AgentOnBus at;
    Said said;

    open_shared(&at, NODE(PORT("1")));
    said = vgpuctl("attach red --type full --dry-run");
    g_assert_cmpstr(said.err, ==, "");
    said_clear(&said);
    file_tree_write(at.root, "/info-pci", INFO_PCI);
    assert_says("attach red --type full --dry-run", 0, "would be created",
                "vgpuctl: domain red has room for a window of 512 MiB behind its root ports, and "
                "the vGPU's type has one of 4 GiB, so the vGPU gets 512 MiB; for more, give its "
                "root ports more (pcie-root-port.pref64-reserve=4G, for example)");
    said = vgpuctl("attach red --type half --dry-run");
    g_assert_cmpint(said.status, ==, 0);
    g_assert_cmpstr(said.err, ==, "");
    said_clear(&said);
    assert_says("attach red --type half --window 1G --dry-run", 7, "",
                "cannot attach a vGPU with a window of 1 GiB to domain red: behind its free root "
                "ports fits one of 512 MiB at most; for more,");
    said = vgpuctl("attach red --type full --window 512M --dry-run");
    g_assert_cmpint(said.status, ==, 0);
    g_assert_cmpstr(said.err, ==, "");
    said_clear(&said);
    agent_on_bus_close(&at);
}

/* All but the last step, which the test driver refuses: everything made is removed again. */
static void test_attach(void)
{
    AgentOnBus at;
    g_autofree char *dir = NULL;
    g_autofree char *attach = NULL;

    open_shared(&at, NODE(PORT("1")));
    dir = root_path(at.root, "", NULL);
    attach = g_strdup_printf("--root %s attach red --type half --uuid " UUID, dir);
    assert_says("attach red --type half --uuid " UUID " --dry-run", 0,
                "would be created and attached to domain red", "");
    assert_says("attach red --type third", 3, "", "has a type \"third\"");
    g_assert_false(made_anything(&at));
    assert_says(attach, 1, "", "so it is removed again: libvirt refuses to attach it: ");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    g_assert_true(made_anything(&at));
    agent_on_bus_close(&at);
}

/* An engine that does not start: everything made is removed again. */
static void test_attach_undone(void)
{
    AgentOnBus at;
    g_autofree char *dir = NULL;
    g_autofree char *attach = NULL;

    open_shared(&at, NODE(PORT("1")));
    /* A root without vGPUs. */
    dir = root_path(at.root, "/etc", NULL);
    attach = g_strdup_printf("--root %s attach red --type half --uuid " UUID, dir);
    assert_says(attach, 1, "",
                "cannot attach vGPU " UUID " to domain red, so it is removed again: ");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    g_assert_true(made_anything(&at));
    agent_on_bus_close(&at);
}

/* The guest's programs use one vGPU, and attach says so if it adds a second one. A device of
 * another driver does not count. */
static void test_attach_second(void)
{
    AgentOnBus at;
    Said said;

    open_shared(&at, NODE(PORT("1") HOSTDEV));
    said = vgpuctl("attach red --type half --dry-run");
    g_test_message("%s%s", said.out, said.err);
    g_assert_cmpint(said.status, ==, 0);
    g_assert_cmpstr(said.err, ==, "");
    said_clear(&said);
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_says("attach red --type half --dry-run", 0, "would be created and attached to domain",
                "domain red has other vGPUs, too (1). A program in its guest uses the first one");
    agent_on_bus_close(&at);
}

static void test_detach(void)
{
    AgentOnBus at;

    open_shared(&at, NODE(HOSTDEV));
    assert_says("detach red c0ffee00-0000-4000-8000-000000000002", 3, "",
                "domain red has no vGPU c0ffee00");
    assert_says("detach off " UUID, 1, "", "is not running");
    assert_says("detach red " UUID, 1, "", "libvirt refuses to detach it: ");
    assert_says("detach red", 3, "", "domain red has no vGPU");
    assert_says("vgpu create half --uuid " UUID, 0, UUID, "");
    assert_says("detach red", 1, "", "libvirt refuses to detach it: ");
    assert_says("detach", 2, "", "usage: vgpuctl detach DOMAIN [VGPU]");
    assert_says("detach red " UUID " " UUID, 2, "", "usage: vgpuctl detach DOMAIN [VGPU]");
    agent_on_bus_close(&at);
}

/* vGPUs that end with their VM cannot be defined. */
static void test_domain_of_request(void)
{
    AgentOnBus at;

    open_shared(&at, NODE(""));
    assert_says("attach red --type half --autostart", 2, "", "--autostart");
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/domain/prepare-instead", test_prepare_instead);
    g_test_add_func("/domain/prepare", test_prepare);
    g_test_add_func("/domain/prepare-display", test_prepare_display);
    g_test_add_func("/domain/prepare-all-options", test_prepare_all_options);
    g_test_add_func("/domain/prepare-secret", test_prepare_secret);
    g_test_add_func("/domain/prepare-refused", test_prepare_refused);
    g_test_add_func("/domain/attach-no-port", test_attach_no_port);
    g_test_add_func("/domain/attach-window", test_attach_window);
    g_test_add_func("/domain/attach", test_attach);
    g_test_add_func("/domain/attach-undone", test_attach_undone);
    g_test_add_func("/domain/attach-second", test_attach_second);
    g_test_add_func("/domain/detach", test_detach);
    g_test_add_func("/domain/options", test_domain_of_request);
    return g_test_run();
}
