// SPDX-License-Identifier: MIT
#include "fake_driver.h"

#include "parking.h"
#include "queue.h"
#include "uapi_check.h"
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

struct chain {
    uint32_t token;
    size_t response_size;
    GBytes *request;
};

static struct fake_driver *fake_of(struct vgpu_transport *transport)
{
    return (struct fake_driver *)transport;
}

static void chain_free(void *data)
{
    struct chain *chain = data;

    g_bytes_unref(chain->request);
    g_free(chain);
}

static int fake_info(struct vgpu_transport *transport, struct vgpu_engine_info *info)
{
    *info = fake_of(transport)->info;
    return 0;
}

static int fake_attach(struct vgpu_transport *transport G_GNUC_UNUSED)
{
    return 0;
}

static int fake_ready(struct vgpu_transport *transport G_GNUC_UNUSED,
                      uint32_t num_capsets G_GNUC_UNUSED, uint64_t renderer G_GNUC_UNUSED)
{
    return 0;
}

static int fake_reset_done(struct vgpu_transport *transport, uint64_t epoch)
{
    struct fake_driver *driver = fake_of(transport);

    if (driver->reset_result)
        return -driver->reset_result;
    g_assert_cmpuint(epoch + 1, ==, driver->info.epoch);
    driver->reset_dones++;
    return 0;
}

static int fake_push(struct vgpu_transport *transport, uint64_t epoch, uint32_t queue G_GNUC_UNUSED,
                     uint32_t token, const void *response, size_t size, int connection)
{
    struct fake_driver *driver = fake_of(transport);
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&driver->lock);
    GByteArray *answer;

    if (worker_is_gone(connection))
        return -EPIPE;
    if (epoch != driver->info.epoch)
        return -ESTALE;
    g_assert_cmpuint(token, >, 0);
    g_assert_cmpuint(token, <=, driver->last_token);
    g_assert_null(g_hash_table_lookup(driver->answers, GUINT_TO_POINTER(token)));

    answer = g_byte_array_new();
    g_byte_array_append(answer, response, (guint)size);
    g_hash_table_insert(driver->answers, GUINT_TO_POINTER(token), answer);
    return 0;
}

/* Takes the first chain of a queue if it fits. False: no more from this queue. */
static bool take_chain(struct fake_driver *driver, uint32_t queue, struct vgpu_queue_exchange *x,
                       uint64_t *used)
{
    struct vgpu_queue_request *requests = (void *)(uintptr_t)x->requests;
    struct chain *chain = g_queue_peek_head(&driver->chains[queue]);
    uint64_t left = x->buf_size - *used;
    size_t size = chain ? g_bytes_get_size(chain->request) : 0;

    if (!chain)
        return false;
    if (size > left && !((x->flags & VGPU_EXCHANGE_TRUNCATE) && x->nrequests == 0)) {
        x->wanted = size;
        return false;
    }
    requests[x->nrequests++] = (struct vgpu_queue_request){
        .queue = queue,
        .token = chain->token,
        .offset = *used,
        .request_size = size,
        .response_size = chain->response_size,
    };
    if (size)
        memcpy((uint8_t *)(uintptr_t)x->buf + *used, g_bytes_get_data(chain->request, NULL),
               MIN(size, left));
    *used += MIN(size, left);
    chain_free(g_queue_pop_head(&driver->chains[queue]));
    return true;
}

static void take_chains(struct fake_driver *driver, struct vgpu_queue_exchange *x)
{
    uint32_t queues = x->queues, room = x->nrequests;
    uint64_t used = 0;

    x->queues = x->nrequests = 0;
    for (uint32_t queue = 0; queue < VGPU_NUM_QUEUES; queue++) {
        if (!(queues & (1u << queue)))
            continue;
        while (x->nrequests < room && take_chain(driver, queue, x, &used)) {
            /* The next. */
        }
        if (x->nrequests == room || x->wanted)
            x->queues |= 1u << queue;
    }
}

