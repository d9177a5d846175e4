/* SPDX-License-Identifier: MIT */
/* The arbiter of one physical GPU. One thread, one event loop, no persistent state. */
#ifndef GOVERNOR_ARBITER_H
#define GOVERNOR_ARBITER_H

#include "rights.h"
#include "scheduler.h"
#include "slice.h"
#include "vault_link.h"

#include <glib.h>
#include <systemd/sd-event.h>

/**
 * struct arbiter
 * @conf_dir: …/run/vgpu/governor/<gpu>; @slices_dir: …/run/vgpu/slices
 * @next: when each class's scheduler is to be called again
 * @asked: bits of the classes that @look is for
 * @moves: whose memory is on the card
 * @slices: of struct slice, by id
 * @members: connections of all slices that have joined
 * @look: once in a turn of the event loop, however many have asked for it
 * @partners: the other arbiters of this host
 * @vault: where displaced memory is
 * @rights: what members send along and nobody wants
 * @settled: members of a previous arbiter have had the time to reconnect and declare what they hold
 */
struct arbiter {
    sd_event *event;
    char *gpu;
    char *conf_dir;
    char *slices_dir;
    struct gpu_settings settings;
    struct scheduler schedulers[GOVERNOR_CLASSES];
    uint64_t next[GOVERNOR_CLASSES];
    unsigned asked;
    struct moves moves;
    GHashTable *slices;
    uint64_t next_number;
    unsigned members;
    bool settled;
    sd_event_source *settle_timer;
    sd_event_source *timer;
    sd_event_source *look;
    sd_event_source *gpu_inotify;
    sd_event_source *slices_inotify;
    sd_event_source *status;
    struct partners *partners;
    struct vault_link vault;
    struct rights rights;
};

/* @tree replaces /. */
void arbiter_init(struct arbiter *arbiter, sd_event *event, const char *tree, const char *gpu);
void arbiter_clear(struct arbiter *arbiter);

/* Runs the schedulers of all classes, tells members what changed, and sets the timer. */
void arbiter_schedule(struct arbiter *arbiter);

#define ARBITER_ALL_CLASSES ((1u << GOVERNOR_CLASSES) - 1)

/*
 * The same for some @classes, bits by number, after everything that has happened by now is handled.
 * To be called after every event.
 */
void arbiter_schedule_soon(struct arbiter *arbiter, unsigned classes);

/* The socket of a previous arbiter was found: memory is granted when its members are back. */
void arbiter_settle(struct arbiter *arbiter);

/*
 * conf.c: makes the directories, reads the files, and follows their changes. Logs and returns false
 * on failure.
 */
bool conf_watch(struct arbiter *arbiter);

/* status.c: answers clients of status.sock. Logs and returns false on failure. */
bool status_listen(struct arbiter *arbiter);
/* The answer. */
char *status_text(struct arbiter *arbiter);

/*
 * To be called when a member has joined or left, or a slice was made, changed or removed: the file
 * "rest" then tells clients whether the answer stays as it is.
 */
void status_changed(const struct arbiter *arbiter);
/* The arbiter ends. */
void status_end(const struct arbiter *arbiter);

/* partners.c: hears the arbiters of other GPUs. Logs and returns false on failure. */
bool partners_listen(struct arbiter *arbiter);
/* A slice has begun to ask: its partners are asked as long as any slice does. */
void partners_ask(struct arbiter *arbiter);
void partners_end(struct arbiter *arbiter);

/* listener.c: a socket at @path; an existing one is replaced. Logs and returns -1 on failure. */
int listener_new(const char *path, int type, mode_t mode, uint32_t owner);

#endif
