/* SPDX-License-Identifier: MIT */
/* What becomes of a job: shards, text, refusals; and vgpu.conf. */
#include <glib.h>

#include "fleet/request/submit.h"

static const char conf_text[] = "# a cluster\n"
                                "[model a100-80g]\n"
                                "vram=81920\n"
                                "[model h20]\n"
                                "  vram=98304  \n"
                                "\n"
                                "[partition a100]\n"
                                "model=a100-80g\n"
                                "doors=guarded,native\n"
                                "door=native\n"
                                "default=yes\n"
                                "[partition mixed]\n"
                                "classes=guaranteed, burstable\n"
                                "[partition h20]\n"
                                "model=h20\n"
                                "[class best-effort]\n"
                                "floor=25\n"
                                "qos=batch,night\n"
                                "[class guaranteed]\n"
                                "priority=4\n";

static FleetConf conf;

static void setup_conf(void)
{
    char error[FLEET_ERROR_MAX] = "";

    if (!fleet_conf_parse(conf_text, &conf, error))
        g_error("%s", error);
}

static void check_submit(SubmitAsk ask, const char *per_task, const char *extra)
{
    SubmitDecision decision;
    char error[FLEET_ERROR_MAX] = "";

    if (!submit_decide(&ask, &conf, &decision, error))
        g_error("%s", error);
    g_assert_true(decision.changes);
    g_assert_cmpstr(decision.per_task, ==, per_task);
    g_assert_cmpstr(decision.extra, ==, extra);
}

static bool is_spread(SubmitAsk ask)
{
    SubmitDecision decision;
    char error[FLEET_ERROR_MAX] = "";

    if (!submit_decide(&ask, &conf, &decision, error))
        g_error("%s", error);
    return decision.spread;
}

static void check_refused(SubmitAsk ask, const char *why)
{
    SubmitDecision decision;
    char error[FLEET_ERROR_MAX] = "";

    g_assert_false(submit_decide(&ask, &conf, &decision, error));
    if (!strstr(error, why))
        g_error("\"%s\" does not have \"%s\"", error, why);
}

static void test_shards(void)
{
    setup_conf();
    check_submit((SubmitAsk){.option = "8G", .partition = "mixed"}, "gres/shard:8192",
                 "vgpu1;vram=8192;class=guaranteed;door=auto");
    check_submit((SubmitAsk){.option = "half", .partition = "a100"}, "gres/shard:40960",
                 "vgpu1;vram=40960;class=guaranteed;door=native");
    /* The default partition. */
    check_submit((SubmitAsk){.option = "30%"}, "gres/shard:24576",
                 "vgpu1;vram=24576;class=guaranteed;door=native");
    check_submit((SubmitAsk){.option = "h20:half", .partition = "mixed"}, "gres/shard:h20:49152",
                 "vgpu1;model=h20;vram=49152;class=guaranteed;door=auto");
    check_submit((SubmitAsk){.option = "a100-80g:full"}, "gres/gpu:a100-80g:1",
                 "vgpu1;model=a100-80g;full;class=guaranteed;door=native");
    check_submit((SubmitAsk){.option = "1G", .per_task = "cpu=2", .partition = "mixed"},
                 "cpu=2,gres/shard:1024", "vgpu1;vram=1024;class=guaranteed;door=auto");
}

/* What is lent of the card costs nothing. */
static void test_resident(void)
{
    setup_conf();
    check_submit((SubmitAsk){.option = "30G,class=burstable,resident=1G", .partition = "mixed"},
                 "gres/shard:1024", "vgpu1;vram=30720;class=burstable;door=auto;resident=1024");
    /* But best effort always its floor. */
    check_submit((SubmitAsk){.option = "8G,class=best-effort,resident=1M", .qos = "night"},
                 "gres/shard:2048", "vgpu1;vram=8192;class=best-effort;door=native;resident=1");
    check_submit((SubmitAsk){.option = "8G,class=best-effort,resident=4G", .qos = "night"},
                 "gres/shard:4096", "vgpu1;vram=8192;class=best-effort;door=native;resident=4096");
    /* A slice is of all tasks of a job on a card, and would have more than the card. */
    g_assert_true(
        is_spread((SubmitAsk){.option = "30G,class=burstable,resident=1G", .partition = "mixed"}));
    g_assert_false(
        is_spread((SubmitAsk){.option = "30G,class=burstable,resident=30G", .partition = "mixed"}));
    g_assert_false(is_spread((SubmitAsk){.option = "30G,class=burstable", .partition = "mixed"}));
    check_refused((SubmitAsk){.option = "8G,class=burstable,resident=9G", .partition = "mixed"},
                  "resident=9216M is more than the 8192 MiB of the slice");
}

