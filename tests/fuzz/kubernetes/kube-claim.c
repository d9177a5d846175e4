/* SPDX-License-Identifier: MIT */
/* A claim as the API has it: users write its parameters, and the scheduler its amounts. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/kubernetes/dra/claim.h"
#include "fleet/kubernetes/dra/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CAPACITY (G_GUINT64_CONSTANT(80) << 30)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AgentGpu gpu = {.address = "0000:41:00.0", .capacity = CAPACITY};
    g_autoptr(GPtrArray) gpus = g_ptr_array_new();
    const ClaimSetting setting = {.pool = "n", .gpus = gpus, .tenant_is_namespace = size & 1};
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup((const char *)data, size);
    guint64 bytes;
    Claim *claim;

    /* What would be a message of GLib's in the log of a host is a fault here. */
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
    g_ptr_array_add(gpus, &gpu);
    claim = claim_read((const char *)data, size, "u", &setting, &error);
    assert(!claim == !!error);
    for (guint i = 0; claim && i < claim->slices->len; i++) {
        const AgentSlice *slice = claim->slices->pdata[i];

        assert(slice->vram && slice->vram <= CAPACITY && slice->compute >= 0 &&
               slice->compute <= 100);
        assert(slice->door && slice->class && slice->cap <= 100 && slice->priority <= 15);
    }
    if (claim) {
        assert(!claim_is_over(200, (const char *)data, size, "u", "n"));
        claim_free(claim);
    }
    claim_is_over(404, (const char *)data, size, "u", "n");
    claim_is_over(403, (const char *)data, size, "u", "n");
    if (quantity_parse(text, &bytes)) {
        g_autofree char *again = quantity_format(bytes);
        guint64 same;

        assert(quantity_parse(again, &same) && same == bytes);
    }
    return 0;
}
