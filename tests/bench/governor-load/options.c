/* SPDX-License-Identifier: MIT */
#include "load.h"

#include "clock.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_NAME = 1,
    OPT_DEVICE,
    OPT_ITERATIONS,
    OPT_MS,
    OPT_SECONDS,
    OPT_BATCHES,
    OPT_DEPTH,
    OPT_THINK,
    OPT_ON,
    OPT_OFF,
    OPT_WAIT,
    OPT_RATE,
    OPT_BURST,
    OPT_DAY,
    OPT_SEED,
    OPT_DEADLINE,
    OPT_HELP,
};

static const struct option options[] = {
    {"name", required_argument, NULL, OPT_NAME},
    {"device-name", required_argument, NULL, OPT_DEVICE},
    {"iterations", required_argument, NULL, OPT_ITERATIONS},
    {"ms", required_argument, NULL, OPT_MS},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"batches", required_argument, NULL, OPT_BATCHES},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"think-us", required_argument, NULL, OPT_THINK},
    {"on-ms", required_argument, NULL, OPT_ON},
    {"off-ms", required_argument, NULL, OPT_OFF},
    {"wait", no_argument, NULL, OPT_WAIT},
    {"rate", required_argument, NULL, OPT_RATE},
    {"burst", required_argument, NULL, OPT_BURST},
    {"day", required_argument, NULL, OPT_DAY},
    {"seed", required_argument, NULL, OPT_SEED},
    {"deadline-ms", required_argument, NULL, OPT_DEADLINE},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static _Noreturn void print_help(const char *program)
{
    printf(
        "Usage: %s closed|online|calibrate|submit-cost [OPTION]...\n"
        "Does batches of fixed work on the GPU and prints one line of JSON.\n\n"
        "  --name TEXT         for the JSON\n"
        "  --device-name TEXT  the device whose name contains TEXT (default: the first)\n"
        "  --iterations N      of the kernel of a batch (default 1)\n"
        "  --ms X              calibrate: find the iterations that take X ms (default 2)\n"
        "  --seconds X         begin no batch after X seconds (default 10)\n"
        "  --batches N         begin no more than N (submit-cost: default 10000)\n"
        "  --wait              say 'ready', and start at the CLOCK_MONOTONIC (ns) read from stdin\n"
        "closed: the next batch when one has ended\n"
        "  --depth N           batches in flight (default 1)\n"
        "  --think-us N        rest after each\n"
        "  --on-ms N, --off-ms N  work so long, rest so long\n"
        "online: batches at random times\n"
        "  --rate X            a second (default 100)\n"
        "  --burst N           that come at once (default 1)\n"
        "  --day X             the rate follows a day of X seconds, X a second at noon\n"
        "  --seed N            other times (default 1)\n"
        "  --deadline-ms X     count what took longer\n",
        program);
    exit(0);
}

static _Noreturn void refuse_option(const struct load *load, const char *what, const char *text)
{
    fprintf(stderr, "%s: %s '%s'; --help lists what there is\n", load->program, what, text);
    exit(2);
}

static double read_number(const struct load *load, double min, double max)
{
    char *end;

    errno = 0;
    double value = strtod(optarg, &end);

    if (errno || end == optarg || *end || !(value >= min && value <= max))
        refuse_option(load, "not a number that fits:", optarg);
    return value;
}

static void set_arrival_option(struct load *load, int opt)
{
    switch (opt) {
    case OPT_RATE:
        load->arrivals.rate = read_number(load, 0.001, 1e6);
        break;
    case OPT_BURST:
        load->arrivals.burst = (uint32_t)read_number(load, 1, 1e6);
        break;
    case OPT_DAY:
        load->arrivals.day_s = read_number(load, 0, 1e6);
        break;
    case OPT_SEED:
        load->arrivals.seed = (uint64_t)read_number(load, 1, 1e9);
        break;
    case OPT_DEADLINE:
        load->deadline_ns = (uint64_t)(read_number(load, 0, 1e6) * (double)NS_PER_MS);
        break;
    case OPT_HELP:
        print_help(load->program);
    default:
        refuse_option(load, "wrong option", "");
    }
}

static void set_option(struct load *load, int opt)
{
    switch (opt) {
    case OPT_NAME:
        load->name = optarg;
        break;
    case OPT_DEVICE:
        load->device_name = optarg;
        break;
    case OPT_ITERATIONS:
        load->iterations = (uint32_t)read_number(load, 1, UINT32_MAX);
        break;
    case OPT_MS:
        load->milliseconds = read_number(load, 0.001, 1e5);
        break;
    case OPT_SECONDS:
        load->seconds = read_number(load, 0, 1e6);
        break;
    case OPT_BATCHES:
        load->batches = (uint64_t)read_number(load, 0, 1e12);
        break;
    case OPT_DEPTH:
        load->depth = (uint32_t)read_number(load, 1, CARD_MAX_DEPTH);
        break;
    case OPT_THINK:
        load->think_us = (uint32_t)read_number(load, 0, 1e9);
        break;
    case OPT_ON:
        load->on_ms = (uint32_t)read_number(load, 0, 1e6);
        break;
    case OPT_OFF:
        load->off_ms = (uint32_t)read_number(load, 0, 1e6);
        break;
    case OPT_WAIT:
        load->wait = true;
        break;
    default:
        set_arrival_option(load, opt);
    }
}

void load_parse(struct load *load, int argc, char **argv)
{
    static const char *const modes[] = {"closed", "online", "calibrate", "submit-cost"};
    const size_t count = sizeof(modes) / sizeof(modes[0]);
    size_t i = 0;
    int opt;

    *load = (struct load){
        .program = "governor-load",
        .name = "load",
        .iterations = 1,
        .milliseconds = 2,
        .seconds = 10,
        .depth = 1,
        .arrivals = {.rate = 100, .burst = 1, .seed = 1},
    };
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
        set_option(load, opt);
    if (optind + 1 != argc)
        refuse_option(load, "one word must say what to do, not",
                      optind < argc ? argv[optind + 1] : "");
    load->mode = argv[optind];
    while (i < count && strcmp(modes[i], load->mode) != 0)
        i++;
    if (i == count)
        refuse_option(load, "no such load:", load->mode);
    if (!strcmp(load->mode, "submit-cost") && !load->batches)
        load->batches = 10000;
}
