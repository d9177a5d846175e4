// SPDX-License-Identifier: MIT
/*
 * Memory that moves, over the protocol: an arbiter, and members that give and take memory as they
 * are told, or lie, are silent, and die at any step.
 */
#include "live.h"
#include "raw.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two that may each have nearly all of the card. */
#define CAPACITY 1000
#define VRAM     900
#define RESIDENT 100

static const char *const slices[] = {"a", "[slice]\nvram=900\nresident=100\n", "b",
                                     "[slice]\nvram=900\nresident=100\n", NULL};

/* @gave, @took: what it has said so far. */
struct mover {
    int fd;
    const struct governor_grant *grant;
    struct governor_usage *usage;
    uint64_t gave;
    uint64_t took;
};

static void open_card(struct live *live, const char *const *with)
{
    live_open(live, with);
    live_configure(live, NULL, "[gpu]\ncapacity=1000\n");
    live_await(live, "a", "promised", RESIDENT);
}

static bool tell_arbiter(struct mover *mover, uint32_t type, uint64_t value, uint64_t other)
{
    return raw_send(mover->fd, type, value, other, 0);
}

static struct mover join(const struct live *live, const char *slice)
{
    g_autofree char *path = live_socket(live, slice);
    struct mover mover = {.fd = raw_connect(path)};
    int fds[2];

    g_assert_cmpint(mover.fd, >=, 0);
    g_assert_true(raw_join(mover.fd, fds));
    mover.grant = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
    mover.usage = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
    g_assert_true(mover.grant != MAP_FAILED && mover.usage != MAP_FAILED);
    close(fds[0]);
    close(fds[1]);
    return mover;
}

static struct mover join_movable(const struct live *live, const char *slice)
{
    struct mover mover = join(live, slice);

    g_assert_cmpuint(mover.grant->moves, ==, 1);
    g_assert_true(tell_arbiter(&mover, GOVERNOR_MOVABLE, 0, 0));
    return mover;
}

static void end(struct mover *mover)
{
    close(mover->fd);
    munmap((void *)mover->grant, 4096);
    munmap(mover->usage, 4096);
}

/* The answer's errno. */
static uint64_t reserve(struct mover *mover, uint64_t bytes)
{
    struct governor_message answer;

    g_assert_true(tell_arbiter(mover, GOVERNOR_RESERVE, bytes, 0));
    g_assert_cmpint(recv(mover->fd, &answer, sizeof(answer), 0), ==, sizeof(answer));
    g_assert_cmpuint(answer.type, ==, GOVERNOR_RESERVED);
    return answer.value;
}

static void await_room(const struct mover *mover, uint32_t room)
{
    while (atomic_load(&mover->grant->room) != room)
        g_usleep(1000);
}

/* Until it is told to give @bytes. */
static void await_leave(const struct mover *mover, uint64_t bytes)
{
    while (atomic_load(&mover->grant->leave_until) != mover->gave + bytes)
        g_usleep(1000);
}

static void await_take(const struct mover *mover, uint64_t bytes)
{
    while (atomic_load(&mover->grant->take_until) != mover->took + bytes)
        g_usleep(1000);
}

static void give(struct mover *mover, uint64_t bytes)
{
    mover->gave += bytes;
    g_assert_true(tell_arbiter(mover, GOVERNOR_GAVE, bytes, 1000));
}

static void take_back(struct mover *mover, uint64_t bytes)
{
    mover->took += bytes;
    g_assert_true(tell_arbiter(mover, GOVERNOR_TOOK, bytes, 1000));
}

static void assert_dropped(struct mover *mover)
{
    struct governor_message message;
    ssize_t length;

    while ((length = recv(mover->fd, &message, sizeof(message), 0)) > 0)
        ;
    g_assert_true(length == 0 || errno == ECONNRESET);
    end(mover);
}

