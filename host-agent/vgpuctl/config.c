/* SPDX-License-Identifier: MIT */
/*
 * vgpuctl config, reload, database: what was set by command, what /etc/vgpu declares, and backups.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>
#include <glib/gstdio.h>
#include <sys/file.h>

#include "lib/database.h"
#include "lib/cards.h"
#include "lib/gpus.h"
#include "lib/tenants_conf.h"
#include "host-agent/vgpuctl/client.h"
#include "host-agent/vgpuctl/command.h"
#include "host-agent/vgpuctl/slice_options.h"

/**
 * ConfigGpu - a mode or pool of a GPU that was set by command
 * @key: of gpus.conf
 * @mode: what the GPU should have, which its group in gpus.conf needs
 */
typedef struct {
    char *address;
    const char *key;
    char *value;
    char *mode;
    guint partitions;
} ConfigGpu;

/**
 * ConfigState
 * @gpus: of ConfigGpu
 * @tenants: of Tenant: those that were set by command
 * @undeclared: a sentence for each that is declared nowhere
 */
typedef struct {
    GPtrArray *gpus;
    GPtrArray *tenants;
    GStrvBuilder *undeclared;
} ConfigState;

static void config_state_free(ConfigState *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ConfigState, config_state_free)

/* What was set by command, and what would declare it in /etc/vgpu. */

#define BY_COMMAND "by command"

static void gpu_free(void *data)
{
    ConfigGpu *gpu = data;

    g_free(gpu->address);
    g_free(gpu->value);
    g_free(gpu->mode);
    g_free(gpu);
}

static void config_state_free(ConfigState *state)
{
    g_ptr_array_unref(state->gpus);
    g_ptr_array_unref(state->tenants);
    g_strv_builder_unref(state->undeclared);
    g_free(state);
}

static void add_gpu(ConfigState *state, VgpuGpu *gpu, const char *key, const char *value,
                    const char *source)
{
    ConfigGpu *entry;

    if (!source || !g_str_has_prefix(source, BY_COMMAND))
        return;
    entry = g_new0(ConfigGpu, 1);
    entry->address = g_strdup(vgpu_gpu_get_address(gpu));
    entry->key = key;
    entry->value = g_strdup(value);
    entry->mode = g_strdup(vgpu_gpu_get_wanted_mode(gpu));
    entry->partitions = vgpu_gpu_get_wanted_partitions(gpu);
    g_ptr_array_add(state->gpus, entry);
    if (g_str_equal(source, BY_COMMAND))
        g_strv_builder_take(state->undeclared,
                            g_strdup_printf("GPU %s: %s %s is set by command, and not declared",
                                            entry->address, key, value));
}

static gboolean add_gpus(ConfigState *state, Client *client, GError **error)
{
    g_autoptr(GPtrArray) gpus = client_gpus(client, error);

    for (guint i = 0; gpus && i < gpus->len; i++) {
        VgpuGpu *gpu = g_ptr_array_index(gpus, i);

        add_gpu(state, gpu, "mode", vgpu_gpu_get_wanted_mode(gpu), vgpu_gpu_get_mode_source(gpu));
        add_gpu(state, gpu, "pool", vgpu_gpu_get_pool(gpu), vgpu_gpu_get_pool_source(gpu));
    }
    return gpus != NULL;
}

static void add_tenant(ConfigState *state, GVariant *dict)
{
    const char *source = "";
    Tenant *tenant;

    g_variant_lookup(dict, "Source", "&s", &source);
    if (!g_str_has_prefix(source, BY_COMMAND))
        return;
    tenant = g_new0(Tenant, 1);
    g_variant_lookup(dict, "Name", "s", &tenant->name);
    g_variant_lookup(dict, "Vram", "t", &tenant->vram);
    g_variant_lookup(dict, "Compute", "u", &tenant->compute);
    g_variant_lookup(dict, "Vgpus", "u", &tenant->vgpus);
    g_variant_lookup(dict, "Displaced", "t", &tenant->displaced);
    g_variant_lookup(dict, "Models", "^as", &tenant->models);
    g_variant_lookup(dict, "Users", "^as", &tenant->users);
    g_ptr_array_add(state->tenants, tenant);
    if (g_str_equal(source, BY_COMMAND))
        g_strv_builder_take(
            state->undeclared,
            g_strdup_printf("tenant %s: set by command, and not declared", tenant->name));
}

