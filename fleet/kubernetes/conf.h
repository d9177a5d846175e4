/* SPDX-License-Identifier: MIT */
/* /etc/vgpu/kubernetes.conf, as vgpu-kubelet(8) describes it. */
#ifndef KUBERNETES_CONF_H
#define KUBERNETES_CONF_H

#include <glib.h>

#include "lib/host_root.h"

#define KUBE_CONF_PATH "/etc/vgpu/kubernetes.conf"

/**
 * Seats - how the cards of a model are cut into equal slices
 * @model: as vgpud names it
 * @type: of a slice
 * @count: on each card
 * @door, @class: vgpud's words; NULL: its default
 * @is_default_door: the administrator names none
 * @spread: take seats of many cards rather than of few
 */
typedef struct {
    char *model;
    char *type;
    guint count;
    char *door;
    gboolean is_default_door;
    char *class;
    gboolean spread;
} Seats;

/**
 * KubeConf
 * @root: of the host
 * @node: the node's name in the cluster
 * @kubelet: the kubelet's folder
 * @forgotten_after: seconds after which slices of a claim that nobody knows any more are released
 * @with_cdi: the container runtime reads CDI's files
 * @tenant: of all slices; NULL: none
 * @tenant_is_namespace: the claim's namespace is the tenant
 * @url: of the API; NULL: no DRA driver
 * @ca, @certificate, @key, @token: files; may be NULL
 * @watch_seconds: after which a watch is begun again
 * @seats: of Seats
 */
typedef struct {
    HostRoot *root;
    char *node;
    char *kubelet;
    guint forgotten_after;
    gboolean with_cdi;
    char *tenant;
    gboolean tenant_is_namespace;
    char *url;
    char *ca;
    char *certificate;
    char *key;
    char *token;
    guint watch_seconds;
    GPtrArray *seats;
} KubeConf;

/* NULL with an error that names file, group and key. A missing file is an empty one. */
KubeConf *kube_conf_read(HostRoot *root, GError **error);
void kube_conf_free(KubeConf *conf);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeConf, kube_conf_free)

/* Of this model; NULL: its cards are not cut. */
const Seats *kube_conf_seats(const KubeConf *conf, const char *model);

#endif