static int take_requests(struct fake_driver *driver, struct vgpu_queue_exchange *x)
{
    int ret = driver->next_event && (x->flags & VGPU_EXCHANGE_EVENTS)
                  ? driver->next_event(driver, &x->event)
                  : -EAGAIN;

    if (ret < 0 && ret != -EAGAIN)
        return ret;
    if (x->epoch == driver->info.epoch) {
        x->queues |= x->event.queues;
        take_chains(driver, x);
    } else {
        x->state |= VGPU_EXCHANGE_STALE;
        x->nrequests = 0;
    }
    return 0;
}

bool fake_driver_sleep(struct fake_driver *driver, struct vgpu_queue_exchange *x)
{
    struct pollfd fds[] = {
        {.fd = driver->base.fd, .events = POLLIN},
        {.fd = x->wait_fd, .events = POLLIN},
    };

    if (!x->wait_ms || x->nrequests || x->wanted || x->event.events)
        return false;
    if (poll(fds, G_N_ELEMENTS(fds), (int)x->wait_ms) > 0 && fds[1].revents)
        x->state |= VGPU_EXCHANGE_WOKEN;
    return true;
}

static int fake_exchange(struct vgpu_transport *transport, struct vgpu_queue_exchange *x)
{
    struct vgpu_queue_answer *answers = (void *)(uintptr_t)x->answers;
    struct fake_driver *driver = fake_of(transport);
    uint32_t room = x->nrequests;
    int ret;

    x->argsz = sizeof(*x);
    g_assert_cmpint(vgpu_check_exchange(x), ==, 0);
    for (uint32_t i = 0; i < x->nanswers; i++)
        answers[i].result =
            transport->ops->push(transport, x->epoch, answers[i].queue, answers[i].token,
                                 (void *)(uintptr_t)answers[i].buf, answers[i].size, -1);
    ret = take_requests(driver, x);
    if (ret == 0 && fake_driver_sleep(driver, x)) {
        x->nrequests = room;
        ret = take_requests(driver, x);
    }
    return ret;
}

static int fake_pin(struct vgpu_transport *transport, uint64_t epoch,
                    const struct vgpu_mem_entry *entries, uint32_t nentries, uint64_t *size,
                    uint64_t *offset)
{
    struct fake_driver *driver = fake_of(transport);
    struct fake_range *range;

    g_assert_cmpuint(epoch, ==, driver->info.epoch);
    g_assert_cmpuint(nentries, >, 0);
    if (driver->pin_result)
        return -driver->pin_result;

    range = g_new0(struct fake_range, 1);
    range->iova = entries[0].iova;
    for (uint32_t i = 0; i < nentries; i++) {
        g_assert_cmpuint(entries[i].size % ENGINE_PAGE_SIZE, ==, 0);
        g_assert_cmpuint(entries[i].iova % ENGINE_PAGE_SIZE, ==, 0);
        range->size += entries[i].size;
    }
    driver->next_pin += 1ull << 32;
    range->offset = driver->next_pin;
    g_hash_table_insert(driver->pins, &range->offset, range);
    *size = range->size;
    *offset = range->offset;
    return 0;
}

static int fake_unpin(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset)
{
    struct fake_driver *driver = fake_of(transport);

    if (epoch != driver->info.epoch)
        return -ESTALE;
    g_assert_true(g_hash_table_remove(driver->pins, &offset));
    return 0;
}

static int fake_export(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset, int *fd)
{
    struct fake_driver *driver = fake_of(transport);
    const struct fake_range *range = g_hash_table_lookup(driver->pins, &offset);

    g_assert_cmpuint(epoch, ==, driver->info.epoch);
    g_assert_nonnull(range);
    *fd = driver->export ? driver->export(driver, range) : -EOPNOTSUPP;
    return MIN(*fd, 0);
}

