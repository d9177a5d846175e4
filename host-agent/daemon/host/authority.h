/* SPDX-License-Identifier: MIT */
/* Who calls, and what polkit allows. */
#ifndef VGPUD_HOST_AUTHORITY_H
#define VGPUD_HOST_AUTHORITY_H

#include <glib.h>
#include <gio/gio.h>
#include <sys/types.h>

/* Access rights: polkit's answer (dbus/org.mdev_vgpu.Host1.policy has the actions). */

#define ACTION_SEE            "org.mdev_vgpu.host.see"
#define ACTION_USE_OWN_TENANT "org.mdev_vgpu.host.use-own-tenant"
#define ACTION_ADMINISTER     "org.mdev_vgpu.host.administer"

/**
 * Caller - the caller of a method
 * @uid: of the process; (uid_t)-1: not known
 * @user: its name, or its number if it has none
 */
typedef struct {
    guint32 uid;
    char *user;
} Caller;

/* Called if the caller is authorized; must answer @invocation. @caller: valid until it returns. */
typedef void AuthorizedFunc(GDBusMethodInvocation *invocation, const Caller *caller, void *data);

/*
 * Asks polkit whether the caller of @invocation may do @action, and calls @func from the main loop
 * if so; else answers with AGENT_ERROR_NOT_AUTHORIZED. The user of vgpud itself is always
 * authorized. People are asked for a password only if the caller allows that (the message's flag).
 */
void authority_ask(GDBusMethodInvocation *invocation, const char *action, AuthorizedFunc *func,
                   void *data);

/*
 * The same, but calls @otherwise if the caller may not, without a question to people: it must
 * answer, or ask for another right, or for the same one by authority_ask().
 */
void authority_ask_or(GDBusMethodInvocation *invocation, const char *action, AuthorizedFunc *func,
                      AuthorizedFunc *otherwise, void *data);

/*
 * Answers a method of @interface, whose @signal is "handle-" and its name: authority_ask(), or with
 * @otherwise authority_ask_or(). It ends with the interface, or when the handlers of @data are
 * disconnected.
 */
void authority_answer(void *interface, const char *signal, const char *action, AuthorizedFunc *func,
                      AuthorizedFunc *otherwise, void *data);

/* Answers with AGENT_ERROR_NOT_AUTHORIZED. @why: NULL: polkit gave no reason. */
void authority_refuse(GDBusMethodInvocation *invocation, const Caller *caller, const char *action,
                      const char *why);

#endif
