// SPDX-License-Identifier: MIT
#include "vault.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "forks.h"
#include "fronts.h"

/* Not in use. */
static struct piece *kept;

static struct piece *take_kept(const struct gpu *gpu, uint64_t bytes)
{
    struct piece **at = &kept, *piece;

    while (*at && ((*at)->gpu != gpu || (*at)->bytes != bytes))
        at = &(*at)->next;
    piece = *at;
    if (piece)
        *at = piece->next;
    return piece;
}

static void give_back(struct piece *piece)
{
    if (piece->locked)
        CARD(cuMemHostUnregister, piece->at);
    munmap(piece->at, piece->bytes);
    governor_member_vault_return(piece->gpu->member, piece->number);
    free(piece);
}

bool vault_return(const struct gpu *gpu)
{
    struct piece **at = &kept;
    bool any = false;

    while (*at) {
        struct piece *piece = *at;

        if (piece->gpu != gpu) {
            at = &piece->next;
            continue;
        }
        *at = piece->next;
        give_back(piece);
        any = true;
    }
    return any;
}

static struct piece *map_piece(struct gpu *gpu, int fd, uint64_t number, uint64_t bytes)
{
    struct piece *piece = calloc(1, sizeof(*piece));
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (piece && at != MAP_FAILED) {
        *piece = (struct piece){.gpu = gpu, .number = number, .bytes = bytes, .at = at};
        piece->locked = CARD(cuMemHostRegister_v2, at, bytes, 0) == CUDA_SUCCESS;
        return piece;
    }
    if (at != MAP_FAILED)
        munmap(at, bytes);
    free(piece);
    governor_member_vault_return(gpu->member, number);
    return NULL;
}

static struct piece *ask_for(struct gpu *gpu, uint64_t bytes)
{
    uint64_t number;
    int fd = governor_member_vault(gpu->member, bytes, &number);
    struct piece *piece;

    if (fd < 0)
        return NULL;
    piece = map_piece(gpu, fd, number, bytes);
    close(fd);
    return piece;
}

struct piece *vault_take(struct gpu *gpu, uint64_t bytes)
{
    struct piece *piece = take_kept(gpu, bytes);

    piece = piece ? piece : ask_for(gpu, bytes);
    /* Those that are kept may have had its place. */
    if (!piece && vault_return(gpu))
        piece = ask_for(gpu, bytes);
    return piece;
}

void vault_put(struct gpu *gpu, struct piece *piece)
{
    (void)gpu;
    piece->next = kept;
    kept = piece;
}

void vault_forget_parent(void)
{
    kept = NULL;
}
