// SPDX-License-Identifier: MIT
#include "moves.h"

#include "clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the link, until it has been measured: PCIe 4.0 with 16 lanes. */
#define LINK_RATE 25e9
/* A turn may be a minute, and a program should not fail for want of patience before the next. */
#define ROOM_WAIT_NS (150 * NS_PER_S)
/* Others need no longer to give back what is promised to the slice. */
#define PROMISE_WAIT_NS (10 * NS_PER_S)
/* Nobody tells the arbiter when a member has become idle. */
#define LOOK_WAITED_NS (20 * NS_PER_MS)
#define LOOK_LENT_NS   NS_PER_S
/* No card has more. All that slices say they have is less than the second. */
#define BYTES_MAX (1ull << 52)
#define ANYTHING  (1ull << 62)

static struct moves *moves_of(const struct connection *connection)
{
    return &connection->slice->arbiter->moves;
}

static struct connection *connection_at(const struct slice *slice, guint i)
{
    return g_ptr_array_index(slice->connections, i);
}

static const struct slice_settings *settings_of(const struct slice *slice)
{
    return &slice->scheduled[0]->settings;
}

static void look_soon(struct moves *moves)
{
    sd_event_source_set_enabled(moves->look, SD_EVENT_ONESHOT);
}

static int on_look(sd_event_source *source, void *data)
{
    (void)source;
    moves_run(data);
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *data)
{
    (void)source;
    (void)usec;
    moves_run(data);
    return 0;
}

void moves_init(struct moves *moves, struct arbiter *arbiter, const char *tree)
{
    *moves = (struct moves){0};
    residency_init(&moves->residency, 0, LINK_RATE);
    readings_init(&moves->readings, tree, arbiter->gpu);
    sd_event_add_defer(arbiter->event, &moves->look, on_look, arbiter);
    sd_event_source_set_enabled(moves->look, SD_EVENT_OFF);
    sd_event_add_time(arbiter->event, &moves->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, arbiter);
    sd_event_source_set_enabled(moves->timer, SD_EVENT_OFF);
}

void moves_clear(struct moves *moves)
{
    sd_event_source_disable_unref(moves->look);
    sd_event_source_disable_unref(moves->timer);
    residency_clear(&moves->residency);
    readings_clear(&moves->readings);
}

/* Slices. */

static uint64_t promise_of(const struct slice_settings *settings)
{
    return MIN(settings->resident, settings->vram);
}

static bool set_promise(struct slice *slice, uint64_t bytes)
{
    const struct slice_settings *settings = settings_of(slice);
    const struct residency_settings promise = {
        .promised = bytes,
        .priority = settings->priority,
        .weight = settings->weight,
        .best_effort = settings->best_effort,
    };

    return residency_set_slice(&slice->arbiter->moves.residency, slice->moves.residency, &promise);
}

static void drop_claim(struct slice *slice)
{
    if (slice->moves.claim.slice)
        residency_leave(&slice->arbiter->moves.residency, &slice->moves.claim);
    slice->moves.claim = (struct residency_member){0};
}

static void say_no_promise(const struct slice *slice)
{
    g_message("slice %s: the GPU has not %" G_GUINT64_FORMAT
              " bytes that are always there for it; its memory may have to wait for others",
              slice->id, promise_of(settings_of(slice)));
}

/* What others have of the promise is claimed from them. */
static void take_promise(struct slice *slice)
{
    struct residency *residency = &slice->arbiter->moves.residency;
    struct residency_member *claim = &slice->moves.claim;
    uint64_t now = clock_now(), wanted = promise_of(settings_of(slice));
    uint64_t has = slice->moves.residency->settings.promised;

    drop_claim(slice);
    if (set_promise(slice, wanted) || wanted <= has)
        return;
    set_promise(slice, has);
    *claim =
        (struct residency_member){.slice = slice->moves.residency, .stays = true, .claims = true};
    residency_join(residency, claim, now);
    if (residency_reserve(residency, claim, wanted - has, now) != RESIDENCY_WAITS) {
        drop_claim(slice);
        say_no_promise(slice);
    }
    look_soon(&slice->arbiter->moves);
}

