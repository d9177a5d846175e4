/* SPDX-License-Identifier: MIT */
/* Names that the cluster sees. */
#ifndef KUBERNETES_NAMES_H
#define KUBERNETES_NAMES_H

#include <glib.h>

/* Before attributes that Kubernetes itself has named. */
#define KUBE_STANDARD "resource.kubernetes.io/"

#define KUBE_DRIVER "gpu.mdev-vgpu.org"
#define KUBE_VENDOR "mdev-vgpu.org"

/* Of a claim in the API, by namespace and name. */
#define KUBE_CLAIM_PATH "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s"

/* Owners in vgpud are "k8s:" and a claim's uid, and "k8s-seats:" and a card's device name. */
#define KUBE_CLAIM_OWNER "k8s:"
#define KUBE_SEATS_OWNER "k8s-seats:"

/*
 * The name of a card's device: a DNS label of at most 53 bytes, "gpu-0000-41-00-0" for
 * 0000:41:00.0. To be freed.
 */
char *kube_device_name(const char *address);

/* Whether it may be a name, uid or namespace in the API, so that it can be part of a path. */
gboolean kube_is_name(const char *text);

#endif