/* @first has all that it may have, and @second, which wants the same, has been answered so. */
static void contend(const struct live *live, struct mover *first, struct mover *second)
{
    *first = join_movable(live, "a");
    g_assert_cmpuint(reserve(first, VRAM), ==, 0);
    *second = join_movable(live, "b");
    g_assert_cmpuint(reserve(second, VRAM), ==, EINPROGRESS);
}

/* One gives to the other, and is given back to: what is on the card fits at each step. */
static void test_exchange(void)
{
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    contend(&live, &a, &b);
    await_leave(&a, VRAM - RESIDENT);
    give(&a, 500);
    live_await(&live, "a", "displaced", 500);
    g_assert_cmpuint(b.grant->room, ==, GOVERNOR_ROOM_AWAITED);
    /* A whole allocation, which is more than was left. */
    give(&a, 350);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    live_await(&live, "b", "resident", VRAM);
    live_await(&live, "a", "resident", 50);
    /* A call of the first waits. The second is idle. */
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    await_leave(&b, 800);
    give(&b, 400);
    /* What its promise covers, and what the other has given by now. */
    await_take(&a, 450);
    take_back(&a, 450);
    give(&b, 400);
    await_take(&a, 400);
    take_back(&a, 400);
    live_await(&live, "a", "displaced", 0);
    live_await(&live, "a", "returns", 1);
    live_await(&live, "a", "moved_in", 850);
    live_await(&live, "b", "displaced", 800);
    end(&a);
    end(&b);
    live_await(&live, "a", "resident", 0);
    live_await(&live, "b", "displaced", 0);
    live_close(&live);
}

/* Who is idle on a contested card copies ahead, once, and then leaves without a copy. */
static void test_copies(void)
{
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    contend(&live, &a, &b);
    g_assert_cmpuint(a.grant->copies, ==, 0);
    await_leave(&a, VRAM - RESIDENT);
    give(&a, VRAM - RESIDENT);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    while (!atomic_load(&b.grant->copies))
        g_usleep(1000);
    tell_arbiter(&b, GOVERNOR_CLEAN, 1, 0);
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    await_leave(&b, 800);
    b.gave += 800;
    tell_arbiter(&b, GOVERNOR_GAVE, 800, 0);
    await_take(&a, 800);
    g_assert_cmpuint(b.grant->copies, ==, 1);
    g_assert_cmpuint(a.grant->copies, ==, 0);
    take_back(&a, 800);
    live_await(&live, "a", "displaced", 0);
    end(&a);
    end(&b);
    live_close(&live);
}

/* As the agent does it. */
static void warm(const struct live *live, const char *slice)
{
    g_autofree char *path =
        g_strdup_printf("%s/run/vgpu/governor/gpu0/slices/%s.warm", live->root, slice);

    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    while (g_file_test(path, G_FILE_TEST_EXISTS))
        g_usleep(1000);
}

/* What is away comes back without a call that waits; who has nothing away is left alone. */
static void test_warm(void)
{
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    contend(&live, &a, &b);
    await_leave(&a, 800);
    give(&a, 800);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    warm(&live, "b");
    warm(&live, "none");
    warm(&live, "a");
    await_leave(&b, 800);
    give(&b, 800);
    await_take(&a, 800);
    take_back(&a, 800);
    live_await(&live, "a", "displaced", 0);
    g_assert_cmpuint(b.grant->take_until, ==, 0);
    end(&a);
    end(&b);
    live_close(&live);
}

/* A thread that waits for a lease gets none while its memory is not there. */
static void test_leases(void)
{
    struct live live;
    struct mover a, b;
    struct governor_class_usage *words;
    const struct governor_class_grant *grant;

    open_card(&live, slices);
    contend(&live, &a, &b);
    words = &a.usage->classes[GOVERNOR_CLASS_COMPUTE];
    grant = &a.grant->classes[GOVERNOR_CLASS_COMPUTE];
    await_leave(&a, VRAM - RESIDENT);
    give(&a, 800);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    end(&b);
    atomic_store(&words->waiting, 1);
    tell_arbiter(&a, GOVERNOR_WANT, NS_PER_MS, GOVERNOR_CLASS_COMPUTE);
    /* This is answered after that was looked at. */
    live_await(&live, "b", "members", 0);
    g_assert_cmpuint(grant->mode, ==, GOVERNOR_MODE_METERED);
    g_assert_cmpuint(grant->limit_ns, ==, 0);
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    await_take(&a, 800);
    take_back(&a, 800);
    while (grant->mode == GOVERNOR_MODE_METERED && !grant->limit_ns)
        g_usleep(1000);
    end(&a);
    live_close(&live);
}

