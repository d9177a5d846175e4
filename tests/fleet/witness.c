/* SPDX-License-Identifier: MIT */
/*
 * witness prolog|epilog DIR: run by slurmd before and after each job on each node, it keeps a
 * ledger of its own: for each node what every job was promised of every card. A card of which more
 * is promised than it has (DIR/capacity, MiB) is a fault, a sentence in DIR/faults. witness sum
 * DIR: "most" (MiB of one card at any time), "prologs", and "held" (MiB promised now). It needs the
 * epilog of each job, so it is not for tests that kill slurmd.
 *
 * It asks slurmctld for one job's promise at a time; the sums are its own. It shares no code with
 * what it watches.
 */
#include <dirent.h>
#include <fcntl.h>
#include "fleet/slurm/slurm_api.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define CARDS 16
#define JOBS  512

typedef struct {
    unsigned job;
    unsigned long mib[CARDS];
} Promise;

typedef struct {
    unsigned long most;
    unsigned long prologs;
    Promise promises[JOBS];
} Node;

static const char *dir;
static unsigned long capacity;

static void fault(const char *format, ...)
{
    char path[4096], text[512];
    va_list args;
    int fd;

    va_start(args, format);
    vsnprintf(text, sizeof(text) - 1, format, args);
    va_end(args);
    strcat(text, "\n");
    snprintf(path, sizeof(path), "%s/faults", dir);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        exit(EXIT_FAILURE);
    close(fd);
}

/* "2-3,5)": each of these cards is @promise's as a whole. */
static void take_cards(const char *text, Promise *promise)
{
    char *end = (char *)text;

    do {
        unsigned long first = strtoul(end, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

        for (unsigned long card = first; card <= last && card < CARDS; card++)
            promise->mib[card] += capacity;
    } while (*end++ == ',');
}

/* "100/81920,0/81920)": MiB of each card. */
static void take_shards(const char *text, Promise *promise)
{
    char *end = (char *)text;

    for (unsigned card = 0; card < CARDS; card++) {
        promise->mib[card] += strtoul(end, &end, 10);
        end += strspn(end, "/0123456789");
        if (*end++ != ',')
            return;
    }
}

/* "gpu:a100-80g:2(IDX:0-1),shard:a100-80g:100(100/81920,0/81920)" */
static void take_detail(const char *detail, Promise *promise)
{
    const char *cards = strstr(detail, "gpu:"), *shards = strstr(detail, "shard:");

    if (cards && (cards = strstr(cards, "(IDX:")))
        take_cards(cards + 5, promise);
    if (shards && (shards = strchr(shards, '(')))
        take_shards(shards + 1, promise);
}

/* What slurmctld says that job promises on this node. */
static void load_promise(const char *node, Promise *promise)
{
    job_info_msg_t *jobs = NULL;

    for (unsigned tries = 0; slurm_load_job(&jobs, promise->job, SHOW_DETAIL); tries++) {
        if (tries == 10) {
            fault("job %u on %s: slurmctld does not say what it has", promise->job, node);
            return;
        }
        sleep(1);
    }
    for (unsigned i = 0; i < jobs->record_count; i++) {
        const job_info_t *job = &jobs->job_array[i];
        hostlist_t *nodes = slurm_hostlist_create(job->nodes ? job->nodes : "");
        int at = slurm_hostlist_find(nodes, node);

        if (slurm_id_of(job) == promise->job && at >= 0 && (unsigned)at < job->gres_detail_cnt)
            take_detail(job->gres_detail_str[at], promise);
        slurm_hostlist_destroy(nodes);
    }
    slurm_free_job_info_msg(jobs);
}

static unsigned long sum_of(const Node *node, unsigned card)
{
    unsigned long sum = 0;

    for (unsigned i = 0; i < JOBS; i++)
        sum += node->promises[i].job ? node->promises[i].mib[card] : 0;
    return sum;
}

static void add(Node *node, const char *name, const Promise *promise)
{
    unsigned at = 0;

    while (at < JOBS && node->promises[at].job && node->promises[at].job != promise->job)
        at++;
    if (at == JOBS) {
        fault("%s: more than %u jobs at once", name, JOBS);
        return;
    }
    node->promises[at] = *promise;
    node->prologs++;
    for (unsigned card = 0; card < CARDS; card++) {
        unsigned long sum = sum_of(node, card);

        if (sum > node->most)
            node->most = sum;
        if (sum > capacity)
            fault("card %u of %s has %lu MiB, and with job %u %lu MiB of it are promised", card,
                  name, capacity, promise->job, sum);
    }
}

static void take_out(Node *node, unsigned job)
{
    for (unsigned i = 0; i < JOBS; i++)
        if (node->promises[i].job == job)
            node->promises[i] = (Promise){0};
}

/* The node's ledger, locked until it is closed. */
static int open_node(const char *name, Node *node)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/node-%s", dir, name);
    fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || flock(fd, LOCK_EX) || pread(fd, node, sizeof(*node), 0) < 0)
        exit(EXIT_FAILURE);
    return fd;
}

static int begin_or_end(bool begins)
{
    static Node node;
    const char *name = getenv("SLURMD_NODENAME"), *job = getenv("SLURM_JOB_ID");
    Promise promise = {.job = job ? (unsigned)strtoul(job, NULL, 10) : 0};
    int fd;

    if (!name || !promise.job)
        return EXIT_FAILURE;
    if (begins) {
        slurm_init(NULL);
        load_promise(name, &promise);
    }
    fd = open_node(name, &node);
    if (begins)
        add(&node, name, &promise);
    else
        take_out(&node, promise.job);
    return pwrite(fd, &node, sizeof(node), 0) == sizeof(node) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int sum(void)
{
    unsigned long most = 0, prologs = 0, held = 0;
    DIR *files = opendir(dir);
    struct dirent *entry;
    static Node node;

    while (files && (entry = readdir(files))) {
        if (strncmp(entry->d_name, "node-", 5))
            continue;
        node = (Node){0};
        close(open_node(entry->d_name + 5, &node));
        most = node.most > most ? node.most : most;
        prologs += node.prologs;
        for (unsigned i = 0; i < JOBS; i++)
            for (unsigned card = 0; card < CARDS; card++)
                held += node.promises[i].mib[card];
    }
    printf("most %lu\nprologs %lu\nheld %lu\n", most, prologs, held);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    char path[4096];
    FILE *file;

    if (argc != 3)
        return 2;
    dir = argv[2];
    snprintf(path, sizeof(path), "%s/capacity", dir);
    file = fopen(path, "r");
    if (!file || fscanf(file, "%lu", &capacity) != 1)
        return EXIT_FAILURE;
    fclose(file);
    if (!strcmp(argv[1], "sum"))
        return sum();
    return begin_or_end(!strcmp(argv[1], "prolog"));
}
