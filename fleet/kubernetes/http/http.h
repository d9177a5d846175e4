/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests by libcurl, in the thread's default main context: none of them blocks. Over TLS to
 * Kubernetes' API, over a UNIX socket to the kubelet.
 *
 * Connections are shared, and the API's are an hour old at most. After an answer 401 new calls have
 * new ones, because the files of the certificate may have been replaced.
 */
#ifndef KUBERNETES_HTTP_HTTP_H
#define KUBERNETES_HTTP_HTTP_H

#include <gio/gio.h>

/* Of one answer. */
#define HTTP_ANSWER_MAX (16u << 20)

typedef struct Http Http;
typedef struct HttpCall HttpCall;

/**
 * HttpRequest
 * @socket: path of a UNIX socket, spoken to in HTTP/2 without TLS; NULL: TLS
 * @ca, @certificate, @key: files in PEM; NULL: the system's authorities; none
 * @headers: "Name: value", up to NULL; may be NULL
 * @body: may be NULL
 * @seconds: for all of it; 0: no limit, but a peer that is gone is noticed within a minute
 */
typedef struct {
    const char *method;
    const char *url;
    const char *socket;
    const char *ca;
    const char *certificate;
    const char *key;
    const char *const *headers;
    GBytes *body;
    guint seconds;
} HttpRequest;

/**
 * HttpAnswer
 * @status: of HTTP
 * @body: empty if the pieces went to an HttpPieceFunc
 */
typedef struct {
    guint status;
    GByteArray *body;
    GHashTable *headers;
} HttpAnswer;

/* A header of the answer, or a trailer; @name in lower case. NULL: none. */
const char *http_answer_header(const HttpAnswer *answer, const char *name);

/* Called once, later. @answer: NULL with @error (G_IO_ERROR). Both for the time of the call. */
typedef void (*HttpFunc)(const HttpAnswer *answer, const GError *error, void *data);

/* Each piece of an answer with status 200, as it comes. */
typedef void (*HttpPieceFunc)(const char *bytes, gsize length, void *data);

Http *http_new(void);

/* Its calls are cancelled. */
void http_free(Http *http);

/* What @request names need not outlive the call of this. @piece: may be NULL. */
HttpCall *http_start(Http *http, const HttpRequest *request, HttpPieceFunc piece, HttpFunc func,
                     void *data);

/* @func is not called any more. Not from within it. */
void http_cancel(HttpCall *call);

#endif
