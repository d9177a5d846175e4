/* SPDX-License-Identifier: MIT */
/* Finds what is wrong in Slurm's configuration for slices, and says what to write. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/slurm/node/node.h"
#include "fleet/slurm/node/slurm_files.h"

/**
 * Check
 * @dir: of Slurm's files
 * @node: Slurm's name of this one
 */
typedef struct {
    HostRoot *root;
    char *dir;
    char *node;
    guint findings;
} Check;

G_GNUC_PRINTF(2, 3) static void note_finding(Check *check, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    printf("%s\n", text);
    check->findings++;
}

/* The text of one of Slurm's files; NULL: there is none. To be freed. */
static char *read_slurm_file(const Check *check, const char *name)
{
    g_autofree char *path = g_build_filename(check->dir, name, NULL);

    return root_read(check->root, path, NULL);
}

/* The value of KEY= in a file; the last counts. NULL: not there. */
static char *value_of(const char *text, const char *key)
{
    g_auto(GStrv) lines = slurm_files_lines(text);
    char *value = NULL;

    for (guint i = 0; lines[i]; i++) {
        if (g_ascii_strncasecmp(lines[i], key, strlen(key)) ||
            !strchr("= \t", lines[i][strlen(key)]))
            continue;
        g_free(value);
        value = slurm_line_value(lines[i], key);
    }
    return value;
}

static gboolean has_word(const char *list, const char *word)
{
    g_auto(GStrv) words = g_strsplit(list ? list : "", ",", -1);

    for (guint i = 0; words[i]; i++)
        if (!g_ascii_strcasecmp(words[i], word))
            return TRUE;
    return FALSE;
}

static void need_word(Check *check, const char *text, const char *key, const char *word,
                      const char *why)
{
    g_autofree char *value = value_of(text, key);

    if (!has_word(value, word))
        note_finding(check, "slurm.conf: %s=%s lacks %s: %s. Write %s=%s%s%s", key,
                     value ? value : "", word, why, key, value ? value : "",
                     value && *value ? "," : "", word);
}

/* The types of the cards in "gpu:a100:2,gpu:h20:1,shard:a100:9", each once, with spaces. */
static char *types_in(const char *gres, const char *of)
{
    g_auto(GStrv) words = g_strsplit(gres, ",", -1);
    g_autoptr(GString) types = g_string_new(NULL);

    for (guint i = 0; words[i]; i++) {
        g_auto(GStrv) parts = g_strsplit(words[i], ":", -1);

        if (!g_ascii_strcasecmp(parts[0], of) && g_strv_length(parts) == 3)
            g_string_append_printf(types, "%s%s", types->len ? " " : "", parts[1]);
    }
    return g_strdup(types->str);
}

/* Slurm numbers the node's cards in the order of the types here, and the map has its numbers. */
static void check_order(Check *check, const char *gres)
{
    static const char *const kinds[] = {"gpu", "shard"};
    g_autoptr(NodeCards) cards = node_cards_read(check->root, NULL);
    g_autoptr(GString) ours = g_string_new(NULL);

    for (guint i = 0; cards && i < NODE_CARDS_MAX && cards->models[i]; i++)
        if (!i || !g_str_equal(cards->models[i], cards->models[i - 1]))
            g_string_append_printf(ours, "%s%s", ours->len ? " " : "", cards->models[i]);
    for (guint i = 0; i < G_N_ELEMENTS(kinds) && ours->len; i++) {
        g_autofree char *types = types_in(gres, kinds[i]);

        if (*types && g_ascii_strcasecmp(types, ours->str))
            note_finding(
                check,
                "slurm.conf: Gres= of this node has the types of %s in the order \"%s\", and %s "
                "numbers the cards as \"%s\": jobs would get other cards than Slurm counts. "
                "Write the Gres= that vgpu-slurm gres-conf prints",
                kinds[i], types, NODE_CARDS, ours->str);
    }
}

