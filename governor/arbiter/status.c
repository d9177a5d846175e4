// SPDX-License-Identifier: MIT
#include "clock.h"
#include "moves.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for all slices; the kernel may give less. */
#define SEND_BUFFER (1 << 20)
/*
 * Clients that are accepted in a second. One that cannot be, for want of a descriptor, is ready
 * again at once.
 */
#define MOST_PER_S 1000

static const char *mode_of(const struct arbiter *arbiter, const struct sched_slice *slice)
{
    if (!slice_members(slice))
        return "empty";
    if (arbiter->schedulers[GOVERNOR_CLASS_COMPUTE].free == slice)
        return "free";
    return slice->throttled ? "throttled" : "metered";
}

static uint32_t share_of(const struct sched_slice *slice)
{
    struct sched_member *member;

    if (!slice_members(slice))
        return 0;
    member = g_ptr_array_index(slice->members->len ? slice->members : slice->resting, 0);
    return atomic_load(&member->grant->share_ppm);
}

/*
 * Where memory beyond the limit goes. Members of one slice have one driver, so one member's
 * statement holds for all. Without members there is no driver that pages.
 */
static const char *spill_kind(const struct slice *slice)
{
    if (!slice->ledger.spill_limit)
        return "none";
    for (guint i = 0; i < slice->connections->len; i++) {
        const struct connection *connection = g_ptr_array_index(slice->connections, i);

        if (connection->joined && atomic_load(&connection->pages.usage->pages))
            return "driver";
    }
    return "spill";
}

/*
 * The time of compute engines, by members and not; that of others beside it. All other numbers are
 * sums.
 */
static void add_time(GString *text, const struct slice *slice)
{
    uint64_t submissions = 0, waited = 0, throttled = 0;

    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        submissions += slice->scheduled[i]->submissions;
        waited += slice->scheduled[i]->waited_ns;
        throttled += slice->scheduled[i]->throttled_ns;
    }
    g_string_append_printf(text,
                           "\"gpu_ns\":%" G_GUINT64_FORMAT ",\"copy_ns\":%" G_GUINT64_FORMAT
                           ",\"video_ns\":%" G_GUINT64_FORMAT,
                           slice->scheduled[GOVERNOR_CLASS_COMPUTE]->gpu_ns + slice->ungoverned_ns,
                           slice->scheduled[GOVERNOR_CLASS_COPY]->gpu_ns,
                           slice->scheduled[GOVERNOR_CLASS_VIDEO]->gpu_ns);
    g_string_append_printf(text,
                           ",\"submissions\":%" G_GUINT64_FORMAT ",\"waited_ns\":%" G_GUINT64_FORMAT
                           ",\"throttled_ns\":%" G_GUINT64_FORMAT "}",
                           submissions, waited, throttled);
}

/* Memory that moves. */
static void add_moves(GString *text, const struct slice *slice)
{
    uint64_t stuck = 0;

    for (unsigned i = 0; i < GOVERNOR_STUCK_REASONS; i++)
        stuck += slice->moves.stuck[i];
    g_string_append_printf(text,
                           "\"promised\":%" G_GUINT64_FORMAT ",\"resident\":%" G_GUINT64_FORMAT
                           ",\"floor\":%" G_GUINT64_FORMAT ",\"displaced\":%" G_GUINT64_FORMAT
                           ",\"moved_out\":%" G_GUINT64_FORMAT ",\"moved_in\":%" G_GUINT64_FORMAT
                           ",\"returns\":%" G_GUINT64_FORMAT
                           ",\"memory_waited_ns\":%" G_GUINT64_FORMAT ",\"kept\":%" G_GUINT64_FORMAT
                           ",\"missing\":%" G_GUINT64_FORMAT ",\"stuck\":%" G_GUINT64_FORMAT ",",
                           moves_promised(slice), moves_on_card(slice), moves_floor(slice),
                           moves_displaced(slice), slice->moves.moved[RESIDENCY_OUT],
                           slice->moves.moved[RESIDENCY_IN], slice->moves.returns,
                           moves_waited_ns(slice), slice->moves.kept, moves_missing(slice), stuck);
}

/* Of the host, where the arbiter runs. */
static void add_pids(GString *text, const struct slice *slice)
{
    const char *between = "";

    g_string_append(text, "\"pids\":[");
    for (guint i = 0; i < slice->connections->len; i++) {
        const struct connection *connection = g_ptr_array_index(slice->connections, i);

        if (!connection->joined)
            continue;
        g_string_append_printf(text, "%s%d", between, (int)peer_pid(connection->fd));
        between = ",";
    }
    g_string_append(text, "],");
}

/* Names of slices and GPUs need no escaping in JSON. */
static void add_slice(GString *text, const struct arbiter *arbiter, const struct slice *slice)
{
    const struct sched_slice *scheduled = slice->scheduled[GOVERNOR_CLASS_COMPUTE];
    const struct ledger *ledger = &slice->ledger;

    g_string_append_printf(text, "{\"id\":\"%s\",\"members\":%u,\"mode\":\"%s\",\"share_ppm\":%u,",
                           slice->id, slice_members(scheduled), mode_of(arbiter, scheduled),
                           share_of(scheduled));
    g_string_append_printf(
        text,
        "\"vram_used\":%" G_GUINT64_FORMAT ",\"vram_limit\":%" G_GUINT64_FORMAT
        ",\"vram_peak\":%" G_GUINT64_FORMAT ",\"vram_driver\":%" G_GUINT64_FORMAT
        ",\"vram_ungoverned\":%" G_GUINT64_FORMAT ",\"ungoverned_ns\":%" G_GUINT64_FORMAT
        ",\"spill_used\":%" G_GUINT64_FORMAT ",\"spill_limit\":%" G_GUINT64_FORMAT
        ",\"spill_kind\":\"%s\",",
        ledger->used, ledger->limit, slice->vram_peak, ledger->driver, ledger->ungoverned,
        slice->ungoverned_ns, ledger->spill_used, ledger->spill_limit, spill_kind(slice));
    g_string_append_printf(text,
                           "\"lead_ns\":%" G_GUINT64_FORMAT ",\"depth_ns\":%" G_GUINT64_FORMAT
                           ",\"since_ns\":%" G_GUINT64_FORMAT ",",
                           handover_lead(&scheduled->handover),
                           handover_depth(&scheduled->handover), slice->since_ns);
    add_moves(text, slice);
    add_pids(text, slice);
    add_time(text, slice);
}

