/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/publisher.h"

#include <string.h>
#include <json-glib/json-glib.h>

#include "fleet/kubernetes/dra/resource_slice.h"
#include "fleet/kubernetes/names.h"
#include "lib/json.h"

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"

/* Between two writes, and between attempts when the API does not do what it should. */
#define WRITE_SECONDS     3
#define RETRY_MAX_SECONDS 8

/* Of one event. */
#define EVENT_LINE_MAX (4u << 20)

/**
 * Published - an object as the API has it
 * @devices: as the API wrote them
 */
typedef struct {
    char *name;
    char *version;
    gint64 generation;
    JsonNode *devices;
} Published;

/**
 * Publisher
 * @node_uid: asked for before each write, because a node may be made again; NULL: not yet
 * @wanted: the devices; NULL: not known yet
 * @there: NULL: there is none
 * @is_listed: @there is what the API had at @version
 * @writing: what is being written, and @writing_over the version that it replaces; NULL: none
 * @written, @written_as: what was written last, and what the API made of it
 * @call: under way
 * @watch, @line: under way, and the event that is not whole yet
 * @timer: of the next attempt
 * @retry: seconds until then
 * @next_write: monotonic time
 */
struct Publisher {
    Api *api;
    char *node;
    char *node_uid;
    JsonNode *wanted;
    Published *there;
    gboolean is_listed;
    char *version;
    JsonNode *writing;
    char *writing_over;
    JsonNode *written;
    JsonNode *written_as;
    HttpCall *call;
    HttpCall *watch;
    GString *line;
    guint timer;
    guint retry;
    gint64 next_write;
};

static void publish_next(Publisher *publisher);

static void published_free(Published *published)
{
    if (!published)
        return;
    g_free(published->name);
    g_free(published->version);
    json_node_unref(published->devices);
    g_free(published);
}

static gboolean on_timer(void *data)
{
    Publisher *publisher = data;

    publisher->timer = 0;
    publish_next(publisher);
    return G_SOURCE_REMOVE;
}

static void wait_ms(Publisher *publisher, gint64 milliseconds)
{
    if (publisher->timer)
        g_source_remove(publisher->timer);
    publisher->timer = g_timeout_add((guint)milliseconds, on_timer, publisher);
}

/* The attempt failed: again later, and later each time. */
static void publish_later(Publisher *publisher, const char *what, const char *problem, guint after)
{
    publisher->retry = MIN(MAX(2 * publisher->retry, 1), RETRY_MAX_SECONDS);
    publisher->is_listed = FALSE;
    g_warning("cannot %s the ResourceSlice of %s: %s", what, publisher->node, problem);
    wait_ms(publisher, 1000 * (gint64)MAX(publisher->retry, after));
}

/* Reading. */

static char *text_of(JsonObject *object, const char *name)
{
    return g_strdup(object ? json_object_get_string_member_with_default(object, name, "") : "");
}

/* NULL: it is no slice. */
static Published *published_of(JsonObject *object)
{
    JsonObject *metadata = json_object_in(object, "metadata"),
               *spec = json_object_in(object, "spec");
    JsonObject *pool = json_object_in(spec, "pool");
    JsonNode *devices = spec ? json_object_get_member(spec, "devices") : NULL;
    Published *published;

    if (!metadata || !pool)
        return NULL;
    published = g_new0(Published, 1);
    published->name = text_of(metadata, "name");
    published->version = text_of(metadata, "resourceVersion");
    published->generation = json_object_get_int_member_with_default(pool, "generation", 0);
    published->devices = devices ? json_node_copy(devices) : json_node_new(JSON_NODE_NULL);
    return published;
}

static JsonObject *parse_object(JsonParser *parser, const char *text, gsize length)
{
    return json_parser_load_from_data(parser, text, (gssize)length, NULL)
               ? json_object_of(json_parser_get_root(parser))
               : NULL;
}

static const char *version_there(const Publisher *publisher)
{
    return publisher->there ? publisher->there->version : NULL;
}

/* What the API says now of the one slice. */
static void set_there(Publisher *publisher, Published *there)
{
    published_free(publisher->there);
    publisher->there = there;
}

static void on_event(Publisher *publisher, const char *line, gsize length)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonObject *event = parse_object(parser, line, length),
               *object = json_object_in(event, "object");
    g_autofree char *type = text_of(event, "type");
    Published *published;

    if (!object || g_str_equal(type, "ERROR")) {
        /* The version is too old (410), or worse: all of it again. */
        publisher->is_listed = FALSE;
        return;
    }
    published = published_of(object);
    if (g_str_equal(type, "BOOKMARK") || !published) {
        published_free(published);
        return;
    }
    g_free(publisher->version);
    publisher->version = g_strdup(published->version);
    if (!g_str_equal(type, "DELETED")) {
        set_there(publisher, published);
    } else {
        if (publisher->there && g_str_equal(publisher->there->name, published->name))
            set_there(publisher, NULL);
        published_free(published);
    }
}

