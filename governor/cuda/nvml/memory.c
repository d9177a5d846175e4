// SPDX-License-Identifier: MIT
/* Memory of a device as the slice has it; cuMemGetInfo shows the same. */
#include "real.h"
#include "slice.h"
#include "view.h"

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlReturn_t result = DRIVER(nvmlDeviceGetMemoryInfo, device, memory);
    struct view view;

    if (result != NVML_SUCCESS || !view_of(slice_of(device), memory->total, memory->free, &view))
        return result;
    *memory = (nvmlMemory_t){.total = view.total, .free = view.free, .used = view.used};
    return result;
}

/* Memory that the driver reserves on the card is not part of the slice. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlReturn_t result = DRIVER(nvmlDeviceGetMemoryInfo_v2, device, memory);
    struct view view;

    if (result != NVML_SUCCESS || !view_of(slice_of(device), memory->total, memory->free, &view))
        return result;
    *memory = (nvmlMemory_v2_t){
        .version = memory->version, .total = view.total, .free = view.free, .used = view.used};
    return result;
}