/* NULL with @error. */
static ConfigState *config_state_read(Client *client, GError **error)
{
    g_autoptr(ConfigState) state = g_new0(ConfigState, 1);
    g_autoptr(GVariant) tenants = NULL;

    state->gpus = g_ptr_array_new_with_free_func(gpu_free);
    state->tenants = g_ptr_array_new_with_free_func((GDestroyNotify)tenant_free);
    state->undeclared = g_strv_builder_new();
    tenants = client_get(client, "ListTenants", NULL, NULL, error);
    if (!tenants || !add_gpus(state, client, error))
        return NULL;
    for (gsize i = 0; i < g_variant_n_children(tenants); i++) {
        g_autoptr(GVariant) tenant = g_variant_get_child_value(tenants, i);

        add_tenant(state, tenant);
    }
    return g_steal_pointer(&state);
}

/* vgpuctl config diff, apply: /etc/vgpu against what was set by command. */

static gboolean dry_run;

const GOptionEntry config_apply_options[] = {
    {"dry-run", 0, 0, G_OPTION_ARG_NONE, &dry_run, "Only show what would change", NULL},
    G_OPTION_ENTRY_NULL,
};

/* NULL with @error; of sentences. */
static GVariant *call_apply(const Client *client, gboolean dry, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(NULL);

    call_dict_add_flag(&dict, "DryRun", dry);
    return client_get(client, "ApplyConfig", g_variant_new("(@a{sv})", g_variant_dict_end(&dict)),
                      "applying /etc/vgpu", error);
}

static void print_sentences(const Options *options, GVariant *list)
{
    g_autofree const char **sentences = g_variant_get_strv(list, NULL);

    for (guint i = 0; sentences[i]; i++)
        output_line(options, "%s", sentences[i]);
}

/* What was set by command and is declared nowhere. Of sentences. */
static GVariant *list_undeclared(Client *client, GError **error)
{
    g_autoptr(ConfigState) state = config_state_read(client, error);
    g_auto(GStrv) sentences = state ? g_strv_builder_end(state->undeclared) : NULL;

    return sentences ? g_variant_ref_sink(g_variant_new_strv((const char *const *)sentences, -1))
                     : NULL;
}

static void print_document(const Options *options, GVariant *changes, GVariant *only)
{
    JsonObject *object = json_object_new();

    json_object_set_member(object, "declared otherwise", json_gvariant_serialize(changes));
    json_object_set_member(object, "not declared", json_gvariant_serialize(only));
    output_node(options, json_node_init_object(json_node_alloc(), object));
    json_object_unref(object);
}

gboolean config_diff_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) changes = call_apply(client, TRUE, error);
    g_autoptr(GVariant) only = changes ? list_undeclared(client, error) : NULL;
    gsize count;

    (void)args;
    if (!only)
        return FALSE;
    count = g_variant_n_children(changes) + g_variant_n_children(only);
    if (output_is_document(options)) {
        print_document(options, changes, only);
    } else {
        print_sentences(options, changes);
        print_sentences(options, only);
    }
    if (!count)
        return TRUE;
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED,
                "%" G_GSIZE_FORMAT
                " setting%s from /etc/vgpu; \"vgpuctl config export\" writes out what was set "
                "by command, \"vgpuctl config apply\" goes back to what is declared",
                count, count == 1 ? " differs" : "s differ");
    return FALSE;
}

gboolean config_apply_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(GVariant) changes = call_apply(client, dry_run, error);

    (void)args;
    if (!changes)
        return FALSE;
    if (output_is_document(options))
        output_variant(options, changes);
    else
        print_sentences(options, changes);
    return TRUE;
}

/* vgpuctl config export: what was set by command, as files for /etc/vgpu. */

#define TENANTS_SUBDIR "tenants.d"

