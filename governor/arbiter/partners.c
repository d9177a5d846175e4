// SPDX-License-Identifier: MIT
/*
 * Slices of one program on several GPUs of this host (core/passes.c). While one of them waits, its
 * arbiter asks the others whether work of theirs is in flight, by datagrams between root's sockets.
 * An answer that is lost comes with the next question.
 */
#include "arbiter_state.h"
#include "clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET "partners.sock"

/* A pass comes 2 ms after the begin of the partner's work, at the earliest. */
#define ASK_NS (2 * NS_PER_MS)
/* How often arbiters are looked for, and asked that have not answered before. */
#define LIST_NS NS_PER_S
/* In a row, so that questions never keep the arbiter from its own slices. */
#define MOST_AT_ONCE 32

#define VERSION 1

enum kind { ASK, ANSWER };

/* @since: of an answer, as scheduler_in_flight_since(). @gpu: of the sender. */
struct message {
    uint32_t version;
    uint32_t kind;
    uint64_t since;
    uint32_t class;
    uint32_t reserved;
    char partners[SETTINGS_PARTNERS_MAX + 1];
    char gpu[63];
};

/* @answered_at: it has a slice that was asked for; 0: it has never said so. */
struct other {
    char *gpu;
    uint64_t answered_at;
};

/**
 * struct partners
 * @others: of struct other, as of @listed_at
 * @timer: armed while a slice asks
 */
struct partners {
    sd_event_source *io;
    sd_event_source *timer;
    char *path;
    int fd;
    bool asking;
    GPtrArray *others;
    uint64_t listed_at;
};

static void free_other(void *data)
{
    struct other *other = data;

    g_free(other->gpu);
    g_free(other);
}

static struct other *find_other(const struct partners *partners, const char *gpu)
{
    for (guint i = 0; i < partners->others->len; i++) {
        struct other *other = g_ptr_array_index(partners->others, i);

        if (g_str_equal(other->gpu, gpu))
            return other;
    }
    return NULL;
}

static void list_others(struct arbiter *arbiter, uint64_t now)
{
    struct partners *partners = arbiter->partners;
    g_autofree char *path = g_path_get_dirname(arbiter->conf_dir);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    partners->listed_at = now;
    g_ptr_array_set_size(partners->others, 0);
    while (dir && (name = g_dir_read_name(dir))) {
        struct other *other;

        if (g_str_equal(name, arbiter->gpu) ||
            strlen(name) >= sizeof(((struct message *)NULL)->gpu))
            continue;
        other = g_new0(struct other, 1);
        other->gpu = g_strdup(name);
        g_ptr_array_add(partners->others, other);
    }
}

/* It may just have ended: then there is nothing to wait for. */
static void send_to(const struct arbiter *arbiter, const char *gpu, const struct message *message)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *dir = g_path_get_dirname(arbiter->conf_dir);

    if (g_snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s/" SOCKET, dir, gpu) >=
        (int)sizeof(address.sun_path))
        return;
    sendto(arbiter->partners->fd, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL,
           (struct sockaddr *)&address, sizeof(address));
}

static struct message message_new(const struct arbiter *arbiter, enum kind kind, unsigned class,
                                  const char *partners)
{
    struct message message = {.version = VERSION, .kind = kind, .class = class};

    g_strlcpy(message.partners, partners, sizeof(message.partners));
    g_strlcpy(message.gpu, arbiter->gpu, sizeof(message.gpu));
    return message;
}

static void ask_for(struct arbiter *arbiter, const struct slice *slice, unsigned class, bool all)
{
    const struct message message =
        message_new(arbiter, ASK, class, slice->scheduled[class]->settings.partners);

    for (guint i = 0; i < arbiter->partners->others->len; i++) {
        const struct other *other = g_ptr_array_index(arbiter->partners->others, i);

        if (all || other->answered_at)
            send_to(arbiter, other->gpu, &message);
    }
}

/*
 * Returns the classes in which a slice asks, as bits. What was known before this question is
 * replaced by what was heard since.
 */
static unsigned ask_round(struct arbiter *arbiter, bool all)
{
    unsigned classes = 0;
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct slice *slice = value;

        for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
            bool asks = slice->scheduled[i]->asks_partners;

            slice->scheduled[i]->partner_since = asks ? slice->partner_heard[i] : 0;
            slice->partner_heard[i] = 0;
            if (!asks)
                continue;
            ask_for(arbiter, slice, i, all);
            classes |= 1u << i;
        }
    }
    return classes;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *data)
{
    struct arbiter *arbiter = data;
    struct partners *partners = arbiter->partners;
    uint64_t now = clock_now();
    bool all = now >= partners->listed_at + LIST_NS;
    unsigned classes;

    (void)usec;
    if (all)
        list_others(arbiter, now);
    classes = ask_round(arbiter, all);
    partners->asking = classes != 0;
    if (classes) {
        /* Whoever has stopped waiting may not have said so. */
        turn_ask(arbiter, classes);
        sd_event_source_set_time(source, (now + ASK_NS) / NS_PER_US);
        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    }
    return 0;
}