/* Whoever ends at any step gives all back, and what was promised to it. */
static void test_deaths(void)
{
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    /* Before it has given anything. */
    contend(&live, &a, &b);
    await_leave(&a, 800);
    end(&a);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    end(&b);
    live_await(&live, "b", "resident", 0);
    /* In between. */
    contend(&live, &a, &b);
    await_leave(&a, 800);
    give(&a, 300);
    end(&a);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    end(&b);
    live_await(&live, "b", "resident", 0);
    /* Who waits. What was told stays, and it comes back. */
    contend(&live, &a, &b);
    await_leave(&a, 800);
    give(&a, 300);
    live_await(&live, "a", "displaced", 300);
    end(&b);
    live_await(&live, "b", "members", 0);
    give(&a, 500);
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    await_take(&a, 800);
    /* While it comes. */
    take_back(&a, 100);
    live_await(&live, "a", "displaced", 700);
    end(&a);
    live_await(&live, "a", "resident", 0);
    a = join_movable(&live, "a");
    g_assert_cmpuint(reserve(&a, VRAM), ==, 0);
    end(&a);
    live_close(&live);
}

/* A member that cannot give is not asked again at once, and who waits waits on. */
static void test_stuck(void)
{
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    contend(&live, &a, &b);
    await_leave(&a, 800);
    give(&a, 200);
    tell_arbiter(&a, GOVERNOR_STUCK, 600, GOVERNOR_STUCK_CAPTURE);
    a.gave += 600;
    live_await(&live, "a", "stuck", 1);
    g_assert_cmpuint(a.grant->leave_until, ==, a.gave);
    g_assert_cmpuint(b.grant->room, ==, GOVERNOR_ROOM_AWAITED);
    /* And then it is. */
    await_leave(&a, 600);
    give(&a, 600);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    end(&a);
    end(&b);
    live_close(&live);
}

/* A second allocation of a process that waits, and what returns displaced memory. */
static void test_waiting(void)
{
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    contend(&live, &a, &b);
    g_assert_cmpuint(reserve(&b, 1), ==, EBUSY);
    await_leave(&a, 800);
    give(&a, 800);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    g_assert_cmpuint(reserve(&b, 1), ==, ENOMEM);
    tell_arbiter(&a, GOVERNOR_RELEASE_DISPLACED, 300, 0);
    live_await(&live, "a", "displaced", 500);
    live_await(&live, "a", "vram_used", 600);
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    await_leave(&b, 500);
    tell_arbiter(&b, GOVERNOR_RELEASE, VRAM, 0);
    await_take(&a, 500);
    end(&a);
    end(&b);
    live_close(&live);
}

/* Memory that does not move is not lent: what a slice has beyond its promise can be had back. */
static void test_stays(void)
{
    struct live live;
    struct mover a, old;
    struct governor_message message = {.version = 4, .type = GOVERNOR_RESERVE, .value = 901};

    open_card(&live, slices);
    a = join(&live, "a");
    g_assert_cmpuint(reserve(&a, RESIDENT + 1), ==, ENOMEM);
    g_assert_cmpuint(reserve(&a, RESIDENT), ==, 0);
    live_await(&live, "a", "vram_used", RESIDENT);
    /* The version before knows of nothing, and is answered at once. */
    old = join(&live, "b");
    message.value = 101;
    send(old.fd, &message, sizeof(message), 0);
    g_assert_cmpint(recv(old.fd, &message, sizeof(message), 0), ==, sizeof(message));
    g_assert_cmpuint(message.version, ==, 4);
    g_assert_cmpuint(message.value, ==, ENOMEM);
    end(&a);
    end(&old);
    live_close(&live);
}