static void on_piece(const char *bytes, gsize length, void *data)
{
    Publisher *publisher = data;
    char *end;

    g_string_append_len(publisher->line, bytes, (gssize)length);
    while ((end = memchr(publisher->line->str, '\n', publisher->line->len))) {
        on_event(publisher, publisher->line->str, (gsize)(end - publisher->line->str));
        g_string_erase(publisher->line, 0, end + 1 - publisher->line->str);
    }
    if (publisher->line->len > EVENT_LINE_MAX)
        g_string_truncate(publisher->line, 0);
    /* Not from here, which is in the middle of libcurl. */
    if (!publisher->timer)
        wait_ms(publisher, 0);
}

static void on_watch_end(const HttpAnswer *answer, const GError *error, void *data)
{
    Publisher *publisher = data;
    g_autofree char *problem = api_problem(answer, error);

    publisher->watch = NULL;
    g_string_truncate(publisher->line, 0);
    if (problem)
        publish_later(publisher, "watch", problem, api_retry_after(answer));
    else
        wait_ms(publisher, 0);
}

static char *selected_slices(Publisher *publisher)
{
    return g_strconcat(SLICES "?fieldSelector=spec.nodeName%3D", publisher->node,
                       "%2Cspec.driver%3D" KUBE_DRIVER, NULL);
}

static void on_list(const HttpAnswer *answer, const GError *error, void *data)
{
    Publisher *publisher = data;
    g_autofree char *problem = api_problem(answer, error);
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonObject *list;
    JsonNode *items;

    publisher->call = NULL;
    if (problem) {
        publish_later(publisher, "list", problem, api_retry_after(answer));
        return;
    }
    list = parse_object(parser, (const char *)answer->body->data, answer->body->len);
    items = list ? json_object_get_member(list, "items") : NULL;
    if (!items || !(JSON_NODE_HOLDS_ARRAY(items) || JSON_NODE_HOLDS_NULL(items))) {
        publish_later(publisher, "list", "the answer is no list", 0);
        return;
    }
    g_free(publisher->version);
    publisher->version = text_of(json_object_in(list, "metadata"), "resourceVersion");
    set_there(publisher, NULL);
    for (guint i = 0;
         JSON_NODE_HOLDS_ARRAY(items) && i < json_array_get_length(json_node_get_array(items));
         i++) {
        Published *one =
            published_of(json_object_of(json_array_get_element(json_node_get_array(items), i)));

        if (one && (!publisher->there || one->generation > publisher->there->generation))
            set_there(publisher, one);
        else
            published_free(one);
    }
    publisher->is_listed = TRUE;
    publish_next(publisher);
}

/* Writing. */

static gboolean is_same(JsonNode *there, JsonNode *wanted);

/* The API adds when a taint was added. */
static gboolean is_same_object(JsonObject *there, JsonObject *wanted)
{
    guint extra = json_object_has_member(there, "timeAdded") ? 1 : 0;
    JsonObjectIter at;
    const char *name;
    JsonNode *node;

    if (json_object_get_size(there) != json_object_get_size(wanted) + extra)
        return FALSE;
    json_object_iter_init(&at, wanted);
    while (json_object_iter_next(&at, &name, &node)) {
        JsonNode *has = json_object_get_member(there, name);

        if (!has || !is_same(has, node))
            return FALSE;
    }
    return TRUE;
}

static gboolean is_same(JsonNode *there, JsonNode *wanted)
{
    JsonArray *has, *list;

    if (json_node_get_node_type(there) != json_node_get_node_type(wanted))
        return FALSE;
    if (JSON_NODE_HOLDS_OBJECT(wanted))
        return is_same_object(json_node_get_object(there), json_node_get_object(wanted));
    if (!JSON_NODE_HOLDS_ARRAY(wanted))
        return json_node_equal(there, wanted);
    has = json_node_get_array(there);
    list = json_node_get_array(wanted);
    if (json_array_get_length(has) != json_array_get_length(list))
        return FALSE;
    for (guint i = 0; i < json_array_get_length(list); i++)
        if (!is_same(json_array_get_element(has, i), json_array_get_element(list, i)))
            return FALSE;
    return TRUE;
}

/*
 * An API without some feature drops the fields of it. Then what is there is right if it is what the
 * API made of the same devices before.
 */
static gboolean is_right(Publisher *publisher)
{
    JsonNode *there = publisher->there ? publisher->there->devices : NULL;
    gboolean none = !json_array_get_length(json_node_get_array(publisher->wanted));

    if (!there || !JSON_NODE_HOLDS_ARRAY(there))
        return none;
    return is_same(there, publisher->wanted) ||
           (publisher->written && json_node_equal(publisher->written, publisher->wanted) &&
            json_node_equal(there, publisher->written_as));
}

