// SPDX-License-Identifier: MIT
/* Sentences for whoever looks after the host. */
#include "member_state.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void log_to_stderr(const char *sentence)
{
    dprintf(STDERR_FILENO, "%s\n", sentence);
}

static void (*_Atomic log_sentence)(const char *sentence) = log_to_stderr;

void governor_member_set_log(void (*log)(const char *sentence))
{
    log_sentence = log;
}

void member_say(const char *format, ...)
{
    char sentence[PATH_MAX + 256];
    va_list list;

    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    log_sentence(sentence);
}