/* What does not move fails at once on a card that is full, and so does what nobody can make room
 * for. */
static void test_no_wait(void)
{
    struct live live;
    struct mover a, b, c;

    open_card(&live, slices);
    a = join_movable(&live, "a");
    g_assert_cmpuint(reserve(&a, VRAM), ==, 0);
    /* A slice without a limit is promised nothing. */
    live_configure(&live, "c", "[slice]\n");
    live_await(&live, "c", "promised", 0);
    c = join(&live, "c");
    g_assert_cmpuint(reserve(&c, 100), ==, ENOMEM);
    end(&c);
    /* Nothing of the other's can move any more. */
    tell_arbiter(&a, GOVERNOR_FLOOR, VRAM, 0);
    live_await(&live, "a", "floor", VRAM);
    b = join_movable(&live, "b");
    g_assert_cmpuint(reserve(&b, 500), ==, ENOMEM);
    live_await(&live, "b", "vram_used", 0);
    g_assert_cmpuint(reserve(&b, RESIDENT), ==, 0);
    /* Some of it can, which is enough. */
    tell_arbiter(&a, GOVERNOR_FLOOR, 200, 0);
    live_await(&live, "a", "floor", 200);
    g_assert_cmpuint(reserve(&b, 300), ==, EINPROGRESS);
    await_leave(&a, 300);
    end(&a);
    end(&b);
    live_close(&live);
}

/* What best effort has and does not give is told: others than it wait for that. */
static void test_missing(void)
{
    static const char *const mixed[] = {"a", "[slice]\nvram=900\nresident=0\nbest-effort=true\n",
                                        "b", "[slice]\nvram=900\nresident=100\n", NULL};
    struct live live;
    struct mover a, b;

    live_open(&live, mixed);
    live_configure(&live, NULL, "[gpu]\ncapacity=1000\n");
    live_await(&live, "b", "promised", RESIDENT);
    a = join_movable(&live, "a");
    g_assert_cmpuint(reserve(&a, 800), ==, 0);
    tell_arbiter(&a, GOVERNOR_FLOOR, 800, 0);
    b = join_movable(&live, "b");
    g_assert_cmpuint(reserve(&b, 500), ==, EINPROGRESS);
    g_assert_cmpint(live_status(&live, "b", "missing"), ==, 0);
    live_await(&live, "b", "missing", 300);
    g_assert_cmpint(live_status(&live, "a", "missing"), ==, 0);
    end(&a);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    live_await(&live, "b", "missing", 0);
    end(&b);
    live_close(&live);
}

/* Of shared memory, of which the arbiter cannot remember more: charged as the process's own. */
#define OBJECTS 4096

static struct governor_object *objects_named(unsigned count)
{
    struct governor_object *objects = g_new0(struct governor_object, count);

    for (unsigned i = 0; i < count; i++)
        objects[i] = (struct governor_object){.device = 5, .inode = i + 1};
    return objects;
}

static void import_more(struct live *live, const char *socket_path, struct live_report *report)
{
    GovernorMember *member = governor_member_new(socket_path, true);
    g_autofree struct governor_object *objects = objects_named(OBJECTS + 1);

    (void)live;
    g_assert_nonnull(member);
    governor_member_movable(member);
    for (unsigned i = 0; i < OBJECTS; i++)
        g_assert_true(governor_member_import(member, &objects[i], 1));
    report->ready = 1;
    report->granted = governor_member_import(member, &objects[OBJECTS], 800000);
    report->done = 1;
    while (!report->go)
        g_usleep(1000);
}

