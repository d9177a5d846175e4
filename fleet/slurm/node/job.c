/* SPDX-License-Identifier: MIT */
/* The job, as slurmd and slurmctld have it. */
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <signal.h>
#include "fleet/slurm/slurm_api.h"
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "fleet/request/submit.h"
#include "fleet/slurm/node/job_file.h"
#include "fleet/slurm/node/node.h"

#define LOCK_FILE FLEET_JOBS_DIR "/lock"
/* In /run: after a boot slurmctld is asked. */
#define WELL_FILE    FLEET_JOBS_DIR "/well"
#define WELL_SECONDS 600

/* Of a job's AdminComment that is ours. */
#define COMMENT_PREFIX "vgpu: "

/* So long a prolog waits for slurmctld. */
#define ASK_SECONDS  300
#define ASK_AGAIN_US G_USEC_PER_SEC

static guint count_nodes(const char *list)
{
    hostlist_t *nodes = slurm_hostlist_create(list ? list : "");
    int count = slurm_hostlist_count(nodes);

    slurm_hostlist_destroy(nodes);
    return (guint)count;
}

gboolean node_job_from_environment(NodeJob *job, GError **error)
{
    const char *id = g_getenv("SLURM_JOB_ID"), *cluster = g_getenv("SLURM_CLUSTER_NAME");
    const char *uid = g_getenv("SLURM_JOB_UID"), *account = g_getenv("SLURM_JOB_ACCOUNT");
    const char *text = g_getenv("SLURM_JOB_EXTRA");
    guint64 number, user;

    *job = (NodeJob){0};
    if (!g_ascii_string_to_unsigned(id ? id : "", 10, 1, G_MAXUINT32, &number, error) ||
        !g_ascii_string_to_unsigned(uid ? uid : "", 10, 0, G_MAXUINT32, &user, error)) {
        g_prefix_error(error, "SLURM_JOB_ID and SLURM_JOB_UID must be given, as slurmd does: ");
        return FALSE;
    }
    job->nodes = count_nodes(g_getenv("SLURM_JOB_NODELIST"));
    job->id = (guint)number;
    job->uid = (guint)user;
    job->owner = g_strdup_printf("slurm:%s:%u", cluster ? cluster : "", job->id);
    job->tenant = account && !g_str_equal(account, "(null)") ? account : "";
    job->text = text && g_str_has_prefix(text, "vgpu") ? text : NULL;
    return TRUE;
}

char *node_name(void)
{
    const char *given = g_getenv("SLURMD_NODENAME"), *host = g_get_host_name();

    return given ? g_strdup(given) : g_strndup(host, strcspn(host, "."));
}

char *node_cluster(void)
{
    slurm_conf_t *conf = NULL;
    char *name;

    if (slurm_load_ctl_conf(0, &conf))
        return NULL;
    name = g_strdup(conf->cluster_name);
    slurm_free_loaded_conf(conf);
    return name;
}

gboolean node_is_known_well(HostRoot *root)
{
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;
    struct stat status;

    return root_stat(root, WELL_FILE, &status) && status.st_mtime <= now &&
           now - status.st_mtime < WELL_SECONDS;
}

void node_note_well(HostRoot *root, gboolean well)
{
    if (!well)
        root_remove(root, WELL_FILE);
    else if (!node_is_known_well(root) && root_mkdir(root, FLEET_JOBS_DIR, 0755, NULL))
        root_write(root, WELL_FILE, "", 0600, NULL);
}

guint32 node_job_of_owner(const char *owner, const char *cluster)
{
    g_autofree char *prefix = g_strdup_printf("slurm:%s:", cluster);
    guint64 id = 0;

    if (g_str_has_prefix(owner, prefix))
        g_ascii_string_to_unsigned(owner + strlen(prefix), 10, 1, G_MAXUINT32, &id, NULL);
    return (guint32)id;
}

