/* SPDX-License-Identifier: MIT */
/*
 * What Vulkan consists of, by the registry that comes with its headers: it is newer whenever they
 * are. What there is on other platforms alone, or not in this API, is left out.
 */
#ifndef REGISTRY_H
#define REGISTRY_H

#include <glib.h>

#define REGISTRY_FILE "/usr/share/vulkan/registry/vk.xml"

/* @alias: the name that means the same, or NULL; then the rest is not there. */
struct registry_command {
    char *name;
    char *alias;
    char *first;    /* type of the first parameter */
    GPtrArray *out; /* types that it gives back by pointers */
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

/* Ends the test where there is none. */
struct registry *registry_read(void);
void registry_free(struct registry *registry);

/* Past all aliases. */
const struct registry_command *registry_resolve(const struct registry *registry, const char *name);

#endif /* REGISTRY_H */
