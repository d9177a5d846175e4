/* SPDX-License-Identifier: MIT */
/* Who may open a GPU's node by an owner's slices: what the kernel says, and whose entries stay. */
#include <acl/libacl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/acl.h>
#include <sys/stat.h>
#include <systemd/sd-login.h>

#include "host-agent/daemon/containers/node_acl.h"
#include "host-agent/daemon/sync/node_access.h"
#include "lib/bus.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/nvidia_kit.h"
#include "tests/unit/host-agent/slices_kit.h"

#define NODE  "/dev/dri/renderD128"
#define NOTES "/run/vgpu/node-users"
#define USER  12345

static int seats;

/* In place of logind's. */
int sd_uid_get_seats(uid_t uid, int require_active, char ***list)
{
    (void)list;
    return require_active && uid == USER ? seats : 0;
}

static char *node_path(const AgentOnBus *at)
{
    return root_path(at->root, NODE, NULL);
}

static void make_node(HostRoot *root)
{
    g_autofree char *path = root_path(root, NODE, NULL);

    g_unlink(path);
    file_tree_write(root, NODE, "");
    g_assert_cmpint(g_chmod(path, 0660), ==, 0);
}

static void open_host(AgentOnBus *at)
{
    HostRoot *root = shared_tree();
    g_autofree char *top = root_path(root, "", NULL);

    seats = 0;
    g_assert_cmpint(g_chmod(top, 0711), ==, 0);
    make_node(root);
    agent_on_bus_open_tree(at, root);
}

/* What the kernel says to a process of @uid, in no group. */
static gboolean can_open(const AgentOnBus *at, guint uid)
{
    g_autofree char *path = node_path(at);
    g_autofree char *number = g_strdup_printf("%u", uid);
    const char *argv[] = {"setpriv", "--reuid", number,       "--regid", number, "--clear-groups",
                          "sh",      "-c",      ": <>\"$0\"", path,      NULL};
    Said said = run_program(argv);
    gboolean can = said.status == 0;

    g_test_message("%u: %s", uid, said.err);
    said_clear(&said);
    return can;
}

static char *acl_of(const AgentOnBus *at)
{
    g_autofree char *path = node_path(at);
    acl_t acl = acl_get_file(path, ACL_TYPE_ACCESS);
    char *text = acl_to_any_text(acl, NULL, ',', TEXT_ABBREVIATE);
    char *copy = g_strdup(text);

    acl_free(text);
    acl_free(acl);
    return copy;
}

static void assert_acl(const AgentOnBus *at, const char *expected)
{
    g_autofree char *text = acl_of(at);

    g_assert_cmpstr(text, ==, expected);
}

#define PLAIN "u::rw-,g::rw-,o::---"
#define GIVEN "u::rw-,u:12345:rwx,g::rw-,m::rw-,o::---"

static void set_acl(const AgentOnBus *at, const char *text)
{
    g_autofree char *path = node_path(at);
    acl_t acl = acl_from_text(text);

    g_assert_cmpint(acl_set_file(path, ACL_TYPE_ACCESS, acl), ==, 0);
    acl_free(acl);
}

typedef struct {
    gboolean done;
    gboolean ok;
} Answer;

static void answered(GObject *bus, GAsyncResult *result, void *data)
{
    Answer *answer = data;
    g_autoptr(GVariant) value = g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, NULL);

    answer->ok = value != NULL;
    answer->done = TRUE;
}

static gboolean is_done(gconstpointer data)
{
    return ((const Answer *)data)->done;
}

static void call(const AgentOnBus *at, const char *method, GVariant *parameters)
{
    Answer answer = {0};

    g_dbus_connection_call(at->bus, VGPU_BUS_NAME, VGPU_MANAGER_PATH, VGPU_MANAGER_INTERFACE,
                           method, parameters, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, answered,
                           &answer);
    iterate_until(is_done, &answer);
    g_assert_true(answer.ok);
}

static void make(const AgentOnBus *at, const char *owner, const char *door, guint uid)
{
    g_autofree char *text = g_strdup_printf(
        "([{'Owner': <'%s'>, 'Part': <'0'>, 'Uid': <uint32 %u>, 'Gpus': <['" ADDRESS "']>,"
        " 'Door': <'%s'>, 'Vram': <uint64 1073741824>}],)",
        owner, uid, door);

    call(at, "CreateSlices", g_variant_new_parsed(text));
}

static void release(const AgentOnBus *at, const char *owner)
{
    call(at, "ReleaseOwner", g_variant_new("(sa{sv})", owner, NULL));
}

