/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/sync/outputs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/acl.h>

/* A failure is tried again after so many seconds, which then double. */
#define RETRY_MIN_S 1u
#define RETRY_MAX_S 300u

typedef enum {
    OUTPUT_DIR,
    OUTPUT_LINK,
    OUTPUT_FILE,
    OUTPUT_UNIT,
    OUTPUT_OWN,
    OUTPUT_OF_OTHERS,
    OUTPUT_NOTE,
    OUTPUT_TROUBLE,
} OutputType;

/**
 * Output
 * @path: "" for what has none; a name, of the kind's own
 * @text: an ACL, or NULL; a target; content; settings; a note; a reason
 * @mode: of a directory without an ACL
 * @failed: of a unit: it could not be started
 */
typedef struct {
    OutputType type;
    DirEnd end;
    char *path;
    char *text;
    mode_t mode;
    gboolean failed;
} Output;

struct Wants {
    GPtrArray *list; /* of Output */
    gboolean anew;
};

/**
 * Held - what there is for a subject
 * @trouble: why not all of it is there, as it was logged; NULL: nothing is missing
 * @asked: a unit was started by the last update, and may fail yet
 * @retry: source, or 0
 */
typedef struct {
    Outputs *outputs;
    const OutputKind *kind;
    void *data;
    char *subject;
    Wants *there;
    char *trouble;
    gboolean asked;
    guint retry;
    guint delay;
} Held;

/**
 * Outputs
 * @held: kind to a table of subject to Held
 * @steps: of OutputStep
 */
struct Outputs {
    HostRoot *root;
    GHashTable *held;
    GArray *steps;
};

static void output_free(void *data)
{
    Output *output = data;

    g_free(output->path);
    g_free(output->text);
    g_free(output);
}

static Wants *wants_new(void)
{
    Wants *wants = g_new0(Wants, 1);

    wants->list = g_ptr_array_new_with_free_func(output_free);
    return wants;
}

static void wants_free(Wants *wants)
{
    g_ptr_array_unref(wants->list);
    g_free(wants);
}

static Output *want_output(Wants *wants, OutputType type, const char *path, const char *text)
{
    Output *output = g_new0(Output, 1);

    output->type = type;
    output->path = g_strdup(path);
    output->text = g_strdup(text);
    g_ptr_array_add(wants->list, output);
    return output;
}

void want_dir(Wants *wants, DirEnd end, const char *path, mode_t mode)
{
    Output *output = want_output(wants, OUTPUT_DIR, path, NULL);

    output->end = end;
    output->mode = mode;
}

static gboolean is_among(const GArray *uids, guint count, uid_t uid)
{
    for (guint i = 0; i < count; i++)
        if (g_array_index(uids, uid_t, i) == uid)
            return TRUE;
    return FALSE;
}

/*
 * Without users a mode is sufficient, even on file systems without ACLs: it is the mask of an ACL
 * that is there already.
 */
void want_dir_of(Wants *wants, DirEnd end, const char *path, const char *may, const GArray *uids)
{
    g_autoptr(GString) acl = g_string_new(NULL);
    Output *output;

    want_dir(wants, end, path, 0700);
    if (!uids->len)
        return;
    g_string_printf(acl, "u::rwx,g::-,m::%s,o::-", may);
    for (guint i = 0; i < uids->len; i++)
        if (!is_among(uids, i, g_array_index(uids, uid_t, i)))
            g_string_append_printf(acl, ",u:%u:%s", (guint)g_array_index(uids, uid_t, i), may);
    output = wants->list->pdata[wants->list->len - 1];
    output->text = g_string_free(g_steal_pointer(&acl), FALSE);
}

void want_link(Wants *wants, const char *path, const char *target)
{
    want_output(wants, OUTPUT_LINK, path, target);
}

void want_file(Wants *wants, const char *path, const char *text)
{
    want_output(wants, OUTPUT_FILE, path, text);
}

void want_unit(Wants *wants, const char *settings)
{
    want_output(wants, OUTPUT_UNIT, "", settings);
}

void want_own(Wants *wants, const char *name)
{
    want_output(wants, OUTPUT_OWN, name, NULL);
}

