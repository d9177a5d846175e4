/* SPDX-License-Identifier: MIT */
/* Sizes, types and the list of GPUs: accepted input, and the message for each mistake. */

#include "lib/conf.h"
#include "lib/cards.h"
#include "lib/gpus.h"
#include "lib/types.h"
#include "tests/unit/registrar/tree.h"

static void test_sizes(void)
{
    static const char *const bad[] = {"",
                                      "1",
                                      "1023K",
                                      "-1M",
                                      "1.5G",
                                      "M",
                                      "1MB",
                                      "1 G",
                                      "0G",
                                      "0x10M",
                                      "99999999999T",
                                      "18446744073709551615",
                                      "9223372036854775808"};
    guint64 bytes;

    g_assert_true(size_parse("512M", &bytes));
    g_assert_cmpuint(bytes, ==, 512 * MIB);
    g_assert_true(size_parse("1g", &bytes));
    g_assert_cmpuint(bytes, ==, 1024 * MIB);
    g_assert_true(size_parse("1048576", &bytes));
    g_assert_cmpuint(bytes, ==, MIB);
    g_assert_true(size_parse("2T", &bytes));
    g_assert_cmpuint(bytes, ==, 2 * 1024 * 1024 * MIB);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(size_parse(bad[i], &bytes));
}

static void test_parts(void)
{
    static const char *const bad[] = {"/",
                                      "1/",
                                      "/4",
                                      "0/4",
                                      "5/4",
                                      "1/0",
                                      "1/1025",
                                      "1/4/2",
                                      "1/4 ",
                                      "-1/4",
                                      "99999999999999999999/4"};
    Amount amount;

    g_assert_true(amount_parse("1/4", &amount));
    g_assert_cmpuint(amount_resolve(&amount, 1024 * MIB), ==, 256 * MIB);
    g_assert_cmpuint(amount_resolve(&amount, 1023 * MIB + 5), ==, 255 * MIB);
    g_assert_cmpuint(amount_resolve(&amount, MIB), ==, 0);
    g_assert_true(amount_parse("3/3", &amount));
    g_assert_cmpuint(amount_resolve(&amount, G_MAXUINT64), ==, G_MAXUINT64 / MIB * MIB);
    g_assert_true(amount_parse("64M", &amount));
    g_assert_cmpuint(amount_resolve(&amount, MIB), ==, 64 * MIB);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(amount_parse(bad[i], &amount));
}

static void test_cpu(void)
{
    static const char *const bad[] = {"",    "%",     "0%",    "200",     "2.5%",
                                      "-1%", "100%%", "100 %", "100001%", "99999999999999999999%"};
    guint percent;

    g_assert_true(cpu_parse("1%", &percent));
    g_assert_cmpuint(percent, ==, 1);
    g_assert_true(cpu_parse("100000%", &percent));
    g_assert_cmpuint(percent, ==, 100000);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(cpu_parse(bad[i], &percent));
}

