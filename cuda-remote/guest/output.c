// SPDX-License-Identifier: MIT
/* What the program's kernels have printed, which the worker has until it is asked for. */
#include "remote.h"

#include <stdio.h>
#include <stdlib.h>

/* As the driver does it: by the program's own streams, so that the order of the two is kept. */
void output_print(void)
{
    struct hand_output head = {0};
    uint8_t *text = malloc(HAND_OUTPUT_MOST);

    do {
        struct exchange fetch = {.number = HAND_OUTPUT, .head = &head, .head_bytes = sizeof(head)};

        if (!text)
            return;
        exchange_out(&fetch, &head, sizeof(head));
        exchange_out(&fetch, text, HAND_OUTPUT_MOST);
        if (exchange_run(&fetch) != CUDA_SUCCESS || head.out_bytes > HAND_OUTPUT_MOST ||
            head.err_bytes > HAND_OUTPUT_MOST - head.out_bytes)
            break;
        fwrite(text, 1, head.out_bytes, stdout);
        fwrite(text + head.out_bytes, 1, head.err_bytes, stderr);
        if (head.is_lost)
            fputs("vgpu-cuda: kernels have printed more than is kept between two calls that wait\n",
                  stderr);
    } while (head.out_bytes || head.err_bytes);
    free(text);
}
