/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/conf.h"

#include <stdarg.h>
#include <string.h>

#include "lib/conf.h"

#define KUBELET_DIR "/var/lib/kubelet"
#define SEATS       "seats "
/* vgpud makes so many slices in one call. */
#define SEATS_MAX 64

/* The name of a resource has at most 63 bytes behind its slash. */
#define SEATS_NAME_MAX 63

#define FORGOTTEN_AFTER 300
#define FORGOTTEN_MAX   86400

/* Kubernetes' own clients have watches of five to ten minutes. */
#define WATCH_SECONDS     540
#define WATCH_MAX_SECONDS 3600

static const char *const kubelet_keys[] = {"node",   "folder",          "cdi",
                                           "tenant", "forgotten-after", NULL};
static const char *const api_keys[] = {"url",           "ca", "certificate", "key", "token-file",
                                       "watch-seconds", NULL};
static const char *const doors[] = {"auto", "guarded", "native", NULL};
static const char *const seats_keys[] = {"type", "count", "door", "class", "policy", NULL};

static void seats_free(void *data)
{
    Seats *seats = data;

    g_free(seats->model);
    g_free(seats->type);
    g_free(seats->door);
    g_free(seats->class);
    g_free(seats);
}

void kube_conf_free(KubeConf *conf)
{
    g_clear_pointer(&conf->root, host_root_unref);
    g_free(conf->node);
    g_free(conf->kubelet);
    g_free(conf->tenant);
    g_free(conf->url);
    g_free(conf->ca);
    g_free(conf->certificate);
    g_free(conf->key);
    g_free(conf->token);
    g_ptr_array_unref(conf->seats);
    g_free(conf);
}

G_GNUC_PRINTF(2, 3) static gboolean refuse_conf(GError **error, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, REGISTRAR_ERROR, REGISTRAR_ERROR_CONFIG, KUBE_CONF_PATH ": %s", text);
    return FALSE;
}

static gboolean check_keys(GKeyFile *file, const char *group, const char *const *allowed,
                           GError **error)
{
    g_auto(GStrv) keys = g_key_file_get_keys(file, group, NULL, NULL);

    for (guint i = 0; keys[i]; i++) {
        if (g_strv_contains(allowed, keys[i]))
            continue;
        g_autofree char *list = g_strjoinv(", ", (char **)allowed);

        return refuse_conf(error, "[%s] has no key \"%s\", only %s", group, keys[i], list);
    }
    return TRUE;
}

/* NULL: missing, or empty. */
static char *text_of(GKeyFile *file, const char *group, const char *key)
{
    char *text = g_key_file_get_string(file, group, key, NULL);

    if (text && !*g_strstrip(text))
        g_clear_pointer(&text, g_free);
    return text;
}

/* Whether the value is @yes or @no; missing: @otherwise. */
static gboolean choice_of(GKeyFile *file, const char *group, const char *key, const char *yes,
                          const char *no, gboolean *value, GError **error)
{
    g_autofree char *text = text_of(file, group, key);

    if (text && !g_str_equal(text, yes) && !g_str_equal(text, no))
        return refuse_conf(error, "[%s] %s=%s: allowed are %s and %s", group, key, text, yes, no);
    if (text)
        *value = g_str_equal(text, yes);
    return TRUE;
}

/* What may be part of a resource's name. */
static gboolean is_name(const char *text)
{
    if (!text || !g_ascii_isalnum(*text))
        return FALSE;
    for (const char *at = text; *at; at++)
        if (!g_ascii_islower(*at) && !g_ascii_isdigit(*at) && !strchr("-.", *at))
            return FALSE;
    return TRUE;
}

static gboolean read_seats(GKeyFile *file, const char *group, KubeConf *conf, GError **error)
{
    Seats *seats = g_new0(Seats, 1);
    g_autofree char *count = text_of(file, group, "count");
    guint64 number = 0;

    g_ptr_array_add(conf->seats, seats);
    seats->model = g_strstrip(g_strdup(group + strlen(SEATS)));
    seats->type = text_of(file, group, "type");
    seats->door = text_of(file, group, "door");
    seats->class = text_of(file, group, "class");
    if (!check_keys(file, group, seats_keys, error) ||
        !choice_of(file, group, "policy", "spread", "pack", &seats->spread, error))
        return FALSE;
    if (!is_name(seats->model) || !is_name(seats->type) ||
        strlen(seats->model) + 1 + strlen(seats->type) > SEATS_NAME_MAX)
        return refuse_conf(
            error,
            "[%s] needs the name of a model and type=: lower-case letters, digits, \"-\" "
            "and \".\", at most %d together",
            group, SEATS_NAME_MAX - 1);
    if (!count || !g_ascii_string_to_unsigned(count, 10, 1, SEATS_MAX, &number, NULL))
        return refuse_conf(error, "[%s] needs count=, from 1 to %d", group, SEATS_MAX);
    seats->count = (guint)number;
    seats->is_default_door = !seats->door;
    if (!seats->door)
        seats->door = g_strdup("auto");
    if (!g_strv_contains(doors, seats->door))
        return refuse_conf(error, "[%s] door=%s: allowed are auto, guarded and native", group,
                           seats->door);
    return TRUE;
}

