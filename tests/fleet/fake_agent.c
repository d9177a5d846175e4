/* SPDX-License-Identifier: MIT */
/*
 * vgpud for vgpu-slurm's tests: a ledger in a folder, one file for each slice. FAKE/mode may have
 * "away", "unhealthy", "full", "lent", "slow", or "stop": it then stops itself after the first
 * slice, to be killed. FAKE/capacity: MiB of each card. FAKE/overcommit: how often they may be
 * promised, else 4 times. FAKE/bad: addresses of cards that are broken; FAKE/passing: of such as
 * may recover. FAKE/offenders: names of slices whose own engines die. FAKE/cards: the node's cards,
 * one a line, as "ADDRESS MODEL MIB NODE"; else two of a model.
 */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fleet/slurm/node/agent_watch.h"

#define SLOW_US 300000

/* The folder of this node. */
static const char *fake(void)
{
    const char *dir = g_getenv("VGPU_FAKE");

    return dir ? dir : "/run/fake-agent";
}

static char *in_fake(const char *name)
{
    return g_strconcat(fake(), name, NULL);
}

static gboolean mode_is(const char *word)
{
    g_autofree char *path = in_fake("/mode"), *mode = NULL;

    return g_file_get_contents(path, &mode, NULL, NULL) && g_str_has_prefix(mode, word);
}

static AgentResult trouble(char **why)
{
    if (mode_is("away")) {
        *why = g_strdup("vgpud does not answer");
        return AGENT_AWAY;
    }
    if (mode_is("full")) {
        *why = g_strdup("cannot write: no space left on device");
        return AGENT_FAILED;
    }
    if (mode_is("unhealthy")) {
        *why = g_strdup("card 0000:01:00.0 is not healthy");
        return AGENT_UNHEALTHY;
    }
    return AGENT_OK;
}

static int lock(void)
{
    int fd = open(fake(), O_RDONLY | O_DIRECTORY);

    if (fd < 0 || flock(fd, LOCK_EX))
        exit(EXIT_FAILURE);
    return fd;
}

/* MiB that others have of a card. A slice's file is "OWNER,PART" with "GPU MIB". */
static guint64 taken(const char *gpu, const char *except)
{
    g_autofree char *slices_dir = in_fake("/slices");
    g_autoptr(GDir) dir = g_dir_open(slices_dir, 0, NULL);
    const char *name;
    guint64 sum = 0;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(fake(), "slices", name, NULL), *text = NULL;
        char address[64];
        unsigned mib;

        if (!g_str_equal(name, except) && g_file_get_contents(path, &text, NULL, NULL) &&
            sscanf(text, "%63s %u", address, &mib) == 2 && g_str_equal(address, gpu))
            sum += mib;
    }
    return sum;
}

static guint64 capacity(void)
{
    g_autofree char *path = in_fake("/capacity"), *text = NULL;

    g_file_get_contents(path, &text, NULL, NULL);
    return text ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static guint64 overcommit(void)
{
    g_autofree char *path = in_fake("/overcommit"), *text = NULL;

    g_file_get_contents(path, &text, NULL, NULL);
    return text ? g_ascii_strtoull(text, NULL, 10) : 4;
}

static guint64 mib_of(const AgentSlice *slice)
{
    return slice->request->kind == FLEET_SIZE_FULL ? capacity()
                                                   : (guint64)slice->request->size * slice->tasks;
}

static gboolean file_has(const char *file, const char *gpu)
{
    g_autofree char *path = in_fake(file), *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) && strstr(text, gpu);
}

static gboolean is_bad(const char *gpu)
{
    return file_has("/bad", gpu) || file_has("/passing", gpu);
}

static GStrv offenders(void)
{
    g_autofree char *path = in_fake("/offenders"), *text = NULL;

    return g_strsplit(g_file_get_contents(path, &text, NULL, NULL) ? text : "", "\n", -1);
}

static char *name_of(const char *owner, const AgentSlice *slice)
{
    return g_strdup_printf("%s,%u", owner, slice->part);
}

AgentResult agent_wait_for_guards(const GPtrArray *doors, char **why)
{
    (void)doors;
    (void)why;
    return AGENT_OK;
}

