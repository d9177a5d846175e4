/* SPDX-License-Identifier: MIT */
/*
 * Before a job starts on the node: its slices, and the file for its steps. Killed at any point and
 * run again it comes to the same, because vgpud gives the same owner the same slices and the file
 * is renamed into place.
 *
 * Any exit status but 0 drains the node and requeues the job. So it is 0 for whatever is the job's
 * fault, and 1 if the next job would fail as well.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <syslog.h>

#include "fleet/request/submit.h"
#include "fleet/slurm/node/agent.h"
#include "fleet/slurm/node/fence.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

/* A job that the ledger refuses so often within so many seconds is held. */
#define REFUSALS_MAX    3
#define REFUSAL_SECONDS 3600
#define REFUSALS        FLEET_JOBS_DIR "/refused"

/* A job that waits for memory, lent or short: at first, and doubled as often. */
#define LENT_SECONDS 60
#define LENT_DOUBLED 4

/* A job that still gets no card then ends, with the reason. */
#define RESTARTS_MAX 20

static char *file_of(const NodeJob *job)
{
    return g_strdup_printf(FLEET_JOBS_DIR "/%u", job->id);
}

/* The job's steps find no slice, and end with this sentence. */
static void close_door(HostRoot *root, const NodeJob *job, const char *why)
{
    g_autofree char *path = file_of(job), *line = g_strdelimit(g_strdup(why), "\n", ' ');
    g_autofree char *text = g_strconcat(JOB_FILE_VERSION "\n" JOB_FILE_REFUSED, line, "\n", NULL);

    root_write(root, path, text, 0600, NULL);
}

/*
 * Notes that the ledger refused what Slurm granted to the job. Whether it has done so too often:
 * then the next start would come to the same.
 */
static gboolean refused_too_often(HostRoot *root, guint job)
{
    g_autofree char *text = root_read(root, REFUSALS, NULL);
    g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
    gint64 now = g_get_monotonic_time() / G_USEC_PER_SEC, then;
    g_autoptr(GString) kept = g_string_new(NULL);
    guint count = 1, of;

    for (guint i = 0; lines[i]; i++) {
        if (sscanf(lines[i], "%" G_GINT64_FORMAT " %u", &then, &of) != 2 || then > now ||
            now - then >= REFUSAL_SECONDS)
            continue;
        g_string_append_printf(kept, "%s\n", lines[i]);
        count += of == job;
    }
    g_string_append_printf(kept, "%" G_GINT64_FORMAT " %u\n", now, job);
    root_write(root, REFUSALS, kept->str, 0600, NULL);
    return count >= REFUSALS_MAX;
}

static int drain_node(HostRoot *root, const NodeJob *job, FenceDrain until, const char *why)
{
    g_autofree char *node = node_name();
    g_autoptr(GError) error = NULL;

    close_door(root, job, why);
    node_note_well(root, FALSE);
    node_say(LOG_ERR, "job %u gets no slice: %s; the node drains", job->id, why);
    if (!fence_drain(node, until, why, &error))
        node_say(LOG_ERR, "%s", error->message);
    return EXIT_FAILURE;
}

static int put_back(HostRoot *root, const NodeJob *job, const char *why)
{
    close_door(root, job, why);
    node_say(LOG_WARNING, "job %u gets no slice now and goes back to the queue: %s", job->id, why);
    node_job_put_back(job->id, FALSE);
    return EXIT_SUCCESS;
}

/* Slurm does not count what is lent, so its next try may come to the same. */
static int put_off(HostRoot *root, const NodeJob *job, guint restarts, const char *why)
{
    guint seconds = LENT_SECONDS << MIN(restarts, LENT_DOUBLED);
    g_autofree char *says =
        g_strdup_printf("there is no room now, and it is tried again in %u minute%s: %s",
                        seconds / 60, seconds == 60 ? "" : "s", why);

    close_door(root, job, says);
    node_say(LOG_NOTICE, "job %u gets no slice now: %s", job->id, says);
    node_job_put_off(job->id, seconds, says);
    return EXIT_SUCCESS;
}