/* The GPU's group, which may name it by its card's number. To be freed. */
static char *group_of(GKeyFile *file, HostRoot *root, const char *address)
{
    static const char by_card[] = "gpu " CARD_PREFIX;
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);

    for (guint i = 0; groups[i]; i++) {
        g_autofree char *its = g_str_has_prefix(groups[i], by_card)
                                   ? card_find(root, groups[i] + strlen(by_card))
                                   : NULL;

        if (g_strcmp0(its, address) == 0)
            return g_strdup(groups[i]);
    }
    return g_strconcat("gpu ", address, NULL);
}

static void put_gpu(GKeyFile *file, HostRoot *root, const ConfigGpu *gpu)
{
    g_autofree char *group = group_of(file, root, gpu->address);

    g_key_file_set_string(file, group, gpu->key, gpu->value);
    if (!g_key_file_has_key(file, group, "mode", NULL))
        g_key_file_set_string(file, group, "mode", gpu->mode);
    /* A number of partitions is of the mode that had it. */
    if (g_str_equal(gpu->key, "mode") &&
        !g_str_equal(gpu->value, gpu_mode_name(GPU_MODE_PARTITIONED)))
        g_key_file_remove_key(file, group, "partitions", NULL);
    else if (g_str_equal(gpu->key, "mode") && gpu->partitions)
        g_key_file_set_integer(file, group, "partitions", (int)gpu->partitions);
}

/*
 * What gpus.conf has now, comments included, with the modes and pools that were set by command.
 * NULL with @error.
 */
static char *gpus_text(const ConfigState *state, HostRoot *root, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GKeyFile) file = root_read_keys(root, GPUS_CONF, G_KEY_FILE_KEEP_COMMENTS, &cause);

    if (!file && !g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        g_autofree char *path = root_path(root, GPUS_CONF, NULL);

        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot use %s: %s", path,
                    cause->message);
        return NULL;
    }
    if (!file)
        file = g_key_file_new();
    for (guint i = 0; i < state->gpus->len; i++)
        put_gpu(file, root, g_ptr_array_index(state->gpus, i));
    return g_key_file_to_data(file, NULL, NULL);
}

/* Writes a file, or prints it after its name if @dir is NULL. */
static gboolean config_export_put(const Options *options, const char *dir, const char *name,
                                  const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(dir ? dir : "/etc/vgpu", name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    g_autoptr(GError) cause = NULL;

    if (!dir) {
        fprintf(options->out, "# %s\n%s\n", path, text);
        return TRUE;
    }
    if (g_mkdir_with_parents(parent, 0755) < 0) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot create %s: %s", parent,
                    g_strerror(errno));
        return FALSE;
    }
    if (!g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, &cause)) {
        g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot write %s: %s", path,
                    cause->message);
        return FALSE;
    }
    output_line(options, "wrote %s", path);
    return TRUE;
}

/* The file that declares the tenant; one of its name if none does. To be freed. */
static char *tenant_file(const char *tenant, const GPtrArray *declared)
{
    const Tenant *its = tenants_conf_find(declared, tenant);

    return its ? g_path_get_basename(its->file) : g_strconcat(tenant, ".conf", NULL);
}

/* If @file is the one of the tenant. */
static void add_tenant_text(GString *text, const Tenant *tenant, const char *file,
                            const GPtrArray *declared)
{
    g_autofree char *own = tenant_file(tenant->name, declared);
    g_autofree char *group = tenants_conf_format(tenant);

    if (g_str_equal(own, file))
        g_string_append_printf(text, "%s%s", text->len ? "\n" : "", group);
}

/* @file with all tenants that it declares, as they are now, and behind them those that are new. */
static char *tenant_text(const ConfigState *state, const char *file, const GPtrArray *declared)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < declared->len; i++) {
        const Tenant *tenant = g_ptr_array_index(declared, i);
        const Tenant *set = tenants_conf_find(state->tenants, tenant->name);

        add_tenant_text(text, set ? set : tenant, file, declared);
    }
    for (guint i = 0; i < state->tenants->len; i++) {
        const Tenant *tenant = g_ptr_array_index(state->tenants, i);

        if (!tenants_conf_find(declared, tenant->name))
            add_tenant_text(text, tenant, file, declared);
    }
    return g_string_free(text, FALSE);
}

