// SPDX-License-Identifier: MIT
#include "slice.h"

#include "clock.h"
#include "connection.h"
#include "moves.h"
#include "rate_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Connections that have not joined yet; more are closed at once. */
#define MAX_NOT_JOINED 64

bool slice_id_valid(const char *id)
{
    return *id && *id != '.' && strlen(id) <= 64 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               strlen(id);
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct slice *slice = data;
    uint64_t begin = rate_limit_clock();
    int peer;

    (void)revents;
    if (!rate_limit_admits(slice, source))
        return 0;
    peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            g_message("slice %s: cannot accept a connection: %s", slice->id, g_strerror(errno));
        /* One that waits for a descriptor is ready again at once. */
        rate_limit_spend(slice, RATE_DROP);
        return 0;
    }
    if (slice->connections->len >= SLICE_MAX_MEMBERS + MAX_NOT_JOINED)
        rate_limit_close(slice, peer);
    else
        connection_new(slice, peer);
    rate_limit_spend_since(slice, begin);
    return 0;
}

static void set_memory(struct slice *slice, const struct slice_settings *settings)
{
    slice->ledger.limit = settings->vram;
    slice->ledger.spill_limit = settings->vram ? settings->spill : 0;
}

/*
 * Without an owner it is for everybody who sees the directory (an engine's user is made when the
 * engine starts): nobody else can enter the directory above.
 */
static mode_t socket_mode(const struct slice_settings *settings)
{
    return settings->owner == SETTINGS_OWNER_NONE ? 0666 : 0600;
}

static bool listen_at(struct slice *slice, const struct slice_settings *settings)
{
    struct arbiter *arbiter = slice->arbiter;

    if (g_file_test(slice->socket_path, G_FILE_TEST_EXISTS))
        settle_begin(arbiter);
    slice->fd =
        listener_new(slice->socket_path, SOCK_SEQPACKET, socket_mode(settings), settings->owner);
    return slice->fd >= 0 &&
           sd_event_add_io(arbiter->event, &slice->io, slice->fd, EPOLLIN, on_connect, slice) >= 0;
}

/* Before the socket is there: no program that could join runs without. */
static bool slice_mark_required(const char *dir)
{
    g_autofree char *mark = g_build_filename(dir, GOVERNOR_REQUIRED_MARK, NULL);
    int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0)
        g_message("%s: cannot make the file: %s", mark, g_strerror(errno));
    else
        close(fd);
    return fd >= 0;
}

struct slice *slice_new(struct arbiter *arbiter, const char *id,
                        const struct slice_settings *settings)
{
    struct slice *slice = g_new0(struct slice, 1);
    g_autofree char *dir = g_build_filename(arbiter->slices_dir, id, NULL);

    slice->arbiter = arbiter;
    slice->since_ns = clock_since_boot();
    slice->id = g_strdup(id);
    slice->number = arbiter->next_number++;
    slice->socket_path = g_build_filename(dir, "governor.sock", NULL);
    slice->fd = -1;
    slice->connections = g_ptr_array_new();
    rate_limit_init(&slice->limit);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        slice->scheduled[i] = scheduler_add_slice(&arbiter->schedulers[i], settings);
    set_memory(slice, settings);
    moves_set_slice(slice);
    if (g_mkdir_with_parents(arbiter->slices_dir, 0700) < 0 ||
        g_mkdir_with_parents(dir, 0755) < 0) {
        g_message("%s: cannot make the slice's directory: %s", dir, g_strerror(errno));
        slice_free(slice);
        return NULL;
    }
    if (!slice_mark_required(dir) || !listen_at(slice, settings)) {
        slice_free(slice);
        return NULL;
    }
    return slice;
}

void slice_remove_files(const struct slice *slice)
{
    g_autofree char *dir = g_path_get_dirname(slice->socket_path);
    g_autofree char *mark = g_build_filename(dir, GOVERNOR_REQUIRED_MARK, NULL);

    unlink(slice->socket_path);
    unlink(mark);
}

void slice_free(struct slice *slice)
{
    while (slice->connections->len)
        connection_free(g_ptr_array_index(slice->connections, 0));
    g_ptr_array_free(slice->connections, TRUE);
    moves_remove_slice(slice);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        scheduler_remove_slice(&slice->arbiter->schedulers[i], slice->scheduled[i]);
    sd_event_source_disable_unref(slice->io);
    rate_limit_clear(&slice->limit);
    if (slice->fd >= 0)
        rights_close_listener(&slice->arbiter->rights, slice->fd);
    g_free(slice->socket_path);
    g_free(slice->id);
    g_free(slice);
}

/*
 * With root as an intermediate owner: only its owner can change a file's mode, and the arbiter's
 * only privilege is to give files away.
 */
static void give_socket(const struct slice *slice, const struct slice_settings *settings)
{
    uint32_t owner = settings->owner == SETTINGS_OWNER_NONE ? 0 : settings->owner;

    if (chown(slice->socket_path, 0, (gid_t)-1) < 0 ||
        chmod(slice->socket_path, socket_mode(settings)) < 0 ||
        chown(slice->socket_path, owner, (gid_t)-1) < 0)
        g_message("%s: cannot give the socket to its owner: %s", slice->socket_path,
                  g_strerror(errno));
}

void slice_change(struct slice *slice, const struct slice_settings *settings)
{
    if (settings->owner != slice->scheduled[0]->settings.owner)
        give_socket(slice, settings);
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        slice->scheduled[i]->settings = *settings;
    set_memory(slice, settings);
    moves_set_slice(slice);
    moves_publish_memory(slice);
    publish_engines(slice);
}

/* A counter that has decreased has begun again. */
static uint64_t counter_growth(uint64_t before, uint64_t now)
{
    return now < before ? now : now - before;
}

bool slice_set_ungoverned(struct slice *slice, const struct slice_ungoverned *ungoverned)
{
    uint64_t ns = counter_growth(slice->ungoverned.gpu_ns, ungoverned->gpu_ns);

    if (!ledger_set_ungoverned(&slice->ledger, ungoverned->memory))
        return false;
    slice->ungoverned = *ungoverned;
    slice->ungoverned_ns += ns;
    scheduler_charge(&slice->arbiter->schedulers[GOVERNOR_CLASS_COMPUTE],
                     slice->scheduled[GOVERNOR_CLASS_COMPUTE], ns);
    moves_publish_memory(slice);
    return true;
}