/* It waits for room as an allocation does, and what it was refused is not charged later. */
static void test_import(void)
{
    static const char *const large[] = {"a", "[slice]\nvram=900000\nresident=100000\n", "b",
                                        "[slice]\nvram=900000\nresident=100000\n", NULL};
    struct live live;
    struct mover a;
    unsigned b;

    live_open(&live, large);
    live_configure(&live, NULL, "[gpu]\ncapacity=1000000\n");
    live_await(&live, "a", "promised", 100000);
    a = join_movable(&live, "a");
    g_assert_cmpuint(reserve(&a, 900000), ==, 0);
    b = live_spawn(&live, "b", import_more);
    live_await_ready(&live, b);
    await_leave(&a, 704096);
    give(&a, 704096);
    live_await_word(&live.reports[b].done, 1);
    g_assert_cmpuint(live.reports[b].granted, ==, 1);
    live_await(&live, "b", "resident", 800000 + OBJECTS);
    live.reports[b].go = 1;
    end(&a);
    live_close(&live);
}

/* The next arbiter knows what is displaced, and lets members come back. */
static void test_restart(void)
{
    struct live live;
    struct mover a, b;
    struct governor_message join_message = {
        .version = GOVERNOR_PROTOCOL_VERSION, .type = GOVERNOR_JOIN, .value = VRAM};

    open_card(&live, slices);
    contend(&live, &a, &b);
    await_leave(&a, 800);
    give(&a, 800);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    live_kill_arbiter(&live, SIGKILL);
    live_start_arbiter(&live);
    for (unsigned i = 0; i < 2; i++) {
        struct mover *mover = i ? &b : &a;
        g_autofree char *path = live_socket(&live, i ? "b" : "a");
        int fd = raw_connect(path), fds[2];

        dup2(fd, mover->fd);
        close(fd);
        send(mover->fd, &join_message, sizeof(join_message), 0);
        g_assert_true(raw_welcome(mover->fd, fds));
        munmap((void *)mover->grant, 4096);
        mover->grant = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
        close(fds[0]);
        close(fds[1]);
        mover->gave = mover->took = 0;
        tell_arbiter(mover, GOVERNOR_MOVABLE, i ? 0 : 800, 0);
    }
    live_await(&live, "a", "displaced", 800);
    live_await(&live, "b", "resident", VRAM);
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    await_leave(&b, 800);
    give(&b, 800);
    await_take(&a, 800);
    take_back(&a, 800);
    live_await(&live, "a", "resident", VRAM);
    end(&a);
    end(&b);
    live_close(&live);
}

/* A slice that is made while others have all gets what is promised to it before they go on. */
static void test_claim(void)
{
    struct live live;
    struct mover a, b, c;

    open_card(&live, slices);
    a = join_movable(&live, "a");
    g_assert_cmpuint(reserve(&a, 500), ==, 0);
    b = join_movable(&live, "b");
    g_assert_cmpuint(reserve(&b, 500), ==, 0);
    live_configure(&live, "c", "[slice]\nvram=100\n");
    /* Who has been idle for longest. */
    await_leave(&a, 100);
    c = join(&live, "c");
    g_assert_cmpuint(reserve(&c, 100), ==, EINPROGRESS);
    g_assert_cmpint(live_status(&live, "c", "promised"), ==, 0);
    give(&a, 100);
    await_room(&c, GOVERNOR_ROOM_GRANTED);
    live_await(&live, "c", "promised", 100);
    g_assert_cmpuint(b.grant->leave_until, ==, 0);
    end(&a);
    end(&b);
    end(&c);
    live_close(&live);
}

typedef struct {
    uint32_t type;
    uint64_t value;
    uint64_t other;
    const char *log;
} Lie;