/* The node stays: a user's jobs must not be able to drain it. */
static int put_back_or_hold(HostRoot *root, const NodeJob *job, const char *why)
{
    if (!refused_too_often(root, job->id))
        return put_back(root, job, why);
    close_door(root, job, why);
    node_say(LOG_ERR, "job %u gets no slice: %s; the ledger and Slurm disagree, the job is held",
             job->id, why);
    node_job_put_back(job->id, TRUE);
    return EXIT_SUCCESS;
}

/* A fault of the job, which no other node would mend. */
static int reject_job(HostRoot *root, const NodeJob *job, const char *why)
{
    close_door(root, job, why);
    node_say(LOG_WARNING, "job %u gets no slice: %s", job->id, why);
    return EXIT_SUCCESS;
}

/* What the health check does not see, so that it must not resume the node. */
static int fail_node(HostRoot *root, const NodeJob *job, const char *why)
{
    return drain_node(root, job, FENCE_UNTIL_RESUMED, why);
}

/* vgpud has made or removed no slices. */
static int give_up(HostRoot *root, const NodeJob *job, guint restarts, AgentResult result,
                   const char *why)
{
    switch (result) {
    case AGENT_LENT:
        return put_off(root, job, restarts, why);
    case AGENT_REFUSED:
        return reject_job(root, job, why);
    case AGENT_NO_ROOM:
        return put_back_or_hold(root, job, why);
    case AGENT_AWAY:
    case AGENT_UNHEALTHY:
        return drain_node(root, job, FENCE_UNTIL_WELL, why);
    default:
        return fail_node(root, job, why);
    }
}

/*
 * Slurm numbers the cards that it knows, and CUDA those of NVIDIA's driver by their speed: only the
 * card's own name is right for both. It has none before the driver has opened it once. To be freed.
 */
static char *cuda_name_of(HostRoot *root, const char *address)
{
    g_autofree char *path = g_strdup_printf("/proc/driver/nvidia/gpus/%s/information", address);
    g_autofree char *text = root_read(root, path, NULL);
    const char *at = text ? strstr(text, "GPU UUID:") : NULL,
               *name = at ? strstr(at, "GPU-") : NULL;
    gsize length = name ? strspn(name, "GPU-0123456789abcdef") : 0;

    return length == strlen("GPU-00000000-0000-0000-0000-000000000000") ? g_strndup(name, length)
                                                                        : NULL;
}

/*
 * The job's user may read its file, for a shell that Slurm does not start. On a file system without
 * access lists only root can.
 */
static void let_user_read(HostRoot *root, const char *path, guint uid)
{
    /* As of acl_ea_entry in the kernel's posix_acl_xattr.h, in its order. */
    const struct {
        guint32 version;
        struct {
            guint16 tag;
            guint16 rights;
            guint32 id;
        } entries[5];
    } list = {2,
              {{0x01, 6, G_MAXUINT32},
               {0x02, 4, uid},
               {0x04, 0, G_MAXUINT32},
               {0x10, 4, G_MAXUINT32},
               {0x20, 0, G_MAXUINT32}}};
    g_autofree char *file = root_path(root, path, NULL);

    if (uid && setxattr(file, "system.posix_acl_access", &list, sizeof(list), 0))
        node_say(LOG_INFO, "only root can read %s: %s", file, g_strerror(errno));
}