/* A fence must be able to take one card of the node, and jobs to share the node. */
static void check_partitions(Check *check, const GStrv lines, const char *root_disabled,
                             gboolean is_all_roots)
{
    guint count = 0, no_root = 0, exclusive = 0;

    for (guint i = 0; lines[i]; i++) {
        g_autofree char *root = slurm_line_value(lines[i], "DisableRootJobs");
        g_autofree char *share = slurm_line_value(lines[i], "OverSubscribe");

        if (!g_str_has_prefix(lines[i], "PartitionName") ||
            !slurm_line_has_node(lines[i], "Nodes", check->node))
            continue;
        count++;
        no_root += !g_ascii_strcasecmp(root ? root : root_disabled ? root_disabled : "no", "yes");
        exclusive += share && !g_ascii_strcasecmp(share, "EXCLUSIVE");
    }
    if (count && no_root == count && is_all_roots)
        note_finding(check,
                     "slurm.conf: all partitions of this node have DisableRootJobs=YES, and "
                     "SlurmUser is root, so that vgpu-slurm health cannot fence a single card, and "
                     "closes the node instead. Write DisableRootJobs=NO for one of them");
    if (count && exclusive == count)
        note_finding(check,
                     "slurm.conf: all partitions of this node have OverSubscribe=EXCLUSIVE: each "
                     "job has the whole node, and cards are not shared. Write OverSubscribe=NO "
                     "for one of them");
}

static void check_slurm_conf(Check *check)
{
    g_autofree char *text = read_slurm_file(check, "slurm.conf"), *types = NULL, *prolog = NULL,
                    *no_root = NULL, *user = NULL;
    g_auto(GStrv) lines = slurm_files_lines(text);

    if (!text) {
        note_finding(check, "%s/slurm.conf cannot be read", check->dir);
        return;
    }
    types = value_of(text, "GresTypes");
    if (has_word(types, "mps"))
        note_finding(check,
                     "slurm.conf: GresTypes has mps beside shard: Slurm then gives whole cards to "
                     "jobs while "
                     "others have slices of them. Remove mps");
    need_word(check, text, "GresTypes", "gpu", "whole cards are not counted");
    need_word(check, text, "GresTypes", "shard", "slices are not counted");
    need_word(check, text, "SelectType", "select/cons_tres", "only it knows cards");
    need_word(check, text, "SelectTypeParameters", "MULTIPLE_SHARING_GRES_PJ",
              "a job gets slices of one card only");
    need_word(check, text, "JobSubmitPlugins", "vgpu", "--vgpu has no effect");
    need_word(check, text, "PrologFlags", "Alloc",
              "slices are made only when the first step starts");
    need_word(check, text, "TaskPlugin", "task/cgroup",
              "without it ConstrainDevices=yes of cgroup.conf has no effect, and a job can open "
              "every card of the node");
    prolog = value_of(text, "Prolog");
    if (!prolog || !*prolog)
        note_finding(check, "slurm.conf has no Prolog=, so nobody makes slices. Write "
                            "Prolog=/usr/lib/mdev-vgpu/slurm/prolog");
    for (guint i = 0; lines[i]; i++) {
        g_autofree char *gres = slurm_line_value(lines[i], "Gres");

        if (gres && slurm_line_has_node(lines[i], "NodeName", check->node))
            check_order(check, gres);
    }
    no_root = value_of(text, "DisableRootJobs");
    user = value_of(text, "SlurmUser");
    check_partitions(check, lines, no_root, !user || g_str_equal(user, "root"));
}

/* One file serves the whole cluster, so only the lines of this node count. */
static gboolean is_of_node(const Check *check, const char *line)
{
    g_autofree char *nodes = slurm_line_value(line, "NodeName");

    return !nodes || slurm_line_has_node(line, "NodeName", check->node);
}

