/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/host/audit.h"

#include <string.h>
#include <sys/uio.h>

/* Entries of the audit. */

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "lib/bus.h"

static AuditDescribe describe;
static void *describe_data;
static AuditSink sink;
static void *sink_data;

void audit_set_describe(AuditDescribe func, void *data)
{
    describe = func;
    describe_data = data;
}

gboolean audit_is_on(void)
{
    return describe != NULL;
}

void audit_set_sink(AuditSink func, void *data)
{
    sink = func;
    sink_data = data;
}

char *audit_state_and_name(AuditKind kind, char **name, const char *user)
{
    char *state = describe ? describe(kind, name, user, describe_data) : NULL;

    return state ? state : g_strdup("");
}

char *audit_state_of(AuditKind kind, const char *name)
{
    g_autofree char *own = g_strdup(name);

    return audit_state_and_name(kind, &own, NULL);
}

static void send_to_journal(const char *const *fields)
{
    gsize count = g_strv_length((char **)fields);
    g_autofree struct iovec *list = g_new0(struct iovec, count);

    if (sink) {
        sink(fields, sink_data);
        return;
    }
    for (gsize i = 0; i < count; i++)
        list[i] = (struct iovec){(void *)fields[i], strlen(fields[i])};
    sd_journal_sendv(list, (int)count);
}

void audit_write(const AuditEntry *entry)
{
    g_autofree char *result =
        entry->error ? g_strdup_printf("failed: %s", entry->error->message) : g_strdup("ok");
    g_autofree char *change = audit_difference(entry->before, entry->after);
    g_autoptr(GStrvBuilder) fields = g_strv_builder_new();
    g_auto(GStrv) list = NULL;

    g_strv_builder_take(fields,
                        g_strdup_printf("MESSAGE=%s: %s %s by %s%s%s", entry->what, entry->object,
                                        result, entry->who, *change ? ": " : "", change));
    g_strv_builder_add(fields, "MESSAGE_ID=" AUDIT_MESSAGE_ID);
    g_strv_builder_add(fields, "PRIORITY=5");
    g_strv_builder_take(fields, g_strconcat(AUDIT_METHOD "=", entry->what, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_OBJECT "=", entry->object, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_USER "=", entry->who, NULL));
    if (entry->uid)
        g_strv_builder_take(fields, g_strdup_printf(AUDIT_UID "=%u", *entry->uid));
    g_strv_builder_take(fields, g_strconcat(AUDIT_BEFORE "=", entry->before, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_AFTER "=", entry->after, NULL));
    g_strv_builder_take(fields, g_strconcat(AUDIT_RESULT "=", result, NULL));
    list = g_strv_builder_end(fields);
    send_to_journal((const char *const *)list);
}

void audit_write_change(const char *who, const char *what, AuditKind kind, const char *object,
                        const char *before, const GError *error)
{
    g_autofree char *name = g_strdup(object);
    g_autofree char *after = audit_state_and_name(kind, &name, NULL);

    if (audit_is_on() && (error || !g_str_equal(before, after)))
        audit_write(&(AuditEntry){.who = who,
                                  .what = what,
                                  .object = name,
                                  .before = before,
                                  .after = after,
                                  .error = error});
}
