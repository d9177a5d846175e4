/* SPDX-License-Identifier: MIT */
/*
 * What vgpud keeps on the host for its slices: files, directories, links, units of systemd. Who
 * knows what is wanted says so, for one subject at a time. This compares it with what was wanted
 * last, makes what is missing and takes away what is wanted no longer, and has the only notes of
 * that. What fails is tried again until it succeeds.
 */
#ifndef VGPUD_SYNC_OUTPUTS_H
#define VGPUD_SYNC_OUTPUTS_H

#include <glib.h>
#include <sys/types.h>

#include "lib/host_root.h"

typedef struct Outputs Outputs;

/* What is wanted for one subject, in the order in which it is made. */
typedef struct Wants Wants;

/**
 * OutputKind - things of one concern
 * @level: of the message about a failure
 * @trouble: what a failure means, before and behind the subject
 * @want: says what there should be for @subject (a UUID, a GPU, …), nothing for one that is gone.
 * FALSE: it can't say that now, and what is there stays
 * @updated: what others have in common with @subject may be different now; @before: its note of
 * before, or NULL. Called by outputs_update_slice() only; may be NULL
 * @start, @stop: of the unit that is wanted by want_unit(); neither waits
 * @give, @take: what is wanted by want_own(); each may find that it has been done. What can't be
 * taken away is tried again, and until then all stays as it is.
 */
typedef struct {
    GLogLevelFlags level;
    const char *trouble[2];
    gboolean (*want)(Wants *wants, const char *subject, void *data);
    void (*updated)(const char *subject, const char *before, void *data);
    void (*start)(const char *subject, void *data);
    void (*stop)(const char *subject, void *data);
    gboolean (*give)(const char *name, void *data, GError **error);
    gboolean (*take)(const char *name, void *data, GError **error);
} OutputKind;

Outputs *outputs_new(HostRoot *root);

/* What is there stays. */
void outputs_free(Outputs *outputs);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Outputs, outputs_free)

/* Brings what is there for one subject in line. @kind and @data live as long as @outputs. */
void outputs_update(Outputs *outputs, const OutputKind *kind, void *data, const char *subject);

/**
 * OutputStep - a kind that each slice has
 * @follows_state: also the slice's users and its engine, not only its attributes
 */
typedef struct {
    const OutputKind *kind;
    void *data;
    gboolean follows_state;
} OutputStep;

/* The order in which a slice's things are made; they are taken away in the reverse one. Copied. */
void outputs_set_steps(Outputs *outputs, const OutputStep *steps, guint count);

/* All steps for a slice; @state: only its state has changed. */
void outputs_update_slice(Outputs *outputs, const char *uuid, gboolean is_gone, gboolean state);

/* As outputs_update(), for all subjects for which something of that kind is there. */
void outputs_update_all(Outputs *outputs, const OutputKind *kind);

/* The unit of @subject could not be started. It is tried again, and @why is logged once. */
void outputs_failed(Outputs *outputs, const OutputKind *kind, const char *subject, const char *why);

/* The unit of @subject was started. */
gboolean outputs_started(const Outputs *outputs, const OutputKind *kind, const char *subject);

/* Something of that name was wanted for @subject by want_own(). */
gboolean outputs_has_own(const Outputs *outputs, const OutputKind *kind, const char *subject,
                         const char *name);

/* What want_note() has noted for @subject; NULL: nothing. */
const char *outputs_note(const Outputs *outputs, const OutputKind *kind, const char *subject);

/*
 * What an earlier vgpud has left for @subject, to be filled in; the next outputs_update() takes
 * away what of it is not wanted.
 */
Wants *outputs_left(Outputs *outputs, const OutputKind *kind, void *data, const char *subject);

/* What becomes of a directory that is wanted no longer. */
typedef enum {
    DIR_STAYS,
    DIR_SHARED, /* is removed when it is empty, because others may have something in it */
    DIR_OWN,    /* is removed with all that is in it */
} DirEnd;

/* A directory of that mode, whatever the umask is. */
void want_dir(Wants *wants, DirEnd end, const char *path, mode_t mode);

/* A directory that only root and @uids (of uid_t) may enter. @may: "x", or "rx" to list it, too. */
void want_dir_of(Wants *wants, DirEnd end, const char *path, const char *may, const GArray *uids);

void want_link(Wants *wants, const char *path, const char *target);
void want_file(Wants *wants, const char *path, const char *text);

/* The kind's unit; it is stopped and started if @settings are not those it was started with. */
void want_unit(Wants *wants, const char *settings);

/* Something of the kind's own, such as an entry in an ACL; @name says which. */
void want_own(Wants *wants, const char *name);

/* A file that others write, and that goes with the rest. */
void want_end_of(Wants *wants, const char *path);

/* Something to know about what was made, for the next time. */
void want_note(Wants *wants, const char *note);

/* The rest cannot be made: why. */
void want_trouble(Wants *wants, const char *why);

/* What of this is there already was another's, or is outdated: it is taken away first. */
void want_anew(Wants *wants);

#endif
