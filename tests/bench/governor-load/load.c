/* SPDX-License-Identifier: MIT */
#include "load.h"

#include "clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CALIBRATE_PROBES 9
#define BURST            100u

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double find_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare_values);
    return values[count / 2];
}

/* The start of the next stretch of work, where @now is in a rest. */
static uint64_t after_rest(const struct load *load, uint64_t start, uint64_t now)
{
    uint64_t on = load->on_ms * NS_PER_MS, period = on + load->off_ms * NS_PER_MS;

    if (!on || (now - start) % period < on)
        return now;
    return start + ((now - start) / period + 1) * period;
}

/* In flight are the batches done … sent - 1; the slot of each is its number modulo the depth. */
void load_closed(const struct load *load, struct card *card, struct record *record)
{
    uint64_t begins[CARD_MAX_DEPTH];
    uint64_t end = record->start_ns + (uint64_t)(load->seconds * (double)NS_PER_S);
    uint64_t sent = 0, done = 0;
    bool more = true;

    while (more || done < sent) {
        uint64_t now = now_ns();
        uint64_t begin = after_rest(load, record->start_ns, now);

        more = begin < end && (!load->batches || sent < load->batches);
        if (more && sent - done < load->depth && (begin == now || sent == done)) {
            if (begin > now)
                sleep_until(begin);
            begins[sent % load->depth] = now_ns();
            card_submit(card, (uint32_t)(sent++ % load->depth));
        } else if (done < sent) {
            card_wait(card, (uint32_t)(done % load->depth), UINT64_MAX);
            now = now_ns();
            record_add(record, now, now - begins[done++ % load->depth]);
            if (load->think_us)
                sleep_until(now + load->think_us * NS_PER_US);
        }
    }
}

void load_online(const struct load *load, struct card *card, struct record *record)
{
    struct arrivals arrivals = load->arrivals;
    uint64_t length = (uint64_t)(load->seconds * (double)NS_PER_S);

    arrivals_start(&arrivals);
    for (;;) {
        uint64_t at = arrivals_take(&arrivals);

        if (at >= length)
            return;
        sleep_until(record->start_ns + at);
        card_submit(card, 0);
        card_wait(card, 0, UINT64_MAX);
        uint64_t now = now_ns();
        record_add(record, now, now - record->start_ns - at);
    }
}

static double batch_ns(struct card *card, uint32_t iterations)
{
    double times[CALIBRATE_PROBES];

    card_set_work(card, iterations);
    for (size_t i = 0; i < CALIBRATE_PROBES; i++) {
        uint64_t begin = now_ns();

        card_submit(card, 0);
        card_wait(card, 0, UINT64_MAX);
        times[i] = (double)(now_ns() - begin);
    }
    return find_median(times, CALIBRATE_PROBES);
}

/* Two lengths, so that what a submit takes by itself does not count as the kernel's. */
void load_calibrate(const struct load *load, struct card *card)
{
    uint32_t shorter = 50000, longer = 550000;

    batch_ns(card, shorter);
    double slope = (batch_ns(card, longer) - batch_ns(card, shorter)) / (longer - shorter);
    double iterations = load->milliseconds * (double)NS_PER_MS / slope;

    if (!(iterations >= 1 && iterations < UINT32_MAX))
        job_fail(&card->job, "no number of iterations takes %g ms here", load->milliseconds);
    printf("{\"iterations\":%" PRIu32 ",\"ms\":%.4f}\n", (uint32_t)iterations,
           batch_ns(card, (uint32_t)iterations) / (double)NS_PER_MS);
}

/* A function of its own, so that callgrind can be told to count in it alone. */
__attribute__((noinline)) void submit_burst(struct card *card);
void submit_burst(struct card *card)
{
    for (uint32_t i = 0; i < BURST; i++)
        card_submit_silent(card);
}

void load_submit_cost(const struct load *load, struct card *card)
{
    uint64_t bursts = load->batches / BURST;
    double *times = calloc(bursts, sizeof(*times));

    if (!times || !bursts)
        job_fail(&card->job, "submit-cost takes --batches of %u at least", BURST);
    for (uint64_t i = 0; i < bursts; i++) {
        uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

        submit_burst(card);
        times[i] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / BURST;
        card_submit(card, 0);
        card_wait(card, 0, UINT64_MAX);
    }
    printf("{\"submit_ns\":%.1f,\"submits\":%" PRIu64 "}\n", find_median(times, bursts),
           bursts * BURST);
    free(times);
}