static void test_size_format(void)
{
    static const struct {
        guint64 bytes;
        const char *text;
    } cases[] = {{256 * MIB, "256 MiB"}, {1536 * MIB, "1.5 GiB"}, {1 << 30, "1 GiB"}};

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = size_format(cases[i].bytes);

        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

static void test_type_defaults(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) types = NULL;
    g_autoptr(GError) error = NULL;
    const GpuType *type;

    tree_write(tree, "/etc/vgpu/types.d/10-a.conf", "[type a]\nvram=1/2\n");
    types = types_load(tree->root, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(types->len, ==, 1);
    type = g_ptr_array_index(types, 0);
    g_assert_cmpstr(type->name, ==, "a");
    g_assert_cmpstr(type->description, ==, "");
    g_assert_cmpuint(type_window(type, "amdgpu"), ==, 256 * MIB);
    g_assert_cmpuint(type_window(type, NULL), ==, 256 * MIB);
    g_assert_cmpuint(type->weight, ==, 100);
    g_assert_cmpuint(type->cap, ==, 100);
    g_assert_cmpuint(type->priority, ==, 0);
    g_assert_cmpuint(type->max_instances, ==, 0);
    g_assert_cmpstr(type->class, ==, "guaranteed");
    g_assert_cmpuint(type->compute, ==, 0);
    g_assert_cmpuint(amount_resolve(&type->oversubscribe, 1024 * MIB), ==, 0);
    g_assert_cmpuint(type->cpu, ==, 0);
    g_assert_cmpuint(type->memory, ==, 0);
    g_assert_true(type_matches(type, "0000:01:00.0", "1002:73bf"));
}

/* By default where it is possible; then with a larger window, if none is given. */
static void test_type_cuda(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) types = NULL;
    g_autoptr(GError) error = NULL;
    const GpuType *type;

    tree_write(tree, "/etc/vgpu/types.d/10-a.conf",
               "[type a]\nvram=1G\n[type yes]\nvram=1G\ncuda=yes\nwindow=256M\n"
               "[type no]\nvram=1G\ncuda=no\n");
    types = types_load(tree->root, &error);
    g_assert_no_error(error);
    type = g_ptr_array_index(types, 0);
    g_assert_true(type_has_cuda(type, "nvidia"));
    g_assert_false(type_has_cuda(type, "amdgpu"));
    g_assert_false(type_has_cuda(type, NULL));
    g_assert_cmpuint(type_window(type, "nvidia"), ==, 4096 * MIB);
    type = g_ptr_array_index(types, 1);
    g_assert_true(type_has_cuda(type, "nvidia"));
    g_assert_false(type_has_cuda(type, "amdgpu"));
    g_assert_cmpuint(type_window(type, "nvidia"), ==, 256 * MIB);
    type = g_ptr_array_index(types, 2);
    g_assert_false(type_has_cuda(type, "nvidia"));
    g_assert_cmpuint(type_window(type, "nvidia"), ==, 256 * MIB);
}

static void test_type_values(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) types = NULL;
    g_autoptr(GError) error = NULL;
    const GpuType *type;

    tree_write(tree, "/etc/vgpu/types.d/10-a.conf",
               "# comment\n[type full-2.x]\ndescription = Two; three \nvram=2G\nwindow=64G\n"
               "weight=10000\ncap=1\npriority=15\ndisplay=1\nmax-instances=7\ngpu=1002:*, soft:x\n"
               "class=best-effort\ncompute=30\noversubscribe=1/4\ncpu=250%\nmemory=4G\n"
               "[type free]\nvram=1G\nmemory=infinity\n");
    types = types_load(tree->root, &error);
    g_assert_no_error(error);
    type = g_ptr_array_index(types, 0);
    g_assert_cmpstr(type->description, ==, "Two; three");
    g_assert_cmpuint(type->vram.bytes, ==, 2048 * MIB);
    g_assert_cmpuint(type->window_bytes, ==, 64 * 1024 * MIB);
    g_assert_cmpuint(type->weight, ==, 10000);
    g_assert_cmpuint(type->cap, ==, 1);
    g_assert_cmpuint(type->priority, ==, 15);
    g_assert_cmpuint(type->display, ==, 1);
    g_assert_cmpuint(type->max_instances, ==, 7);
    g_assert_cmpstr(type->class, ==, "best-effort");
    g_assert_cmpuint(type->compute, ==, 30);
    g_assert_cmpuint(amount_resolve(&type->oversubscribe, 1024 * MIB), ==, 256 * MIB);
    g_assert_cmpuint(type->cpu, ==, 250);
    g_assert_cmpuint(type->memory, ==, 4096 * MIB);
    g_assert_cmpuint(((const GpuType *)g_ptr_array_index(types, 1))->memory, ==,
                     TYPE_MEMORY_INFINITY);
    g_assert_true(type_matches(type, "0000:01:00.0", "1002:73bf"));
    g_assert_true(type_matches(type, "soft:x", NULL));
    g_assert_false(type_matches(type, "soft:y", NULL));
    g_assert_false(type_matches(type, "0000:01:00.0", "8086:73bf"));
}

/*
 * /etc replaces /usr/lib by file name; files are read in the order of names; others are not read.
 */