static void test_given(void)
{
    AgentOnBus at;

    open_host(&at);
    g_assert_false(can_open(&at, USER));
    make(&at, "a", "native", USER);
    g_assert_true(can_open(&at, USER));
    g_assert_false(can_open(&at, USER + 1));
    assert_acl(&at, GIVEN);
    agent_on_bus_restart(&at);
    g_assert_true(can_open(&at, USER));
    release(&at, "a");
    g_assert_false(can_open(&at, USER));
    assert_acl(&at, PLAIN);
    agent_on_bus_close(&at);
}

typedef struct {
    const AgentOnBus *at;
    const char *acl;
} Expected;

static gboolean is_acl(gconstpointer data)
{
    const Expected *expected = data;
    g_autofree char *text = acl_of(expected->at);

    return g_str_equal(text, expected->acl);
}

/* Without the note nobody gets an entry, which a later vgpud would not take away. */
static void test_not_noted(void)
{
    AgentOnBus at;
    const Expected given = {&at, GIVEN};
    g_autofree char *notes = NULL;
    g_autoptr(GString) log = g_string_new(NULL);

    open_host(&at);
    notes = root_path(at.root, NOTES, NULL);
    g_assert_cmpint(g_mkdir(notes, 0700), ==, 0);
    take_log(log);
    make(&at, "a", "native", USER);
    end_log();
    g_assert_nonnull(
        strstr(log->str, "a slice's user may lack access to a GPU's node, or keep it"));
    g_assert_false(can_open(&at, USER));
    g_assert_cmpint(g_rmdir(notes), ==, 0);
    iterate_until(is_acl, &given);
    g_assert_true(can_open(&at, USER));
    agent_on_bus_close(&at);
}

#define USERS 4
#define OTHER "/dev/nvidiactl"

static gboolean has_entry(const AgentOnBus *at, const char *node, guint uid)
{
    g_autofree char *path = root_path(at->root, node, NULL);

    return node_acl_has(path, uid);
}

/* It has no ACL. */
static void make_refuse(HostRoot *root, const char *node)
{
    g_autofree char *path = root_path(root, node, NULL);

    g_unlink(path);
    file_tree_link(root, node, "/proc/version");
}

/* A node that takes no entry, or gives none back, holds up no other user's, and no other node. */
static void test_refusing(void)
{
    AgentOnBus at;
    HostRoot *root = shared_tree();
    g_autoptr(GString) log = g_string_new(NULL);

    nvidia_kit_add_driver(root);
    make_refuse(root, "/dev/nvidia-uvm");
    make_node(root);
    agent_on_bus_open_tree(&at, root);
    take_log(log);
    for (guint i = 0; i < USERS; i++) {
        g_autofree char *owner = g_strdup_printf("%u", i);

        make(&at, owner, "native", USER + i);
    }
    for (guint i = 0; i < USERS; i++) {
        g_assert_true(has_entry(&at, NODE, USER + i));
        g_assert_true(has_entry(&at, OTHER, USER + i));
    }
    make_refuse(root, NODE);
    release(&at, "0");
    g_assert_false(has_entry(&at, OTHER, USER));
    assert_in_file(&at, NOTES, "12345 " NODE "\n");
    make(&at, "more", "native", USER + USERS);
    g_assert_true(has_entry(&at, OTHER, USER + USERS));
    end_log();
    g_assert_nonnull(strstr(log->str, "the ACL of "));
    agent_on_bus_close(&at);
}

/* The last slice of a user counts, whosoever job it is of; with other doors there is no node. */
static void test_several(void)
{
    AgentOnBus at;

    open_host(&at);
    make(&at, "a", "native", USER);
    make(&at, "b", "native", USER);
    make(&at, "c", "native", USER + 1);
    release(&at, "a");
    g_assert_true(can_open(&at, USER));
    release(&at, "b");
    g_assert_false(can_open(&at, USER));
    g_assert_true(can_open(&at, USER + 1));
    release(&at, "c");
    make(&at, "d", "guarded", USER);
    make(&at, "e", "native", 0);
    assert_acl(&at, PLAIN);
    agent_on_bus_close(&at);
}