static void end_claim(struct slice *slice)
{
    drop_claim(slice);
    if (!set_promise(slice, promise_of(settings_of(slice))))
        say_no_promise(slice);
}

static void publish_moves(const struct slice *slice)
{
    bool moves = slice->moves.residency && slice_settings_moves(settings_of(slice));

    for (guint i = 0; i < slice->connections->len; i++) {
        struct governor_grant *grant = connection_at(slice, i)->pages.grant;

        if (grant)
            atomic_store_explicit(&grant->moves, moves, memory_order_relaxed);
    }
}

static void add_slice(struct slice *slice)
{
    const struct residency_settings none = {.weight = 1};

    slice->moves.residency = residency_add_slice(&slice->arbiter->moves.residency, &none);
}

void moves_set_slice(struct slice *slice)
{
    if (!slice->arbiter->moves.on)
        return;
    if (!slice->moves.residency)
        add_slice(slice);
    take_promise(slice);
    publish_moves(slice);
}

void moves_remove_slice(struct slice *slice)
{
    if (!slice->moves.residency)
        return;
    drop_claim(slice);
    residency_set_fixed(&slice->arbiter->moves.residency, slice->moves.residency, 0);
    residency_remove_slice(&slice->arbiter->moves.residency, slice->moves.residency);
    slice->moves.residency = NULL;
    look_soon(&slice->arbiter->moves);
}

/* What its members have on the card, as far as it is believed. */
static uint64_t members_on_card(const struct slice *slice)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < slice->connections->len; i++)
        bytes += connection_at(slice, i)->moves.residency.resident;
    return bytes;
}

/* As much of @bytes as the slice may have beside @counted: a lie costs no other slice more. */
static uint64_t believe_bytes(const struct slice *slice, uint64_t bytes, uint64_t counted)
{
    uint64_t limit = settings_of(slice)->vram;

    limit = limit ? limit : BYTES_MAX;
    return MIN(bytes, limit - MIN(limit, counted));
}

static void set_fixed(struct slice *slice)
{
    uint64_t fixed = slice->ledger.used + slice->moves.kept;

    if (!slice->moves.residency)
        return;
    for (guint i = 0; i < slice->connections->len; i++)
        fixed -= connection_at(slice, i)->holding.device;
    residency_set_fixed(&slice->arbiter->moves.residency, slice->moves.residency,
                        believe_bytes(slice, fixed, members_on_card(slice)));
}

void moves_publish_memory(struct slice *slice)
{
    set_fixed(slice);
    publish_memory(slice);
}

/* What members have kept is still there, and only what is promised comes back meanwhile. */
static void count_kept(struct slice *slice)
{
    bool had = slice->moves.kept > 0;
    uint64_t bytes = 0;

    for (guint i = 0; i < slice->connections->len; i++)
        bytes += connection_at(slice, i)->moves.account.kept;
    if (!slice->moves.residency || slice->moves.kept == bytes)
        return;
    slice->moves.kept = bytes;
    residency_set_kept(slice->moves.residency, bytes);
    set_fixed(slice);
    if (!had)
        g_message("slice %s: its processes still have %" G_GUINT64_FORMAT
                  " bytes on the GPU that they said they gave; only what is promised to the slice "
                  "comes back before they have given them, or in 30 s",
                  slice->id, bytes);
}

static void each_slice(struct arbiter *arbiter, void (*function)(struct slice *slice))
{
    GHashTableIter iter;
    void *slice;

    g_hash_table_iter_init(&iter, arbiter->slices);
    while (g_hash_table_iter_next(&iter, NULL, &slice))
        function(slice);
}

static void join_all(struct slice *slice)
{
    moves_set_slice(slice);
    for (guint i = 0; i < slice->connections->len; i++) {
        if (connection_at(slice, i)->joined)
            moves_join(connection_at(slice, i));
    }
    set_fixed(slice);
}

