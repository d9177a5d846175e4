/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/orphans.h"

#include <string.h>
#include <json-glib/json-glib.h>

#include "fleet/kubernetes/dra/claim.h"
#include "fleet/kubernetes/dra/metadata.h"
#include "fleet/kubernetes/names.h"

#define CHECKPOINT "dra_manager_state"
#define LOOK_MAX_S 60u

/**
 * Suspect
 * @place: "NAMESPACE/NAME" of the claim
 * @since: of the monotonic clock: nobody has needed it since then
 * @asked: the API was asked in this look
 */
typedef struct {
    char *place;
    gint64 since;
    gboolean asked;
} Suspect;

/**
 * Orphans - one look at a time, and in it one question at a time
 * @suspects: owner to Suspect
 * @owner: whom the present question is about; NULL: none
 * @looking: a look is under way
 */
struct Orphans {
    const KubeConf *conf;
    Agent *agent;
    Api *api;
    GHashTable *suspects;
    char *owner;
    gboolean looking;
    guint timer;
};

static void suspect_free(void *data)
{
    Suspect *suspect = data;

    g_free(suspect->place);
    g_free(suspect);
}

/*
 * What the kubelet has noted; "" if it never has; NULL: that cannot be said. Its form differs by
 * version, so a claim is looked for as text.
 */
static char *read_checkpoint(const KubeConf *conf)
{
    g_autofree char *path = g_build_filename(conf->kubelet, CHECKPOINT, NULL);
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, &error))
        return g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT) ? g_strdup("") : NULL;
    return json_parser_load_from_data(parser, text, -1, NULL) ? g_steal_pointer(&text) : NULL;
}

static const char *uid_of(const char *owner)
{
    return owner + strlen(KUBE_CLAIM_OWNER);
}

/* All slices of the owner: of one claim. */
static gboolean is_used(const GPtrArray *owned, const char *owner)
{
    for (guint i = 0; i < owned->len; i++) {
        const AgentOwned *slice = owned->pdata[i];

        if (g_str_equal(slice->owner, owner) && *slice->container)
            return TRUE;
    }
    return FALSE;
}

static gboolean is_there(const GPtrArray *owned, const char *owner)
{
    for (guint i = 0; i < owned->len; i++)
        if (g_str_equal(((const AgentOwned *)owned->pdata[i])->owner, owner))
            return TRUE;
    return FALSE;
}

static gboolean may_be_orphan(const GPtrArray *owned, const char *owner, const char *checkpoint)
{
    return is_there(owned, owner) && !is_used(owned, owner) && !strstr(checkpoint, uid_of(owner));
}

static void forget_others(const Orphans *orphans, const GPtrArray *owned, const char *checkpoint)
{
    GHashTableIter iter;
    void *owner, *suspect;

    g_hash_table_iter_init(&iter, orphans->suspects);
    while (g_hash_table_iter_next(&iter, &owner, &suspect)) {
        ((Suspect *)suspect)->asked = FALSE;
        if (!may_be_orphan(owned, owner, checkpoint))
            g_hash_table_iter_remove(&iter);
    }
}

static void add_suspects(const Orphans *orphans, const GPtrArray *owned, const char *checkpoint)
{
    for (guint i = 0; i < owned->len; i++) {
        const AgentOwned *slice = owned->pdata[i];
        Suspect *suspect;

        if (!g_str_has_prefix(slice->owner, KUBE_CLAIM_OWNER) || !strchr(slice->place, '/') ||
            g_hash_table_contains(orphans->suspects, slice->owner) ||
            !may_be_orphan(owned, slice->owner, checkpoint))
            continue;
        suspect = g_new0(Suspect, 1);
        suspect->place = g_strdup(slice->place);
        suspect->since = g_get_monotonic_time();
        g_hash_table_insert(orphans->suspects, g_strdup(slice->owner), suspect);
    }
}

static void ask_next(Orphans *orphans);

