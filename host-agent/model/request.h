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
 * The same with the values of a slice that calls of kind @use take (SLICE_KEY_ASKED or _CHANGED):
 * into @slice, and which there were into @given, of slice_key_bit().
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

/* More than any GPU has, and small enough to be summed. */
#define REQUEST_MAX_BYTES (G_GUINT64_CONSTANT(1) << 50)

/*
 * Words of requests that other calls than CreateVgpus have as well; NULL and "" are no tenant.
 * AGENT_ERROR_INVALID.
 */
gboolean request_parse_class(const char *text, SliceClass *class, GError **error);
gboolean request_check_tenant(const char *tenant, GError **error);

/* @text, valid UTF-8, has no control characters: it can be printed as it is. */
gboolean request_is_printable(const char *text);

/**
 * Request - of one call, in the words of CreateVgpus in dbus/org.mdev_vgpu.Host1.xml
 * @type: as "half", or its full name in sysfs; "": none, for a container's slice of @vram
 * @uuids: @count of them
 * @class_given: @class is the caller's and not the type's; 0 in the numbers below means the same
 * @vram_percent: of the GPU's memory, in place of @vram; 0: not given
 * @transport_auto: the transport is chosen for the GPU; then @transport is the one of a GPU without
 * CUDA
 * @engines: of Engine, allowed ones; 0: all
 * @numa_node: -1: any
 * @domain: libvirt's name of the VM that they are made for; "": none
 * @name: for commands, and for containers; "": none
 * @ephemeral: of a container's slice, of CreateSlice
 * @owner, @part, @pool: of a slice that is made for an engine; "": none
 * @uid: who may use it without a container, if @uid_given
 * @asked: checksum of all that was requested, if there is an owner; else ""
 */
typedef struct {
    char *type;
    SliceTransport transport;
    gboolean transport_auto;
    char *name;
    gboolean ephemeral;
    guint count;
    GStrv uuids;
    char *tenant;
    gboolean class_given;
    SliceClass class;
    guint64 vram;
    guint64 window;
    guint64 window_most;
    guint weight;
    guint cap;
    gboolean priority_given;
    guint priority;
    gboolean compute_given;
    guint compute;
    gboolean oversubscribe_given;
    guint64 oversubscribe;
    gboolean display_given;
    guint display;
    guint engines;
    GStrv gpus;
    GStrv not_gpus;
    Policy policy;
    int numa_node;
    char *job;
    char *replica;
    char *domain;
    char *owner;
    char *part;
    char *pool;
    gboolean uid_given;
    guint uid;
    char *asked;
    gboolean define;
    gboolean autostart;
    gboolean dry_run;
    guint vram_percent;
} Request;

/* So much of a GPU's @vram, in whole MiB. */
guint64 vram_of_percent(guint64 vram, guint percent);

void request_free(Request *request);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Request, request_free)

/*
 * Reads @dict, of a{sv}. AGENT_ERROR_INVALID names the key, its value, and the allowed values.
 * Missing UUIDs are generated.
 */
Request *request_parse(GVariant *dict, GError **error);

/* The same for one container's slice. */
Request *request_parse_slice(GVariant *dict, GError **error);

/*
 * @requests: of Request, for one call: one owner, each part once, all or none of them a rehearsal,
 * the same Window. AGENT_ERROR_INVALID.
 */
gboolean requests_check_owner(const GPtrArray *requests, GError **error);

/**
 * Change - the changes of SetVgpu
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