void moves_set_capacity(struct arbiter *arbiter)
{
    struct moves *moves = &arbiter->moves;
    uint64_t known = arbiter->settings.capacity, capacity = known ? known : ANYTHING;

    if ((!known && !moves->on) || capacity == moves->residency.capacity)
        return;
    moves->residency.capacity = capacity;
    moves->on = true;
    each_slice(arbiter, join_all);
    look_soon(moves);
}

/* Members. */

/* It declares what it has; MOVABLE says later what of that is displaced. */
void moves_join(struct connection *connection)
{
    struct slice *slice = connection->slice;
    struct moves_member *member = &connection->moves;

    if (!slice->moves.residency || member->residency.slice)
        return;
    member->residency = (struct residency_member){
        .slice = slice->moves.residency,
        .stays = true,
        .resident = believe_bytes(slice, connection->holding.device, members_on_card(slice)),
    };
    member->unbelieved = connection->holding.device - member->residency.resident;
    residency_join(&slice->arbiter->moves.residency, &member->residency, clock_now());
    publish_moves(slice);
}

static void end_waiting(struct connection *connection, uint64_t now)
{
    struct moves_member *member = &connection->moves;

    if (member->waits_since)
        connection->slice->moves.waited_ns += now - member->waits_since;
    member->waits_since = 0;
}

void moves_leave(struct connection *connection)
{
    if (!connection->moves.residency.slice)
        return;
    end_waiting(connection, clock_now());
    residency_leave(&moves_of(connection)->residency, &connection->moves.residency);
    connection->moves = (struct moves_member){0};
    look_soon(moves_of(connection));
}

bool moves_has_waiting(const struct connection *connection)
{
    return connection->moves.room_until != 0;
}

bool moves_has_room(const struct slice *slice, uint64_t bytes)
{
    return !slice->moves.residency ||
           residency_has_room(&slice->arbiter->moves.residency, slice->moves.residency, bytes);
}

static void set_room(struct connection *connection, enum governor_room room)
{
    atomic_store_explicit(&connection->pages.grant->room, room, memory_order_release);
}

/*
 * Members of before version 5 do not wait. Where no memory moves, an allocation fails at once, as
 * the driver's would, but for what is promised and on its way.
 */
static uint64_t longest_wait(const struct connection *connection)
{
    const struct slice *slice = connection->slice;

    if (connection->version < 5)
        return 0;
    if (slice_settings_moves(settings_of(slice)))
        return ROOM_WAIT_NS;
    return slice->moves.claim.slice ? PROMISE_WAIT_NS : 0;
}

/* What cannot move is not lent. */
int moves_reserve(struct connection *connection, uint64_t bytes)
{
    struct slice *slice = connection->slice;
    struct residency_member *member = &connection->moves.residency;
    struct residency *residency = &moves_of(connection)->residency;
    uint64_t now = clock_now();

    if (!member->slice)
        return 0;
    kept_note_change(&connection->moves.account, now);
    if (member->stays && slice_settings_moves(settings_of(slice)) &&
        !residency_is_promised(member->slice, bytes))
        return ENOMEM;
    switch (residency_reserve(residency, member, bytes, now)) {
    case RESIDENCY_GRANTED:
        return 0;
    case RESIDENCY_WAITS:
        if (!longest_wait(connection)) {
            residency_cancel(residency, member);
            return ENOMEM;
        }
        connection->moves.room_until = now + longest_wait(connection);
        set_room(connection, GOVERNOR_ROOM_AWAITED);
        look_soon(moves_of(connection));
        return EINPROGRESS;
    default:
        return ENOMEM;
    }
}

bool moves_release(struct connection *connection, uint64_t bytes)
{
    struct moves_member *member = &connection->moves;
    uint64_t unbelieved = MIN(bytes, member->unbelieved);

    if (!member->residency.slice)
        return true;
    kept_note_change(&member->account, clock_now());
    member->unbelieved -= unbelieved;
    look_soon(moves_of(connection));
    return residency_release(&moves_of(connection)->residency, &member->residency,
                             bytes - unbelieved, 0);
}

/* Messages. */

