/* SPDX-License-Identifier: MIT */
/*
 * The scheduler with members and a GPU that exist only in simulated time: the GPU is a card
 * (card.h), messages and wake-ups take time, and members follow the rules of the member library.
 */
#ifndef GOVERNOR_SIMULATION_H
#define GOVERNOR_SIMULATION_H

#include "backlog.h"
#include "card.h"
#include "clock.h"
#include "scheduler.h"
#include "silence.h"

#define SIM_STEP_NS (5 * NS_PER_US)
#define SIM_MAX     CARD_PROCESSES
#define SIM_MISSED  16
#define SIM_TOOK    4096

struct sim_tenant;

/* What a job of the card is for. */
struct sim_job {
    struct sim_tenant *tenant;
    unsigned life; /* of its tenant's processes */
    unsigned queue;
    bool free; /* neither debited nor measured */
    bool begun;
    uint64_t marker; /* behind it; 0: none */
    uint64_t debit_ns;
    uint64_t work_ns;
    bool ramps;
    uint64_t since;
};

/* As struct lane_queue of the member. */
struct sim_queue {
    uint64_t in_flight;
    uint64_t in_flight_ns;
    uint64_t began_at_ns;
    uint64_t ended_at_ns;
};

/**
 * struct sim_tenant - a slice with one member
 * @wake_ns: from a grant to the member's reaction
 * @batch_ns: length of a submission; @estimate_ns: the member's estimate of it, 0: exact
 * @batch_jitter_ns: a submission's length differs from the estimate by up to this much
 * @think_ns: from the end of one to the next; @think_jitter_ns: plus 0 to this much
 * @async: submits without waiting for the end of the previous one, @think_ns is unused
 * @start_ns, @stop_ns: when it works; 0: always
 * @period_ns: bursts: @burst submissions in each
 * @stopped: does nothing at all (SIGSTOP), though its work on the GPU continues
 * @runs_ns, @rests_ns: its threads run for so long and are held up for so long, in turn (cpu.max);
 * the GPU goes on. 0: they always run
 * @exits_ns: the process exits when it has used this much, and another replaces it; 0: never
 * @exits_unsaid: the process exits at the end of each submission, before it reports the end
 * @stalls: reports of each submission that it has not begun, and then, after a look, that it has
 * @says_stalled: reports, as doors do, that its oldest work has not begun for 3 ms, and each 20 ms
 *
 * @class: of its work; changed by sim_set_class()
 * @queues: how many queues of its process it keeps busy; 0 or 1: one
 * @ahead: how many submissions it has on each queue while it is free
 * @tracked: what it does while it is free is not measured, but tracked by markers
 * @ungoverned: submits as if it were free, whatever the arbiter says
 *
 * @kernel_ns: its door gathers kernels of this length into submissions, as the CUDA door does;
 * @batch_ns is unused
 *
 * @event_ns: what the door's events behind a submission cost the card
 * @ramp_ns: the first submission after a wait for a turn takes so much longer without doing more:
 * its kernels come no faster than the card works. @charges_sum: the door charges the sum of their
 * estimates for it
 * @copy_ns: each job begins with a copy of that length, which is of another class; @hints: the
 * member says so
 *
 * @done_ns, @done: GPU time and submissions executed; @worst_ns: longest time from the wish to
 * submit to the end
 * @took_us: those times; the first SIM_TOOK of them
 */
struct sim_tenant {
    struct slice_settings settings;
    uint64_t wake_ns;
    uint64_t batch_ns;
    uint64_t batch_jitter_ns;
    uint64_t estimate_ns;
    uint64_t think_ns;
    uint64_t think_jitter_ns;
    bool async;
    uint64_t start_ns;
    uint64_t stop_ns;
    uint64_t period_ns;
    unsigned burst;
    bool stopped;
    uint64_t runs_ns;
    uint64_t rests_ns;
    uint64_t exits_ns;
    bool exits_unsaid;
    bool stalls;
    bool says_stalled;
    enum governor_class class;
    unsigned queues;
    unsigned ahead;
    bool tracked;
    bool ungoverned;
    uint64_t kernel_ns;
    uint64_t event_ns;
    uint64_t ramp_ns;
    bool charges_sum;
    uint64_t copy_ns;
    bool hints;

    uint64_t done_ns;
    uint64_t done;
    uint64_t worst_ns;
    uint32_t took_us[SIM_TOOK];

    struct governor_class_grant grant;
    struct governor_class_usage usage;
    _Atomic uint64_t came_at;
    _Atomic uint64_t expects_at;
    _Atomic uint32_t preempts;
    struct sched_member member;
    struct sched_slice *slice;
    uint64_t seen_limit;
    uint32_t seen_mode;
    uint32_t seen_passes;
    uint32_t used_passes;
    uint64_t sees_at;
    uint64_t speaks_at;
    uint64_t wants_since;
    uint64_t next_at;
    unsigned burst_done;
    uint64_t in_flight;
    struct sim_queue queue[CARD_QUEUES];
    struct coverage ran;
    struct backlog backlog;
    struct card_job missed[SIM_MISSED];
    unsigned missed_count;
    bool was_held_up;
    bool told;
    uint64_t look_again_ns;
    uint64_t looks_again_at;
    uint64_t begun_at;
    unsigned begun;
    uint64_t stall_told_ns;
    uint64_t last_limit;
    uint64_t rests_until; /* nothing changes for it before, but by what has others change this */
    struct silence silence;
    unsigned life;
    struct sim_job jobs[CARD_QUEUES * CARD_JOBS];
    unsigned submitted;
};

struct simulation {
    union {
        struct scheduler scheduler; /* of compute */
        struct scheduler schedulers[GOVERNOR_CLASSES];
    };
    struct sim_tenant tenants[SIM_MAX];
    unsigned count;
    uint64_t now;
    union {
        uint64_t call_at; /* of compute */
        uint64_t calls_at[GOVERNOR_CLASSES];
    };
    uint64_t busy_ns;
    uint64_t looks; /* at compute */
    struct card card;
    uint64_t random;
};

void sim_init(struct simulation *sim, enum gpu_policy policy);
/* Before anything else: another card than one that works in order. */
void sim_set_card(struct simulation *sim, enum card_kind kind);
void sim_clear(struct simulation *sim);

/* The same in memory of its own. */
struct simulation *sim_new(enum gpu_policy policy, enum card_kind kind);
void sim_free(struct simulation *sim);

/* @tenant's work is of another class than compute. */
void sim_set_class(struct simulation *sim, struct sim_tenant *tenant, enum governor_class class);

/* A tenant that works all the time, for the test to change. */
struct sim_tenant *sim_add(struct simulation *sim, uint32_t weight, uint64_t batch_ns);

/* Makes @tenant another member of @other's slice. */
void sim_join(struct simulation *sim, struct sim_tenant *tenant, const struct sim_tenant *other);

/*
 * The process of @tenant ends, and another of the same slice replaces it. Its work on the GPU is
 * executed.
 */
void sim_exit(struct simulation *sim, struct sim_tenant *tenant);

/* Advances the time by this much. */
void sim_run(struct simulation *sim, uint64_t ns);

/* Discards the results so far. */
void sim_reset_counts(struct simulation *sim);

/* The time that @part of its jobs took at most. */
double sim_took_ns(const struct sim_tenant *tenant, double part);

/* Part of all GPU time done, 0 to 1. */
double sim_share(const struct simulation *sim, const struct sim_tenant *tenant);

#endif
