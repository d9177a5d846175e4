/* SPDX-License-Identifier: MIT */
/*
 * State that the files of the member library share.
 *
 * Both pages stay at one address for the member's life. Before it is welcomed, and in a child after
 * fork(), they are its own memory; a welcome replaces them with the arbiter's in one step. So
 * reading them needs no lock.
 */
#ifndef GOVERNOR_MEMBER_STATE_H
#define GOVERNOR_MEMBER_STATE_H

#include "backlog.h"
#include "budget.h"
#include "clock.h"
#include "coverage.h"
#include "governor_protocol.h"
#include "member.h"
#include "silence.h"

#include <pthread.h>
#include <sys/types.h>

#define PAGE_BYTES 4096

/* In GovernorMember.fork_word, which reads 0 in a child. */
enum { FORK_CHILD = 0, FORK_BUSY, FORK_NONE };

enum link_state {
    LINK_NEVER,  /* no arbiter so far: ungoverned */
    LINK_JOINED, /* connected and welcomed */
    LINK_ORPHAN, /* was welcomed; the arbiter is gone */
};

/* How often the thread looks whether what is kept is used. */
#define SPARE_LOOK_MS 10

/* Queues whose numbers differ by a multiple of this are one. */
#define LANE_QUEUES 16

/**
 * struct lane_queue - work of one queue of the process
 * @in_flight_ns, @in_flight: debited and not ended, without deferred work
 * @stalled_ns, @stalled: the part of them that was in flight at the last stall
 * @runs_since_ns: when its oldest work may have begun: something was submitted that found nothing
 * in flight, or the last work ended
 */
struct lane_queue {
    uint64_t in_flight_ns;
    uint32_t in_flight;
    uint32_t stalled;
    uint64_t stalled_ns;
    uint64_t runs_since_ns;
};

/**
 * struct lane - a member's work of one class
 * @grant, @usage: the class's words on the pages
 * @in_flight_ns, @in_flight, @stalled: of all @queues; @deferred_ns, @deferred: deferred work that
 * has not begun
 * @stalls: number of stalls; identifies a debit from before
 * @wanted: the grant's sequence when the arbiter was last told that a lease is wanted; @came: the
 * same when a lease that was waited for was last used
 * @waiting: threads that wait for a lease; @waiting_beside: those not behind the work in flight
 * @passes_seen: as many of the grant's passes are used, or not needed: they came before a thread
 * waited, or what was late has ended; @passes: how many were used
 * @silence: whether to report that nothing is in flight
 * @spans: how many were written; @ran: the time of the last ones
 * @backlog: what was submitted without a measure; @marker_due: its due, read without the lock;
 * @epoch: how often its numbers have begun again
 * @budget: of GPU time, without an arbiter
 */
struct lane {
    struct governor_class_grant *grant;
    struct governor_class_usage *usage;
    uint64_t gpu_ns;
    uint64_t in_flight_ns;
    uint32_t in_flight;
    uint32_t stalled;
    uint64_t deferred_ns;
    uint32_t deferred;
    uint32_t waiting;
    uint32_t waiting_beside;
    uint32_t passes_seen;
    _Atomic uint32_t passes;
    struct silence silence;
    uint64_t began_at_ns;
    uint64_t ended_at_ns;
    uint64_t waited_ns;
    uint64_t throttled_ns;
    uint32_t stalls;
    uint32_t wanted;
    uint32_t came;
    struct lane_queue queues[LANE_QUEUES];
    uint64_t spans;
    struct coverage ran;
    struct backlog backlog;
    _Atomic uint64_t marker_due;
    uint64_t epoch;
    struct budget budget;
};

/**
 * struct vault_ask - a thread waits for a piece of the vault
 * @answer, @fd: once it @came; -1: no descriptor came with it
 */
struct vault_ask {
    bool came;
    struct governor_message answer;
    int fd;
};

