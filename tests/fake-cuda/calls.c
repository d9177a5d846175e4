// SPDX-License-Identifier: MIT
/* Every name of the table: a weak function that remembers what it was given, and writes zeros to
 * what it should write, for those that nothing else defines. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"

_Thread_local long fake_arguments[FAKE_ARGUMENTS];

/* What each call writes, by the table. */
static const struct output {
    const char *name;
    unsigned int argument, bytes;
    char counted_by;
    unsigned int count, count_bytes;
} outputs[] = {
#define O(name, argument, bytes, counted_by, count, count_bytes)                                   \
    {#name, argument, bytes, counted_by, count, count_bytes},
#include "outputs.inc"
#undef O
};

/* Tests give small numbers as addresses. More than MOST bytes nobody wants. */
#define LEAST 65536ul
#define MOST  (1ul << 20)

static unsigned long count_of(const struct output *output, const long *arguments)
{
    unsigned long given = output->counted_by == 'n' ? 0 : (unsigned long)arguments[output->count];

    if (output->counted_by == 'n')
        return output->count;
    if (output->counted_by == 'v')
        return output->count_bytes == 4 ? (unsigned int)given : given;
    if (given < LEAST)
        return 0;
    return output->count_bytes == 4 ? *(unsigned int *)given : *(unsigned long *)given;
}

static void write_zeros(const char *name, const long *arguments)
{
    for (unsigned int i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        unsigned long to = (unsigned long)arguments[outputs[i].argument], count;

        if (strcmp(outputs[i].name, name) || to < LEAST)
            continue;
        count = count_of(&outputs[i], arguments);
        if (count <= MOST / outputs[i].bytes)
            memset((void *)to, 0, count * outputs[i].bytes);
    }
}

/* For tests in another process: a line with the call's name and its arguments, in the file
 * FAKE_CUDA_NOTES. */
static void write_note(const char *name, const long *arguments)
{
    const char *path = getenv("FAKE_CUDA_NOTES");
    FILE *file = path ? fopen(path, "ae") : NULL;

    if (!file)
        return;
    fputs(name, file);
    for (unsigned int i = 0; i < FAKE_ARGUMENTS; i++)
        fprintf(file, " %lx", (unsigned long)arguments[i]);
    fputc('\n', file);
    fclose(file);
}

static long remember(const char *name, const long *arguments)
{
    fake_note(name);
    memcpy(fake_arguments, arguments, sizeof(fake_arguments));
    write_note(name, arguments);
    write_zeros(name, arguments);
    return fake_move(name, arguments);
}

#define C(name, base, since, class, kind, words)                                                   \
    long name(long, long, long, long, long, long, long, long, long, long, long, long, long, long,  \
              long, long);                                                                         \
    __attribute__((weak)) long name(long a, long b, long c, long d, long e, long f, long g,        \
                                    long h, long i, long j, long k, long l, long m, long n,        \
                                    long o, long p)                                                \
    {                                                                                              \
        const long arguments[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};                 \
                                                                                                   \
        return remember(#name, arguments);                                                         \
    }
#include "calls.inc"
#undef C

#define C(name, base, since, class, kind, words) {#name, #base, since, (void *)name, 0},
struct fake_call fake_calls[] = {
#include "calls.inc"
    {0}};
#undef C

static struct fake_call *find(const char *name)
{
    struct fake_call *call = fake_calls;

    while (call->name && strcmp(call->name, name))
        call++;
    return call;
}

void fake_note(const char *name)
{
    /* Those are of another process. */
    if (strncmp(name, "cuCheckpoint", strlen("cuCheckpoint")))
        card_wait();
    find(name)->calls++;
    fake_free_reached();
}

unsigned int fake_count(const char *name)
{
    return find(name)->calls;
}