static gboolean write_file(HostRoot *root, const NodeJob *job, const CardPromise *cards,
                           const AgentSlice *slices, const GPtrArray *doors, GError **error)
{
    g_autoptr(GString) text = g_string_new(JOB_FILE_VERSION "\n");
    g_autofree char *path = file_of(job);

    for (guint i = 0; i < doors->len; i++) {
        g_autofree char *lines = g_strjoinv("\n", doors->pdata[i]);
        g_autofree char *cuda = cuda_name_of(root, slices[i].gpu);

        g_string_append_printf(text, "card %u %u\n%s\n", cards[i].index, cards[i].tasks, lines);
        if (cuda)
            g_string_append_printf(text, "CUDA_VISIBLE_DEVICES=%s\n", cuda);
    }
    if (!root_write(root, path, text->str, 0600, error))
        return FALSE;
    let_user_read(root, path, job->uid);
    return TRUE;
}

/*
 * If the ledger has no room, a job may have left its slices here: Slurm counts them as free. So
 * those are removed, and then it is final.
 */
static AgentResult create_slices(HostRoot *root, const NodeJob *job, const AgentSlice *slices,
                                 guint count, GPtrArray **doors, char **why)
{
    g_autofree char *node = node_name();
    AgentResult result;
    int lock;

    for (gboolean again = FALSE;; again = TRUE) {
        lock = node_lock(root, FALSE);
        result = agent_create_slices(job->owner, slices, count, doors, why);
        node_unlock(lock);
        if ((result != AGENT_NO_ROOM && result != AGENT_LENT) || again)
            return result;
        node_release_lost(root, node, 0);
        g_clear_pointer(doors, g_ptr_array_unref);
        g_clear_pointer(why, g_free);
    }
}

/* The job was here before, on other cards, and left without an epilog. */
static gboolean is_stale(HostRoot *root, const NodeJob *job, const CardPromise *cards, guint count)
{
    g_autofree char *path = file_of(job), *text = root_read(root, path, NULL);
    guint found = 0, index, tasks;

    for (const char *at = text; at && (at = strstr(at, "\ncard ")); at++)
        if (sscanf(at, "\ncard %u %u", &index, &tasks) == 2 &&
            (found >= count || cards[found++].index != index))
            return TRUE;
    return found && found < count;
}

static int create_job_slices(HostRoot *root, const NodeJob *job, const FleetRequest *request,
                             const NodeGrant *grant, const NodeCards *known)
{
    const CardPromise *cards = grant->cards;
    guint count = grant->count;
    g_autofree AgentSlice *slices = g_new0(AgentSlice, count);
    g_autoptr(GPtrArray) doors = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *why = NULL;
    AgentResult result;

    for (guint i = 0; i < count; i++) {
        const char *address = known->addresses[cards[i].index];

        if (!address) {
            why = g_strdup_printf("%s has no card %u: run vgpu-slurm gres-conf --write", NODE_CARDS,
                                  cards[i].index);
            return fail_node(root, job, why);
        }
        if (node_card_is_other(known, cards[i].index, cards[i].model)) {
            why = g_strdup_printf("Slurm's card %u is of the type %s, and in %s it is %s, of "
                                  "another model: run vgpu-slurm gres-conf --write, and write its "
                                  "Gres= into slurm.conf",
                                  cards[i].index, cards[i].model, NODE_CARDS, address);
            return fail_node(root, job, why);
        }
        slices[i] =
            (AgentSlice){cards[i].index, address, cards[i].tasks, request, job->tenant, job->uid};
    }
    result = create_slices(root, job, slices, count, &doors, &why);
    /* Without the lock, for which health checks and other prologs wait. */
    if (result == AGENT_OK)
        result = agent_wait_for_guards(doors, &why);
    if (result != AGENT_OK)
        return give_up(root, job, grant->restarts, result, why);
    if (!write_file(root, job, cards, slices, doors, &error))
        return fail_node(root, job, error->message);
    return EXIT_SUCCESS;
}

/* slurmd has run the prolog now. A step that it starts all the same puts the job back. */
static int leave_lost(HostRoot *root, const NodeJob *job, const char *why)
{
    g_autofree char *path = file_of(job);
    g_autoptr(GError) error = NULL;

    node_say(LOG_INFO, "job %u gets no slice: %s", job->id, why);
    if (!root_write(root, path, JOB_FILE_LOST, 0600, &error))
        return fail_node(root, job, error->message);
    return EXIT_SUCCESS;
}

