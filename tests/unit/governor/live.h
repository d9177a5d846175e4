/* SPDX-License-Identifier: MIT */
/*
 * An arbiter in a process of its own, and members in others. The GPU is a lock that is held for as
 * long as work takes.
 */
#ifndef GOVERNOR_LIVE_H
#define GOVERNOR_LIVE_H

#include "clock.h"
#include "member.h"

#include <glib.h>
#include <stdatomic.h>
#include <sys/types.h>

#define LIVE_MAX 80

/* A member process's report to the test, in shared memory. */
struct live_report {
    _Atomic uint64_t used_ns;
    _Atomic uint64_t done;
    _Atomic uint64_t last_at;
    _Atomic uint64_t longest_gap_ns;
    _Atomic uint64_t granted;
    _Atomic uint64_t ready;
    _Atomic uint64_t go;
    _Atomic uint64_t turns;
};

struct live {
    char *root;
    char *log;
    GPid arbiter;
    GPid second;
    int gpu;
    struct live_report *reports;
    pid_t members[LIVE_MAX];
    unsigned count;
};

/* Arbiters that start from now on have a kernel that fails for a socket option; option 0: none. */
void live_refuse_option(int option, int error);
/* The same for a /proc that shows them no other user's process (hidepid=2,gid=). Needs root. */
void live_hide_processes(bool hide);

typedef void (*LiveFunc)(struct live *live, const char *socket_path, struct live_report *report);

/* Starts an arbiter with @slices: names and contents of files in turn, to NULL. */
void live_open(struct live *live, const char *const *slices);
/* Kills all remaining processes, and removes the files. */
void live_close(struct live *live);

/* Another GPU of the same host, with an arbiter of its own and one slice; once in a test. */
void live_add_gpu(struct live *live, const char *slice, const char *content);

void live_start_arbiter(struct live *live);
void live_kill_arbiter(struct live *live, int signal);

/* Writes a file as the agent does; @content NULL: removes it. */
void live_configure(struct live *live, const char *slice, const char *content);
/* The same for what the slice uses that no member reports. */
void live_tell_ungoverned(struct live *live, const char *slice, const char *content);
char *live_socket(const struct live *live, const char *slice);

/*
 * Runs @function in a process of its own, which is killed when it returns. Returns its number among
 * the reports.
 */
unsigned live_spawn(struct live *live, const char *slice, LiveFunc function);
void live_kill(struct live *live, unsigned member, int signal);

/* To status.sock; its status comes, and then the end. */
int live_connect_status(const struct live *live);

/* The value of @slice's @key in the status; -1: no such slice. */
gint64 live_status(const struct live *live, const char *slice, const char *key);
/* The same for a text, to be freed; NULL: no such slice. */
/* Of the GPU, not of one of its slices. */
gint64 live_gpu_status(const struct live *live, const char *key);
char *live_status_text(const struct live *live, const char *slice, const char *key);
/*
 * These wait until it is so. A machine with much else to do takes long for it, so only what never
 * comes is a failure.
 */
void live_await(const struct live *live, const char *slice, const char *key, gint64 value);
void live_await_ready(const struct live *live, unsigned member);
/* @word, which grows meanwhile, is at least @value. */
void live_await_word(const _Atomic uint64_t *word, uint64_t value);
/* Waits for a line in the arbiter's log. */
void live_await_log(const struct live *live, const char *text);

/* Joins, and submits 2 ms after 2 ms until it is killed. */
void live_work(struct live *live, const char *socket_path, struct live_report *report);
/* Discards the reports so far. */
void live_reset(struct live *live);

/* Each of the first @count members does two more submissions: one of them was begun after now. */
void live_go_on(struct live *live, unsigned count);

/*
 * The part of the GPU's time that the slice with more weight has, of those of two members that
 * work. The slices "a" and "b" have 95 and 5 in turns, so whatever else slows down one of them, for
 * a while or always, is added to both sides: without weights it is a half.
 */
double live_part_of_heavier(struct live *live, unsigned a, unsigned b);

/* For a process: joins, and allocates 1,000 bytes of its slice's memory. */
void live_hold(struct live *live, const char *socket_path, struct live_report *report);

#endif
