/* SPDX-License-Identifier: MIT */
#include "fleet/kubernetes/dra/api.h"

#include <string.h>
#include <json-glib/json-glib.h>

#define CALL_SECONDS 20

/*
 * By so much a watch may be longer than the server was asked for. A load balancer may keep the
 * connection when it has lost the server, and then nobody else ends it.
 */
#define WATCH_GRACE_SECONDS 5

/* Of what a server says is wrong. */
#define PROBLEM_MAX 500

struct Api {
    Http *http;
    const KubeConf *conf;
};

Api *api_new(Http *http, const KubeConf *conf)
{
    Api *api = g_new0(Api, 1);

    api->http = http;
    api->conf = conf;
    return api;
}

void api_free(Api *api)
{
    g_free(api);
}

/* Read each time: tokens are short-lived, and replaced in their file. NULL: there is none. */
static char *read_authorization(const KubeConf *conf)
{
    g_autofree char *token = NULL;

    if (!conf->token || !g_file_get_contents(conf->token, &token, NULL, NULL))
        return NULL;
    return g_strconcat("Authorization: Bearer ", g_strstrip(token), NULL);
}

static HttpCall *api_start(Api *api, const char *method, const char *path, const char *body,
                           guint seconds, HttpPieceFunc piece, HttpFunc func, void *data)
{
    g_autofree char *url = g_strconcat(api->conf->url, path, NULL);
    g_autofree char *token = read_authorization(api->conf);
    const char *const headers[] = {"Accept: application/json", "Content-Type: application/json",
                                   token, NULL};
    g_autoptr(GBytes) bytes = body ? g_bytes_new(body, strlen(body)) : NULL;
    const HttpRequest request = {.method = method,
                                 .url = url,
                                 .ca = api->conf->ca,
                                 .certificate = api->conf->certificate,
                                 .key = api->conf->key,
                                 .headers = headers,
                                 .body = bytes,
                                 .seconds = seconds};

    return http_start(api->http, &request, piece, func, data);
}

HttpCall *api_call(Api *api, const char *method, const char *path, const char *body, HttpFunc func,
                   void *data)
{
    return api_start(api, method, path, body, CALL_SECONDS, NULL, func, data);
}

HttpCall *api_watch(Api *api, const char *path, const char *version, HttpPieceFunc piece,
                    HttpFunc func, void *data)
{
    guint seconds = api->conf->watch_seconds;
    g_autofree char *whole =
        g_strdup_printf("%s&watch=1&timeoutSeconds=%u&resourceVersion=%s", path, seconds, version);

    return api_start(api, "GET", whole, NULL, seconds + WATCH_GRACE_SECONDS, piece, func, data);
}

char *api_problem(const HttpAnswer *answer, const GError *error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    const char *text = NULL;
    JsonNode *node;

    if (!answer)
        return g_strdup(error->message);
    if (answer->status >= 200 && answer->status < 300)
        return NULL;
    if (json_parser_load_from_data(parser, (const char *)answer->body->data,
                                   (gssize)answer->body->len, NULL)) {
        node = json_parser_get_root(parser);
        if (node && JSON_NODE_HOLDS_OBJECT(node))
            text = json_object_get_string_member_with_default(json_node_get_object(node), "message",
                                                              NULL);
    }
    return g_strdup_printf("the API answers %u: %.*s", answer->status, PROBLEM_MAX,
                           text ? text : "no reason");
}

guint api_retry_after(const HttpAnswer *answer)
{
    const char *text = answer ? http_answer_header(answer, "retry-after") : NULL;
    guint64 seconds = 0;

    if (text)
        g_ascii_string_to_unsigned(text, 10, 0, 3600, &seconds, NULL);
    return (guint)seconds;
}