static void on_released(const GError *error, void *data)
{
    Orphans *orphans = data;

    if (error)
        g_warning("cannot release the slices of %s: %s", orphans->owner, error->message);
    else
        metadata_remove(orphans->conf, uid_of(orphans->owner));
    ask_next(orphans);
}

/* Once more, because the question took its time. */
static void on_list_again(const GPtrArray *owned, const GError *error, void *data)
{
    Orphans *orphans = data;
    g_autofree char *checkpoint = read_checkpoint(orphans->conf);

    (void)error;
    if (!owned || !checkpoint || !may_be_orphan(owned, orphans->owner, checkpoint)) {
        ask_next(orphans);
        return;
    }
    g_warning("%s is no claim of this node any more, and the kubelet does not know it: its slices "
              "are released",
              orphans->owner);
    agent_release(orphans->agent, orphans->owner, on_released, orphans);
}

static void on_claim(const HttpAnswer *answer, const GError *error, void *data)
{
    Orphans *orphans = data;

    (void)error;
    if (answer && claim_is_over(answer->status, (const char *)answer->body->data, answer->body->len,
                                uid_of(orphans->owner), orphans->conf->node))
        agent_list(orphans->agent, on_list_again, orphans);
    else
        ask_next(orphans);
}

/* One that was not asked about yet, and is a suspect for long enough; NULL: none. */
static const char *next_due(const Orphans *orphans, Suspect **suspect)
{
    gint64 due = g_get_monotonic_time() - orphans->conf->forgotten_after * (gint64)G_USEC_PER_SEC;
    GHashTableIter iter;
    void *owner, *value;

    g_hash_table_iter_init(&iter, orphans->suspects);
    while (g_hash_table_iter_next(&iter, &owner, &value)) {
        *suspect = value;
        if (!(*suspect)->asked && (*suspect)->since <= due)
            return owner;
    }
    return NULL;
}

/* Ends the look if there is nothing more to ask. */
static void ask_next(Orphans *orphans)
{
    Suspect *suspect;
    const char *owner = next_due(orphans, &suspect);
    g_auto(GStrv) names = NULL;
    g_autofree char *path = NULL;

    g_free(orphans->owner);
    orphans->owner = g_strdup(owner);
    orphans->looking = owner != NULL;
    if (!owner)
        return;
    suspect->asked = TRUE;
    names = g_strsplit(suspect->place, "/", 2);
    path = g_strdup_printf(KUBE_CLAIM_PATH, names[0], names[1]);
    api_call(orphans->api, "GET", path, NULL, on_claim, orphans);
}

static void on_list(const GPtrArray *owned, const GError *error, void *data)
{
    Orphans *orphans = data;
    g_autofree char *checkpoint = read_checkpoint(orphans->conf);

    (void)error;
    orphans->looking = FALSE;
    if (!owned || !checkpoint) {
        g_hash_table_remove_all(orphans->suspects);
        return;
    }
    forget_others(orphans, owned, checkpoint);
    add_suspects(orphans, owned, checkpoint);
    ask_next(orphans);
}

static gboolean look_for_orphans(void *data)
{
    Orphans *orphans = data;

    if (orphans->looking || !agent_is_known(orphans->agent))
        return G_SOURCE_CONTINUE;
    orphans->looking = TRUE;
    agent_list(orphans->agent, on_list, orphans);
    return G_SOURCE_CONTINUE;
}

Orphans *orphans_new(const KubeConf *conf, Agent *agent, Api *api)
{
    Orphans *orphans = g_new0(Orphans, 1);

    orphans->conf = conf;
    orphans->agent = agent;
    orphans->api = api;
    orphans->suspects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, suspect_free);
    orphans->timer = g_timeout_add_seconds(CLAMP(conf->forgotten_after / 4, 1, LOOK_MAX_S),
                                           look_for_orphans, orphans);
    return orphans;
}

void orphans_free(Orphans *orphans)
{
    g_source_remove(orphans->timer);
    g_hash_table_unref(orphans->suspects);
    g_free(orphans->owner);
    g_free(orphans);
}
