// SPDX-License-Identifier: MIT
#include "cuda_context.h"

#include "engine.h"
#include "guest_log.h"
#include "host_memory.h"
#include "resource.h"

#include "wire/channel.h"
#include "wire/control.h"
#include "wire/nvml.h"
#include "lib/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Messages of one worker that are read in one go. */
#define RECEIVE_MOST 64

/* A fence on a ring of the guest's; @id 0: none. */
struct wanted {
    uint32_t ring_idx;
    uint64_t id;
};

/**
 * struct share - memory of the worker's, at @address in the program and in the worker
 * @wanted, @answers: a fence that waits until a channel has so many
 */
struct share {
    uint64_t address;
    struct host_memory *memory;
    bool is_channel;
    struct wanted wanted;
    uint64_t answers;
};

/**
 * struct cuda_context
 * @serial: of the context
 * @page: NULL: the guest has not made it yet
 * @question: that the worker has not answered; no kind: there is none
 * @reserved: bytes in engine->shm_bytes for what it asks for, so that no other context takes them
 * @asked: the fence for its reply
 * @last: what was submitted last and not fenced yet; no kind: nothing that takes time
 * @ended: the fence for the worker's end, which the program has asked for
 */
struct cuda_context {
    struct engine *engine;
    uint32_t ctx_id;
    uint64_t serial;
    pid_t pid;
    int socket;
    struct host_memory *page;
    struct control_message question;
    uint64_t reserved;
    struct wanted asked;
    struct control_message last;
    struct wanted ended;
    GHashTable *shares;
};

/**
 * struct child - a worker that has not been reaped
 * @serial: of its context
 * @loans: parts of the VM's memory that it has
 */
struct child {
    uint64_t serial;
    unsigned int loans;
};

void cuda_host_init(struct cuda_host *host)
{
    *host = (struct cuda_host){.children = g_hash_table_new_full(NULL, NULL, NULL, g_free)};
}

void cuda_host_clear(struct cuda_host *host)
{
    g_hash_table_destroy(host->children);
    g_strfreev(host->environment);
}

void cuda_host_offer(struct cuda_host *host, const struct cuda_worker *program)
{
    host->program = *program;
    host->environment = cuda_worker_environment();
}

void cuda_host_add(struct cuda_host *host, pid_t pid, uint64_t serial)
{
    struct child *child = g_new0(struct child, 1);

    child->serial = serial;
    g_hash_table_insert(host->children, GINT_TO_POINTER(pid), child);
}

bool cuda_host_knows(const struct cuda_host *host, pid_t pid)
{
    return g_hash_table_contains(host->children, GINT_TO_POINTER(pid));
}

bool cuda_host_reaped(struct cuda_host *host, pid_t pid)
{
    return g_hash_table_remove(host->children, GINT_TO_POINTER(pid));
}

bool cuda_host_has(const struct cuda_host *host, uint64_t serial)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, host->children);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct child *child = value;

        if (child->serial == serial)
            return true;
    }
    return false;
}

static unsigned int count_loans(const struct cuda_host *host)
{
    GHashTableIter iter;
    unsigned int loans = 0;
    void *value;

    g_hash_table_iter_init(&iter, host->children);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        loans += ((const struct child *)value)->loans;
    return loans;
}

unsigned int cuda_host_kill(const struct cuda_host *host, unsigned int *borrowers)
{
    GHashTableIter iter;
    unsigned int having = 0;
    void *pid, *value;

    g_hash_table_iter_init(&iter, host->children);
    while (g_hash_table_iter_next(&iter, &pid, &value)) {
        kill(GPOINTER_TO_INT(pid), SIGKILL);
        having += ((const struct child *)value)->loans > 0;
    }
    if (borrowers)
        *borrowers = having;
    return g_hash_table_size(host->children);
}

/* The driver makes files of guest memory for vGPUs of a type with CUDA alone. */
void cuda_context_fill_caps(const struct engine *engine, void *caps)
{
    bool has_files = engine->info.features & VGPU_FEATURE_EXPORT && engine->info.cuda;
    const struct control_caps is = {
        .magic = CONTROL_MAGIC,
        .major = CONTROL_MAJOR,
        .minor = CONTROL_MINOR,
        .window = engine->info.window_bytes,
        .flags = has_files ? CONTROL_CAPS_GUEST_MEMORY : 0,
    };

    G_STATIC_ASSERT(sizeof(is) == 256);
    memcpy(caps, &is, sizeof(is));
}

