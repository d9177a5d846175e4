/* SPDX-License-Identifier: MIT */
/*
 * The arbiter of one physical GPU. One thread, one event loop; no state that outlives it.
 */
#ifndef GOVERNOR_ARBITER_H
#define GOVERNOR_ARBITER_H

#include "scheduler.h"
#include "slice.h"

#include <glib.h>
#include <systemd/sd-event.h>

/**
 * struct arbiter
 * @conf_dir: …/run/vgpu/governor/<gpu>; @slices_dir: …/run/vgpu/slices
 * @slices: of struct slice, by id
 * @connections: of all slices
 * @look: once in a turn of the event loop, however many have asked for it
 * @settled: members of an arbiter before this one have had the time to come back and say what they
 * hold
 */
struct arbiter {
    sd_event *event;
    char *gpu;
    char *conf_dir;
    char *slices_dir;
    struct gpu_settings settings;
    struct scheduler scheduler;
    GHashTable *slices;
    uint64_t next_number;
    unsigned connections;
    bool settled;
    sd_event_source *settle_timer;
    sd_event_source *timer;
    sd_event_source *look;
    sd_event_source *gpu_inotify;
    sd_event_source *slices_inotify;
    sd_event_source *status;
};

/* @root stands for /. */
void arbiter_init(struct arbiter *arbiter, sd_event *event, const char *root, const char *gpu);
void arbiter_clear(struct arbiter *arbiter);

/* Lets the scheduler decide, tells members what changed, and sets the timer. */
void arbiter_schedule(struct arbiter *arbiter);

/* The same, when all that is known to have happened by now has been handled. After every event. */
void arbiter_schedule_soon(struct arbiter *arbiter);

/* A socket of an arbiter before this one was found: memory is granted when its members are back. */
void arbiter_settle(struct arbiter *arbiter);

/* conf.c: makes the directories, reads the files, and follows their changes. False: logged. */
bool conf_watch(struct arbiter *arbiter);

/* status.c: answers who connects to status.sock. False: logged. */
bool status_listen(struct arbiter *arbiter);
/* The answer. */
char *status_text(struct arbiter *arbiter);

/* listener.c: a socket at @path, replaced if it is there; -1: logged. */
int listener_new(const char *path, int type, mode_t mode, uint32_t owner);

#endif
