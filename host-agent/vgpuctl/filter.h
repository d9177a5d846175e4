/* SPDX-License-Identifier: MIT */
/*
 * --gpu, --tenant, --type and --state of the commands that list objects.
 */
#ifndef VGPUCTL_FILTER_H
#define VGPUCTL_FILTER_H

#include <glib.h>

/**
 * Filter - where the objects of a list have what is asked for
 * @gpu, @tenant, @type: keys of members; NULL: there is no such option
 * @states: keys, NULL terminated, of members any of which may be the state
 * @words: all states that there are, for a misspelt one; NULL: any word is right
 */
typedef struct {
    const char *gpu;
    const char *tenant;
    const char *type;
    const char *const *states;
    const char *const *words;
} Filter;

/* The objects, of aa{sv}, that fit all options; several values of an option are alternatives. Takes
 * @objects. NULL with VGPUCTL_USAGE for a state that there is not. */
GVariant *filter_apply(GVariant *objects, const Filter *filter, GError **error);

/* The object is in the state that @asked names. */
typedef gboolean (*FilterIsInState)(void *object, const char *asked);

/* The object is in one of the states that --state asks for, if it is given. */
gboolean filter_has_state(void *object, FilterIsInState is);

/* A type's own name, without the driver's prefix: "half" is "amdgpu-vgpu-half". */
gboolean filter_type_is(const char *type, const char *name);

#endif