void want_end_of(Wants *wants, const char *path)
{
    want_output(wants, OUTPUT_OF_OTHERS, path, NULL);
}

void want_note(Wants *wants, const char *note)
{
    want_output(wants, OUTPUT_NOTE, "", note);
}

void want_trouble(Wants *wants, const char *why)
{
    want_output(wants, OUTPUT_TROUBLE, "", why);
}

void want_anew(Wants *wants)
{
    wants->anew = TRUE;
}

static gboolean set_path_error(const char *path, const char *what, GError **error)
{
    int code = errno;

    g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s can't be %s: %s", path,
                what, g_strerror(code));
    return FALSE;
}

static gboolean make_dir(HostRoot *root, const Output *output, GError **error)
{
    g_autofree char *path = root_path(root, output->path, NULL);
    acl_t acl;
    int rc;

    if (!root_mkdir(root, output->path, (int)output->mode, error))
        return FALSE;
    if (!output->text)
        return chmod(path, output->mode) == 0 || set_path_error(path, "given its mode", error);
    acl = acl_from_text(output->text);
    rc = acl ? acl_set_file(path, ACL_TYPE_ACCESS, acl) : -1;
    if (rc < 0)
        set_path_error(path, "opened to its users", error);
    if (acl)
        acl_free(acl);
    return rc == 0;
}

static gboolean make_link(HostRoot *root, const Output *output, GError **error)
{
    g_autofree char *path = root_path(root, output->path, NULL);
    g_autofree char *now = root_link(root, output->path);

    if (g_strcmp0(now, output->text) == 0)
        return TRUE;
    if (now)
        root_remove(root, output->path);
    return symlink(output->text, path) == 0 || set_path_error(path, "made", error);
}

static gboolean make_file(HostRoot *root, const Output *output, GError **error)
{
    g_autofree char *now = root_read(root, output->path, NULL);

    return g_strcmp0(now, output->text) == 0 ||
           root_write(root, output->path, output->text, 0644, error);
}

/* The same thing, whatever is in it. */
static const Output *find_output(const Wants *wants, const Output *other)
{
    for (guint i = 0; i < wants->list->len; i++) {
        const Output *output = wants->list->pdata[i];

        if (output->type == other->type && g_str_equal(output->path, other->path))
            return output;
    }
    return NULL;
}

/* @before: what was there for the subject. */
static void make_unit(Held *held, const Output *output, const Wants *before)
{
    const Output *old = find_output(before, output);
    gboolean runs = old && !old->failed;

    if (runs && g_str_equal(old->text, output->text))
        return;
    if (runs && held->kind->stop)
        held->kind->stop(held->subject, held->data);
    held->asked = TRUE;
    held->kind->start(held->subject, held->data);
}

static gboolean make_output(Held *held, const Output *output, const Wants *before, GError **error)
{
    HostRoot *root = held->outputs->root;

    switch (output->type) {
    case OUTPUT_DIR:
        return make_dir(root, output, error);
    case OUTPUT_LINK:
        return make_link(root, output, error);
    case OUTPUT_FILE:
        return make_file(root, output, error);
    case OUTPUT_UNIT:
        make_unit(held, output, before);
        return TRUE;
    case OUTPUT_OWN:
        return held->kind->give(output->path, held->data, error);
    case OUTPUT_TROUBLE:
        g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, output->text);
        return FALSE;
    default:
        return TRUE;
    }
}

/* With what daemons have made in it: sockets. */
static void remove_tree(HostRoot *root, const char *path)
{
    g_auto(GStrv) names = sysfs_list(root, path);

    for (guint i = 0; names[i]; i++) {
        g_autofree char *child = g_build_filename(path, names[i], NULL);
        g_autofree char *target = root_link(root, child);

        if (!target && root_is(root, child, G_FILE_TEST_IS_DIR))
            remove_tree(root, child);
        else
            root_remove(root, child);
    }
    root_rmdir(root, path);
}

