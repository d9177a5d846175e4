/* SPDX-License-Identifier: MIT */
#include "lib/vgpud_conf.h"

#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

#include "lib/bus.h"
#include "lib/conf.h"
#include "lib/host_root.h"

#define METRICS_LISTEN "127.0.0.1:9835"
#define PRESSURE_GRACE 10
#define LONGEST_GRACE  3600

/* A line that was meant to set on-bypass=, however the rest of it is written. */
#define POLICY_LINE "^[^#\n]*bypass"

/* Sets a value of @conf from its text; FALSE: it is not @allowed, and @conf is unchanged. */
typedef gboolean SetFunc(VgpudConf *conf, const char *text);

#define LOCALHOST "localhost:"

/* "127.0.0.1:9835", "[::1]:9835": names are not resolved. */
static gboolean is_inet_address(const char *text)
{
    const char *port = strrchr(text, ':');
    g_autofree char *host = port ? g_strndup(text, (gsize)(port - text)) : NULL;
    gsize length = host ? strlen(host) : 0;
    gboolean bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']';
    g_autoptr(GInetAddress) address = NULL;
    guint64 number;

    if (!port || !g_ascii_string_to_unsigned(port + 1, 10, 1, G_MAXUINT16, &number, NULL))
        return FALSE;
    if (bracketed)
        host[length - 1] = '\0';
    address = g_inet_address_new_from_string(bracketed ? host + 1 : host);
    return address && (g_inet_address_get_family(address) == G_SOCKET_FAMILY_IPV6) == bracketed;
}

static gboolean set_listen(VgpudConf *conf, const char *text)
{
    gboolean off = g_str_equal(text, "off");
    g_autofree char *address = NULL;
    gboolean good;

    /* The one name that every other exporter takes; it needs no resolver. */
    address = g_str_has_prefix(text, LOCALHOST)
                  ? g_strconcat("127.0.0.1:", text + strlen(LOCALHOST), NULL)
                  : g_strdup(text);
    good = g_str_has_prefix(address, "unix:") ? address[strlen("unix:")] == '/'
                                              : is_inet_address(address);
    if (!off && !good)
        return FALSE;
    g_free(conf->metrics_listen);
    conf->metrics_listen = off ? NULL : g_steal_pointer(&address);
    return TRUE;
}

static gboolean set_grace(VgpudConf *conf, const char *text)
{
    guint64 seconds = 0;

    if (!g_ascii_string_to_unsigned(text, 10, 1, LONGEST_GRACE, &seconds, NULL))
        return FALSE;
    conf->pressure_grace = (guint)seconds;
    return TRUE;
}

static gboolean set_native(VgpudConf *conf, const char *text)
{
    static const char *const names[] = {"leave", "suspend", "end"};

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!g_str_equal(text, names[i]))
            continue;
        conf->pressure_native = (PressureNative)i;
        return TRUE;
    }
    return FALSE;
}

static gboolean set_on_bypass(VgpudConf *conf, const char *text)
{
    static const char *const names[] = {"report", "kill", "ignore"};

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!g_str_equal(text, names[i]))
            continue;
        conf->on_bypass = (OnBypass)i;
        conf->has_on_bypass = TRUE;
        return TRUE;
    }
    return FALSE;
}

static gboolean set_displaced(VgpudConf *conf, const char *text)
{
    gboolean off = g_str_equal(text, "0");

    if (off)
        conf->displaced = 0;
    return off || size_parse(text, &conf->displaced);
}

/* Half of the host's memory. */
static guint64 default_displaced(HostRoot *root)
{
    g_autofree char *text = root_read(root, "/proc/meminfo", NULL);
    guint64 kib = 0;

    return text && sscanf(text, "MemTotal: %" G_GUINT64_FORMAT, &kib) == 1 ? kib * 1024 / 2 : 0;
}

static const struct {
    const char *group;
    const char *key;
    SetFunc *set;
    const char *allowed;
} keys[] = {
    {"metrics", "listen", set_listen,
     "ADDRESS:PORT such as 127.0.0.1:9835 or [::1]:9835, unix:PATH such as unix:/run/vgpu/metrics, "
     "or off"},
    {"pressure", "grace", set_grace, "a whole number of seconds from 1 to 3600"},
    {"pressure", "native", set_native, "leave, suspend or end"},
    {"slices", "on-bypass", set_on_bypass, "report, kill or ignore"},
    {"slices", "displaced", set_displaced, SIZE_RULE " or 0"},
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

/* Goes on after a mistake; @error has the first one. */
static void read_group(VgpudConf *conf, GKeyFile *file, const char *group, GError **error)
{
    g_auto(GStrv) names = g_key_file_get_keys(file, group, NULL, NULL);

    for (guint i = 0; names && names[i]; i++)
        read_key(conf, file, group, names[i], *error ? NULL : error);
}

/* What is right in the file, and defaults for the rest. @error: set if there was a mistake. */
static VgpudConf *read_right(HostRoot *root, GError **error)
{
    VgpudConf *conf = g_new0(VgpudConf, 1);
    g_autoptr(GError) cause = NULL;
    g_autoptr(GKeyFile) file = root_read_keys(root, VGPUD_CONF, G_KEY_FILE_NONE, &cause);
    g_auto(GStrv) groups = file ? g_key_file_get_groups(file, NULL) : NULL;

    conf->metrics_listen = g_strdup(METRICS_LISTEN);
    conf->pressure_grace = PRESSURE_GRACE;
    conf->displaced = default_displaced(root);
    if (cause && !g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, VGPUD_CONF ": %s", cause->message);
    for (guint i = 0; groups && groups[i]; i++)
        read_group(conf, file, groups[i], error);
    return conf;
}

VgpudConf *vgpud_conf_load(HostRoot *root, GError **error)
{
    g_autoptr(GError) mistake = NULL;
    g_autoptr(VgpudConf) conf = read_right(root, &mistake);

    if (!mistake)
        return g_steal_pointer(&conf);
    g_propagate_error(error, g_steal_pointer(&mistake));
    return NULL;
}

/* The file may say on-bypass=, and nobody can know what. */
static gboolean has_lost_policy(HostRoot *root, const VgpudConf *conf)
{
    g_autofree char *text = conf->has_on_bypass ? NULL : root_read(root, VGPUD_CONF, NULL);

    return !conf->has_on_bypass &&
           (!text || g_regex_match_simple(POLICY_LINE, text, G_REGEX_MULTILINE, 0));
}

VgpudConf *vgpud_conf_load_at_start(HostRoot *root, GError **error)
{
    g_autoptr(GError) mistake = NULL;
    g_autoptr(VgpudConf) conf = read_right(root, &mistake);

    if (mistake && has_lost_policy(root, conf)) {
        g_propagate_prefixed_error(error, g_steal_pointer(&mistake),
                                   "cannot read on-bypass=, without which neither vgpud nor "
                                   "vgpu-meter starts: ");
        return NULL;
    }
    if (mistake)
        g_warning("%s; until this is corrected (\"vgpuctl reload\") the default applies",
                  mistake->message);
    return g_steal_pointer(&conf);
}

void vgpud_conf_free(VgpudConf *conf)
{
    g_free(conf->metrics_listen);
    g_free(conf);
}
