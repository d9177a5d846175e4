// SPDX-License-Identifier: MIT
/*
 * Memory that several processes of a slice may hold. Each declares it to the arbiter, which charges
 * it once. What the arbiter does not know (it is gone, or can remember no more) is this member's
 * own, and is declared again to the next arbiter.
 */
#include "member_state.h"

#include <errno.h>

static void add_object(GovernorMember *member, struct governor_object *object, uint64_t bytes,
                       enum governor_memory kind)
{
    object->bytes = bytes;
    object->kind = kind;
    object->shared = false;
    object->next = member->objects;
    member->objects = object;
}

static bool take_out(GovernorMember *member, const struct governor_object *object)
{
    struct governor_object **at = &member->objects;

    while (*at && *at != object)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = object->next;
    return true;
}

static bool holds_object(const GovernorMember *member, const struct governor_object *object)
{
    const struct governor_object *at = member->objects;

    while (at && at != object)
        at = at->next;
    return at;
}

/* False: the connection is broken. */
static bool declare_object(GovernorMember *member, struct governor_object *object)
{
    struct governor_message request = {
        .version = GOVERNOR_PROTOCOL_VERSION,
        .type = GOVERNOR_SHARE,
        .value = object->bytes,
        .other = object->kind == GOVERNOR_MEMORY_SPILL ? object->bytes : 0,
        .object = {.device = object->device, .inode = object->inode},
    };
    struct governor_message answer;

    if (!link_ask(member, &request, &answer))
        return false;
    object->shared = answer.value == 0;
    return true;
}

bool objects_declare(GovernorMember *member)
{
    for (struct governor_object *object = member->objects; object; object = object->next)
        object->shared = false;
    for (struct governor_object *object = member->objects; object; object = object->next) {
        if (!declare_object(member, object))
            return false;
        /* It can remember no more. */
        if (!object->shared)
            return true;
    }
    return true;
}

uint64_t objects_bytes(const GovernorMember *member, enum governor_memory kind)
{
    uint64_t bytes = 0;

    for (const struct governor_object *object = member->objects; object; object = object->next)
        bytes += object->kind == kind ? object->bytes : 0;
    return bytes;
}

void governor_member_export(GovernorMember *member, struct governor_object *object, uint64_t bytes,
                            enum governor_memory kind)
{
    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    bytes = memory_uncharge(member, bytes, kind);
    if (bytes) {
        add_object(member, object, bytes, kind);
        /* If no answer comes, it is declared to the next arbiter. */
        if (member->link == LINK_JOINED)
            declare_object(member, object);
    }
    pthread_mutex_unlock(&member->link_lock);
}

/* Charged as if nobody else held it. */
static bool reserve_alone(GovernorMember *member, uint64_t bytes)
{
    return memory_take(member, bytes, false) == GOVERNOR_MEMORY_DEVICE;
}

/* False: it is refused. @shared: the arbiter knows of it; else @more is charged as this member's.
 */
static bool attach_object(GovernorMember *member, const struct governor_object *object,
                          uint64_t bytes, uint64_t more, bool *shared)
{
    struct governor_message request = {
        .version = GOVERNOR_PROTOCOL_VERSION,
        .type = GOVERNOR_ATTACH,
        .value = bytes,
        .object = {.device = object->device, .inode = object->inode},
    };
    struct governor_message answer;
    bool answered = memory_ask(member, &request, &answer);

    *shared = answered && answer.value == 0;
    if (answered && !*shared && answer.value != ENOSPC)
        return false;
    return *shared || reserve_alone(member, more);
}

static void detach_object(GovernorMember *member, const struct governor_object *object)
{
    struct governor_message detach = {
        .version = GOVERNOR_PROTOCOL_VERSION,
        .type = GOVERNOR_DETACH,
        .object = {.device = object->device, .inode = object->inode},
    };

    link_tell_back(member, &detach);
}

/* It is larger than was known: only the rest is charged, and it is held once as before. */
static bool grow_object(GovernorMember *member, struct governor_object *object, uint64_t bytes)
{
    uint64_t more = bytes - object->bytes;
    bool shared = false, has;

    if (object->shared && member->link == LINK_JOINED)
        has = attach_object(member, object, bytes, more, &shared);
    else
        has = reserve_alone(member, more);
    if (shared)
        detach_object(member, object);
    if (has)
        object->bytes = bytes;
    return has;
}

static bool import_object(GovernorMember *member, struct governor_object *object, uint64_t bytes)
{
    bool shared;

    if (holds_object(member, object))
        return bytes <= object->bytes || grow_object(member, object, bytes);
    if (!attach_object(member, object, bytes, bytes, &shared))
        return false;
    add_object(member, object, bytes, GOVERNOR_MEMORY_DEVICE);
    object->shared = shared;
    return true;
}

bool governor_member_import(GovernorMember *member, struct governor_object *object, uint64_t bytes)
{
    bool has;

    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    has = import_object(member, object, bytes);
    pthread_mutex_unlock(&member->link_lock);
    return has;
}

void governor_member_forget(GovernorMember *member, struct governor_object *object)
{
    fork_check(member);
    pthread_mutex_lock(&member->link_lock);
    /* A child holds none of its parent's. */
    if (take_out(member, object)) {
        if (!object->shared)
            memory_freed(member, object->bytes, object->kind);
        else if (member->link == LINK_JOINED)
            detach_object(member, object);
        /* Without an arbiter others may hold it, too, so there is no more room than before. */
    }
    pthread_mutex_unlock(&member->link_lock);
}