static gboolean take_away(const Held *held, const Output *output, GError **error)
{
    HostRoot *root = held->outputs->root;

    if (output->type == OUTPUT_OWN)
        return held->kind->take(output->path, held->data, error);
    if (output->type == OUTPUT_UNIT && held->kind->stop)
        held->kind->stop(held->subject, held->data);
    else if (output->type == OUTPUT_DIR && output->end == DIR_OWN)
        remove_tree(root, output->path);
    else if (output->type == OUTPUT_DIR && output->end == DIR_SHARED)
        root_rmdir(root, output->path);
    else if (output->type == OUTPUT_LINK || output->type == OUTPUT_FILE ||
             output->type == OUTPUT_OF_OTHERS)
        root_remove(root, output->path);
    return TRUE;
}

/* The last first, up to one that can't be. @but: what of it stays; NULL: nothing. */
static gboolean take_all_away(const Held *held, const Wants *wants, const Wants *but,
                              GError **error)
{
    for (guint i = wants->list->len; i-- > 0;)
        if ((!but || !find_output(but, wants->list->pdata[i])) &&
            !take_away(held, wants->list->pdata[i], error))
            return FALSE;
    return TRUE;
}

static void held_free(void *data)
{
    Held *held = data;

    g_clear_handle_id(&held->retry, g_source_remove);
    wants_free(held->there);
    g_free(held->subject);
    g_free(held->trouble);
    g_free(held);
}

static Held *held_find(const Outputs *outputs, const OutputKind *kind, const char *subject)
{
    GHashTable *subjects = g_hash_table_lookup(outputs->held, kind);

    return subjects ? g_hash_table_lookup(subjects, subject) : NULL;
}

static Held *held_of(Outputs *outputs, const OutputKind *kind, void *data, const char *subject)
{
    GHashTable *subjects = g_hash_table_lookup(outputs->held, kind);
    Held *held = held_find(outputs, kind, subject);

    if (held)
        return held;
    if (!subjects) {
        subjects = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, held_free);
        g_hash_table_insert(outputs->held, (void *)kind, subjects);
    }
    held = g_new0(Held, 1);
    held->outputs = outputs;
    held->kind = kind;
    held->data = data;
    held->subject = g_strdup(subject);
    held->there = wants_new();
    g_hash_table_insert(subjects, held->subject, held);
    return held;
}

static void update_held(Held *held);

static gboolean try_again(void *data)
{
    Held *held = data;

    held->retry = 0;
    update_held(held);
    return G_SOURCE_REMOVE;
}

/* Says so once, and tries again later. */
static void note_trouble(Held *held, const char *why)
{
    if (g_strcmp0(held->trouble, why) != 0)
        g_log(G_LOG_DOMAIN, held->kind->level, "%s%s%s: %s; vgpud tries again",
              held->kind->trouble[0], held->subject, held->kind->trouble[1], why);
    g_free(held->trouble);
    held->trouble = g_strdup(why);
    if (held->retry)
        return;
    held->delay = CLAMP(2 * held->delay, RETRY_MIN_S, RETRY_MAX_S);
    held->retry = g_timeout_add_seconds(held->delay, try_again, held);
}

/* What could not be made, and all that comes after it, is as it was before. */
static void keep_before(GPtrArray *list, guint from, const Wants *before)
{
    for (guint i = list->len; i-- > from;) {
        Output *output = list->pdata[i];
        const Output *old = find_output(before, output);

        if (!old) {
            g_ptr_array_remove_index(list, i);
            continue;
        }
        g_free(output->text);
        output->text = g_strdup(old->text);
        output->failed = old->failed;
    }
}

static void make_all(Held *held, const Wants *before)
{
    for (guint i = 0; i < held->there->list->len; i++) {
        g_autoptr(GError) error = NULL;

        if (make_output(held, held->there->list->pdata[i], before, &error))
            continue;
        note_trouble(held, error->message);
        keep_before(held->there->list, i, before);
        break;
    }
}

/* Takes @wants in exchange for those of before, or leaves both as they are. */
static void exchange_wants(Held *held, Wants **wants)
{
    Wants *before = held->there;
    g_autoptr(GError) error = NULL;

    if ((*wants)->anew)
        take_all_away(held, *wants, NULL, NULL);
    if (!take_all_away(held, before, *wants, &error)) {
        note_trouble(held, error->message);
        return;
    }
    held->there = *wants;
    *wants = before;
    if (held->there->anew)
        g_ptr_array_set_size(before->list, 0);
    make_all(held, before);
}

