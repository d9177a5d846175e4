/* SPDX-License-Identifier: MIT */
/*
 * replay TRACE SETUP CARDS NODE_CARDS MINUTE_MS END FLOOR - plays a trace against slurmctld: jobs
 * are submitted at their minute, end when their time is over, and offline work that was displaced
 * comes back with what is left of it. Jobs are allocations without steps, so no node runs anything
 * for them.
 *
 * A line of the trace: MINUTE KIND TASKS MIB SHARE DEMAND LIFE. KIND is o (online), b (offline) or
 * g (a gang of offline work). SHARE and DEMAND are in thousandths of a card. SETUP: a (whole
 * cards), b (slices), c (slices; offline work is best effort). FLOOR: per cent of best-effort
 * memory that is promised, as floor= in vgpu.conf.
 *
 * Standard output: every ten minutes "minute N busy promised waiting running", in thousandths; at
 * the end a summary of NAME VALUE. "busy" is wanted work that has a card: the sum over the cards of
 * min(1, what its jobs want). "most" is the most MiB that were promised of one card at a time.
 */
#include <signal.h>
#include "fleet/slurm/slurm_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VRAM       81920u
#define CHECKPOINT 10 /* minutes */
#define CARDS_MAX  16
#define IDS        (1u << 20)

typedef struct {
    int minute;
    char kind;
    unsigned tasks, mib, share, demand;
    int life; /* minutes that are left */
    int submitted, started;
    unsigned id;
} Job;

static Job *jobs;
static unsigned job_count, next_job;
static Job *by_id[IDS];
static char setup;
static unsigned node_cards, cards, best_effort_floor;
static unsigned minute_ms;
static unsigned online_count, online_waited, gang_count, displaced, lost_minutes, refused,
    online_wait;
static int gang_waits[65536];
static unsigned long most;
static double busy_sum;
static unsigned busy_count, waiting, running;
/* Offline work that is not submitted yet, as users limit their arrays. */
static unsigned pending_offline, back_first, back_last;
static Job *backlog[IDS];

static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void load_trace(const char *path)
{
    FILE *file = fopen(path, "r");
    Job job = {0};

    jobs = calloc(IDS, sizeof(*jobs));
    if (!file || !jobs)
        exit(2);
    while (job_count < IDS && fscanf(file, "%d %c %u %u %u %u %d", &job.minute, &job.kind,
                                     &job.tasks, &job.mib, &job.share, &job.demand, &job.life) == 7)
        jobs[job_count++] = job;
    fclose(file);
}

/* What a task costs, in shards; 0: a whole card. */
static unsigned shards_of(const Job *job)
{
    unsigned compute = job->share * VRAM / 1000;

    if (setup == 'a' || job->kind == 'g')
        return 0;
    if (job->kind == 'o')
        return job->mib > compute ? job->mib : compute;
    return setup == 'c' ? (job->mib * best_effort_floor + 99) / 100 : job->mib;
}

static void submit_job(Job *job, int now)
{
    resource_allocation_response_msg_t *granted = NULL;
    unsigned shards = shards_of(job);
    char tres[64];
    job_desc_msg_t desc;

    slurm_init_job_desc_msg(&desc);
    if (shards)
        snprintf(tres, sizeof(tres), "gres/shard:%u", shards);
    else
        snprintf(tres, sizeof(tres), "gres/gpu:1");
    desc.name = job->kind == 'o' ? "online" : job->kind == 'g' ? "gang" : "batch";
    desc.user_id = desc.group_id = 0;
    desc.num_tasks = job->tasks;
    desc.min_nodes = 1;
    desc.pn_min_memory = 1;
    desc.partition = job->kind == 'o' ? "online" : "batch";
    desc.time_limit = INFINITE;
    desc.work_dir = "/";
    desc.tres_per_task = tres;
    if (slurm_allocate_resources(&desc, &granted) || !granted) {
        refused++;
        return;
    }
    job->id = slurm_id_of(granted);
    job->submitted = now;
    job->started = -1;
    by_id[job->id % IDS] = job;
    pending_offline += job->kind != 'o';
    slurm_free_resource_allocation_response_msg(granted);
}

static void note_start(Job *job, int now)
{
    int wait = now - job->submitted;

    job->started = now;
    if (job->kind == 'o') {
        online_count++;
        online_wait += (unsigned)wait;
        /* One minute may be the clock's. */
        online_waited += wait > 3;
    } else if (job->kind == 'g' && gang_count < sizeof(gang_waits) / sizeof(gang_waits[0])) {
        gang_waits[gang_count++] = wait;
    }
    if (job->kind != 'o')
        pending_offline--;
}

/* It has lost its cards: what was done since the last checkpoint is to be done again. */
static void note_displaced(Job *job, int now)
{
    int done = now - job->started, lost = done % CHECKPOINT;

    displaced++;
    lost_minutes += (unsigned)lost * job->tasks;
    job->life -= done - lost;
    by_id[job->id % IDS] = NULL;
    job->id = 0;
    if (job->life > 0)
        backlog[back_last++ % IDS] = job;
}

/* Adds the job's part of each card. */
static void add_detail(const char *detail, unsigned demand, double *want, unsigned long *mib)
{
    const char *open = strchr(detail, '('), *at = open ? open + 1 : "";

    if (!open)
        return;
    if (!strncmp(detail, "gpu", 3)) {
        char *end = (char *)strchr(at, ':') + 1;

        do {
            unsigned long first = strtoul(end, &end, 10);
            unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

            for (; first <= last && first < CARDS_MAX; first++) {
                want[first] += demand / 1000.0;
                mib[first] += VRAM;
            }
        } while (*end++ == ',');
        return;
    }
    for (unsigned card = 0; card < CARDS_MAX; card++) {
        char *end;
        unsigned long shards = strtoul(at, &end, 10);

        mib[card] += shards;
        if (shards)
            want[card] += demand / 1000.0;
        at = end + strspn(end, "/0123456789");
        if (*at++ != ',')
            return;
    }
}