static int map_picture(struct fake_driver *driver, uint64_t size, void **addr)
{
    g_assert_cmpuint(size, ==, VGPU_PICTURE_SIZE);
    if (driver->picture_result)
        return -driver->picture_result;
    g_assert_null(driver->picture);
    driver->picture = mmap(NULL, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *addr = driver->picture;
    return driver->picture == MAP_FAILED ? -ENOMEM : 0;
}

static int fake_display(struct vgpu_transport *transport, struct vgpu_display *display)
{
    if (!fake_of(transport)->info.num_scanouts)
        return -ENODEV;
    *display = fake_of(transport)->display;
    return 0;
}

static int fake_set_scanout(struct vgpu_transport *transport, struct vgpu_scanout *scanout)
{
    struct fake_driver *driver = fake_of(transport);

    if (scanout->epoch != driver->info.epoch)
        return -ESTALE;
    scanout->argsz = sizeof(*scanout);
    g_assert_cmpint(vgpu_check_scanout(scanout), ==, 0);
    g_assert_cmpuint(driver->info.num_scanouts, ==, 1);
    if (driver->scanout_result)
        return -driver->scanout_result;
    driver->scanout = *scanout;
    driver->scanouts++;
    return 0;
}

static int fake_map(struct vgpu_transport *transport, uint64_t offset, uint64_t size, void **addr)
{
    if (offset == VGPU_PICTURE_OFFSET)
        return map_picture(fake_of(transport), size, addr);
    g_assert_nonnull(g_hash_table_lookup(fake_of(transport)->pins, &offset));
    *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return *addr == MAP_FAILED ? -ENOMEM : 0;
}

static void fake_unmap(struct vgpu_transport *transport, void *addr, uint64_t size)
{
    if (addr == fake_of(transport)->picture)
        fake_of(transport)->picture = NULL;
    munmap(addr, size);
}

static bool range_overlaps(const struct fake_driver *driver, uint64_t offset, uint64_t size)
{
    const struct fake_range *range;
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, driver->published);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        range = value;
        if (offset < range->offset + range->size && range->offset < offset + size)
            return true;
    }
    return false;
}

static int fake_publish(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset,
                        uint64_t size, void *addr)
{
    struct fake_driver *driver = fake_of(transport);
    struct fake_range *range;

    g_assert_cmpuint(epoch, ==, driver->info.epoch);
    g_assert_cmpuint(size, >, 0);
    g_assert_cmpuint((offset | size | (uintptr_t)addr) % ENGINE_PAGE_SIZE, ==, 0);
    g_assert_cmpuint(offset + size, <=, driver->info.window_bytes);
    if (driver->publish_result)
        return -driver->publish_result;
    /* As the driver does: a guest may ask for one place twice. */
    if (range_overlaps(driver, offset, size))
        return -EEXIST;

    range = g_new0(struct fake_range, 1);
    *range = (struct fake_range){.offset = offset, .size = size, .addr = addr};
    g_assert_true(g_hash_table_insert(driver->published, &range->offset, range));
    return 0;
}

static int fake_unpublish(struct vgpu_transport *transport, uint64_t epoch, uint64_t offset,
                          uint64_t size)
{
    struct fake_driver *driver = fake_of(transport);
    const struct fake_range *range;

    if (epoch != driver->info.epoch)
        return -ESTALE;
    range = g_hash_table_lookup(driver->published, &offset);
    g_assert_nonnull(range);
    g_assert_cmpuint(range->size, ==, size);
    g_hash_table_remove(driver->published, &offset);
    return 0;
}

static int fake_fail(struct vgpu_transport *transport, const char *reason)
{
    g_free(fake_of(transport)->failure);
    fake_of(transport)->failure = g_strdup(reason);
    return 0;
}

static int fake_state_save(struct vgpu_transport *transport, uint64_t epoch, const void *state,
                           size_t size)
{
    struct fake_driver *driver = fake_of(transport);

    g_assert_cmpuint(epoch, ==, driver->info.epoch);
    if (size > VGPU_STATE_MAX)
        return -EMSGSIZE;
    g_clear_pointer(&driver->saved, g_byte_array_unref);
    driver->saved = g_byte_array_append(g_byte_array_new(), state, (guint)size);
    return 0;
}

static int fake_state_load(struct vgpu_transport *transport, uint64_t epoch, void *state,
                           uint64_t *size)
{
    struct fake_driver *driver = fake_of(transport);
    uint64_t room = *size;

    g_assert_cmpuint(epoch, ==, driver->info.epoch);
    if (!driver->to_load)
        return -ENOENT;
    *size = g_bytes_get_size(driver->to_load);
    if (room < *size)
        return -EMSGSIZE;
    memcpy(state, g_bytes_get_data(driver->to_load, NULL), *size);
    g_clear_pointer(&driver->to_load, g_bytes_unref);
    return 0;
}

