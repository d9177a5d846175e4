/* SPDX-License-Identifier: MIT */
/*
 * Containers' slices in vgpud's ledger: made, changed, removed by vgpuctl; in the arbiter's
 * settings, and in metrics.
 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "host-agent/store/tables.h"
#include "tests/unit/file_tree.h"
#include "tests/unit/host-agent/fake_arbiter.h"
#include "tests/unit/host-agent/slices_kit.h"

static void test_create(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice list", 0, "This host has no slice", "");
    assert_says("slice create half --door native --name web --uuid " UUID " --cap 30", 0,
                UUID "  web   native  " ADDRESS "  8.0 GiB  -     guaranteed", "");
    assert_says("slice list", 0, UUID, "");
    assert_says("slice show web", 0, "Type:                   amdgpu-vgpu-half", "");
    assert_says("vgpu list", 0, "This host has no vGPU.", "");
    assert_says("vgpu show " UUID, 3, "", "there is no vGPU");
    assert_in_file(&at, SHARE_OF(UUID), "[slice]\nweight=400\ncap=30\nhard=true\n");
    g_assert_true(exists(&at, "/run/vgpu/containers/" UUID "/slice"));
    g_assert_true(exists(&at, "/run/vgpu/slices/" UUID));
    assert_says("top --once", 0, UUID "  " ADDRESS, "");
    assert_says("slice set web --cap 100 --vram 4G", 0, "", "");
    assert_in_file(&at, SHARE_OF(UUID), "vram=4294967296\n");
    assert_in_file(&at, SHARE_OF(UUID), "hard=false\n");
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "4.0 GiB", "");
    assert_in_file(&at, SHARE_OF(UUID), "vram=4294967296\n");
    assert_says("slice remove web --dry-run", 0, "", "");
    assert_says("slice remove WEB", 3, "", "there is no slice WEB");
    assert_says("slice remove web", 0, "", "");
    g_assert_false(exists(&at, SHARE_OF(UUID)));
    g_assert_false(exists(&at, "/run/vgpu/containers/" UUID));
    g_assert_false(exists(&at, "/run/vgpu/slices/" UUID));
    g_assert_false(exists(&at, CDI_PATH));
    agent_on_bus_close(&at);
}

static void test_bad_requests(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create half --door back", 2, "",
                "Door must be auto, native, guarded, vfio or vm");
    assert_says("slice create --door vm --vram 1G", 2, "", "Type is missing");
    assert_says("slice create half --door vm --ephemeral", 2, "", "Ephemeral is for containers");
    assert_says("slice create --door native", 2, "", "Type, or Vram, is missing");
    assert_says("slice create --door vfio", 2, "", "Type, or Vram, is missing");
    assert_says("slice create half --door native --name a/b", 2, "", "Name must be");
    assert_says("slice create half --door native --name " UUID, 2, "", "Name must be");
    assert_says("slice create half --door native --window 256M", 2, "", "are for vGPUs");
    assert_says("slice create half --window 256M", 2, "", "a slice of door auto");
    assert_says("slice create third --door native", 3, "", "has a type \"third\"");
    assert_says("slice create half --door native --name web", 0, "web", "");
    assert_says("slice create half --door native --name web", 6, "", "the name web is taken");
    assert_says("slice set web --vram 17G", 7, "", "cannot change vGPU");
    agent_on_bus_close(&at);
}

/* A container of LXC's, which knows no CDI: its start says that it uses the slice. */
static void test_claim(void)
{
    AgentOnBus at;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("slice create half --door guarded --name web --uuid " UUID, 0, "web", "");
    assert_says("slice claim web --pid 77", 2, "", "--pid and --name are required");
    assert_says("slice claim web --name c1", 2, "", "--pid and --name are required");
    assert_says("slice claim none --pid 77 --name c1", 3, "", "no slice");
    assert_says("slice claim web --pid 78 --name c1", 2, "", "has no process 78");
    assert_says("slice claim web --pid 77 --name c1", 0, "", "");
    assert_says("slice list", 0, "c1", "");
    assert_says("slice claim web --pid 77 --name c2", 6, "", "container c1 has it");
    assert_says("slice remove web", 6, "", "container c1 has slice " UUID);
    process_ends(&at, 77);
    assert_says("slice remove web", 0, "", "");
    agent_on_bus_close(&at);
}

