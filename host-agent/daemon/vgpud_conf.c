/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/vgpud_conf.h"

#include <gio/gio.h>
#include <string.h>

#include "lib/bus.h"
#include "lib/host_root.h"

#define METRICS_LISTEN "127.0.0.1:9835"
#define PRESSURE_GRACE 10
#define LONGEST_GRACE  3600

/* Sets a value of @conf from its text; FALSE: it is not @allowed. */
typedef gboolean SetFunc(VgpudConf *conf, const char *text);

static gboolean set_listen(VgpudConf *conf, const char *text)
{
    const char *port = strrchr(text, ':');
    guint64 number;

    g_clear_pointer(&conf->metrics_listen, g_free);
    if (g_str_equal(text, "off"))
        return TRUE;
    conf->metrics_listen = g_strdup(text);
    if (g_str_has_prefix(text, "unix:"))
        return text[strlen("unix:")] == '/';
    return port && port != text &&
           g_ascii_string_to_unsigned(port + 1, 10, 1, G_MAXUINT16, &number, NULL);
}

static gboolean set_grace(VgpudConf *conf, const char *text)
{
    guint64 seconds = 0;
    gboolean good = g_ascii_string_to_unsigned(text, 10, 1, LONGEST_GRACE, &seconds, NULL);

    conf->pressure_grace = (guint)seconds;
    return good;
}

static gboolean set_on_bypass(VgpudConf *conf, const char *text)
{
    static const char *const names[] = {"report", "kill", "ignore"};

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        conf->on_bypass = (OnBypass)i;
        if (g_str_equal(text, names[i]))
            return TRUE;
    }
    return FALSE;
}

static const struct {
    const char *group;
    const char *key;
    SetFunc *set;
    const char *allowed;
} keys[] = {
    {"metrics", "listen", set_listen,
     "ADDRESS:PORT such as 127.0.0.1:9835, unix:PATH such as unix:/run/vgpu/metrics, or off"},
    {"pressure", "grace", set_grace, "a whole number of seconds from 1 to 3600"},
    {"slices", "on-bypass", set_on_bypass, "report, kill or ignore"},
};

static gboolean read_key(VgpudConf *conf, GKeyFile *file, const char *group, const char *key,
                         GError **error)
{
    g_autofree char *text = g_key_file_get_string(file, group, key, NULL);

    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!g_str_equal(keys[i].group, group) || !g_str_equal(keys[i].key, key))
            continue;
        if (text && keys[i].set(conf, g_strstrip(text)))
            return TRUE;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    VGPUD_CONF ": [%s]: %s=%s is not allowed: it must be %s", group, key,
                    text ? text : "", keys[i].allowed);
        return FALSE;
    }
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                VGPUD_CONF ": [%s]: there is no key \"%s\" here; vgpud(8) lists the keys", group,
                key);
    return FALSE;
}

static gboolean read_group(VgpudConf *conf, GKeyFile *file, const char *group, GError **error)
{
    g_auto(GStrv) names = g_key_file_get_keys(file, group, NULL, NULL);

    for (guint i = 0; names && names[i]; i++)
        if (!read_key(conf, file, group, names[i], error))
            return FALSE;
    return TRUE;
}

VgpudConf *vgpud_conf_load(HostRoot *root, GError **error)
{
    g_autoptr(VgpudConf) conf = g_new0(VgpudConf, 1);
    g_autoptr(GError) cause = NULL;
    g_autoptr(GKeyFile) file = root_read_keys(root, VGPUD_CONF, G_KEY_FILE_NONE, &cause);
    g_auto(GStrv) groups = NULL;

    conf->metrics_listen = g_strdup(METRICS_LISTEN);
    conf->pressure_grace = PRESSURE_GRACE;
    if (!file) {
        if (g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT))
            return g_steal_pointer(&conf);
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, VGPUD_CONF ": %s", cause->message);
        return NULL;
    }
    groups = g_key_file_get_groups(file, NULL);
    for (guint i = 0; groups[i]; i++)
        if (!read_group(conf, file, groups[i], error))
            return NULL;
    return g_steal_pointer(&conf);
}

void vgpud_conf_free(VgpudConf *conf)
{
    g_free(conf->metrics_listen);
    g_free(conf);
}