static void signal_fence(struct cuda_context *cuda, struct wanted *wanted)
{
    if (wanted->id)
        fence_signal_ring(&cuda->engine->fences, cuda->ctx_id, wanted->ring_idx, wanted->id, -1);
    wanted->id = 0;
}

static void signal_answers(struct cuda_context *cuda, struct share *share)
{
    cuda->engine->cuda.waits -= share->wanted.id != 0;
    signal_fence(cuda, &share->wanted);
}

static void share_free(void *data)
{
    struct share *share = data;

    share->memory->engine->cuda.waits -= share->wanted.id != 0;
    host_memory_leave(share->memory);
    g_free(share);
}

struct cuda_context *cuda_context_new(struct engine *engine, uint32_t ctx_id, uint64_t serial,
                                      int *connection)
{
    struct cuda_host *host = &engine->cuda;
    struct cuda_context *cuda;
    pid_t pid;
    int socket = cuda_worker_start(&host->program, host->environment, &pid);

    if (socket < 0) {
        guest_warning("context %u: CUDA's worker cannot be started: %s", ctx_id, g_strerror(errno));
        return NULL;
    }
    cuda_host_add(host, pid, serial);
    *connection = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (*connection < 0) {
        guest_warning("context %u: CUDA's worker cannot be watched: %s", ctx_id, g_strerror(errno));
        kill(pid, SIGKILL);
        close(socket);
        return NULL;
    }
    cuda = g_new0(struct cuda_context, 1);
    cuda->engine = engine;
    cuda->ctx_id = ctx_id;
    cuda->serial = serial;
    cuda->pid = pid;
    cuda->socket = socket;
    cuda->shares = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, share_free);
    return cuda;
}

static void end_reservation(struct cuda_context *cuda)
{
    cuda->engine->shm_bytes -= cuda->reserved;
    cuda->reserved = 0;
}

/* The driver gives back what a process had when it ends, whatever it does now. */
void cuda_context_free(struct cuda_context *cuda)
{
    if (cuda_host_knows(&cuda->engine->cuda, cuda->pid))
        kill(cuda->pid, SIGKILL);
    close(cuda->socket);
    end_reservation(cuda);
    g_hash_table_destroy(cuda->shares);
    host_memory_leave(cuda->page);
    g_free(cuda);
}

static struct share *find_channel(struct cuda_context *cuda, uint64_t address)
{
    struct share *share = g_hash_table_lookup(cuda->shares, &address);

    return share && share->is_channel ? share : NULL;
}

/* Guest and worker write there, too: each word is read or written once. */
static struct channel_worker *worker_of(const struct share *channel)
{
    return &((struct channel_shared *)channel->memory->at)->worker;
}