static void on_written(const HttpAnswer *answer, const GError *error, void *data)
{
    Publisher *publisher = data;
    g_autofree char *problem = api_problem(answer, error);
    g_autoptr(JsonParser) parser = json_parser_new();
    Published *published;

    publisher->call = NULL;
    g_clear_pointer(&publisher->node_uid, g_free);
    publisher->next_write = g_get_monotonic_time() + WRITE_SECONDS * G_USEC_PER_SEC;
    if (problem) {
        publish_later(publisher, "write", problem, api_retry_after(answer));
        return;
    }
    publisher->retry = 0;
    published =
        published_of(parse_object(parser, (const char *)answer->body->data, answer->body->len));
    if (!published) {
        publisher->is_listed = FALSE;
    } else if (g_strcmp0(version_there(publisher), publisher->writing_over) &&
               g_strcmp0(version_there(publisher), published->version)) {
        /* The watch was faster than the answer, and which of both is newer is not known. */
        publisher->is_listed = FALSE;
        published_free(published);
    } else {
        g_clear_pointer(&publisher->written, json_node_unref);
        g_clear_pointer(&publisher->written_as, json_node_unref);
        publisher->written = g_steal_pointer(&publisher->writing);
        publisher->written_as = json_node_copy(published->devices);
        set_there(publisher, published);
    }
    publish_next(publisher);
}

static void on_node(const HttpAnswer *answer, const GError *error, void *data);

static void ask_for_node(Publisher *publisher)
{
    g_autofree char *path = g_strconcat("/api/v1/nodes/", publisher->node, NULL);

    publisher->call = api_call(publisher->api, "GET", path, NULL, on_node, publisher);
}

static void write_slice(Publisher *publisher)
{
    Published *there = publisher->there;
    g_autofree char *path = there ? g_strconcat(SLICES "/", there->name, NULL) : g_strdup(SLICES);
    g_autofree char *text = resource_slice_text(
        publisher->node, publisher->node_uid, publisher->wanted, there ? there->generation + 1 : 1,
        there ? there->name : NULL, there ? there->version : NULL);

    g_clear_pointer(&publisher->writing, json_node_unref);
    publisher->writing = json_node_copy(publisher->wanted);
    g_free(publisher->writing_over);
    publisher->writing_over = g_strdup(version_there(publisher));
    g_info("writing the ResourceSlice of %s", publisher->node);
    publisher->call =
        api_call(publisher->api, there ? "PUT" : "POST", path, text, on_written, publisher);
}

static void on_node(const HttpAnswer *answer, const GError *error, void *data)
{
    Publisher *publisher = data;
    g_autoptr(JsonParser) parser = json_parser_new();

    publisher->call = NULL;
    /* Without the right to see the node, the slice is without its owner. */
    if (!answer || (answer->status != 200 && answer->status != 403)) {
        g_autofree char *problem = api_problem(answer, error);

        publish_later(publisher, "find the node for", problem, api_retry_after(answer));
        return;
    }
    publisher->node_uid = text_of(
        json_object_in(parse_object(parser, (const char *)answer->body->data, answer->body->len),
                       "metadata"),
        "uid");
    publish_next(publisher);
}

/* Does the next thing that is to be done; whatever ends it calls this again. */
static void publish_next(Publisher *publisher)
{
    gint64 wait = publisher->next_write - g_get_monotonic_time();
    g_autofree char *path = selected_slices(publisher);

    if (publisher->call || publisher->timer || !publisher->wanted)
        return;
    if (!publisher->is_listed) {
        if (publisher->watch)
            http_cancel(g_steal_pointer(&publisher->watch));
        g_string_truncate(publisher->line, 0);
        publisher->call = api_call(publisher->api, "GET", path, NULL, on_list, publisher);
        return;
    }
    if (!publisher->watch)
        publisher->watch =
            api_watch(publisher->api, path, publisher->version, on_piece, on_watch_end, publisher);
    if (is_right(publisher))
        publisher->retry = 0;
    else if (wait > 0)
        wait_ms(publisher, wait / 1000 + 1);
    else if (!publisher->node_uid)
        ask_for_node(publisher);
    else
        write_slice(publisher);
}

Publisher *publisher_new(Api *api, const char *node)
{
    Publisher *publisher = g_new0(Publisher, 1);

    publisher->api = api;
    publisher->node = g_strdup(node);
    publisher->line = g_string_new(NULL);
    return publisher;
}

void publisher_free(Publisher *publisher)
{
    if (publisher->call)
        http_cancel(publisher->call);
    if (publisher->watch)
        http_cancel(publisher->watch);
    if (publisher->timer)
        g_source_remove(publisher->timer);
    published_free(publisher->there);
    g_clear_pointer(&publisher->wanted, json_node_unref);
    g_clear_pointer(&publisher->writing, json_node_unref);
    g_clear_pointer(&publisher->written, json_node_unref);
    g_clear_pointer(&publisher->written_as, json_node_unref);
    g_string_free(publisher->line, TRUE);
    g_free(publisher->version);
    g_free(publisher->writing_over);
    g_free(publisher->node_uid);
    g_free(publisher->node);
    g_free(publisher);
}

void publisher_set(Publisher *publisher, const GPtrArray *gpus)
{
    g_clear_pointer(&publisher->wanted, json_node_unref);
    publisher->wanted = resource_slice_devices(gpus);
    publish_next(publisher);
}
