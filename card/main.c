/* SPDX-License-Identifier: MIT */
#include "card.h"
#include "numbers.h"
#include "program.h"
#include "vulkan.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define ABILITIES "abilities"
#define TRY       "try"
/* Enough for loading a driver for the first time, on a slow machine. */
#define ABILITIES_LIMIT_S 60

/* The command line. */
static struct {
    char *gpu;
    char *build;
    char **guard_env;
    int rounds;
    char *json;
    char *page;
    gboolean version;
} options = {.rounds = 3};

static const GOptionEntry entries[] = {
    {"gpu", 'g', 0, G_OPTION_ARG_STRING, &options.gpu,
     "the GPU whose Vulkan name contains TEXT (the first)", "TEXT"},
    {"rounds", 'r', 0, G_OPTION_ARG_INT, &options.rounds, "how often each speed is measured (3)",
     "N"},
    {"json", 'j', 0, G_OPTION_ARG_FILENAME, &options.json,
     "write all results as JSON to FILE; -: print them instead of the page", "FILE"},
    {"page", 'p', 0, G_OPTION_ARG_FILENAME, &options.page, "write the page to FILE, too", "FILE"},
    {"build", 0, 0, G_OPTION_ARG_FILENAME, &options.build,
     "use the programs built in DIR instead of the installed ones", "DIR"},
    {"guard-env", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.guard_env,
     "a variable for vgpu-guard's renderer", "NAME=VALUE"},
    {"version", 'V', 0, G_OPTION_ARG_NONE, &options.version, "print the version", NULL},
    {0},
};

/* vgpu-card itself, as another process; its output, to be freed. */
static char *run_self(const char *verb, const char *word, const char *next, GError **error)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", error);
    g_auto(GStrv) env = g_get_environ();
    const char *argv[] = {self, verb, word, next, NULL};
    const ProgramSpec spec = {argv, (const char *const *)env, ABILITIES_LIMIT_S, -1};

    return self ? program_run(&spec, error) : NULL;
}

/* The sheet's beginning. */
static JsonObject *ask_driver(GError **error)
{
    g_autofree char *text = run_self(ABILITIES, options.gpu, NULL, error);

    return text ? object_of(text, error) : NULL;
}

static void try_sharing(Card *card)
{
    for (guint i = 0; i < NUM_SHARING_TRIES; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *number = g_strdup_printf("%u", i);
        g_autofree char *text = run_self(TRY, number, options.gpu, &error);

        ability_add(card_list(card, "abilities"), sharing_tries[i].name, text != NULL,
                    text ? "tried" : error->message, sharing_tries[i].use);
    }
}

/* The last processor of those that this process may run on. */
static int last_processor(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return -1;
    for (int i = CPU_SETSIZE - 1; i >= 0; i--) {
        if (CPU_ISSET((size_t)i, &set))
            return i;
    }
    return -1;
}

static guint64 largest_heap(JsonObject *gpu)
{
    JsonArray *heaps = json_object_get_array_member(gpu, "heaps");
    gint64 most = 0;

    for (guint i = 0; i < json_array_get_length(heaps); i++)
        most =
            MAX(most, json_object_get_int_member(json_array_get_object_element(heaps, i), "mib"));
    return (guint64)most << 20;
}

static void look_at_gpu(Card *card)
{
    JsonObject *gpu = json_object_get_object_member(card->sheet, "gpu");

    card->name = g_strdup(json_object_get_string_member(gpu, "name"));
    card->software = g_str_equal(json_object_get_string_member(gpu, "type"), "software");
    card->address = g_strdup(
        card->software ? "soft:card"
                       : json_object_get_string_member_with_default(gpu, "address", "soft:card"));
    card->memory = largest_heap(gpu);
    card->processor = card->software ? last_processor() : -1;
}

/* vgpuctl doctor's findings for the host; it needs no vgpud. */
static void ask_doctor(Card *card)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = card_tool(card, TOOL_DOCTOR, &error);
    /* It exits with 1 if there are problems, and prints them anyway. */
    const char *argv[] = {"/bin/sh", "-c", "\"$0\" doctor -o json || :", path, NULL};
    g_auto(GStrv) env = g_get_environ();
    const ProgramSpec spec = {argv, (const char *const *)env, ABILITIES_LIMIT_S, -1};
    g_autofree char *text = path ? program_run(&spec, &error) : NULL;
    g_autoptr(JsonNode) node = text ? json_from_string(text, &error) : NULL;

    if (node && JSON_NODE_HOLDS_ARRAY(node))
        json_object_set_array_member(card->sheet, "host", json_node_dup_array(node));
    else
        card_failed(
            card, "the host",
            error ? g_steal_pointer(&error)
                  : g_error_new(G_IO_ERROR, G_IO_ERROR_FAILED, "vgpuctl doctor said no JSON"));
}

static gboolean write_results(const Card *card, GError **error)
{
    g_autoptr(JsonNode) node = json_node_alloc();
    g_autofree char *page = page_of(card->sheet);
    g_autofree char *json = NULL;

    json_node_init_object(node, card->sheet);
    json = json_to_string(node, TRUE);
    if (g_strcmp0(options.json, "-") == 0)
        puts(json);
    else
        fputs(page, stdout);
    return (!options.json || g_str_equal(options.json, "-") ||
            g_file_set_contents(options.json, json, -1, error)) &&
           (!options.page || g_file_set_contents(options.page, page, -1, error));
}

static gboolean run_measurements(GError **error)
{
    Card card = {
        .build = options.build, .guard_env = options.guard_env, .rounds = (guint)options.rounds};

    card.sheet = ask_driver(error);
    if (!card.sheet)
        return FALSE;
    json_object_set_string_member(card.sheet, "version", VGPU_VERSION);
    look_at_gpu(&card);
    if (!machine_describe(&card, error))
        return FALSE;
    try_sharing(&card);
    speed_measure(&card);
    shares_measure(&card);
    ask_doctor(&card);
    verdict_reach(&card);
    return write_results(&card, error);
}

static gboolean parse_options(int *argc, char ***argv, GError **error)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);

    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_summary(
        context,
        "Measures a GPU and its Vulkan driver, and mdev-vgpu on it, on the host itself.\n"
        "Needs neither root nor the kernel module, and changes nothing. Takes some minutes,\n"
        "during which nothing else should use the GPU.");
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (*argc > 1 || options.rounds < 1) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "%s",
                    *argc > 1 ? "unexpected argument" : "--rounds must be 1 or more");
        return FALSE;
    }
    return TRUE;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;

    /* In a process of its own, see vulkan.h. */
    if (argc > 1 && g_str_equal(argv[1], ABILITIES))
        return vulkan_main(argv[2]);
    if (argc > 2 && g_str_equal(argv[1], TRY))
        return sharing_main((guint)g_ascii_strtoull(argv[2], NULL, 10), argv[3]);
    /* A failed program is reported with its own message. */
    signal(SIGPIPE, SIG_IGN);
    if (!parse_options(&argc, &argv, &error)) {
        g_printerr("vgpu-card: %s\n", error->message);
        return 2;
    }
    if (options.version) {
        puts("vgpu-card " VGPU_VERSION);
        return 0;
    }
    if (run_measurements(&error))
        return 0;
    g_printerr("vgpu-card: %s\n", error->message);
    return 1;
}
