/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/authority.h"

#include <errno.h>
#include <pwd.h>
#include <unistd.h>
#include <polkit/polkit.h>

#include "lib/bus.h"
#include "host-agent/daemon/host/call.h"

/* More than an entry needs: names, a home, a shell. */
#define ENTRY_MAX (64u << 10)

/* The user's name; its number if it has none. To be freed. */
static char *user_name(uid_t uid)
{
    g_autofree char *text = g_malloc(ENTRY_MAX);
    struct passwd entry, *found = NULL;

    while (getpwuid_r(uid, &entry, text, ENTRY_MAX, &found) == EINTR)
        ;
    return found ? g_strdup(found->pw_name) : g_strdup_printf("%u", uid);
}

typedef struct {
    GDBusMethodInvocation *invocation;
    const char *action;
    AuthorizedFunc *func;
    AuthorizedFunc *otherwise;
    void *data;
    Caller caller;
} Question;

static void question_free(Question *question)
{
    g_object_unref(question->invocation);
    g_free(question->caller.user);
    g_free(question);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Question, question_free)

void authority_refuse(GDBusMethodInvocation *invocation, const Caller *caller, const char *action,
                      const char *why)
{
    call_refuse(
        invocation, AGENT_ERROR_NOT_AUTHORIZED,
        "user %s may not do this%s%s; it needs the right \"%s\", which an administrator grants by "
        "a polkit rule",
        caller->user, why ? ": " : "", why ? why : "", action);
}

static void refuse_question(const Question *question, const char *why)
{
    if (question->otherwise)
        question->otherwise(question->invocation, &question->caller, question->data);
    else
        authority_refuse(question->invocation, &question->caller, question->action, why);
}

static void allow_question(const Question *question)
{
    call_begin(question->invocation, &question->caller);
    question->func(question->invocation, &question->caller, question->data);
}

static void polkit_answered(GObject *authority, GAsyncResult *answer, void *data)
{
    g_autoptr(Question) question = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(PolkitAuthorizationResult) result =
        polkit_authority_check_authorization_finish(POLKIT_AUTHORITY(authority), answer, &error);

    if (result && polkit_authorization_result_get_is_authorized(result))
        allow_question(question);
    else
        refuse_question(question, error ? error->message : NULL);
}

/* Nobody is asked for a password if there is another right by which the caller may have an answer.
 */
static PolkitCheckAuthorizationFlags flags_of(const Question *question)
{
    GDBusMessage *message = g_dbus_method_invocation_get_message(question->invocation);
    gboolean interactive =
        !question->otherwise &&
        g_dbus_message_get_flags(message) & G_DBUS_MESSAGE_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION;

    return interactive ? POLKIT_CHECK_AUTHORIZATION_FLAGS_ALLOW_USER_INTERACTION
                       : POLKIT_CHECK_AUTHORIZATION_FLAGS_NONE;
}

static void got_polkit(GObject *source, GAsyncResult *answer, void *data)
{
    g_autoptr(Question) question = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(PolkitAuthority) authority = polkit_authority_get_finish(answer, &error);
    g_autoptr(PolkitSubject) subject = NULL;

    (void)source;
    if (!authority) {
        refuse_question(question, error->message);
        return;
    }
    subject = polkit_system_bus_name_new(g_dbus_method_invocation_get_sender(question->invocation));
    polkit_authority_check_authorization(authority, subject, question->action, NULL,
                                         flags_of(question), NULL, polkit_answered, question);
    g_steal_pointer(&question);
}

static void ask_polkit(Question *question)
{
    if (question->caller.uid == geteuid()) {
        allow_question(question);
        question_free(question);
        return;
    }
    polkit_authority_get_async(NULL, got_polkit, question);
}

/* Names may come from a slow directory server. */
static void look_up(GTask *task, void *source, void *data, GCancellable *cancellable)
{
    const guint32 *uid = data;

    (void)source;
    (void)cancellable;
    g_task_return_pointer(task, user_name(*uid), g_free);
}

static void got_name(GObject *source, GAsyncResult *answer, void *data)
{
    Question *question = data;

    (void)source;
    g_free(question->caller.user);
    question->caller.user = g_task_propagate_pointer(G_TASK(answer), NULL);
    ask_polkit(question);
}

static void got_uid(GObject *bus, GAsyncResult *answer, void *data)
{
    g_autoptr(Question) question = data;
    g_autoptr(GTask) task = NULL;
    g_autoptr(GVariant) result =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), answer, NULL);

    /* A caller that is gone gets no answer. */
    if (!result) {
        refuse_question(question, "it has left the bus");
        return;
    }
    g_variant_get(result, "(u)", &question->caller.uid);
    task = g_task_new(NULL, NULL, got_name, question);
    g_task_set_task_data(task, g_memdup2(&question->caller.uid, sizeof(guint32)), g_free);
    g_task_run_in_thread(task, look_up);
    g_steal_pointer(&question);
}

void authority_ask(GDBusMethodInvocation *invocation, const char *action, AuthorizedFunc *func,
                   void *data)
{
    authority_ask_or(invocation, action, func, NULL, data);
}

void authority_ask_or(GDBusMethodInvocation *invocation, const char *action, AuthorizedFunc *func,
                      AuthorizedFunc *otherwise, void *data)
{
    Question *question = g_new0(Question, 1);

    question->invocation = g_object_ref(invocation);
    question->action = action;
    question->func = func;
    question->otherwise = otherwise;
    question->data = data;
    question->caller.uid = (guint32)-1;
    question->caller.user = g_strdup("(unknown)");
    g_dbus_connection_call(
        g_dbus_method_invocation_get_connection(invocation), "org.freedesktop.DBus",
        "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetConnectionUnixUser",
        g_variant_new("(s)", g_dbus_method_invocation_get_sender(invocation)),
        G_VARIANT_TYPE("(u)"), G_DBUS_CALL_FLAGS_NONE, -1, NULL, got_uid, question);
}

/* One of authority_answer(); its data are the closure's. */
typedef struct {
    GClosure closure;
    const char *action;
    AuthorizedFunc *func;
    AuthorizedFunc *otherwise;
} Method;

/* The method's own arguments, which come after the invocation, are in the invocation, too. */
static void answer_call(GClosure *closure, GValue *handled, guint count, const GValue *arguments,
                        void *hint, void *data)
{
    const Method *method = (const Method *)closure;
    GDBusMethodInvocation *invocation = g_value_get_object(&arguments[1]);

    (void)count;
    (void)hint;
    (void)data;
    if (method->otherwise)
        authority_ask_or(invocation, method->action, method->func, method->otherwise,
                         closure->data);
    else
        authority_ask(invocation, method->action, method->func, closure->data);
    g_value_set_boolean(handled, TRUE);
}

void authority_answer(void *interface, const char *signal, const char *action, AuthorizedFunc *func,
                      AuthorizedFunc *otherwise, void *data)
{
    GClosure *closure = g_closure_new_simple(sizeof(Method), data);
    Method *method = (Method *)closure;

    method->action = action;
    method->func = func;
    method->otherwise = otherwise;
    g_closure_set_marshal(closure, answer_call);
    g_signal_connect_closure(interface, signal, closure, FALSE);
}