/* The card decides, where the partitions leave it more than one door. */
static void test_auto(void)
{
    char error[FLEET_ERROR_MAX];
    FleetRequest request;

    g_assert_true(fleet_conf_parse("[partition both]\ndoors=guarded,native\n"
                                   "[partition guarded]\ndoors=guarded,vm\n"
                                   "[partition native]\ndoors=native\n"
                                   "[partition vm]\ndoors=vm\n"
                                   "[partition says]\ndoors=guarded,native\ndoor=auto\n",
                                   &conf, error));
    check_submit((SubmitAsk){.option = "8G", .partition = "both"}, "gres/shard:8192",
                 "vgpu1;vram=8192;class=guaranteed;door=auto");
    check_submit((SubmitAsk){.option = "8G", .partition = "says"}, "gres/shard:8192",
                 "vgpu1;vram=8192;class=guaranteed;door=auto");
    check_submit((SubmitAsk){.option = "8G", .partition = "guarded"}, "gres/shard:8192",
                 "vgpu1;vram=8192;class=guaranteed;door=guarded");
    check_submit((SubmitAsk){.option = "8G,door=auto", .partition = "native"}, "gres/shard:8192",
                 "vgpu1;vram=8192;class=guaranteed;door=native");
    check_submit((SubmitAsk){.option = "8G", .partition = "both,native"}, "gres/shard:8192",
                 "vgpu1;vram=8192;class=guaranteed;door=native");
    g_assert_false(submit_decide(&(SubmitAsk){.option = "8G", .partition = "vm"}, &conf,
                                 &(SubmitDecision){0}, error));
    g_assert_nonnull(strstr(error, "partition vm does not allow door=auto"));
    /* Somebody has moved the job. */
    g_assert_true(fleet_request_read("vgpu1;vram=5;class=guaranteed;door=auto", &request));
    g_assert_true(submit_allows(&request, &conf, "both", NULL, error));
    g_assert_false(submit_allows(&request, &conf, "guarded", NULL, error));
}

/* A guarantee costs the larger of its two parts, rounded up; others cost memory. */
static void test_dominant(void)
{
    setup_conf();
    check_submit((SubmitAsk){.option = "2G,share=30"}, "gres/shard:24576",
                 "vgpu1;vram=2048;share=30;class=guaranteed;door=native");
    check_submit((SubmitAsk){.option = "half,share=30"}, "gres/shard:40960",
                 "vgpu1;vram=40960;share=30;class=guaranteed;door=native");
    check_submit((SubmitAsk){.option = "1M,share=1"}, "gres/shard:820",
                 "vgpu1;vram=1;share=1;class=guaranteed;door=native");
    check_submit((SubmitAsk){.option = "2G,share=30,class=burstable"}, "gres/shard:2048",
                 "vgpu1;vram=2048;share=30;class=burstable;door=native");
    check_submit((SubmitAsk){.option = "1001M,class=best-effort", .qos = "night"}, "gres/shard:251",
                 "vgpu1;vram=1001;class=best-effort;door=native");
    check_refused((SubmitAsk){.option = "2G,share=30", .partition = "mixed"},
                  "depends on the card");
}

static void test_plain(void)
{
    SubmitDecision decision;
    char error[FLEET_ERROR_MAX];

    setup_conf();
    check_submit((SubmitAsk){.per_task = "cpu=2,gres/shard:100"}, "cpu=2,gres/shard:100",
                 "vgpu1;vram=100;class=guaranteed;door=native");
    check_submit((SubmitAsk){.per_task = "gres/shard:h20:2K,license/x:1", .partition = "h20"},
                 "license/x:1,gres/shard:h20:2048",
                 "vgpu1;model=h20;vram=2048;class=guaranteed;door=auto");
    check_submit((SubmitAsk){.per_task = "gres/shard=5"}, "gres/shard:5",
                 "vgpu1;vram=5;class=guaranteed;door=native");
    /* Jobs without a slice stay as they are. */
    g_assert_true(submit_decide(&(SubmitAsk){.per_task = "cpu=2,gres/gpu:1", .extra = "theirs"},
                                &conf, &decision, error));
    g_assert_false(decision.changes);
}

