/* SPDX-License-Identifier: MIT */
/*
 * What users write after --vgpu and in lists of TRES, the text of a job, and vgpu.conf. An input's
 * lines are, in turn: the option, the four lists, extra, partition, QOS; the rest is the file. An
 * empty line is not given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/request/submit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIELDS 8

/* Whatever is decided, the node reads the same request from the text. */
static void check_decision(const SubmitDecision *decision)
{
    FleetRequest request;

    assert(strlen(decision->extra) < FLEET_TEXT_MAX && strlen(decision->per_task) < FLEET_TRES_MAX);
    if (decision->changes)
        assert(fleet_request_read(decision->extra, &request));
}

static void check_sentence(const char *error)
{
    assert(error[0] && strlen(error) < FLEET_ERROR_MAX);
    for (const char *at = error; *at; at++)
        assert(*at >= ' ' && *at <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text, *fields[FIELDS] = {NULL};
    char error[FLEET_ERROR_MAX] = "";
    static FleetConf conf;
    SubmitDecision decision;
    FleetRequest request;

    memcpy(text, data, size);
    text[size] = 0;
    for (unsigned i = 0; i < FIELDS && rest; i++) {
        fields[i] = strsep(&rest, "\n");
        if (!*fields[i])
            fields[i] = NULL;
    }
    fleet_conf_init(&conf);
    if (rest && !fleet_conf_parse(rest, &conf, error)) {
        check_sentence(error);
        fleet_conf_init(&conf);
    }
    if (fields[5])
        fleet_request_read(fields[5], &request);
    if (submit_decide(&(SubmitAsk){fields[0], fields[1], fields[2], fields[3], fields[4], fields[5],
                                   fields[6], fields[7]},
                      &conf, &decision, error))
        check_decision(&decision);
    else
        check_sentence(error);
    free(text);
    return 0;
}
