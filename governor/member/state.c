// SPDX-License-Identifier: MIT
#include "member_state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void *page_new(void)
{
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? NULL : page;
}

static void locks_init(GovernorMember *member)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&member->link_lock, NULL);
    pthread_mutex_init(&member->lock, NULL);
    pthread_cond_init(&member->link_changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool state_init(GovernorMember *member)
{
    locks_init(member);
    member->fd = -1;
    member->stop_fd = -1;
    member->wake_fd = -1;
    member->grant = page_new();
    member->usage = page_new();
    member->fork_word = page_new();
    if (!member->grant || !member->usage || !member->fork_word)
        return false;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        member->lanes[i].grant = &member->grant->classes[i];
        member->lanes[i].usage = &member->usage->classes[i];
        marker_restart(&member->lanes[i]);
    }
    if (madvise((void *)member->fork_word, PAGE_BYTES, MADV_WIPEONFORK) < 0)
        return false;
    atomic_store(member->fork_word, FORK_NONE);
    return true;
}

void state_clear(GovernorMember *member)
{
    int error = errno;

    if (member->grant)
        munmap(member->grant, PAGE_BYTES);
    if (member->usage)
        munmap(member->usage, PAGE_BYTES);
    if (member->fork_word)
        munmap((void *)member->fork_word, PAGE_BYTES);
    pthread_cond_destroy(&member->link_changed);
    pthread_mutex_destroy(&member->link_lock);
    pthread_mutex_destroy(&member->lock);
    errno = error;
}

/* The parent's pages are shared with it: they are replaced. */
static bool replace_page(void *page, const void *content)
{
    void *copy = page_new();

    if (!copy)
        return false;
    if (content)
        memcpy(copy, content, PAGE_BYTES);
    return mremap(copy, PAGE_BYTES, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page;
}

/* What its parent has in flight is its parent's. */
static void renew_lane(struct lane *lane)
{
    struct lane before = *lane;

    *lane = (struct lane){
        .grant = before.grant,
        .usage = before.usage,
        .budget = before.budget,
        .epoch = before.epoch,
    };
    marker_restart(lane);
}

bool state_renew(GovernorMember *member)
{
    locks_init(member);
    member->held = member->held_spilled = 0;
    member->driver = 0;
    member->movable = member->asks = member->awaits_room = false;
    member->displaced = member->unmovable = member->freed_displaced = 0;
    spare_forget(member);
    member->vault_ask = NULL;
    member->objects = NULL;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        renew_lane(&member->lanes[i]);
    member->watchers = 0;
    return replace_page(member->grant, member->grant) && replace_page(member->usage, NULL);
}