static void test_refused(void)
{
    setup_conf();
    check_refused((SubmitAsk){.per_node = "gres/shard:100"}, "--vgpu=100M");
    check_refused((SubmitAsk){.per_node = "gres/gpu:1,gres/shard:h20:2"}, "--vgpu=h20:2M");
    check_refused((SubmitAsk){.per_job = "shard"}, "--vgpu=8G");
    check_refused((SubmitAsk){.per_socket = "gres:shard:3", .option = "8G"}, "--vgpu=3M");
    check_refused((SubmitAsk){.per_node = "gres/gpu:1", .option = "8G"}, "leave out --gres");
    check_refused((SubmitAsk){.per_task = "gres/shard:5", .option = "8G"}, "leave out --gres");
    check_refused((SubmitAsk){.per_task = "gres/shard:x"}, "is no number of shards");
    check_refused((SubmitAsk){.per_task = "gres/shard:0"}, "is no number of shards");
    check_refused((SubmitAsk){.per_task = "gres/shard:1,gres/gpu:1"}, "not both");
    check_refused((SubmitAsk){.option = "8X"}, "\"8X\"");
    check_refused((SubmitAsk){.option = "81G"}, "82944 MiB are more than");
    check_refused((SubmitAsk){.option = "mi300:8G"}, "no cards of the model mi300");
    check_refused((SubmitAsk){.option = "h20:8G", .partition = "a100"}, "are a100-80g, not h20");
    check_refused((SubmitAsk){.option = "half", .partition = "mixed"}, "name the model");
    check_refused((SubmitAsk){.option = "half", .partition = "a100,h20"}, "name the model");
    check_refused((SubmitAsk){.option = "8G", .extra = "mine"}, "--extra");
    check_refused((SubmitAsk){.extra = "vgpu1;vram=80000"}, "--extra");
    check_refused((SubmitAsk){.option = "8G,door=vm"}, "does not allow door=vm");
    check_refused((SubmitAsk){.option = "8G,door=vm", .partition = "mixed,a100"},
                  "a100 does not allow door=vm");
    check_refused(
        (SubmitAsk){.option = "8G,class=best-effort", .partition = "mixed", .qos = "batch"},
        "does not allow class=best-effort");
    check_refused((SubmitAsk){.option = "8G,class=best-effort"}, "--qos=batch");
    check_refused((SubmitAsk){.option = "8G,class=best-effort", .qos = "day"}, "--qos=batch");
    check_refused((SubmitAsk){.option = "8G,priority=5"}, "priority=5 is more than the 4");
}

static void test_no_conf(void)
{
    fleet_conf_init(&conf);
    check_submit((SubmitAsk){.option = "x:8G"}, "gres/shard:x:8192",
                 "vgpu1;model=x;vram=8192;class=guaranteed;door=auto");
    check_refused((SubmitAsk){.option = "x:half"}, "name the model");
}

static void test_long(void)
{
    g_autofree char *list = g_strnfill(FLEET_TRES_MAX, 'x');

    setup_conf();
    check_refused((SubmitAsk){.option = "8G", .per_task = list}, "too long");
    list[FLEET_TRES_MAX - 10] = 0;
    check_refused((SubmitAsk){.option = "8G", .per_task = list}, "too long");
}