/* None of them costs the neighbour anything. */
static void test_lies(void)
{
    static const Lie lies[] = {
        {GOVERNOR_GAVE, 1, 0, "it gave memory that it was not told to give"},
        {GOVERNOR_TOOK, 1, 0, "it took memory that it was not granted"},
        {GOVERNOR_FLOOR, 101, 0, "more cannot move than it has there"},
        {GOVERNOR_RELEASE_DISPLACED, 1, 0, "it returned more displaced memory than it has"},
        {GOVERNOR_RELEASE, 101, 0, "it returned more memory than it holds"},
        {GOVERNOR_STUCK, UINT64_MAX, 0, "it says in a wrong way that it cannot move its memory"},
        {GOVERNOR_STUCK, 0, GOVERNOR_STUCK_REASONS, "it says in a wrong way"},
        {GOVERNOR_MOVABLE, 0, 0, "it says too late that its memory moves"},
    };
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    b = join_movable(&live, "b");
    g_assert_cmpuint(reserve(&b, VRAM), ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(lies); i++) {
        a = join_movable(&live, "a");
        g_assert_cmpuint(reserve(&a, RESIDENT), ==, 0);
        tell_arbiter(&a, lies[i].type, lies[i].value, lies[i].other);
        assert_dropped(&a);
        live_await_log(&live, lies[i].log);
    }
    a = join(&live, "a");
    tell_arbiter(&a, GOVERNOR_MOVABLE, 1, 0);
    assert_dropped(&a);
    live_await_log(&live, "it has displaced more memory than it has");
    a = join(&live, "a");
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    assert_dropped(&a);
    live_await_log(&live, "it has not said that its memory moves");
    g_assert_cmpuint(b.grant->leave_until, ==, 0);
    live_await(&live, "b", "resident", VRAM);
    end(&b);
    live_close(&live);
}

