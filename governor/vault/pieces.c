// SPDX-License-Identifier: MIT
#include "pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What stays free for everything else on the host. */
#define KEPT_PART 20

/* @death: of its process. */
struct piece {
    struct pieces *pieces;
    char *slice;
    uint64_t number;
    uint64_t bytes;
    int fd;
    int pidfd;
    sd_event_source *death;
};

/* What programs can have without swapping, less a part that is kept for them; 0: unknown. */
static uint64_t host_available(void)
{
    g_autofree char *text = NULL;
    unsigned long long available, total;
    const char *line;

    if (!g_file_get_contents("/proc/meminfo", &text, NULL, NULL) ||
        sscanf(text, "MemTotal: %llu", &total) != 1)
        return 0;
    line = strstr(text, "\nMemAvailable:");
    if (!line || sscanf(line, "\nMemAvailable: %llu", &available) != 1)
        return 0;
    return available > total / KEPT_PART ? (available - total / KEPT_PART) * 1024 : 0;
}

static void free_piece(void *data)
{
    struct piece *piece = data;

    piece->pieces->bytes -= piece->bytes;
    sd_event_source_disable_unref(piece->death);
    if (piece->fd >= 0) {
        if (!piece->pieces->ends)
            fallocate(piece->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      (off_t)piece->bytes);
        close(piece->fd);
    }
    close(piece->pidfd);
    g_free(piece->slice);
    g_free(piece);
}

void pieces_init(struct pieces *pieces, sd_event *event)
{
    /* Programs still have pieces of a vault before this one: their numbers are none of ours. */
    *pieces = (struct pieces){.event = event,
                              .next_number = (uint64_t)g_get_monotonic_time() + 1,
                              .available = host_available};
    pieces->all = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, free_piece);
}

void pieces_clear(struct pieces *pieces)
{
    pieces->ends = true;
    g_hash_table_destroy(pieces->all);
}

static int on_death(sd_event_source *source, int fd, uint32_t revents, void *data)
{
    struct piece *piece = data;

    (void)source;
    (void)fd;
    (void)revents;
    g_hash_table_remove(piece->pieces->all, &piece->number);
    return 0;
}

static uint64_t bytes_of_slice(const struct pieces *pieces, const char *slice)
{
    GHashTableIter iter;
    uint64_t bytes = 0;
    void *value;

    g_hash_table_iter_init(&iter, pieces->all);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct piece *piece = value;

        bytes += g_str_equal(piece->slice, slice) ? piece->bytes : 0;
    }
    return bytes;
}

static bool has_room(uint64_t used, uint64_t limit, uint64_t bytes)
{
    return used <= limit && bytes <= limit - used;
}

static bool is_allowed(const struct pieces *pieces, const struct vault_request *request)
{
    return has_room(bytes_of_slice(pieces, request->slice), request->slice_limit, request->bytes) &&
           has_room(pieces->bytes, request->budget, request->bytes) &&
           request->bytes <= pieces->available();
}

/* Of that size for ever, with all of its pages. */
static int make_memory(uint64_t bytes)
{
    int fd = memfd_create("vgpu-displaced", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error;

    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)bytes) == 0 && fallocate(fd, 0, 0, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    error = errno == ENOSPC ? ENOMEM : errno;
    close(fd);
    errno = error;
    return -1;
}

int pieces_take(struct pieces *pieces, const struct vault_request *request, int pidfd,
                uint64_t *number)
{
    struct piece *piece = g_new0(struct piece, 1);
    bool allowed = is_allowed(pieces, request);
    int error;

    *piece = (struct piece){.pieces = pieces, .pidfd = pidfd, .fd = -1};
    piece->slice = g_strdup(request->slice);
    if (allowed)
        piece->fd = make_memory(request->bytes);
    if (piece->fd < 0 ||
        sd_event_add_io(pieces->event, &piece->death, pidfd, EPOLLIN, on_death, piece) < 0) {
        error = allowed ? errno : ENOMEM;
        free_piece(piece);
        errno = error;
        return -1;
    }
    *number = piece->number = pieces->next_number++;
    piece->bytes = request->bytes;
    pieces->bytes += piece->bytes;
    g_hash_table_insert(pieces->all, &piece->number, piece);
    return piece->fd;
}

void pieces_return(struct pieces *pieces, const struct vault_request *request)
{
    const struct piece *piece = g_hash_table_lookup(pieces->all, &request->number);

    if (piece && (!*request->slice || g_str_equal(piece->slice, request->slice)))
        g_hash_table_remove(pieces->all, &request->number);
}