AgentResult agent_create_slices(const char *owner, const AgentSlice *slices, guint count,
                                GPtrArray **doors, char **why)
{
    AgentResult result = trouble(why);
    int fd = lock();

    for (guint i = 0; i < count && result == AGENT_OK; i++) {
        g_autofree char *name = name_of(owner, &slices[i]);

        if (is_bad(slices[i].gpu)) {
            *why = g_strdup_printf("GPU %s is not healthy", slices[i].gpu);
            result = AGENT_UNHEALTHY;
        } else if (taken(slices[i].gpu, name) + mib_of(&slices[i]) > capacity()) {
            *why = g_strdup_printf("GPU %s has no room", slices[i].gpu);
            result = AGENT_NO_ROOM;
        } else if (mode_is("lent")) {
            *why = g_strdup_printf("the memory of GPU %s is lent", slices[i].gpu);
            result = AGENT_LENT;
        }
    }
    *doors = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    for (guint i = 0; i < count && result == AGENT_OK; i++) {
        g_autofree char *name = name_of(owner, &slices[i]);
        g_autofree char *path = g_build_filename(fake(), "slices", name, NULL);
        g_autofree char *text = g_strdup_printf(
            "%s %u%s\n", slices[i].gpu, (guint)mib_of(&slices[i]),
            slices[i].request->class == FLEET_CLASS_BEST_EFFORT ? " best-effort" : "");
        GStrv door = g_new0(char *, 5);

        g_file_set_contents(path, text, -1, NULL);
        if (mode_is("slow"))
            g_usleep(SLOW_US);
        if (mode_is("stop")) {
            g_autofree char *stopped = in_fake("/stopped");

            g_file_set_contents(stopped, "", 0, NULL);
            raise(SIGSTOP);
        }
        door[0] = g_strdup_printf("VGPU_DEVICE=mdev-vgpu.org/slice=%s", name);
        door[1] = g_strdup_printf("VGPU_CARD=%s", slices[i].gpu);
        door[2] = g_strdup("LD_LIBRARY_PATH=/run/fake-agent/lib");
        door[3] = g_strdup("APPTAINER_BINDPATH=/run/fake-agent/lib");
        g_ptr_array_add(*doors, door);
    }
    close(fd);
    return result;
}

AgentResult agent_release_owner(const char *owner, AgentTotals *totals, char **why)
{
    g_autofree char *slices_dir = in_fake("/slices");
    g_autoptr(GDir) dir = g_dir_open(slices_dir, 0, NULL);
    g_autofree char *prefix = g_strdup_printf("%s,", owner);
    AgentResult result = trouble(why);
    const char *name;
    int fd = lock();

    *totals = (AgentTotals){.gpu_seconds = 1.5, .vram_peak = G_GUINT64_CONSTANT(1) << 30};
    while (result == AGENT_OK && dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(fake(), "slices", name, NULL);

        if (!g_str_has_prefix(name, prefix))
            continue;
        if (mode_is("slow"))
            g_usleep(SLOW_US);
        g_unlink(path);
    }
    close(fd);
    return result;
}

static char *cards(void)
{
    g_autofree char *path = in_fake("/cards");
    char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL)
               ? text
               : g_strdup("0000:01:00.0 a100-80g 81920 /run/fleet/dev/card0\n"
                          "0000:02:00.0 a100-80g 81920 /run/fleet/dev/card1\n");
}

AgentResult agent_list_cards(GPtrArray **list, char **why)
{
    AgentResult result = trouble(why);
    g_autofree char *text = cards();
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    *list = g_ptr_array_new_with_free_func(agent_card_free);
    for (guint i = 0; lines[i]; i++) {
        char address[64], model[64], node[256];
        AgentCard *card;
        guint mib;

        if (sscanf(lines[i], "%63s %63s %u %255s", address, model, &mib, node) != 4)
            continue;
        card = g_new0(AgentCard, 1);
        *card = (AgentCard){.gpu = g_strdup(address),
                            .model = g_strdup(model),
                            .vram = mib,
                            .promisable = overcommit() * mib,
                            .nodes = g_strsplit(node, " ", -1),
                            .cpus = g_strdup(""),
                            .links = g_strdup("")};
        g_ptr_array_add(*list, card);
    }
    return result;
}

/* Of a full disk vgpud knows nothing until it writes. */
AgentResult agent_list_health(GPtrArray **cards, char **why)
{
    AgentResult result = mode_is("full") ? AGENT_OK : trouble(why);

    *cards = g_ptr_array_new_with_free_func(agent_health_free);
    for (guint i = 0; i < 8; i++) {
        AgentHealth *health = g_new0(AgentHealth, 1);

        health->gpu = g_strdup_printf("0000:0%u:00.0", i + 1);
        health->healthy = !is_bad(health->gpu);
        health->broken = file_has("/bad", health->gpu);
        health->offenders = offenders();
        health->why = g_strdup(health->healthy ? "" : "it has uncorrected errors");
        g_ptr_array_add(*cards, health);
    }
    return result;
}

/* A slice's age is its file's. */
AgentResult agent_list_owned(GPtrArray **slices, char **why)
{
    g_autofree char *slices_dir = in_fake("/slices");
    g_autoptr(GDir) dir = g_dir_open(slices_dir, 0, NULL);
    AgentResult result = trouble(why);
    const char *name;

    *slices = g_ptr_array_new_with_free_func(agent_owned_free);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(fake(), "slices", name, NULL), *text = NULL;
        AgentOwned *owned = g_new0(AgentOwned, 1);
        char address[64] = "", class[64] = "";
        unsigned mib = 0;
        GStatBuf status = {0};

        g_stat(path, &status);
        g_file_get_contents(path, &text, NULL, NULL);
        sscanf(text ? text : "", "%63s %u %63s", address, &mib, class);
        owned->uuid = g_strdup(name);
        owned->owner = g_strndup(name, strcspn(name, ","));
        owned->gpu = g_strdup(address);
        owned->since = status.st_mtime;
        owned->best_effort = !strcmp(class, "best-effort");
        owned->used = (guint64)mib << 20;
        g_ptr_array_add(*slices, owned);
    }
    return result;
}
