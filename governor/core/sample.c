// SPDX-License-Identifier: MIT
#include "sample.h"

#include "backlog.h"
#include "clock.h"

/* Maximum of one step of a counter: sums do not overflow. */
#define MOST_STEP_NS (3600 * NS_PER_S)
#define MOST_STEP    (1ull << 40)

static uint64_t load_word(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

static uint64_t read_counter(const _Atomic uint64_t *from, uint64_t before, uint64_t most_step)
{
    uint64_t value = load_word(from);

    return value <= before ? before : before + at_most(value - before, most_step);
}

static uint64_t read_backlog(const struct governor_class_usage *page, uint64_t now)
{
    uint64_t done = load_word(&page->free_done), count = load_word(&page->free_submissions);

    return backlog_left(count > done ? count - done : 0, load_word(&page->free_mean_ns),
                        load_word(&page->free_since_ns), now);
}

void sample_take(struct sample *sample, const struct governor_class_usage *page,
                 const _Atomic uint64_t *came_at, uint64_t now)
{
    uint64_t waiting;

    /* A member counts work, and then stores the time of its end. */
    sample->counted_until_ns = at_most(load_word(&page->ended_at_ns), now);
    /* Read before gpu_ns: work that ends meanwhile is seen in both, not in neither. */
    sample->in_flight_ns = at_most(load_word(&page->in_flight_ns), GOVERNOR_IN_FLIGHT_MOST_NS);
    sample->gpu_ns = read_counter(&page->gpu_ns, sample->gpu_ns, MOST_STEP_NS);
    sample->submissions = read_counter(&page->submissions, sample->submissions, MOST_STEP);
    sample->free_submissions =
        read_counter(&page->free_submissions, sample->free_submissions, MOST_STEP);
    sample->backlog_ns = read_backlog(page, now);
    sample->waited_ns = read_counter(&page->waited_ns, sample->waited_ns, MOST_STEP_NS);
    sample->throttled_ns = read_counter(&page->throttled_ns, sample->throttled_ns, MOST_STEP_NS);
    sample->began_at_ns = at_most(load_word(&page->began_at_ns), now);
    sample->ended_at_ns = at_most(load_word(&page->ended_at_ns), now);
    waiting = load_word(&page->waiting);
    sample->waiting = waiting != 0;
    sample->waiting_beside = waiting >> GOVERNOR_BESIDE_SHIFT != 0;
    sample->waiting_at_ns = at_most(load_word(&page->waiting_at_ns), now);
    sample->came_at_ns = came_at ? at_most(load_word(came_at), now) : 0;
}

uint64_t sample_elapsed(const struct sample *sample, uint64_t now)
{
    uint64_t since =
        sample->began_at_ns > sample->ended_at_ns ? sample->began_at_ns : sample->ended_at_ns;

    return sample->in_flight_ns && now > since ? now - since : 0;
}

uint64_t sample_remaining(const struct sample *sample, uint64_t now)
{
    uint64_t elapsed = sample_elapsed(sample, now);

    return sample->in_flight_ns > elapsed ? sample->in_flight_ns - elapsed : 0;
}

uint64_t sample_spent(const struct sample *sample, uint64_t now)
{
    uint64_t elapsed = at_most(sample_elapsed(sample, now), GOVERNOR_IN_FLIGHT_MOST_NS);

    return sample->gpu_ns + (sample->in_flight_ns > elapsed ? sample->in_flight_ns : elapsed);
}