/* Seen of Slurm 24.11, of all jobs of a node at once, after slurmctld was killed. */
static int has_no_card(HostRoot *root, const NodeJob *job, const NodeGrant *grant)
{
    static const char why[] = "slurmctld has started it here without a card";

    if (grant->waits)
        return leave_lost(root, job, "slurmctld has it in its queue again");
    /* No step of it comes any more, so none must be told. */
    if (grant->over) {
        node_say(LOG_INFO, "job %u gets no slice: it has ended meanwhile", job->id);
        return EXIT_SUCCESS;
    }
    return grant->restarts < RESTARTS_MAX ? put_back(root, job, why) : reject_job(root, job, why);
}

/* Cards of a job that has the node alone, and on which a task of it would not fit. */
static void drop_unused(NodeGrant *grant)
{
    guint used = 0;

    for (guint i = 0; i < grant->count; i++)
        if (grant->cards[i].tasks)
            grant->cards[used++] = grant->cards[i];
    grant->count = used;
}

static int start_job(HostRoot *root, const NodeJob *job)
{
    g_autofree FleetConf *conf = g_new0(FleetConf, 1);
    g_autofree NodeGrant *grant = g_new0(NodeGrant, 1);
    g_autoptr(NodeCards) known = NULL;
    g_autoptr(GError) error = NULL;
    char sentence[FLEET_ERROR_MAX];
    FleetRequest request;
    g_autofree char *why = NULL;
    AgentResult result;
    AgentTotals totals;

    if (!fleet_request_read(job->text, &request))
        return reject_job(root, job, "its text is of another version, or not job_submit's");
    known = node_cards_read(root, &error);
    if (!known || !node_conf_read(root, conf, &error))
        return fail_node(root, job, error->message);
    if (!node_job_ask(job, grant, &error))
        return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT)
                   ? leave_lost(root, job, error->message)
                   : fail_node(root, job, error->message);
    if (!grant->count)
        return has_no_card(root, job, grant);
    if (!detail_check(grant->cards, grant->count, &request, &grant->counted, conf, sentence) ||
        !submit_allows(&request, conf, grant->partition, *grant->qos ? grant->qos : NULL, sentence))
        return reject_job(root, job, sentence);
    drop_unused(grant);
    if (is_stale(root, job, grant->cards, grant->count)) {
        if (node_job_has_steps(job->id))
            return put_back(root, job, "it runs here still, since an earlier start");
        result = agent_release_owner(job->owner, &totals, &why);
        if (result != AGENT_OK)
            return give_up(root, job, grant->restarts, result, why);
    }
    return create_job_slices(root, job, &request, grant, known);
}

/*
 * A job without a text of ours may have whole cards, which it asked Slurm for by itself. One that
 * has shards has lost its text: somebody has changed its "extra".
 */
static int start_without_text(HostRoot *root, const NodeJob *job)
{
    g_autofree NodeGrant *grant = g_new0(NodeGrant, 1);
    g_autoptr(GError) error = NULL;

    if (!g_getenv("SLURM_JOB_GPUS") || !node_job_ask(job, grant, &error))
        return EXIT_SUCCESS;
    for (guint i = 0; i < grant->count; i++)
        if (grant->cards[i].shards)
            return reject_job(root, job, "its extra, which said what it asks for, was changed");
    return EXIT_SUCCESS;
}

int node_prolog(HostRoot *root)
{
    g_autoptr(GError) error = NULL;
    NodeJob job;
    int status = EXIT_SUCCESS;

    if (!node_job_from_environment(&job, &error)) {
        node_say(LOG_ERR, "prolog: %s", error->message);
        return EXIT_FAILURE;
    }
    status = job.text ? start_job(root, &job) : start_without_text(root, &job);
    node_job_clear(&job);
    return status;
}
