/* SPDX-License-Identifier: MIT */
/* The audit: an entry in the journal for each change, and who made it. */
#ifndef VGPUD_HOST_AUDIT_H
#define VGPUD_HOST_AUDIT_H

#include <glib.h>

/*
 * Entries of the audit: who changed which object, from which state to which, in the journal
 * (lib/bus.h has the fields).
 */

typedef enum {
    AUDIT_SLICE,  /* a vGPU or a slice, by UUID or name */
    AUDIT_TENANT, /* by name */
    AUDIT_GPU,    /* by its address, or the path of its object */
    AUDIT_CONFIG, /* /etc/vgpu */
} AuditKind;

/*
 * The state of the object, to be freed; NULL: none. @name becomes its own name. @user: who calls it
 * so; NULL: vgpud.
 */
typedef char *(*AuditDescribe)(AuditKind kind, char **name, const char *user, void *data);

/* NULL: ends the audit. */
void audit_set_describe(AuditDescribe func, void *data);

/* There is somebody to describe objects. */
gboolean audit_is_on(void);

/* The object's present state, to be freed; "": it does not exist. */
char *audit_state_of(AuditKind kind, const char *name);

/* The same for what @user calls *@name, which becomes its own name. */
char *audit_state_and_name(AuditKind kind, char **name, const char *user);

/**
 * AuditEntry
 * @who: a user, or a source (AUDIT_BY_…)
 * @uid: of the user; NULL: it is a source
 * @what: a method, or an action (AUDIT_DO_…)
 * @before, @after: states
 * @error: NULL: it has succeeded
 */
typedef struct {
    const char *who;
    const guint32 *uid;
    const char *what;
    const char *object;
    const char *before;
    const char *after;
    const GError *error;
} AuditEntry;

void audit_write(const AuditEntry *entry);

/*
 * What @who has just done to an object whose state was @before (audit_state_of()); nothing is
 * written if that is its state still, unless @error says that it was tried.
 */
void audit_write_change(const char *who, const char *what, AuditKind kind, const char *object,
                        const char *before, const GError *error);

/* Takes an entry, "FIELD=value" each. For tests; NULL: the journal. */
typedef void (*AuditSink)(const char *const *fields, void *data);
void audit_set_sink(AuditSink func, void *data);

#endif
