// SPDX-License-Identifier: MIT
/* Every name of the table: a weak function that remembers what it was given, for those that nothing
 * else defines. */
#include "fake.h"

#include <string.h>

#include "card.h"

_Thread_local long fake_arguments[FAKE_ARGUMENTS];

static long remember(const char *name, const long *arguments)
{
    fake_note(name);
    memcpy(fake_arguments, arguments, sizeof(fake_arguments));
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