static const char *set_movable(struct connection *connection,
                               const struct governor_message *message)
{
    struct residency *residency = &moves_of(connection)->residency;
    struct residency_member *member = &connection->moves.residency;
    uint64_t has = member->resident;

    if (!member->stays || member->wanted)
        return "it says too late that its memory moves";
    if (message->value > has || message->other > has - message->value)
        return "it has displaced more memory than it has";
    residency_leave(residency, member);
    *member = (struct residency_member){
        .slice = member->slice, .resident = has - message->value, .out = message->value};
    residency_join(residency, member, clock_now());
    residency_set_floor(member, message->other);
    return NULL;
}

static const char *take_stuck(struct connection *connection, uint64_t bytes, uint64_t reason)
{
    struct moves_member *member = &connection->moves;

    if (bytes > BYTES_MAX || reason >= GOVERNOR_STUCK_REASONS)
        return "it says in a wrong way that it cannot move its memory";
    if (reason == GOVERNOR_STUCK_CARD)
        member->took += bytes;
    else
        member->gave += bytes;
    connection->slice->moves.stuck[reason]++;
    if ((reason == GOVERNOR_STUCK_CARD) == (member->residency.state == RESIDENCY_COMING))
        residency_stuck(&moves_of(connection)->residency, &member->residency, clock_now());
    return NULL;
}

static const char *take_gave(struct connection *connection, uint64_t bytes, uint64_t ns)
{
    struct moves_member *member = &connection->moves;

    if (!residency_gave(&moves_of(connection)->residency, &member->residency, bytes, ns))
        return "it gave memory that it was not told to give";
    member->gave += bytes;
    connection->slice->moves.moved[RESIDENCY_OUT] += bytes;
    return NULL;
}

static const char *take_took(struct connection *connection, uint64_t bytes, uint64_t ns)
{
    struct moves_member *member = &connection->moves;

    if (!residency_took(&moves_of(connection)->residency, &member->residency, bytes, ns,
                        clock_now()))
        return "it took memory that it was not granted";
    member->took += bytes;
    connection->slice->moves.moved[RESIDENCY_IN] += bytes;
    connection->slice->moves.returns += residency_is_home(&member->residency);
    return NULL;
}

static const char *release_displaced(struct connection *connection, uint64_t bytes)
{
    if (!residency_release(&moves_of(connection)->residency, &connection->moves.residency, 0,
                           bytes) ||
        !ledger_release(&connection->slice->ledger, &connection->holding, bytes, 0))
        return "it returned more displaced memory than it has";
    moves_publish_memory(connection->slice);
    return NULL;
}

static const char *of_movable(struct connection *connection, const struct governor_message *message)
{
    struct residency_member *member = &connection->moves.residency;

    switch (message->type) {
    case GOVERNOR_FLOOR:
        return residency_set_floor(member, message->value) ? NULL
                                                           : "more cannot move than it has there";
    case GOVERNOR_CLEAN:
        member->clean = message->value != 0;
        return NULL;
    case GOVERNOR_COME:
        residency_ask(member, clock_now());
        return NULL;
    case GOVERNOR_GAVE:
        return take_gave(connection, message->value, message->other);
    case GOVERNOR_TOOK:
        return take_took(connection, message->value, message->other);
    case GOVERNOR_STUCK:
        return take_stuck(connection, message->value, message->other);
    default:
        return release_displaced(connection, message->value);
    }
}

const char *moves_message(struct connection *connection, const struct governor_message *message)
{
    const struct residency_member *member = &connection->moves.residency;

    if (!member->slice)
        return "no memory moves on this GPU";
    look_soon(moves_of(connection));
    kept_note_change(&connection->moves.account, clock_now());
    if (message->type == GOVERNOR_MOVABLE)
        return set_movable(connection, message);
    if (member->stays)
        return "it has not said that its memory moves";
    return of_movable(connection, message);
}

void moves_warm(struct slice *slice)
{
    uint64_t now = clock_now();

    for (guint i = 0; i < slice->connections->len; i++) {
        struct residency_member *member = &connection_at(slice, i)->moves.residency;

        if (member->slice && member->out)
            residency_ask(member, now);
    }
    look_soon(&slice->arbiter->moves);
}

