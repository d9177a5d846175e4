/* SPDX-License-Identifier: MIT */
#include "erasure.h"

#include "definition.h"
#include "vgpu.h"

typedef struct {
    Host *host;
    Slices *slices;
    char *uuid;
    MdevctlFunc func;
    void *data;
} Erasure;

static void finish(Erasure *erasure, const GError *error)
{
    if (!error)
        slices_forget(erasure->slices, erasure->uuid);
    erasure->func(error, erasure->data);
    g_free(erasure->uuid);
    g_free(erasure);
}

static void undefined(const GError *error, void *data)
{
    finish(data, error);
}

/* Also where there was nothing to stop: a crash may have come between the two. */
static void stopped(const GError *error, void *data)
{
    Erasure *erasure = data;
    g_autoptr(Definition) definition = NULL;

    if (error) {
        finish(erasure, error);
        return;
    }
    definition = definition_find(host_root(erasure->host), erasure->uuid);
    if (definition) {
        const char *words[] = {"undefine",         "--uuid", erasure->uuid, "--parent",
                               definition->parent, NULL};

        mdevctl_run(words, NULL, undefined, erasure);
    } else {
        finish(erasure, NULL);
    }
}

static gboolean nothing_to_stop(void *data)
{
    stopped(NULL, data);
    return G_SOURCE_REMOVE;
}

void erasure_run(Host *host, Slices *slices, const char *uuid, MdevctlFunc func, void *data)
{
    g_autoptr(Vgpu) vgpu = vgpu_read(host_root(host), uuid);
    Erasure *erasure = g_new0(Erasure, 1);

    erasure->host = host;
    erasure->slices = slices;
    erasure->uuid = g_strdup(uuid);
    erasure->func = func;
    erasure->data = data;
    if (vgpu) {
        const char *words[] = {"stop", "--uuid", erasure->uuid, NULL};

        mdevctl_run(words, NULL, stopped, erasure);
    } else {
        g_idle_add(nothing_to_stop, erasure);
    }
}