/* The lines of this node with Name=NAME; the others are empty, so that numbers stay. */
static GStrv gres_lines(const Check *check, const char *text, const char *name)
{
    GStrv lines = slurm_files_lines(text);

    for (guint i = 0; lines[i]; i++) {
        g_autofree char *has = slurm_line_value(lines[i], "Name");

        if (!has || g_ascii_strcasecmp(has, name) || !is_of_node(check, lines[i]))
            lines[i][0] = 0;
    }
    return lines;
}

/* AutoDetect= of this node's own lines, or else of all; to be freed. */
static char *autodetect_of(const Check *check, const char *text)
{
    g_auto(GStrv) lines = slurm_files_lines(text);
    char *all = NULL, *own = NULL;

    for (guint i = 0; lines[i]; i++) {
        g_autofree char *value = slurm_line_value(lines[i], "AutoDetect");
        g_autofree char *nodes = slurm_line_value(lines[i], "NodeName");
        char **which = nodes ? &own : &all;

        if (!value || !is_of_node(check, lines[i]))
            continue;
        g_free(*which);
        *which = g_steal_pointer(&value);
    }
    if (!own)
        return all;
    g_free(all);
    return own;
}

/* Slurm pairs a card's shards with the card by the name of the file alone. */
static void check_pairs(Check *check, const GStrv gpus, const GStrv shards)
{
    g_autoptr(GHashTable) cards = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; gpus[i]; i++) {
        g_autofree char *one = slurm_line_value(gpus[i], "File");
        g_autofree char *many = slurm_line_value(gpus[i], "MultipleFiles");
        g_auto(GStrv) files = slurm_list_expand(one ? one : many ? many : "");

        for (guint j = 0; files[j]; j++)
            g_hash_table_add(cards, g_strdup(files[j]));
    }
    for (guint i = 0; shards[i]; i++) {
        g_autofree char *list = slurm_line_value(shards[i], "File");
        g_auto(GStrv) files = slurm_list_expand(list ? list : "");

        for (guint j = 0; files[j]; j++)
            if (!g_hash_table_contains(cards, files[j]))
                note_finding(
                    check,
                    "gres.conf, line %u: no line Name=gpu of this node has File=%s, so Slurm does "
                    "not know whose shards these are. Write the same File= for a card and its "
                    "shards",
                    i + 1, files[j]);
    }
}

static gboolean any_line(const GStrv lines)
{
    for (guint i = 0; lines[i]; i++)
        if (*lines[i])
            return TRUE;
    return FALSE;
}

static void check_gres_conf(Check *check)
{
    g_autofree char *text = read_slurm_file(check, "gres.conf");
    g_autofree char *detect = autodetect_of(check, text);
    g_auto(GStrv) gpus = gres_lines(check, text, "gpu"), shards = gres_lines(check, text, "shard"),
                  mps = gres_lines(check, text, "mps");

    if (!any_line(shards)) {
        note_finding(check,
                     "gres.conf has no line Name=shard for this node. Run vgpu-slurm gres-conf %s",
                     g_str_equal(check->dir, SLURM_FILES_CACHE)
                         ? "--write, and put what it prints into slurmctld's gres.conf"
                         : "--write");
        return;
    }
    if (any_line(mps))
        note_finding(check, "gres.conf has Name=mps beside shards. Remove those lines");
    for (guint i = 0; gpus[i]; i++) {
        g_autofree char *many = slurm_line_value(gpus[i], "MultipleFiles");

        if (many)
            note_finding(check,
                         "gres.conf has MultipleFiles=, and Slurm then discards the card's shards. "
                         "Write File= with the same node for the card and its shards");
    }
    if (detect && g_ascii_strcasecmp(detect, "off"))
        note_finding(
            check,
            "gres.conf has AutoDetect=%s for this node, and what it finds takes the place of the "
            "cards' File=. Write NodeName=%s AutoDetect=off",
            detect, check->node);
    check_pairs(check, gpus, shards);
}

