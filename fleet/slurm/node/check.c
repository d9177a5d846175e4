/* SPDX-License-Identifier: MIT */
/* Finds what is wrong in Slurm's configuration for slices, and says what to write. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/slurm/node/node.h"

#define SLURM_DIR "/etc/slurm/"

typedef struct {
    HostRoot *root;
    guint findings;
} Check;

G_GNUC_PRINTF(2, 3) static void found(Check *check, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    printf("%s\n", text);
    check->findings++;
}

/* The value of KEY= in a file's lines, in any case of letters; the last counts. NULL: not there. */
static char *value_of(const char *text, const char *key)
{
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    gsize length = strlen(key);
    char *value = NULL;

    for (guint i = 0; lines[i]; i++) {
        char *line = g_strchug(lines[i]);

        if (g_ascii_strncasecmp(line, key, length) || line[length] != '=')
            continue;
        g_free(value);
        value = g_strndup(line + length + 1, strcspn(line + length + 1, "# \t"));
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
        found(check, "slurm.conf: %s=%s lacks %s: %s. Write %s=%s%s%s", key, value ? value : "",
              word, why, key, value ? value : "", value && *value ? "," : "", word);
}

static void check_slurm_conf(Check *check)
{
    g_autofree char *text = root_read(check->root, SLURM_DIR "slurm.conf", NULL), *types = NULL,
                    *prolog = NULL;

    if (!text) {
        found(check, SLURM_DIR "slurm.conf cannot be read");
        return;
    }
    types = value_of(text, "GresTypes");
    if (has_word(types, "mps"))
        found(check, "slurm.conf: GresTypes has mps beside shard: Slurm then gives whole cards to "
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
        found(check, "slurm.conf has no Prolog=, so nobody makes slices. Write "
                     "Prolog=/usr/lib/mdev-vgpu/slurm/prolog");
}

static void check_other_files(Check *check)
{
    g_autofree char *gres = root_read(check->root, SLURM_DIR "gres.conf", NULL);
    g_autofree char *stack = root_read(check->root, SLURM_DIR "plugstack.conf", NULL);
    g_autofree char *cgroup = root_read(check->root, SLURM_DIR "cgroup.conf", NULL);
    g_autofree char *constrain = value_of(cgroup, "ConstrainDevices");

    if (!gres || !strstr(gres, "Name=shard"))
        found(check, "gres.conf has no line Name=shard. Run vgpu-slurm gres-conf --write");
    if (gres && strstr(gres, "Name=mps"))
        found(check, "gres.conf has Name=mps beside shards. Remove those lines");
    if (gres && strstr(gres, "MultipleFiles="))
        found(check, "gres.conf has MultipleFiles=, and Slurm then discards the card's shards. "
                     "Write File= with "
                     "the same node for the card and its shards");
    if (!stack || !strstr(stack, "spank_vgpu.so"))
        found(check, "plugstack.conf does not name spank_vgpu.so, so srun knows no --vgpu. Write "
                     "required spank_vgpu.so");
    if (!constrain || g_ascii_strcasecmp(constrain, "yes"))
        found(check,
              "cgroup.conf lacks ConstrainDevices=yes: a job can open every card of the node");
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
        found(
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
        found(check,
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
        found(check, "%s", error->message);
        return;
    }
    check_overcommit(check, conf);
    if (!conf->model_count)
        found(check,
              "%s names no model, so --vgpu=half and share= are refused. Write [model NAME] and "
              "vram=MIB",
              NODE_CONF);
}

/* Who is in that group opens every card beside the guarded door. */
static void check_render_group(Check *check)
{
    struct group *render = getgrnam("render");

    for (char **member = render ? render->gr_mem : NULL; member && *member; member++)
        found(check,
              "user %s is in the group render and can open every card of this node. Run gpasswd -d "
              "%s render",
              *member, *member);
}

int node_check(HostRoot *root)
{
    Check check = {root, 0};

    check_slurm_conf(&check);
    check_other_files(&check);
    check_vgpu_conf(&check);
    check_render_group(&check);
    if (!check.findings)
        printf("nothing is wrong\n");
    return check.findings ? EXIT_FAILURE : EXIT_SUCCESS;
}
