/* SPDX-License-Identifier: MIT */
#include "host-agent/model/memory_use.h"

#define FIRST_STEP      (G_GUINT64_CONSTANT(64) << 20)
#define STEPS_IN_OCTAVE 4
#define EXCEEDED        100u /* one of so many seconds */
#define MARGIN          10u  /* one of so many bytes */

/* The most bytes of a step. */
static guint64 bytes_of_step(guint step)
{
    /* In 1024ths, rounded up. */
    static const guint of_octave[STEPS_IN_OCTAVE] = {1024, 1218, 1449, 1723};

    return (FIRST_STEP >> 10) * of_octave[step % STEPS_IN_OCTAVE] << step / STEPS_IN_OCTAVE;
}

/* What is beyond the last step is in that. */
static guint step_of(guint64 bytes)
{
    guint step = 0;

    while (step < MEMORY_STEPS - 1 && bytes > bytes_of_step(step))
        step++;
    return step;
}

void memory_use_add(MemoryUse *use, guint64 bytes, guint seconds)
{
    use->most = MAX(use->most, bytes);
    use->seconds[step_of(bytes)] += seconds;
}

void memory_use_join(MemoryUse *use, const MemoryUse *other)
{
    use->most = MAX(use->most, other->most);
    for (guint i = 0; i < MEMORY_STEPS; i++)
        use->seconds[i] += other->seconds[i];
}

static guint64 seconds_of(const MemoryUse *use)
{
    guint64 sum = 0;

    for (guint i = 0; i < MEMORY_STEPS; i++)
        sum += use->seconds[i];
    return sum;
}

gboolean memory_use_is_known(const MemoryUse *use)
{
    return seconds_of(use) > 0;
}

guint64 memory_use_expect(const MemoryUse *use)
{
    guint64 left = seconds_of(use) / EXCEEDED, bytes;
    guint step = MEMORY_STEPS - 1;

    for (; step && use->seconds[step] <= left; step--)
        left -= use->seconds[step];
    bytes = step == MEMORY_STEPS - 1 ? use->most : MIN(bytes_of_step(step), use->most);
    return MAX(bytes + bytes / MARGIN, 1);
}