static void test_override(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) types = NULL;
    g_autoptr(GError) error = NULL;

    tree_write(tree, "/usr/lib/vgpu/types.d/10-default.conf", "[type lib]\nvram=1/2\n");
    tree_write(tree, "/usr/lib/vgpu/types.d/20-more.conf", "[type more]\nvram=1/2\n");
    tree_write(tree, "/usr/lib/vgpu/types.d/30-gone.conf", "[type gone]\nvram=1/2\n");
    tree_write(tree, "/etc/vgpu/types.d/10-default.conf", "[type etc]\nvram=1/2\n");
    tree_write(tree, "/etc/vgpu/types.d/30-gone.conf", "");
    tree_write(tree, "/etc/vgpu/types.d/99.conf.dpkg-new", "nonsense");
    types = types_load(tree->root, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(types->len, ==, 2);
    g_assert_cmpstr(((const GpuType *)g_ptr_array_index(types, 0))->name, ==, "etc");
    g_assert_cmpstr(((const GpuType *)g_ptr_array_index(types, 1))->name, ==, "more");
}

/* Each text has one mistake; the message has the file's name, the group and @part. */
static void test_type_mistakes(void)
{
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"[type a]\n", "vram= is missing"},
        {"[type a]\nvram=\n", "vram= is not allowed"},
        {"[type a]\nvram=5/4\n", "vram=5/4 is not allowed: it must be a size of 1M or more"},
        {"[type a]\nvram=1G\nwindow=3M\n", "window=3M is not allowed: it must be a power of two"},
        {"[type a]\nvram=1G\nwindow=128G\n", "window=128G"},
        {"[type a]\nvram=1G\ncuda=1\n", "cuda=1 is not allowed: it must be yes or no"},
        {"[type a]\nvram=1G\ncuda=\n", "cuda= is not allowed"},
        {"[type a]\nvram=1G\nweight=0\n", "weight=0 is not allowed: it must be a whole number "
                                          "from 1 to 10000"},
        {"[type a]\nvram=1G\ncap=101\n", "cap=101 is not allowed"},
        {"[type a]\nvram=1G\ncap=50%\n", "cap=50% is not allowed"},
        {"[type a]\nvram=1G\npriority=16\n", "from 0 to 15"},
        {"[type a]\nvram=1G\nmax-instances=-1\n", "max-instances=-1 is not allowed"},
        {"[type a]\nvram=1G\ngpu= ; \n", "gpu="},
        {"[type a]\nvram=1G\nclass=best\n", "class=best is not allowed: it must be guaranteed"},
        {"[type a]\nvram=1G\ncompute=0\n", "compute=0 is not allowed: it must be a whole number "
                                           "from 1 to 100"},
        {"[type a]\nvram=1G\noversubscribe=all\n", "oversubscribe=all is not allowed: it must be a "
                                                   "size of 1M or more"},
        {"[type a]\nvram=1G\ncpu=2\n", "cpu=2 is not allowed: it must be per cent of one"},
        {"[type a]\nvram=1G\nmemory=\n", "memory= is not allowed"},
        {"[type a]\nvram=1G\nmemory=50%\n", "M, G, T are powers of 1024), or infinity"},
        {"[type a]\nvram=1G\ndescription=gr\303\274n\n", "printable ASCII"},
        {"[type a]\nvram=1G\ndescription=\\\\x\\q\n", "description"},
        {"[type a]\nvram=1G\nvrma=1G\n", "unknown key \"vrma\"; allowed are: description, vram"},
        {"[type a]\nvram=1G\nvram=2G\n", "line 3: vram in [type a] is given twice"},
        {"[type a]\nvram=1G\n[type a]\ncap=2\n", "line 3: [type a] is given twice"},
        {"[types a]\nvram=1G\n", "[types a]: unknown group; groups here are written [type NAME]"},
        {"[type]\nvram=1G\n", "unknown group"},
        {"[type Big]\nvram=1G\n", "\"Big\" can't be the name of a type"},
        {"[type -a]\nvram=1G\n", "can't be the name of a type"},
        {"[type a/b]\nvram=1G\n", "can't be the name of a type"},
        {"[type a2345678901234567890123456789012]\nvram=1G\n", "up to 31 of"},
        {"vram=1G\n", "10-a.conf"},
        {"nonsense\n", "10-a.conf"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Tree) tree = tree_new();
        g_autoptr(GPtrArray) types = NULL;
        g_autoptr(GError) error = NULL;

        tree_write(tree, "/etc/vgpu/types.d/10-a.conf", cases[i].text);
        types = types_load(tree->root, &error);
        g_assert_null(types);
        g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG);
        g_test_message("%s", error->message);
        assert_contains(error->message, "/etc/vgpu/types.d/10-a.conf");
        assert_contains(error->message, cases[i].part);
    }
}