bool moves_may_displace(const struct connection *connection)
{
    const struct residency_member *member = &connection->moves.residency;

    return member->slice && !member->stays && slice_settings_moves(settings_of(connection->slice));
}

/* Decisions. */

/* Has work in flight or that waits, or has had some since the last look. */
static bool is_busy(struct connection *connection, uint64_t now)
{
    uint64_t work = 0;
    bool busy = false;

    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++) {
        const struct governor_class_usage *usage = &connection->pages.usage->classes[i];
        struct sample sample = {0};

        sample_take(&sample, usage, NULL, now);
        busy |= sample.in_flight_ns || sample.waiting || sample.backlog_ns;
        work += atomic_load(&usage->submissions) + atomic_load(&usage->free_submissions);
    }
    busy |= work != connection->moves.work;
    connection->moves.work = work;
    return busy;
}

static void look_at_members(struct slice *slice)
{
    uint64_t now = clock_now();

    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = connection_at(slice, i);

        if (connection->moves.residency.slice)
            residency_set_busy(&connection->moves.residency, is_busy(connection, now), now);
    }
}

static void set_word(struct connection *connection, _Atomic uint64_t *word, uint64_t value)
{
    struct governor_grant *grant = connection->pages.grant;

    if (atomic_load_explicit(word, memory_order_relaxed) == value)
        return;
    atomic_store_explicit(word, value, memory_order_release);
    atomic_fetch_add_explicit(&grant->orders, 1, memory_order_release);
    syscall(SYS_futex, &grant->orders, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void answer_room(struct connection *connection, enum governor_room room)
{
    struct governor_grant *grant = connection->pages.grant;

    connection->moves.room_until = 0;
    set_room(connection, room);
    atomic_fetch_add_explicit(&grant->orders, 1, memory_order_release);
    syscall(SYS_futex, &grant->orders, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void moves_return_pieces(const struct connection *connection)
{
    const struct slice *slice = connection->slice;

    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *other = connection_at(slice, i);
        struct governor_grant *grant = other->pages.grant;

        if (other != connection && other->moves.residency.slice)
            set_word(other, &grant->returns, atomic_load(&grant->returns) + 1);
    }
}

/* Once each time that it has become idle. */
static void ask_for_copies(struct connection *connection, uint64_t now)
{
    struct moves_member *moves = &connection->moves;
    struct governor_grant *grant = connection->pages.grant;
    uint64_t bytes = residency_to_copy(&moves_of(connection)->residency, &moves->residency, now);

    if (moves->copies_asked_at >= moves->residency.idle_since || !bytes)
        return;
    moves->copies_asked_at = now;
    atomic_store(&grant->copies_most, bytes);
    set_word(connection, &grant->copies, atomic_load(&grant->copies) + 1);
}

/* What its RESERVE waits for does not come. */
static void refuse_room(struct connection *connection)
{
    struct slice *slice = connection->slice;
    struct residency_member *member = &connection->moves.residency;

    ledger_release(&slice->ledger, &connection->holding, member->wanted, 0);
    residency_cancel(&moves_of(connection)->residency, member);
    moves_publish_memory(slice);
    answer_room(connection, GOVERNOR_ROOM_REFUSED);
}

/* Whether it has its memory on the card; the schedulers give leases to no others. */
static void set_away(struct connection *connection, bool away)
{
    if (connection->members[0].away == away)
        return;
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        connection->members[i].away = away;
    turn_ask(connection->slice->arbiter, ARBITER_ALL_CLASSES);
}

static void tell_member(struct connection *connection, uint64_t now)
{
    struct governor_grant *grant = connection->pages.grant;
    struct moves_member *moves = &connection->moves;
    struct residency_member *member = &moves->residency;

    if (member->answered)
        answer_room(connection, GOVERNOR_ROOM_GRANTED);
    else if (moves->room_until && now >= moves->room_until)
        refuse_room(connection);
    member->answered = member->changed = false;
    set_word(connection, &grant->leave_until, moves->gave + member->leave);
    set_word(connection, &grant->take_until, moves->took + MIN(member->granted, member->out));
    ask_for_copies(connection, now);
    set_away(connection, !residency_is_home(member));
    if (!member->asks && !member->wanted)
        end_waiting(connection, now);
    else if (!moves->waits_since)
        moves->waits_since = now;
}

static void say_starved(struct connection *connection)
{
    struct residency_member *member = &connection->moves.residency;

    if (member->starved)
        g_message("slice %s: process %d has waited for a minute for its memory: others that go "
                  "before it do not rest; give it a higher priority, or more resident memory",
                  connection->slice->id, (int)peer_pid(connection->fd));
    member->starved = false;
}

static void tell_slice(struct slice *slice)
{
    uint64_t now = clock_now();

    if (slice->moves.claim.answered)
        end_claim(slice);
    for (guint i = 0; i < slice->connections->len; i++) {
        struct connection *connection = connection_at(slice, i);

        if (!connection->moves.residency.slice)
            continue;
        tell_member(connection, now);
        say_starved(connection);
    }
}

static bool has_waiting(const struct residency *residency)
{
    for (guint i = 0; i < residency->members->len; i++) {
        const struct residency_member *member = g_ptr_array_index(residency->members, i);

        if (member->asks || member->wanted)
            return true;
    }
    return false;
}

static void set_timer(struct moves *moves, uint64_t next)
{
    if (next == TIME_NEVER) {
        sd_event_source_set_enabled(moves->timer, SD_EVENT_OFF);
        return;
    }
    sd_event_source_set_time(moves->timer, next / NS_PER_US + 1);
    sd_event_source_set_enabled(moves->timer, SD_EVENT_ONESHOT);
}

void moves_run(struct arbiter *arbiter)
{
    struct moves *moves = &arbiter->moves;
    uint64_t now = clock_now(), next_reading, next;

    if (!moves->on || !arbiter->settled)
        return;
    each_slice(arbiter, look_at_members);
    next_reading = moves_look_for_kept(arbiter, now);
    each_slice(arbiter, count_kept);
    next = residency_run(&moves->residency, now);
    each_slice(arbiter, tell_slice);
    if (has_waiting(&moves->residency))
        next = MIN(next, now + LOOK_WAITED_NS);
    else if (moves->residency.lent)
        next = MIN(next, now + LOOK_LENT_NS);
    set_timer(moves, MIN(next, next_reading));
}

/* For the status. */

uint64_t moves_promised(const struct slice *slice)
{
    return slice->moves.residency ? slice->moves.residency->settings.promised : 0;
}

uint64_t moves_on_card(const struct slice *slice)
{
    return slice->moves.residency ? slice->moves.residency->on_card : slice->ledger.used;
}

uint64_t moves_floor(const struct slice *slice)
{
    uint64_t bytes = slice->moves.residency ? slice->moves.residency->fixed : 0;

    for (guint i = 0; i < slice->connections->len; i++) {
        const struct residency_member *member = &connection_at(slice, i)->moves.residency;

        bytes += member->stays ? member->resident : member->floor;
    }
    return bytes;
}

uint64_t moves_displaced(const struct slice *slice)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < slice->connections->len; i++)
        bytes += connection_at(slice, i)->moves.residency.out;
    return bytes;
}

uint64_t moves_missing(const struct slice *slice)
{
    const struct residency *residency = &slice->arbiter->moves.residency;
    uint64_t bytes = 0, now = clock_now();

    for (guint i = 0; i < slice->connections->len; i++) {
        const struct residency_member *member = &connection_at(slice, i)->moves.residency;

        bytes += member->slice ? residency_missing(residency, member, now) : 0;
    }
    return bytes;
}

uint64_t moves_waited_ns(const struct slice *slice)
{
    uint64_t ns = slice->moves.waited_ns, now = clock_now();

    for (guint i = 0; i < slice->connections->len; i++) {
        uint64_t since = connection_at(slice, i)->moves.waits_since;

        ns += since ? now - since : 0;
    }
    return ns;
}