/* Nobody has claimed it, but its guard has a client. */
static void test_unclaimed_client(void)
{
    AgentOnBus at;
    FakeArbiter arbiter;

    open_shared(&at);
    assert_says("slice create half --door guarded --uuid " UUID, 0, UUID, "");
    fake_arbiter_open_with(&arbiter, at.root,
                           "{\"slices\":[{\"id\":\"" UUID "\",\"members\":1,\"pids\":[5]}]}\n");
    assert_says("slice remove " UUID, 6, "", "a client of its guard has slice " UUID);
    assert_says("gpu users 02:00.0", 0, "a client of its guard has slice " UUID, "");
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/* That nobody is known to use it does not say that nobody does. */
static void test_silent_arbiter(void)
{
    static const char words[] = "perhaps a program (vgpu-arbiter@" ADDRESS " does not answer now)";
    AgentOnBus at;
    int hung;

    open_shared(&at);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    hung = fake_arbiter_listen(at.root);
    assert_says("slice remove " UUID, 6, "", words);
    assert_says("tenant set red", 0, "", "");
    assert_says("slice set " UUID " --tenant red", 6, "", words);
    assert_says("gpu users 02:00.0", 0, words, "");
    assert_says("gpu mode 02:00.0 host", 6, "", words);
    assert_says("slice remove --force " UUID, 0, "", "");
    close(hung);
    agent_on_bus_close(&at);
}

/* Nobody is a member of an arbiter that was restarted now, or long ago. */
#define RESTARTED_NOW                                                                              \
    "{\"restarted_ns\":9000000000000000000,\"slices\":[{\"id\":\"" UUID "\",\"pids\":[]}]}"
#define RESTARTED_BEFORE                                                                           \
    "{\"restarted_ns\":1000000000,\"slices\":[{\"id\":\"" UUID "\",\"pids\":[]}]}"

/* Its members are back a moment after it is; one that stays away has none. */
static void test_restarted_arbiter(void)
{
    static const char words[] = "perhaps a program (vgpu-arbiter@" ADDRESS " does not answer now)";
    AgentOnBus at;
    FakeArbiter arbiter;

    open_shared(&at);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    fake_arbiter_open(&arbiter, at.root);
    assert_says("slice remove " UUID, 6, "", "2 processes has slice " UUID);
    fake_arbiter_close(&arbiter);
    assert_says("slice remove " UUID, 6, "", words);
    fake_arbiter_open_with(&arbiter, at.root, RESTARTED_NOW);
    assert_says("slice remove " UUID, 6, "", words);
    fake_arbiter_close(&arbiter);
    arbiters_away_us = 0;
    assert_says("slice remove " UUID, 0, "", "");
    arbiters_away_us = ARBITERS_AWAY_US;
    agent_on_bus_close(&at);
}

/* It was away between two questions only, or while vgpud was restarted, too. */
static void test_unseen_restart(void)
{
    static const char words[] = "perhaps a program (vgpu-arbiter@" ADDRESS " does not answer now)";
    AgentOnBus at;
    FakeArbiter arbiter;

    open_shared(&at);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    fake_arbiter_open(&arbiter, at.root);
    assert_says("slice remove " UUID, 6, "", "2 processes has slice " UUID);
    g_atomic_pointer_set(&arbiter.text, RESTARTED_NOW);
    assert_says("slice remove " UUID, 6, "", words);
    agent_on_bus_restart(&at);
    assert_says("slice remove " UUID, 6, "", words);
    g_atomic_pointer_set(&arbiter.text, RESTARTED_BEFORE);
    assert_says("slice remove " UUID, 0, "", "");
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/* What slices use is the meter's to know; without one the lists are as they are otherwise. */
static void test_use_without_meter(void)
{
    static const char *const lists[] = {"slice list", "slice show " UUID, "top --once"};
    AgentOnBus at;
    FakeArbiter arbiter;

    open_shared(&at);
    assert_says("slice create half --door native --uuid " UUID, 0, UUID, "");
    fake_arbiter_open(&arbiter, at.root);
    assert_says("-o json slice show " UUID, 0, "\"VramUsed\" : 4096", "");
    agent_on_bus_stop_meter(&at);
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++)
        assert_says(lists[i], 0, UUID,
                    "vgpuctl: what slices use is not known, because vgpu-meter does not answer; "
                    "\"systemctl status vgpu-meter\" shows why\n");
    assert_says("-o json slice show " UUID, 0, "\"Metered\" : false", "");
    assert_says("slice remove " UUID, 6, "", "2 processes has slice " UUID);
    agent_on_bus_start_meter(&at);
    assert_says("-o json slice show " UUID, 0, "\"VramUsed\" : 4096", "");
    fake_arbiter_close(&arbiter);
    agent_on_bus_close(&at);
}

/* vGPUs and slices have one ledger and one set of quotas. */
static void test_ledger(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create --door native --vram 10G --uuid " UUID, 0, "10.0 GiB", "");
    assert_says("-o json slice show " UUID, 0, "\"Weight\" : 500", "");
    assert_says("vgpu create half", 7, "", "5.984 GiB of 15.98 GiB are free");
    assert_says("slice create half --door guarded", 7, "", "5.984 GiB of 15.98 GiB are free");
    assert_says("-o json gpu show 02:00.0", 0, "\"PromisedVram\" : 10737418240", "");
    assert_says("-o json gpu show 02:00.0", 0, "\"Capacity\" : 17163091968", "");
    assert_says("tenant set red --vram 12G --vgpus 2", 0, "", "");
    assert_says("slice set " UUID " --tenant red", 0, "", "");
    assert_says("tenant list", 0, "10.0 GiB of 12.0 GiB", "");
    assert_says("slice create --door native --vram 3G --tenant red", 7, "",
                "tenant red would have 13 GiB of VRAM");
    assert_says("slice create --door guarded --vram 1G --tenant red", 0, "red", "");
    assert_says("tenant remove red", 6, "", "tenant red has 2");
    agent_on_bus_restart(&at);
    assert_says("-o json gpu show 02:00.0", 0, "\"PromisedVram\" : 11811160064", "");
    assert_says("vgpu create half", 7, "", "4.984 GiB of 15.98 GiB are free");
    agent_on_bus_close(&at);
}

/* Users of the tenant can access the socket, others cannot. */
static void test_directories(void)
{
    AgentOnBus at;
    g_autofree char *outer = NULL;
    struct stat status;

    open_shared(&at);
    assert_says("tenant set red --user root --user nobody --user nosuchuser", 0, "", "");
    assert_says("slice create half --door native --tenant red --uuid " UUID, 0, UUID, "");
    outer = root_path(at.root, "/run/vgpu/containers/" UUID, NULL);
    g_assert_cmpint(g_stat(outer, &status), ==, 0);
    /* With an ACL the group's bits are its mask. */
    g_assert_cmpuint(status.st_mode & 0777, ==, 0710);
    assert_says("slice set " UUID " --tenant ''", 0, "", "");
    g_assert_cmpint(g_stat(outer, &status), ==, 0);
    g_assert_cmpuint(status.st_mode & 0777, ==, 0700);
    agent_on_bus_close(&at);
}

static void test_metrics(void)
{
    AgentOnBus at;
    gsize length;
    g_autofree char *text = NULL;

    open_shared(&at);
    process(&at, 77, 1000);
    assert_says("tenant set red", 0, "", "");
    assert_says("slice create --vram 4G --door native --name web --tenant red --uuid " UUID, 0,
                "web", "");
    assert_hook(&at, "claim", WEB, 0, "");
    text = scrape_text(meter_scrape(at.meter), &length);
    g_assert_nonnull(strstr(text, "vgpu_slice_info{slice=\"" UUID "\",gpu=\"" ADDRESS
                                  "\",tenant=\"red\",name=\"web\",door=\"native\","
                                  "class=\"guaranteed\",container=\"web\",owner=\"\"} 1\n"));
    g_assert_nonnull(strstr(text, "vgpu_slice_container_info{slice=\"" UUID "\",gpu=\"" ADDRESS
                                  "\",id=\"web\"} 1\n"));
    g_assert_nonnull(strstr(text, "vgpu_slice_vram_promised_bytes{slice=\"" UUID "\",gpu=\"" ADDRESS
                                  "\",tenant=\"red\"} 4294967296\n"));
    g_assert_nonnull(strstr(text, "vgpu_tenant_vgpus{tenant=\"red\"} 1\n"));
    /* No arbiter reports. */
    g_assert_null(strstr(text, "vgpu_slice_processes{"));
    g_assert_null(strstr(text, "vgpu_vgpu_info{"));
    usage_sampler_sample(meter_usage(at.meter), 3600);
    assert_says("report --tenant red", 0, "native", "");
    agent_on_bus_close(&at);
}

/* A promise is the arbiter's, whatever the weight, which stays that of the size. */
static void test_promised_time(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create --door native --vram 2G --compute 60 --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, SHARE_OF(UUID), "[slice]\nweight=100\n");
    assert_in_file(&at, SHARE_OF(UUID), "share=600000\n");
    assert_says("slice set " UUID " --compute 30", 0, "", "");
    assert_in_file(&at, SHARE_OF(UUID), "[slice]\nweight=100\n");
    assert_in_file(&at, SHARE_OF(UUID), "share=300000\n");
    assert_says("slice set " UUID " --compute 40 --weight 7", 0, "", "");
    assert_in_file(&at, SHARE_OF(UUID), "[slice]\nweight=7\n");
    assert_says("slice remove " UUID, 0, "", "");
    /* Nothing is promised to it. */
    assert_says("slice create half --door native --class best-effort --compute 90 --uuid " UUID, 0,
                UUID, "");
    assert_in_file(&at, SHARE_OF(UUID), "share=0\n");
    agent_on_bus_close(&at);
}

