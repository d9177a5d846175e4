// SPDX-License-Identifier: MIT
/* Memberships by NVML device, kept for the process's life as NVML's handles are. */
#include "slice.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "slices.h"

#define DEVICES_MAX 64

struct known {
    char pci[32];
    GovernorMember *member;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known devices[DEVICES_MAX];
static unsigned int count;

/* A thread of the parent's may have been joining. */
static void forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_parent);
}

/* "00000000:3B:00.0" is 0000:3b:00.0 in sysfs. */
static bool address_of(nvmlDevice_t device, char pci[32])
{
    nvmlPciInfo_t info;
    const char *from;

    if (DRIVER(nvmlDeviceGetPciInfo_v3, device, &info) != NVML_SUCCESS)
        return false;
    info.busId[sizeof(info.busId) - 1] = 0;
    from = info.busId;
    if (strcspn(from, ":") == 8 && !strncmp(from, "0000", 4))
        from += 4;
    for (unsigned int i = 0; i < 32; i++) {
        pci[i] = (char)tolower((unsigned char)*from);
        from += *from != 0;
    }
    return true;
}

/* NULL with *@has_slice: there is one, and it cannot be joined now. */
static GovernorMember *join_slice(const char *pci, bool *has_slice)
{
    char *path = slices_socket_of(pci);
    GovernorMember *member = path ? governor_member_get(path, false) : NULL;

    *has_slice = path;
    free(path);
    return member;
}

/* Joined to nothing, so that other tenants' processes stay hidden meanwhile. */
static GovernorMember *stand_in(void)
{
    static GovernorMember *member;

    if (!member)
        member = governor_member_new(NULL, false);
    return member;
}

/* With the lock. What cannot be joined now is tried again at the next call. */
static GovernorMember *join_and_keep(const char *pci)
{
    bool has_slice;
    GovernorMember *member = join_slice(pci, &has_slice);

    if (has_slice && !member)
        return stand_in();
    memcpy(devices[count].pci, pci, sizeof(devices[count].pci));
    devices[count++].member = member;
    return member;
}

GovernorMember *slice_of(nvmlDevice_t device)
{
    GovernorMember *member = NULL;
    char pci[32];
    unsigned int i = 0;

    if (!address_of(device, pci))
        return NULL;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    while (i < count && strcmp(devices[i].pci, pci))
        i++;
    if (i < count)
        member = devices[i].member;
    else if (count < DEVICES_MAX)
        member = join_and_keep(pci);
    pthread_mutex_unlock(&lock);
    return member;
}