static const struct vgpu_transport_ops fake_ops = {
    .info = fake_info,
    .attach = fake_attach,
    .ready = fake_ready,
    .reset_done = fake_reset_done,
    .exchange = fake_exchange,
    .push = fake_push,
    .pin = fake_pin,
    .unpin = fake_unpin,
    .export = fake_export,
    .map = fake_map,
    .unmap = fake_unmap,
    .publish = fake_publish,
    .unpublish = fake_unpublish,
    .display = fake_display,
    .set_scanout = fake_set_scanout,
    .fail = fake_fail,
    .state_save = fake_state_save,
    .state_load = fake_state_load,
};

static void answer_free(void *answer)
{
    g_byte_array_unref(answer);
}

void fake_driver_init(struct fake_driver *driver)
{
    memset(driver, 0, sizeof(*driver));
    driver->base.ops = &fake_ops;
    driver->base.fd = -1;
    driver->info.api_version = VGPU_API_VERSION;
    driver->info.state = VGPU_STATE_OPEN;
    driver->info.epoch = 7;
    driver->info.window_bytes = 1u << 20;
    driver->info.vram_bytes = 1u << 30;
    driver->info.num_queues = VGPU_NUM_QUEUES;
    driver->display.state = VGPU_DISPLAY_CONNECTED;
    driver->display.max_width = VGPU_PICTURE_MAX_WIDTH;
    driver->display.max_height = VGPU_PICTURE_MAX_HEIGHT;
    g_mutex_init(&driver->lock);
    driver->answers = g_hash_table_new_full(NULL, NULL, NULL, answer_free);
    driver->pins = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    driver->published = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
}

void fake_driver_clear(struct fake_driver *driver)
{
    g_assert_null(driver->picture);
    for (uint32_t i = 0; i < VGPU_NUM_QUEUES; i++)
        g_queue_clear_full(&driver->chains[i], chain_free);
    g_hash_table_destroy(driver->answers);
    g_hash_table_destroy(driver->pins);
    g_hash_table_destroy(driver->published);
    g_mutex_clear(&driver->lock);
    g_free(driver->failure);
    g_clear_pointer(&driver->saved, g_byte_array_unref);
    g_clear_pointer(&driver->to_load, g_bytes_unref);
}

uint32_t fake_driver_send(struct fake_driver *driver, uint32_t queue, const void *request,
                          size_t size, size_t response_size)
{
    struct chain *chain = g_new0(struct chain, 1);

    chain->token = ++driver->last_token;
    chain->response_size = response_size;
    chain->request = g_bytes_new(request, size);
    g_queue_push_tail(&driver->chains[queue], chain);
    return chain->token;
}

const GByteArray *fake_driver_answer(struct fake_driver *driver, uint32_t token)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&driver->lock);

    return g_hash_table_lookup(driver->answers, GUINT_TO_POINTER(token));
}

int queue_run(struct engine *engine, uint32_t queue, unsigned int budget)
{
    struct queue_turn turn = {0};

    if (queue == VGPU_QUEUE_CONTROL && fence_released(&engine->fences))
        parking_run(engine);
    for (; budget > 0; budget -= MIN(budget, MAX(turn.count, 1))) {
        turn = (struct queue_turn){.queues = 1u << queue, .room = MIN(budget, VGPU_EXCHANGE_MAX)};
        g_assert_cmpint(queue_take(engine, &turn), ==, 0);
        if (turn.state & VGPU_EXCHANGE_STALE)
            return -ESTALE;
        queue_handle(engine, &turn);
        fence_flush(&engine->fences, engine->epoch);
        if (!turn.queues)
            return 0;
    }
    return 1;
}

unsigned int fake_driver_waiting(struct fake_driver *driver)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&driver->lock);

    return driver->last_token - g_hash_table_size(driver->answers);
}
