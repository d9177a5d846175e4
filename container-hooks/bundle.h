/* SPDX-License-Identifier: MIT */
/* What a runtime was told to make: the parts of a bundle's config.json that hooks need. */
#ifndef CONTAINER_HOOKS_BUNDLE_H
#define CONTAINER_HOOKS_BUNDLE_H

#include <glib.h>

/**
 * BundleMount
 * @source: on the host; "": none
 * @destination: in the container
 */
typedef struct {
    char *source;
    char *destination;
} BundleMount;

/**
 * Bundle
 * @image: absolute path of the container's root on the host
 * @environment: of its first process; up to NULL
 * @mounts: of BundleMount
 */
typedef struct {
    char *image;
    GStrv environment;
    GPtrArray *mounts;
} Bundle;

/* @folder: NULL: the state does not name it, which is an error. */
Bundle *bundle_read(const char *folder, GError **error);

/* What the first process has in that variable; "": nothing. */
const char *bundle_variable(const Bundle *bundle, const char *name);

void bundle_free(Bundle *bundle);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Bundle, bundle_free)

#endif