/**
 * struct GovernorMember
 * @fork_word: on a page that is wiped on fork
 *
 * @link_lock: over the connection, @held and @objects; taken before @lock
 * @fd: keeps its number from the first welcome on; -1 before
 * @stop_fd: a socket; shutting it down ends the link's thread, and a message of @wake_fd, its peer,
 * wakes it
 * @clock_offset: how far the arbiter's CLOCK_MONOTONIC is ahead of this process's
 * @fd_inode, @stop_inode, @wake_inode: of the three: in a child, their numbers may be of other
 * files by now
 * @link: changes under @link_lock; @link_changed signals it
 * @lost_at: when the arbiter was lost; @said_late: somebody was told that it does not answer
 * @held, @held_spilled: bytes charged, without those of @objects
 * @returned: as in @usage; @spare: the part of it that is kept, see spare.c; @spare_uses counts
 * changes, @spare_seen is that at the last look; @spare_watched: the thread looks again and again
 * @driver: bytes that the driver uses for itself
 * @told_back: something was returned since the arbiter's last answer
 * @objects: shared ones, and those that an arbiter with room would share
 * @orphan_room, @orphan_spill: the rest of what may be charged without an arbiter
 * @awaits_room: a RESERVE waits until others have made room
 * @vault_ask: of the thread that waits for the vault; NULL: none does
 * @movable: the door can move memory; @displaced: how much is; @unmovable: how much cannot be
 * @freed_displaced: the part of @displaced that is released next
 * @asks: a thread waits for displaced memory
 * @connections: how many there were; @gave, @took: said over this one
 *
 * @lock: over what follows, and over writing @usage (except submissions, which are atomic)
 * @pages: the driver pages device memory by itself
 * @progress: a futex that changes when something ended or the link changed; @watchers: threads that
 * wait on it
 */
struct GovernorMember {
    struct governor_grant *grant;
    struct governor_usage *usage;
    _Atomic uint32_t *fork_word;
    char *socket_path;

    pthread_mutex_t link_lock;
    pthread_cond_t link_changed;
    pthread_t thread;
    _Atomic int fd;
    int stop_fd;
    int wake_fd;
    _Atomic int64_t clock_offset;
    _Atomic ino_t fd_inode;
    ino_t stop_inode;
    ino_t wake_inode;
    _Atomic enum link_state link;
    uint64_t lost_at;
    bool said_late;
    uint64_t held;
    uint64_t held_spilled;
    uint64_t spare;
    uint64_t returned;
    uint64_t spare_uses;
    uint64_t spare_seen;
    bool spare_watched;
    uint64_t driver;
    bool told_back;
    struct governor_object *objects;
    uint64_t orphan_room;
    uint64_t orphan_spill;
    bool awaits_room;
    struct vault_ask *vault_ask;
    bool movable;
    _Atomic bool asks;
    _Atomic uint64_t displaced;
    uint64_t unmovable;
    uint64_t freed_displaced;
    uint64_t connections;
    uint64_t gave;
    uint64_t took;

    pthread_mutex_t lock;
    struct lane lanes[GOVERNOR_CLASSES];
    bool pages;
    _Atomic uint32_t progress;
    _Atomic uint32_t watchers;
};

/* state.c */
bool state_init(GovernorMember *member);
void state_clear(GovernorMember *member);
/* In a child: new locks and counters, and pages of its own with the arbiter's last content. */
bool state_renew(GovernorMember *member);

/* How long an arbiter that is not very late may take to let a member in. */
#define JOIN_NS (2 * NS_PER_S)

/*
 * link.c: joins; 0, or an errno. ETIMEDOUT: the arbiter is there, and has not answered until
 * @until_ns; it has refused nothing. Under link_lock.
 */
int link_join(GovernorMember *member, uint64_t until_ns);
/* The thread that notices the end of the arbiter, and rejoins. False: errno. */
bool link_start(GovernorMember *member);
void link_stop(GovernorMember *member);
/* In a child: closes what was inherited. */
void link_forget(GovernorMember *member);
/* There is no arbiter: its last values apply. */
void link_lost(GovernorMember *member);

static inline struct governor_message message_of(enum governor_message_type type, uint64_t value,
                                                 uint64_t other)
{
    return (struct governor_message){
        .version = GOVERNOR_PROTOCOL_VERSION, .type = type, .value = value, .other = other};
}

/* messages.c: the link's thread calls spare_look() soon. False: it cannot be woken. */
bool link_wake(GovernorMember *member);
/* Never waits; a hint that finds no room is lost. */
void link_tell(GovernorMember *member, enum governor_message_type type, uint64_t value,
               uint64_t other);
/* Returned memory is reported to the arbiter now, or at the next join. Under link_lock. */
void link_tell_back(GovernorMember *member, const struct governor_message *message);
/*
 * Waits for the answer to @request. False: none came, and the connection is broken. Under
 * link_lock.
 */
bool link_ask(GovernorMember *member, const struct governor_message *request,
              struct governor_message *answer);
/*
 * The descriptor of a piece of the vault and its number; -1: there is none. Under link_lock, which
 * is released while it waits.
 */