/* vgpud was killed after a release, and before one was finished, or after the note of a grant. */
static void test_killed(void)
{
    AgentOnBus at;

    open_host(&at);
    make(&at, "a", "native", USER);
    agent_on_bus_stop(&at);
    set_acl(&at, "u::rw-,u:12345:rwx,u:12346:rwx,u:12347:rwx,g::rw-,m::rw-,o::---");
    file_tree_write(at.root, NOTES,
                    "12345 " NODE "\n12346 " NODE "\n12348 " NODE "\n12345 /dev/dri/renderD129\n");
    agent_on_bus_start(&at);
    /* The third is an administrator's. */
    assert_acl(&at, "u::rw-,u:12345:rwx,u:12347:rwx,g::rw-,m::rw-,o::---");
    assert_in_file(&at, NOTES, "12345 " NODE "\n");
    assert_not_in_file(&at, NOTES, "12346");
    assert_not_in_file(&at, NOTES, "12348");
    assert_not_in_file(&at, NOTES, "renderD129");
    release(&at, "a");
    assert_acl(&at, "u::rw-,u:12347:rwx,g::rw-,m::rw-,o::---");
    agent_on_bus_close(&at);
}

/* Others remove all entries, or make the node again; when udev has finished with it. */
static void test_taken(void)
{
    AgentOnBus at;
    const Expected given = {&at, GIVEN};

    open_host(&at);
    make(&at, "a", "native", USER);
    set_acl(&at, PLAIN);
    iterate_until(is_acl, &given);
    file_tree_write(at.root, "/run/udev/control", "");
    file_tree_write(at.root, "/sys/dev/char/0:0/uevent", "");
    make_node(at.root);
    agent_refresh(at.agent);
    assert_acl(&at, PLAIN);
    file_tree_write(at.root, "/run/udev/data/c0:0", "");
    agent_refresh(at.agent);
    assert_acl(&at, GIVEN);
    release(&at, "a");
    assert_acl(&at, PLAIN);
    agent_on_bus_close(&at);
}

/* logind gives the node to who sits at the screen, before the job or while it runs. */
static void test_seated(void)
{
    AgentOnBus at;

    open_host(&at);
    file_tree_write(at.root, "/run/udev/tags/uaccess/c0:0", "");
    set_acl(&at, "u::rw-,u:12345:rw-,g::rw-,m::rw-,o::---");
    make(&at, "a", "native", USER);
    release(&at, "a");
    assert_acl(&at, "u::rw-,u:12345:rw-,g::rw-,m::rw-,o::---");
    set_acl(&at, PLAIN);
    make(&at, "a", "native", USER);
    seats = 1;
    release(&at, "a");
    assert_acl(&at, "u::rw-,u:12345:rw-,g::rw-,m::rw-,o::---");
    /* Not of the nodes that logind gives. */
    set_acl(&at, PLAIN);
    root_remove(at.root, "/run/udev/tags/uaccess/c0:0");
    make(&at, "a", "native", USER);
    release(&at, "a");
    assert_acl(&at, PLAIN);
    agent_on_bus_close(&at);
}

/* The mode that udev gives while there is an entry is the node's mode afterwards. */
static void test_mode(void)
{
    AgentOnBus at;
    g_autofree char *path = NULL;
    GStatBuf status;

    open_host(&at);
    path = node_path(&at);
    make(&at, "a", "native", USER);
    g_assert_cmpint(g_stat(path, &status), ==, 0);
    g_assert_cmpuint(status.st_mode & 0777, ==, 0660);
    g_assert_cmpint(g_chmod(path, 0640), ==, 0);
    release(&at, "a");
    assert_acl(&at, "u::rw-,g::r--,o::---");
    agent_on_bus_close(&at);
}

/* The package is removed. */
static void test_take_back(void)
{
    AgentOnBus at;

    open_host(&at);
    make(&at, "slurm:1", "native", USER);
    assert_acl(&at, GIVEN);
    agent_on_bus_stop(&at);
    assert_acl(&at, GIVEN);
    g_assert_true(node_access_take_back(at.root));
    assert_acl(&at, PLAIN);
    g_assert_false(root_has(at.root, NOTES));
    agent_on_bus_start(&at);
    agent_on_bus_close(&at);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/node-access/given", test_given);
    g_test_add_func("/node-access/not-noted", test_not_noted);
    g_test_add_func("/node-access/refusing", test_refusing);
    g_test_add_func("/node-access/several", test_several);
    g_test_add_func("/node-access/killed", test_killed);
    g_test_add_func("/node-access/taken", test_taken);
    g_test_add_func("/node-access/seated", test_seated);
    g_test_add_func("/node-access/mode", test_mode);
    g_test_add_func("/node-access/take-back", test_take_back);
    return g_test_run();
}
