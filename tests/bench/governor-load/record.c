/* SPDX-License-Identifier: MIT */
#include "record.h"

#include "clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void *grow_array(void *array, size_t elements)
{
    void *bigger = realloc(array, elements * sizeof(uint64_t));

    if (!bigger) {
        fprintf(stderr, "governor-load: no memory for %zu completions\n", elements);
        exit(1);
    }
    return bigger;
}

void record_add(struct record *record, uint64_t end_ns, uint64_t latency_ns)
{
    if (record->count == record->room) {
        record->room = record->room ? record->room * 2 : 4096;
        record->ends = grow_array(record->ends, record->room);
        record->latencies = grow_array(record->latencies, record->room);
    }
    record->ends[record->count] = end_ns - record->start_ns;
    record->latencies[record->count++] = latency_ns;
    if (record->deadline_ns && latency_ns > record->deadline_ns)
        record->missed++;
}

static int compare_records(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static double quantile_us(const struct record *record, double q)
{
    if (!record->count)
        return 0;
    return (double)record->latencies[(size_t)(q * (double)(record->count - 1))] / NS_PER_US;
}

static void print_times(const struct record *record)
{
    printf("\"ends_us\":[");
    for (size_t i = 0; i < record->count; i++)
        printf("%s%" PRIu64, i ? "," : "", record->ends[i] / NS_PER_US);
    printf("]");
}

void record_print(struct record *record, const char *name, uint32_t iterations, uint64_t cpu_ns)
{
    printf("{\"name\":\"%s\",\"iterations\":%" PRIu32 ",\"start_ns\":%" PRIu64
           ",\"batches\":%zu,\"missed\":%zu,\"cpu_us\":%" PRIu64 ",",
           name, iterations, record->start_ns, record->count, record->missed, cpu_ns / NS_PER_US);
    print_times(record);
    if (record->count)
        qsort(record->latencies, record->count, sizeof(uint64_t), compare_records);
    printf(",\"latency_us\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"max\":%.1f}}\n",
           quantile_us(record, 0.5), quantile_us(record, 0.9), quantile_us(record, 0.99),
           quantile_us(record, 1));
    free(record->ends);
    free(record->latencies);
    *record = (struct record){0};
}
