/* SPDX-License-Identifier: MIT */
/*
 * Vulkan's commands and types, by the registry that comes with its headers, so it is as new as they
 * are. Commands of other platforms only, or of another API, are left out.
 */
#ifndef REGISTRY_H
#define REGISTRY_H

#include <glib.h>

#define REGISTRY_FILE "/usr/share/vulkan/registry/vk.xml"

/* @alias: the name that means the same, or NULL; then the rest is empty. */
struct registry_command {
    char *name;
    char *alias;
    char *first;    /* type of the first parameter */
    GPtrArray *out; /* types that it returns by pointers */
};

struct registry_struct {
    char *name;
    char **extends;
};

/* Both by name, of the two above. */
struct registry {
    GHashTable *commands;
    GHashTable *structs;
};

/* Ends the test if there is none. */
struct registry *registry_read(void);
void registry_free(struct registry *registry);

/* Past all aliases. */
const struct registry_command *registry_resolve(const struct registry *registry, const char *name);

#endif /* REGISTRY_H */