/* What a job that runs wants of each card, and has been promised. */
static void add_cards(const job_info_t *info, unsigned demand, double *want, unsigned long *mib)
{
    unsigned nodes = cards / node_cards;
    hostlist_t *list = slurm_hostlist_create(info->nodes);
    char *name;

    for (unsigned at = 0; (name = slurm_hostlist_shift(list)); at++) {
        unsigned node = (unsigned)atoi(name + 1) - 1;

        if (node < nodes && at < info->gres_detail_cnt)
            add_detail(info->gres_detail_str[at], demand, want + node * CARDS_MAX,
                       mib + node * CARDS_MAX);
        free(name);
    }
    slurm_hostlist_destroy(list);
}

static void look_at_job(const job_info_t *info, int now, double *want, unsigned long *mib)
{
    Job *job = by_id[slurm_id_of(info) % IDS];
    unsigned state = info->job_state & JOB_STATE_BASE;

    if (!job || job->id != slurm_id_of(info))
        return;
    if (state == JOB_PENDING) {
        waiting++;
        return;
    }
    if (job->started < 0)
        note_start(job, now);
    if (state != JOB_RUNNING) {
        note_displaced(job, now);
        return;
    }
    running++;
    add_cards(info, job->demand, want, mib);
}

static void report_state(int now, const double *want, const unsigned long *mib)
{
    double busy = 0;
    unsigned long promised = 0;

    for (unsigned i = 0; i < cards / node_cards * CARDS_MAX; i++) {
        busy += want[i] < 1 ? want[i] : 1;
        promised += mib[i];
        most = mib[i] > most ? mib[i] : most;
    }
    busy /= cards;
    /* The first hours fill the cards. */
    if (now >= 120) {
        busy_sum += busy;
        busy_count++;
    }
    printf("minute %d %.0f %.0f %u %u\n", now, busy * 1000, promised * 1000.0 / cards / VRAM,
           waiting, running);
    fflush(stdout);
}

static void observe_jobs(int now)
{
    unsigned places = cards / node_cards * CARDS_MAX;
    double *want = calloc(places, sizeof(*want));
    unsigned long *mib = calloc(places, sizeof(*mib));
    job_info_msg_t *all = NULL;

    if (want && mib && !slurm_load_jobs(0, &all, SHOW_DETAIL | SHOW_ALL)) {
        waiting = running = 0;
        for (unsigned i = 0; i < all->record_count; i++)
            look_at_job(&all->job_array[i], now, want, mib);
        slurm_free_job_info_msg(all);
        report_state(now, want, mib);
    }
    free(want);
    free(mib);
}

static void end_due(int now)
{
    for (unsigned i = 0; i < next_job; i++) {
        Job *job = &jobs[i];

        if (!job->id || job->started < 0 || now - job->started < job->life)
            continue;
        slurm_kill_job(job->id, SIGKILL, 0);
        by_id[job->id % IDS] = NULL;
        job->id = 0;
    }
}

/* @limit: offline jobs that may wait in Slurm. */
static void submit_due(int now, unsigned limit)
{
    for (; next_job < job_count && jobs[next_job].minute <= now; next_job++) {
        Job *job = &jobs[next_job];

        if (job->kind == 'b')
            backlog[back_last++ % IDS] = job;
        else
            submit_job(job, now);
    }
    while (back_first != back_last && pending_offline < limit)
        submit_job(backlog[back_first++ % IDS], now);
}

static int compare_jobs(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/*
 * Lasts @minute_ms, or longer if Slurm does not keep up: a real minute has 60 s. Returns how long
 * Slurm needed.
 */
static long play_minute(int now)
{
    long began = now_ms(), took;

    end_due(now);
    submit_due(now, cards / 20);
    observe_jobs(now);
    took = now_ms() - began;
    if (took < (long)minute_ms)
        usleep((useconds_t)((long)minute_ms - took) * 1000);
    return took;
}

int main(int argc, char **argv)
{
    int end = argc == 8 ? atoi(argv[6]) : 0;
    long longest = 0;

    if (!end)
        return 2;
    setup = argv[2][0];
    cards = (unsigned)atoi(argv[3]);
    node_cards = (unsigned)atoi(argv[4]);
    minute_ms = (unsigned)atoi(argv[5]);
    best_effort_floor = (unsigned)atoi(argv[7]);
    load_trace(argv[1]);
    slurm_init(NULL);
    for (int now = 0; now < end; now++) {
        long took = play_minute(now);

        /* The first ones fill the cards. */
        longest = now >= 60 && took > longest ? took : longest;
    }
    qsort(gang_waits, gang_count, sizeof(gang_waits[0]), compare_jobs);
    printf("busy %.1f\nonline %u\nonline_waited %u\nonline_wait_minutes %u\ngangs %u\ngang_p50 %d\n"
           "gang_p99 %d\ndisplaced %u\nlost_card_minutes %u\nmost_mib %lu\nrefused "
           "%u\nlongest_minute_ms %ld\n",
           busy_count ? 100 * busy_sum / busy_count : 0, online_count, online_waited, online_wait,
           gang_count, gang_count ? gang_waits[gang_count / 2] : 0,
           gang_count ? gang_waits[gang_count * 99 / 100] : 0, displaced, lost_minutes, most,
           refused, longest);
    return EXIT_SUCCESS;
}
