/* SPDX-License-Identifier: MIT */
/*
 * What a node reads of a job: Slurm's details (first line), the job's text (second), the file of
 * its steps (the rest).
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/slurm/node/detail.h"
#include "fleet/slurm/node/job_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool look(const char *name, const char *value, void *data)
{
    (void)data;
    return strlen(name) < 100 && strlen(value) < 1000;
}

static void check_promise(const char *detail, const char *text, uint32_t per_task)
{
    /* Any number is also that of a job with its node alone. */
    const DetailCount counted = {.per_task = per_task, .whole_node = per_task % 2};
    char error[FLEET_ERROR_MAX] = "";
    CardPromise cards[NODE_CARDS_MAX];
    int count = detail_parse(detail, cards);
    FleetRequest request;
    FleetConf *conf = malloc(sizeof(*conf));

    assert(count <= NODE_CARDS_MAX);
    fleet_conf_init(conf);
    if (count >= 0 && fleet_request_read(text, &request) &&
        detail_check(cards, (unsigned)count, &request, &counted, conf, error)) {
        /* Never more than Slurm counts, if the class is promised all of it. */
        for (int i = 0; i < count && request.class == FLEET_CLASS_GUARANTEED; i++)
            assert(request.kind == FLEET_SIZE_FULL ||
                   (uint64_t)request.size * cards[i].tasks <= cards[i].shards);
    }
    free(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *all = malloc(size + 1), *rest = all, *detail, *text;

    memcpy(all, data, size);
    all[size] = 0;
    detail = strsep(&rest, "\n");
    text = rest ? strsep(&rest, "\n") : "";
    check_promise(detail, text, size ? data[0] : 0);
    check_promise(detail, text, 100);
    if (rest) {
        char *again = strdup(rest);

        job_file_task(rest, -1, (unsigned)size, look, NULL);
        job_file_task(again, 1, 0, look, NULL);
        free(again);
    }
    free(all);
    return 0;
}