/* As vgpu-nvidia-readings writes it, of this process. */
static void put_reading(const struct live *live, uint64_t bytes)
{
    g_autofree char *dir = g_build_filename(live->root, "run/vgpu/readings", NULL);
    g_autofree char *path = g_build_filename(dir, "gpu0", NULL);
    g_autofree char *text = g_strdup_printf("[gpu]\ntime=%" G_GINT64_FORMAT
                                            "\n[process_memory]\n%d=%" G_GUINT64_FORMAT "\n",
                                            g_get_monotonic_time(), (int)getpid(), bytes);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* Until the arbiter has come to a conclusion, as long as it asks for readings. */
static void put_readings(const struct live *live, uint64_t bytes, const char *slice, gint64 held)
{
    while (live_status(live, slice, "kept") != held) {
        put_reading(live, bytes);
        g_usleep(10000);
    }
}

#define GB 1000000000ull

/* It says that it gave, and has it: what is there counts, and nothing of it comes back. */
static void test_keeps(void)
{
    static const char *const large[] = {"a", "[slice]\nvram=9000000000\nresident=1000000000\n", "b",
                                        "[slice]\nvram=9000000000\nresident=1000000000\n", NULL};
    struct live live;
    struct mover a, b;

    live_open(&live, large);
    live_configure(&live, NULL, "[gpu]\ncapacity=10000000000\n");
    live_await(&live, "a", "promised", (gint64)GB);
    a = join_movable(&live, "a");
    g_assert_cmpuint(reserve(&a, 9 * GB), ==, 0);
    put_reading(&live, 9 * GB);
    b = join_movable(&live, "b");
    g_assert_cmpuint(reserve(&b, 4 * GB), ==, EINPROGRESS);
    await_leave(&a, 3 * GB);
    give(&a, 3 * GB);
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    /* Of what was never seen a GiB is a context's, and 64 MiB are a rounding. */
    put_readings(&live, 9 * GB, "a", (gint64)(3 * GB - (1ull << 30) - (64ull << 20)));
    live_await_log(&live, "still have");
    tell_arbiter(&a, GOVERNOR_COME, 0, 0);
    tell_arbiter(&b, GOVERNOR_RELEASE, 4 * GB, 0);
    live_await(&live, "b", "vram_used", 0);
    g_assert_cmpuint(a.grant->take_until, ==, 0);
    /* Now it has given it, and is believed again. */
    put_readings(&live, 6 * GB, "a", 0);
    await_take(&a, 3 * GB);
    take_back(&a, 3 * GB);
    live_await(&live, "a", "displaced", 0);
    end(&a);
    end(&b);
    live_close(&live);
}

/* A member that declares more than any slice may have takes no more from others than that. */
static void test_declared(void)
{
    struct live live;
    struct mover a, b;
    g_autofree char *path = NULL;

    open_card(&live, slices);
    path = live_socket(&live, "a");
    a.fd = raw_connect(path);
    raw_send(a.fd, GOVERNOR_JOIN, 1ull << 50, 0, 0);
    live_await(&live, "a", "members", 1);
    tell_arbiter(&a, GOVERNOR_DRIVER, 1ull << 50, 0);
    live_await(&live, "a", "vram_driver", 1ll << 50);
    live_await(&live, "a", "resident", VRAM);
    b = join_movable(&live, "b");
    g_assert_cmpuint(reserve(&b, RESIDENT), ==, 0);
    /* It may say that it returns what was not believed, too. */
    tell_arbiter(&a, GOVERNOR_RELEASE, 1ull << 50, 0);
    tell_arbiter(&a, GOVERNOR_DRIVER, 0, 0);
    live_await(&live, "a", "resident", 0);
    close(a.fd);
    end(&b);
    live_close(&live);
}

/* Who is silent does not leave: others have what is promised to them, and the rest waits. */
static void test_silence(void)
{
    struct live live;
    struct mover a, b;

    open_card(&live, slices);
    contend(&live, &a, &b);
    await_leave(&a, 800);
    live_await(&live, "b", "vram_used", VRAM);
    end(&b);
    b = join_movable(&live, "b");
    g_assert_cmpuint(reserve(&b, RESIDENT), ==, 0);
    end(&a);
    end(&b);
    live_close(&live);
}

/* On a GPU whose capacity is not known all fits, and nothing moves. */
static void test_no_capacity(void)
{
    struct live live;
    struct mover a, b;

    live_open(&live, slices);
    a = join(&live, "a");
    b = join(&live, "b");
    g_assert_cmpuint(a.grant->moves, ==, 0);
    g_assert_cmpuint(reserve(&a, VRAM), ==, 0);
    g_assert_cmpuint(reserve(&b, VRAM), ==, 0);
    tell_arbiter(&b, GOVERNOR_MOVABLE, 0, 0);
    assert_dropped(&b);
    live_await_log(&live, "no memory moves on this GPU");
    end(&a);
    /* It becomes known, and is forgotten. */
    live_configure(&live, NULL, "[gpu]\ncapacity=1000\n");
    live_await(&live, "a", "promised", RESIDENT);
    contend(&live, &a, &b);
    live_configure(&live, NULL, "[gpu]\n");
    await_room(&b, GOVERNOR_ROOM_GRANTED);
    end(&a);
    end(&b);
    live_close(&live);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/governor/moves/exchange", test_exchange);
    g_test_add_func("/governor/moves/copies", test_copies);
    g_test_add_func("/governor/moves/warm", test_warm);
    g_test_add_func("/governor/moves/leases", test_leases);
    g_test_add_func("/governor/moves/deaths", test_deaths);
    g_test_add_func("/governor/moves/stuck", test_stuck);
    g_test_add_func("/governor/moves/waiting", test_waiting);
    g_test_add_func("/governor/moves/stays", test_stays);
    g_test_add_func("/governor/moves/no-wait", test_no_wait);
    g_test_add_func("/governor/moves/missing", test_missing);
    g_test_add_func("/governor/moves/import", test_import);
    g_test_add_func("/governor/moves/restart", test_restart);
    g_test_add_func("/governor/moves/claim", test_claim);
    g_test_add_func("/governor/moves/lies", test_lies);
    g_test_add_func("/governor/moves/keeps", test_keeps);
    g_test_add_func("/governor/moves/declared", test_declared);
    g_test_add_func("/governor/moves/silence", test_silence);
    g_test_add_func("/governor/moves/no-capacity", test_no_capacity);
    return g_test_run();
}
