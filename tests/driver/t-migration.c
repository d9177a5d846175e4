/* SPDX-License-Identifier: MIT */
/* VFIO's migration: a VM that is stopped and goes on, that is saved and goes on elsewhere, and
 * states that are damaged. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "migration.h"

#define CONTROL  VGPU_QUEUE_CONTROL
#define SHORT_MS 300
#define HEADER   64

static void test_states(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    int fd;

    g_assert_cmphex(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_STOP_COPY, !=, 0);
    g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(RUNNING));
    assert_fails(migration_refused(tb, 99), EINVAL);
    assert_fails(migration_refused(tb, STATE(ERROR)), EINVAL);

    g_assert_cmpint(migration_go_to(tb, STATE(RUNNING_P2P)), ==, -1);
    assert_round_trip(tb, 1);
    g_assert_cmpint(migration_go_to(tb, STATE(STOP)), ==, -1);
    g_assert_cmpint(migration_go_to(tb, STATE(RUNNING)), ==, -1);
    assert_round_trip(tb, 2);
    fd = migration_go_to(tb, STATE(STOP_COPY));
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    fd = migration_go_to(tb, STATE(RESUMING));
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    /* Nothing was written. */
    assert_fails(migration_refused(tb, STATE(STOP)), EINVAL);
    migration_reset(tb);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 3);
}

/* A stopped VM's memory stays as it is, and it gets its answers when it goes on. */
static void test_stop(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    GuestQueue *q = &tb->guest.queue[CONTROL];
    struct virtio_gpu_ctrl_hdr *resp = migration_hold_request(tb, 5);
    struct virtio_gpu_ctrl_hdr req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    uint16_t used = q->used->idx;
    unsigned long pops;
    void *second;

    migration_go_to(tb, STATE(STOP));
    pops = atomic_load(&tb->engine->state->pops);
    atomic_store(&tb->engine->state->hold, 0);
    assert_ok(engine_peer_call(tb->engine, migration_answer_held, NULL, 0));
    assert_fails(engine_peer_call(tb->engine, migration_answer_held, NULL, 0), ENOENT);
    assert_ok(guest_submit(&tb->guest, CONTROL, &req, sizeof(req), sizeof(req), &second));
    g_usleep(SHORT_MS * 1000);
    g_assert_cmpuint(q->used->idx, ==, used);
    g_assert_cmphex(resp->type, ==, 0);
    g_assert_cmpuint(atomic_load(&tb->engine->state->pops), ==, pops);

    migration_go_to(tb, STATE(RUNNING));
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(resp->fence_id, ==, 5);
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    assert_round_trip(tb, 6);
    g_assert_cmpuint(atomic_load(&tb->engine->state->saves), ==, 0);
    g_assert_cmpint(atomic_load(&tb->engine->state->error), ==, 0);
}