static void test_type_twice(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) types = NULL;
    g_autoptr(GError) error = NULL;

    tree_write(tree, "/etc/vgpu/types.d/10-a.conf", "[type a]\nvram=1/2\n");
    tree_write(tree, "/usr/lib/vgpu/types.d/20-b.conf", "[type a]\nvram=1/2\n");
    types = types_load(tree->root, &error);
    g_assert_null(types);
    g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG);
    assert_contains(error->message, "10-a.conf");
    assert_contains(error->message, "20-b.conf");
}

static void test_gpus(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) gpus = NULL;
    g_autoptr(GError) error = NULL;
    const GpuEntry *entry;

    gpus = gpus_load(tree->root, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(gpus->len, ==, 0);
    g_clear_pointer(&gpus, g_ptr_array_unref);

    tree_write(tree, GPUS_CONF,
               "[gpu 0000:01:00.0]\nmode=shared\n[gpu 0000:02:00.0]\nmode=host\n"
               "[gpu soft:cpu]\nmode=shared\nvram=1G\n");
    gpus = gpus_load(tree->root, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(gpus->len, ==, 3);
    entry = g_ptr_array_index(gpus, 0);
    g_assert_cmpint(entry->mode, ==, GPU_MODE_SHARED);
    g_assert_cmpfloat(entry->overcommit, ==, 1);
    g_assert_cmpuint(entry->partitions, ==, 0);
    g_assert_cmpuint(entry->water_mark.bytes, ==, 0);
    g_assert_null(entry->pressure_command);
    g_assert_cmpuint(entry->vram_bytes, ==, 0);
    entry = g_ptr_array_index(gpus, 1);
    g_assert_cmpint(entry->mode, ==, GPU_MODE_HOST);
    entry = g_ptr_array_index(gpus, 2);
    g_assert_cmpstr(entry->name, ==, "soft:cpu");
    g_assert_cmpuint(entry->vram_bytes, ==, 1024 * MIB);
}

static void test_gpu_values(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) gpus = NULL;
    g_autoptr(GError) error = NULL;
    const GpuEntry *entry;

    tree_write(tree, GPUS_CONF,
               "[gpu 0000:01:00.0]\nmode=partitioned\npartitions=4\novercommit=1.5\n"
               "water-mark=1/8\npressure-command=/usr/bin/logger short\n"
               "[gpu 0000:02:00.0]\nmode=shared\novercommit=observed\n"
               "[gpu 0000:03:00.0]\nmode=shared\novercommit=observed,2.5\n");
    gpus = gpus_load(tree->root, &error);
    g_assert_no_error(error);
    entry = g_ptr_array_index(gpus, 0);
    g_assert_cmpint(entry->mode, ==, GPU_MODE_PARTITIONED);
    g_assert_cmpuint(entry->partitions, ==, 4);
    g_assert_cmpfloat(entry->overcommit, ==, 1.5);
    g_assert_cmpuint(entry->water_mark.denominator, ==, 8);
    g_assert_cmpstr(entry->pressure_command, ==, "/usr/bin/logger short");
    g_assert_false(entry->observed);
    entry = g_ptr_array_index(gpus, 1);
    g_assert_true(entry->observed);
    g_assert_cmpfloat(entry->overcommit, ==, 4);
    entry = g_ptr_array_index(gpus, 2);
    g_assert_true(entry->observed);
    g_assert_cmpfloat(entry->overcommit, ==, 2.5);
}

