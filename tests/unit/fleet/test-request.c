/* SPDX-License-Identifier: MIT */
/* The grammar of --vgpu, and the canonical text. */
#include <glib.h>

#include "fleet/request/request.h"

static void check_text(const char *option, const char *text)
{
    FleetRequest request, again;
    char error[FLEET_ERROR_MAX] = "", written[FLEET_TEXT_MAX];

    g_assert_true(fleet_request_parse(option, &request, error));
    fleet_request_format(&request, written);
    g_assert_cmpstr(written, ==, text);
    g_assert_true(fleet_request_read(text, &again));
    fleet_request_format(&again, written);
    g_assert_cmpstr(written, ==, text);
}

static void test_good(void)
{
    check_text("8G", "vgpu1;vram=8192");
    check_text("512m", "vgpu1;vram=512");
    check_text("1T", "vgpu1;vram=1048576");
    check_text("vram=8G", "vgpu1;vram=8192");
    check_text("a100-80g:8G,share=30", "vgpu1;model=a100-80g;vram=8192;share=30");
    check_text("full", "vgpu1;full");
    check_text("h20:full,door=native,priority=15", "vgpu1;model=h20;full;door=native;priority=15");
    check_text("8G,cap=50,share=30", "vgpu1;vram=8192;share=30;cap=50");
    check_text("share=30,vram=8G", "vgpu1;vram=8192;share=30");
    check_text("8G,class=best-effort,oversubscribe=4G,spread=card,engines=compute+transfer",
               "vgpu1;vram=8192;class=best-effort;spread=card;oversubscribe=4096;engines=6");
    check_text("8G,priority=0", "vgpu1;vram=8192");
    check_text("30G,class=burstable,resident=1G", "vgpu1;vram=30720;class=burstable;resident=1024");
}

static void test_parts(void)
{
    FleetRequest request;
    char error[FLEET_ERROR_MAX];

    g_assert_true(fleet_request_parse("quarter", &request, error));
    g_assert_cmpint(request.kind, ==, FLEET_SIZE_PART);
    g_assert_cmpuint(request.size, ==, 4);
    g_assert_true(fleet_request_parse("x:30%", &request, error));
    g_assert_cmpint(request.kind, ==, FLEET_SIZE_PERCENT);
    g_assert_cmpuint(request.size, ==, 30);
    g_assert_cmpstr(request.model, ==, "x");
}

/* Each is refused with a sentence that has the wrong word. */
static void test_bad(void)
{
    static const struct {
        const char *option, *word;
    } cases[] = {
        {"", "\"\""},
        {"8", "\"8\""},
        {"8X", "\"8X\""},
        {"8GB", "\"8GB\""},
        {"0G", "\"0G\""},
        {"-1G", "\"-1G\""},
        {"1.5G", "\"1.5G\""},
        {"17T", "\"17T\""},
        {"99999999999999999999G", "99999999"},
        {"0%", "\"0%\""},
        {"101%", "\"101%\""},
        {"third", "\"third\""},
        {"A100:8G", "\"A100\""},
        {":8G", "\"\""},
        {"a100:", "\"\""},
        {"abcdefghijklmnopqrstuvwxyz0123456789:8G", "abcdefghijklm"},
        {"8G,", "\"\""},
        {"8G,share", "\"share\""},
        {"8G,share=", "share="},
        {"8G,share=0", "share=0"},
        {"8G,share=101", "share=101"},
        {"8G,share=30%", "share=30%"},
        {"8G,share=30,share=40", "share is given twice"},
        {"8G,vram=4G", "vram is given twice"},
        {"8G,cores=3", "\"cores\""},
        {"8G,class=best", "class=best"},
        {"8G,door=front", "door=front"},
        {"8G,spread=node", "spread=node"},
        {"8G,engines=", "engines="},
        {"8G,engines=compute+magic", "engines=compute+magic"},
        {"8G,priority=16", "priority=16"},
        {"8G,oversubscribe=4", "oversubscribe=4"},
        {"8G,class=burstable,resident=1", "resident=1"},
        {"8G,resident=1G", "resident= is for the classes"},
        {"share=30", "no size"},
        {"8G,share=30,class=best-effort", "best-effort promises none"},
        {"8G,share=30,cap=20", "cap=20 is less than share=30"},
        {"full,share=30", "full card"},
        {"full,class=burstable", "full card"},
        {"8G\n", "\"8G?\""},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        FleetRequest request;
        char error[FLEET_ERROR_MAX] = "";

        g_assert_false(fleet_request_parse(cases[i].option, &request, error));
        if (!strstr(error, cases[i].word))
            g_error("\"%s\": \"%s\" does not have \"%s\"", cases[i].option, error, cases[i].word);
    }
}

static void test_long(void)
{
    g_autofree char *option = g_strnfill(100000, ',');
    FleetRequest request;
    char error[FLEET_ERROR_MAX];

    g_assert_false(fleet_request_parse(option, &request, error));
}

/* A job's text comes from the network: only what the plugin writes is believed. */
static void test_read(void)
{
    static const char *const bad[] = {
        "",
        "vgpu1",
        "vgpu2;vram=5",
        "vgpu1;",
        "vgpu1;vram=0",
        "vgpu1;vram=5;",
        "vgpu1;vram=05",
        "vgpu1;share=5;vram=5",
        "vgpu1;vram=5;vram=5",
        "vgpu1;vram=5;share=101",
        "vgpu1;full;vram=5",
        "vgpu1;vram=5;root=1",
        "vgpu1;vram=5;class=none",
        "vgpu1;vram=5;door=guarded ",
        "vgpu1;fullest",
        "vgpu1;vram=5;engines=32",
    };
    g_autofree char *long_text = g_strnfill(5000, 'v');
    FleetRequest request;

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++)
        if (fleet_request_read(bad[i], &request))
            g_error("\"%s\" was believed", bad[i]);
    g_assert_false(fleet_request_read(long_text, &request));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fleet/request/good", test_good);
    g_test_add_func("/fleet/request/parts", test_parts);
    g_test_add_func("/fleet/request/bad", test_bad);
    g_test_add_func("/fleet/request/long", test_long);
    g_test_add_func("/fleet/request/read", test_read);
    return g_test_run();
}