static void test_moves(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    struct virtio_gpu_ctrl_hdr *held, *pending, req = {.type = VIRTIO_GPU_CMD_SUBMIT_3D};
    GuestQueue *q;
    void *offered;

    for (unsigned i = 0; i < 3 * GUEST_QUEUE_SIZE / 2; i++)
        assert_round_trip(from, i);
    held = migration_hold_request(from, 77);
    /* One that the source has not even seen. */
    atomic_store(&from->engine->state->hold, ENGINE_HOLD_QUEUES);
    g_usleep(50000);
    assert_ok(guest_submit(&from->guest, CONTROL, &req, sizeof(req), sizeof(req), &offered));
    state = migration_save(from);
    g_assert_cmpuint(atomic_load(&from->engine->state->saves), ==, 1);
    to = migration_target_of(from);
    held = guest_ptr(&to->guest, guest_iova(&from->guest, held));
    pending = guest_ptr(&to->guest, guest_iova(&from->guest, offered));

    assert_ok(migration_load(to, state));
    g_assert_cmphex(held->type, ==, 0);
    migration_go_to(to, STATE(RUNNING));
    q = &to->guest.queue[CONTROL];
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    assert_ok(guest_queue_wait(q, NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(held->type, ==, VIRTIO_GPU_RESP_ERR_UNSPEC);
    g_assert_cmphex(held->flags, ==, VIRTIO_GPU_FLAG_FENCE);
    g_assert_cmpuint(held->fence_id, ==, 77);
    g_assert_cmphex(pending->type, ==, VIRTIO_GPU_RESP_OK_NODATA);
    g_assert_cmpuint(atomic_load(&to->engine->state->loads), ==, 1);
    g_assert_cmpint(atomic_load(&to->engine->state->error), ==, 0);
    /* An interrupt that got lost on the way. */
    g_assert_cmpuint(vmm_eventfd_take(to->guest.vector_fd[1], GUEST_TIMEOUT_MS), >, 0);
    for (unsigned i = 0; i < 3 * GUEST_QUEUE_SIZE / 2; i++)
        assert_round_trip(to, i);

    /* And at the source, as if nothing had been: the guest there is another one now. */
    atomic_store(&from->engine->state->hold, 0);
    migration_go_to(from, STATE(RUNNING));
    assert_ok(engine_peer_call(from->engine, migration_answer_held, NULL, 0));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    assert_round_trip(from, 1);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 2);
}

/* What the target's guest finds as the answer to @resp of the source's. */
static uint32_t answer_at(Testbed *to, Testbed *from, const void *resp, const GByteArray *state)
{
    const struct virtio_gpu_ctrl_hdr *there = guest_ptr(&to->guest, guest_iova(&from->guest, resp));

    assert_ok(migration_load(to, state));
    migration_go_to(to, STATE(RUNNING));
    assert_ok(guest_queue_wait(&to->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmpuint(there->fence_id, ==, 8);
    assert_round_trip(to, 9);
    return there->type;
}

/*
 * Answered after the VM was stopped and before it was saved. The VMM may have copied the pages that
 * the engine has written for it, so at the target it is an error. At the source nothing is lost.
 */
static void test_stopped_answers(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    struct virtio_gpu_ctrl_hdr *resp = migration_hold_request(from, 8);

    migration_go_to(from, STATE(STOP));
    assert_ok(engine_peer_call(from->engine, migration_answer_held, NULL, 0));
    state = migration_save(from);
    to = migration_target_of(from);
    g_assert_cmphex(answer_at(to, from, resp, state), ==, VIRTIO_GPU_RESP_ERR_UNSPEC);

    migration_go_to(from, STATE(RUNNING));
    assert_ok(guest_queue_wait(&from->guest.queue[CONTROL], NULL, GUEST_TIMEOUT_MS));
    g_assert_cmphex(resp->type, ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* The same with a VMM that saves while the VM runs, and copies such pages after the stop. */
static void test_moves_answers(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    GThread *stops;
    struct virtio_gpu_ctrl_hdr *resp = migration_hold_request(from, 8);
    int fd = migration_pre_copy(from);

    /* The engine answers between the stop and its part of the saving. */
    atomic_store(&from->engine->state->hold, ENGINE_HOLD_ANSWERS | ENGINE_HOLD_SAVE);
    stops = g_thread_new("stops", migration_stop_copy, from);
    g_assert_true(wait_until(atomic_load(&from->engine->state->saves) == 1, GUEST_TIMEOUT_MS));
    assert_ok(engine_peer_call(from->engine, migration_answer_held, NULL, 0));
    assert_ok(engine_peer_call(from->engine, migration_save_nothing, NULL, 0));
    g_thread_join(stops);
    state = migration_read_all(fd);
    close(fd);
    to = migration_target_of(from);
    g_assert_cmphex(answer_at(to, from, resp, state), ==, VIRTIO_GPU_RESP_OK_NODATA);
}

/* A guest whose driver is not up: firmware, or a kernel without one. */
static void test_idle(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_OPEN);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;

    guest_probe(&from->guest, &from->dev, &from->ram);
    from->stage = TESTBED_AT_GUEST;
    state = migration_save(from);
    g_assert_cmpuint(atomic_load(&from->engine->state->saves), ==, 0);
    to = migration_target_of(from);
    assert_ok(migration_load(to, state));
    migration_go_to(to, STATE(RUNNING));
    g_assert_cmpint(guest_status(&to->guest), ==, 0);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 1);
    g_assert_cmpuint(atomic_load(&to->engine->state->loads), ==, 0);
}

static void test_pre_copy(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) rest = NULL, state = g_byte_array_new();
    struct vfio_precopy_info info = {.argsz = sizeof(info)};
    uint8_t header[2 * HEADER];
    int fd = migration_pre_copy(from), target;

    assert_round_trip(from, 1);
    g_assert_cmpint(ioctl(fd, VFIO_MIG_GET_PRECOPY_INFO, &info), ==, 0);
    g_assert_cmpuint(info.initial_bytes, ==, HEADER);
    g_assert_cmpuint(info.dirty_bytes, ==, 0);
    g_assert_cmpint(read(fd, header, sizeof(header)), ==, HEADER);
    g_assert_cmpint(read(fd, header, sizeof(header)), ==, -1);
    g_assert_cmpint(errno, ==, ENOMSG);
    g_byte_array_append(state, header, HEADER);

    /* Given up, and once more. */
    g_assert_cmpint(migration_go_to(from, STATE(RUNNING)), ==, -1);
    g_assert_cmpint(read(fd, header, sizeof(header)), ==, -1);
    g_assert_cmpint(errno, ==, ENODEV);
    close(fd);
    assert_round_trip(from, 2);
    fd = migration_go_to(from, STATE(PRE_COPY));
    g_assert_cmpint(read(fd, header, HEADER), ==, HEADER);
    g_assert_cmpint(migration_go_to(from, STATE(STOP_COPY)), ==, -1);
    g_assert_cmpint(ioctl(fd, VFIO_MIG_GET_PRECOPY_INFO, &info), ==, -1);
    rest = migration_read_all(fd);
    close(fd);
    migration_go_to(from, STATE(STOP));

    to = migration_target_of(from);
    target = migration_go_to(to, STATE(RESUMING));
    g_assert_cmpint(write(target, state->data, state->len), ==, HEADER);
    for (unsigned i = 0; i < rest->len; i += 7)
        g_assert_cmpint(write(target, rest->data + i, MIN(7, rest->len - i)), >, 0);
    close(target);
    migration_go_to(to, STATE(RUNNING));
    assert_round_trip(to, 3);
}

/* Its memory is changed while the VM runs: the target has accepted it as it was. */
static void test_memory_changes(void)
{
    static const char *const sizes[] = {"33554432", "134217728"};

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
        g_autoptr(Testbed) to = NULL;
        g_autoptr(GByteArray) state = NULL;
        int fd = migration_pre_copy(from);

        assert_ok(mdev_attr_set(from->uuid, "vgpu/vram_bytes", sizes[i]));
        migration_go_to(from, STATE(STOP_COPY));
        state = migration_read_all(fd);
        close(fd);
        to = migration_target_of(from);
        assert_ok(migration_load(to, state));
        migration_go_to(to, STATE(RUNNING));
        assert_round_trip(to, i);
        g_clear_pointer(&to, testbed_free);
        g_clear_pointer(&from, testbed_free);
        assert_ok(mdev_gpu_remove(TESTBED_GPU));
    }
}

/* Bytes of the header, as model/migration_data.c has them. */
static void test_wrong_target(void)
{
    static const unsigned fields[] = {0, 8, 16, 24 + 5, 32, 40, 48, 52};
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = migration_save(from);

    to = migration_target_of(from);
    for (unsigned i = 0; i < G_N_ELEMENTS(fields); i++) {
        int fd = migration_go_to(to, STATE(RESUMING));
        uint8_t header[HEADER];

        memcpy(header, state->data, HEADER);
        header[fields[i]] ^= 1;
        g_assert_cmpint(write(fd, header, HEADER - 1), ==, HEADER - 1);
        g_assert_cmpint(write(fd, header + HEADER - 1, 1), ==, -1);
        g_assert_cmpint(errno, ==, EINVAL);
        g_assert_cmpint(write(fd, header, 1), ==, -1);
        close(fd);
        assert_fails(migration_refused(to, STATE(STOP)), EINVAL);
        migration_reset(to);
    }
    assert_ok(migration_load(to, state));
    migration_go_to(to, STATE(RUNNING));
    assert_round_trip(to, 1);
}

static void test_other_renderer(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = testbed_new_on(from->gpu, TESTBED_TYPE, TESTBED_AT_VGPU);
    g_autoptr(Testbed) old = testbed_new_on(from->gpu, TESTBED_TYPE, TESTBED_AT_VGPU);
    g_autoptr(GByteArray) state = migration_save(from);

    to->engine = engine_peer_start(to->uuid, ENGINE_OTHER);
    to->stage = TESTBED_AT_ENGINE;
    testbed_advance(to, TESTBED_AT_OPEN);
    assert_fails(migration_load(to, state), EINVAL);

    old->engine = engine_peer_start(old->uuid, ENGINE_NO_SAVE);
    old->stage = TESTBED_AT_ENGINE;
    testbed_advance(old, TESTBED_AT_GUEST);
    assert_fails(migration_refused(old, STATE(STOP_COPY)), EOPNOTSUPP);
    migration_go_to(old, STATE(RUNNING));
    assert_round_trip(old, 1);
}

/* What a guest cannot have done is refused; whatever is not, must not harm the kernel. The seed is
 * fixed. */
static void test_damaged(void)
{
    g_autoptr(Testbed) from = testbed_new(TESTBED_AT_GUEST);
    g_autoptr(Testbed) to = NULL;
    g_autoptr(GByteArray) state = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    unsigned accepted = 0, bad = 0;

    migration_hold_request(from, 1);
    state = migration_save(from);
    to = migration_target_of(from);
    for (unsigned len = HEADER; len < state->len;
         len += 1 + (unsigned)g_rand_int_range(rand, 0, 60)) {
        GByteArray cut = {.data = state->data, .len = len};

        assert_fails(migration_load(to, &cut), EINVAL);
        migration_reset(to);
    }
    for (unsigned i = 0; i < 200; i++) {
        GByteArray copy = {.data = g_memdup2(state->data, state->len), .len = state->len};

        for (int n = g_rand_int_range(rand, 1, 4); n; n--) {
            unsigned end = g_rand_boolean(rand) ? HEADER + 32 : 700;

            copy.data[g_rand_int_range(rand, HEADER, (gint32)end)] = (uint8_t)g_rand_int(rand);
        }
        if (migration_load(to, &copy) == 0) {
            accepted++;
            migration_go_to(to, STATE(RUNNING));
        } else {
            bad++;
        }
        g_free(copy.data);
        migration_reset(to);
    }
    g_test_message("%u were migration_refused, %u not", bad, accepted);
    g_assert_cmpuint(bad, >, 30);
    g_assert_cmpuint(accepted, >, 10);
    guest_reset(&to->guest);
    guest_up(&to->guest, GUEST_FEATURES);
    assert_round_trip(to, 1);
}

#define RACE_ROUNDS 150

typedef struct {
    Testbed *tb;
    atomic_int fd; /* that the one got last, for the other to read and write */
    atomic_bool done;
} Race;

static void *change_states(void *data)
{
    static const unsigned states[] = {STATE(STOP_COPY), STATE(RUNNING), STATE(PRE_COPY),
                                      STATE(STOP_COPY), STATE(STOP),    STATE(RESUMING)};
    Race *race = data;

    for (unsigned i = 0; i < RACE_ROUNDS; i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(states); s++) {
            int fd, old;

            vmm_migration_set_state(&race->tb->dev, states[s], &fd);
            if (fd < 0)
                continue;
            old = atomic_exchange(&race->fd, fd);
            if (old >= 0)
                close(old);
        }
    }
    atomic_store(&race->done, true);
    return NULL;
}

