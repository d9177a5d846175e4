/* SPDX-License-Identifier: MIT */
/*
 * governor-load: a tenant of a GPU that does fixed work and says, in one line of JSON, what of it
 * was done when. It knows nothing of a governor.
 */
#include "load.h"

#include "clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Compiles what the driver compiles late, and leaves no debt to speak of. */
static void warm_up(struct card *card)
{
    card_set_work(card, 1);
    card_submit(card, 0);
    card_wait(card, 0, UINT64_MAX);
}

/* So that tenants that take long to open the device start together all the same. */
static uint64_t agreed_start(const struct card *card)
{
    uint64_t at;

    puts("ready");
    fflush(stdout);
    if (scanf("%" SCNu64, &at) != 1)
        job_fail(&card->job, "no start was read from standard input");
    sleep_until(at);
    return at;
}

static void run_load(const struct load *load, struct card *card)
{
    struct record record = {.deadline_ns = load->deadline_ns};

    card_set_work(card, load->iterations);
    record.start_ns = load->wait ? agreed_start(card) : now_ns();
    if (!strcmp(load->mode, "online"))
        load_online(load, card, &record);
    else
        load_closed(load, card, &record);
    record_print(&record, load->name, load->iterations, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

int main(int argc, char **argv)
{
    struct card card;
    struct load load;

    load_parse(&load, argc, argv);
    card_open(&card, load.program, load.device_name, load.depth);
    warm_up(&card);
    if (!strcmp(load.mode, "calibrate"))
        load_calibrate(&load, &card);
    else if (!strcmp(load.mode, "submit-cost"))
        load_submit_cost(&load, &card);
    else
        run_load(&load, &card);
    card_close(&card);
    return 0;
}
