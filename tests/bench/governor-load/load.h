/* SPDX-License-Identifier: MIT */
/* The ways in which a load makes batches, each until its time is over. */
#ifndef GOVERNOR_LOAD_LOAD_H
#define GOVERNOR_LOAD_LOAD_H

#include "arrivals.h"
#include "card.h"
#include "record.h"

/**
 * struct load - the command line
 * @iterations: of the kernel of a batch
 * @milliseconds: for calibrate: the intended length of a batch
 * @seconds: after which no batch is begun
 * @batches: after which none is begun; 0: any number
 * @depth: batches in flight
 * @think_us: rest between the end of a batch and the next one
 * @on_ms, @off_ms: works and rests alternately; 0: works always
 * @wait: waits for the start on standard input
 */
struct load {
    const char *program;
    const char *mode;
    const char *name;
    const char *device_name;
    uint32_t iterations;
    double milliseconds;
    double seconds;
    uint64_t batches;
    uint32_t depth;
    uint32_t think_us;
    uint32_t on_ms;
    uint32_t off_ms;
    bool wait;
    struct arrivals arrivals;
    uint64_t deadline_ns;
};

/* Ends the process with a message if the command line is wrong. */
void load_parse(struct load *load, int argc, char **argv);

/* Always load->depth batches in flight: 1 is submit and wait. */
void load_closed(const struct load *load, struct card *card, struct record *record);

/* Requests as they arrive, one after the other. */
void load_online(const struct load *load, struct card *card, struct record *record);

/* Prints the iterations that take load->milliseconds. */
void load_calibrate(const struct load *load, struct card *card);

/* Prints the processor time of the submitting thread for a nearly empty submission. */
void load_submit_cost(const struct load *load, struct card *card);

#endif /* GOVERNOR_LOAD_LOAD_H */