static void boot(AgentOnBus *at, const char *id)
{
    file_tree_write(at->root, "/proc/sys/kernel/random/boot_id", id);
    agent_on_bus_restart(at);
}

/*
 * Others are promised what a suspended slice had. A boot ends its programs, and gives nothing back
 * that is another's by then.
 */
static void test_suspended_over_boot(void)
{
    static const char second[] = "\"PromisedVram\" : 9663676416";
    static const char first[] = "\"PromisedVram\" : 10737418240";
    AgentOnBus at;

    open_shared(&at);
    boot(&at, "one\n");
    assert_says("slice create --door native --vram 10G --uuid " UUID, 0, UUID, "");
    g_assert_true(suspension_table_put(host_db(agent_host(at.agent)), UUID, "one", NULL));
    agent_on_bus_restart(&at);
    assert_says("-o json slice show " UUID, 0, "\"Suspended\" : true", "");
    assert_says("slice create --door native --vram 9G --uuid " UUID2, 0, UUID2, "");
    boot(&at, "two\n");
    assert_says("-o json slice show " UUID, 0, "\"Suspended\" : true", "");
    assert_says("-o json gpu show 02:00.0", 0, second, "");
    assert_says("slice resume " UUID, 7, "", "there is no room for");
    assert_says("slice remove " UUID2, 0, "", "");
    boot(&at, "three\n");
    assert_says("-o json slice show " UUID, 0, "\"Suspended\" : false", "");
    assert_says("-o json gpu show 02:00.0", 0, first, "");
    assert_says("slice create --door native --vram 9G", 7, "", "5.984 GiB of 15.98 GiB are free");
    agent_on_bus_restart(&at);
    assert_says("-o json slice show " UUID, 0, "\"Suspended\" : false", "");
    agent_on_bus_close(&at);
}