/* vgpud's file has precedence over the operator's, for its GPUs, and only for their modes. */
static void test_gpu_state(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) gpus = NULL;
    g_autoptr(GError) error = NULL;
    const GpuEntry *entry;

    tree_write(tree, GPUS_CONF,
               "[gpu 0000:01:00.0]\nmode=shared\nvram=2G\n[gpu 0000:02:00.0]\nmode=shared\n");
    tree_write(tree, GPUS_STATE,
               "[gpu 0000:01:00.0]\nmode=passthrough\n[gpu 0000:03:00.0]\nmode=partitioned\n"
               "partitions=2\n[gpu soft:gone]\nmode=shared\n");
    gpus = gpus_load(tree->root, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(gpus->len, ==, 3);
    entry = gpus_find(gpus, "0000:01:00.0");
    g_assert_cmpint(entry->mode, ==, GPU_MODE_PASSTHROUGH);
    g_assert_cmpuint(entry->vram_bytes, ==, 2048 * MIB);
    entry = gpus_find(gpus, "0000:02:00.0");
    g_assert_cmpint(entry->mode, ==, GPU_MODE_SHARED);
    entry = gpus_find(gpus, "0000:03:00.0");
    g_assert_cmpint(entry->mode, ==, GPU_MODE_PARTITIONED);
    g_assert_cmpuint(entry->partitions, ==, 2);
    g_clear_pointer(&gpus, g_ptr_array_unref);

    tree_write(tree, GPUS_STATE, "[gpu 0000:01:00.0]\nmode=shared\nvram=1G\n");
    g_assert_null(gpus_load(tree->root, &error));
    g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG);
    assert_contains(error->message, GPUS_STATE);
}

static void test_gpu_mistakes(void)
{
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"[gpu 01:00.0]\nmode=shared\n", "must be a full PCI address"},
        {"[gpu 0000:0A:00.0]\nmode=shared\n", "in lower case"},
        {"[gpu soft:]\nmode=shared\nvram=1G\n", "can't be the name of a GPU"},
        {"[gpu soft:a/b]\nmode=shared\nvram=1G\n", "can't be the name of a GPU"},
        {"[gpu 0000:01:00.0]\n", "it must be host (left alone), shared (cut"},
        {"[gpu 0000:01:00.0]\nmode=pass\n", "mode=pass is not allowed"},
        {"[gpu soft:a]\nmode=passthrough\nvram=1G\n", "a GPU without hardware can't be passed"},
        {"[gpu 0000:01:00.0]\nmode=shared\novercommit=0.5\n", "a number from 1 to 16"},
        {"[gpu 0000:01:00.0]\nmode=shared\novercommit=inf\n", "overcommit=inf is not allowed"},
        {"[gpu 0000:01:00.0]\nmode=shared\novercommit=observed,17\n",
         "overcommit=observed,17 is not allowed"},
        {"[gpu 0000:01:00.0]\nmode=shared\novercommit=observed2\n",
         "overcommit=observed2 is not allowed"},
        {"[gpu 0000:01:00.0]\nmode=shared\npartitions=0\n", "a whole number from 1 to 256"},
        {"[gpu 0000:01:00.0]\nmode=shared\nwater-mark=2/1\n", "water-mark=2/1 is not allowed"},
        {"[gpu 0000:01:00.0]\nmode=shared\npressure-command=kill\n", "with a full path"},
        {"[gpu 0000:01:00.0]\nmode=shared\nvram=1/2\n", "vram=1/2 is not allowed"},
        {"[gpu soft:a]\nmode=shared\n", "vram= is missing"},
        {"[gpu 0000:01:00.0]\nmode=shared\nweight=1\n", "allowed are: mode, vram"},
        {"[type a]\nvram=1G\n", "written [gpu NAME]"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Tree) tree = tree_new();
        g_autoptr(GPtrArray) gpus = NULL;
        g_autoptr(GError) error = NULL;

        tree_write(tree, GPUS_CONF, cases[i].text);
        gpus = gpus_load(tree->root, &error);
        g_assert_null(gpus);
        g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG);
        g_test_message("%s", error->message);
        assert_contains(error->message, GPUS_CONF);
        assert_contains(error->message, cases[i].part);
    }
}

