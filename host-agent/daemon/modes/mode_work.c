/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/modes/mode_work.h"

#include "host-agent/daemon/modes/reconcile.h"
#include "host-agent/daemon/modes/users.h"

/* A thread's own data: the main loop does not change it. */
typedef struct {
    HostRoot *root;
    char *address;
    GpuMode target;
    guint partitions;
    GStrv start;
    gboolean dry_run;
    gboolean all_users;
    UsersFunc users;
    StepFunc step;
    ReconciledFunc done;
    void *data;
} Job;

static void job_free(void *data)
{
    Job *job = data;

    host_root_unref(job->root);
    g_free(job->address);
    g_strfreev(job->start);
    g_free(job);
}

static void look(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const Job *job = data;
    GError *error = NULL;
    g_autoptr(Gpu) gpu = reconcile_look(job->root, job->address, &error);

    (void)source;
    (void)cancellable;
    if (!gpu || (!job->all_users &&
                 !reconcile_possible(job->root, gpu, job->target, job->partitions, &error)))
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task,
                              job->all_users ? users_list(job->root, gpu)
                                             : users_in_the_way(job->root, gpu, job->target),
                              (GDestroyNotify)g_strfreev);
}

static void looked(GObject *source, GAsyncResult *result, void *data)
{
    const Job *job = g_task_get_task_data(G_TASK(result));
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) users = g_task_propagate_pointer(G_TASK(result), &error);

    (void)source;
    job->users(users, error, data);
}

static void start_look(Job *job, HostRoot *root, const char *address, UsersFunc func, void *data)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, looked, data);

    job->root = host_root_ref(root);
    job->address = g_strdup(address);
    job->users = func;
    g_task_set_task_data(task, job, job_free);
    g_task_run_in_thread(task, look);
}

void mode_work_list(HostRoot *root, const char *address, UsersFunc func, void *data)
{
    Job *job = g_new0(Job, 1);

    job->all_users = TRUE;
    start_look(job, root, address, func, data);
}

void mode_work_in_the_way(HostRoot *root, const char *address, GpuMode target, guint partitions,
                          UsersFunc func, void *data)
{
    Job *job = g_new0(Job, 1);

    job->target = target;
    job->partitions = partitions;
    start_look(job, root, address, func, data);
}

/* A step on its way to the main loop. */
typedef struct {
    StepFunc func;
    void *data;
    char *sentence;
} Step;

static void step_free(void *data)
{
    Step *step = data;

    g_free(step->sentence);
    g_free(step);
}

static gboolean tell_step(void *data)
{
    const Step *step = data;

    step->func(step->sentence, step->data);
    return G_SOURCE_REMOVE;
}

/*
 * With the priority of a task's end, so that it comes before that. g_main_context_invoke() would
 * call it here if the main loop is not running.
 */
static void send_step(const char *sentence, void *data)
{
    g_autoptr(GSource) source = g_idle_source_new();
    const Job *job = data;
    Step *step = g_new0(Step, 1);

    step->func = job->step;
    step->data = job->data;
    step->sentence = g_strdup(sentence);
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, tell_step, step, step_free);
    g_source_attach(source, NULL);
}

static void do_reconcile(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    Job *job = data;
    GError *error = NULL;
    const Reconciliation want = {
        .root = job->root,
        .address = job->address,
        .target = job->target,
        .partitions = job->partitions,
        .start = (const char *const *)job->start,
        .dry_run = job->dry_run,
        .step = send_step,
        .data = job,
    };

    (void)source;
    (void)cancellable;
    if (converge(&want, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void converged(GObject *source, GAsyncResult *result, void *data)
{
    const Job *job = g_task_get_task_data(G_TASK(result));
    g_autoptr(GError) error = NULL;

    (void)source;
    g_task_propagate_boolean(G_TASK(result), &error);
    job->done(error, data);
}

void mode_work_reconcile(const ModeWork *work)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, converged, work->data);
    Job *job = g_new0(Job, 1);

    job->root = host_root_ref(work->root);
    job->address = g_strdup(work->address);
    job->target = work->target;
    job->partitions = work->partitions;
    job->start = g_strdupv((GStrv)work->start);
    job->dry_run = work->dry_run;
    job->step = work->step;
    job->done = work->done;
    job->data = work->data;
    g_task_set_task_data(task, job, job_free);
    g_task_run_in_thread(task, do_reconcile);
}