int node_lock(HostRoot *root, gboolean alone)
{
    g_autofree char *path = root_path(root, LOCK_FILE, NULL);
    int fd = -1;

    if (root_mkdir(root, FLEET_JOBS_DIR, 0755, NULL))
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, alone ? LOCK_EX : LOCK_SH))
        node_say(LOG_WARNING, "cannot lock %s: %s", path, g_strerror(errno));
    return fd;
}

void node_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

void node_job_clear(NodeJob *job)
{
    g_clear_pointer(&job->owner, g_free);
}

/* "12, 12.0, 13.extern": a batch script has no name of its own. */
static gboolean is_among(guint32 id, const char *steps)
{
    g_auto(GStrv) each = g_strsplit(steps ? steps : "", ",", -1);
    gboolean found = FALSE;

    for (guint i = 0; each[i] && !found; i++)
        found = g_ascii_strtoull(g_strchug(each[i]), NULL, 10) == id;
    return found;
}

gboolean node_job_has_steps(guint32 id)
{
    slurmd_status_t *status = NULL;
    gboolean has;

    if (slurm_load_slurmd_status(&status))
        return TRUE;
    has = is_among(id, status->step_list);
    slurm_free_slurmd_status(status);
    return has;
}

/* This node's line of the job's details. */
const char *node_job_detail(const job_info_t *job, const char *node)
{
    hostlist_t *nodes = slurm_hostlist_create(job->nodes ? job->nodes : "");
    int at = slurm_hostlist_find(nodes, node);

    slurm_hostlist_destroy(nodes);
    return at >= 0 && (guint)at < job->gres_detail_cnt ? job->gres_detail_str[at] : NULL;
}

static gboolean is_over(const job_info_t *job)
{
    guint state = job->job_state & JOB_STATE_BASE;

    return (state != JOB_RUNNING && state != JOB_SUSPENDED) || job->job_state & JOB_COMPLETING;
}

static gboolean read_grant(const job_info_t *info, const char *node, NodeGrant *grant,
                           GError **error)
{
    const char *detail = node_job_detail(info, node);
    int found = detail_parse(detail, grant->cards);

    if (found < 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                    "cannot understand \"%s\" of slurmctld", detail);
        return FALSE;
    }
    grant->count = (guint)found;
    grant->counted.per_task = submit_shards(info->tres_per_task);
    grant->counted.whole_node = info->shared == JOB_SHARED_NONE;
    g_strlcpy(grant->partition, info->partition ? info->partition : "", sizeof(grant->partition));
    g_strlcpy(grant->qos, info->qos ? info->qos : "", sizeof(grant->qos));
    grant->restarts = info->restart_cnt;
    grant->over = is_over(info);
    grant->waits = (info->job_state & JOB_STATE_BASE) == JOB_PENDING;
    return TRUE;
}

/*
 * What slurmctld says, as soon as it says anything: it may be being restarted. NULL with errno.
 *
 * SHOW_LOCAL, here and elsewhere: without it libslurm first asks slurmctld for its federation, a
 * request more for each job that starts. A job that runs here is slurmctld's own.
 */
static job_info_msg_t *load_patiently(guint32 id)
{
    gint64 until = g_get_monotonic_time() + ASK_SECONDS * G_USEC_PER_SEC;
    job_info_msg_t *answer = NULL;

    while (slurm_load_job(&answer, id, SHOW_DETAIL | SHOW_LOCAL)) {
        if (errno == ESLURM_INVALID_JOB_ID || g_get_monotonic_time() > until)
            return NULL;
        g_usleep(ASK_AGAIN_US);
    }
    return answer;
}