static void *use_file(void *data)
{
    Race *race = data;
    uint8_t buf[512];

    while (!atomic_load(&race->done)) {
        int fd = atomic_load(&race->fd);

        if (read(fd, buf, sizeof(buf)) < 0 && write(fd, buf, sizeof(buf)) < 0)
            g_usleep(100);
    }
    return NULL;
}

/* Threads of a VMM that disagree: states, the file, and the device's reset. */
static void test_threads(void)
{
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    Race race = {.tb = tb, .fd = -1};
    GThread *states = g_thread_new("states", change_states, &race);
    GThread *file = g_thread_new("file", use_file, &race);

    while (!atomic_load(&race.done)) {
        assert_ok(vmm_device_reset(&tb->dev));
        vmm_config_write(&tb->dev, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
        g_usleep(1000);
    }
    g_thread_join(states);
    g_thread_join(file);
    close(atomic_load(&race.fd));
    migration_reset(tb);
    guest_up(&tb->guest, GUEST_FEATURES);
    assert_round_trip(tb, 1);
}

#define LOG_PAGES (TESTBED_RAM_SIZE / PAGE_BYTES)

/* What was written since the last report, by page of guest RAM. */
static bool *report_dirty(Testbed *tb)
{
    static uint64_t bitmap[LOG_PAGES / 64];
    static bool pages[LOG_PAGES];

    memset(bitmap, 0, sizeof(bitmap));
    assert_ok(vmm_log_report(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE, bitmap));
    for (unsigned i = 0; i < LOG_PAGES; i++)
        pages[i] = bitmap[i / 64] >> i % 64 & 1;
    return pages;
}

/* The same until there is nothing more: the guest sees an answer before the driver says where it
 * has written it. */
static bool *report_all(Testbed *tb)
{
    static bool all[LOG_PAGES];
    bool *pages, is_more;

    memset(all, 0, sizeof(all));
    do {
        pages = report_dirty(tb);
        is_more = false;
        for (unsigned i = 0; i < LOG_PAGES; i++) {
            is_more |= pages[i];
            all[i] |= pages[i];
        }
    } while (is_more);
    return all;
}

static unsigned count_pages(const bool *pages, unsigned first, unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += pages[first + i];
    return sum;
}

/* VFIO's log of written memory: with iommufd VMMs migrate by it. */
static void test_log(void)
{
    enum { FIRST = 2053, WRITABLE = 70, READABLE = 9 };
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    const struct vgpu_mem_entry entries[] = {
        {TESTBED_RAM_IOVA + FIRST * PAGE_BYTES, WRITABLE * PAGE_BYTES},
        {TESTBED_RAM_IOVA + (FIRST + WRITABLE) * PAGE_BYTES, READABLE * PAGE_BYTES}};
    unsigned used = (unsigned)((uint8_t *)tb->guest.queue[CONTROL].used - tb->ram.mem) / PAGE_BYTES;
    uint64_t bitmap[1], offset;
    bool *pages;

    if (!vmm_by_iommufd()) {
        assert_fails(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE), ENOTTY);
        driver_test_skip("type1 tracks written memory by itself");
    }
    assert_fails(vmm_log_stop(&tb->dev), EINVAL);
    assert_fails(vmm_log_report(&tb->dev, TESTBED_RAM_IOVA, 64 * PAGE_BYTES, bitmap), EINVAL);
    assert_ok(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE));
    assert_fails(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE), EINVAL);
    /* Of rings, in which the driver may still ask for doorbells. */
    g_assert_cmpuint(count_pages(report_all(tb), 0, LOG_PAGES), <=, 2);

    /* The driver writes the used ring and the answer. */
    assert_round_trip(tb, 1);
    pages = report_all(tb);
    g_assert_true(pages[used]);
    g_assert_cmpuint(count_pages(pages, 0, LOG_PAGES), <=, 3);

    /* The engine writes whenever it likes, while it can. */
    assert_ok(peer_pin(tb->engine, &entries[0], 1, VGPU_MEM_WRITE, &offset, NULL));
    assert_ok(peer_pin(tb->engine, &entries[1], 1, 0, NULL, NULL));
    for (unsigned i = 0; i < 2; i++) {
        pages = report_dirty(tb);
        g_assert_cmpuint(count_pages(pages, FIRST, WRITABLE), ==, WRITABLE);
        g_assert_cmpuint(count_pages(pages, 0, LOG_PAGES), ==, WRITABLE);
    }
    assert_ok(peer_unpin(tb->engine, offset));
    pages = report_dirty(tb);
    g_assert_cmpuint(count_pages(pages, FIRST, WRITABLE), ==, WRITABLE);
    g_assert_cmpuint(count_pages(pages, 0, LOG_PAGES), ==, WRITABLE);
    g_assert_cmpuint(count_pages(report_dirty(tb), 0, LOG_PAGES), ==, 0);

    /* In parts, which forget nothing of each other. */
    assert_ok(peer_pin(tb->engine, &entries[0], 1, VGPU_MEM_WRITE, NULL, NULL));
    guest_reset(&tb->guest);
    guest_up(&tb->guest, GUEST_FEATURES);
    bitmap[0] = 0;
    assert_ok(vmm_log_report(&tb->dev, entries[0].iova + 3 * PAGE_BYTES, 5 * PAGE_BYTES, bitmap));
    g_assert_cmphex(bitmap[0], ==, 0x1f);
    pages = report_dirty(tb);
    g_assert_cmpuint(count_pages(pages, FIRST, WRITABLE), ==, WRITABLE - 5);
    g_assert_cmpuint(count_pages(pages, FIRST + 3, 5), ==, 0);
    assert_ok(vmm_log_stop(&tb->dev));

    /* One that is not stopped ends with the VMM. */
    assert_ok(vmm_log_start(&tb->dev, TESTBED_RAM_IOVA, TESTBED_RAM_SIZE));
    assert_round_trip(tb, 2);
    testbed_close_vmm(tb);
    testbed_advance(tb, TESTBED_AT_GUEST);
    assert_fails(vmm_log_stop(&tb->dev), EINVAL);
}

