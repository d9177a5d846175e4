/* SPDX-License-Identifier: MIT */
/* State that the files of the arbiter share, and the functions of those without a header. */
#ifndef GOVERNOR_ARBITER_STATE_H
#define GOVERNOR_ARBITER_STATE_H

#include "kept.h"
#include "ledger.h"
#include "pages.h"
#include "residency.h"
#include "rights.h"
#include "scheduler.h"

#include <glib.h>
#include <systemd/sd-event.h>

/* Limit of a slice's members; the next one is refused. */
#define SLICE_MAX_MEMBERS 512

/**
 * struct rate_limit - of a slice
 * @tokens: one turn may overdraw them
 * @refill: set while sockets are not read
 */
struct rate_limit {
    struct budget tokens;
    sd_event_source *refill;
};

/**
 * struct moves - of a GPU
 * @on: its capacity was known at some time; until then @residency has no slices
 * @look: once in a turn of the event loop; @timer: for turns, and for whoever waits
 * @judged_at: when a new reading was last looked for
 */
struct moves {
    struct residency residency;
    struct readings readings;
    uint64_t judged_at;
    bool on;
    sd_event_source *look;
    sd_event_source *timer;
};

/**
 * struct moves_member - a connection's part
 * @residency: its slice is NULL while moves.on is false
 * @unbelieved: of what it declared, more than its slice may have
 * @gave, @took: sums of what it said
 * @work: sum of its counters of submissions at the last look
 * @room_until: a RESERVE waits until then; 0: none does
 * @waits_since: it has waited for memory since then; 0: it does not
 * @copies_asked_at: when it was last told to copy ahead; 0: never
 * @account: what is found out about it (kept.h)
 */
struct moves_member {
    struct residency_member residency;
    uint64_t unbelieved;
    uint64_t gave;
    uint64_t took;
    uint64_t work;
    uint64_t room_until;
    uint64_t waits_since;
    uint64_t copies_asked_at;
    struct kept_account account;
};

/**
 * struct moves_slice
 * @claim: waits for what of the promise others have
 * @moved: bytes, each way; @returns: how often a member came home
 * @waited_ns: of all its members that do not wait any more
 * @stuck: how often, by reason
 * @kept: bytes that its members said they gave, and have
 */
struct moves_slice {
    struct residency_slice *residency;
    struct residency_member claim;
    uint64_t moved[RESIDENCY_WAYS];
    uint64_t returns;
    uint64_t waited_ns;
    uint64_t stuck[GOVERNOR_STUCK_REASONS];
    uint64_t kept;
};

struct connection;

/**
 * struct vault_link - to vgpu-vault
 * @fd: -1: not connected
 * @asked: who waits for an answer, by ticket
 * @unsent: requests for which the socket had no room, in their order: a piece that was returned may
 * be what the next one needs
 * @tell: tells a connection, as connection_vaulted()
 */
struct vault_link {
    char *path;
    int fd;
    sd_event_source *io;
    uint64_t tickets;
    GHashTable *asked;
    GQueue *unsent;
    bool (*tell)(struct connection *connection, int error, uint64_t number, int memory);
};

/**
 * struct connection - a member's
 * @pidfd: reports its death even if a child has inherited the socket
 * @version: of the protocol, as in its messages; 0: it has sent none
 * @takes_rights: the kernel does not refuse descriptors that it sends
 * @joined: has been welcomed; @members (by class), @pages, @holding and @moves are valid
 * @returned: bytes of device memory that it has RELEASEd
 * @vault_ticket: of the piece of the vault that it waits for; 0: it does not
 * @postponed: a RESERVE or ATTACH that came before all holders of memory had the time to declare it
 */
struct connection {
    struct slice *slice;
    int fd;
    int pidfd;
    uint32_t version;
    sd_event_source *io;
    sd_event_source *death;
    bool takes_rights;
    bool joined;
    bool has_postponed;
    struct governor_message postponed;
    struct sched_member members[GOVERNOR_CLASSES];
    struct pages pages;
    struct holding holding;
    struct moves_member moves;
    uint64_t vault_ticket;
    uint64_t returned;
};

/**
 * struct slice
 * @number: only tells slices apart; is sent to the members
 * @since_ns: when this arbiter began to know it, of CLOCK_BOOTTIME
 * @vram_peak: the most device memory that it has had at one time, bytes, since this arbiter started
 * @ungoverned: as the agent said last; @ungoverned_ns: GPU time of that kind since this arbiter
 * started
 * @scheduled: the state of each class's scheduler of it
 * @connections: of struct connection
 * @limit: of the work that they may cause the arbiter
 * @partner_heard: what its partners have said since its arbiter asked last, as
 * sched_slice.partner_since
 * @told_of_version: the log already has that a member of another version tried to join; it retries
 * again and again
 */