gboolean node_job_ask(const NodeJob *job, NodeGrant *grant, GError **error)
{
    g_autofree char *node = node_name();
    job_info_msg_t *answer;
    gboolean ok = TRUE;

    slurm_init(NULL);
    *grant = (NodeGrant){.over = TRUE};
    answer = load_patiently(job->id);
    /* slurmctld that was killed may have lost the job. It starts nothing of it any more. */
    if (!answer && errno == ESLURM_INVALID_JOB_ID)
        return TRUE;
    if (!answer) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "cannot ask slurmctld for job %u: %s",
                    job->id, slurm_strerror(errno));
        return FALSE;
    }
    for (guint i = 0; i < answer->record_count; i++)
        if (slurm_id_of(&answer->job_array[i]) == job->id)
            ok = read_grant(&answer->job_array[i], node, grant, error);
    slurm_free_job_info_msg(answer);
    return ok;
}

/* Of a heterogeneous job only the first component can be put back, and takes the others along. */
static guint32 leader_of(guint32 id)
{
    job_info_msg_t *answer = NULL;
    guint32 leader = id;

    if (slurm_load_job(&answer, id, SHOW_LOCAL))
        return id;
    for (guint i = 0; i < answer->record_count; i++)
        if (slurm_id_of(&answer->job_array[i]) == id && answer->job_array[i].het_job_id)
            leader = answer->job_array[i].het_job_id;
    slurm_free_job_info_msg(answer);
    return leader;
}

/*
 * JOB_RUNNING: only if it runs or is suspended, else nothing happens. Slurm would start a cancelled
 * job again, and two nodes of a job may put it back at once.
 */
static int requeue_job(guint32 id, gboolean hold)
{
    return slurm_requeue(id, JOB_RUNNING | (hold ? JOB_REQUEUE_HOLD : 0)) ? errno : 0;
}

/* The job that is put back; 0: none is. */
static guint32 put_back(guint32 id, gboolean hold)
{
    int cause = requeue_job(id, hold);

    if (cause == ESLURM_NOT_HET_JOB_LEADER) {
        id = leader_of(id);
        cause = requeue_job(id, hold);
    }
    if (!cause)
        return id;
    if (cause == ESLURM_INVALID_JOB_ID)
        return 0;
    if (cause != ESLURM_BATCH_ONLY && cause != ESLURM_DISABLED) {
        node_say(LOG_WARNING, "cannot requeue job %u: %s", id, slurm_strerror(cause));
        return 0;
    }
    node_say(LOG_WARNING, "job %u cannot be started again (%s) and is cancelled", id,
             slurm_strerror(cause));
    /* Without the flag, that of an array's last task would mean the whole array. */
    if (slurm_kill_job(id, SIGKILL, KILL_ARRAY_TASK))
        node_say(LOG_WARNING, "cannot cancel job %u: %s", id, slurm_strerror(errno));
    return 0;
}

void node_job_put_back(guint32 id, gboolean hold)
{
    put_back(id, hold);
}

/* A site's own comment stays. */
static gboolean has_other_comment(guint32 id)
{
    job_info_msg_t *answer = NULL;
    gboolean has = FALSE;

    if (slurm_load_job(&answer, id, SHOW_LOCAL))
        return TRUE;
    for (guint i = 0; i < answer->record_count; i++) {
        const char *comment = answer->job_array[i].admin_comment;

        has = has || (slurm_id_of(&answer->job_array[i]) == id && comment && *comment &&
                      !g_str_has_prefix(comment, COMMENT_PREFIX));
    }
    slurm_free_job_info_msg(answer);
    return has;
}

void node_job_put_off(guint32 id, guint seconds, const char *why)
{
    g_autofree char *comment = g_strconcat(COMMENT_PREFIX, why, NULL);
    job_desc_msg_t change;

    id = put_back(id, FALSE);
    if (!id)
        return;
    slurm_init_job_desc_msg(&change);
    slurm_id_of(&change) = id;
    change.begin_time = (time_t)(g_get_real_time() / G_USEC_PER_SEC) + seconds;
    if (!has_other_comment(id))
        change.admin_comment = comment;
    if (slurm_update_job(&change))
        node_say(LOG_WARNING, "job %u may start at once: %s", id, slurm_strerror(errno));
}
