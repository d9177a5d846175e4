/* SPDX-License-Identifier: MIT */
/*
 * What members can do to an arbiter: any bytes on their sockets, any words on their pages, and ends
 * at any time, in any order. An input is steps of three bytes and what they say follows.
 */
#include "arbiter.h"
#include "connection.h"
#include "moves.h"
#include "slice.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS 4

struct peer {
    struct connection *connection;
    int fd;
    uint64_t *usage;
};

struct run {
    struct arbiter arbiter;
    struct slice *slices[2];
    struct peer peers[PEERS];
};

static GLogWriterOutput say_nothing(GLogLevelFlags level, const GLogField *fields, gsize count,
                                    gpointer data)
{
    (void)level;
    (void)fields;
    (void)count;
    (void)data;
    return G_LOG_WRITER_HANDLED;
}

static void close_peer(struct peer *peer)
{
    if (!peer->connection)
        return;
    if (peer->usage)
        munmap(peer->usage, 4096);
    connection_free(peer->connection);
    close(peer->fd);
    *peer = (struct peer){0};
}

static void open_peer(struct run *run, struct peer *peer, struct slice *slice)
{
    int fds[2];

    close_peer(peer);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        abort();
    peer->fd = fds[0];
    peer->connection = connection_new(slice, fds[1]);
    if (!peer->connection)
        abort();
    (void)run;
}

/* Answers are read, and the page that comes with one is mapped. */
static void read_answers(struct peer *peer)
{
    char data[64];
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec vector = {.iov_base = data, .iov_len = sizeof(data)};
    struct msghdr packet = {.msg_iov = &vector, .msg_iovlen = 1};
    int fds[2];

    for (;;) {
        packet.msg_control = &control;
        packet.msg_controllen = sizeof(control);
        if (recvmsg(peer->fd, &packet, MSG_CMSG_CLOEXEC) <= 0)
            return;
        if (!packet.msg_controllen)
            continue;
        memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&packet)), sizeof(fds));
        peer->usage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
        close(fds[0]);
        close(fds[1]);
    }
}

static void send_message(struct run *run, struct peer *peer, const uint8_t *data, size_t size)
{
    if (!peer->connection)
        return;
    if (!connection_message(peer->connection, data, size))
        close_peer(peer);
    else
        read_answers(peer);
    /* As when the event loop gets to it. */
    turn_run(&run->arbiter);
    moves_run(&run->arbiter);
}

/* Most of a message's bytes are zeros, as in most messages. */
static void send_short(struct run *run, struct peer *peer, uint8_t type, uint8_t value)
{
    struct governor_message message = {.version = GOVERNOR_PROTOCOL_VERSION,
                                       .type = type,
                                       .value = value & 0x80 ? UINT64_MAX >> (value & 63) : value,
                                       .other = value & 1,
                                       .object = {.inode = value & 6}};

    send_message(run, peer, (const uint8_t *)&message, sizeof(message));
}

static size_t step(struct run *run, const uint8_t *data, size_t size)
{
    struct peer *peer = &run->peers[data[0] % PEERS];
    struct slice_settings settings = {.weight = 1u + data[2], .owner = SETTINGS_OWNER_NONE};
    uint64_t word = 0;
    size_t length;

    switch (data[0] / PEERS % 8) {
    case 0:
        open_peer(run, peer, run->slices[data[1] % 2]);
        send_short(run, peer, GOVERNOR_JOIN, data[2]);
        return 3;
    case 1:
        close_peer(peer);
        return 3;
    case 2:
        length = MIN((size_t)data[1] % (sizeof(struct governor_message) + 2), size - 3);
        send_message(run, peer, data + 3, length);
        return 3 + length;
    case 3:
        length = MIN(sizeof(word), size - 3);
        memcpy(&word, data + 3, length);
        if (peer->usage)
            peer->usage[data[1] % (sizeof(struct governor_usage) / sizeof(word))] = word;
        return 3 + length;
    case 4:
        settings.cap = data[1] % 100;
        settings.hard = data[1] & 1;
        settings.priority = data[2] % 16;
        settings.vram = data[1] * 16;
        settings.spill = data[2];
        settings.resident = data[2] * 4;
        slice_change(run->slices[data[1] % 2], &settings);
        return 3;
    case 5:
        for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
            run->arbiter.schedulers[i].policy = data[1] % 4;
        turn_run(&run->arbiter);
        return 3;
    default:
        send_short(run, peer, data[1] % (GOVERNOR_VAULT_RETURN + 2), data[2]);
        return 3;
    }
}

static gboolean add_object(void *name, void *value, void *data)
{
    const struct ledger_object *object = value;
    struct holding *sum = data;

    (void)name;
    sum->device += object->device;
    sum->spilled += object->spilled;
    if (!object->members)
        abort();
    return FALSE;
}

/* What a slice is counted for on the card is no more than it may have, whatever was said. */
static uint64_t check_moves(const struct slice *slice)
{
    const struct residency_slice *residency = slice->moves.residency;
    uint64_t on_card = residency->fixed + slice->moves.claim.resident;

    for (guint i = 0; i < slice->connections->len; i++) {
        const struct connection *connection = g_ptr_array_index(slice->connections, i);
        const struct residency_member *member = &connection->moves.residency;

        on_card += member->resident + member->granted;
        if (member->resident + member->out + member->wanted + connection->moves.unbelieved !=
            connection->holding.device)
            abort();
    }
    if (on_card + slice->moves.claim.granted != residency->on_card)
        abort();
    return MAX(residency->on_card, residency->settings.promised) - residency->settings.promised;
}

static void check(const struct run *run)
{
    uint64_t lent = 0;

    for (unsigned i = 0; i < 2; i++) {
        const struct slice *slice = run->slices[i];
        struct holding sum = {0};

        if (slice->ledger.objects)
            g_tree_foreach(slice->ledger.objects, add_object, &sum);
        for (guint j = 0; j < slice->connections->len; j++) {
            const struct connection *connection = g_ptr_array_index(slice->connections, j);

            sum.device += connection->holding.device + connection->holding.driver;
            sum.spilled += connection->holding.spilled;
        }
        if (sum.device != slice->ledger.used || sum.spilled != slice->ledger.spill_used)
            abort();
        lent += check_moves(slice);
    }
    if (lent != run->arbiter.moves.residency.lent)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sd_event *event;
    static char root[] = "/tmp/governor-fuzz-XXXXXX";
    const struct slice_settings settings = {.weight = 100, .owner = SETTINGS_OWNER_NONE};
    struct run run = {0};
    g_autofree char *status = NULL;

    if (!event) {
        g_log_set_writer_func(say_nothing, NULL, NULL);
        if (!mkdtemp(root) || sd_event_new(&event) < 0)
            abort();
    }
    arbiter_init(&run.arbiter, event, root, "gpu");
    for (unsigned i = 0; i < 2; i++) {
        run.slices[i] = slice_new(&run.arbiter, i ? "b" : "a", &settings);
        g_hash_table_insert(run.arbiter.slices, run.slices[i]->id, run.slices[i]);
    }
    run.arbiter.settled = true;
    run.arbiter.settings.capacity = 1000;
    moves_set_capacity(&run.arbiter);
    while (size >= 3) {
        size_t used = step(&run, data, size);

        check(&run);
        data += used;
        size -= used;
    }
    status = status_text(&run.arbiter);
    for (unsigned i = 0; i < PEERS; i++)
        close_peer(&run.peers[i]);
    arbiter_clear(&run.arbiter);
    return 0;
}