/* Of an older vgpud, which kept it in /run; and nothing is left of a slice that was removed. */
static void test_suspended_mark(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create --door native --vram 10G --uuid " UUID, 0, UUID, "");
    file_tree_write(at.root, "/run/vgpu/suspended/" UUID, "");
    agent_on_bus_restart(&at);
    g_assert_false(exists(&at, "/run/vgpu/suspended/" UUID));
    agent_on_bus_restart(&at);
    assert_says("-o json slice show " UUID, 0, "\"Suspended\" : true", "");
    assert_says("slice remove " UUID, 0, "", "");
    assert_says("slice create --door native --vram 10G --uuid " UUID, 0, UUID, "");
    agent_on_bus_restart(&at);
    assert_says("-o json slice show " UUID, 0, "\"Suspended\" : false", "");
    agent_on_bus_close(&at);
}

/* A slice whose row stays would be back after a restart, so it is not removed. */
static void test_full_disk(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create half --door native --name web --uuid " UUID, 0, UUID, "");
    run_sql(&at, STATE_DB,
            "CREATE TRIGGER full BEFORE DELETE ON slice BEGIN SELECT RAISE(ABORT, 'full'); END",
            NULL);
    assert_says("slice remove web", 1, "", UUID " stays in vgpud's ledger; make room");
    assert_says("slice list", 0, "web", "");
    run_sql(&at, STATE_DB, "DROP TRIGGER full", NULL);
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "web", "");
    assert_says("slice remove web", 0, "", "");
    agent_on_bus_restart(&at);
    assert_says("slice list", 0, "no slice", "");
    agent_on_bus_close(&at);
}

