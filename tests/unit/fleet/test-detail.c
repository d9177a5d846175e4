/* SPDX-License-Identifier: MIT */
/* What Slurm says that a job has on a node, against the text that travels with the job. */
#include <glib.h>

#include "fleet/slurm/node/detail.h"

/* "index:shards ..." */
static void check_detail(const char *detail, const char *expected)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    CardPromise cards[NODE_CARDS_MAX];
    int count = detail_parse(detail, cards);

    for (int i = 0; i < count; i++)
        g_string_append_printf(seen, "%s%u:%u", i ? " " : "", cards[i].index, cards[i].shards);
    g_assert_cmpstr(count < 0 ? NULL : seen->str, ==, expected);
}

static void test_parse(void)
{
    check_detail(NULL, "");
    check_detail("", "");
    check_detail("shard:a100:300(0/81920,300/81920,0/81920)", "1:300");
    check_detail("shard:a100:300(100/81920,200/81920)", "0:100 1:200");
    check_detail("gpu:a100:3(IDX:0-1,5)", "0:0 1:0 5:0");
    check_detail("gpu:a100:1(IDX:0),shard:a100:7(0/9,7/9)", "0:0 1:7");
    check_detail("shard:b:81920(40960/40960,0/81920),shard:a:81920(0/40960,81920/81920)",
                 "0:40960 1:81920");
    /* A card that is named twice is one card. */
    check_detail("shard:300(300/81920),shard:a100:300(300/81920)", "0:300");
    check_detail("gpu:1(IDX:0),gpu:a100:1(IDX:0)", "0:0");
    check_detail("nic:2,shard:a100:7(7/9)", "0:7");
    check_detail("nic:x:2(IDX:0-1),shard:a100:7(7/9)", "0:7");
}

static void test_models(void)
{
    CardPromise cards[NODE_CARDS_MAX];

    g_assert_cmpint(
        detail_parse("gpu:a100:1(IDX:2),shard:1(1/9),shard:h20:7(0/9,7/9),nic:x:1(IDX:0)", cards),
        ==, 3);
    g_assert_cmpstr(cards[0].model, ==, "a100");
    g_assert_cmpstr(cards[1].model, ==, "");
    g_assert_cmpstr(cards[2].model, ==, "h20");
    g_assert_cmpint(detail_parse("gpu:a-name-that-is-longer-than-any-of-ours:1(IDX:2)", cards), ==,
                    1);
    g_assert_cmpstr(cards[0].model, ==, "");
}

static void test_bad(void)
{
    g_autofree char *many = g_strnfill(1000, ',');

    check_detail("shard:a100:300", NULL);
    check_detail("shard:a100:300(0/81920", NULL);
    check_detail("shard:a100:300(x)", NULL);
    check_detail("shard:a100:3(99999999999/1)", NULL);
    check_detail("gpu:a100:1", NULL);
    check_detail("gpu:a100:1(CNT:1)", NULL);
    check_detail("gpu:a100:1(IDX:0-4000000000)", NULL);
    check_detail(many, "");
}

static FleetConf conf;
static DetailCount counted;

static bool detail_agrees(uint32_t first, uint32_t second, const char *text, uint32_t per_task,
                          CardPromise *cards)
{
    char error[FLEET_ERROR_MAX] = "";
    FleetRequest request;

    fleet_conf_init(&conf);
    g_assert_true(fleet_request_read(text, &request));
    cards[0] = (CardPromise){.index = 0, .shards = first};
    cards[1] = (CardPromise){.index = 3, .shards = second};
    counted.per_task = per_task;
    return detail_check(cards, 2, &request, &counted, &conf, error);
}

static void test_check(void)
{
    CardPromise cards[2];
    char error[FLEET_ERROR_MAX];
    FleetRequest request;

    g_assert_true(
        detail_agrees(200, 100, "vgpu1;vram=100;class=guaranteed;door=guarded", 100, cards));
    g_assert_cmpuint(cards[0].tasks, ==, 2);
    g_assert_cmpuint(cards[1].tasks, ==, 1);
    /* A share may cost more than the memory. */
    g_assert_true(detail_agrees(200, 100, "vgpu1;vram=50;share=30;class=guaranteed;door=guarded",
                                100, cards));
    g_assert_true(
        detail_agrees(50, 25, "vgpu1;vram=100;class=best-effort;door=guarded", 25, cards));
    g_assert_false(
        detail_agrees(2, 1, "vgpu1;vram=100;class=best-effort;door=guarded;resident=1", 1, cards));
    g_assert_true(
        detail_agrees(2, 1, "vgpu1;vram=100;class=burstable;door=guarded;resident=1", 1, cards));
    g_assert_true(detail_agrees(0, 0, "vgpu1;full;class=guaranteed;door=native", 0, cards));
    g_assert_cmpuint(cards[1].tasks, ==, 1);
    g_assert_false(
        detail_agrees(200, 100, "vgpu1;vram=101;class=guaranteed;door=guarded", 100, cards));
    g_assert_false(
        detail_agrees(50, 25, "vgpu1;vram=101;class=best-effort;door=guarded", 25, cards));
    g_assert_false(
        detail_agrees(200, 99, "vgpu1;vram=100;class=guaranteed;door=guarded", 100, cards));
    /* No more than Slurm counts. */
    g_assert_true(
        detail_agrees(250, 100, "vgpu1;vram=100;class=guaranteed;door=guarded", 100, cards));
    g_assert_cmpuint(cards[0].tasks, ==, 2);
    g_assert_false(
        detail_agrees(200, 0, "vgpu1;vram=100;class=guaranteed;door=guarded", 100, cards));
    g_assert_false(detail_agrees(200, 100, "vgpu1;full;class=guaranteed;door=guarded", 100, cards));
    g_assert_false(
        detail_agrees(200, 100, "vgpu1;vram=100;class=guaranteed;door=guarded", 0, cards));
    g_assert_true(fleet_request_read("vgpu1;vram=100;class=guaranteed;door=guarded", &request));
    counted.per_task = 100;
    g_assert_true(detail_check(cards, 0, &request, &counted, &conf, error));
    counted.per_task = 0;
    g_assert_false(detail_check(cards, 0, &request, &counted, &conf, error));
}

/* Slurm gives all shards of the node to a job that has it alone. */
static void test_whole_node(void)
{
    static const char text[] = "vgpu1;vram=100;class=guaranteed;door=guarded";
    CardPromise cards[2];

    counted.whole_node = true;
    g_assert_true(detail_agrees(81559, 40000, text, 24468, cards));
    g_assert_cmpuint(cards[0].tasks, ==, 3);
    g_assert_cmpuint(cards[1].tasks, ==, 1);
    /* A card of another model, which is too small for a task. */
    g_assert_true(detail_agrees(81559, 24467, text, 24468, cards));
    g_assert_cmpuint(cards[1].tasks, ==, 0);
    g_assert_true(detail_agrees(0, 0, "vgpu1;full;class=guaranteed;door=native", 0, cards));
    g_assert_cmpuint(cards[0].tasks, ==, 1);
    counted.whole_node = false;
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fleet/detail/parse", test_parse);
    g_test_add_func("/fleet/detail/models", test_models);
    g_test_add_func("/fleet/detail/bad", test_bad);
    g_test_add_func("/fleet/detail/check", test_check);
    g_test_add_func("/fleet/detail/whole-node", test_whole_node);
    return g_test_run();
}
