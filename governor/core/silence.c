// SPDX-License-Identifier: MIT
#include "silence.h"

#include "clock.h"

/*
 * The cost of a turn of the arbiter and of a message if processors are scarce. In a longer pause,
 * others' work is worth it.
 */
#define SHORT_PAUSE_NS (40 * NS_PER_US)

#define LEAST_SPEAKS 16u
#define MOST_SPEAKS  1024u

bool silence_keep(struct silence *silence)
{
    silence->kept = !silence->speaks;
    if (!silence->kept)
        silence->speaks--;
    return silence->kept;
}

void silence_learn(struct silence *silence, uint64_t pause_ns)
{
    if (!silence->kept)
        return;
    silence->kept = false;
    if (pause_ns <= SHORT_PAUSE_NS) {
        silence->next_speaks -= silence->next_speaks > LEAST_SPEAKS;
        return;
    }
    if (silence->next_speaks < LEAST_SPEAKS)
        silence->next_speaks = LEAST_SPEAKS;
    silence->speaks = silence->next_speaks;
    if (silence->next_speaks < MOST_SPEAKS)
        silence->next_speaks *= 2;
}
