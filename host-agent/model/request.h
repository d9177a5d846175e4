/* SPDX-License-Identifier: MIT */
/* Dictionaries from D-Bus, and requests for vGPUs and slices. */
#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H

#include <glib.h>

#include "host-agent/model/slice_keys.h"

/*
 * Strict reading of a dictionary (a{sv}) from the bus. An unknown key, a duplicate key or another
 * type is an error: if it were silently ignored, the result would differ from the request.
 */

/**
 * DictKey - an allowed key
 * @type: s, t, u, i, b, or a for "as"
 * @value: destination: char *, guint64, guint, int, gboolean, GStrv
 * @given: set to TRUE if the key is present; NULL: not needed
 * @min, @max: for t and u; both 0: any
 */
typedef struct {
    const char *key;
    char type;
    void *value;
    gboolean *given;
    guint64 min;
    guint64 max;
} DictKey;

/*
 * No key is there twice: of two values, one function of GLib finds the first and another the last.
 * AGENT_ERROR_INVALID.
 */
gboolean dict_check_unique(GVariant *dict, GError **error);

/* Strings and lists are copied; the caller frees them. AGENT_ERROR_INVALID. */
gboolean dict_read(GVariant *dict, const DictKey *keys, gsize count, GError **error);

/*
 * The same with the values of a slice that calls of kind @use take (SLICE_KEY_ASKED, _CHANGED or
 * _DEFINITION): into @slice, and which there were into @given, of slice_key_bit().
 */
gboolean dict_read_slice(GVariant *dict, guint use, Slice *slice, guint64 *given,
                         const DictKey *keys, gsize count, GError **error);

/* A request for vGPUs, and where they may be placed. */

/* Which GPU is chosen if several have room. */
typedef enum {
    POLICY_BINPACK, /* the fullest, so that whole GPUs stay free */
    POLICY_SPREAD,  /* the emptiest */
} Policy;

#define REQUEST_MAX_COUNT 1024u

/**
 * Request - of one call, in the words of CreateSlices in dbus/org.mdev_vgpu.Host1.xml
 * @wanted: the values that are given, of a slice; its Type as "half", or the full name in sysfs, ""
 * for a container's slice of its own size
 * @given: which, of slice_key_bit(); the type's are taken for the others
 * @uuids: @count of them
 * @vram_percent: of the GPU's memory, in place of its Vram; 0: not given
 * @transport_auto: the transport is chosen for the GPU; until then it is the one of a GPU without
 * CUDA
 * @numa_node: -1: any
 */
typedef struct {
    Slice *wanted;
    guint64 given;
    gboolean transport_auto;
    guint count;
    GStrv uuids;
    guint64 window;
    guint64 window_most;
    GStrv gpus;
    GStrv not_gpus;
    Policy policy;
    int numa_node;
    gboolean uid_given;
    guint uid;
    gboolean define;
    gboolean dry_run;
    guint vram_percent;
} Request;

/* So much of a GPU's @vram, in whole MiB. */
guint64 vram_of_percent(guint64 vram, guint percent);

void request_free(Request *request);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Request, request_free)

/* The value of that name is given. */
gboolean request_has(const Request *request, const char *name);

/*
 * Reads @dict, of a{sv}. AGENT_ERROR_INVALID names the key, its value, and the allowed values.
 * Missing UUIDs are generated. Without a Door it is for a container.
 */
Request *request_parse(GVariant *dict, GError **error);

/*
 * @requests: of Request, for one call, if there are several: one owner, each part once, all or none
 * of them a rehearsal, the same Window. AGENT_ERROR_INVALID.
 */
gboolean requests_check_owner(const GPtrArray *requests, GError **error);

/**
 * Change - the changes of SetSlice
 * @values: those that are given, of a slice
 * @given: which, of slice_key_bit()
 * @vram_percent: of the GPU's memory, in place of its Vram; 0: not given
 */
typedef struct {
    Slice *values;
    guint64 given;
    guint vram_percent;
    gboolean dry_run;
} Change;

void change_free(Change *change);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Change, change_free)

/* The value of that name is given. */
gboolean change_has(const Change *change, const char *name);

/* Sets what is given. */
void change_make(const Change *change, Slice *slice);

/* As request_parse(). */
Change *change_parse(GVariant *dict, GError **error);

#endif
