// SPDX-License-Identifier: MIT
#include "slices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "member.h"
#include "sockets.h"

#define SLICES_DIR "/run/vgpu/slices"

static const char *setting_of(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

char *slices_socket_of(const char *pci)
{
    const char *dir = setting_of("VGPU_GOVERNOR_SLICES");
    const char *single = setting_of("VGPU_GOVERNOR_SOCKET");
    char *path = governor_socket_in(SLICES_DIR, pci);

    if (!path && dir)
        path = governor_socket_in(dir, pci);
    if (path || dir)
        return path;
    if (!single && access(GOVERNOR_DEFAULT_SOCKET, F_OK) == 0)
        single = GOVERNOR_DEFAULT_SOCKET;
    return single ? strdup(single) : NULL;
}

bool slices_are_required(void)
{
    const char *required = getenv("VGPU_GOVERNOR_REQUIRED");

    return required && !strcmp(required, "1");
}

bool slices_is_required(const char *path)
{
    const char *end = strrchr(path, '/');
    char *file = NULL;
    bool required = slices_are_required();

    if (!required && end && asprintf(&file, "%.*s/required", (int)(end - path), path) >= 0)
        required = access(file, F_OK) == 0;
    free(file);
    return required;
}

static bool note_any(const char *gpu, const char *path, void *data)
{
    (void)gpu;
    (void)path;
    *(bool *)data = true;
    return false;
}

bool slices_any(void)
{
    const char *dir = setting_of("VGPU_GOVERNOR_SLICES");
    bool any = false;

    governor_sockets_each(SLICES_DIR, note_any, &any);
    if (!any && dir)
        governor_sockets_each(dir, note_any, &any);
    if (!any && !dir)
        any = setting_of("VGPU_GOVERNOR_SOCKET") || access(GOVERNOR_DEFAULT_SOCKET, F_OK) == 0;
    return any;
}