int link_ask_vault(GovernorMember *member, uint64_t bytes, uint64_t *number);
/* The connection is unusable: the thread sees its end. */
void link_break(GovernorMember *member);

/*
 * object.c: declares them to an arbiter that has just welcomed the member. False: as link_ask().
 * Under link_lock.
 */
bool objects_declare(GovernorMember *member);
/* Bytes of all objects that are of @kind. Under link_lock. */
uint64_t objects_bytes(const GovernorMember *member, enum governor_memory kind);

/* memory.c: reports the driver's own memory. Under link_lock. */
void memory_tell_driver(GovernorMember *member);

/* memory.c, for object.c; under link_lock. */
/* Asks until there is an answer. False: no arbiter has returned in time. */
bool memory_ask(GovernorMember *member, const struct governor_message *request,
                struct governor_message *answer);
/* As the arbiter says, maybe after others have made room; without one, of what is left for that. */
enum governor_memory memory_take(GovernorMember *member, uint64_t bytes, bool may_spill);
/* Counts @bytes as not held any more; returns how many of them were. */
uint64_t memory_uncharge(GovernorMember *member, uint64_t bytes, enum governor_memory kind);
/* Tells the arbiter, if there is one, that @bytes that are not counted any more are free. */
void memory_freed(GovernorMember *member, uint64_t bytes, enum governor_memory kind);

/* moving.c; both under link_lock. */
/* After a welcome: what moves begins again with what is where. */
void moving_declare(GovernorMember *member);
/* Tells the arbiter of the part of @bytes that was displaced; returns the rest. */
uint64_t moving_release(GovernorMember *member, uint64_t bytes);

/* spare.c; all but spare_look() under link_lock. */
/* So much more is returned, or less. Before a RELEASE of it. */
void spare_returned(GovernorMember *member, int64_t bytes);
/* Keeps @bytes that are not counted any more. False: they have to be reported. */
bool spare_keep(GovernorMember *member, uint64_t bytes, enum governor_memory kind);
/* Takes @bytes of what is kept. False: it is not enough. */
bool spare_take(GovernorMember *member, uint64_t bytes);
/* Reports all that is kept to the arbiter. */
void spare_report(GovernorMember *member);
/* Of the thread, now and then: reports it if nothing has changed since. False: until it is woken.
 */
bool spare_look(GovernorMember *member);
/* The arbiter that it was charged by is gone. */
void spare_forget(GovernorMember *member);

/* say.c: a sentence for whoever looks after the host, see governor_member_set_log(). */
void member_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fork.c: makes a child a member of its own. */
void fork_renew(GovernorMember *member);

static inline void fork_check(const GovernorMember *member)
{
    uint32_t word = atomic_load_explicit(member->fork_word, memory_order_acquire);

    if (__builtin_expect(word != FORK_NONE, 0))
        fork_renew((GovernorMember *)member);
}

/* The time by the arbiter's clock, which all times on the pages and their copies here use. */
static inline uint64_t member_now(const GovernorMember *member)
{
    return clock_now() +
           (uint64_t)atomic_load_explicit(&member->clock_offset, memory_order_relaxed);
}

/* marker.c: the count of free submissions begins again. Under lock. */
void marker_restart(struct lane *lane);

/* turn.c: tells threads that wait to look again. */
void turn_progress(GovernorMember *member);
/* GPU time that counts against the lease's limit, as the arbiter counts it (sample_spent()). */
uint64_t turn_spent(const struct lane *lane, uint64_t now);
/* Until there is progress, or for so long. Under lock, which is released meanwhile. */
void turn_sleep(GovernorMember *member, uint64_t most_ns);
/*
 * Waits for the turn of @work. Under lock, which is released meanwhile. @now: the time, which goes
 * on. True: turn_taken() is to be called when the submission has been debited, so that the arbiter
 * always sees one of the two.
 */
bool turn_wait(GovernorMember *member, struct lane *lane, struct governor_work *work,
               uint64_t *now);
/* True if other threads still wait: turn_pass_on() is to be called, best without the lock. */
bool turn_taken(struct lane *lane, const struct governor_work *work);
/* The threads that wait, as struct governor_class_usage has them. */
uint64_t turn_waiting(const struct lane *lane);
/* The arbiter wakes one thread, and each thread wakes the next after its turn. */
void turn_pass_on(struct lane *lane);

/*
 * futex.c: @timeout_ns: TIME_NEVER: none. Returns on a wake-up, a signal, or if @word is not
 * @value.
 */
void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void futex_wake(_Atomic uint32_t *word);
void futex_wake_one(_Atomic uint32_t *word);

#endif