char *status_text(struct arbiter *arbiter)
{
    const struct scheduler *computes = &arbiter->schedulers[GOVERNOR_CLASS_COMPUTE];
    GString *text = g_string_new(NULL);
    GHashTableIter iter;
    void *slice;
    const char *between = "";

    g_string_append_printf(
        text,
        "{\"gpu\":\"%s\",\"policy\":\"%s\",\"vram\":%" G_GUINT64_FORMAT
        ",\"settled\":%s,\"restarted_ns\":%" G_GUINT64_FORMAT
        ",\"handover_ns\":%.0f,\"least_lease_ns\":%" G_GUINT64_FORMAT ",\"slices\":[",
        arbiter->gpu, gpu_policy_name(arbiter->settings.policy), arbiter->settings.vram,
        arbiter->settled ? "true" : "false", arbiter->restarted_ns, computes->handover.mean_ns,
        gpu_handover_lease(&computes->handover, 0));
    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &slice)) {
        g_string_append(text, between);
        add_slice(text, arbiter, slice);
        between = ",";
    }
    g_string_append(text, "]}\n");
    return g_string_free(text, FALSE);
}

static char *rest_path(const struct arbiter *arbiter)
{
    return g_build_filename(arbiter->conf_dir, "rest", NULL);
}

void status_end(const struct arbiter *arbiter)
{
    g_autofree char *path = rest_path(arbiter);

    unlink(path);
}

/* Without the file clients ask more often, and that is all. */
void status_changed(const struct arbiter *arbiter)
{
    g_autofree char *path = NULL;
    int fd;

    status_end(arbiter);
    if (arbiter->members)
        return;
    path = rest_path(arbiter);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (dprintf(fd, "%" G_GUINT64_FORMAT "\n", clock_now()) < 0)
        unlink(path);
    close(fd);
}

/* What a client gets as it reads; nobody waits for it. */
struct answer {
    char *text;
    size_t at;
};

static void answer_free(void *data)
{
    struct answer *answer = data;

    g_free(answer->text);
    g_free(answer);
}

/* False: there is more, for which the socket has no room. */
static bool answer_send(struct answer *answer, int peer)
{
    size_t left = strlen(answer->text + answer->at);
    ssize_t sent = 0;

    while (left &&
           (sent = send(peer, answer->text + answer->at, left, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0) {
        answer->at += (size_t)sent;
        left -= (size_t)sent;
    }
    if (!left)
        return true;
    if (errno == EAGAIN || errno == EINTR)
        return false;
    g_message("cannot answer on status.sock: %s", g_strerror(errno));
    return true;
}

static int on_room(sd_event_source *source, int peer, uint32_t revents, void *data)
{
    (void)revents;
    if (!answer_send(data, peer))
        return 0;
    /* The event loop has the only reference, which this drops. */
    sd_event_source_set_floating(source, false);
    return 0;
}

/* Takes both. The source is the event loop's. */
static void answer_later(const struct arbiter *arbiter, struct answer *answer, int peer)
{
    sd_event_source *source = NULL;

    if (sd_event_add_io(arbiter->event, &source, peer, EPOLLOUT, on_room, answer) < 0) {
        g_message("cannot answer on status.sock: the answer is cut off");
        answer_free(answer);
        close(peer);
        return;
    }
    sd_event_source_set_io_fd_own(source, 1);
    sd_event_source_set_destroy_callback(source, answer_free);
    sd_event_source_set_floating(source, true);
    sd_event_source_unref(source);
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct arbiter *arbiter = data;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct answer *answer;
    int room = SEND_BUFFER;

    (void)source;
    (void)revents;
    if (peer < 0)
        return 0;
    turn_run(arbiter);
    answer = g_new0(struct answer, 1);
    answer->text = status_text(arbiter);
    setsockopt(peer, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    if (!answer_send(answer, peer)) {
        answer_later(arbiter, answer, peer);
        return 0;
    }
    answer_free(answer);
    close(peer);
    return 0;
}

bool status_listen(struct arbiter *arbiter)
{
    g_autofree char *path = g_build_filename(arbiter->conf_dir, "status.sock", NULL);
    int fd = listener_new(path, SOCK_STREAM, 0600, SETTINGS_OWNER_NONE);

    if (fd < 0)
        return false;
    if (sd_event_add_io(arbiter->event, &arbiter->status, fd, EPOLLIN, on_connect, arbiter) < 0)
        return false;
    sd_event_source_set_io_fd_own(arbiter->status, 1);
    if (sd_event_source_set_ratelimit(arbiter->status, G_USEC_PER_SEC, MOST_PER_S) < 0)
        g_message("status.sock: the number of clients a second has no limit");
    return true;
}
