// SPDX-License-Identifier: MIT
/* Memory of a device as the slice has it; cuMemGetInfo shows the same. */
#include <stdbool.h>
#include <stdint.h>

#include "real.h"
#include "slice.h"
#include "view.h"

/*
 * The slice's memory in place of the card's, by the driver's @result and answer. A card that uses
 * the host's memory has none of its own that the driver could report, but its slices have.
 */
static bool view_of_answer(nvmlDevice_t device, nvmlReturn_t result, uint64_t total, uint64_t free,
                           struct view *view)
{
    if (result == NVML_ERROR_NOT_SUPPORTED)
        total = free = UINT64_MAX;
    else if (result != NVML_SUCCESS)
        return false;
    return view_of(slice_of(device), total, free, view);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = DRIVER(nvmlDeviceGetMemoryInfo, device, memory);
    struct view view;

    if (!view_of_answer(device, result, memory->total, memory->free, &view))
        return result;
    *memory = (nvmlMemory_t){.total = view.total, .free = view.free, .used = view.used};
    return NVML_SUCCESS;
}

/* Memory that the driver reserves on the card is not part of the slice. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = DRIVER(nvmlDeviceGetMemoryInfo_v2, device, memory);
    struct view view;

    if (!view_of_answer(device, result, memory->total, memory->free, &view))
        return result;
    *memory = (nvmlMemory_v2_t){
        .version = memory->version, .total = view.total, .free = view.free, .used = view.used};
    return NVML_SUCCESS;
}