void partners_ask(struct arbiter *arbiter)
{
    if (!arbiter->partners || arbiter->partners->asking)
        return;
    arbiter->partners->asking = true;
    sd_event_source_set_time(arbiter->partners->timer, 0);
    sd_event_source_set_enabled(arbiter->partners->timer, SD_EVENT_ONESHOT);
}

static bool is_partner(const struct slice *slice, const struct message *message)
{
    return g_str_equal(slice->scheduled[0]->settings.partners, message->partners);
}

static void send_answer(struct arbiter *arbiter, const struct message *asked)
{
    struct message message = message_new(arbiter, ANSWER, asked->class, asked->partners);
    uint64_t now = clock_now();
    bool any = false;
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct slice *slice = value;
        uint64_t since;

        if (!is_partner(slice, asked))
            continue;
        any = true;
        since = scheduler_in_flight_since(slice->scheduled[asked->class], now);
        if (since && (!message.since || since < message.since))
            message.since = since;
    }
    if (any)
        send_to(arbiter, asked->gpu, &message);
}

static void hear_partner(struct arbiter *arbiter, const struct message *message)
{
    struct other *other = find_other(arbiter->partners, message->gpu);
    uint64_t since = MIN(message->since, clock_now());
    GHashTableIter iter;
    void *value;

    if (other)
        other->answered_at = clock_now();
    g_hash_table_iter_init(&iter, arbiter->slices);
    while (since && g_hash_table_iter_next(&iter, NULL, &value)) {
        struct slice *slice = value;
        struct sched_slice *scheduled = slice->scheduled[message->class];
        uint64_t *heard = &slice->partner_heard[message->class];

        if (!scheduled->asks_partners || !is_partner(slice, message))
            continue;
        *heard = *heard ? MIN(*heard, since) : since;
        scheduled->partner_since = *heard;
        turn_ask(arbiter, 1u << message->class);
    }
}

static bool is_valid(const struct message *message, ssize_t length)
{
    return length == sizeof(*message) && message->version == VERSION &&
           message->class < GOVERNOR_CLASSES && *message->partners &&
           memchr(message->partners, 0, sizeof(message->partners)) &&
           memchr(message->gpu, 0, sizeof(message->gpu)) && !strchr(message->gpu, '/');
}

static int on_message(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct message message;

    (void)source;
    (void)revents;
    for (unsigned i = 0; i < MOST_AT_ONCE; i++) {
        ssize_t length = recv(fd, &message, sizeof(message), MSG_DONTWAIT);

        if (length < 0)
            break;
        if (!is_valid(&message, length))
            continue;
        if (message.kind == ASK)
            send_answer(data, &message);
        else if (message.kind == ANSWER)
            hear_partner(data, &message);
    }
    return 0;
}

bool partners_listen(struct arbiter *arbiter)
{
    g_autofree char *path = g_build_filename(arbiter->conf_dir, SOCKET, NULL);
    struct partners *partners;
    int fd;

    if (g_mkdir_with_parents(arbiter->conf_dir, 0755) < 0) {
        g_message("%s: cannot make the directory: %s", arbiter->conf_dir, g_strerror(errno));
        return false;
    }
    fd = listener_new(path, SOCK_DGRAM, 0600, SETTINGS_OWNER_NONE);
    if (fd < 0)
        return false;
    partners = arbiter->partners = g_new0(struct partners, 1);
    partners->fd = fd;
    partners->path = g_steal_pointer(&path);
    partners->others = g_ptr_array_new_with_free_func(free_other);
    if (sd_event_add_io(arbiter->event, &partners->io, fd, EPOLLIN, on_message, arbiter) < 0 ||
        sd_event_add_time(arbiter->event, &partners->timer, CLOCK_MONOTONIC, 0, 1, on_timer,
                          arbiter) < 0)
        return false;
    sd_event_source_set_enabled(partners->timer, SD_EVENT_OFF);
    return true;
}

void partners_end(struct arbiter *arbiter)
{
    struct partners *partners = arbiter->partners;

    if (!partners)
        return;
    sd_event_source_disable_unref(partners->io);
    sd_event_source_disable_unref(partners->timer);
    g_ptr_array_free(partners->others, TRUE);
    unlink(partners->path);
    g_free(partners->path);
    close(partners->fd);
    g_free(partners);
    arbiter->partners = NULL;
}