static void wake_channel(struct cuda_context *cuda, uint64_t address)
{
    const struct share *channel = find_channel(cuda, address);

    if (!channel)
        return;
    atomic_store(&worker_of(channel)->state, CHANNEL_AWAKE);
    syscall(SYS_futex, &worker_of(channel)->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* To the question, or in the place of the worker's. */
static void give_reply(struct cuda_context *cuda, const void *reply, size_t bytes)
{
    struct control_page *page = cuda->page ? cuda->page->at : NULL;

    if (page) {
        memcpy(page->reply, reply, bytes);
        page->replies++;
    }
    cuda->question.kind = 0;
    signal_fence(cuda, &cuda->asked);
}

/* Of memory that the worker makes for it. */
static uint64_t bytes_of(const struct control_message *message)
{
    if (message->kind == CONTROL_CHANNEL)
        return sizeof(struct channel_shared);
    return message->kind == CONTROL_SHARE_NEW ? message->bytes : 0;
}

static int ask_worker(struct cuda_context *cuda, const struct control_message *message,
                      size_t bytes)
{
    const struct control_reply full = {CONTROL_MAGIC, CONTROL_NO_MEMORY, 0};

    if (cuda->question.kind)
        return -EINVAL;
    if (!host_memory_has_room(cuda->engine, bytes_of(message))) {
        give_reply(cuda, &full, sizeof(full));
        return 0;
    }
    if (send(cuda->socket, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)bytes)
        return -EPIPE;
    cuda->question = cuda->last = *message;
    cuda->reserved = bytes_of(message);
    cuda->engine->shm_bytes += cuda->reserved;
    return 0;
}

/* The worker has one part more of the VM's memory, or one less. */
static void count_loan(struct cuda_context *cuda, struct resource *resource, bool is_borrowed)
{
    struct child *child =
        g_hash_table_lookup(cuda->engine->cuda.children, GINT_TO_POINTER(cuda->pid));

    if (resource->is_borrowed == is_borrowed)
        return;
    resource->is_borrowed = is_borrowed;
    if (child)
        child->loans += is_borrowed ? 1u : -1u;
}

/* Opens what the program wants to lend. 0, or why it is not to be had. */
static int open_lent(struct cuda_context *cuda, const struct control_message *message,
                     struct resource **resource, int *fd)
{
    struct vgpu_transport *transport = cuda->engine->transport;
    const struct backing *backing;

    *resource = resource_find_lent(cuda->engine, cuda->serial, message->address);
    if (!*resource || (*resource)->is_borrowed)
        return -ENOENT;
    if (count_loans(&cuda->engine->cuda) >= CUDA_LOANS_MAX)
        return -ENOMEM;
    backing = &(*resource)->backing;
    if (backing->iov.iov_len != message->bytes || (*resource)->size != message->bytes)
        return -EINVAL;
    return transport->ops->export(transport, cuda->engine->epoch, backing->pin_offset, fd);
}

/* From the moment on when it is sent, the worker has it. */
static int lend_memory(struct cuda_context *cuda, const struct control_message *message)
{
    struct control_reply none = {CONTROL_MAGIC, CONTROL_NO_MEMORY, 0};
    struct resource *resource;
    ssize_t sent;
    int fd, ret;

    if (cuda->question.kind)
        return -EINVAL;
    ret = open_lent(cuda, message, &resource, &fd);
    if (ret < 0) {
        none.result = ret == -EOPNOTSUPP ? CONTROL_REFUSED : CONTROL_NO_MEMORY;
        give_reply(cuda, &none, sizeof(none));
        return 0;
    }
    sent = descriptor_send(cuda->socket, message, sizeof(*message), MSG_DONTWAIT, &fd, 1);
    close(fd);
    if (sent != (ssize_t)sizeof(*message))
        return -EPIPE;
    count_loan(cuda, resource, true);
    cuda->question = cuda->last = *message;
    return 0;
}

int cuda_context_submit(struct cuda_context *cuda, const void *data, size_t bytes, bool *dismissed)
{
    struct control_page *page = cuda->page ? cuda->page->at : NULL;
    const struct control_message *message = data;
    size_t wanted = sizeof(*message);

    if (page)
        page->taken++;
    cuda->last.kind = 0;
    if (bytes < sizeof(*message) || message->magic != CONTROL_MAGIC)
        return -EINVAL;
    if (message->kind == CONTROL_HELLO)
        wanted = sizeof(struct control_hello);
    if (bytes != wanted)
        return -EINVAL;
    switch (message->kind) {
    case CONTROL_HELLO:
    case CONTROL_CHANNEL:
    case CONTROL_CHANNEL_END:
    case CONTROL_SHARE_NEW:
    case CONTROL_SHARE_END:
    case CONTROL_NVML:
        return ask_worker(cuda, message, bytes);
    case CONTROL_SHARE_GUEST:
        return lend_memory(cuda, message);
    case CONTROL_WAKE:
        wake_channel(cuda, message->address);
        return 0;
    case CONTROL_WAIT:
        cuda->last = *message;
        return 0;
    case CONTROL_END:
        cuda->last = *message;
        *dismissed = true;
        shutdown(cuda->socket, SHUT_WR);
        return 0;
    default:
        return -EINVAL;
    }
}

/*
 * The client has said that it sleeps before it asks for this, and the worker looks at that after
 * it has counted its answer. So either the count is seen here, or the worker sends a message.
 */
static void await_answers(struct cuda_context *cuda, struct wanted wanted)
{
    struct share *channel = find_channel(cuda, cuda->last.address);

    if (channel)
        signal_answers(cuda, channel);
    if (!channel || cuda->engine->cuda.waits >= CUDA_WAITS_MAX ||
        atomic_load(&worker_of(channel)->done) >= cuda->last.bytes) {
        signal_fence(cuda, &wanted);
        return;
    }
    channel->wanted = wanted;
    cuda->engine->cuda.waits++;
}

/* Ring 0 is the engine's own (hold.h), for which there is nothing to wait. */
void cuda_context_fence(struct cuda_context *cuda, uint32_t ring_idx, uint64_t id)
{
    struct wanted wanted = {ring_idx, id};
    uint32_t kind = ring_idx ? cuda->last.kind : 0;

    if (kind == CONTROL_WAIT)
        await_answers(cuda, wanted);
    else if (kind == CONTROL_END)
        cuda->ended = wanted;
    else if (kind && cuda->question.kind)
        cuda->asked = wanted;
    else
        signal_fence(cuda, &wanted);
    if (ring_idx)
        cuda->last.kind = 0;
}

struct host_memory *cuda_context_blob(struct cuda_context *cuda, uint64_t blob_id, uint64_t size)
{
    const struct share *share;

    if (blob_id == CONTROL_PAGE_BLOB) {
        if (size != ENGINE_PAGE_SIZE || cuda->page)
            return NULL;
        cuda->page = host_memory_new(cuda->engine, size);
        if (!cuda->page)
            return NULL;
        ((struct control_page *)cuda->page->at)->alive = CONTROL_MAGIC;
        return host_memory_use(cuda->page);
    }
    share = g_hash_table_lookup(cuda->shares, &blob_id);
    return share && share->memory->bytes == size ? host_memory_use(share->memory) : NULL;
}

/* False: what the worker says that it has made is no such memory. */
static bool take_memory(struct cuda_context *cuda, int fd)
{
    const struct control_message *question = &cuda->question;
    struct host_memory *memory =
        fd >= 0 ? host_memory_adopt(cuda->engine, fd, bytes_of(question)) : NULL;
    struct share *share;

    if (!memory)
        return false;
    share = g_new0(struct share, 1);
    *share = (struct share){.address = question->address,
                            .memory = memory,
                            .is_channel = question->kind == CONTROL_CHANNEL};
    g_hash_table_replace(cuda->shares, &share->address, share);
    return true;
}

static void end_share(struct cuda_context *cuda, uint64_t address)
{
    struct share *share = g_hash_table_lookup(cuda->shares, &address);

    if (!share)
        return;
    signal_answers(cuda, share);
    g_hash_table_remove(cuda->shares, &address);
}

static size_t reply_bytes(uint32_t kind)
{
    switch (kind) {
    case CONTROL_HELLO:
        return sizeof(struct control_welcome);
    case CONTROL_NVML:
        return sizeof(struct nvml_answer);
    default:
        return sizeof(struct control_reply);
    }
}

/* False: the worker broke the rules. */
static bool take_reply(struct cuda_context *cuda, const struct control_reply *reply, size_t bytes,
                       int fd)
{
    uint32_t kind = cuda->question.kind;
    uint64_t address = cuda->question.address;
    bool is_ok = reply->result == CONTROL_OK;
    struct resource *lent = NULL;

    if (!kind || bytes != reply_bytes(kind))
        return false;
    end_reservation(cuda);
    if (is_ok && (kind == CONTROL_CHANNEL || kind == CONTROL_SHARE_NEW) && !take_memory(cuda, fd))
        return false;
    if (is_ok && (kind == CONTROL_CHANNEL_END || kind == CONTROL_SHARE_END))
        end_share(cuda, address);
    if (is_ok ? kind == CONTROL_SHARE_END : kind == CONTROL_SHARE_GUEST)
        lent = resource_find_lent(cuda->engine, cuda->serial, address);
    if (lent)
        count_loan(cuda, lent, false);
    give_reply(cuda, reply, bytes);
    return true;
}

static bool take_message(struct cuda_context *cuda, const struct control_reply *reply, size_t bytes,
                         int fd)
{
    struct share *channel;

    if (bytes < sizeof(*reply) || reply->magic != CONTROL_MAGIC)
        return false;
    if (reply->result != CONTROL_ANSWERED)
        return take_reply(cuda, reply, bytes, fd);
    channel = find_channel(cuda, reply->value);
    if (channel)
        signal_answers(cuda, channel);
    return true;
}

bool cuda_context_receive(struct cuda_context *cuda)
{
    bool ok = true;

    for (int i = 0; ok && i < RECEIVE_MOST; i++) {
        uint64_t buffer[CONTROL_REPLY_MOST / sizeof(uint64_t)];
        int fd;
        ssize_t got =
            descriptor_receive(cuda->socket, buffer, sizeof(buffer), MSG_DONTWAIT, &fd, 1);

        if (got < 0 && errno == EAGAIN)
            return true;
        /* A message without a byte may have a file, too. */
        ok = got > 0 && take_message(cuda, (const struct control_reply *)buffer, (size_t)got, fd);
        if (fd >= 0)
            close(fd);
    }
    return ok;
}

void cuda_context_fail(struct cuda_context *cuda, bool dismissed)
{
    struct control_page *page = cuda->page ? cuda->page->at : NULL;
    GHashTableIter iter;
    void *share;

    if (page)
        page->alive = 0;
    if (!dismissed)
        return;
    g_hash_table_iter_init(&iter, cuda->shares);
    while (g_hash_table_iter_next(&iter, NULL, &share))
        signal_answers(cuda, share);
    signal_fence(cuda, &cuda->asked);
    signal_fence(cuda, &cuda->ended);
}