static gboolean read_kubelet(GKeyFile *file, KubeConf *conf, GError **error)
{
    const char *group = "kubelet";
    g_autofree char *tenant = NULL;
    g_autofree char *after = text_of(file, group, "forgotten-after");
    guint64 seconds = FORGOTTEN_AFTER;

    if (!g_key_file_has_group(file, group))
        return TRUE;
    if (!check_keys(file, group, kubelet_keys, error) ||
        !choice_of(file, group, "cdi", "yes", "no", &conf->with_cdi, error))
        return FALSE;
    if (after && !g_ascii_string_to_unsigned(after, 10, 1, FORGOTTEN_MAX, &seconds, NULL))
        return refuse_conf(error, "[%s] forgotten-after=%s: seconds, from 1 to %d", group, after,
                           FORGOTTEN_MAX);
    conf->forgotten_after = (guint)seconds;
    conf->node = text_of(file, group, "node");
    conf->kubelet = text_of(file, group, "folder");
    tenant = text_of(file, group, "tenant");
    conf->tenant_is_namespace = tenant && g_str_equal(tenant, "namespace");
    if (!conf->tenant_is_namespace)
        conf->tenant = g_steal_pointer(&tenant);
    if (conf->kubelet && !g_path_is_absolute(conf->kubelet))
        return refuse_conf(error, "[%s] folder=%s: this is no absolute path", group, conf->kubelet);
    return TRUE;
}

static gboolean read_api(GKeyFile *file, KubeConf *conf, GError **error)
{
    const char *group = "api";
    g_autofree char *watch = NULL;
    guint64 seconds = WATCH_SECONDS;

    if (!g_key_file_has_group(file, group))
        return TRUE;
    conf->url = text_of(file, group, "url");
    conf->ca = text_of(file, group, "ca");
    conf->certificate = text_of(file, group, "certificate");
    conf->key = text_of(file, group, "key");
    conf->token = text_of(file, group, "token-file");
    if (!check_keys(file, group, api_keys, error))
        return FALSE;
    if (!conf->url || !g_str_has_prefix(conf->url, "https://"))
        return refuse_conf(error, "[%s] needs url=https://…", group);
    if (!conf->certificate && !conf->token)
        return refuse_conf(error, "[%s] needs certificate= or token-file=", group);
    watch = text_of(file, group, "watch-seconds");
    if (watch && !g_ascii_string_to_unsigned(watch, 10, 1, WATCH_MAX_SECONDS, &seconds, NULL))
        return refuse_conf(error, "[%s] watch-seconds=%s: seconds, from 1 to %d", group, watch,
                           WATCH_MAX_SECONDS);
    conf->watch_seconds = (guint)seconds;
    while (g_str_has_suffix(conf->url, "/"))
        conf->url[strlen(conf->url) - 1] = '\0';
    return TRUE;
}

static gboolean read_all(GKeyFile *file, KubeConf *conf, GError **error)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);

    for (guint i = 0; groups[i]; i++) {
        if (g_str_has_prefix(groups[i], SEATS)) {
            if (!read_seats(file, groups[i], conf, error))
                return FALSE;
        } else if (!g_str_equal(groups[i], "kubelet") && !g_str_equal(groups[i], "api")) {
            return refuse_conf(error,
                               "there is no group [%s], only [kubelet], [api] and [seats MODEL]",
                               groups[i]);
        }
    }
    return read_kubelet(file, conf, error) && read_api(file, conf, error);
}

KubeConf *kube_conf_read(HostRoot *root, GError **error)
{
    g_autoptr(KubeConf) conf = g_new0(KubeConf, 1);
    g_autoptr(GKeyFile) file = NULL;

    conf->seats = g_ptr_array_new_with_free_func(seats_free);
    conf->root = host_root_ref(root);
    conf->with_cdi = TRUE;
    conf->forgotten_after = FORGOTTEN_AFTER;
    if (root_has(root, KUBE_CONF_PATH)) {
        file = root_read_keys(root, KUBE_CONF_PATH, G_KEY_FILE_NONE, error);
        if (!file) {
            g_prefix_error(error, KUBE_CONF_PATH ": ");
            return NULL;
        }
        if (!read_all(file, conf, error))
            return NULL;
    }
    if (!conf->node)
        conf->node = g_ascii_strdown(g_get_host_name(), -1);
    if (!conf->kubelet)
        conf->kubelet = g_strdup(KUBELET_DIR);
    return g_steal_pointer(&conf);
}

const Seats *kube_conf_seats(const KubeConf *conf, const char *model)
{
    for (guint i = 0; i < conf->seats->len; i++) {
        const Seats *seats = conf->seats->pdata[i];

        if (g_str_equal(seats->model, model))
            return seats;
    }
    return NULL;
}