static void put_card(Tree *tree, const char *address, const char *uuid)
{
    static const char *const names[] = {"vendor", "device", "class", "unique_id"};
    const char *const values[] = {"0x1002\n", "0x73bf\n", "0x030000\n", uuid};

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strdup_printf("/sys/bus/pci/devices/%s/%s", address, names[i]);

        tree_write(tree, path, values[i]);
    }
}

static const PciDevice *other_card;

static void take_other(const PciDevice *card, const char *was, void *data)
{
    g_assert_cmpstr(was, ==, "1002:73bf 1a2b");
    (void)data;
    other_card = card;
}

static void note_card(Tree *tree, const char *address)
{
    g_autoptr(GPtrArray) cards = g_ptr_array_new();
    g_autoptr(PciDevice) card = pci_device_read(tree->root, address);

    g_ptr_array_add(cards, card);
    other_card = NULL;
    g_assert_true(card_note(tree->root, cards, take_other, NULL, NULL));
}

static void assert_address(Tree *tree, const char *address)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = gpus_load(tree->root, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(entries->len, ==, address ? 1 : 0);
    if (address)
        g_assert_cmpstr(((const GpuEntry *)g_ptr_array_index(entries, 0))->name, ==, address);
}

/* A group goes by its card, wherever that is; and an address that has another card is told. */
static void test_gpus_by_card(void)
{
    g_autoptr(Tree) tree = tree_new();
    g_autoptr(GPtrArray) entries = NULL;
    g_autoptr(GError) error = NULL;

    tree_write(tree, "/etc/vgpu/gpus.conf", "[gpu uuid=1a2b]\nmode=shared\n");
    assert_address(tree, NULL);
    put_card(tree, "0000:02:00.0", "1A2B\n");
    assert_address(tree, "0000:02:00.0");
    put_card(tree, "0000:02:00.0", "1a2b\n");
    note_card(tree, "0000:02:00.0");
    g_assert_null(other_card);
    /* Passed through: its own driver, which knows the number, has it not. */
    put_card(tree, "0000:02:00.0", "");
    note_card(tree, "0000:02:00.0");
    g_assert_null(other_card);
    assert_address(tree, "0000:02:00.0");
    /* Moved. */
    put_card(tree, "0000:05:00.0", "1a2b\n");
    assert_address(tree, "0000:05:00.0");
    put_card(tree, "0000:02:00.0", "ffff\n");
    note_card(tree, "0000:02:00.0");
    g_assert_nonnull(other_card);
    /* Said twice. */
    tree_write(tree, "/etc/vgpu/gpus.conf",
               "[gpu uuid=1a2b]\nmode=shared\n[gpu 0000:05:00.0]\nmode=host\n");
    entries = gpus_load(tree->root, &error);
    g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG);
    g_clear_error(&error);
    /* A mistake is one although the card is not here. */
    tree_write(tree, "/etc/vgpu/gpus.conf", "[gpu uuid=none]\nmode=whole\n");
    entries = gpus_load(tree->root, &error);
    g_assert_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/units/sizes", test_sizes);
    g_test_add_func("/units/parts", test_parts);
    g_test_add_func("/units/cpu", test_cpu);
    g_test_add_func("/units/format", test_size_format);
    g_test_add_func("/types/defaults", test_type_defaults);
    g_test_add_func("/types/values", test_type_values);
    g_test_add_func("/types/cuda", test_type_cuda);
    g_test_add_func("/types/override", test_override);
    g_test_add_func("/types/mistakes", test_type_mistakes);
    g_test_add_func("/types/twice", test_type_twice);
    g_test_add_func("/gpus/values", test_gpus);
    g_test_add_func("/gpus/all-values", test_gpu_values);
    g_test_add_func("/gpus/state", test_gpu_state);
    g_test_add_func("/gpus/mistakes", test_gpu_mistakes);
    g_test_add_func("/units/gpus-by-card", test_gpus_by_card);
    return g_test_run();
}
