// SPDX-License-Identifier: MIT
/*
 * Unknown 2. A program and its worker have one address space in common if the driver can only lie
 * where the program holds the place free: before it is loaded, all else is taken. If it does not
 * run so with 16 TiB, less is not tried: then it insists on places of its own.
 */
#include "spike.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOW        (8ull << 30) /* recent drivers put the card's memory behind that */
#define LOW_END    (1ull << 40)
#define SPACE_END  0x7ffffffff000ull
#define HEAP_BYTES (256 << 20) /* what malloc() takes at once: behind it nothing is free */
#define STACK_ROOM (64ull << 20)

static unsigned int painted;

static void take_range(uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    if (mmap((void *)(uintptr_t)from, to - from, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
             0) == MAP_FAILED)
        spike_verdict(VERDICT_NOT_ASKED, "the range 0x%llx to 0x%llx cannot be taken",
                      (unsigned long long)from, (unsigned long long)to);
    painted++;
}

/* What is free in [from, to), without the ranges that stay free. */
static void paint_gap(uint64_t from, uint64_t to)
{
    const uint64_t kept[][2] = {{LOW, LOW_END}, {ARENA + OWN_BYTES, ARENA + ARENA_BYTES}};

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (kept[i][0] >= to || kept[i][1] <= from)
            continue;
        take_range(from, kept[i][0]);
        from = kept[i][1] < to ? kept[i][1] : to;
    }
    take_range(from, to);
}

struct mapping {
    uint64_t from, to;
    char name[256];
};

static unsigned int read_maps(struct mapping *maps, unsigned int most)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    unsigned int count = 0;

    while (file && count < most && fgets(line, sizeof(line), file)) {
        struct mapping *map = &maps[count];
        unsigned long long from, to;

        map->name[0] = '\0';
        if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %255s", &from, &to, map->name) < 2)
            continue;
        map->from = from;
        map->to = to;
        count++;
    }
    if (file)
        fclose(file);
    return count;
}

static struct mapping before[4096], after[4096];

static void paint(void)
{
    unsigned int count = read_maps(before, 4096);
    uint64_t at = 1ull << 16;

    for (unsigned int i = 0; i < count && at < SPACE_END; i++) {
        bool is_stack = before[i].name[0] == '[' && before[i].name[1] == 's';

        if (before[i].from > at)
            paint_gap(at, before[i].from < SPACE_END ? before[i].from - (is_stack ? STACK_ROOM : 0)
                                                     : SPACE_END);
        at = before[i].to;
    }
    if (at < SPACE_END)
        paint_gap(at, SPACE_END);
}

static bool is_in(const struct mapping *map, uint64_t from, uint64_t to)
{
    return map->from >= from && map->to <= to;
}

static bool was_there(const struct mapping *map, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        if (map->from >= before[i].from && map->to <= before[i].to)
            return true;
    return false;
}

/* In a process of its own; where it does not compute at all the question is another one. */
static void check_unpainted(void)
{
    int status = 0;
    pid_t pid = fork();

    if (!pid) {
        card_open();
        _exit(card_computes() ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
        spike_verdict(VERDICT_NOT_ASKED, "it does not compute without that either");
}

void ask_painting(void)
{
    unsigned int count, in_range = 0, low = 0, elsewhere = 0;
    unsigned long long first = 0;

    check_unpainted();
    spike_step("addresses are taken");
    mallopt(M_TOP_PAD, HEAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, 2 * HEAP_BYTES);
    free(malloc(HEAP_BYTES / 1024));
    paint();
    spike_failure = VERDICT_NO;
    count = read_maps(before, 4096);
    card_open();
    if (!card_computes())
        spike_verdict(VERDICT_NO, "it computes wrong numbers");
    spike_step("mappings are counted");
    for (unsigned int i = 0, all = read_maps(after, 4096); i < all; i++) {
        if (was_there(&after[i], count) || after[i].name[0] == '[')
            continue;
        if (is_in(&after[i], ARENA + OWN_BYTES, ARENA + ARENA_BYTES))
            in_range++;
        else if (is_in(&after[i], LOW, LOW_END))
            low++;
        else if (!elsewhere++)
            first = after[i].from;
    }
    spike_verdict(elsewhere ? VERDICT_NO : VERDICT_YES,
                  "with %u ranges taken it computes; its mappings: %u in the range of 12 TiB, %u "
                  "between 8 GiB and 1 TiB, %u elsewhere (first: 0x%llx)",
                  painted, in_range, low, elsewhere, first);
}