static void test_modify(void)
{
    char error[FLEET_ERROR_MAX];

    g_assert_true(submit_modify(&(SubmitAsk){.partition = "h20"}, FALSE, error));
    g_assert_true(submit_modify(&(SubmitAsk){.extra = "x"}, FALSE, error));
    g_assert_true(submit_modify(&(SubmitAsk){.extra = ""}, FALSE, error));
    g_assert_true(submit_modify(&(SubmitAsk){.extra = "x"}, TRUE, error));
    g_assert_false(submit_modify(&(SubmitAsk){.extra = "vgpu1;vram=5"}, FALSE, error));
    g_assert_false(
        submit_modify(&(SubmitAsk){.extra = "x", .per_task = "gres/shard:5"}, FALSE, error));
    g_assert_false(submit_modify(&(SubmitAsk){.per_task = "gres/shard:5"}, FALSE, error));
    g_assert_false(submit_modify(&(SubmitAsk){.per_node = "gres/shard:5"}, FALSE, error));
    g_assert_false(submit_modify(&(SubmitAsk){.per_task = "gres/shard:5"}, TRUE, error));
    g_assert_false(submit_modify(&(SubmitAsk){.extra = "vgpu1;vram=5"}, TRUE, error));
    g_assert_true(submit_modify(&(SubmitAsk){.per_task = "gres/shard:5", .extra = "vgpu1;vram=5"},
                                TRUE, error));
}

/* The job has come elsewhere since it was submitted. */
static void test_moved(void)
{
    FleetRequest request;
    char error[FLEET_ERROR_MAX];

    setup_conf();
    g_assert_true(fleet_request_read("vgpu1;vram=5;class=guaranteed;door=vm;priority=4", &request));
    g_assert_true(submit_allows(&request, &conf, "mixed", NULL, error));
    g_assert_true(submit_allows(&request, &conf, "unknown", "normal", error));
    g_assert_false(submit_allows(&request, &conf, "a100", NULL, error));
    g_assert_nonnull(strstr(error, "a100 does not allow door=vm"));
    request.priority = 5;
    g_assert_false(submit_allows(&request, &conf, "mixed", NULL, error));
    g_assert_true(fleet_request_read("vgpu1;vram=5;class=best-effort;door=guarded", &request));
    g_assert_true(submit_allows(&request, &conf, "a100", "batch", error));
    g_assert_true(submit_allows(&request, &conf, "a100", NULL, error));
    g_assert_false(submit_allows(&request, &conf, "a100", "day", error));
    g_assert_false(submit_allows(&request, &conf, "mixed", "batch", error));
}

static void test_conf_bad(void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"vram=3", "line 1"},
        {"[model a]", "no vram="},
        {"[model a]\nvram=3\n[model a]\nvram=3", "line 3"},
        {"[model A]", "line 1"},
        {"[model a]\nvram=0", "line 2"},
        {"[model a]\n\nvram=3 # x", "line 3"},
        {"[partition p]\nmodel=a", "which has no section"},
        {"[partition p]\ndoors=side", "line 2"},
        {"[partition p]\ndoors=", "line 2"},
        {"[partition p]\ndoors=auto", "line 2"},
        {"[partition p]\ndoors=vm\ndoor=native", "none of its doors="},
        {"[partition p]\ndefault=no", "line 2"},
        {"[class x]", "line 1"},
        {"[class burstable]\nfloor=101", "line 2"},
        {"[class burstable]\npriority=16", "line 2"},
        {"[class burstable]\nqos=a,b,c,d,e,f,g,h,i", "line 2"},
        {"[node x]", "line 1"},
        {"[node]\naccount=maybe", "line 2"},
        {"[model a", "line 1"},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        char error[FLEET_ERROR_MAX] = "";

        g_assert_false(fleet_conf_parse(cases[i].text, &conf, error));
        if (!strstr(error, cases[i].why))
            g_error("\"%s\": \"%s\"", cases[i].text, error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fleet/submit/shards", test_shards);
    g_test_add_func("/fleet/submit/resident", test_resident);
    g_test_add_func("/fleet/submit/auto", test_auto);
    g_test_add_func("/fleet/submit/dominant", test_dominant);
    g_test_add_func("/fleet/submit/plain", test_plain);
    g_test_add_func("/fleet/submit/refused", test_refused);
    g_test_add_func("/fleet/submit/no-conf", test_no_conf);
    g_test_add_func("/fleet/submit/long", test_long);
    g_test_add_func("/fleet/submit/modify", test_modify);
    g_test_add_func("/fleet/submit/moved", test_moved);
    g_test_add_func("/fleet/submit/conf-bad", test_conf_bad);
    return g_test_run();
}