struct slice {
    struct arbiter *arbiter;
    char *id;
    char *socket_path;
    uint64_t number;
    int fd;
    sd_event_source *io;
    struct sched_slice *scheduled[GOVERNOR_CLASSES];
    struct ledger ledger;
    struct moves_slice moves;
    uint64_t since_ns;
    uint64_t vram_peak;
    struct slice_ungoverned ungoverned;
    uint64_t ungoverned_ns;
    GPtrArray *connections;
    struct rate_limit limit;
    uint64_t partner_heard[GOVERNOR_CLASSES];
    bool told_of_version;
};

/**
 * struct arbiter - of a GPU
 * @conf_dir: …/run/vgpu/governor/<gpu>; @slices_dir: …/run/vgpu/slices
 * @next: when each class's scheduler is to be called again
 * @asked: bits of the classes that @look is for
 * @moves: whose memory is on the card
 * @slices: of struct slice, by id
 * @members: connections of all slices that have joined
 * @look: once in a turn of the event loop, however many have asked for it
 * @partners: the other arbiters of this host
 * @vault: where displaced memory is
 * @rights: what members send along and nobody wants
 * @settled: members of a previous arbiter have had the time to reconnect and declare what they hold
 * @restarted_ns: when it found that there was one, of CLOCK_BOOTTIME; 0: there was none
 */
struct arbiter {
    sd_event *event;
    char *gpu;
    char *conf_dir;
    char *slices_dir;
    struct gpu_settings settings;
    struct scheduler schedulers[GOVERNOR_CLASSES];
    uint64_t next[GOVERNOR_CLASSES];
    unsigned asked;
    struct moves moves;
    GHashTable *slices;
    uint64_t next_number;
    unsigned members;
    bool settled;
    uint64_t restarted_ns;
    sd_event_source *settle_timer;
    sd_event_source *timer;
    sd_event_source *look;
    sd_event_source *gpu_inotify;
    sd_event_source *slices_inotify;
    sd_event_source *status;
    struct partners *partners;
    struct vault_link vault;
    struct rights rights;
};

#define ARBITER_ALL_CLASSES ((1u << GOVERNOR_CLASSES) - 1)

/* listener.c: a socket at @path; an existing one is replaced. Logs and returns -1 on failure. */
int listener_new(const char *path, int type, mode_t mode, uint32_t owner);

/* peer.c: the process that has connected. The descriptor is -1 if it is not known any more. */
pid_t peer_pid(int fd);
int peer_pidfd(int fd);

/*
 * turn_ask.c: the schedulers of some @classes, bits by number, run after everything that has
 * happened by now is handled. To be called after every event.
 */
void turn_ask(struct arbiter *arbiter, unsigned classes);

/* publish.c: tells the members of a slice how many they are, and which engines they may use. */
void publish_members(struct slice *slice);
void publish_engines(struct slice *slice);
/* Notes the peak of its memory, and tells the numbers. */
void publish_memory(struct slice *slice);

/* partners.c: hears the arbiters of other GPUs. Logs and returns false on failure. */
bool partners_listen(struct arbiter *arbiter);
/* A slice has begun to ask: its partners are asked as long as any slice does. */
void partners_ask(struct arbiter *arbiter);
void partners_end(struct arbiter *arbiter);

/* turn.c: runs the schedulers of all classes, tells members what changed, and sets the timer. */
void turn_run(struct arbiter *arbiter);
/* Runs them when it is their time, and when somebody has asked for it. */
void turn_init(struct arbiter *arbiter);

/* status.c: answers clients of status.sock. Logs and returns false on failure. */
bool status_listen(struct arbiter *arbiter);
/* The answer. */
char *status_text(struct arbiter *arbiter);
/*
 * To be called when a member has joined or left, or a slice was made, changed or removed: the file
 * "rest" then tells clients whether the answer stays as it is.
 */
void status_changed(const struct arbiter *arbiter);
/* The arbiter ends. */
void status_end(const struct arbiter *arbiter);

/*
 * settle.c: the socket of a previous arbiter was found: memory is granted when its members are
 * back.
 */
void settle_begin(struct arbiter *arbiter);

#endif