static void test_engines(void)
{
    AgentOnBus at;

    open_shared(&at);
    assert_says("slice create half --door native --engines graphics", 2, "", "without compute");
    assert_says("slice create half --door native --engines compute,warp", 2, "",
                "Engines must be \"all\", or some of");
    assert_says("slice create half --door native --engines ''", 2, "", "Engines must be");
    assert_says("slice create half --door native --name web --uuid " UUID, 0, UUID, "");
    assert_not_in_file(&at, SHARE_OF(UUID), "engines=");
    assert_says("slice show web", 0, "GPU's engines:          all", "");
    assert_says("slice set web --engines transfer,compute", 0, "", "");
    assert_in_file(&at, SHARE_OF(UUID), "engines=compute,transfer\n");
    agent_on_bus_restart(&at);
    assert_says("slice show web", 0, "GPU's engines:          compute,transfer", "");
    assert_in_file(&at, SHARE_OF(UUID), "engines=compute,transfer\n");
    assert_says("slice set web --cap 20", 0, "", "");
    assert_in_file(&at, SHARE_OF(UUID), "engines=compute,transfer\n");
    assert_says("slice set web --engines graphics", 2, "", "without compute");
    assert_says("slice set web --engines graphics,compute,transfer,decode,encode", 0, "", "");
    assert_says("slice show web", 0, "GPU's engines:          all", "");
    assert_says("slice remove web", 0, "", "");
    assert_says("slice create half --door vfio --engines compute --uuid " UUID, 0, UUID, "");
    assert_in_file(&at, SHARE_OF(UUID), "engines=compute\n");
    agent_on_bus_close(&at);
}

static void test_names(void)
{
    g_assert_true(slice_name_valid("web"));
    g_assert_true(slice_name_valid("a.b-c_d9"));
    g_assert_false(slice_name_valid(""));
    g_assert_false(slice_name_valid("9web"));
    g_assert_false(slice_name_valid("web-"));
    g_assert_false(slice_name_valid("we b"));
    g_assert_false(slice_name_valid("web\n"));
    g_assert_false(slice_name_valid("c0ffee00-0000-4000-8000-000000000001"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/slices/names", test_names);
    g_test_add_func("/slices/create", test_create);
    g_test_add_func("/slices/bad-requests", test_bad_requests);
    g_test_add_func("/slices/claim", test_claim);
    g_test_add_func("/slices/unclaimed-client", test_unclaimed_client);
    g_test_add_func("/slices/silent-arbiter", test_silent_arbiter);
    g_test_add_func("/slices/restarted-arbiter", test_restarted_arbiter);
    g_test_add_func("/slices/unseen-restart", test_unseen_restart);
    g_test_add_func("/slices/use-without-meter", test_use_without_meter);
    g_test_add_func("/slices/ledger", test_ledger);
    g_test_add_func("/slices/promised-time", test_promised_time);
    g_test_add_func("/slices/suspended-over-boot", test_suspended_over_boot);
    g_test_add_func("/slices/suspended-mark", test_suspended_mark);
    g_test_add_func("/slices/full-disk", test_full_disk);
    g_test_add_func("/slices/engines", test_engines);
    g_test_add_func("/slices/directories", test_directories);
    g_test_add_func("/slices/metrics", test_metrics);
    return g_test_run();
}
