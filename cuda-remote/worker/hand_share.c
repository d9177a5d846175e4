// SPDX-License-Identifier: MIT
/*
 * Memory and pools that go to other programs of the slice. A file descriptor of the driver's is a
 * way to the GPU, which no program gets: it stays here, and the program passes on a token. The
 * worker of the program that gets the token asks this one for the descriptor, over a socket whose
 * name is in the token. Both are of one user: a slice's; and a slice's unit has a network namespace
 * of its own.
 */
#include "lib/descriptor.h"
#include "hand.h"
#include "worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "numbers.h"

#define SHARES_MOST 1024u
#define PATIENCE_S  2 /* for the other worker */

enum { KIND_DESCRIPTOR = 1 }; /* CUmemAllocationHandleType; all others are of other systems */

struct share {
    struct hand_token token;
    unsigned int type;
    uint64_t object;
    int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct share shares[SHARES_MOST];
static unsigned int count;
static uint8_t own[16]; /* this worker's name */
static bool is_serving;

static void name_socket(const uint8_t *worker, struct sockaddr_un *address, socklen_t *bytes)
{
    static const char prefix[] = "vgpu-cuda-worker-";

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, prefix, sizeof(prefix) - 1);
    memcpy(address->sun_path + sizeof(prefix), worker, sizeof(own));
    *bytes = offsetof(struct sockaddr_un, sun_path) + sizeof(prefix) + sizeof(own);
}

static bool is_of_own_user(int socket)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);

    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == getuid();
}

static bool limit_patience(int socket)
{
    const struct timeval most = {.tv_sec = PATIENCE_S};

    return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0 &&
           setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) == 0;
}

/* A descriptor of ours, which the caller closes; -1: there is none for it. */
static int find_shared(const struct hand_token *token)
{
    int fd = -1;

    share_forget_ended();
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count && fd < 0; i++)
        if (!memcmp(&shares[i].token, token, sizeof(*token)))
            fd = fcntl(shares[i].fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

static void *serve_others(void *data)
{
    int listening = (int)(intptr_t)data;

    for (;;) {
        int other = accept4(listening, NULL, NULL, SOCK_CLOEXEC), fd = -1;
        struct hand_token token;

        /* No more files, for a while. */
        if (other < 0) {
            usleep(10000);
            continue;
        }
        if (is_of_own_user(other) && limit_patience(other) &&
            recv(other, &token, sizeof(token), 0) == (ssize_t)sizeof(token))
            fd = find_shared(&token);
        if (fd >= 0) {
            descriptor_send(other, "", 1, 0, &fd, 1);
            close(fd);
        }
        close(other);
    }
    return NULL;
}

/* With the lock held. */
static bool begin_serving(void)
{
    struct sockaddr_un address;
    pthread_t thread;
    socklen_t bytes;
    int listening;

    if (is_serving)
        return true;
    if (getrandom(own, sizeof(own), 0) != (ssize_t)sizeof(own))
        return false;
    listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    name_socket(own, &address, &bytes);
    is_serving = listening >= 0 && bind(listening, (const struct sockaddr *)&address, bytes) == 0 &&
                 listen(listening, 16) == 0 &&
                 pthread_create(&thread, NULL, serve_others, (void *)(intptr_t)listening) == 0;
    if (is_serving)
        pthread_detach(thread);
    else if (listening >= 0)
        close(listening);
    return is_serving;
}

/* @fd is taken. False: there is no room. */
static bool add_share(int fd, unsigned int type, uint64_t object, struct hand_token *token)
{
    struct share share = {.type = type, .object = object, .fd = fd};
    bool ok;

    share_forget_ended();
    pthread_mutex_lock(&lock);
    ok = count < SHARES_MOST && begin_serving() &&
         getrandom(share.token.secret, sizeof(share.token.secret), 0) ==
             (ssize_t)sizeof(share.token.secret);
    if (ok) {
        share.token.magic = HAND_TOKEN_MAGIC;
        memcpy(share.token.worker, own, sizeof(own));
        *token = share.token;
        shares[count++] = share;
    }
    pthread_mutex_unlock(&lock);
    if (!ok)
        close(fd);
    return ok;
}

void share_forget_ended(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = count; i-- > 0;) {
        void *real;

        if (object_find(shares[i].type, shares[i].object, &real))
            continue;
        close(shares[i].fd);
        shares[i] = shares[--count];
    }
    pthread_mutex_unlock(&lock);
}

CUresult hand_export(struct request *request)
{
    CUresult (*export)(int *, void *, unsigned int, unsigned long long) =
        driver_function(request->number);
    const struct hand_share *head = (const void *)request->head;
    unsigned int type = request->number == CALL_cuMemPoolExportToShareableHandle
                            ? OBJECT_CUmemoryPool
                            : OBJECT_CUmemGenericAllocationHandle;
    struct hand_token *token = request_answer(request, sizeof(*token));
    CUresult result;
    void *real;
    int fd = -1;

    if (request->head_bytes < sizeof(*head) || !token || !export)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!object_find(type, head->object, &real) || !real)
        return CUDA_ERROR_INVALID_VALUE;
    if (head->type != KIND_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    result = export(&fd, real, head->type, head->flags);
    if (result != CUDA_SUCCESS)
        return result;
    return add_share(fd, type, head->object, token) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static int ask_other(const struct hand_token *token)
{
    int other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd = -1;
    struct sockaddr_un address;
    socklen_t bytes;
    char none;

    if (other < 0)
        return -1;
    name_socket(token->worker, &address, &bytes);
    if (limit_patience(other) && connect(other, (const struct sockaddr *)&address, bytes) == 0 &&
        is_of_own_user(other) &&
        send(other, token, sizeof(*token), MSG_NOSIGNAL) == (ssize_t)sizeof(*token))
        descriptor_receive(other, &none, sizeof(none), 0, &fd, 1);
    close(other);
    return fd;
}

static CUresult import_object(struct request *request, const struct hand_share *head, int fd,
                              void **made)
{
    void *function = driver_function(request->number), *os = (void *)(intptr_t)fd;

    if (!function)
        return CUDA_ERROR_NOT_SUPPORTED;
    return request->number == CALL_cuMemPoolImportFromShareableHandle
               ? ((CUresult(*)(void **, void *, unsigned int, unsigned long long))function)(
                     made, os, head->type, head->flags)
               : ((CUresult(*)(void **, void *, unsigned int))function)(made, os, head->type);
}

CUresult hand_import(struct request *request)
{
    const struct hand_share *head = (const void *)request->head;
    bool is_pool = request->number == CALL_cuMemPoolImportFromShareableHandle;
    void *made = NULL;
    CUresult result;
    int fd;

    if (request->head_bytes < sizeof(*head) || head->type != KIND_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    fd = find_shared(&head->token);
    if (fd < 0)
        fd = ask_other(&head->token);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = import_object(request, head, fd, &made);
    close(fd);
    if (result == CUDA_SUCCESS)
        request->extra = object_number(
            is_pool ? OBJECT_CUmemoryPool : OBJECT_CUmemGenericAllocationHandle, made, 0);
    return result;
}