static void check_other_files(Check *check)
{
    g_autofree char *stack = read_slurm_file(check, "plugstack.conf");
    g_autofree char *cgroup = read_slurm_file(check, "cgroup.conf");
    g_autofree char *constrain = value_of(cgroup, "ConstrainDevices");

    check_gres_conf(check);
    if (!stack || !strstr(stack, "spank_vgpu.so"))
        note_finding(check,
                     "plugstack.conf does not name spank_vgpu.so, so srun knows no --vgpu. Write "
                     "required spank_vgpu.so");
    if (!constrain || g_ascii_strcasecmp(constrain, "yes"))
        note_finding(
            check, "cgroup.conf lacks ConstrainDevices=yes: a job can open every card of the node");
}

/* In a partition that vgpu.conf has, or, if it has none, in any. */
static gboolean is_allowed(const FleetConf *conf, FleetClass class)
{
    for (unsigned i = 0; i < conf->partition_count; i++)
        if (!conf->partitions[i].classes || conf->partitions[i].classes & 1u << class)
            return TRUE;
    return !conf->partition_count;
}

/* Slurm counts the floor of each slice, and vgpud all of it. */
static void check_floor(Check *check, const AgentCard *card, FleetClass class, guint floor)
{
    guint64 counted = card->promisable * floor / 100;
    guint hundredths = (10000 + floor - 1) / floor;

    if (counted + 1 < card->vram)
        note_finding(
            check,
            "Slurm promises only %u %% of a slice of class %s, and vgpud refuses what is then too "
            "much for GPU %s. Write overcommit=%u.%02u in its group of gpus.conf, or leave %s out "
            "of "
            "classes= in vgpu.conf",
            floor, fleet_class_word(class), card->gpu, hundredths / 100, hundredths % 100,
            fleet_class_word(class));
}

/* Only a node has vgpud; that it does not answer there is health's to say. */
static void check_overcommit(Check *check, const FleetConf *conf)
{
    g_autoptr(GPtrArray) cards = NULL;
    g_autofree char *why = NULL;

    if (conf->classes[FLEET_CLASS_GUARANTEED].floor < 100)
        note_finding(
            check,
            "%s has a floor= of guaranteed, and vgpud never promises a card's memory twice "
            "to that class. Remove it",
            NODE_CONF);
    if (agent_list_cards(&cards, &why) != AGENT_OK)
        return;
    for (guint i = 0; i < cards->len; i++)
        for (FleetClass class = FLEET_CLASS_BURSTABLE; class < FLEET_CLASSES; class ++)
            if (is_allowed(conf, class))
                check_floor(check, cards->pdata[i], class, conf->classes[class].floor);
}

static void check_vgpu_conf(Check *check)
{
    g_autofree FleetConf *conf = g_new0(FleetConf, 1);
    g_autoptr(GError) error = NULL;

    if (!node_conf_read(check->root, conf, &error)) {
        note_finding(check, "%s", error->message);
        return;
    }
    check_overcommit(check, conf);
    if (!conf->model_count)
        note_finding(
            check,
            "%s names no model, so --vgpu=half and share= are refused. Write [model NAME] and "
            "vram=MIB",
            NODE_CONF);
}

/* Who is in that group opens every card beside the guarded door. */
static void check_render_group(Check *check)
{
    struct group *render = getgrnam("render");

    for (char **member = render ? render->gr_mem : NULL; member && *member; member++)
        note_finding(
            check,
            "user %s is in the group render and can open every card of this node. Run gpasswd -d "
            "%s render",
            *member, *member);
}

int node_check(HostRoot *root)
{
    Check check = {root, slurm_files_dir(root), node_name(), 0};

    check_slurm_conf(&check);
    check_other_files(&check);
    check_vgpu_conf(&check);
    check_render_group(&check);
    if (!check.findings)
        printf("nothing is wrong\n");
    g_free(check.dir);
    g_free(check.node);
    return check.findings ? EXIT_FAILURE : EXIT_SUCCESS;
}