/* The VMM ends in each state, with the descriptor open or not, and the next one finds a new device.
 */
static void test_vmm_ends(void)
{
    static const unsigned states[] = {STATE(STOP),        STATE(STOP_COPY), STATE(RESUMING),
                                      STATE(RUNNING_P2P), STATE(PRE_COPY),  STATE(PRE_COPY_P2P)};
    g_autoptr(Testbed) tb = testbed_new(TESTBED_AT_GUEST);
    uint8_t buf[16];

    for (unsigned i = 0; i < G_N_ELEMENTS(states); i++) {
        int fd;

        /* PRE_COPY is the last two's. */
        if (i == 4 && !(vmm_migration_flags(&tb->dev) & VFIO_MIGRATION_PRE_COPY))
            break;
        fd = migration_go_to(tb, states[i]);
        testbed_close_vmm(tb);
        if (fd >= 0) {
            g_assert_cmpint(states[i] == STATE(RESUMING) ? write(fd, buf, 1) : read(fd, buf, 1), ==,
                            -1);
            g_assert_cmpint(errno, ==, ENODEV);
            close(fd);
        }
        testbed_advance(tb, TESTBED_AT_GUEST);
        g_assert_cmpint(vmm_migration_state(&tb->dev), ==, STATE(RUNNING));
        assert_round_trip(tb, i);
    }
}

int main(int argc, char **argv)
{
    driver_test_init(argc, argv);
    driver_test_add("/migration/states", test_states);
    driver_test_add("/migration/stop", test_stop);
    driver_test_add("/migration/moves", test_moves);
    driver_test_add("/migration/stopped-answers", test_stopped_answers);
    driver_test_add("/migration/moves-answers", test_moves_answers);
    driver_test_add("/migration/idle", test_idle);
    driver_test_add("/migration/pre-copy", test_pre_copy);
    driver_test_add("/migration/memory-changes", test_memory_changes);
    driver_test_add("/migration/wrong-target", test_wrong_target);
    driver_test_add("/migration/other-renderer", test_other_renderer);
    driver_test_add("/migration/damaged", test_damaged);
    driver_test_add("/migration/threads", test_threads);
    driver_test_add("/migration/log", test_log);
    driver_test_add("/migration/vmm-ends", test_vmm_ends);
    return driver_test_run();
}