/* Frees @held if there is nothing for the subject. */
static void update_held(Held *held)
{
    Wants *wants = wants_new();

    g_clear_handle_id(&held->retry, g_source_remove);
    held->asked = FALSE;
    if (held->kind->want(wants, held->subject, held->data))
        exchange_wants(held, &wants);
    wants_free(wants);
    if (!held->retry && !held->asked)
        g_clear_pointer(&held->trouble, g_free);
    if (!held->there->list->len && !held->retry)
        g_hash_table_remove(g_hash_table_lookup(held->outputs->held, held->kind), held->subject);
}

void outputs_update(Outputs *outputs, const OutputKind *kind, void *data, const char *subject)
{
    Held *held = held_of(outputs, kind, data, subject);

    held->delay = 0;
    update_held(held);
}

void outputs_set_steps(Outputs *outputs, const OutputStep *steps, guint count)
{
    g_array_set_size(outputs->steps, 0);
    g_array_append_vals(outputs->steps, steps, count);
}

void outputs_update_slice(Outputs *outputs, const char *uuid, gboolean is_gone, gboolean state)
{
    guint count = outputs->steps->len;

    for (guint i = 0; i < count; i++) {
        const OutputStep *step =
            &g_array_index(outputs->steps, OutputStep, is_gone ? count - 1 - i : i);
        g_autofree char *before = g_strdup(outputs_note(outputs, step->kind, uuid));

        if (state && !step->follows_state)
            continue;
        outputs_update(outputs, step->kind, step->data, uuid);
        if (step->kind->updated)
            step->kind->updated(uuid, before, step->data);
    }
}

void outputs_update_all(Outputs *outputs, const OutputKind *kind)
{
    GHashTable *subjects = g_hash_table_lookup(outputs->held, kind);
    g_autoptr(GList) all = subjects ? g_hash_table_get_values(subjects) : NULL;

    for (const GList *one = all; one; one = one->next)
        update_held(one->data);
}

/* Of those without a path there is one at most. NULL: none. */
static Output *find_only(const Held *held, OutputType type)
{
    const Output only = {.type = type, .path = (char *)""};

    return held ? (Output *)find_output(held->there, &only) : NULL;
}

void outputs_failed(Outputs *outputs, const OutputKind *kind, const char *subject, const char *why)
{
    Held *held = held_find(outputs, kind, subject);
    Output *unit = find_only(held, OUTPUT_UNIT);

    if (!unit)
        return;
    unit->failed = TRUE;
    note_trouble(held, why);
}

gboolean outputs_started(const Outputs *outputs, const OutputKind *kind, const char *subject)
{
    const Output *unit = find_only(held_find(outputs, kind, subject), OUTPUT_UNIT);

    return unit && !unit->failed;
}

gboolean outputs_has_own(const Outputs *outputs, const OutputKind *kind, const char *subject,
                         const char *name)
{
    const Output own = {.type = OUTPUT_OWN, .path = (char *)name};
    const Held *held = held_find(outputs, kind, subject);

    return held && find_output(held->there, &own);
}

const char *outputs_note(const Outputs *outputs, const OutputKind *kind, const char *subject)
{
    const Output *note = find_only(held_find(outputs, kind, subject), OUTPUT_NOTE);

    return note ? note->text : NULL;
}

Wants *outputs_left(Outputs *outputs, const OutputKind *kind, void *data, const char *subject)
{
    return held_of(outputs, kind, data, subject)->there;
}

Outputs *outputs_new(HostRoot *root)
{
    Outputs *outputs = g_new0(Outputs, 1);

    outputs->root = host_root_ref(root);
    outputs->held = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL,
                                          (GDestroyNotify)g_hash_table_unref);
    outputs->steps = g_array_new(FALSE, FALSE, sizeof(OutputStep));
    return outputs;
}

void outputs_free(Outputs *outputs)
{
    g_hash_table_unref(outputs->held);
    g_array_unref(outputs->steps);
    host_root_unref(outputs->root);
    g_free(outputs);
}
