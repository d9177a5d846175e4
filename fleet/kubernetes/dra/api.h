/* SPDX-License-Identifier: MIT */
/* Kubernetes' API: JSON over TLS. Nothing here blocks. */
#ifndef KUBERNETES_DRA_API_H
#define KUBERNETES_DRA_API_H

#include "fleet/kubernetes/conf.h"
#include "fleet/kubernetes/http/http.h"

typedef struct Api Api;

/* @conf has a url, and outlives the Api. */
Api *api_new(Http *http, const KubeConf *conf);
void api_free(Api *api);

/* @path: behind the server's, with what may have to be escaped escaped. @body: JSON; NULL: none. */
HttpCall *api_call(Api *api, const char *method, const char *path, const char *body, HttpFunc func,
                   void *data);

/*
 * A watch of the list at @path, which ends in a query, from @version on: lines of JSON, until the
 * server ends it, or some seconds after the server should have.
 */
HttpCall *api_watch(Api *api, const char *path, const char *version, HttpPieceFunc piece,
                    HttpFunc func, void *data);

/*
 * Why a call failed: @error, or what the server says in its answer; NULL: it did not. To be freed.
 */
char *api_problem(const HttpAnswer *answer, const GError *error);

/* Seconds that the server wants to be left alone; 0: it does not say. */
guint api_retry_after(const HttpAnswer *answer);

#endif