static gboolean export_tenants(const ConfigState *state, const Options *options, const char *dir,
                               GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GPtrArray) declared = tenants_conf_load(options->root, &cause);

    if (!declared) {
        g_set_error_literal(error, VGPUCTL_ERROR, VGPUCTL_FAILED, cause->message);
        return FALSE;
    }
    for (guint i = 0; i < state->tenants->len; i++) {
        const Tenant *tenant = g_ptr_array_index(state->tenants, i);
        g_autofree char *file = tenant_file(tenant->name, declared);
        g_autofree char *name = g_build_filename(TENANTS_SUBDIR, file, NULL);
        g_autofree char *text = tenant_text(state, file, declared);

        if (!config_export_put(options, dir, name, text, error))
            return FALSE;
    }
    return TRUE;
}

gboolean config_export_command(Client *client, const Options *options, char **args, GError **error)
{
    g_autoptr(ConfigState) state = config_state_read(client, error);
    g_autofree char *gpus = NULL;

    if (!state)
        return FALSE;
    if (!state->gpus->len && !state->tenants->len) {
        output_line(options, "Nothing is set by command: /etc/vgpu declares all there is.");
        return TRUE;
    }
    if (state->gpus->len) {
        gpus = gpus_text(state, options->root, error);
        if (!gpus || !config_export_put(options, args[0], "gpus.conf", gpus, error))
            return FALSE;
    }
    return export_tenants(state, options, args[0], error);
}

/*
 * vgpuctl database backup, restore: vgpud's database, for root. A backup is taken while vgpud
 * works; for a restore it must not run.
 */

#define DATABASE "/var/lib/vgpu/state.db"
/* vgpud holds it for as long as it runs. */
#define LOCK "/run/vgpu/vgpud.lock"
/* What is copied at once: all of it. */
#define ALL_PAGES (-1)

typedef sqlite3 Sqlite;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sqlite, sqlite3_close)

static gboolean set_error(const char *doing, const char *path, const char *why, GError **error)
{
    g_set_error(error, VGPUCTL_ERROR, VGPUCTL_FAILED, "cannot %s %s: %s", doing, path, why);
    return FALSE;
}

static Sqlite *open_database(const char *path, int flags, GError **error)
{
    g_autoptr(Sqlite) sqlite = NULL;

    if (sqlite3_open_v2(path, &sqlite, flags, NULL) == SQLITE_OK)
        return g_steal_pointer(&sqlite);
    set_error("open", path, sqlite3_errmsg(sqlite), error);
    return NULL;
}

static int take_text(void *text, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    g_free(*(char **)text);
    *(char **)text = g_strdup(values[0]);
    return 0;
}

/* What @sql returns first; NULL: nothing. To be freed. */
static char *query_first(Sqlite *sqlite, const char *sql)
{
    char *text = NULL;

    sqlite3_exec(sqlite, sql, take_text, &text, NULL);
    return text;
}

static gboolean check_version(Sqlite *sqlite, const char *path, GError **error)
{
    g_autofree char *text = query_first(sqlite, "PRAGMA user_version");
    guint64 version = text ? g_ascii_strtoull(text, NULL, 10) : 0;
    g_autofree char *why = NULL;

    if (version <= DATABASE_VERSION)
        return TRUE;
    why = g_strdup_printf("it is of a newer vgpud (version %" G_GUINT64_FORMAT
                          ", this one knows %d); install that one",
                          version, DATABASE_VERSION);
    return set_error("use", path, why, error);
}

/* It is whole, and vgpud's: SQLite has written all of it, and its version is one of ours. */
static gboolean check_database(Sqlite *sqlite, const char *path, GError **error)
{
    g_autofree char *verdict = query_first(sqlite, "PRAGMA integrity_check(1)");
    g_autofree char *tables = NULL;

    if (g_strcmp0(verdict, "ok") != 0)
        return set_error("use", path, verdict ? verdict : sqlite3_errmsg(sqlite), error);
    tables =
        query_first(sqlite, "SELECT count(*) FROM sqlite_master WHERE name IN ('tenant', 'slice')");
    if (g_strcmp0(tables, "2") != 0)
        return set_error("use", path, "it is not a database of vgpud", error);
    return check_version(sqlite, path, error);
}

static gboolean copy_database(Sqlite *from, const char *path, GError **error)
{
    g_autoptr(Sqlite) to = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error);
    sqlite3_backup *backup = to ? sqlite3_backup_init(to, "main", from, "main") : NULL;

    if (!to)
        return FALSE;
    if (backup)
        sqlite3_backup_step(backup, ALL_PAGES);
    /* One file, without a log beside it. */
    if (backup && sqlite3_backup_finish(backup) == SQLITE_OK &&
        sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) == SQLITE_OK)
        return TRUE;
    return set_error("write", path, sqlite3_errmsg(to), error);
}

/* An empty file, which SQLite takes for a new database. */
static gboolean make_private(const char *path, GError **error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return set_error("write", path, g_strerror(errno), error);
    close(fd);
    return TRUE;
}

/* Copies the database @from to the file @part, which only root may read at any time. */
static gboolean copy_to(const char *from, const char *part, GError **error)
{
    g_autoptr(Sqlite) sqlite = open_database(from, SQLITE_OPEN_READWRITE, error);

    if (!sqlite || !check_database(sqlite, from, error))
        return FALSE;
    g_unlink(part);
    if (!make_private(part, error))
        return FALSE;
    if (copy_database(sqlite, part, error))
        return TRUE;
    g_unlink(part);
    return FALSE;
}

/* @part becomes @to at once. */
static gboolean database_put(const char *part, const char *to, GError **error)
{
    if (g_rename(part, to) == 0)
        return TRUE;
    set_error("write", to, g_strerror(errno), error);
    g_unlink(part);
    return FALSE;
}

gboolean database_backup_command(Client *client, const Options *options, char **args,
                                 GError **error)
{
    g_autofree char *path = root_path(options->root, DATABASE, NULL);
    g_autofree char *part = g_strconcat(args[0], ".part", NULL);

    (void)client;
    if (!copy_to(path, part, error) || !database_put(part, args[0], error))
        return FALSE;
    output_line(options, "wrote %s", args[0]);
    return TRUE;
}

/* -1 with @error: vgpud runs. */
static int lock_out_vgpud(HostRoot *root, GError **error)
{
    g_autofree char *path = root_path(root, LOCK, NULL);
    g_autofree char *dir = g_path_get_dirname(LOCK);
    int lock;

    root_mkdir(root, dir, 0755, NULL);
    lock = root_open(root, LOCK, O_RDWR | O_CREAT, 0600);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        return lock;
    if (lock >= 0 && errno == EWOULDBLOCK)
        g_set_error(
            error, VGPUCTL_ERROR, VGPUCTL_IN_USE,
            "cannot restore the database while vgpud runs; \"systemctl stop vgpud\", restore, then "
            "\"systemctl start vgpud\"");
    else
        set_error("lock", path, g_strerror(errno), error);
    if (lock >= 0)
        close(lock);
    return -1;
}

gboolean database_restore_command(Client *client, const Options *options, char **args,
                                  GError **error)
{
    g_autofree char *path = root_path(options->root, DATABASE, NULL);
    g_autofree char *part = g_strconcat(path, ".part", NULL);
    g_autofree char *log = g_strconcat(path, "-wal", NULL);
    g_autofree char *aside = g_strconcat(log, ".old", NULL);
    g_autofree char *index = g_strconcat(path, "-shm", NULL);
    int lock = lock_out_vgpud(options->root, error);
    gboolean done;

    (void)client;
    if (lock < 0)
        return FALSE;
    done = copy_to(args[0], part, error);
    if (done) {
        /*
         * They are of the database that is there now: SQLite would apply them to the new one. If
         * that one cannot be put there, the log still has what is not in the old one yet.
         */
        g_rename(log, aside);
        g_unlink(index);
        done = database_put(part, path, error);
        if (done)
            g_unlink(aside);
        else
            g_rename(aside, log);
    }
    if (done)
        output_line(options, "restored %s; start vgpud to use it: \"systemctl start vgpud\"", path);
    close(lock);
    return done;
}
